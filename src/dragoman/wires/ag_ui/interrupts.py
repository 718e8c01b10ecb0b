"""What a run waits for and the answers to it: `interrupts` of a run's outcome, `resume` of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dragoman.codec.carried import changed, difference
from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import HistoryError
from dragoman.interrupt import Interrupt, Reason, Resume
from dragoman.message import ToolCallPart
from dragoman.wires.ag_ui.quirks import metadata_of, others, renamed, unpacked

__all__ = ["dump_interrupt", "dump_resume", "load_interrupt", "load_resume"]

_REASONS: Mapping[Reason, str] = {
    "tool": "tool_call",
    "approval": "tool_call",
    "input": "input_required",
    "auth": "a2a:auth_required",
}
_READ: Mapping[str, Reason] = {
    "tool_call": "approval",
    "input_required": "input",
    "confirmation": "input",
    "a2a:auth_required": "auth",
    "auth_required": "auth",
}
_APPROVAL: Mapping[str, Any] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
"""What is answered to an approval."""
_EDITED = {**_APPROVAL, "properties": {**_APPROVAL["properties"], "arguments": {"type": "object"}}}
_VALUE = "value"


def load_interrupt(fields: Mapping[str, Any], call: ToolCallPart | None = None) -> Interrupt:
    """An interrupt of theirs → ours. `call`: the one that it names, where that is known."""
    held = unpacked(fields.get("metadata"))
    return changed(_read(fields, call), held.get("interrupt"), Interrupt)


def dump_interrupt(interrupt: Interrupt, call_id: str | None = None) -> dict[str, Any]:
    """The inverse. `call_id`: under which the protocol knows its call."""
    approval = interrupt.reason == "approval"
    schema = interrupt.schema if not approval else _EDITED if interrupt.editable else _APPROVAL
    call = interrupt.call
    fields: dict[str, Any] = {"id": interrupt.id, "reason": _REASONS[interrupt.reason]}
    given = {
        "message": interrupt.message,
        "toolCallId": (call_id or call.id or None) if call else None,
        "responseSchema": None if schema is None else dict(schema),
        "expiresAt": None if interrupt.expires_at is None else interrupt.expires_at.isoformat(),
    }
    fields |= {name: value for name, value in given.items() if value is not None}
    shown = {
        key: value for key, value in interrupt.metadata.items() if key not in ("dragoman", "ag-ui")
    }
    read = _read({**fields, "metadata": shown}, call)
    more = difference(interrupt, read)
    held: dict[str, Any] = {"interrupt": more} if more else {}
    back = {
        "signature": interrupt.signature,
        "metadata": dict(interrupt.metadata) if "metadata" in more else None,
    }
    if any(back.values()):
        held["resume"] = {name: value for name, value in back.items() if value}
    return {**fields, **metadata_of(shown, held)}


def _read(fields: Mapping[str, Any], call: ToolCallPart | None) -> Interrupt:
    reason: Reason = _READ.get(if_text(fields.get("reason")), "input")
    schema = if_object(fields.get("responseSchema")) or None
    editable = reason == "approval" and "arguments" in if_object(
        if_object(schema).get("properties")
    )
    return Interrupt(
        if_text(fields.get("id")),
        reason,
        call=call,
        message=if_text(fields.get("message")) or None,
        schema=None if reason == "approval" else schema,
        expires_at=_time(fields.get("expiresAt")),
        editable=editable,
        metadata=others(fields.get("metadata")),
    )


def _time(value: Any) -> datetime | None:
    try:
        return msgspec.convert(value, datetime)
    except (msgspec.ValidationError, ValueError):
        return None


def load_resume(entries: Any) -> tuple[Resume, ...]:
    """The field `resume` → answers. One to an approval is an object with `approved`; anything else is a value.

    Raises:
        HistoryError: one does not say what it answers.
    """
    listed = [renamed(if_object(entry)) for entry in if_list(entries)]
    for place, entry in enumerate(listed):
        if not isinstance(entry.get("interruptId"), str):
            raise HistoryError(
                f"resume[{place}] of a RunAgentInput is an object with the interruptId that it answers, a text"
            )
    return tuple([_resume(entry) for entry in listed])


def _resume(entry: Mapping[str, Any]) -> Resume:
    held = unpacked(entry.get("metadata"))
    back = if_object(held.get("resume"))
    metadata = if_object(back.get("metadata")) or others(entry.get("metadata"))
    payload = entry.get("payload")
    cancelled = entry.get("status") == "cancelled"
    given = if_object(payload)
    if not cancelled and not isinstance(given.get("approved"), bool) and set(given) != {_VALUE}:
        payload = {_VALUE: payload}
    made = Resume(
        entry["interruptId"],
        "cancelled" if cancelled else "resolved",
        payload,
        if_text(back.get("signature")) or None,
        metadata,
    )
    return changed(made, held.get("answer"), Resume)


def dump_resume(answers: Iterable[Resume]) -> list[dict[str, Any]]:
    """The inverse."""
    return [_dumped(answer) for answer in answers]


def _dumped(answer: Resume) -> dict[str, Any]:
    payload: Any = answer.payload
    entry: dict[str, Any] = {"interruptId": answer.interrupt_id, "status": answer.status}
    if payload is not None:
        entry["payload"] = payload
    shown = {
        key: value for key, value in answer.metadata.items() if key not in ("dragoman", "ag-ui")
    }
    held: dict[str, Any] = {"resume": {"signature": answer.signature}} if answer.signature else {}
    read = _resume({**entry, **metadata_of(shown, held)})
    if more := difference(answer, read):
        held["answer"] = more
    return {**entry, **metadata_of(shown, held)}
