"""Messages that are added to rows: those that are there already are recognised, the others get ids, times and a place.

What is plainly new comes in one go (`fresh`). All else goes turn by turn: by ids to the turn that it belongs to, which is merged with it
(`turn_merge`), or behind all others, or, loaded from a store, where its time says.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import msgspec

from dragoman.codec.marks import kinds
from dragoman.codec.turns import only_answers, turns
from dragoman.history.format_fields import is_done
from dragoman.history.fresh import Digests, add_new, resent
from dragoman.history.rows import NOWHERE, Row, Rows, in_order
from dragoman.history.sources import RESPONSE, Mint, Source, microseconds, stamped
from dragoman.history.turn_merge import filled, is_model, outcome
from dragoman.history.updates import without_step
from dragoman.logs import logger
from dragoman.message import MarkPart, Message, Role, ToolCallPart

__all__ = ["Adding", "Branch"]

_log = logger("history")
_INPUT = frozenset(["input"])
_SHOWN = 5


class Branch(NamedTuple):
    """What stood in a conversation before it was edited, answered anew, or replaced."""

    behind: str | None
    """Id of the message behind which it stood; `None`: at the start."""
    messages: tuple[Message, ...]
    """What stood there."""


class Adding:
    """One addition to rows: from where it comes, and what it found."""

    def __init__(
        self,
        rows: Rows,
        source: Source,
        mint: Mint,
        digests: Digests,
        *,
        merge: bool = True,
        apart: str | bool = False,
    ) -> None:
        """`merge`: whether messages become one with others; `apart`: a response begins a turn of its own, of that id, where it is one."""
        self.source: Source = source
        self.rows, self.mint, self.digests = rows, mint, digests
        self.merge = merge
        self.apart: str | bool = apart
        self.branches: list[Branch] = []
        """What was replaced."""
        self.orders: dict[int, int] = {}
        """Identity of a message that was given → the order of its row."""
        self._early: list[list[Row]] = []
        self._has_calls = True
        self._ordered, self._least = False, -(1 << 80)
        self._is_whole = False  # what was added last is a turn by itself, which it began
        self._sources = frozenset([source])

    def add(
        self, messages: Sequence[Message], *, is_lone: bool = False, ordered: bool = False
    ) -> None:
        """Adds messages, none of them the system's. `is_lone`: it is one, and no list; `ordered`: what was loaded is in order, whatever its times."""
        self._ordered = ordered
        sorts = self.source == "memory" and not ordered
        if messages and any(message.id is None for message in messages):
            self.rows.settle()
        fresh = is_lone or (self.source == "response" and len(messages) == 1)
        found = [] if fresh else resent(self.rows, messages, self.digests)
        for position, message in zip(found, messages, strict=False):
            self.orders[id(message)] = self.rows[position].order
        left = messages[len(found) :]
        left = _by_time(left) if sorts else left
        if left and self.source != "response":
            orders = add_new(self.rows, left, self.mint, self.source)
            if orders is not None:
                self.orders.update(zip(map(id, left), orders, strict=True))
                return
        self.rows.settle()
        self._has_calls = len(self.rows) > 0 and ToolCallPart in kinds(messages)
        for turn in turns(left):
            for piece in _without_twins(turn.messages):
                for position, part in self._known(piece):
                    if position is not None:
                        self._again(position, part)
                    else:
                        self._new(part)
        if self._early:
            self.rows.insert(self._early)

    def _known(
        self, messages: tuple[Message, ...]
    ) -> Sequence[tuple[int | None, tuple[Message, ...]]]:
        """A turn in pieces: which of the turns that are there it belongs to, by ids. What is new goes with what it follows."""
        rows, name = self.rows, messages[0].turn
        if not len(rows):
            return ((None, messages),)
        own = [None if message.id is None else rows.position(message.id) for message in messages]
        at = None if name is None else rows.turn(name)
        at = rows.position(name) if at is None and name is not None else at
        if at is None and not any(place is not None for place in own):
            return ((None, messages),)
        found: list[int | None] = []
        for place in own:
            at = at if place is None else rows.unit(place)[0]
            found.append(at)
        pieces = groupby(zip(found, messages, strict=True), key=itemgetter(0))
        return [(place, tuple([message for _, message in group])) for place, group in pieces]

    # what is there already

    def _again(self, position: int, messages: tuple[Message, ...]) -> None:
        """A turn that is there already."""
        self._is_whole = False
        start, stop = self.rows.unit(position)
        known = self.rows.between(start, stop)
        sealed = known[0].order <= self.rows.sealed
        found = outcome(known, messages, self.source, sealed=sealed, merge=self.merge)
        if found.replaced:
            before = self.rows[start - 1].message.id if start else None
            self.branches.append(Branch(before, tuple([row.message for row in known])))
        given = {message.id for message in messages}
        made = self._made(
            known, found.messages, given, is_stored=found.stored_first, replaced=found.replaced
        )
        if len(made) != len(known) or any(
            one is not other for one, other in zip(made, known, strict=True)
        ):
            self._warn_of_changed_record(known, made)
            self.rows.splice(start, stop, made)
        if found.more:
            turn = self.mint.new_id() if len(found.more) > 1 else None
            self._new(tuple([message.replace(turn=turn) for message in found.more]), follows=False)
        for message in messages:
            self.orders[id(message)] = made[-1].order

    def _warn_of_changed_record(self, known: Sequence[Row], made: Sequence[Row]) -> None:
        """Warns if a client's copy changes what a tool or the model said. `add` takes the copy's word, `put` does not."""
        if self.source != "input" or all(row.origins <= _INPUT for row in known):
            return
        said, now = ([_record(row.message) for row in rows] for rows in (known, made))
        changed = [
            message_id for message_id, words in said if words and (message_id, words) not in now
        ]
        if changed:
            _log.warning(
                "a client's copy changed what is stored of %s: texts or results of the message are the client's now; "
                "use put() for copies that clients send back",
                ", ".join(map(repr, changed[:_SHOWN])),
            )

    def _made(
        self,
        known: Sequence[Row],
        messages: Sequence[Message],
        given: set[str | None],
        *,
        is_stored: bool,
        replaced: bool,
    ) -> list[Row]:
        """The rows of a turn after a copy of it came. `given`: ids of what came."""
        old = {row.message.id: row for row in known}
        turn = next(
            (
                message.turn
                for message in (*(row.message for row in known), *messages)
                if message.turn
            ),
            None,
        )
        made: list[Row] = []
        for message in messages:
            row = None if message.id is None else old.get(message.id)
            before = made[-1] if made else known[0]
            if row is None or row.message is not message:
                message = stamped(message, self.mint, before.message.created_at, turn)
            if turn is not None and message.turn is None:
                message = message.replace(turn=turn)
            if row is None or message is not row.message:
                live = self._live(row or known[0], is_stored=is_stored, replaced=replaced)
                origins = (row.origins if row else NOWHERE) | live
                made.append(Row(message, before.order if row is None else row.order, live, origins))
            elif (
                self.source == "response"
                and message.id in given
                and row.live
                and row.live != RESPONSE
            ):
                made.append(row._replace(live=RESPONSE, origins=row.origins | RESPONSE))
            elif is_stored:
                made.append(
                    row._replace(live=row.live | self._sources, origins=row.origins | self._sources)
                )
            else:
                made.append(row)
        return in_order(made)

    def _live(self, row: Row, *, is_stored: bool, replaced: bool) -> frozenset[str]:
        """The sources of a row that changes."""
        if is_stored or (self.source in ("input", "context") and not replaced):
            return row.live | self._sources
        return self._sources

    # what is new

    def _new(self, messages: tuple[Message, ...], *, follows: bool = True) -> None:
        """A turn, or the end of one, that is not there yet. `follows`: it may go on with the last one that is there."""
        is_memory, last = self.source == "memory", self.rows.last
        turn = self._turn_of(messages[0]) if follows and self.source == "response" else None
        if turn is not None:
            messages = self._with_step(messages)
        unit: list[Row] = []
        before = last
        for message, full in zip(
            messages, filled(self.rows, messages) if self._has_calls else messages, strict=True
        ):
            made = stamped(full, self.mint, None if before is None else before.message.created_at)
            if self.source == "response":
                if made.turn is None and (turn or made.role is Role.MODEL or only_answers(made)):
                    made = made.replace(turn=turn or made.id)
                turn = made.turn
            order = 0 if made.created_at is None else microseconds(made.created_at)
            is_timed = is_memory and message.created_at is not None and not unit
            if before is not None and order <= before.order and not is_timed:
                order = before.order + 1
            order = max(order, self._least)
            before = Row(made, order, self._sources, self._sources)
            unit.append(before)
            self.orders[id(message)] = order
        if self._ordered:
            self._least = unit[-1].order
        if is_memory and last is not None and unit[0].order < last.order:
            self._early.append(unit)
        else:
            self._append(unit)

    def _append(self, unit: Sequence[Row]) -> None:
        """Puts a turn, or the end of one, behind all else."""
        rows = self.rows
        changes = (
            self.source == "response"
        )  # turns are named as they come, so that they end elsewhere than they did
        rows.append(unit[0], True if self._is_whole and not changes else None)
        self._is_whole = rows.last_start == len(rows) - 1
        for row in unit[1:]:
            rows.append(row, False if self._is_whole and not changes else None)

    def _with_step(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages, the first of which begins with the mark of a step in which the turn ended so far."""
        rows = self.rows
        for position in range(len(rows) - 1, rows.last_start - 1, -1):
            if rows[position].message.role is Role.MODEL:
                found = without_step(rows[position].message)
                if found is not None and messages[0].role is Role.MODEL:
                    rows.splice(position, position + 1, [rows[position]._replace(message=found[0])])
                    return messages[0].replace(content=(found[1], *messages[0].content)), *messages[
                        1:
                    ]
                break
        return messages

    def _turn_of(self, message: Message) -> str | None:
        """The turn that a response goes on with: the last one, where that is the model's and may grow."""
        rows, last = self.rows, self.rows.last
        if self.apart:
            turn, self.apart = self.apart, False
            return turn if isinstance(turn, str) else None
        if last is None or message.turn is not None or not self.merge:
            return None
        if message.role is not Role.MODEL and not only_answers(message):
            return None
        first = rows[rows.last_start].message
        if (
            first.turn is not None and len(rows) > rows.last_start + 1
        ):  # all of it was looked at when its second message came
            grows = (
                first.role is Role.MODEL
                and not is_done([last.message, message])
                and last.order > rows.sealed
            )
            return first.turn if grows else None
        unit = rows.between(rows.last_start, len(rows))
        known = [row.message for row in unit]
        if (
            not is_model(known)
            or is_done([*known, message])
            or last.order <= rows.sealed
            or _only_marks(known)
        ):
            return None
        if first.turn is not None:
            return first.turn
        changed = [
            Row(
                row.message.replace(turn=first.id),
                row.order,
                RESPONSE,
                row.origins | RESPONSE,
                row.starts,
            )
            for row in unit
        ]
        rows.splice(rows.last_start, len(rows), changed)
        return first.id


def _without_twins(messages: tuple[Message, ...]) -> Sequence[tuple[Message, ...]]:
    """A turn, cut before each message whose id it has already."""
    if len(messages) == 1 or len({message.id or id(message) for message in messages}) == len(
        messages
    ):
        return (messages,)
    pieces: list[list[Message]] = []
    ids: set[str | None] = set()
    for message in messages:
        if not pieces or (message.id is not None and message.id in ids):
            pieces.append([])
            ids = set()
        pieces[-1].append(message)
        ids.add(message.id)
    return [tuple(piece) for piece in pieces]


def _only_marks(messages: Sequence[Message]) -> bool:
    return all(isinstance(piece, MarkPart) for message in messages for piece in message.content)


def _by_time(messages: Sequence[Message]) -> Sequence[Message]:
    """Stored messages in the order of their times; one without a time stays behind the one that it followed."""
    by_id = {
        message.id or id(message): message for message in messages
    }  # of several with one id the last one counts
    left = messages if len(by_id) == len(messages) else list(by_id.values())
    keys: list[int] = []
    for message in left:
        before = keys[-1] if keys else -(1 << 80)
        keys.append(before if message.created_at is None else microseconds(message.created_at))
    if all(a <= b for a, b in pairwise(keys)):
        return left
    return [message for _, message in sorted(zip(keys, left, strict=True), key=itemgetter(0))]


def _record(message: Message) -> tuple[str | None, tuple[str, ...]]:
    """The id of a message, and what the model or a tool said in it."""
    if message.role is not Role.MODEL and not message.tool_results:
        return message.id, ()
    results = [
        msgspec.json.encode(result.result, enc_hook=str).decode() for result in message.tool_results
    ]
    return message.id, (message.text, *results)
