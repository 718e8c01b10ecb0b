"""Who calls: the keys that a server knows, and where clients put them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qs

import msgspec

from dragoman.codec.serving import BEARER, KeyPlace
from dragoman.errors import SettingsError

__all__ = ["ANONYMOUS", "Auth", "Authenticate", "Caller", "Key", "authenticator", "presented_keys"]

_SHORTEST = 8
"""Letters that a key must have at least."""


class Caller(msgspec.Struct, frozen=True):
    """Who calls, once the key was checked."""

    id: str
    """Whose everything is that the call leaves on the server: answers, threads, runs. The same for every call with the same key."""
    name: str = ""
    """For logs and metrics."""
    models: tuple[str, ...] | None = None
    """What the caller may name; `*` stands for any letters. `None`: all."""

    def may_use(self, model: str) -> bool:
        """Whether the caller may name that model or agent."""
        return self.models is None or any(fnmatchcase(model, pattern) for pattern in self.models)


ANONYMOUS = Caller("anonymous")
"""Everybody, where a server needs no keys."""


class Key(msgspec.Struct, frozen=True):
    """A key that clients may call with.

    Raises:
        SettingsError: the secret is so short that it can be guessed.
    """

    secret: str
    """What clients send."""
    name: str = ""
    """For logs and metrics."""
    models: Sequence[str] | None = None
    """What its callers may name; `*` stands for any letters. `None`: all."""

    def __post_init__(self) -> None:
        if len(self.secret.strip()) < _SHORTEST:
            raise SettingsError(
                f"a key of fewer than {_SHORTEST} letters can be guessed; make one with: python3 -c 'import secrets; "
                "print(secrets.token_urlsafe(32))'"
            )

    def __repr__(self) -> str:
        return f"Key(name={self.name!r}, models={self.models!r})"

    @property
    def caller(self) -> Caller:
        """Who calls with it. The id is made of the secret, and does not tell it."""
        models = None if self.models is None else tuple(self.models)
        digest = blake2b(self.secret.encode(), digest_size=16, person=b"dragoman-caller")
        return Caller(digest.hexdigest(), self.name, models)


Authenticate: TypeAlias = Callable[[Sequence[str]], Awaitable["Caller | None"]]
"""The keys that a request presents, where its wire's clients put them → who calls; `None`: nobody who may."""

Auth: TypeAlias = "str | Key | Iterable[str | Key] | Callable[[str], Any] | None"
"""A key, or several; a function, plain or async, of a key: the `Caller`, or `None` for a key that it does not know. `None`: nobody needs a key."""


def authenticator(auth: Auth) -> Authenticate:
    """What finds out who calls.

    Raises:
        SettingsError: a key can be guessed, or two are the same.
    """
    if auth is None:
        return _anybody
    if callable(auth):
        return _by_function(auth)
    given = [auth] if isinstance(auth, str | Key) else list(auth)
    keys = [Key(key) if isinstance(key, str) else key for key in given]
    if not keys:
        raise SettingsError("auth= holds no key, so that nobody could call; give one, or None to let everybody in")
    known = [(_digest(key.secret), key.caller) for key in keys]
    if len({digest for digest, _ in known}) < len(known):
        raise SettingsError("two keys of auth= are the same, so that it would not be clear who calls")
    return _by_keys(known)


async def _anybody(presented: Sequence[str]) -> Caller:  # noqa: ARG001 the type's
    return ANONYMOUS


def _by_keys(known: Sequence[tuple[bytes, Caller]]) -> Authenticate:
    async def authenticate(presented: Sequence[str]) -> Caller | None:
        found: Caller | None = None
        for key in presented:
            digest = _digest(key)
            for expected, caller in known:  # all of them, always: how long it takes tells nothing
                if compare_digest(digest, expected):
                    found = found or caller
        return found

    return authenticate


def _by_function(function: Callable[[str], Any]) -> Authenticate:
    async def authenticate(presented: Sequence[str]) -> Caller | None:
        for key in presented:
            found = function(key)
            if inspect.isawaitable(found):
                found = await found
            if found is not None:
                return cast("Caller", found)
        return None

    return authenticate


def _digest(secret: str) -> bytes:
    return blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def presented_keys(headers: Mapping[str, str], query: str, places: Sequence[KeyPlace] = BEARER) -> list[str]:
    """The keys that a request presents in these places, each once. `headers`: names in lower case; `query`: as the URL has it."""
    found: list[str] = []
    for place in places:
        if place.kind == "query":
            found += parse_qs(query).get(place.name, [])[:1] if place.name in query else []
            continue
        text = headers.get(place.name, "")
        if place.kind == "bearer":
            scheme, _, text = text.partition(" ")
            text = text if scheme.lower() == "bearer" else ""
        found.append(text.strip())
    return list(dict.fromkeys(filter(None, found)))
