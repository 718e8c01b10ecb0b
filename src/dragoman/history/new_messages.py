"""Which of the messages that are added were there already, and those that are plainly new, which
come in one go."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from datetime import datetime
from itertools import groupby, repeat

from msgspec.structs import force_setattr

from dragoman.codec.digest import neutral_digest
from dragoman.codec.marks import collect_part_types
from dragoman.codec.turns import continues_turn
from dragoman.history.rows import Row, Rows
from dragoman.history.sources import Mint, Source, later_time, microseconds, read_noted_time
from dragoman.history.turn_merge import lacks_arguments
from dragoman.message import MarkPart, Message, Role, ToolCallPart, ToolResultPart

__all__ = ["Digests", "add_new", "find_resent"]


class Digests:
    """Neutral digests of messages, each made once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, str]] = {}

    def of(self, message: Message) -> str:
        """Returns the digest of a message, by which a loaded message is known to be new. It is
        computed once."""
        entry = self._known.get(id(message))
        if entry is None or entry[0] is not message:
            entry = self._known[id(message)] = message, neutral_digest(message)
        return entry[1]


def find_resent(rows: Rows, messages: Sequence[Message], digests: Digests) -> list[int]:
    """Returns the positions of the rows that the first of these messages repeat, so that they are
    not new; empty if they are new.

    Repeated messages are found from the conversation's start, or as its last part. If they are less
    than the whole conversation, one of them must be an answer of the model: users do say the same
    thing twice.
    """
    if not len(rows) or not messages or any(message.id is not None for message in messages):
        return []
    count = _count_alike_at_start(rows, messages, digests)
    if count and (count == len(rows) or _has_answer(messages[:count])):
        return list(range(count))
    count = _count_overlap(rows, messages, digests)
    if count > 1 and _has_answer(messages[:count]):
        return list(range(len(rows) - count, len(rows)))
    return []


def _has_answer(messages: Sequence[Message]) -> bool:
    return any(message.role is Role.MODEL for message in messages)


def _alike(message: Message, other: Message, digests: Digests) -> bool:
    return message.role is other.role and digests.of(message) == neutral_digest(other)


def _count_alike_at_start(rows: Rows, messages: Sequence[Message], digests: Digests) -> int:
    """Returns how many of the first of these messages are not new: they say the same as the first
    rows."""
    count = 0
    while count < min(len(rows), len(messages)) and _alike(
        rows[count].message, messages[count], digests
    ):
        count += 1
    return count


def _count_overlap(rows: Rows, messages: Sequence[Message], digests: Digests) -> int:
    """Returns how many of the first of these messages are not new but the last rows: the most that
    fit.

    This is the search of Knuth, Morris and Pratt, so the time is linear.
    """
    if not _has_answer(messages):
        return 0
    pattern = [neutral_digest(message) for message in messages]
    # back[i]: length of the longest proper prefix that is also a suffix of pattern[:i + 1]
    back = [0] * len(pattern)
    length = 0
    for index in range(1, len(pattern)):
        while length and pattern[index] != pattern[length]:
            length = back[length - 1]
        length += pattern[index] == pattern[length]
        back[index] = length
    length = 0
    for row in rows.between(max(0, len(rows) - len(pattern)), len(rows)):
        digest = digests.of(row.message)
        while length and (length == len(pattern) or digest != pattern[length]):
            length = back[length - 1]
        length += digest == pattern[length]
    return length


_BEFORE_ALL = -(1 << 80)


def add_new(
    rows: Rows, messages: Sequence[Message], mint: Mint, source: Source
) -> list[int] | None:
    """Adds new messages in one go if they are plainly new. Returns what each is sorted by.

    Returns `None`, and adds nothing, if a message may be there already or belongs among the rows.
    Loaded messages (`source` is `memory`) must be in the order of their times.
    """
    if not _are_new(rows, messages):
        return None
    last, types = rows.last, collect_part_types(messages)
    # Calls without arguments may complete a call that is there.
    if last is not None and ToolCallPart in types and lacks_arguments(messages):
        return None
    if source == "memory":
        times = [message.created_at for message in messages]
    else:
        times = []
    is_early = bool(times) and last is not None and _time(times[0], last.order) < last.order
    behind = None if is_early else last
    if behind is None:
        starts = _find_turn_starts(None, None, messages, types)
    else:
        starts = _find_turn_starts(rows[rows.last_start].message, behind.message, messages, types)
    # Loaded turns stand where their times say, and not behind what came before.
    has_times = any(times)
    if has_times and not _have_place(rows, times, starts, is_early=is_early):
        return None
    ids = _mint_ids(rows, messages, mint)
    if ids is None:
        return None
    timed_starts = starts if has_times else None
    stamped_messages, orders = _stamp_all(messages, ids, mint, behind, timed_starts)
    sources = frozenset([source])
    new_rows = list(map(Row, stamped_messages, orders, repeat(sources), repeat(sources), starts))
    if is_early:
        rows.wait(new_rows)
    else:
        rows.extend(new_rows)
    return orders


