"""`fetch_files`: middleware that downloads linked files for providers that cannot take a URL.

`FileFetcher.batches` finds the links in a conversation and leaves a request without links alone.
Otherwise it selects the links that the target cannot take and that the policy allows, takes their
files from the cache or downloads them several at a time, and puts `DataPart`s in their places.

Files are cached by resource, message digest and URL: a later request of the same conversation
sends the same bytes, and no resource gets the file of another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

import anyio

from dragoman.arguments import expect, expect_callable
from dragoman.codec.digest import neutral_digest
from dragoman.errors import DragomanError, InvalidRequestError, SettingsError
from dragoman.event import Event, RunError
from dragoman.logs import logger
from dragoman.message import DataPart, LinkPart, Message
from dragoman.model.link_files import (
    LinkedFiles,
    LinkKey,
    LinkPositions,
    LinkSource,
    find_link_positions,
    find_links,
    find_unsendable,
    insert_files,
)
from dragoman.model.middleware import Batches, Destination, Target
from dragoman.request import ModelRequest, OnLoss
from dragoman.transport.address_policy import AddressPolicy

__all__ = ["FileFetcher", "fetch_files"]

_LOG = logger("model.file_fetching")


class FileFetcher:
    """Middleware made by `fetch_files`. Agents, threads and event loops may share it."""

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        every: bool,
        max_bytes: int,
        total_bytes: int,
        kept_bytes: int,
        kept_seconds: float,
        seconds: float,
        most: int,
        at_once: int,
        retries: int,
        on_failure: OnLoss,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """See `fetch_files`."""
        self._policy, self._every, self._on_failure = policy, every, on_failure
        self._max_bytes, self._total_bytes = max_bytes, total_bytes
        self._most, self._at_once = most, at_once
        self._source = LinkSource(policy, seconds=seconds, retries=retries, sleep=sleep)
        self._files = LinkedFiles(kept_bytes, kept_seconds)

    def __repr__(self) -> str:
        return f"fetch_files({self._policy})"

    def batches(
        self, request: ModelRequest, following: Batches, target: Target
    ) -> AsyncGenerator[list[Event], None]:
        """Fetches the linked files of a request and sends it. See `BatchMiddleware`. Without links
        in the conversation no step stands between."""
        positions = find_link_positions(request.messages)
        if not positions or (destination := target(request)) is None:
            return following(request)
        return self._fetch_and_send(request, following, positions, destination)

    async def _fetch_and_send(
        self, request: ModelRequest, following: Batches, positions: LinkPositions, to: Destination
    ) -> AsyncGenerator[list[Event], None]:
        """Downloads the files that the target needs as bytes, then sends the request."""
        try:
            request = await self._replace_links(request, positions, to)
        except DragomanError as error:
            yield [RunError(error)]
            return
        async with aclosing(following(request)) as batches:
            async for events in batches:
                yield events

    async def _replace_links(
        self, request: ModelRequest, places: LinkPositions, to: Destination
    ) -> ModelRequest:
        """Returns the request with the bytes of fetched files in place of the links that the target
        cannot take."""
        if not self._every:
            places = find_unsendable(request, places, to)
        keys = _link_keys(request, places)
        links = {
            keys[number, link.url]: link
            for number, link in _list_links(request.messages, places)
            if self._is_allowed(link.url)
        }
        files = await self._load_files(links)
        if not files:
            return request
        messages = list(request.messages)
        for number, indexes in places.items():
            message_files = {
                link.url: files[keys[number, link.url]]
                for _, link in _list_links(messages, {number: indexes})
                if keys[number, link.url] in files
            }
            # An unchanged message stays the same object, whose dump and counts are cached.
            if message_files:
                messages[number] = insert_files(messages[number], indexes, message_files)
        return request.replace(messages=tuple(messages))

    async def _load_files(self, links: dict[LinkKey, LinkPart]) -> dict[LinkKey, DataPart]:
        """Returns the files of links, from the cache or downloaded, without failed ones."""
        outcomes: dict[LinkKey, DataPart | None] = {}
        for key in links:
            if (cached := self._files.get(key)) is not None:
                outcomes[key] = cached.file
        outcomes |= await self._fetch_links(
            {key: link for key, link in links.items() if key not in outcomes}
        )
        return {key: file for key, file in outcomes.items() if file is not None}

    def _is_allowed(self, url: str) -> bool:
        """True if the policy allows fetching the URL. Other links are sent on unchanged."""
        try:
            self._policy.check_url(url)
        except InvalidRequestError:
            return False
        return True

    async def _fetch_links(self, links: dict[LinkKey, LinkPart]) -> dict[LinkKey, DataPart | None]:
        """Downloads the links, several at once. Returns the files, and None for each that failed.

        Raises:
            InvalidRequestError: one could not, and that is to be an error; or there are too many.
            SettingsError: certificates that cannot be read.
        """
        if len(links) > self._most:
            raise InvalidRequestError(
                f"the request names {len(links)} files by their URLs; {self._most} are fetched at most"
            )
        files: dict[LinkKey, DataPart | None] = {}
        errors: list[DragomanError] = []
        limiter = asyncio.Semaphore(self._at_once)

        async def fetch_link(key: LinkKey, link: LinkPart) -> None:
            """Fetches one linked file."""
            async with limiter:
                if errors and self._on_failure == "error":
                    return
                # An estimate: files that are still being downloaded are not counted yet.
                bytes_left = self._total_bytes - sum(
                    len(file.data) for file in files.values() if file is not None
                )
                try:
                    files[key] = await self._source.get(
                        link, min(self._max_bytes, max(0, bytes_left))
                    )
                except DragomanError as error:
                    errors.append(error)
                    if self._on_failure == "tell" and isinstance(error, InvalidRequestError):
                        files[key] = None

        async with anyio.create_task_group() as tasks:
            for key, link in links.items():
                tasks.start_soon(fetch_link, key, link)
        for key, file in files.items():
            self._files.put(key, file)
        for error in errors:
            if self._on_failure == "error" or not isinstance(error, InvalidRequestError):
                raise error
            _LOG.warning("%s", error)
        return files


def _list_links(
    messages: Sequence[Message], positions: LinkPositions
) -> list[tuple[int, LinkPart]]:
    """Returns each link to fetch at these positions, with the index of its message."""
    return [
        (number, link)
        for number, indexes in positions.items()
        for index in indexes
        for link in find_links(messages[number].content[index])
    ]


def _link_keys(request: ModelRequest, positions: LinkPositions) -> dict[tuple[int, str], LinkKey]:
    """Returns the cache key of each link to fetch, by message index and URL."""
    resource = request.run.resource_id if request.run is not None else None
    digests = {number: neutral_digest(request.messages[number]) for number in positions}
    return {
        (number, link.url): (resource, digests[number], link.url)
        for number, link in _list_links(request.messages, positions)
    }


def fetch_files(
    policy: AddressPolicy,
    *,
    every: bool = False,
    max_bytes: int = 20 * 2**20,
    total_bytes: int = 100 * 2**20,
    kept_bytes: int = 256 * 2**20,
    kept_seconds: float = 3600.0,
    seconds: float = 30.0,
    most: int = 100,
    at_once: int = 10,
    retries: int = 3,
    on_failure: OnLoss = "error",
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> FileFetcher:
    """Returns the middleware that downloads linked files if the provider cannot take their URL, and
    sends their bytes instead.

    What is fetched is what `policy` allows; other links are passed on as they would be without
    this. The history keeps the link. A file is kept in memory, so that the next request of the
    conversation sends the same bytes.

    Args:
        policy: which URLs may be opened.
        every: fetches also what the provider would fetch by itself, such as files of a network that it cannot reach.
        max_bytes: of one file.
        total_bytes: of all that one request has to fetch, about.
        kept_bytes: of the files that are kept, for all conversations; what was not needed for longest goes first.
        kept_seconds: that a file is kept after it was last needed. The same message with the same URL gets the same file until then.
        seconds: for one file, retries included.
        most: files that one request has fetched; more are an error.
        at_once: files that are fetched at once for one request.
        retries: how often a server that fails is asked again.
        on_failure: `error`: a file that cannot be fetched fails the request with an `InvalidRequestError`. `tell`: its link is passed on, and
            what becomes of it is named in the losses.
        sleep: waits that many seconds.

    Raises:
        SettingsError: a bound is below what it can be, or `on_failure` is unknown.
        TypeError: an argument is of another type.
    """
    expect("policy", policy, AddressPolicy, hint='AddressPolicy(["*.example.org"])')
    expect("every", every, bool)
    expect_callable("sleep", sleep, "a function of seconds")
    if on_failure not in ("error", "tell"):
        raise SettingsError(
            f'fetch_files(on_failure={on_failure!r}) is unknown; it is "error" or "tell"'
        )
    bounds = {
        "max_bytes": max_bytes,
        "total_bytes": total_bytes,
        "seconds": seconds,
        "most": most,
        "at_once": at_once,
    }
    counts = {"kept_bytes": kept_bytes, "kept_seconds": kept_seconds, "retries": retries}
    for name, number in (bounds | counts).items():
        expect(name, number, int, *([float] if "seconds" in name else []))
    for name, bound in bounds.items():
        if bound <= 0:
            raise SettingsError(f"fetch_files({name}={bound}) must be above 0")
    for name, count in counts.items():
        if count < 0:
            raise SettingsError(f"fetch_files({name}={count}) must be 0 or more")
    return FileFetcher(
        policy,
        every=every,
        max_bytes=max_bytes,
        total_bytes=total_bytes,
        kept_bytes=kept_bytes,
        kept_seconds=kept_seconds,
        seconds=seconds,
        most=most,
        at_once=at_once,
        retries=retries,
        on_failure=on_failure,
        sleep=sleep,
    )
