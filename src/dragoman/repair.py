"""Calls and results, paired: what a prompt or an export needs, whatever the history went through.

A *round* is a model message with calls that somebody must answer, or several that follow each other
with other ids, and the messages after them until the next such one. Calls and results are paired
within their round, by id and in order, since providers repeat ids. Pure, total and idempotent: no
clock, no random ids, and the very same `Message` objects where nothing changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, cast

import msgspec

from dragoman.loss import Loss, Lost
from dragoman.message import OURS, Content, Message, Role, ToolCallPart, ToolResultPart

__all__ = [
    "INTERRUPTED",
    "OpenCall",
    "Source",
    "find_missing_results",
    "find_open_calls",
    "repair",
    "repair_with_losses",
    "make_interrupted_result",
    "bind_to_call",
    "trace_repair",
]

_CONTENT = attrgetter("content")
INTERRUPTED = "interrupted: the call was not answered"
"""The error that stands in for a result that never came."""
_TURN = "turn"
"""Under which a result says to which of several calls with its id it belongs."""


class Source(NamedTuple):
    """Where a message of a repaired conversation stood before the repair."""

    message: int | None
    """Position of the message; `None`: repair made it."""
    parts: tuple[tuple[int, int] | None, ...]
    """For each piece of its content the message and the place where it stood; `None`: repair made
    it."""


class OpenCall(msgspec.Struct, frozen=True):
    """A call of the last round that has no result."""

    position: int
    """Of its message in the conversation."""
    place: int
    """In the content of the message."""
    turn: int
    """How many calls of its round before it have its id."""
    call: ToolCallPart
    """The call."""


def repair(messages: Iterable[Message]) -> list[Message]:
    """Returns the messages, with all calls of each answered by one user message right after it, in
    call order.

    A call without a result gets an error result (`INTERRUPTED`); a result without a call is
    dropped, as is a second one for the same call, and a message that is left empty by that. What
    the provider ran itself is left alone.
    """
    return repair_with_losses(messages)[0]


def repair_with_losses(messages: Iterable[Message]) -> tuple[list[Message], list[Loss]]:
    """Repairs messages as `repair` does. Returns also what it made up or dropped; positions are
    those in `messages`."""
    mended, losses, _ = trace_repair(messages)
    return mended, losses


def trace_repair(
    messages: Iterable[Message],
) -> tuple[list[Message], list[Loss], list[Source] | None]:
    """Repairs messages as `repair_with_losses` does. Returns also where each message stood, or None
    if all stand where they stood."""
    messages = list(messages)
    if _is_paired(messages):
        return messages, [], None
    losses: list[Loss] = []
    mended = [pair for round_ in _rounds(messages) for pair in _mend_round(round_, losses)]
    return [message for message, _ in mended], losses, [source for _, source in mended]


def find_missing_results(messages: Sequence[Message]) -> tuple[list[ToolResultPart], list[Loss]]:
    """Returns the results to repair a conversation with: "interrupted" for the calls of the last
    round that have none, and a loss for each.

    `repair` sends these results. The caller then stores them behind that round, so that a real
    result that comes late does not change what was sent.

    Once it was sent it is to be stored behind that round: a real result that comes late is then a
    second one for its call, and leaves what was sent as it was.
    """
    calls = find_open_calls(messages)
    return [make_interrupted_result(open_call.call) for open_call in calls], [
        _never_came(open_call.position, open_call.place) for open_call in calls
    ]


def find_open_calls(messages: Sequence[Message]) -> list[OpenCall]:
    """Returns the calls that repair would answer: those of the last round that have no result, in
    order."""
    round_ = _last_round(messages)
    if round_ is None or _is_paired(messages[round_[0] : round_[1] + 2]):
        return []
    start = round_[0]
    losses: list[Loss] = []
    last = _rounds(messages[start:])[-1]
    _mend_round(last, losses)
    missed = {(loss.message, loss.part) for loss in losses}
    unanswered: list[OpenCall] = []
    turns: dict[str, int] = {}
    for position, message in last if missed else ():
        for index, call in _list_wanted_calls(message):
            turn = turns[call.id] = turns.get(call.id, -1) + 1
            if (position, index) in missed:
                unanswered.append(OpenCall(start + position, index, turn, call))
    return unanswered


def bind_to_call(result: ToolResultPart, turn: int) -> ToolResultPart:
    """Returns a result that comes before those of earlier calls with the same id: it says to which
    call it belongs."""
    return msgspec.structs.replace(result, native={**(result.native or {}), OURS: {_TURN: turn}})


def make_interrupted_result(call: ToolCallPart) -> ToolResultPart:
    """Returns the result of a call that nobody answered."""
    return ToolResultPart(call.id, call.name, {"error": INTERRUPTED}, is_error=True)


def _last_round(messages: Sequence[Message]) -> tuple[int, int] | None:
    """Returns where the model's last turn with a call begins and where its last call stands, the
    round to repair, or None if there is none. Sees at once of a long conversation that there is no
    call in it."""
    contents = map(_CONTENT, reversed(messages))
    if ToolCallPart not in map(type, chain.from_iterable(contents)):
        return None
    last = next(
        (
            position
            for position in range(len(messages) - 1, -1, -1)
            if _list_wanted_calls(messages[position])
        ),
        None,
    )
    if last is None:
        return None
    start = last
    while start and messages[start - 1].role is Role.MODEL:
        start -= 1
    return start, last


def _is_paired(messages: Iterable[Message]) -> bool:
    """True if no repair is needed: every message with calls is followed by one that begins with
    their results, in order, and there are no others: then nothing is to be mended, which is cheaper
    to see than to do."""
    expected: list[str] = []
    for message in messages:
        content, count = message.content, len(expected)
        if count:
            if message.role is not Role.USER or len(content) < count:
                return False
            if not all(map(_answers_call, content, expected)):
                return False
            content, expected = content[count:], []
        for piece in content:
            if not isinstance(piece, ToolCallPart | ToolResultPart) or piece.run_by == "provider":
                continue
            if isinstance(piece, ToolResultPart):
                return False
            if message.role is Role.MODEL:
                expected.append(piece.id)
    return not expected


def _answers_call(piece: Content, call_id: str) -> bool:
    """True if, without repair, a piece is the result of a call, with nothing left to mend in it."""
    if not isinstance(piece, ToolResultPart) or piece.id != call_id:
        return False
    if not piece.name or piece.run_by == "provider":
        return False
    return not piece.native or OURS not in piece.native


def _rounds(messages: Iterable[Message]) -> list[list[tuple[int, Message]]]:
    """Returns the messages before the first round, and the rounds to repair; each message with its
    position."""
    rounds: list[list[tuple[int, Message]]] = [[]]
    # What the model has called since somebody else spoke.
    called: set[str] = set()
    for position, message in enumerate(messages):
        ids = {call.id for _, call in _list_wanted_calls(message)}
        if ids and (not called or ids & called):
            rounds.append([])
            called = set()
        if message.role is Role.MODEL:
            called = called | ids
        else:
            called = set()
        rounds[-1].append((position, message))
    return [round_ for round_ in rounds if round_]


def _never_came(position: int, index: int) -> Loss:
    return Loss(position, index, Lost.tool_result, "it never came; an error stands in for it")


def _take_open_call(result: ToolResultPart, open_: deque[int], all_: Sequence[int]) -> int | None:
    """Returns the call that repair pairs a result with, taken off the open ones; `None`: there is
    none."""
    mark: Any = (result.native or {}).get(OURS)
    if isinstance(mark, dict):
        turn = cast("dict[str, Any]", mark).get(_TURN)
    else:
        turn = None
    if not isinstance(turn, int) or not 0 <= turn < len(all_):
        if open_:
            return open_.popleft()
        return None
    if all_[turn] not in open_:
        return None
    open_.remove(all_[turn])
    return all_[turn]


def _with_name(result: ToolResultPart, call: ToolCallPart) -> ToolResultPart:
    """Repairs a result that stands where it belongs: returns it with the call's name where it has
    none."""
    if result.native and OURS in result.native:
        remaining = {key: value for key, value in result.native.items() if key != OURS}
        result = msgspec.structs.replace(result, native=remaining or None)
    if result.name:
        return result
    return msgspec.structs.replace(result, name=call.name)


_NONE: deque[int] = deque()


def _list_wanted_calls(message: Message) -> list[tuple[int, ToolCallPart]]:
    """Returns the calls of a model's message that repair must see answered, each with its place in
    the content."""
    if message.role is not Role.MODEL:
        return []
    return [
        (index, piece)
        for index, piece in enumerate(message.content)
        if isinstance(piece, ToolCallPart) and piece.run_by != "provider"
    ]


class _MendedMessage(NamedTuple):
    """A message of a mended round."""

    message: Message
    """The message as it was."""
    position: int | None
    """Its position before the repair; `None` if the repair made it."""
    pieces: tuple[tuple[Content, tuple[int, int] | None], ...]
    """The new content, each piece with the place where it stood."""

    def build(self) -> tuple[Message, Source]:
        """Returns the mended message and where its pieces stood."""
        message, content = self.message, tuple([piece for piece, _ in self.pieces])
        if content != message.content:
            message = message.replace(content=content)
        return message, Source(self.position, tuple([stood for _, stood in self.pieces]))


def _mend_round(
    round_: Sequence[tuple[int, Message]], losses: list[Loss]
) -> list[tuple[Message, Source]]:
    """Returns the messages of one round, or of what stands before the first, with all results of a
    model's message right behind it."""
    mending = _Mending(round_, losses)
    for position, message in round_:
        mending.add(position, message)
    mending.answer_open()
    return [message.build() for message in mending.place_results()]


