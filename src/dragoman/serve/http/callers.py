"""Finds the caller of a request: the keys of a server, where clients send them, and what each caller
may use.

`make_authenticator` turns `auth=` into a function that finds the caller of a key. It compares with
all keys, so that its time reveals nothing. `read_keys` reads keys from a file, one per line. Names
of models may contain `*`, in the list of a key and in the models of a gateway.
"""

from __future__ import annotations

import inspect
import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qs

import msgspec

from dragoman.arguments import expect, expect_sequence
from dragoman.codec.serving import BEARER, KeyPlace
from dragoman.errors import SettingsError
from dragoman.logs import logger
from dragoman.serve.http.budget import Budget, parse_budgets

__all__ = [
    "ANONYMOUS",
    "Auth",
    "Authenticate",
    "Caller",
    "Key",
    "STRANGER",
    "make_authenticator",
    "fits_pattern",
    "parse_keys",
    "find_keys",
    "list_callers",
    "list_secrets",
    "read_keys",
    "match_star",
]

_SHORTEST = 8
"""Characters that a key must have at least."""
_LONGEST_NAME = 500
"""Characters of a model's name that is looked at with patterns."""
Authenticate: TypeAlias = Callable[[Sequence[str]], Awaitable["Caller | None"]]
"""The keys that a request presents, where its wire's clients put them → who calls; `None`: nobody
who may."""
Auth: TypeAlias = (
    "str | Key | Iterable[str | Key] | Mapping[str, str] | Callable[[str], Any] | None"
)
"""A key, or several, or a name for each key → the key; or a function, plain or async, of a key: the
`Caller`, or `None` for a key that it does not know. `None`: nobody needs a key."""
_LOG = logger("serve")
_MOST_KEY_BYTES = 1024 * 1024
_BUDGET = "budget="
"""How a word of a line of keys begins that is a budget."""


def fits_pattern(name: str, pattern: str) -> bool:
    """Returns whether a name is of a pattern that a caller may use, in which each `*` stands for
    any characters, none too. The time is bounded by the product of both lengths."""
    first, *pieces = pattern.split("*")
    if not pieces:
        return name == pattern
    *middle, last = pieces
    start, end = len(first), len(name) - len(last)
    if start > end or not name.startswith(first) or not name.endswith(last):
        return False
    # The leftmost match leaves most room for the pieces that follow.
    for piece in middle:
        start = name.find(piece, start, end)
        if start < 0:
            return False
        start += len(piece)
    return True


def match_star(name: str, pattern: str) -> str | None:
    """Returns what is in the place of the only `*` of a pattern that a caller may use, or None if
    the name is not of the pattern or nothing is there."""
    before, _, after = pattern.partition("*")
    if len(name) <= len(before) + len(after) or not fits_pattern(name, pattern):
        return None
    return name[len(before) : len(name) - len(after)]


class Caller(msgspec.Struct, frozen=True):
    """Who calls, once the key was checked."""

    id: str
    """Whose everything is that the call leaves on the server: answers, threads, runs. The same for
    every call with the same key."""
    name: str = ""
    """For logs and metrics."""
    models: tuple[str, ...] | None = None
    """What the caller may name; `*` stands for any characters. `None`: all."""
    budgets: tuple[Budget, ...] = ()
    """What the caller may spend a day or month; none: as much as comes."""
    prefix: str = ""
    """How a key begins that stands in the server's database; empty: it stands elsewhere."""
    expires_at: datetime | None = None
    """When the key ends; `None`: never."""

    @property
    def is_stored(self) -> bool:
        """True if the key stands in the server's database, where it may be revoked."""
        return self.prefix != ""

    def may_use(self, model: str) -> bool:
        """True if the caller may use that model or agent."""
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
    budgets: Sequence[str] = ()
    """What its callers may spend, such as `5/day` and `200k-tokens/month`; see `parse_budgets`."""

    def __post_init__(self) -> None:
        """Raises `SettingsError` for a caller's key that is too short to be safe, or that no client
        can send."""
        expect("a key's secret", self.secret, str)
        expect("a key's name", self.name, str)
        if self.models is not None:
            for model in expect_sequence("a key's models", self.models, "names"):
                expect("a model's name", model, str)
        parse_budgets(expect_sequence("a key's budgets", self.budgets, "budgets"))
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
        """Returns the caller with this key. The id is a digest of the secret, which does not reveal
        it."""
        if self.models is None:
            models = None
        else:
            models = tuple(self.models)
        # `person` separates this digest from others of the same secret.
        digest = blake2b(self.secret.encode(), digest_size=16, person=b"dragoman-caller")
        return Caller(digest.hexdigest(), self.name, models, parse_budgets(self.budgets))


def make_authenticator(auth: Auth) -> Authenticate:
    """Returns the function that finds the caller of a request.

    Raises:
        SettingsError: a key can be guessed, or two are the same.
    """
    if auth is None:
        return _admit_anybody
    if callable(auth) and not isinstance(auth, Mapping):
        return _authenticate_by_function(auth)
    return _authenticate_by_keys(
        _hash_keys(cast("str | Key | Iterable[str | Key] | Mapping[str, str]", auth))
    )


async def _admit_anybody(presented: Sequence[str]) -> Caller:  # noqa: ARG001 the type's
    return ANONYMOUS


