"""The newest messages of a thread, for a model: as many as are wanted, cut between exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dragoman.codec.turns import holds_only_answers
from dragoman.history.exchanges import find_cuts
from dragoman.memory.settings import Window
from dragoman.memory.store import MessageQuery, Store
from dragoman.memory.thread import StoredMessage, Thread
from dragoman.message import Message, Role
from dragoman.model.tokens import estimate_tokens

__all__ = ["Loaded", "ThreadReading", "newest", "tokens_of"]

_PAGE = 50
"""Messages that are read at once where it is not known how many are needed."""
_LATE = 2
"""By how much the budget may be passed before the middle of an exchange is cut out of."""
_MORE = 1000
"""Messages more than were wanted that are read at most to find where an exchange begins."""

_MIX = 0x9E3779B97F4A7C15
"""Spreads numbers that follow each other: 2 to the 64th, by the golden ratio."""


class Loaded(NamedTuple):
    """What was read of a thread."""

    messages: list[StoredMessage]
    """Oldest first."""
    trimmed: int
    """The position up to which the token budget leaves messages out."""


class ThreadReading:
    """A thread as it was read, with the newest of its messages.

    Messages are read from the store when they are first asked for, and then held: what was read of
    a thread to answer a request is not read again for the run that answers it.
    """

    def __init__(self, store: Store, thread: Thread | None) -> None:
        """Reads nothing yet. `thread=None`: it is not in the store, and has no messages."""
        self.thread = thread
        """As it was when it was read; None if it is not there."""
        self._store = store
        self._messages: list[StoredMessage] = []
        """The newest ones, oldest first, without a gap."""
        self._is_whole = thread is None
        """Whether no others come before these."""

    async def before(
        self, later: Sequence[StoredMessage], count: int | None
    ) -> list[StoredMessage]:
        """Returns the messages before these later ones, oldest first: so many at most, or all."""
        end = len(self._messages)
        while later and end and self._messages[end - 1].position >= later[0].position:
            end -= 1
        if not self._is_whole and (count is None or end < count):
            end += await self._read(None if count is None else count - end)
        return self._messages[0 if count is None else max(0, end - count) : end]

    def trim(self, position: int) -> None:
        """Leaves out the messages up to a position, as the thread does from now on."""
        assert self.thread is not None
        self.thread = msgspec.structs.replace(self.thread, trimmed=position)
        remaining = [message for message in self._messages if message.position > position]
        self._is_whole = self._is_whole or len(remaining) < len(self._messages)
        self._messages = remaining

    async def _read(self, count: int | None) -> int:
        """Reads older messages. Returns how many there were."""
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


async def newest(
    reading: ThreadReading, wanted: Window, *, beside: int = 0, goes_on: bool = False
) -> Loaded:
    """Returns the newest messages of a thread. `beside`: tokens of what is sent with them.

    `goes_on`: nothing new is asked, so that the last exchange goes on with what stood before it
    when it began: what a provider signed in it holds as long as that is the same.
    """
    assert reading.thread is not None
    trimmed = reading.thread.trimmed
    if wanted.messages == 0 and not goes_on:
        return Loaded([], trimmed)
    if wanted.tokens is None:
        return Loaded(await _counted(reading, wanted.messages, goes_on=goes_on), trimmed)
    most = wanted.tokens * (_LATE if goes_on else 1)
    loaded, used = await _within(reading, wanted, beside, most, goes_on=goes_on)
    if used <= most:
        return Loaded(loaded, trimmed)
    starts = {*_starts([message.message for message in loaded])}
    start, free_tokens = len(loaded), wanted.tokens - wanted.remove - beside
    for index in range(len(loaded) - 1, -1, -1):
        free_tokens -= tokens_of(loaded[index].message)
        if free_tokens < 0:
            break
        start = index if index in starts else start
    return Loaded(loaded[start:], loaded[start - 1].position if start else trimmed)


def tokens_of(*messages: Message) -> int:
    """Tokens of messages, about."""
    return estimate_tokens(messages)


async def _counted(
    reading: ThreadReading, count: int | None, *, goes_on: bool
) -> list[StoredMessage]:
    """So many messages, or fewer, half of them at least where an exchange begins early enough: they
    begin with one, the same for some turns; more where that is longer. `goes_on`: so many before
    the last exchange, and that."""
    if count is None:
        return await reading.before((), None)
    last = await _exchange(reading, []) if goes_on else []
    if goes_on and not (last and count):
        return last
    loaded = await reading.before(last, count)
    if len(loaded) == count:
        starts = _starts([message.message for message in loaded])
        loaded = loaded[_steady(loaded, starts) :] if starts else await _exchange(reading, loaded)
    return [*loaded, *last]


def _steady(messages: Sequence[StoredMessage], starts: Sequence[int]) -> int:
    """Returns which of the exchanges that begin in the older half comes first. Positions alone
    decide, mixed, so that the choice holds until that exchange falls out of the window or a higher
    one comes into the half: what stands before a prompt is the same for several turns, as caches of
    prompts need."""
    early = [index for index in starts if 2 * index < len(messages)] or starts[:1]
    return max(early, key=lambda index: messages[index].position * _MIX % (1 << 64))


async def _exchange(reading: ThreadReading, loaded: list[StoredMessage]) -> list[StoredMessage]:
    """Returns the last exchange, whole. `loaded`: its end, where that is known."""
    more = 0
    while more < _MORE:
        page = await reading.before(loaded, _PAGE)
        more += len(page)
        loaded = [*page, *loaded]
        if starts := _starts([message.message for message in loaded]):
            return loaded[starts[-1] :]
        if len(page) < _PAGE:
            return loaded
    return loaded[
        next((index for index, message in enumerate(loaded) if _begins(message.message)), 0) :
    ]


async def _within(
    reading: ThreadReading, wanted: Window, beside: int, most: int, *, goes_on: bool
) -> tuple[list[StoredMessage], int]:
    """Messages, until there are more than enough; and the tokens of all, those beside them too."""
    loaded: list[StoredMessage] = []
    if wanted.messages is not None:
        loaded = await _counted(reading, wanted.messages, goes_on=goes_on)
    used = beside + tokens_of(*[message.message for message in loaded])
    ended = wanted.messages is not None
    while not ended and used <= most:
        page = await reading.before(loaded, _PAGE)
        used += tokens_of(*[message.message for message in page])
        loaded = [*page, *loaded]
        ended = len(page) < _PAGE
    return loaded, used


def _starts(messages: Sequence[Message]) -> list[int]:
    """Returns where messages may be cut: an exchange begins there, and no result from there on
    answers a call before it."""
    called: set[str] = set()
    orphan = -1
    for position, message in enumerate(messages):
        if any(result.id not in called for result in message.tool_results):
            orphan = position
        called |= {call.id for call in message.tool_calls}
    return [
        position
        for position in find_cuts(messages)
        if position > orphan and _begins(messages[position])
    ]


def _begins(message: Message) -> bool:
    return message.role is Role.USER and not holds_only_answers(message)