class _Call(NamedTuple):
    """A call of a round."""

    caller: int
    """Index of its message in the round."""
    place: int
    """In the content of the message."""
    call: ToolCallPart


class _Mending:
    """One round while it is mended. Results are taken out of their messages first, and put behind
    their calls once all of them are known."""

    def __init__(self, round_: Sequence[tuple[int, Message]], losses: list[Loss]) -> None:
        """Starts to mend one round of calls and results. `losses`: receives what is dropped."""
        self._round, self._losses = round_, losses
        roles = [message.role for _, message in round_]
        # The model's messages with calls stand first in a round.
        models = next(
            (index for index, role in enumerate(roles) if role is not Role.MODEL), len(roles)
        )
        self._list_wanted_calls = [
            _Call(caller, place, call)
            for caller in range(models)
            for place, call in _list_wanted_calls(round_[caller][1])
        ]
        # Results are paired with calls of the same id in order: providers repeat ids in a round.
        self._open: dict[str, deque[int]] = {}
        for number, entry in enumerate(self._list_wanted_calls):
            self._open.setdefault(entry.call.id, deque()).append(number)
        self._numbers = {call_id: tuple(numbers) for call_id, numbers in self._open.items()}
        self._answers: dict[int, tuple[ToolResultPart, tuple[int, int] | None]] = {}
        self._mended: list[_MendedMessage] = []
        self._ends: list[int] = []  # behind each message of the round, position in `_mended`
        self._carrier: int | None = None  # position of the first user message that brings results

    def add(self, position: int, message: Message) -> None:
        """Adds the next message of the round to mend, without its results."""
        content: list[tuple[Content, tuple[int, int] | None]] = []
        for place, piece in enumerate(message.content):
            if not isinstance(piece, ToolResultPart) or piece.run_by == "provider":
                content.append((piece, (position, place)))
                continue
            number = _take_open_call(
                piece, self._open.get(piece.id, _NONE), self._numbers.get(piece.id, ())
            )
            if number is None:
                self._drop_result(position, place, piece)
                continue
            self._answers[number] = (
                _with_name(piece, self._list_wanted_calls[number].call),
                (position, place),
            )
            if self._carrier is None and message.role is Role.USER:
                self._carrier = len(self._mended)
        # A message that loses all of its content goes, unless it takes results again.
        if content or not message.content or self._carrier == len(self._mended):
            self._mended.append(_MendedMessage(message, position, tuple(content)))
        self._ends.append(len(self._mended))

    def _drop_result(self, position: int, place: int, result: ToolResultPart) -> None:
        """Drops a tool result, as a loss."""
        if result.id in self._open:
            why = "its call is already answered"
        else:
            why = "no call of its round has its id"
        self._losses.append(Loss(position, place, Lost.tool_result, why))

    def answer_open(self) -> None:
        """Gives each call that has no result an error for one."""
        for number, (caller, place, call) in enumerate(self._list_wanted_calls):
            if number not in self._answers:
                self._answers[number] = make_interrupted_result(call), None
                self._losses.append(_never_came(self._round[caller][0], place))

    def place_results(self) -> list[_MendedMessage]:
        """Returns the mended messages, with the results of each caller in the user message behind
        it."""
        # From the last caller on, so that an insertion moves no position that is still needed.
        for caller in sorted({entry.caller for entry in self._list_wanted_calls}, reverse=True):
            end = self._ends[caller]
            behind = _MendedMessage(Message(Role.USER), None, ())
            carrier = self._carrier
            if carrier is not None and (carrier == end or not self._mended[carrier].pieces):
                behind = self._mended.pop(carrier)
            self._carrier = None
            results = [
                self._answers[number]
                for number, entry in enumerate(self._list_wanted_calls)
                if entry.caller == caller
            ]
            self._mended.insert(end, behind._replace(pieces=(*results, *behind.pieces)))
        return self._mended
