"""`dragoman keys`: the keys of providers, in a file that only the user can read.

Keys are stored by the names of their environment variables, so that providers that share a variable
share the key. The environment comes first. Only the command line reads the file, and only when a
key is needed: a program that imports dragoman never does.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from functools import cache
from getpass import getpass
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.caller_keys import StoreOption, list_caller_keys
from dragoman.cli.config_files import change_file, find_config_folder, read_file
from dragoman.cli.prompt import read_piped
from dragoman.cli.terminal import echo, to_one_line
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json

__all__ = ["KEYS", "find_keys_file", "make_key_reader", "read_keys"]

KEYS = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Keys of providers, and of the callers of a server.",
)

_Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A provider, or its environment variable.", show_default=False
    ),
]


def find_keys_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the file of stored keys: keys.json in the folder of settings."""
    return find_config_folder(environment) / "keys.json"


def read_keys(path: Path) -> Json:
    """Returns the stored keys, by environment variable; none if there is no file.

    Raises:
        SettingsError: it cannot be read, others can read it, or something in it is no key.
    """
    _check_mode(path)
    keys = read_file(path)
    for name, key in keys.items():
        if not isinstance(key, str):
            raise SettingsError(f"{path}: {to_one_line(name)} must be a text")
    return keys


def make_key_reader() -> Callable[[], Mapping[str, str]]:
    """Returns a function that returns the stored keys. It reads the file once, when it is first
    called."""
    return cache(lambda: read_keys(find_keys_file()))


def _check_mode(path: Path) -> None:
    """Checks that only the owner can read the file of keys. Raises `SettingsError` if not."""
    if sys.platform == "win32":
        return
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        # There is no file, or the error comes again when it is read.
        return
    if mode & 0o077:
        raise SettingsError(
            f"others can read the keys in {path} (mode {mode:04o}): run chmod 600 {path}"
        )


def _find_variable(name: str) -> str:
    """Returns the environment variable of a provider's key.

    Raises:
        SettingsError: there is no such provider, or it has no key.
    """
    from dragoman import providers
    from dragoman.providers.registry import REGISTRY

    if any(name in provider.key_names for provider in REGISTRY.providers()):
        return name
    provider = providers.get(name)
    if not provider.key_names:
        raise SettingsError(f"{provider.display_name} has no key")
    return provider.key_names[-1]


def _read_new_key(name: str) -> str:
    """Returns the key that is typed, unseen, or piped in.

    Raises:
        BadParameter: it cannot be a key.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        key = getpass(f"Key for {to_one_line(name)}: ")
    else:
        key = read_piped("NAME")
    key = key.strip()
    if not key:
        raise typer.BadParameter("there is no key; type it, or pipe it in", param_hint="NAME")
    # What is pasted by mistake is often a line of a shell, or several lines.
    if not key.isascii() or not key.isprintable() or " " in key:
        raise typer.BadParameter("the key has characters that no key has", param_hint="NAME")
    return key


@KEYS.command(name="set")
def set_key(name: _Name) -> None:
    """Store the key of a provider, which is typed unseen or piped in.

    Commands use it if the environment has none. A program that imports dragoman does not.

    \b
    dragoman keys set openai
    pass show openai | dragoman keys set openai
    """
    variable = _find_variable(name)
    key = _read_new_key(name)

    def put(keys: Json) -> None:
        keys[variable] = key

    change_file(find_keys_file(), put, read_keys)
    echo(f"{variable} is stored", err=True)
    if os.environ.get(variable):
        echo(f"note: {variable} is also set in the environment, which comes first", err=True)


@KEYS.command(name="list")
def list_keys(store: StoreOption = None) -> None:
    """List the names of the stored keys, and who uses them. The keys themselves are not shown.

    With a server's database the keys of its callers follow.

    \b
    dragoman keys
    dragoman keys list --store sqlite:///gateway.db
    """
    if store is None:
        _list_provider_keys()
        return
    echo("KEYS OF PROVIDERS")
    _list_provider_keys()
    echo("\nKEYS OF CALLERS")
    list_caller_keys(store)


def _list_provider_keys() -> None:
    from dragoman.providers.registry import REGISTRY

    keys = read_keys(find_keys_file())
    if not keys:
        echo("note: no key is stored; dragoman keys set NAME stores one", err=True)
    for variable in sorted(keys):
        users = [user.name for user in REGISTRY.providers() if variable in user.key_names]
        echo(f"{to_one_line(variable)}  {', '.join(users)}".rstrip())


@KEYS.command(name="get")
def get_key(name: _Name) -> int:
    """Print a stored key, for scripts.

    \b
    export OPENAI_API_KEY=$(dragoman keys get openai)
    """
    key = read_keys(find_keys_file()).get(_find_variable(name))
    if key is None:
        return _report_missing(name)
    echo(key)
    return 0


@KEYS.command()
def remove(name: _Name) -> int:
    """Remove a stored key.

    \b
    dragoman keys remove openai
    """
    path = find_keys_file()
    # A key of a provider that is not installed any more is removed by its variable.
    variable = name if name in read_keys(path) else _find_variable(name)
    if variable not in read_keys(path):
        return _report_missing(name)
    change_file(path, lambda keys: keys.pop(variable, None), read_keys)
    return 0


@KEYS.command()
def path() -> None:
    """Print where the keys are stored.

    \b
    dragoman keys path
    """
    echo(find_keys_file())


def _report_missing(name: str) -> int:
    echo(f"error: no key is stored for {to_one_line(name)}", err=True)
    return 1
