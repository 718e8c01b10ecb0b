"""Calls and results, paired: what a prompt or an export needs, whatever the history went through.

A *round* is a model message with calls that somebody must answer, or several that follow each other with other ids, and the
messages after them until the next such one.
Calls and results are paired within their round, by id and in order, since providers repeat ids. Pure, total and
idempotent: no clock, no random ids, and the very same `Message` objects where nothing changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter

import msgspec

from dragoman.loss import Loss, Lost
from dragoman.message import Content, Message, Role, ToolCallPart, ToolResultPart

__all__ = ["INTERRUPTED", "missing", "repair", "repaired"]

_CONTENT = attrgetter("content")
INTERRUPTED = "interrupted: the call was not answered"
"""The error that stands in for a result that never came."""


def repair(messages: Iterable[Message]) -> list[Message]:
    """The messages, with all calls of each answered by one user message right after it, in call order.

    A call without a result gets an error result (`INTERRUPTED`); a result without a call is dropped, as is a second
    one for the same call, and a message that is left empty by that. What the provider ran itself is left alone.
    """
    return repaired(messages)[0]


def repaired(messages: Iterable[Message]) -> tuple[list[Message], list[Loss]]:
    """`repair`, and what it made up or dropped; positions are those in `messages`."""
    messages = list(messages)
    if _is_paired(messages):
        return messages, []
    losses: list[Loss] = []
    return [message for round_ in _rounds(messages) for message in _mended(round_, losses)], losses


def missing(messages: Sequence[Message]) -> tuple[list[ToolResultPart], list[Loss]]:
    """What `repair` makes up in the last round, the only one that later messages could still answer.

    Once it was sent it is to be stored behind that round: a real result that comes late is then a second one for its call,
    and leaves what was sent as it was.
    """
    found = _last_round(messages)
    if found is None:
        return [], []
    start, last = found
    if _is_paired(messages[start : last + 2]):
        return [], []
    losses: list[Loss] = []
    for round_ in _rounds(messages[start:])[-1:]:
        _mended(round_, losses)
    losses = [msgspec.structs.replace(loss, message=start + (loss.message or 0)) for loss in losses]
    calls = [(loss, messages[loss.message or 0].content[loss.part or 0]) for loss in losses]
    made_up = [(loss, call) for loss, call in calls if isinstance(call, ToolCallPart)]
    return [_stand_in(call) for _, call in made_up], [loss for loss, _ in made_up]


def _last_round(messages: Sequence[Message]) -> tuple[int, int] | None:
    """Where the model began to speak when it called something last, and where it did; `None`: it never did. Sees at once of a long
    conversation that there is no call in it."""
    contents = map(_CONTENT, reversed(messages))
    if ToolCallPart not in map(type, chain.from_iterable(contents)):
        return None
    last = next((at for at in range(len(messages) - 1, -1, -1) if _calls(messages[at])), None)
    if last is None:
        return None
    start = last
    while start and messages[start - 1].role is Role.MODEL:
        start -= 1
    return start, last


def _is_paired(messages: Iterable[Message]) -> bool:
    """Whether every message with calls is followed by one that begins with their results, in order, and there are no others: then
    nothing is to be mended, which is cheaper to see than to do."""
    expected: list[str] = []
    for message in messages:
        content, answered = message.content, len(expected)
        if answered:
            if message.role is not Role.USER or len(content) < answered:
                return False
            for piece, call_id in zip(content, expected, strict=False):
                if not isinstance(piece, ToolResultPart) or piece.id != call_id:
                    return False
                if not piece.name or piece.run_by == "provider":
                    return False
            content, expected = content[answered:], []
        for piece in content:
            if not isinstance(piece, ToolCallPart | ToolResultPart) or piece.run_by == "provider":
                continue
            if isinstance(piece, ToolResultPart):
                return False
            if message.role is Role.MODEL:
                expected.append(piece.id)
    return not expected


def _rounds(messages: Iterable[Message]) -> list[list[tuple[int, Message]]]:
    """What stands before the first round, and the rounds; each message with its position."""
    rounds: list[list[tuple[int, Message]]] = [[]]
    called: set[str] = set()  # what the model has called since somebody else spoke
    for position, message in enumerate(messages):
        ids = {call.id for _, call in _calls(message)}
        if ids and (not called or ids & called):
            rounds.append([])
            called = set()
        called = called | ids if message.role is Role.MODEL else set()
        rounds[-1].append((position, message))
    return [round_ for round_ in rounds if round_]


def _stand_in(call: ToolCallPart) -> ToolResultPart:
    """The result of a call that nobody answered."""
    return ToolResultPart(call.id, call.name, {"error": INTERRUPTED}, is_error=True)


def _calls(message: Message) -> list[tuple[int, ToolCallPart]]:
    """The calls that a model's message wants answered, each with its place in the content."""
    if message.role is not Role.MODEL:
        return []
    return [
        (place, piece)
        for place, piece in enumerate(message.content)
        if isinstance(piece, ToolCallPart) and piece.run_by != "provider"
    ]


def _mended(round_: Sequence[tuple[int, Message]], losses: list[Loss]) -> list[Message]:
    """One round, or what stands before the first."""
    model = next((n for n, (_, message) in enumerate(round_) if message.role is not Role.MODEL), len(round_))
    calls = [(n, place, call) for n in range(model) for place, call in _calls(round_[n][1])]
    waiting: dict[str, deque[int]] = {}
    for number, (_, _, call) in enumerate(calls):
        waiting.setdefault(call.id, deque()).append(number)
    answers: dict[int, ToolResultPart] = {}
    carrier: int | None = None  # place in `kept` of the first user message that brings results
    kept: list[tuple[Message, tuple[Content, ...]]] = []
    where: list[int] = []  # place in `kept` behind each message of the round
    for position, message in round_:
        content: list[Content] = []
        for place, piece in enumerate(message.content):
            if not isinstance(piece, ToolResultPart) or piece.run_by == "provider":
                content.append(piece)
            elif numbers := waiting.get(piece.id):
                number = numbers.popleft()
                call = calls[number][2]
                answers[number] = piece if piece.name else msgspec.structs.replace(piece, name=call.name)
                if carrier is None and message.role is Role.USER:
                    carrier = len(kept)
            else:
                why = "its call is already answered" if piece.id in waiting else "no call of its round has its id"
                losses.append(Loss(position, place, Lost.tool_result, why))
        if content or not message.content or carrier == len(kept):
            kept.append((message, tuple(content)))
        where.append(len(kept))
    for number, (n, place, call) in enumerate(calls):
        if number not in answers:
            answers[number] = _stand_in(call)
            losses.append(Loss(round_[n][0], place, Lost.tool_result, "it never came; an error stands in for it"))
    for n in sorted({n for n, _, _ in calls}, reverse=True):
        message, rest = Message(Role.USER), ()
        if carrier is not None and (carrier == where[n] or not kept[carrier][1]):
            message, rest = kept.pop(carrier)
        carrier = None
        answered = [answers[number] for number, (caller, _, _) in enumerate(calls) if caller == n]
        kept.insert(where[n], (message, (*answered, *rest)))
    return [message if content == message.content else message.replace(content=content) for message, content in kept]