def _have_place(
    rows: Rows, times: Sequence[datetime | None], starts: Sequence[bool], *, is_early: bool
) -> bool:
    """True if each new loaded turn has a time, and early ones all belong before the known rows.
    `starts`: of each message, whether it begins a turn."""
    heads = [time for time, begins in zip(times, starts, strict=True) if begins]
    if not all(heads):
        return False
    last = rows.last
    if not is_early or last is None:
        return not is_early
    return _time(heads[-1]) < min(rows.least_waiting, last.order)


def _are_new(rows: Rows, messages: Sequence[Message]) -> bool:
    """True if no message, and no turn that one names, is among the rows or comes twice."""
    message_ids = [message.id for message in messages if message.id is not None]
    ids = set(message_ids)
    if len(ids) != len(message_ids):
        return False
    turns = [
        name for name, _ in groupby([message.turn for message in messages]) if name is not None
    ]
    if turns and (len(set(turns)) != len(turns) or _reuses_message_id(messages)):
        return False
    return not rows.knows(ids, turns)


def _reuses_message_id(messages: Sequence[Message]) -> bool:
    """True if a new turn has the name of a message that stands before it."""
    before: set[str | None] = set()
    last: str | None = None
    for message in messages:
        if message.turn is not None and message.turn != last and message.turn in before:
            return True
        last = message.turn
        before.add(message.id)
    return False


def _mint_ids(rows: Rows, messages: Sequence[Message], mint: Mint) -> list[str] | None:
    """Returns ids for the new messages that have none; `None`: another message has one of them."""
    minted = mint.ids(sum([message.id is None for message in messages]))
    if not minted:
        return minted
    new = set(minted)
    taken = {message.id for message in messages} | {message.turn for message in messages}
    if len(new) == len(minted) and taken.isdisjoint(new) and not rows.knows(new, ()):
        return minted
    return None


def _find_turn_starts(
    first: Message | None, before: Message | None, messages: Sequence[Message], types: set[type]
) -> list[bool]:
    """Returns for each new message whether a turn begins with it. `first`: the first message of the
    turn before them. `before`: the last message of that turn."""
    if types.isdisjoint((ToolResultPart, MarkPart)) and not any(
        message.turn is not None for message in messages
    ):
        begins = first is None or before is None or not continues_turn(first, before, messages[0])
        return [begins, *repeat(True, len(messages) - 1)]
    starts: list[bool] = []
    for message in messages:
        begins = first is None or before is None or not continues_turn(first, before, message)
        starts.append(begins)
        first, before = message if begins else first, message
    return starts


def _stamp_all(
    messages: Sequence[Message],
    ids: Sequence[str],
    mint: Mint,
    last: Row | None,
    starts: Sequence[bool] | None,
) -> tuple[list[Message], list[int]]:
    """Returns the new messages with ids and times, and what each is sorted by. `starts`: those
    stand where their times say, if that is not before the one that they follow."""
    new, now = iter(ids), None
    latest = None if last is None else last.message.created_at
    before = _BEFORE_ALL if last is None else last.order
    stamped_messages: list[Message] = []
    orders: list[int] = []
    for index, message in enumerate(messages):
        time = message.created_at
        if time is None or message.id is None:
            message = copy(message)  # nobody has it yet
            if message.id is None:
                force_setattr(message, "id", next(new))
            if time is None:
                now = mint.clock() if now is None else now
                time = read_noted_time(message.metadata) or later_time(latest, now)
                force_setattr(message, "created_at", time)
        order = microseconds(time)
        if order <= before:
            if starts is not None and starts[index]:
                order = before
            else:
                order = before + 1
        stamped_messages.append(message)
        orders.append(order)
        latest, before = time, order
    return stamped_messages, orders


def _time(time: datetime | None, default: int = _BEFORE_ALL) -> int:
    if time is None:
        return default
    return microseconds(time)
