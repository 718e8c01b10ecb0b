"""Loads the newest messages of a thread for a model, within a limit of messages and tokens, cut
only between exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dragoman.codec.memos import is_memo
from dragoman.codec.turns import holds_only_answers
from dragoman.history.exchanges import find_cuts
from dragoman.memory.settings import Window
from dragoman.memory.store import MessageQuery, Store, ThreadContent
from dragoman.memory.thread import StoredMessage
from dragoman.message import Message, Role
from dragoman.model.tokens import estimate_tokens

__all__ = ["Loaded", "ThreadReading", "count_first", "load_newest", "count_tokens"]

_PAGE_SIZE = 50
"""Messages that are read at once if the number needed is unknown."""
_OVERRUN = 2
"""Factor by which a continued exchange may exceed the budget before it is cut in its middle."""
_MAX_SEARCH = 1000
"""Additional messages that are read at most to find where an exchange begins."""

_MIX = 0x9E3779B97F4A7C15
"""Multiplier that spreads consecutive numbers: 2⁶⁴ divided by the golden ratio (Fibonacci
hashing)."""


class Loaded(NamedTuple):
    """Messages that were loaded from a thread."""

    messages: list[StoredMessage]
    """Oldest first."""
    trimmed: int
    """The position up to which the token budget leaves messages out."""


class ThreadReading:
    """A thread and a cache of its newest messages.

    Messages are read from the store when they are first asked for, and then held: what was read of
    a thread to answer a request is not read again for the run that answers it.
    """

    def __init__(self, store: Store, content: ThreadContent, count: int = 0) -> None:
        """Starts to read a thread's window. `content`: what was read of it, with `count` newest
        messages at most, newest first."""
        self.thread = content.thread
        """Its state when it was read; None if it does not exist."""
        self.state = content.state
        """What its runs share; `None`: it was not read."""
        self._store = store
        trimmed = content.thread.trimmed if content.thread else 0
        newest = [message for message in content.messages or () if message.position > trimmed]
        self._messages = newest[::-1]
        """The newest ones, oldest first, without a gap."""
        was_read = content.messages is not None
        self._is_whole = content.thread is None or (was_read and len(newest) < count)
        """True if no earlier messages exist."""

    async def before(
        self, later: Sequence[StoredMessage], count: int | None
    ) -> list[StoredMessage]:
        """Returns the thread's messages before `later` for a window, oldest first: at most `count`,
        or all."""
        # The cached messages from `later` on are skipped.
        end = len(self._messages)
        while later and end and self._messages[end - 1].position >= later[0].position:
            end -= 1
        if count is None:
            if not self._is_whole:
                end += await self._read(None)
            return self._messages[:end]
        if not self._is_whole and end < count:
            end += await self._read(count - end)
        return self._messages[max(0, end - count) : end]

    def trim(self, position: int) -> None:
        """Drops from the window's reading the messages up to a position, as the stored thread now
        does."""
        assert self.thread is not None
        self.thread = msgspec.structs.replace(self.thread, trimmed=position)
        remaining = [message for message in self._messages if message.position > position]
        self._is_whole = self._is_whole or len(remaining) < len(self._messages)
        self._messages = remaining

    async def _read(self, count: int | None) -> int:
        """Reads earlier messages of the thread for the window and returns how many there were."""
        assert self.thread is not None
        query = MessageQuery(
            thread_id=self.thread.id,
            branch=self.thread.branch,
            after=self.thread.trimmed or None,
            before=self._messages[0].position if self._messages else None,
            newest_first=True,
            limit=count,
        )
        page = await self._store.messages(query)
        self._messages = [*page[::-1], *self._messages]
        self._is_whole = count is None or len(page) < count
        return len(page)


def count_first(window: Window) -> int:
    """Returns how many messages a window reads first of a thread; 0: none, or all."""
    if window.messages is None:
        return _PAGE_SIZE if window.tokens else 0
    # One more shows whether the first message has memos before it.
    return window.messages and window.messages + 1


async def load_newest(
    reading: ThreadReading, window: Window, *, other_tokens: int = 0, goes_on: bool = False
) -> Loaded:
    """Returns the newest messages of a thread within a window. `other_tokens`: tokens of what is
    sent besides.

    `goes_on`: nothing new is asked, so that the last exchange goes on with what stood before it
    when it began: what a provider signed in it holds as long as that is the same.
    """
    assert reading.thread is not None
    trimmed = reading.thread.trimmed
    if window.messages == 0 and not goes_on:
        return Loaded([], trimmed)
    if window.tokens is None:
        return Loaded(await _load_count(reading, window.messages, goes_on=goes_on), trimmed)
    max_tokens = window.tokens
    if goes_on:
        # Cutting into an exchange that is not finished would void what the provider signed in it.
        max_tokens *= _OVERRUN
    loaded, used = await _load_tokens(reading, window, other_tokens, max_tokens, goes_on=goes_on)
    if used <= max_tokens:
        return Loaded(loaded, trimmed)
    starts = {*_find_starts([message.message for message in loaded])}
    start, free_tokens = len(loaded), window.tokens - window.remove - other_tokens
    for index in range(len(loaded) - 1, -1, -1):
        free_tokens -= count_tokens(loaded[index].message)
        if free_tokens < 0:
            break
        if index in starts:
            start = index
    if start:
        trimmed = loaded[start - 1].position
    return Loaded(loaded[start:], trimmed)


def count_tokens(*messages: Message) -> int:
    """Returns the estimated tokens of messages."""
    return estimate_tokens(messages)


async def _load_count(
    reading: ThreadReading, count: int | None, *, goes_on: bool
) -> list[StoredMessage]:
    """Loads the window of about `count` messages that begin with an exchange: at least half as
    many, more if the last exchange is longer. With `goes_on`: `count` messages before the last
    exchange, and that exchange."""
    if count is None:
        return await reading.before((), None)
    last: list[StoredMessage] = []
    if goes_on:
        last = await _load_exchange(reading, [])
        if not (last and count):
            return last
    loaded = await _load_visible(reading, last, count)
    if _count_visible(loaded) == count:
        starts = _find_starts([message.message for message in loaded])
        loaded = (
            loaded[_choose_start(loaded, starts) :]
            if starts
            else await _load_exchange(reading, loaded)
        )
    return [*loaded, *last]


async def _load_visible(
    reading: ThreadReading, later: Sequence[StoredMessage], count: int
) -> list[StoredMessage]:
    """Returns for a window `count` messages before `later`, or all there are, and the memos between
    and before them, which do not count."""
    loaded: list[StoredMessage] = []
    # One more shows whether the first message has memos before it.
    while (missing := count + 1 - _count_visible(loaded)) > 0:
        page = await reading.before([*loaded, *later], missing)
        loaded = [*page, *loaded]
        if len(page) < missing:
            return loaded
    first = next(index for index, stored in enumerate(loaded) if not is_memo(stored.message))
    return loaded[first + 1 :]


def _count_visible(messages: Sequence[StoredMessage]) -> int:
    """Returns the number of messages that are no memos."""
    return sum(not is_memo(stored.message) for stored in messages)


def _choose_start(messages: Sequence[StoredMessage], starts: Sequence[int]) -> int:
    """Returns the index of the exchange in the older half at which the window begins. Mixed
    positions decide, so the choice stays for several turns, until that exchange leaves the window
    or one with a higher value enters the half. This keeps prompt caches warm."""
    half = _count_visible(messages) / 2
    early = [index for index in starts if _count_visible(messages[:index]) < half] or starts[:1]
    return max(early, key=lambda index: messages[index].position * _MIX % (1 << 64))


async def _load_exchange(
    reading: ThreadReading, loaded: list[StoredMessage]
) -> list[StoredMessage]:
    """Returns the smallest window: the last exchange as a whole. `loaded`: its end, if that is
    known."""
    more = 0
    while more < _MAX_SEARCH:
        page = await reading.before(loaded, _PAGE_SIZE)
        more += len(page)
        loaded = [*page, *loaded]
        if starts := _find_starts([message.message for message in loaded]):
            return loaded[starts[-1] :]
        if len(page) < _PAGE_SIZE:
            return loaded
    return loaded[
        next((index for index, message in enumerate(loaded) if _is_prompt(message.message)), 0) :
    ]


async def _load_tokens(
    reading: ThreadReading, window: Window, other_tokens: int, max_tokens: int, *, goes_on: bool
) -> tuple[list[StoredMessage], int]:
    """Loads the window of a token budget: messages until they exceed it. Returns them, and the
    tokens of everything that is sent."""
    loaded: list[StoredMessage] = []
    if window.messages is not None:
        loaded = await _load_count(reading, window.messages, goes_on=goes_on)
    used = other_tokens + count_tokens(*[message.message for message in loaded])
    is_at_end = window.messages is not None
    while not is_at_end and used <= max_tokens:
        page = await reading.before(loaded, _PAGE_SIZE)
        used += count_tokens(*[message.message for message in page])
        loaded = [*page, *loaded]
        is_at_end = len(page) < _PAGE_SIZE
    return loaded, used


def _find_starts(messages: Sequence[Message]) -> list[int]:
    """Returns the indexes at which a window may begin: an exchange begins there, and no later
    result answers an earlier call."""
    called: set[str] = set()
    orphan = -1
    for position, message in enumerate(messages):
        if any(result.id not in called for result in message.tool_results):
            orphan = position
        called |= {call.id for call in message.tool_calls}
    return [
        position
        for position in find_cuts(messages)
        if position > orphan and _is_prompt(messages[position])
    ]


def _is_prompt(message: Message) -> bool:
    """True if a user message contains more than tool results."""
    return message.role is Role.USER and not holds_only_answers(message)
