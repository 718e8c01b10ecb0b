"""The user's settings: names for models (`dragoman aliases`), the default model (`dragoman models
default`), and whether prompts are logged.

They are in one file that people may edit. Only the command line reads it. A command that is given a
model expands it as an alias; one that is not uses DRAGOMAN_MODEL, then the stored default.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from dragoman.cli.config_files import change_file, find_config_folder, read_file
from dragoman.cli.terminal import echo, echo_json, to_one_line
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json

__all__ = [
    "ALIASES",
    "UserSettings",
    "change_settings",
    "choose_model",
    "expand_alias",
    "find_default_model",
    "load_settings",
    "show_default",
]

ALIASES = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Short names for models.")

_Alias = Annotated[str, typer.Argument(metavar="ALIAS", help="The short name.", show_default=False)]


class UserSettings(msgspec.Struct, frozen=True):
    """What the file of settings says."""

    model: str | None = None
    """The default model, or its alias."""
    aliases: dict[str, str] = {}
    """Alias → a model, or another alias."""
    log: bool = True
    """True to log prompts and answers."""


_TYPES: Mapping[str, tuple[type, str]] = {
    "model": (str, "a text"),
    "aliases": (dict, "an object"),
    "log": (bool, "true or false"),
}
"""Field of the file → its type, and the words for it."""


def find_settings_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the file of settings: settings.json in the folder of settings."""
    return find_config_folder(environment) / "settings.json"


def load_settings() -> UserSettings:
    """Returns the user's settings.

    Raises:
        SettingsError: the file cannot be read, or something in it is no setting. It names the line.
    """
    return msgspec.convert(_read_settings(find_settings_file()), UserSettings)


def _read_settings(path: Path) -> Json:
    """Returns the content of the file of settings. Raises `SettingsError` if it is invalid."""
    content = read_file(path)
    aliases: Json = content.get("aliases", {})
    problems = [
        (name, f"there is no setting {name!r}; there are {', '.join(_TYPES)}")
        for name in content
        if name not in _TYPES
    ]
    problems += [
        (name, f"{name} must be {article}")
        for name, (wanted, article) in _TYPES.items()
        if not isinstance(content.get(name, wanted()), wanted)
    ]
    if not problems:
        problems = [
            (name, f"the alias {name!r} must be a text")
            for name, model in aliases.items()
            if not isinstance(model, str)
        ]
    if problems:
        name, problem = problems[0]
        raise SettingsError(f"{path}, line {_find_line(path, name)}: {to_one_line(problem)}")
    return content


def _find_line(path: Path, name: str) -> int:
    """Returns the number of the line in a file of settings that has a name in quotes."""
    lines = path.read_text("utf-8").splitlines()
    quoted = (json.dumps(name), json.dumps(name, ensure_ascii=False))
    matches = (number for number, line in enumerate(lines, 1) if any(map(line.count, quoted)))
    return next(matches, 1)


def change_settings(change: Callable[[Json], object]) -> None:
    """Changes the content of the file of settings in place.

    Raises:
        SettingsError: the file is invalid, or cannot be written.
    """
    change_file(find_settings_file(), change, _read_settings)


def expand_alias(model: str | None) -> str | None:
    """Returns the model that an alias stands for; other texts as they are.

    Raises:
        SettingsError: the settings are invalid, or the alias leads to itself or to nothing.
    """
    if model is None:
        return None
    return _follow(model, load_settings().aliases)


def choose_model(model: str | None) -> str | None:
    """Returns the model of a command: what an option or DRAGOMAN_MODEL says, as an alias or not, else
    the stored default; None if there is none.

    Raises:
        SettingsError: as `expand_alias`.
    """
    settings = load_settings()
    chosen = model or os.environ.get("DRAGOMAN_MODEL") or settings.model
    return None if chosen is None else _follow(chosen, settings.aliases)


def find_default_model() -> str | None:
    """Returns the model of a command that is given none: that of DRAGOMAN_MODEL, else the stored
    default; None if there is neither."""
    return choose_model(None)


def _follow(model: str, aliases: Mapping[str, str]) -> str:
    """Returns the model at the end of a chain of aliases. Raises `SettingsError` if there is
    none."""
    # An alias may stand for another one.
    chain = [model]
    while (target := aliases.get(chain[-1])) is not None:
        if target in chain:
            raise SettingsError(
                f"the alias {to_one_line(model)} leads to itself: {' → '.join([*chain, target])}"
            )
        chain.append(target)
    if len(chain) > 1:
        _check_model(chain[-1], f"the alias {to_one_line(model)} stands for {chain[-1]!r}")
    return chain[-1]


def _check_model(model: str, beginning: str) -> None:
    """Checks that a model's provider exists. `beginning`: of the error.

    Raises:
        SettingsError: it does not.
    """
    from dragoman.model.resolve_model import resolve_model

    try:
        resolve_model(model)
    except SettingsError as error:
        raise SettingsError(f"{beginning}: {error.message}") from error


@ALIASES.command(name="set")
def set_alias(
    alias: _Alias,
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model, or an alias.", show_default=False)
    ],
) -> None:
    """Give a model a short name, which every -m takes.

    \b
    dragoman aliases set fast openai:gpt-4o-mini
    dragoman -m fast "Name a river"
    """
    from dragoman.providers.registry import REGISTRY

    if not alias.strip() or ":" in alias or alias.startswith("-"):
        raise typer.BadParameter("an alias is a word without a colon", param_hint="ALIAS")
    providers = REGISTRY.providers()
    if any(alias in (provider.name, *provider.aliases) for provider in providers):
        raise typer.BadParameter(f"{alias!r} is a provider", param_hint="ALIAS")
    _follow(alias, {**load_settings().aliases, alias: model})
    change_settings(lambda content: content.setdefault("aliases", {}).update({alias: model}))


@ALIASES.command(name="list")
def list_aliases(
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the short names of models.

    \b
    dragoman aliases
    """
    aliases = load_settings().aliases
    if json:
        echo_json(aliases)
        return
    if not aliases:
        echo("note: there is no alias; dragoman aliases set ALIAS MODEL makes one", err=True)
    width = max(map(len, aliases), default=0)
    for alias, model in sorted(aliases.items()):
        echo(f"{to_one_line(alias):<{width}}  {to_one_line(model)}")


@ALIASES.command()
def remove(alias: _Alias) -> int:
    """Remove a short name.

    \b
    dragoman aliases remove fast
    """
    if alias not in load_settings().aliases:
        echo(f"error: there is no alias {to_one_line(alias)}", err=True)
        return 1
    change_settings(lambda content: content["aliases"].pop(alias, None))
    return 0


@ALIASES.command()
def path() -> None:
    """Print where the settings are stored.

    \b
    dragoman aliases path
    """
    echo(find_settings_file())


def show_default(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="The new default.", show_default=False),
    ] = None,
) -> None:
    """Show the model that commands ask without -m, or store another one.

    DRAGOMAN_MODEL comes before it.

    \b
    dragoman models default
    dragoman models default openai:gpt-4o
    """
    if model is None:
        echo(find_default_model() or "local")
        return
    aliases = load_settings().aliases
    _check_model(_follow(model, aliases), "this cannot be the default")
    change_settings(lambda content: content.update(model=model))
    if chosen := os.environ.get("DRAGOMAN_MODEL"):
        echo(f"note: DRAGOMAN_MODEL is {to_one_line(chosen)}, which comes first", err=True)
