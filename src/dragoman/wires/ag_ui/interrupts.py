"""What a run waits for and the answers to it: `interrupts` of a run's outcome, `resume` of a
request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dragoman.codec.json_difference import apply_difference, find_difference
from dragoman.codec.json_values import drop_none, if_list, if_object, if_text
from dragoman.errors import HistoryError
from dragoman.interrupt import Interrupt, Reason, Resume
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import ToolCallPart
from dragoman.wires.ag_ui.quirks import app_metadata, dump_metadata, load_extras, rename_fields

__all__ = ["dump_interrupt", "dump_resume", "load_interrupt", "load_resume"]

_REASONS: Mapping[Reason, str] = {
    "tool": "tool_call",
    "approval": "tool_call",
    "input": "input_required",
    "auth": "a2a:auth_required",
    "doubt": "confirmation",
}
_READ: Mapping[str, Reason] = {
    "tool_call": "approval",
    "input_required": "input",
    "confirmation": "input",
    "a2a:auth_required": "auth",
    "auth_required": "auth",
}
_APPROVAL: JsonMap = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
"""Schema of the answer to an approval."""
_EDITED = {**_APPROVAL, "properties": {**_APPROVAL["properties"], "arguments": {"type": "object"}}}
_VALUE = "value"


def load_interrupt(fields: JsonMap, call: ToolCallPart | None = None) -> Interrupt:
    """Returns the AG-UI interrupt in an element of `interrupts`. `call` is the call that it names,
    if known."""
    extras = load_extras(fields.get("metadata"))
    return apply_difference(_read_agui_interrupt(fields, call), extras.get("interrupt"), Interrupt)


def dump_interrupt(interrupt: Interrupt, call_id: str | None = None) -> Json:
    """Returns an element of `interrupts`. `call_id` is AG-UI's id of its call."""
    call, schema = interrupt.call, interrupt.schema
    if interrupt.reason == "approval":
        schema = _APPROVAL
        if interrupt.editable:
            schema = _EDITED
    expires_at = interrupt.expires_at and interrupt.expires_at.isoformat()
    optional = {
        "message": interrupt.message,
        "toolCallId": (call_id or call.id or None) if call else None,
        "responseSchema": schema if schema is None else dict(schema),
        "expiresAt": expires_at,
    }
    fields: Json = {"id": interrupt.id, "reason": _REASONS[interrupt.reason]}
    fields |= drop_none(optional)
    metadata = app_metadata(dict(interrupt.metadata))
    # the protocol has one word for a tool and an approval: what is read back may differ
    difference = find_difference(
        interrupt, _read_agui_interrupt({**fields, "metadata": metadata}, call)
    )
    extras = _interrupt_extras(interrupt, difference)
    return {**fields, **dump_metadata(metadata, extras)}


def _interrupt_extras(interrupt: Interrupt, difference: Json) -> Json:
    """Returns the extras of an interrupt: what its reader would miss, and what the AG-UI answer
    must bring back."""
    returned: Json = {}
    # clients send an answer's metadata back as they got the interrupt's
    if interrupt.signature:
        returned["signature"] = interrupt.signature
    if "metadata" in difference and interrupt.metadata:
        returned["metadata"] = dict(interrupt.metadata)
    extras = {"interrupt": difference, "resume": returned}
    return {name: value for name, value in extras.items() if value}


def _read_agui_interrupt(fields: JsonMap, call: ToolCallPart | None) -> Interrupt:
    """Returns an interrupt as AG-UI defines it."""
    reason: Reason = _READ.get(if_text(fields.get("reason")), "input")
    schema = if_object(fields.get("responseSchema")) or None
    is_approval = reason == "approval"
    editable = is_approval and "arguments" in if_object(if_object(schema).get("properties"))
    return Interrupt(
        if_text(fields.get("id")),
        reason,
        call=call,
        message=if_text(fields.get("message")) or None,
        schema=None if is_approval else schema,
        expires_at=_read_time(fields.get("expiresAt")),
        editable=editable,
        metadata=app_metadata(fields.get("metadata")),
    )


def _read_time(value: Any) -> datetime | None:
    """Returns the time at which an AG-UI interrupt expires, or None if it is no valid one."""
    try:
        return msgspec.convert(value, datetime)
    except (msgspec.ValidationError, ValueError):
        return None


def load_resume(entries: Any) -> tuple[Resume, ...]:
    """Returns the AG-UI answers in the field `resume`.

    An answer to an approval is an object with `approved`; anything else is a value.

    Raises:
        HistoryError: an answer does not name its interrupt.
    """
    answers = [rename_fields(if_object(entry)) for entry in if_list(entries)]
    for index, answer in enumerate(answers):
        if not isinstance(answer.get("interruptId"), str):
            raise HistoryError(
                f"resume[{index}] of a RunAgentInput is an object with the interruptId that it answers, a text"
            )
    return tuple([_read_answer(answer) for answer in answers])


def _read_answer(entry: JsonMap) -> Resume:
    """Returns an element of `resume` as an AG-UI answer."""
    extras = load_extras(entry.get("metadata"))
    returned = if_object(extras.get("resume"))
    payload = entry.get("payload")
    fields = if_object(payload)
    is_cancelled = entry.get("status") == "cancelled"
    # an answer is an object with `approved` or with `value`; clients send bare values too
    is_answer = isinstance(fields.get("approved"), bool) or set(fields) == {_VALUE}
    answer = Resume(
        entry["interruptId"],
        "cancelled" if is_cancelled else "resolved",
        payload if is_cancelled or is_answer else {_VALUE: payload},
        if_text(returned.get("signature")) or None,
        if_object(returned.get("metadata")) or app_metadata(entry.get("metadata")),
    )
    return apply_difference(answer, extras.get("answer"), Resume)


def dump_resume(answers: Iterable[Resume]) -> list[Json]:
    """Returns the field `resume`."""
    return [_dump_answer(answer) for answer in answers]


def _dump_answer(answer: Resume) -> Json:
    """Returns an element of `resume` for an AG-UI answer."""
    entry: Json = {"interruptId": answer.interrupt_id, "status": answer.status}
    if answer.payload is not None:
        entry["payload"] = answer.payload
    metadata = app_metadata(dict(answer.metadata))
    extras: Json = {}
    if answer.signature:
        extras["resume"] = {"signature": answer.signature}
    read = _read_answer({**entry, **dump_metadata(metadata, extras)})
    if difference := find_difference(answer, read):
        extras["answer"] = difference
    return {**entry, **dump_metadata(metadata, extras)}
