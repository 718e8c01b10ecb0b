"""What a list of messages reads in fields that belong to formats: approvals, threads, seals, steps.

A family of formats says in a record which of its fields hold them (`HistoryFields`). The records are data alone, so that a list can ask
them about each message without loading a format. A format brought by others has its record as the attribute `history_fields`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dragoman.codec.json_values import if_object, if_text
from dragoman.codec.layout import HistoryFields, ThreadFields
from dragoman.message import OURS, MarkPart, Message, Native, ToolCallPart

__all__ = [
    "STEP",
    "NamedThread",
    "add_history_fields",
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


def _stored_thread(native: Native) -> Mapping[str, Any]:
    from dragoman.wires.ai_sdk_messages.threads import thread_of  # needed for rows only

    return thread_of(native)


_FAMILIES: dict[str, HistoryFields] = {}
_BUILT_IN = HistoryFields(
    native="ai_sdk",
    approval="approval",
    step_time="createdAt",
    step_model="model",
    thread=ThreadFields("threadId", "resourceId"),
    stored_thread=_stored_thread,
    sealed=("mastra", "sealed"),
    done=("completionResult", "isTaskCompleteResult"),
)
"""Of the AI SDK and of Mastra, which stores its messages."""


def add_history_fields(fields: HistoryFields) -> None:
    """Adds the record of a family of formats."""
    _FAMILIES[fields.native] = fields


add_history_fields(_BUILT_IN)


def approval_of(call: ToolCallPart) -> Mapping[str, Any] | None:
    """Returns what is known of a call's approval; `None`: the call needs none."""
    for name, own in (call.native or {}).items():
        if (family := _FAMILIES.get(name)) is None:
            continue
        approval = if_object(own).get(family.approval)
        if isinstance(approval, dict):
            return if_object(approval)
    return None


class NamedThread(NamedTuple):
    """A field in which a message names its thread."""

    name: str
    """Of the field."""
    value: str
    """The id that it holds."""
    is_thread: bool
    """Whether it is the thread's id, not the resource's."""


def threads_of(message: Message) -> Iterator[NamedThread]:
    """Returns the fields in which a message names its thread: the thread's id first, then the resource's."""
    native = message.native
    for family in _FAMILIES.values() if native else ():
        fields = {**if_object((native or {}).get(family.native))}
        if family.stored_thread is not None:
            fields |= family.stored_thread(native)
        for place, name in enumerate(family.thread or ()):
            if value := if_text(fields.get(name)):
                yield NamedThread(name, value, is_thread=place == 0)


def thread_names() -> list[str]:
    """Returns the names of the fields in which messages name their thread."""
    return [name for family in _FAMILIES.values() for name in family.thread or ()]


def is_sealed(message: Message) -> bool:
    """Returns whether a message says that it never changes."""
    if message.native and if_object(message.native.get(OURS)).get("sealed") is True:
        return True
    if not message.metadata:
        return False
    return any(
        if_object(message.metadata.get(family.sealed[0])).get(family.sealed[1]) is True
        for family in _FAMILIES.values()
    )


def is_done(messages: Iterable[Message]) -> bool:
    """Returns whether a message says that a task is done."""
    return any(
        message.metadata and message.metadata.get(name)
        for message in messages
        for family in _FAMILIES.values()
        for name in family.done
    )


def step_mark(milliseconds: int) -> MarkPart:
    """Returns the mark of a step that begins at a time."""
    times = {family.native: {family.step_time: milliseconds} for family in _with_steps()}
    return MarkPart(STEP, times)


def with_step_model(mark: MarkPart, model: str) -> Native:
    """Returns the native fields of a step's mark, which name the model that makes the step."""
    native = dict(mark.native or {})
    for family in _with_steps():
        native[family.native] = {**if_object(native.get(family.native)), family.step_model: model}
    return native


def _with_steps() -> list[HistoryFields]:
    return [family for family in _FAMILIES.values() if family.step_time]
