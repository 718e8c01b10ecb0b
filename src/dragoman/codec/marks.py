"""Marks are for people: what is sent to a model, and what a digest counts, is the conversation
without them.

A copy of a file that the provider holds (`mark_copy`) is a mark for that provider alone: it is sent
its own reference to the file. All others are sent the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.interrupt import Interrupt, Resume
from dragoman.json_bytes import Json
from dragoman.message import (
    NOTES,
    OURS,
    Content,
    DataPart,
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
    "list_fetched",
    "mark_copy",
    "mark_fetched",
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
    """Returns the types of all pieces in the messages. It is fast, so that most conversations need
    no second look."""
    return set(map(type, chain.from_iterable(map(_CONTENT, messages))))


def holds_only_waits(message: Message) -> bool:
    """True if a message consists of marks of interrupts alone, and so is no part of the
    conversation."""
    content = message.content
    return bool(content) and all(
        isinstance(piece, MarkPart) and piece.kind == INTERRUPT for piece in content
    )


def drop_waits(messages: Sequence[Message]) -> Sequence[Message]:
    """Returns the messages without those that hold marks of interrupts alone."""
    if MarkPart not in collect_part_types(messages):
        return messages
    return tuple([message for message in messages if not holds_only_waits(message)])


def strip_marks(message: Message, wire: str = "") -> Message:
    """Returns the message without its marks, or the message itself if it has none. `wire`: whose
    copies of files are left out too."""
    kept = tuple([piece for piece in message.content if not _is_mark(piece, wire)])
    return message if len(kept) == len(message.content) else message.replace(content=kept)


def strip_all_marks(
    messages: Iterable[Message], wire: str = ""
) -> tuple[tuple[Message, ...], Places]:
    """Returns the messages without marks, and the index that each remaining piece had. `wire`: as
    in `strip_marks`."""
    all_messages = tuple(messages)
    if not collect_part_types(all_messages) & {MarkPart, DataPart}:
        return all_messages, {}
    kept_indexes: dict[int, tuple[int, ...]] = {}
    for position, message in enumerate(all_messages):
        content = message.content
        kept = [index for index, piece in enumerate(content) if not _is_mark(piece, wire)]
        if len(kept) < len(content):
            kept_indexes[position] = tuple(kept)
    return tuple([strip_marks(message, wire) for message in all_messages]), kept_indexes


def _is_mark(piece: Content, wire: str) -> bool:
    if isinstance(piece, DataPart):
        # Without a wire it is unknown who reads it, and the copy counts as any file.
        return bool(wire) and _read_note(piece.native, _COPY).get("wire") == wire
    return isinstance(piece, MarkPart)


def mark_copy(part: DataPart, wire: str) -> DataPart:
    """Returns the part marked as the copy of a file that the provider of a wire holds."""
    native = _with(part.native, _COPY, {"wire": wire})
    return msgspec.structs.replace(part, native=native)


def mark_fetched(native: Native, file_ids: Sequence[str]) -> Json:
    """Returns the `native` of a message with the ids of the files that it has copies of."""
    return _with(native, _COPY, {"ids": list(file_ids)})


def list_fetched(messages: Iterable[Message]) -> set[str]:
    """Returns the ids of the files that these messages have copies of."""
    notes = [_read_note(message.native, _COPY) for message in messages if message.native]
    return {if_text(file_id) for note in notes for file_id in if_list(note.get("ids"))}


KEY = OURS + NOTES
"""In `native`, under which it stands."""
_WAITS = "waits"
_ANSWERS = "answers"
_COPY = "copy"


def attach_interrupt(call: ToolCallPart, interrupt: Interrupt) -> ToolCallPart:
    """Returns the call with the mark of an interrupt attached: what the agent wants before it goes
    on. Only a call that the client runs counts as an ordinary tool call (`run_by="agent"`)."""
    stored = msgspec.to_builtins(msgspec.structs.replace(interrupt, call=None))
    # An approval or a question is no tool of the user's: its call is the client's to answer.
    run_by = "agent" if interrupt.reason == "tool" else "client"
    return msgspec.structs.replace(call, run_by=run_by, native=_with(call.native, _WAITS, stored))


def read_interrupt(call: ToolCallPart) -> Interrupt | None:
    """Returns the interrupt whose mark is attached to a call, or None."""
    stored = _read_note(call.native, _WAITS)
    if not stored:
        return None
    try:
        interrupt = msgspec.convert(stored, Interrupt)
    except msgspec.ValidationError:
        # A client may have changed what it was given to keep.
        return None
    # Stored without its call, which would hold the interrupt again.
    return msgspec.structs.replace(interrupt, call=call)


def attach_resume(result: ToolResultPart, resume: Resume) -> ToolResultPart:
    """Returns the result of a call that waits, marked with the answer to the agent's interrupt."""
    return msgspec.structs.replace(
        result, native=_with(result.native, _ANSWERS, msgspec.to_builtins(resume))
    )


def read_resume(interrupt: Interrupt, result: ToolResultPart) -> Resume:
    """Returns the answer to an interrupt that a result is marked with. A result that says nothing
    about it, such as one that repair made up, cancels."""
    stored = _read_note(result.native, _ANSWERS)
    try:
        if stored:
            resume = msgspec.convert(stored, Resume)
        else:
            resume = Resume(interrupt.id, "cancelled")
    except msgspec.ValidationError:
        resume = Resume(interrupt.id, "cancelled")
    # These three come from the call, so that a client cannot answer another interrupt with them.
    return msgspec.structs.replace(
        resume,
        interrupt_id=interrupt.id,
        signature=interrupt.signature,
        metadata=interrupt.metadata,
    )


def _with(native: Native, key: str, value: Any) -> Json:
    return {**(native or {}), KEY: {**if_object((native or {}).get(KEY)), key: value}}


def _read_note(native: Native, key: str) -> Json:
    return if_object(if_object((native or {}).get(KEY)).get(key))
