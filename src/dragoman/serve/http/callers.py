"""Who calls: the keys that a server knows, and where clients put them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qs

import msgspec

from dragoman.arguments import expect, expect_sequence
from dragoman.codec.serving import BEARER, KeyPlace
from dragoman.errors import SettingsError
from dragoman.serve.http.names import fits_pattern

__all__ = [
    "ANONYMOUS",
    "STRANGER",
    "Auth",
    "Authenticate",
    "Caller",
    "Key",
    "authenticator",
    "presented_keys",
]

_SHORTEST = 8
"""Characters that a key must have at least."""
_LONGEST_NAME = 500
"""Characters of a model's name that is looked at with patterns."""


class Caller(msgspec.Struct, frozen=True):
    """Who calls, once the key was checked."""

    id: str
    """Whose everything is that the call leaves on the server: answers, threads, runs. The same for every call with the same key."""
    name: str = ""
    """For logs and metrics."""
    models: tuple[str, ...] | None = None
    """What the caller may name; `*` stands for any characters. `None`: all."""

    def may_use(self, model: str) -> bool:
        """Whether the caller may name that model or agent."""
        if self.models is None:
            return True
        return len(model) <= _LONGEST_NAME and any(
            fits_pattern(model, pattern) for pattern in self.models
        )


ANONYMOUS = Caller("anonymous")
"""Everybody, where a server needs no keys."""
STRANGER = Caller("stranger")
"""Who has no key, where one is needed; comes to public places alone."""


class Key(msgspec.Struct, frozen=True):
    """A key that clients may call with.

    Raises:
        SettingsError: the secret is so short that it can be guessed, or no client can send it.
    """

    secret: str
    """What clients send."""
    name: str = ""
    """For logs and metrics."""
    models: Sequence[str] | None = None
    """What its callers may name; `*` stands for any characters. `None`: all."""

    def __post_init__(self) -> None:
        expect("a key's secret", self.secret, str)
        expect("a key's name", self.name, str)
        if self.models is not None:
            for model in expect_sequence("a key's models", self.models, "names"):
                expect("a model's name", model, str)
        if len(self.secret.strip()) < _SHORTEST:
            raise SettingsError(
                f"a key of fewer than {_SHORTEST} characters can be guessed; make one with: python3 -c 'import secrets; "
                "print(secrets.token_urlsafe(32))'"
            )
        if not self.secret.isprintable() or self.secret != self.secret.strip():
            raise SettingsError(
                "a key begins or ends with a space, or holds a character that no client can send"
            )

    def __repr__(self) -> str:
        return f"Key(name={self.name!r}, models={self.models!r})"

    @property
    def caller(self) -> Caller:
        """Who calls with it. The id is made of the secret, and does not reveal it."""
        models = None if self.models is None else tuple(self.models)
        digest = blake2b(self.secret.encode(), digest_size=16, person=b"dragoman-caller")
        return Caller(digest.hexdigest(), self.name, models)


Authenticate: TypeAlias = Callable[[Sequence[str]], Awaitable["Caller | None"]]
"""The keys that a request presents, where its wire's clients put them → who calls; `None`: nobody who may."""

Auth: TypeAlias = (
    "str | Key | Iterable[str | Key] | Mapping[str, str] | Callable[[str], Any] | None"
)
"""A key, or several, or a name for each key → the key; or a function, plain or async, of a key: the `Caller`, or `None` for a key that it
does not know. `None`: nobody needs a key."""


def authenticator(auth: Auth) -> Authenticate:
    """What finds out who calls.

    Raises:
        SettingsError: a key can be guessed, or two are the same.
    """
    if auth is None:
        return _anybody
    if callable(auth) and not isinstance(auth, Mapping):
        return _by_function(auth)
    return _by_keys(_known(cast("str | Key | Iterable[str | Key] | Mapping[str, str]", auth)))


async def _anybody(presented: Sequence[str]) -> Caller:  # noqa: ARG001 the type's
    return ANONYMOUS


def _known(auth: str | Key | Iterable[str | Key] | Mapping[str, str]) -> list[tuple[bytes, Caller]]:
    if isinstance(auth, str | Key):
        given: Iterable[str | Key] = [auth]
    elif isinstance(auth, Mapping):
        given = [Key(secret, name) for name, secret in cast("Mapping[str, str]", auth).items()]
    else:
        given = expect_sequence("auth", auth, "keys")
    keys = [each if isinstance(each, Key) else Key(each) for each in given]
    if not keys:
        raise SettingsError(
            "auth= holds no key, so that nobody could call; give one, or None to let everybody in"
        )
    known = [(_digest(key.secret), key.caller) for key in keys]
    if len({digest for digest, _ in known}) < len(known):
        raise SettingsError(
            "two keys of auth= are the same, so that it would not be clear who calls"
        )
    return known


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
                expect("what the function of auth= returns", found, Caller, type(None))
                return cast("Caller", found)
        return None

    return authenticate


def _digest(secret: str) -> bytes:
    return blake2b(secret.encode(), digest_size=32).digest()


def presented_keys(
    headers: Iterable[tuple[bytes, bytes]], query: bytes, places: Sequence[KeyPlace] = BEARER
) -> list[str]:
    """The keys that a request presents in these places, each once. `headers`: names in lower case; `query`: as the URL has it.

    A place that holds two different keys holds none: what stands before this server may have looked at the other.
    """
    given = list(headers)
    found: list[str] = []
    for place in places:
        if place.kind == "query":
            values = _of_query(query, place.name)
        else:
            name = place.name.encode()
            values = [_text(value).strip() for header, value in given if header == name]
        if place.kind == "bearer":
            values = [_bearer(value) for value in values]
        if len(set(values)) == 1:
            found += values[:1]
    return list(dict.fromkeys(filter(None, found)))


def _of_query(query: bytes, name: str) -> list[str]:
    if name.encode() not in query:
        return []
    return parse_qs(query.decode("latin-1"), errors="replace").get(name, [])


def _bearer(value: str) -> str:
    scheme, _, key = value.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
