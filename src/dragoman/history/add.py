"""Messages that are added to rows: those that are there already are recognised, the others get ids,
times and a place.

What is plainly new comes in one go (`new_messages`). All else goes turn by turn: by ids to the turn that
it belongs to, which is merged with it (`turn_merge`), or behind all others, or, loaded from a
store, where its time says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import msgspec

from dragoman.codec.marks import collect_part_types
from dragoman.codec.turns import holds_only_answers, split_turns
from dragoman.history.format_fields import is_done
from dragoman.history.new_messages import Digests, add_new, find_resent
from dragoman.history.rows import NOWHERE, Row, Rows, order_rows
from dragoman.history.sources import RESPONSE, Mint, Source, microseconds, stamp
from dragoman.history.turn_merge import decide_outcome, fill_arguments, is_model
from dragoman.history.turn_updates import without_step
from dragoman.logs import logger
from dragoman.message import MarkPart, Message, Role, ToolCallPart

__all__ = ["Addition", "ReplacedBranch"]

_log = logger("history")
_INPUT = frozenset(["input"])
_SHOWN = 5


class ReplacedBranch(NamedTuple):
    """What stood in a conversation before it was edited, answered anew, or replaced."""

    behind: str | None
    """Id of the message behind which it stood; `None`: at the start."""
    messages: tuple[Message, ...]
    """What stood there."""


class Addition:
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
        """Prepares to add messages to a list. Args: rows: the conversation. source: where the
        messages come from. mint: makes ids and times. digests: of the rows' messages. merge: let
        messages join others in their turn. apart: a response begins its own turn; a string is the
        turn's id."""
        self.source: Source = source
        self.rows, self.mint, self.digests = rows, mint, digests
        self.merge = merge
        self.apart: str | bool = apart
        self.branches: list[ReplacedBranch] = []
        """The turns that were replaced."""
        self.orders: dict[int, int] = {}
        """`id()` of an added message → the order of its row."""
        self._early: list[list[Row]] = []  # loaded turns that belong before the last row
        self._has_calls = True
        self._ordered, self._least_order = False, -(1 << 80)
        self._is_whole = False  # the last addition is a turn by itself
        self._sources = frozenset([source])

    def add(
        self, messages: Sequence[Message], *, is_lone: bool = False, ordered: bool = False
    ) -> None:
        """Adds messages that are not the system's to the list.

        Args:
            messages: the messages, in order.
            is_lone: a single message was given, and no list.
            ordered: loaded messages keep their order whatever their times say.
        """
        self._ordered = ordered
        if messages and any(message.id is None for message in messages):
            self.rows.settle()
        remaining = self._skip_resent(messages, is_lone=is_lone)
        if self.source == "memory" and not ordered:
            remaining = _by_time(remaining)
        if self._add_at_once(remaining):
            return
        self.rows.settle()
        self._has_calls = len(self.rows) > 0 and ToolCallPart in collect_part_types(messages)
        for turn in split_turns(remaining):
            self._add_turn(turn.messages)
        if self._early:
            self.rows.insert(self._early)

    def _add_at_once(self, messages: Sequence[Message]) -> bool:
        """Adds messages in one go if they are plainly new. Returns False, and adds nothing, if they
        must go turn by turn."""
        # A response may continue the last turn, so it never is plainly new.
        if not messages or self.source == "response":
            return False
        orders = add_new(self.rows, messages, self.mint, self.source)
        if orders is None:
            return False
        self.orders.update(zip(map(id, messages), orders, strict=True))
        return True

    def _add_turn(self, messages: tuple[Message, ...]) -> None:
        """Adds a turn: what belongs to turns that are there is merged with these."""
        for piece in _split_at_repeated_ids(messages):
            for position, part in self._split_by_turn(piece):
                if position is not None:
                    self._merge_copy(position, part)
                else:
                    self._add_new(part)

    def _skip_resent(self, messages: Sequence[Message], *, is_lone: bool) -> Sequence[Message]:
        """Returns the messages to add, behind those that were sent again. A single message is
        always taken as new: a user may say the same twice."""
        if is_lone or (self.source == "response" and len(messages) == 1):
            return messages
        resent_positions = find_resent(self.rows, messages, self.digests)
        for position, message in zip(resent_positions, messages, strict=False):
            self.orders[id(message)] = self.rows[position].order
        return messages[len(resent_positions) :]

    def _split_by_turn(
        self, messages: tuple[Message, ...]
    ) -> Sequence[tuple[int | None, tuple[Message, ...]]]:
        """Returns the pieces of an added turn, each with the start of the known turn that it
        belongs to by its ids; `None` for a new turn. New messages go with the message that they
        follow."""
        rows, name = self.rows, messages[0].turn
        if not len(rows):
            return ((None, messages),)
        positions = [
            None if message.id is None else rows.position(message.id) for message in messages
        ]
        current = self._find_named_turn(name)
        if current is None and not any(position is not None for position in positions):
            return ((None, messages),)
        unit_starts = self._find_unit_starts(positions, current)
        pieces = groupby(zip(unit_starts, messages, strict=True), key=itemgetter(0))
        return [(position, tuple([message for _, message in group])) for position, group in pieces]

    def _find_named_turn(self, name: str | None) -> int | None:
        """Returns the position at which the turn starts that added messages name; `None`: there is
        none."""
        if name is None:
            return None
        start = self.rows.turn(name)
        # A turn is named by the id of its first message, which may have no turn of its own yet.
        if start is None:
            start = self.rows.position(name)
        return start

    def _find_unit_starts(
        self, positions: Sequence[int | None], current: int | None
    ) -> list[int | None]:
        """Returns for each added message where the turn starts that it belongs to. A new message,
        whose position is `None`, belongs to that of the one before; the first to `current`."""
        unit_starts: list[int | None] = []
        for position in positions:
            if position is not None:
                current = self.rows.unit(position)[0]
            unit_starts.append(current)
        return unit_starts

    # what is there already

    def _merge_copy(self, position: int, messages: tuple[Message, ...]) -> None:
        """Merges an added copy of a turn into the turn at a position."""
        self._is_whole = False
        start, stop = self.rows.unit(position)
        rows = self.rows.between(start, stop)
        sealed = rows[0].order <= self.rows.sealed
        result = decide_outcome(rows, messages, self.source, sealed=sealed, merge=self.merge)
        if result.replaced:
            self._keep_branch(start, rows)
        copy_ids = {message.id for message in messages}
        new_rows = self._merge_rows(
            rows, result.messages, copy_ids, is_stored=result.stored_first, replaced=result.replaced
        )
        if len(new_rows) != len(rows) or any(
            row is not old_row for row, old_row in zip(new_rows, rows, strict=True)
        ):
            self._warn_of_changed_record(rows, new_rows)
            self.rows.splice(start, stop, new_rows)
        if result.more:
            if len(result.more) > 1:
                turn = self.mint.new_id()
            else:
                turn = None
            new_turn = tuple([message.replace(turn=turn) for message in result.more])
            self._add_new(new_turn, follows=False)
        for message in messages:
            self.orders[id(message)] = new_rows[-1].order

    def _keep_branch(self, start: int, rows: Sequence[Row]) -> None:
        """Keeps the rows of a turn as a branch, before an addition replaces them. `start`: its
        position."""
        if start:
            before = self.rows[start - 1].message.id
        else:
            before = None
        self.branches.append(ReplacedBranch(before, tuple([row.message for row in rows])))

    def _warn_of_changed_record(self, before: Sequence[Row], after: Sequence[Row]) -> None:
        """Warns if a client's copy changes what a tool or the model said. `add` takes the copy's
        word, `put` does not."""
        if self.source != "input" or all(row.origins <= _INPUT for row in before):
            return
        records, new_records = (
            [_record_of(row.message) for row in rows] for rows in (before, after)
        )
        changed = [
            message_id
            for message_id, texts in records
            if texts and (message_id, texts) not in new_records
        ]
        if changed:
            _log.warning(
                "a client's copy changed what is stored of %s: texts or results of the message are the client's now; "
                "use put() for copies that clients send back",
                ", ".join(map(repr, changed[:_SHOWN])),
            )

    def _merge_rows(
        self,
        old_rows: Sequence[Row],
        messages: Sequence[Message],
        copy_ids: set[str | None],
        *,
        is_stored: bool,
        replaced: bool,
    ) -> list[Row]:
        """Returns the rows to add of a turn that was merged with a copy.

        Args:
            old_rows: the rows before.
            messages: the merged messages.
            copy_ids: ids of the messages of the copy.
            is_stored: the copy was loaded, and the old rows are newer.
            replaced: the copy replaces the turn.
        """
        rows_by_id = {row.message.id: row for row in old_rows}
        turn = _first_turn_name([*[row.message for row in old_rows], *messages])
        new_rows: list[Row] = []
        for message in messages:
            if message.id is not None:
                row = rows_by_id.get(message.id)
            else:
                row = None
            before = new_rows[-1] if new_rows else old_rows[0]
            message = self._complete_message(message, row, before, turn)
            if row is not None and message is row.message:
                is_copied = message.id in copy_ids
                new_rows.append(self._kept_row(row, is_copied=is_copied, is_stored=is_stored))
                continue
            live = self._live_sources(row or old_rows[0], is_stored=is_stored, replaced=replaced)
            if row is None:
                origins, order = NOWHERE, before.order
            else:
                origins, order = row.origins, row.order
            new_rows.append(Row(message, order, live, origins | live))
        return order_rows(new_rows)

    def _complete_message(
        self, message: Message, row: Row | None, before: Row, turn: str | None
    ) -> Message:
        """Returns an added message with an id, a time and the name of its turn; the same object
        where it has all. `row`: the row that had its id; `before`: the row that it follows."""
        if row is None or row.message is not message:
            message = stamp(message, self.mint, before.message.created_at, turn)
        if turn is not None and message.turn is None:
            message = message.replace(turn=turn)
        return message

    def _kept_row(self, row: Row, *, is_copied: bool, is_stored: bool) -> Row:
        """Returns a row whose message is not changed by the addition. `is_copied`: it is in the
        client's copy."""
        # An answer that was asked or loaded before counts as a response once it comes as one.
        if self.source == "response" and is_copied and row.live and row.live != RESPONSE:
            return row._replace(live=RESPONSE, origins=row.origins | RESPONSE)
        if is_stored:
            return row._replace(live=row.live | self._sources, origins=row.origins | self._sources)
        return row

    def _live_sources(self, row: Row, *, is_stored: bool, replaced: bool) -> frozenset[str]:
        """Returns the sources of a row that is replaced by an added message."""
        if is_stored or (self.source in ("input", "context") and not replaced):
            return row.live | self._sources
        return self._sources

    # what is new

    def _add_new(self, messages: tuple[Message, ...], *, follows: bool = True) -> None:
        """Adds a turn, or the end of one, that is not there yet. `follows`: a response may continue
        the last turn."""
        last = self.rows.last
        turn = None
        if follows and self.source == "response":
            turn = self._turn_of(messages[0])
        if turn is not None:
            messages = self._with_step(messages)
        full_messages = messages
        if self._has_calls:
            full_messages = fill_arguments(self.rows, messages)
        unit: list[Row] = []
        before = last
        for message, full in zip(messages, full_messages, strict=True):
            new = stamp(full, self.mint, None if before is None else before.message.created_at)
            if self.source == "response":
                new = _with_turn(new, turn)
                turn = new.turn
            # The first message of a loaded turn stands where its time says, maybe before others.
            is_loaded = self.source == "memory" and message.created_at is not None
            order = self._order_of(new, before, is_timed=is_loaded and not unit)
            before = Row(new, order, self._sources, self._sources)
            unit.append(before)
            self.orders[id(message)] = order
        self._place_unit(unit, last)

    def _place_unit(self, unit: list[Row], last: Row | None) -> None:
        """Puts an added turn, or the end of one, behind the last row, or notes that it belongs
        before."""
        if self._ordered:
            self._least_order = unit[-1].order
        if self.source == "memory" and last is not None and unit[0].order < last.order:
            self._early.append(unit)
        else:
            self._append_turn(unit)

    def _order_of(self, message: Message, before: Row | None, *, is_timed: bool) -> int:
        """Returns the sort key of an added row: its time in microseconds, or directly behind the
        row before it unless `is_timed`."""
        if message.created_at is None:
            order = 0
        else:
            order = microseconds(message.created_at)
        if before is not None and order <= before.order and not is_timed:
            order = before.order + 1
        return max(order, self._least_order)

    def _append_turn(self, unit: Sequence[Row]) -> None:
        """Appends an added turn, or the rest of one, behind all rows."""
        rows = self.rows
        # Responses get the name of their turn as they come, so that a turn may end elsewhere than
        # it did.
        is_named_late = self.source == "response"
        rows.append(unit[0], True if self._is_whole and not is_named_late else None)
        self._is_whole = rows.last_start == len(rows) - 1
        for row in unit[1:]:
            rows.append(row, False if self._is_whole and not is_named_late else None)

    def _with_step(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Returns the added messages with the step that the turn ends with: its mark moves from the
        last model message to the first new one."""
        rows = self.rows
        if messages[0].role is not Role.MODEL or not len(rows):
            return messages
        position = len(rows) - 1
        while position > rows.last_start and rows[position].message.role is not Role.MODEL:
            position -= 1
        split = without_step(rows[position].message)
        if split is None or split[0].role is not Role.MODEL:
            return messages
        before, mark = split
        rows.splice(position, position + 1, [rows[position]._replace(message=before)])
        first = messages[0].replace(content=(mark, *messages[0].content))
        return first, *messages[1:]

    def _turn_of(self, message: Message) -> str | None:
        """Returns the turn that an added model message continues: the last turn if it may grow, or
        None if the message begins a turn."""
        rows, last = self.rows, self.rows.last
        if self.apart:
            turn, self.apart = self.apart, False
            return turn if isinstance(turn, str) else None
        if last is None or not self._may_join(message, last):
            return None
        first = rows[rows.last_start].message
        # The whole turn was looked at when its second message came, so that a long turn costs no
        # more than linear time.
        if first.turn is not None and len(rows) > rows.last_start + 1:
            may_grow = first.role is Role.MODEL and not is_done([last.message, message])
            return first.turn if may_grow else None
        return self._continue_unit(first, message)

    def _may_join(self, message: Message, last: Row) -> bool:
        """True if an added response is of a kind that continues a turn, and the last row may still
        get something behind it."""
        if message.turn is not None or not self.merge:
            return False
        is_answer = message.role is Role.MODEL or holds_only_answers(message)
        return is_answer and last.order > self.rows.sealed

    def _continue_unit(self, first: Message, message: Message) -> str | None:
        """Returns the id of the last turn if an added message may join it, and names a turn that
        has none. `first`: the turn's first message."""
        rows = self.rows
        unit = rows.between(rows.last_start, len(rows))
        turn_messages = [row.message for row in unit]
        if not is_model(turn_messages) or _only_marks(turn_messages):
            return None
        if is_done([*turn_messages, message]):
            return None
        if first.turn is not None:
            return first.turn
        return self._name_turn(unit)

    def _name_turn(self, unit: Sequence[Row]) -> str | None:
        """Names the last turn by its first message, before messages are added to it."""
        rows, name = self.rows, unit[0].message.id
        changed = [
            Row(
                row.message.replace(turn=name),
                row.order,
                RESPONSE,
                row.origins | RESPONSE,
                row.starts,
            )
            for row in unit
        ]
        rows.splice(rows.last_start, len(rows), changed)
        return name


def _first_turn_name(messages: Iterable[Message]) -> str | None:
    """Returns the name of the first of these messages' turns that has one."""
    return next((message.turn for message in messages if message.turn), None)


def _with_turn(message: Message, turn: str | None) -> Message:
    """Returns an added response's message in its turn; one that begins a turn gives it its id."""
    is_answer = message.role is Role.MODEL or holds_only_answers(message)
    if message.turn is None and (turn or is_answer):
        return message.replace(turn=turn or message.id)
    return message


def _split_at_repeated_ids(messages: tuple[Message, ...]) -> Sequence[tuple[Message, ...]]:
    """Returns the added messages of a turn in pieces, of which none holds an id twice. A caller may
    add one id several times, which makes one message: each piece is merged with what the pieces
    before it added."""
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
    """Returns added messages from a store in the order of their times. One without a time stays
    behind the message that it followed; of several with one id the last counts."""
    by_id = {message.id or id(message): message for message in messages}
    if len(by_id) == len(messages):
        unique = messages
    else:
        unique = list(by_id.values())
    keys: list[int] = []
    for message in unique:
        before = keys[-1] if keys else -(1 << 80)
        keys.append(before if message.created_at is None else microseconds(message.created_at))
    if all(a <= b for a, b in pairwise(keys)):
        return unique
    return [message for _, message in sorted(zip(keys, unique, strict=True), key=itemgetter(0))]


def _record_of(message: Message) -> tuple[str | None, tuple[str, ...]]:
    """Returns the id of a message, and what the model or a tool said in it, to recognize an added
    message."""
    if message.role is not Role.MODEL and not message.tool_results:
        return message.id, ()
    results = [
        msgspec.json.encode(result.result, enc_hook=str).decode() for result in message.tool_results
    ]
    return message.id, (message.text, *results)
