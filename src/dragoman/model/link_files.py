"""The files behind links: asked for, again where that may help, and kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from threading import Lock
from time import monotonic

from dragoman.errors import DragomanError, InvalidRequestError, ProviderError, ProviderTimeoutError
from dragoman.logs import logger
from dragoman.message import DataPart, LinkPart
from dragoman.transport.address_policy import AddressPolicy
from dragoman.transport.fetching import fetch
from dragoman.transport.redaction import public_url

__all__ = ["LinkKey", "LinkSource", "LinkedFiles"]

_LOG = logger("model.link_files")
_FIRST_WAIT = 0.25
LinkKey = tuple[str | None, str, str]
"""Whose conversation, the digest of the message, the URL in it."""


class LinkSource:
    """Fetches what a policy allows."""

    def __init__(
        self, policy: AddressPolicy, *, seconds: float, retries: int, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        """`seconds`: for one file, retries included. `sleep`: waits that many seconds."""
        self._policy, self._seconds, self._retries, self._sleep = policy, seconds, retries, sleep

    async def get(self, link: LinkPart, most: int) -> DataPart:
        """A file of at most that many bytes.

        Raises:
            InvalidRequestError: there is none, for whatever reason.
        """
        try:
            async with asyncio.timeout(self._seconds):
                file = await self._tried(link.url, most)
        except TimeoutError:
            late = ProviderTimeoutError(f"the file was not there within {self._seconds:g} s: try again later")
            raise _explained(link.url, late) from None
        except DragomanError as error:
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


class LinkedFiles:
    """The files that were fetched lately. A file stays what it was when its message was first sent, so that each request begins as the one
    before did."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        """`most`: bytes of all of them. `seconds`: that one is kept without being needed."""
        self._most, self._size, self._seconds, self._clock = most, 0, seconds, clock
        self._files: OrderedDict[LinkKey, tuple[DataPart, float]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: LinkKey) -> DataPart | None:
        """A file that is kept; `None`: it is not, or no more."""
        with self._lock:
            self._drop()
            if key not in self._files:
                return None
            file, _ = self._files.pop(key)
            self._files[key] = file, self._clock()
            return file

    def put(self, key: LinkKey, file: DataPart) -> None:
        """Keeps a file, in the place of those that were not needed for longest."""
        with self._lock:
            known = self._files.pop(key, None)
            self._size += len(file.data) - (0 if known is None else len(known[0].data))
            self._files[key] = file, self._clock()
            self._drop()

    def _drop(self) -> None:
        oldest = self._clock() - self._seconds
        while self._files and (self._size > self._most or next(iter(self._files.values()))[1] < oldest):
            self._size -= len(self._files.popitem(last=False)[1][0].data)


def _explained(url: str, error: DragomanError) -> InvalidRequestError:
    """The error for whoever sent the URL; without what stands behind its question mark."""
    explained = InvalidRequestError(
        f"{public_url(url.partition('?')[0])} cannot be fetched for the model: {error.message}"
    )
    explained.__cause__ = error
    return explained
