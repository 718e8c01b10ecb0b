"""A gateway as a TOML file says it."""

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
    ```

    `[fetch]` with `allow = ["*.example.org"]`: what a provider cannot take by its URL is fetched from there; it has the other arguments of
    `AddressPolicy` and of `dragoman.model.fetched` too. `seal_keys = ["env:NEW_SEAL", "env:OLD_SEAL"]`: see `Gateway(seal_key=…)`, the newest first.

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
    given: dict[str, Any] = {
        name: file.value((name,), kind) for name, kind in _PLAIN.items() if name in top
    }
    if "record" in given:
        given["record"] = file.folder / given["record"]
    if "settings" in top:
        file.table(("settings",), _SETTINGS)
        given["settings"] = file.made(
            ("settings",), lambda: msgspec.convert(top["settings"], Settings)
        )
    if "fetch" in top:
        fetch = file.table(("fetch",), (*_POLICY, *_FETCHED))
        given["middleware"] = file.made(("fetch",), lambda: [_fetching(fetch)])
    if "seal_keys" in top:
        from dragoman.serve.seals.sealer import Sealer

        seals = file.secrets("seal_keys")
        file.made(
            ("seal_keys",), lambda: Sealer(seals)
        )  # what is wrong with them is said of their line
        given["seal_key"] = seals
    if "models" not in top:
        raise file.wrong(
            (), 'models are missing; write [models] and below it fast = "openai:gpt-4o-mini"'
        )
    providers = file.table(("providers",)) if "providers" in top else {}
    for name in providers:
        file.table(("providers", name), _PROVIDER)
    places = {
        field: [name for name in providers if field in providers[name]] for field in _PROVIDER
    }
    keys = {name: file.secret(("providers", name, "key")) for name in places["key"]}
    urls = {name: file.value(("providers", name, "base_url"), str) for name in places["base_url"]}

    def make_gateway() -> T:
        return make(
            top["models"],
            keys=keys,
            base_urls=urls,
            transport=transport,
            environment=environment,
            **given,
        )

    return file.made(("models",), make_gateway)


def _fetching(table: Mapping[str, Any]) -> Middleware:
    from dragoman.model.file_fetching import fetched
    from dragoman.transport.address_policy import AddressPolicy

    policy = AddressPolicy(**{name: table[name] for name in _POLICY if name in table})
    return fetched(policy, **{name: table[name] for name in _FETCHED if name in table})


class _File:
    """A TOML file, whose errors say where in it they are."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path, self._environment = path, environment
        self.folder = path.parent
        try:
            self._text = path.read_text("utf-8")
            self._content = tomllib.loads(self._text)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            raise SettingsError(f"the gateway's settings {path} cannot be read: {reason}") from None
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{path} is no TOML: {error}") from None

    def table(self, at: tuple[str, ...], known: Collection[str] | None = None) -> dict[str, Any]:
        """The table at a place, with no other names than the known ones."""
        found = self._at(at)
        if not isinstance(found, dict):
            raise self.wrong(at, f"it must be a table; write [{'.'.join(at)}]")
        table = cast("dict[str, Any]", found)
        for name in table if known is not None else ():
            if known is not None and name not in known:
                near = get_close_matches(name, known, n=1)
                hint = (
                    f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
                )
                raise self.wrong((*at, name), f"there is no such entry; {hint}")
        return table

    def value(self, at: tuple[str, ...], kind: type) -> Any:
        """The value at a place, of one type."""
        found = self._at(at)
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            words = {str: "a text", int: "a whole number", bool: "true or false"}
            raise self.wrong(at, f"it must be {words[kind]}")
        return found

    def secret(self, at: tuple[str, ...]) -> str:
        """What a key's place leads to. No part of a key is in an error."""
        return self._secret(at, self.value(at, str))

    def secrets(self, name: str) -> list[str]:
        """What a list of places leads to."""
        found = self._at((name,))
        if not isinstance(found, list) or not all(
            isinstance(each, str) for each in cast("list[object]", found)
        ):
            raise self.wrong((name,), 'it must be a list of texts, such as ["env:NAME"]')
        return [self._secret((name,), place) for place in cast("list[str]", found)]

    def _secret(self, at: tuple[str, ...], place: str) -> str:
        kind, _, where = place.partition(":")
        if kind == "env" and where:
            found = self._environment.get(where) or os.environ.get(where)
            if not found:
                raise self.wrong(at, f"the environment has no {where}")
            return found
        if kind == "file" and where:
            try:
                found = (self.folder / where).read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError):
                raise self.wrong(at, f"the file {where} cannot be read") from None
            if not found:
                raise self.wrong(at, f"the file {where} is empty")
            return found
        raise self.wrong(at, 'a key does not stand here; write "env:NAME" or "file:PATH"')

    def made(self, at: tuple[str, ...], make: Callable[[], Any]) -> Any:
        """What a function makes of a place; what it refuses is an error there."""
        try:
            return make()
        except (SettingsError, msgspec.ValidationError, TypeError) as error:
            words = error.message if isinstance(error, SettingsError) else str(error)
            patterns = {
                (): r"Gateway\((\w+)=",
                ("models",): r'"([^"]+)"',
                ("providers",): r" for (\S+),",
            }
            named = [
                (*place, found[1])
                for place, each in patterns.items()
                if (found := re.search(each, words))
            ]
            raise self.wrong(
                next((place for place in named if self._has(place)), at), words
            ) from None

    def wrong(self, at: tuple[str, ...], words: str) -> SettingsError:
        """The error at a place."""
        line = self._line(at)
        where = ", ".join(
            [str(self._path), *([f"line {line}"] if line else []), *([".".join(at)] if at else [])]
        )
        return SettingsError(f"{where}: {words}")

    def _has(self, place: tuple[str, ...]) -> bool:
        *above, name = place
        found = self._content if not above else self._content.get(above[0])
        return isinstance(found, dict) and name in found

    def _at(self, at: tuple[str, ...]) -> Any:
        found: Any = self._content
        for name in at:
            found = found[name]
        return found

    def _line(self, at: tuple[str, ...]) -> int | None:
        """The line in which an entry begins, where that can be seen."""
        return next((number for number, place in self._places() if place == at), None)

    def _places(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The lines that begin an entry or a table, with its place."""
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._text.splitlines(), 1):
            if (header := re.match(r"\s*\[([^\[\]]+)\]", line)) is not None:
                table = _keys(header[1])
                yield number, table
            elif (
                entry := re.match(r"""\s*((?:"[^"]*"|'[^']*'|[\w\-.\s])+?)\s*=""", line)
            ) is not None:
                yield number, (*table, *_keys(entry[1]))


def _keys(dotted: str) -> tuple[str, ...]:
    return tuple(
        part.strip().strip("\"'") for part in re.findall(r""""[^"]*"|'[^']*'|[^.]+""", dotted)
    )
