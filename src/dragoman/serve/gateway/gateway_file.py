"""A gateway as a TOML file says it.

`load_gateway` reads the file into a `_File`, checks the names of each table, and passes what it
finds to `Gateway` as arguments. The class itself is an argument, so that this module need not
import it. `_File.make` calls a constructor and turns its error into one that names the entry and
its line. `tomllib` reports no lines, so `_entry_lines` finds them in the text.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from dragoman.errors import SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.model.middleware import Middleware
from dragoman.request import Settings
from dragoman.transport import Transport

__all__ = ["load_gateway"]

T = TypeVar("T")

_PROVIDER = ("base_url", "key")
_SETTINGS = Settings.__struct_fields__

_PLAIN: Mapping[str, type] = {
    "on_loss": str,
    "max_tokens": int,
    "retries": int,
    "references": bool,
    "provider_store": bool,
    "record": str,
    "longest_call_id": int,
}
_TOP = (*_PLAIN, "fetch", "models", "providers", "seal_keys", "settings")
_POLICY = ("allow", "schemes", "ports", "private", "proxy")
_SIZES = (
    "max_bytes",
    "total_bytes",
    "kept_bytes",
    "kept_seconds",
    "seconds",
    "most",
    "at_once",
    "retries",
)
_FETCHED = ("every", *_SIZES, "on_failure")


def load_gateway(
    make: Callable[..., T],
    path: Path | str,
    *,
    transport: Transport | None = None,
    environment: Mapping[str, str] | None = None,
) -> T:
    """Makes a gateway as a TOML file says it.

    ```toml
    on_loss = "refuse"              # and max_tokens, retries, references, provider_store, record: as for Gateway

    [models]
    fast = "openai:gpt-4o-mini"
    careful = ["anthropic:claude-opus-4-5", "openai:gpt-5"]
    "llama-*" = "groq:llama-*"

    [providers.openai]
    key = "env:TEAM_OPENAI_KEY"     # or "file:openai.key"; without it as everywhere: OPENAI_API_KEY
    base_url = "https://eu.api.openai.com/v1"

    [settings]
    temperature = 0.2
    cache = true                    # or "long": for clients of another API that mark nothing for it
    ```

    `[fetch]` with `allow = ["*.example.org"]`: what a provider cannot take by its URL is fetched
    from there; it has the other arguments of `AddressPolicy` and of `dragoman.model.fetch_files`
    too. `seal_keys = ["env:NEW_SEAL", "env:OLD_SEAL"]`: see `Gateway(seal_key=…)`, the newest
    first.

    Keys do not stand in the file: `env:` names a variable, `file:` a file, relative to this one.

    Args:
        make: the class, `Gateway`.
        path: the file.
        transport: how requests go; left out, by HTTP with retries.
        environment: variables that go before those of the process.

    Raises:
        SettingsError: the file cannot be read, or what it says cannot be used; with the line and the name of the entry.
    """
    file = _File(Path(path), environment or {})
    top = file.table((), _TOP)
    arguments = _read_arguments(file, top)
    if "models" not in top:
        raise file.make_error(
            (), 'models are missing; write [models] and below it fast = "openai:gpt-4o-mini"'
        )
    keys, urls = _read_providers(file, top)

    def make_gateway() -> T:
        return make(
            top["models"],
            keys=keys,
            base_urls=urls,
            transport=transport,
            environment=environment,
            **arguments,
        )

    return file.make(("models",), make_gateway)


def _read_arguments(file: _File, top: JsonMap) -> Json:
    """Returns the arguments of `Gateway` beside the models and their providers."""
    arguments: Json = {
        name: file.value((name,), value_type) for name, value_type in _PLAIN.items() if name in top
    }
    if "record" in arguments:
        arguments["record"] = file.folder / arguments["record"]
    if "settings" in top:
        settings = file.table(("settings",), _SETTINGS)
        if isinstance(settings.get("cache"), bool):
            settings = {**settings, "cache": {True: "short", False: None}[settings["cache"]]}
        arguments["settings"] = file.make(
            ("settings",), lambda: msgspec.convert(settings, Settings)
        )
    if "fetch" in top:
        fetch = file.table(("fetch",), (*_POLICY, *_FETCHED))
        arguments["middleware"] = file.make(("fetch",), lambda: [_make_fetching(fetch)])
    if "seal_keys" in top:
        from dragoman.serve.seals.token_encryption import Sealer

        seals = file.secrets("seal_keys")
        # Made here only so that an error names the line of the keys.
        file.make(("seal_keys",), lambda: Sealer(seals))
        arguments["seal_key"] = seals
    return arguments


def _read_providers(file: _File, top: JsonMap) -> tuple[dict[str, str], dict[str, str]]:
    """Returns from the gateway file the keys and the base URLs of providers, by their names."""
    keys: dict[str, str] = {}
    urls: dict[str, str] = {}
    for name in file.table(("providers",)) if "providers" in top else ():
        fields = file.table(("providers", name), _PROVIDER)
        if "key" in fields:
            keys[name] = file.secret(("providers", name, "key"))
        if "base_url" in fields:
            urls[name] = file.value(("providers", name, "base_url"), str)
    return keys, urls


def _make_fetching(table: JsonMap) -> Middleware:
    """Returns the middleware that fetches linked files, as the table in the gateway file configures
    it."""
    from dragoman.model.file_fetching import fetch_files
    from dragoman.transport.address_policy import AddressPolicy

    policy = AddressPolicy(**{name: table[name] for name in _POLICY if name in table})
    return fetch_files(policy, **{name: table[name] for name in _FETCHED if name in table})


class _File:
    """A TOML file, whose errors say where in it they are."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        """Reads a gateway file. `environment`: variables that `env:NAME` refers to."""
        self._path, self._environment = path, environment
        self.folder = path.parent
        try:
            self._text = path.read_text("utf-8")
            self._content = tomllib.loads(self._text)
        except (OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError):
                reason = error.strerror
            else:
                reason = "it is no UTF-8"
            raise SettingsError(f"the gateway's settings {path} cannot be read: {reason}") from None
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{path} is no TOML: {error}") from None

    def table(self, path: tuple[str, ...], allowed: Collection[str] | None = None) -> Json:
        """Returns the gateway file's table at a path; `allowed`: the names that it may have."""
        value = self._get_entry(path)
        if not isinstance(value, dict):
            raise self.make_error(path, f"it must be a table; write [{'.'.join(path)}]")
        table = cast("Json", value)
        for name in table if allowed is not None else ():
            if allowed is not None and name not in allowed:
                near = get_close_matches(name, allowed, n=1)
                if near:
                    hint = f"did you mean {near[0]}?"
                else:
                    hint = f"there are {', '.join(sorted(allowed))}"
                raise self.make_error((*path, name), f"there is no such entry; {hint}")
        return table

    def value(self, path: tuple[str, ...], value_type: type) -> Any:
        """Returns the gateway file's value at a path, of one type."""
        value = self._get_entry(path)
        if not isinstance(value, value_type) or (
            isinstance(value, bool) and value_type is not bool
        ):
            type_names = {str: "a text", int: "a whole number", bool: "true or false"}
            raise self.make_error(path, f"it must be {type_names[value_type]}")
        return value

    def secret(self, path: tuple[str, ...]) -> str:
        """Returns the secret that a value names. No part of a key is in an error."""
        return self._read_secret(path, self.value(path, str))

    def secrets(self, name: str) -> list[str]:
        """Returns the secrets that a list of the gateway file names."""
        values = self._get_entry((name,))
        if not isinstance(values, list) or not all(
            isinstance(value, str) for value in cast("list[object]", values)
        ):
            raise self.make_error((name,), 'it must be a list of texts, such as ["env:NAME"]')
        return [self._read_secret((name,), source) for source in cast("list[str]", values)]

    def _read_secret(self, path: tuple[str, ...], source: str) -> str:
        """Returns the secret that `env:NAME` or `file:PATH` in the gateway file names."""
        scheme, _, where = source.partition(":")
        if scheme == "env" and where:
            secret = self._environment.get(where) or os.environ.get(where)
            if not secret:
                raise self.make_error(path, f"the environment has no {where}")
            return secret
        if scheme == "file" and where:
            try:
                secret = (self.folder / where).read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError):
                raise self.make_error(path, f"the file {where} cannot be read") from None
            if not secret:
                raise self.make_error(path, f"the file {where} is empty")
            return secret
        raise self.make_error(path, 'a key does not stand here; write "env:NAME" or "file:PATH"')

    def make(self, path: tuple[str, ...], make: Callable[[], Any]) -> Any:
        """Calls a function for an entry of the gateway file. Its `SettingsError` names that
        entry."""
        try:
            return make()
        except (SettingsError, msgspec.ValidationError, TypeError) as error:
            if isinstance(error, SettingsError):
                message = error.message
            else:
                message = str(error)
            patterns = {
                (): r"Gateway\((\w+)=",
                ("models",): r'"([^"]+)"',
                ("providers",): r" for (\S+),",
            }
            named = [
                (*candidate, match[1])
                for candidate, pattern in patterns.items()
                if (match := re.search(pattern, message))
            ]
            raise self.make_error(
                next((candidate for candidate in named if self._has_entry(candidate)), path),
                message,
            ) from None

    def make_error(self, path: tuple[str, ...], message: str) -> SettingsError:
        """Returns the error for an entry of the gateway file, with its line."""
        line = self._line(path)
        where = ", ".join(
            [
                str(self._path),
                *([f"line {line}"] if line else []),
                *([".".join(path)] if path else []),
            ]
        )
        return SettingsError(f"{where}: {message}")

    def _has_entry(self, path: tuple[str, ...]) -> bool:
        """Returns whether the gateway file has an entry at a path."""
        *above, name = path
        if not above:
            table = self._content
        else:
            table = self._content.get(above[0])
        return isinstance(table, dict) and name in table

    def _get_entry(self, path: tuple[str, ...]) -> Any:
        """Returns the value at a path of the gateway file."""
        value: Any = self._content
        for name in path:
            value = value[name]
        return value

    def _line(self, path: tuple[str, ...]) -> int | None:
        """Returns the line in which an entry begins, if it can be found."""
        return next((number for number, entry in self._entry_lines() if entry == path), None)

    def _entry_lines(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yields the gateway file's lines that begin an entry or a table, with its path."""
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._text.splitlines(), 1):
            if (header := re.match(r"\s*\[([^\[\]]+)\]", line)) is not None:
                table = _split_key(header[1])
                yield number, table
            elif (
                entry := re.match(r"""\s*((?:"[^"]*"|'[^']*'|[\w\-.\s])+?)\s*=""", line)
            ) is not None:
                yield number, (*table, *_split_key(entry[1]))


def _split_key(dotted: str) -> tuple[str, ...]:
    return tuple(
        part.strip().strip("\"'") for part in re.findall(r""""[^"]*"|'[^']*'|[^.]+""", dotted)
    )
