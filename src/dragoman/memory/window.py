"""The newest messages of a thread, for a model: as many as are wanted, cut between exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.codec.turns import only_answers
from dragoman.history.exchanges import cuts
from dragoman.memory.settings import Window
from dragoman.memory.store import MessageQuery, Store
from dragoman.memory.thread import StoredMessage, Thread
from dragoman.message import Message, Role
from dragoman.model.tokens import estimated_tokens

__all__ = ["Loaded", "newest", "tokens_of"]

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


async def newest(
    store: Store, thread: Thread, wanted: Window, *, beside: int = 0, goes_on: bool = False
) -> Loaded:
    """The newest messages of a thread. `beside`: tokens of what is sent with them. `goes_on`: nothing new is asked, so that the last exchange
    goes on with what stood before it when it began: what a provider signed in it holds as long as that is the same."""
    if wanted.messages == 0 and not goes_on:
        return Loaded([], thread.trimmed)
    if wanted.tokens is None:
        return Loaded(
            await _counted(store, thread, wanted.messages, goes_on=goes_on), thread.trimmed
        )
    most = wanted.tokens * (_LATE if goes_on else 1)
    found, used = await _within(store, thread, wanted, beside, most, goes_on=goes_on)
    if used <= most:
        return Loaded(found, thread.trimmed)
    starts = {*_starts([each.message for each in found])}
    start, left = len(found), wanted.tokens - wanted.remove - beside
    for at in range(len(found) - 1, -1, -1):
        left -= tokens_of(found[at].message)
        if left < 0:
            break
        start = at if at in starts else start
    return Loaded(found[start:], found[start - 1].position if start else thread.trimmed)


def tokens_of(*messages: Message) -> int:
    """Tokens of messages, about."""
    return estimated_tokens(messages)


async def _counted(
    store: Store, thread: Thread, count: int | None, *, goes_on: bool
) -> list[StoredMessage]:
    """So many messages, or fewer, half of them at least where an exchange begins early enough: they begin with one, the same for some turns; more where that is longer. `goes_on`: so many before the last exchange, and that."""
    if count is None:
        return await _before(store, thread, (), None)
    last = await _exchange(store, thread, []) if goes_on else []
    if goes_on and not (last and count):
        return last
    found = await _before(store, thread, last, count)
    if len(found) == count:
        starts = _starts([each.message for each in found])
        found = found[_steady(found, starts) :] if starts else await _exchange(store, thread, found)
    return [*found, *last]


def _steady(found: Sequence[StoredMessage], starts: Sequence[int]) -> int:
    """Which of the exchanges that begin in the older half comes first. Positions alone decide, mixed, so that the choice holds until that
    exchange falls out of the window or a higher one comes into the half: what stands before a prompt is the same for several turns, as caches of
    prompts need."""
    early = [at for at in starts if 2 * at < len(found)] or starts[:1]
    return max(early, key=lambda at: found[at].position * _MIX % (1 << 64))


async def _exchange(
    store: Store, thread: Thread, found: list[StoredMessage]
) -> list[StoredMessage]:
    """The last exchange, whole. `found`: its end, where that is known."""
    more = 0
    while more < _MORE:
        page = await _before(store, thread, found, _PAGE)
        more += len(page)
        found = [*page, *found]
        if starts := _starts([each.message for each in found]):
            return found[starts[-1] :]
        if len(page) < _PAGE:
            return found
    return found[next((at for at, each in enumerate(found) if _begins(each.message)), 0) :]


async def _within(
    store: Store, thread: Thread, wanted: Window, beside: int, most: int, *, goes_on: bool
) -> tuple[list[StoredMessage], int]:
    """Messages, until there are more than enough; and the tokens of all, those beside them too."""
    found: list[StoredMessage] = []
    if wanted.messages is not None:
        found = await _counted(store, thread, wanted.messages, goes_on=goes_on)
    used = beside + tokens_of(*[each.message for each in found])
    ended = wanted.messages is not None
    while not ended and used <= most:
        page = await _before(store, thread, found, _PAGE)
        used += tokens_of(*[each.message for each in page])
        found = [*page, *found]
        ended = len(page) < _PAGE
    return found, used


async def _before(
    store: Store, thread: Thread, found: Sequence[StoredMessage], size: int | None
) -> list[StoredMessage]:
    """The messages before those that are found, oldest first."""
    query = MessageQuery(
        thread_id=thread.id,
        branch=thread.branch,
        after=thread.trimmed or None,
        before=found[0].position if found else None,
        newest_first=True,
        limit=size,
    )
    return (await store.messages(query))[::-1]


def _starts(messages: Sequence[Message]) -> list[int]:
    """Where messages may be cut: an exchange begins there, and no result from there on answers a call before it."""
    called: set[str] = set()
    orphan = -1
    for at, message in enumerate(messages):
        if any(result.id not in called for result in message.tool_results):
            orphan = at
        called |= {call.id for call in message.tool_calls}
    return [at for at in cuts(messages) if at > orphan and _begins(messages[at])]


def _begins(message: Message) -> bool:
    return message.role is Role.USER and not only_answers(message)