def _hash_keys(
    auth: str | Key | Iterable[str | Key] | Mapping[str, str],
) -> list[tuple[bytes, Caller]]:
    """Returns the hashes of the callers' keys, each with its caller."""
    if isinstance(auth, str | Key):
        entries: Iterable[str | Key] = [auth]
    elif isinstance(auth, Mapping):
        entries = [Key(secret, name) for name, secret in cast("Mapping[str, str]", auth).items()]
    else:
        entries = expect_sequence("auth", auth, "keys")
    keys = [key if isinstance(key, Key) else Key(key) for key in entries]
    if not keys:
        raise SettingsError(
            "auth= holds no key, so that nobody could call; give one, or None to let everybody in"
        )
    digests = [(_digest(key.secret), key.caller) for key in keys]
    if len({digest for digest, _ in digests}) < len(digests):
        raise SettingsError(
            "two keys of auth= are the same, so that it would not be clear who calls"
        )
    return digests


def list_secrets(auth: Auth) -> list[bytes]:
    """Returns the secrets of a server's keys; none where a function knows them."""
    return [digest for digest, _ in _list_known(auth)]


def list_callers(auth: Auth) -> list[Caller]:
    """Returns the callers of a server's keys; none where a function knows them."""
    return [caller for _, caller in _list_known(auth)]


def _list_known(auth: Auth) -> list[tuple[bytes, Caller]]:
    if auth is None or (callable(auth) and not isinstance(auth, Mapping)):
        return []
    return _hash_keys(cast("str | Key | Iterable[str | Key] | Mapping[str, str]", auth))


def _authenticate_by_keys(digests: Sequence[tuple[bytes, Caller]]) -> Authenticate:
    """Returns a function that finds the caller with one of these keys, in constant time."""

    async def authenticate(presented: Sequence[str]) -> Caller | None:
        """Returns the caller whose key was presented, or None."""
        match: Caller | None = None
        for key in presented:
            digest = _digest(key)
            # Always compare with all keys, so that the time tells nothing.
            for expected, caller in digests:
                if compare_digest(digest, expected):
                    match = match or caller
        return match

    return authenticate


def _authenticate_by_function(function: Callable[[str], Any]) -> Authenticate:
    """Returns a function that finds the caller by the user's own function, sync or async."""

    async def authenticate(presented: Sequence[str]) -> Caller | None:
        """Returns the caller that the user's function finds for a presented key, or None."""
        for key in presented:
            caller = function(key)
            if inspect.isawaitable(caller):
                caller = await caller
            if caller is not None:
                expect("what the function of auth= returns", caller, Caller, type(None))
                return cast("Caller", caller)
        return None

    return authenticate


def _digest(secret: str) -> bytes:
    return blake2b(secret.encode(), digest_size=32).digest()


def find_keys(
    headers: Iterable[tuple[bytes, bytes]], query: bytes, key_places: Sequence[KeyPlace] = BEARER
) -> list[str]:
    """Returns the caller's keys that a request presents at these places, each once. `headers`:
    names in lower case. `query`: as the URL has it.

    A place that holds two different keys holds none: what stands before this server may have looked
    at the other.
    """
    header_list = list(headers)
    keys: list[str] = []
    for key_place in key_places:
        if key_place.kind == "query":
            values = _read_query(query, key_place.name)
        else:
            name = key_place.name.encode()
            values = [
                _decode_header(value).strip() for header, value in header_list if header == name
            ]
        if key_place.kind == "bearer":
            values = [_read_bearer(value) for value in values]
        # Two different keys in one place: a proxy may have checked the other one.
        if len(set(values)) == 1:
            keys += values[:1]
    return list(dict.fromkeys(filter(None, keys)))


def _read_query(query: bytes, name: str) -> list[str]:
    if name.encode() not in query:
        return []
    return parse_qs(query.decode("latin-1"), errors="replace").get(name, [])


def _read_bearer(value: str) -> str:
    scheme, _, key = value.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _decode_header(value: bytes) -> str:
    """Decodes the value of the header in which a caller's key is as UTF-8, otherwise as Latin-1."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def read_keys(path: Path | str) -> list[Key]:
    """Returns the callers' keys in a file, as `parse_keys` reads them. Logs a warning if other
    users of this machine can read the file.

    Raises:
        SettingsError: it cannot be read, or holds no keys.
    """
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MOST_KEY_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(
            f"the keys in {path} cannot be read: {error.strerror or error}"
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is no text in UTF-8, as a file of keys must be") from error
    if len(data) > _MOST_KEY_BYTES:
        raise SettingsError(
            f"{path} has more than {_MOST_KEY_BYTES} bytes; a file of keys has a line for each"
        )
    if os.name == "posix" and stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        _LOG.warning("%s holds keys, and other users of this machine may read it: chmod 600", path)
    return parse_keys(text, where=str(path))


def parse_keys(text: str, *, where: str) -> list[Key]:
    """Parses a list of callers' keys, one a line: the secret, then optionally a name for logs, then
    the models that the key may use, `*` for any characters, and budgets such as `budget=5/day`. Empty
    lines and lines with `#` are skipped. `where` names the text in errors, which never show a secret.

    Raises:
        SettingsError: there is none, or one can be guessed.
    """
    keys: list[Key] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        # the name may be left out
        secret, name, *options = [*words, ""] if len(words) == 1 else words
        models = [option for option in options if not option.startswith(_BUDGET)]
        budgets = [option.removeprefix(_BUDGET) for option in options if option.startswith(_BUDGET)]
        try:
            keys.append(Key(secret, name, tuple(models) or None, tuple(budgets)))
        except SettingsError as error:
            raise SettingsError(f"{where}, line {number}: {error.message}") from error
    if not keys:
        raise SettingsError(f"{where} has no key; write one on a line of its own")
    return keys
