"""What a list reads in fields that belong to formats: approvals, threads, seals, steps. Each format
names its own (`FormatFields`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from dragoman.codec.json_values import if_object, if_text
from dragoman.formats.registry import history_fields
from dragoman.json_bytes import JsonMap
from dragoman.message import OURS, MarkPart, Message, Native, ToolCallPart

__all__ = [
    "STEP",
    "NamedThread",
    "approval_of",
    "is_done",
    "is_sealed",
    "step_mark",
    "thread_names",
    "threads_of",
    "with_step_model",
]

STEP = "step-start"
"""Kind of the mark at which a step begins."""


def approval_of(call: ToolCallPart) -> JsonMap | None:
    """Returns what format fields say of a call's approval; `None`: the call needs none."""
    native = call.native
    for fields in history_fields() if native else ():
        approval = if_object((native or {}).get(fields.native)).get(fields.approval)
        if isinstance(approval, dict):
            return if_object(approval)
    return None


def thread_names() -> list[str]:
    """Returns the names of the format fields in which messages name their thread and its owner."""
    return [
        name for fields in history_fields() for name in (fields.thread, fields.resource) if name
    ]


class NamedThread(NamedTuple):
    """A field in which a message names its thread, or the thread's owner."""

    name: str
    """Of the field."""
    value: str
    """The id in it."""
    is_thread: bool
    """Whether it is the id of the thread, not of its owner."""


def threads_of(message: Message) -> Iterator[NamedThread]:
    """Returns the format fields in which a message names its thread and its owner."""
    for fields in history_fields() if message.native else ():
        named = fields.thread_of(message.native)
        for name in (fields.thread, fields.resource):
            if value := if_text(named.get(name)):
                yield NamedThread(name, value, is_thread=name == fields.thread)


def is_sealed(message: Message) -> bool:
    """True if a format field of a message says that it never changes."""
    native, metadata = message.native, message.metadata
    if native and if_object(native.get(OURS)).get("sealed") is True:
        return True
    return bool(metadata) and any(
        _find_at_path(metadata, fields.seal) is True for fields in history_fields()
    )


def _find_at_path(value: object, path: Iterable[str]) -> Any:
    """Returns what is at the path of a format field in JSON; of an empty path nothing."""
    field = None
    for key in path:
        field = value = if_object(value).get(key)
    return field


def is_done(messages: Iterable[Message]) -> bool:
    """True if a message says that a task is done, so that nothing is merged with it."""
    done = [name for fields in history_fields() for name in fields.done]
    return any(message.metadata.get(name) for message in messages for name in done)


def step_mark(milliseconds: int) -> MarkPart:
    """Returns the mark of a step that begins at a time, with the fields that formats read."""
    return MarkPart(
        STEP,
        {
            fields.native: {fields.step_time: milliseconds}
            for fields in history_fields()
            if fields.step_time
        },
    )


def with_step_model(mark: MarkPart, model: str) -> Native:
    """Returns the format fields of a step's mark, in which the model is named that makes the
    step."""
    native = dict(mark.native or {})
    for fields in history_fields():
        if fields.step_model:
            step_fields = if_object(native.get(fields.native))
            native[fields.native] = {**step_fields, fields.step_model: model}
    return native
