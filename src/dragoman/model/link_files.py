"""The files behind links: asked for, again where that may help, and kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from threading import Lock
from time import monotonic
from typing import NamedTuple

from dragoman.errors import InvalidRequestError, ProviderError, ProviderTimeoutError
from dragoman.logs import logger
from dragoman.message import DataPart, LinkPart
from dragoman.transport.address_policy import AddressPolicy
from dragoman.transport.fetching import fetch
from dragoman.transport.redaction import public_url

__all__ = ["LinkKey", "LinkSource", "LinkedFile", "LinkedFiles"]

_LOG = logger("model.link_files")
_FIRST_WAIT = 0.25
_NOTHING = 1024
"""What a link without a file is taken for."""
LinkKey = tuple[str | None, str, str]
"""Whose conversation, the digest of the message, the URL in it."""


class LinkSource:
    """Fetches what a policy allows."""

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        seconds: float,
        retries: int,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """`seconds`: for one file, retries included. `sleep`: waits that many seconds."""
        self._policy, self._seconds, self._retries, self._sleep = policy, seconds, retries, sleep

    async def get(self, link: LinkPart, most: int) -> DataPart:
        """A file of at most that many bytes.

        Raises:
            InvalidRequestError: there is none.
            SettingsError: certificates that cannot be read.
        """
        try:
            async with asyncio.timeout(self._seconds):
                file = await self._tried(link.url, most)
        except TimeoutError:
            late = ProviderTimeoutError(
                f"the file was not there within {self._seconds:g} s: try again later"
            )
            raise _explained(link.url, late) from None
        except ProviderError as error:
            raise _explained(link.url, error) from error
        if (link.mime_type or "").startswith("image/") and not file.mime_type.startswith("image/"):
            raise _explained(link.url, InvalidRequestError(f"it is no image, but {file.mime_type}"))
        return file

    async def _tried(self, url: str, most: int) -> DataPart:
        for attempt in range(self._retries):
            try:
                return await fetch(url, self._policy, max_bytes=most, seconds=self._seconds)
            except InvalidRequestError:
                raise
            except ProviderError as error:
                _LOG.info("attempt %d of %d: %s", attempt + 1, self._retries + 1, error)
            await self._sleep(_FIRST_WAIT * 2**attempt)
        return await fetch(url, self._policy, max_bytes=most, seconds=self._seconds)


class LinkedFile(NamedTuple):
    """What became of a link."""

    file: DataPart | None
    """`None`: it could not be fetched, and was passed on."""
    needed: float
    """When it was last asked for, by the clock."""

    @property
    def size(self) -> int:
        """Bytes, about."""
        return _NOTHING if self.file is None else len(self.file.data)


class LinkedFiles:
    """What became of links lately. It stays as it was when a message was first sent, so that each request begins as the one before did."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        """`most`: bytes of all of them. `seconds`: that one is kept without being needed."""
        self._most, self._size, self._seconds, self._clock = most, 0, seconds, clock
        self._files: OrderedDict[LinkKey, LinkedFile] = OrderedDict()
        self._lock = Lock()

    def get(self, key: LinkKey) -> LinkedFile | None:
        """What became of a link; `None`: that is not known, or no more."""
        with self._lock:
            self._drop()
            if key not in self._files:
                return None
            found = self._files[key] = self._files.pop(key)._replace(needed=self._clock())
            return found

    def put(self, key: LinkKey, file: DataPart | None) -> None:
        """Keeps it, in the place of those that were not needed for longest."""
        with self._lock:
            known = self._files.pop(key, None)
            made = self._files[key] = LinkedFile(file, self._clock())
            self._size += made.size - (0 if known is None else known.size)
            self._drop()

    def _drop(self) -> None:
        oldest = self._clock() - self._seconds
        while self._files and (
            self._size > self._most or next(iter(self._files.values())).needed < oldest
        ):
            self._size -= self._files.popitem(last=False)[1].size


def _explained(url: str, error: ProviderError) -> InvalidRequestError:
    """The error for whoever sent the URL; without what stands behind its question mark."""
    explained = InvalidRequestError(
        f"{public_url(url.partition('?')[0])} cannot be fetched for the model: {error.message}"
    )
    explained.__cause__ = error
    return explained
