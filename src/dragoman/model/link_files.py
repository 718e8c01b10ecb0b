"""Files by their URL in a conversation: which there are, which of them a target cannot take, and
the bytes behind them.

`LinkSource` fetches a file, again where that may help; `LinkedFiles` keeps files, so that the next
request of a conversation sends the same bytes; `insert_files` puts them into a message.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from threading import Lock
from time import monotonic
from typing import NamedTuple

import msgspec

from dragoman import wires
from dragoman.errors import InvalidRequestError, ProviderError, ProviderTimeoutError
from dragoman.logs import logger
from dragoman.loss import Loss, Lost
from dragoman.message import NOTES, Content, DataPart, LinkPart, Message, ToolResultPart
from dragoman.model.middleware import Destination
from dragoman.request import ModelRequest
from dragoman.transport.address_policy import AddressPolicy
from dragoman.transport.fetching import fetch
from dragoman.transport.redaction import public_url

__all__ = [
    "LinkKey",
    "LinkSource",
    "LinkedFile",
    "LinkedFiles",
    "LinkPositions",
    "find_link_positions",
    "find_links",
    "find_unsendable",
    "insert_files",
]

LinkPositions = Mapping[int, Sequence[int]]
"""Index of a message → indexes of pieces in its content."""
_HOLDERS = (LinkPart, ToolResultPart)


def find_link_positions(messages: Sequence[Message]) -> LinkPositions:
    """Returns the positions of links to files with an HTTP URL, also in tool results."""
    positions: dict[int, list[int]] = {}
    for number, message in enumerate(messages):
        for index, piece in enumerate(message.content):
            if type(piece) in _HOLDERS and any(find_links(piece)):
                positions.setdefault(number, []).append(index)
    return positions


def find_links(piece: Content) -> Iterator[LinkPart]:
    """Yields the links to files (an HTTP URL) that a piece is or contains."""
    if isinstance(piece, LinkPart):
        if piece.url[:8].lower().startswith(("http://", "https://")):
            yield piece
    elif isinstance(piece, ToolResultPart) and piece.is_content and piece.run_by != "provider":
        for part in piece.result:
            if isinstance(part, LinkPart):
                yield from find_links(part)


def find_unsendable(
    request: ModelRequest, positions: LinkPositions, destination: Destination
) -> LinkPositions:
    """Returns the positions whose links the target cannot take. A trial request with only these
    messages finds them."""
    wire = wires.client(destination.wire) or wires.get(destination.wire)
    numbers = sorted(positions)
    losses: list[Loss] = []
    trial = request.replace(
        model=destination.model or "",
        messages=tuple(request.messages[number] for number in numbers),
        on_loss="tell",
        run=None,
    )
    wire.dump_request(trial, target=destination, quirks=destination.quirks, losses=losses)
    lost = {
        (numbers[loss.message], loss.part)
        for loss in losses
        if loss.message is not None and loss.part is not None and loss.what is Lost.link
    }
    lost_places = {
        number: [index for index in positions if (number, index) in lost]
        for number, positions in positions.items()
    }
    return {number: positions for number, positions in lost_places.items() if positions}


def insert_files(
    message: Message, positions: Sequence[int], files: Mapping[str, DataPart]
) -> Message:
    """Returns the message with the linked files of these URLs in place of their links."""
    content = list(message.content)
    for index in positions:
        content[index] = _insert_file(content[index], files)
    return message.replace(content=tuple(content))


def _insert_file(piece: Content, files: Mapping[str, DataPart]) -> Content:
    """Returns the piece with its links replaced, also inside a tool result."""
    if isinstance(piece, ToolResultPart):
        return msgspec.structs.replace(
            piece, result=tuple(_insert_file(part, files) for part in piece.result)
        )
    if not isinstance(piece, LinkPart) or (file := files.get(piece.url)) is None:
        return piece
    # Notes describe the link's spelling, which its file does not have.
    native = {
        name: fields for name, fields in (piece.native or {}).items() if not name.endswith(NOTES)
    }
    return msgspec.structs.replace(file, name=piece.name or file.name, native=native or None)


# fetched files

_LOG = logger("model.link_files")
_FIRST_WAIT = 0.25
_MISSING_SIZE = 1024
"""Bytes that a failed download counts in the cache."""
LinkKey = tuple[str | None, str, str]
"""The conversation's owner, the digest of the message, and the URL in it."""


