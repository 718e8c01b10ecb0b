"""Finds and masks secrets of requests and responses: keys, passwords and account names. They stay
out of recordings, logs and errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast
from urllib.parse import unquote, unquote_plus

from dragoman.errors import DragomanError

__all__ = ["hide_secrets", "is_secret", "public_body", "public_url", "redact", "find_secrets"]

_SECRET_NAME = re.compile(
    r"auth|cookie|secret|credential|signature|session|passw|passphrase|pwd|private|organi[sz]ation|project|"
    r"(^|[-_]|api)(key|token|sig)$"
)
_SECRET_FIELD = re.compile(
    r"authorization|.*(passw|passphrase|secret|credential).*|"
    r"(.*[-_])?(api|access|auth|bearer|private|subscription)[-_]?(key|token)",
    re.IGNORECASE,
)
"""Names of a body's fields, where `signature` and `project` are no secrets."""
_KEY_PREFIX = re.compile(r"(.*[-_]|api)?(key|token|secret)", re.IGNORECASE)
"""Path segment that is followed by a key."""
_KEY_VALUE = re.compile(
    r"((sk|pk|rk|gsk|xai|hf|nvapi|key|token|secret)[-_](?=\D*\d).{8,}|AIza.{20,}|bot\d+:.{8,})"
)
"""A segment of a path that is a key."""
_PLAIN = re.compile(r"[A-Za-z0-9]+")
_PERCENT_ESCAPE = re.compile(rb"%[3-7][0-9a-fA-F]")
"""The escape of a letter or digit in a URL."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_AUTHORITY_END = re.compile(r"[/?#]")
_MIN_LENGTH = 8
_MASK = "***"


@lru_cache(256)
def is_secret(name: str) -> bool:
    """True if a header or query parameter of this name holds a key or identifies the user."""
    return _SECRET_NAME.search(name.lower()) is not None


@lru_cache(64)
def public_url(url: str) -> str:
    """Returns a URL as it may be logged or recorded: without user, password, secret query
    parameters and keys in its path. Malformed URLs are redacted as well."""
    scheme, after_scheme = _split_scheme(url)
    base, _, query = _split_user(after_scheme)[1].partition("#")[0].partition("?")
    authority, slash, path = base.partition("/")
    segments = path.split("/")
    path = "/".join(
        _MASK if hidden else rest
        for (_, rest), hidden in zip(
            _split_inner_users(segments), _find_keys(segments), strict=True
        )
    )
    query = "&".join(pair for pair in query.split("&") if not is_secret(pair.partition("=")[0]))
    return f"{scheme}{authority}{slash}{path}{'?' if query else ''}{query}"


def _split_scheme(url: str) -> tuple[str, str]:
    """Returns the scheme of a URL to redact with its separator, empty if there is none, and the
    rest."""
    scheme = _SCHEME.match(url)
    end = scheme.end() if scheme else 0
    return url[:end], url[end:]


def _split_user(after_scheme: str) -> tuple[str, str]:
    """Returns user and password of a URL to redact, and what follows them. Both may hold the
    characters that end a host, although they should be escaped there."""
    authority = _AUTHORITY_END.split(after_scheme, maxsplit=1)[0]
    host, colon, port = authority.rpartition(":")
    end = authority.rfind("@")
    # A host is followed by a port of digits. Anything else begins a password that goes on.
    if end < 0 and colon and not port.isdigit() and not host.startswith("["):
        end = after_scheme.rfind("@")
    return after_scheme[: max(end, 0)], after_scheme[end + 1 :]


def _split_inner_users(segments: list[str]) -> list[tuple[str, str]]:
    """Returns each segment of a path to redact as user and password, and the rest. Only the host of
    another URL in the path has a user."""
    return [
        _split_user(segment)
        if index > 1 and not segments[index - 1] and segments[index - 2].endswith(":")
        else ("", segment)
        for index, segment in enumerate(segments)
    ]


def public_body(body: Any) -> Any:
    """Returns redacted JSON, with the values of key and password fields masked."""
    if isinstance(body, list):
        return [public_body(entry) for entry in cast("list[Any]", body)]
    if not isinstance(body, dict):
        return body
    fields = cast("dict[str, Any]", body)
    return {
        name: _MASK
        if isinstance(value, str) and _SECRET_FIELD.fullmatch(name)
        else public_body(value)
        for name, value in fields.items()
    }


def find_secrets(url: str, headers: Mapping[str, str] = {}, body: Any = None) -> set[str]:
    """Returns the keys and passwords to redact in a request. `body`: as parsed JSON."""
    values = [
        *(value for name, value in headers.items() if is_secret(name)),
        *_url_secrets(url),
        *_body_secrets(body),
    ]
    return {secret for value in values for secret in value.split() if len(secret) >= _MIN_LENGTH}


def hide_secrets(data: bytes, secrets: Iterable[str]) -> bytes:
    """Redacts data: returns it with each secret masked, also if it is escaped as in JSON or a
    URL."""
    # A secret may be the beginning of another: replaced first, it would leave the rest of that one.
    longest_first = sorted(_find_likely(data, secrets), key=len, reverse=True)
    if not longest_first:
        return data
    pattern = b"|".join(b"".join(map(_character_pattern, secret)) for secret in longest_first)
    return re.sub(pattern, _MASK.encode(), data)


def _find_likely(data: bytes, secrets: Iterable[str]) -> Iterable[str]:
    """Returns the secrets that data may hold. Without escapes of letters and digits a secret's
    longest run of them stands there as it is, which is found a hundred times faster."""
    if b"\\u00" in data or _PERCENT_ESCAPE.search(data) is not None:
        return secrets
    return [
        secret
        for secret in secrets
        if max(_PLAIN.findall(secret), key=len, default="").encode() in data
    ]


def redact(error: DragomanError, secrets: Iterable[str]) -> DragomanError:
    """Returns the same error with secrets masked in its message and body."""
    error.message = hide_secrets(error.message.encode(errors="surrogatepass"), secrets).decode(
        errors="surrogatepass"
    )
    error.args = (error.message, *error.args[1:])
    if error.body is not None:
        error.body = hide_secrets(error.body, secrets)
    return error


def _character_pattern(character: str) -> bytes:
    """Returns a pattern for a character of a secret to redact, and its escapes. The number of
    backslashes is limited to JSON nested three deep, so that matching stays linear."""
    data = character.encode(errors="surrogatepass")
    escapes = [re.escape(data)]
    # JSON puts a backslash before quotes and slashes, never before letters and digits.
    if not character.isalnum():
        escapes[0] = rb"\\{0,7}" + escapes[0]
    escapes.append(rb"\\{1,7}u(?i:%04x)" % ord(character))
    escapes.append(b"(?i:" + b"".join(b"%%%02x" % byte for byte in data) + b")")
    return b"(?:" + b"|".join(escapes) + b")"


def _find_keys(segments: list[str]) -> Iterator[bool]:
    """Yields True for each path segment that is a key to redact."""
    for before, segment in zip(("", *segments), segments, strict=False):
        yield (
            _KEY_PREFIX.fullmatch(before) is not None
            or _KEY_VALUE.fullmatch(unquote(segment)) is not None
        )


def _url_secrets(url: str) -> Iterator[str]:
    """Yields the secrets to redact in a URL, as written and decoded."""
    scheme, after_scheme = _split_scheme(url)
    user, after_user = _split_user(after_scheme) if scheme else ("", "")
    whole, _, query = after_user.partition("#")[0].partition("?")
    segments = whole.partition("/")[2].split("/")
    users = [user, *(inner for inner, _ in _split_inner_users(segments))]
    values = [
        *(user.partition(":")[2] for user in users),
        *(segment for segment, key in zip(segments, _find_keys(segments), strict=True) if key),
    ]
    for value in values:
        yield from {value, unquote(value)}
    for name, _, value in (pair.partition("=") for pair in query.split("&")):
        if is_secret(name):
            yield from {value, unquote_plus(value)}


def _body_secrets(body: Any) -> Iterator[str]:
    """Yields the secrets to redact in JSON: the values of key and password fields."""
    if isinstance(body, list):
        for entry in cast("list[Any]", body):
            yield from _body_secrets(entry)
    if not isinstance(body, dict):
        return
    for name, value in cast("dict[str, Any]", body).items():
        if isinstance(value, str) and _SECRET_FIELD.fullmatch(name):
            yield value
        else:
            yield from _body_secrets(value)
