"""Sessions of people on the page: a caller's key becomes a cookie that no script can read.

The cookie holds the key, sealed, and when it expires. So it works in every process of a server with
the same keys, and ends when its key does. Wrong keys are counted for each address.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import cookie_parser

from dragoman.errors import AuthenticationError, InvalidRequestError, RateLimitError
from dragoman.serve.http.callers import Authenticate, Caller

if TYPE_CHECKING:
    from dragoman.serve.seals.token_encryption import Sealer

__all__ = ["COOKIE", "PageSessions"]

COOKIE = "dragoman_page"
"""Name of the cookie."""
_AGE = timedelta(hours=12)
_LONGEST_KEY = 1000
"""Characters of a key that fits into a cookie."""
_MOST_TRIES = 10
"""Wrong keys from one address in a minute."""
_MOST_ADDRESSES = 1000
"""Addresses whose wrong keys are counted; then the oldest are forgotten."""
_MINUTE = timedelta(minutes=1)


class _CookieContent(msgspec.Struct, frozen=True):
    """What a cookie holds."""

    key: str
    until: datetime


class PageSessions:
    """Signs people in, and finds the caller of a cookie."""

    def __init__(
        self,
        authenticate: Callable[[], Authenticate],
        sealer: Sealer | None,
        clock: Callable[[], datetime],
    ) -> None:
        """`authenticate`: returns what finds the caller of a key. `sealer`: seals cookies; `None`:
        nobody needs a key."""
        self._authenticate, self._sealer, self._clock = authenticate, sealer, clock
        self._failures: OrderedDict[str, deque[datetime]] = OrderedDict()

    @property
    def needs_key(self) -> bool:
        """True if a key is needed."""
        return self._sealer is not None

    async def sign_in(self, key: object, address: str, *, is_secure: bool) -> tuple[Caller, str]:
        """Returns the caller of a key, and the cookie in the form of its header.

        Raises:
            AuthenticationError: there is no such key.
            RateLimitError: too many wrong keys came from that address.
            InvalidRequestError: it is no text, or longer than a cookie.
        """
        if not isinstance(key, str) or len(key) > _LONGEST_KEY:
            raise InvalidRequestError('"key" must be a text of at most 1,000 characters')
        now = self._clock()
        failures = self._recent_failures(address, now)
        if len(failures) >= _MOST_TRIES:
            seconds = (failures[0] + _MINUTE - now).total_seconds()
            raise RateLimitError("too many wrong keys; try again later", retry_after=seconds)
        # Counted before the key is looked up, so that many at once are not tried as one.
        failures.append(now)
        caller = await self._authenticate()([key])
        if caller is None:
            raise AuthenticationError("that key is not known to this server")
        failures.remove(now)
        if self._sealer is None:
            return caller, ""
        sealed = self._sealer.seal(msgspec.json.encode(_CookieContent(key, now + _AGE)))
        return caller, _write_cookie(sealed or "", int(_AGE.total_seconds()), is_secure=is_secure)

    def sign_out(self, *, is_secure: bool) -> str:
        """Returns the cookie that removes a session's."""
        return _write_cookie("", 0, is_secure=is_secure)

    async def find_caller(self, headers: Mapping[str, str]) -> Caller | None:
        """Returns the caller of a request's cookie, or None."""
        token = cookie_parser(headers.get("cookie", "")).get(COOKIE)
        if self._sealer is None or not token:
            return None
        data = self._sealer.open(token)
        if data is None:
            return None
        content = msgspec.json.decode(data, type=_CookieContent)
        if content.until <= self._clock():
            return None
        return await self._authenticate()([content.key])

    def _recent_failures(self, address: str, now: datetime) -> deque[datetime]:
        """Returns when wrong keys came from an address in the last minute."""
        failures = self._failures.setdefault(address, deque(maxlen=_MOST_TRIES))
        self._failures.move_to_end(address)
        while len(self._failures) > _MOST_ADDRESSES:
            self._failures.popitem(last=False)
        while failures and failures[0] <= now - _MINUTE:
            failures.popleft()
        return failures


def _write_cookie(value: str, seconds: int, *, is_secure: bool) -> str:
    secure = "; Secure" if is_secure else ""
    return f"{COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/page; Max-Age={seconds}{secure}"
