"""Credentials beyond a plain key: a flow of requests that ends in headers, or a signature of each
request. Sans-I/O."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress

import msgspec

from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import AuthenticationError, ProviderError, RateLimitError, SettingsError
from dragoman.json_bytes import Json
from dragoman.request import HttpRequest

__all__ = ["AuthResponse", "Auth", "Flow", "Grant", "Sign", "make_form", "load_grant"]

Sign = Callable[[HttpRequest, float], Mapping[str, str]]
"""A whole request and the time, in seconds since 1970 → headers that sign it (AWS Signature Version
4). `path` is the whole URL, `body` the bytes that are sent, `headers` all others. Called for each
attempt of `Access.send`; a retry of the transport sends the same bytes and signature again."""


class AuthResponse(msgspec.Struct, frozen=True):
    """The response to a request of a flow."""

    status: int
    """The HTTP status."""
    body: bytes = b""
    """All of it."""

    def __repr__(self) -> str:
        # the body may hold a token
        return f"Answer(status={self.status})"


class Grant(msgspec.Struct, frozen=True):
    """The result of a flow: headers, and perhaps a signature function."""

    headers: Mapping[str, str]
    """For every request to the provider, names in lower case."""
    expires_at: float | None = None
    """Seconds since 1970; `None`: it does not end."""
    sign: Sign | None = None
    """Signs requests with a secret that was granted, in place of `Auth.sign`; `None`: nothing was
    granted to sign with."""

    def __repr__(self) -> str:
        return f"Grant(headers=…, expires_at={self.expires_at})"


Flow = Generator[HttpRequest, AuthResponse, Grant]
"""Yields a request (`path` is the whole URL), is sent its answer, and returns what was granted."""


class Auth(msgspec.Struct, frozen=True):
    """How requests are authorized, as the environment sets it."""

    flow: Callable[[float], Flow] | None = None
    """The time, in seconds since 1970 → a flow; `None`: the key goes in its header."""
    base_url: str | SettingsError | None = None
    """Base URL that belongs to these credentials, unless the caller or a variable sets another. An
    error: they should name one and do not. `None`: the record's."""
    sign: Sign | None = None
    """Signs each request, where its key is known without a flow; `None`: requests are not signed,
    or as `Grant.sign` does."""


def make_form(url: str, fields: Mapping[str, str]) -> HttpRequest:
    """Returns the request of an authorization that posts a form."""
    from urllib.parse import urlencode

    return HttpRequest(
        url,
        {"content-type": "application/x-www-form-urlencoded"},
        urlencode(fields).encode(),
        secret=True,
    )


def load_grant(
    answer: AuthResponse, now: float, *, who: str, headers: Mapping[str, str] = {}
) -> Grant:
    """Returns the access token in an OAuth 2.0 response (RFC 6749, 5.1) as a grant that authorizes
    requests.

    Args:
        answer: of the token's endpoint.
        now: when it was asked, in seconds since 1970.
        who: whose token it is, for the error's message.
        headers: that go with the token.

    Raises:
        AuthenticationError: the credentials were refused.
        RateLimitError, ProviderError: the endpoint has no time for it, or failed.
    """
    fields: Json = {}
    with suppress(msgspec.DecodeError, UnicodeError):
        fields = if_object(msgspec.json.decode(answer.body))
    token = if_text(fields.get("access_token"))
    if answer.status >= 400 or not token:
        why = (
            if_text(fields.get("error_description"))
            or if_text(fields.get("error"))
            or f"HTTP {answer.status}"
        )
        raise _refusal_class(answer.status)(
            f"no access token for {who}: {why.splitlines()[0].rstrip('.')}. Check that these credentials are still valid.",
            status=answer.status,
            body=answer.body,
        )
    try:
        expires_at = now + float(fields["expires_in"])
    except (KeyError, TypeError, ValueError):
        expires_at = None
    return Grant({"authorization": f"Bearer {token}", **headers}, expires_at)


def _refusal_class(status: int) -> type[ProviderError]:
    """Returns the class of error for a refused authorization token."""
    if status == 429:
        return RateLimitError
    if status >= 500:
        return ProviderError
    return AuthenticationError