class LinkSource:
    """Downloads what a policy allows."""

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        seconds: float,
        retries: int,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """Creates the source of linked files. `seconds`: limit for one file, with retries. `sleep`:
        waits that many seconds."""
        self._policy, self._seconds, self._retries, self._sleep = policy, seconds, retries, sleep

    async def get(self, link: LinkPart, most: int) -> DataPart:
        """Downloads a linked file of at most `most` bytes.

        Raises:
            InvalidRequestError: there is none.
            SettingsError: certificates that cannot be read.
        """
        try:
            async with asyncio.timeout(self._seconds):
                file = await self._fetch_link(link.url, most)
        except TimeoutError:
            timeout_error = ProviderTimeoutError(
                f"the file was not there within {self._seconds:g} s: try again later"
            )
            raise _fetch_error(link.url, timeout_error) from None
        except ProviderError as error:
            raise _fetch_error(link.url, error) from error
        if (link.mime_type or "").startswith("image/") and not file.mime_type.startswith("image/"):
            raise _fetch_error(
                link.url, InvalidRequestError(f"it is no image, but {file.mime_type}")
            )
        return file

    async def _fetch_link(self, url: str, most: int) -> DataPart:
        """Downloads the URL of a linked file, with retries if the server fails."""
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
    """The outcome of a download."""

    file: DataPart | None
    """`None`: it could not be downloaded, and the link was sent on."""
    used_at: float
    """Time of its last use, by the clock."""

    @property
    def size(self) -> int:
        """Returns the approximate size of the linked file in bytes."""
        if self.file is None:
            return _MISSING_SIZE
        return len(self.file.data)


class LinkedFiles:
    """Cache of recent downloads. An entry stays the same, so that each request of a conversation
    begins with the same bytes."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        """Creates the cache of linked files. `most`: bytes of all files. `seconds`: how long an
        unused file stays."""
        self._most, self._size, self._seconds, self._clock = most, 0, seconds, clock
        self._files: OrderedDict[LinkKey, LinkedFile] = OrderedDict()
        self._lock = Lock()

    def get(self, key: LinkKey) -> LinkedFile | None:
        """Returns the stored outcome for a link, or None if there is none."""
        with self._lock:
            self._evict_files()
            if key not in self._files:
                return None
            linked = self._files[key] = self._files.pop(key)._replace(used_at=self._clock())
            return linked

    def put(self, key: LinkKey, file: DataPart | None) -> None:
        """Stores the outcome for a link; the least recently used ones make room."""
        with self._lock:
            if (previous := self._files.pop(key, None)) is not None:
                self._size -= previous.size
            linked = self._files[key] = LinkedFile(file, self._clock())
            self._size += linked.size
            self._evict_files()

    def _evict_files(self) -> None:
        """Drops linked files that are old or too many."""
        oldest = self._clock() - self._seconds
        while self._files and (
            self._size > self._most or next(iter(self._files.values())).used_at < oldest
        ):
            self._size -= self._files.popitem(last=False)[1].size


def _fetch_error(url: str, error: ProviderError) -> InvalidRequestError:
    """Returns the error for the author of a link to a file. It leaves out the query, which may hold
    a key."""
    link_error = InvalidRequestError(
        f"{public_url(url.partition('?')[0])} cannot be fetched for the model: {error.message}"
    )
    link_error.__cause__ = error
    return link_error
