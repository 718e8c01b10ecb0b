"""Marks are for people: what is sent to a model, and what a digest counts, is the conversation
without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.interrupt import Interrupt, Resume
from dragoman.json_bytes import Json
from dragoman.message import (
    NOTES,
    OURS,
    Content,
    MarkPart,
    Message,
    Native,
    ToolCallPart,
    ToolResultPart,
)

__all__ = [
    "INTERRUPT",
    "KEY",
    "Places",
    "read_resume",
    "attach_resume",
    "read_interrupt",
    "collect_part_types",
    "holds_only_waits",
    "strip_marks",
    "strip_all_marks",
    "attach_interrupt",
    "drop_waits",
]


_CONTENT = attrgetter("content")
Places = Mapping[int, tuple[int, ...]]
"""Position of a message that had marks → for each piece that is left of its content, the place
where it stood."""


INTERRUPT = "interrupt"
"""Kind of the mark of what a call waits for."""


def collect_part_types(messages: Iterable[Message]) -> set[type[Content]]:
    """The types of all pieces, seen at once also of a long conversation: most need no more to be
    known."""
    return set(map(type, chain.from_iterable(map(_CONTENT, messages))))


def holds_only_waits(message: Message) -> bool:
    """Whether a message stands there for marks of this kind alone: it is no part of the
    conversation."""
    content = message.content
    return bool(content) and all(
        isinstance(piece, MarkPart) and piece.kind == INTERRUPT for piece in content
    )


def drop_waits(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages without those that stand there for such marks alone."""
    if MarkPart not in collect_part_types(messages):
        return messages
    return tuple([message for message in messages if not holds_only_waits(message)])


def strip_marks(message: Message) -> Message:
    """The message without its marks: itself where it has none."""
    if any(isinstance(piece, MarkPart) for piece in message.content):
        return message.replace(
            content=tuple([piece for piece in message.content if not isinstance(piece, MarkPart)])
        )
    return message


def strip_all_marks(messages: Iterable[Message]) -> tuple[tuple[Message, ...], Places]:
    """The messages without marks, and where what is left stood."""
    given = tuple(messages)
    if MarkPart not in collect_part_types(given):
        return given, {}
    marked = {
        at for at, one in enumerate(given) for piece in one.content if isinstance(piece, MarkPart)
    }
    places = {
        position: tuple(
            [
                place
                for place, piece in enumerate(given[position].content)
                if not isinstance(piece, MarkPart)
            ]
        )
        for position in sorted(marked)
    }
    return tuple([strip_marks(message) for message in given]), places


KEY = OURS + NOTES
"""In `native`, under which it stands."""
_WAITS = "waits"
_ANSWERS = "answers"


def attach_interrupt(call: ToolCallPart, interrupt: Interrupt) -> ToolCallPart:
    """The call with what the agent wants before it goes on with it. A call that the client is to
    run may be run by any tool of that name; what else is waited for is the agent's own business."""
    held = msgspec.to_builtins(msgspec.structs.replace(interrupt, call=None))
    run_by = "agent" if interrupt.reason == "tool" else "client"
    return msgspec.structs.replace(call, run_by=run_by, native=_with(call.native, _WAITS, held))


def read_interrupt(call: ToolCallPart) -> Interrupt | None:
    """What the agent wants before it goes on with a call; `None`: it is a call like any other."""
    held = _held(call.native, _WAITS)
    try:
        read = msgspec.convert(held, Interrupt) if held else None
    except msgspec.ValidationError:
        return None
    return None if read is None else msgspec.structs.replace(read, call=call)


def attach_resume(result: ToolResultPart, resume: Resume) -> ToolResultPart:
    """The result of such a call with what is answered to the agent."""
    return msgspec.structs.replace(
        result, native=_with(result.native, _ANSWERS, msgspec.to_builtins(resume))
    )


def read_resume(interrupt: Interrupt, result: ToolResultPart) -> Resume:
    """What a result answers to what its call waits for. One that says nothing of it, as repair
    makes them up, gives up."""
    held = _held(result.native, _ANSWERS)
    try:
        given = msgspec.convert(held, Resume) if held else Resume(interrupt.id, "cancelled")
    except msgspec.ValidationError:
        given = Resume(interrupt.id, "cancelled")
    return msgspec.structs.replace(
        given, interrupt_id=interrupt.id, signature=interrupt.signature, metadata=interrupt.metadata
    )


def _with(native: Native, key: str, value: Any) -> Json:
    return {**(native or {}), KEY: {**if_object((native or {}).get(KEY)), key: value}}


def _held(native: Native, key: str) -> Json:
    return if_object(if_object((native or {}).get(KEY)).get(key))
