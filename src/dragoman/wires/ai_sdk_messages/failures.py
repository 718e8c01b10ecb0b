"""Calls that failed or were refused: their results ↔ the states and fields that parts of tools have for them."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.codec.json_values import if_object, if_text, text_or_json
from dragoman.message import ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.outputs import plain_output
from dragoman.wires.ai_sdk_messages.reading import Fields, text_field

__all__ = [
    "DENIED",
    "denial",
    "denial_reason",
    "dump_failure",
    "load_failure",
    "refused",
    "unread_result",
]

DENIED = "denied: somebody decided that this call is not to be run"


def load_failure(
    fields: Fields, call: ToolCallPart, state: str, where: str
) -> ToolResultPart | None:
    """The result of a call whose state says that it failed or was refused; `None`: it says something else."""
    if state == "output-error":
        return ToolResultPart(
            call.id, call.name, text_field(fields, "errorText", where), True, run_by=call.run_by
        )
    if state == "output-denied":
        result, is_error = denial(if_text(if_object(fields.get("approval")).get("reason")))
        return ToolResultPart(call.id, call.name, result, is_error, run_by=call.run_by, denied=True)
    return None


def dump_failure(result: ToolResultPart) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inverse: the fields of a part, and those of the result that are not read again from them."""
    if result.denied:
        is_read = denial(denial_reason(result)) == (result.result, result.is_error)
        unread = (
            {}
            if is_read
            else {"result": msgspec.to_builtins(result.result), "is_error": result.is_error}
        )
        return {"state": "output-denied"}, unread
    is_read = isinstance(result.result, str)
    unread = (
        {}
        if is_read
        else {"result": msgspec.to_builtins(result.result), "is_content": result.is_content}
    )
    return {"state": "output-error", "errorText": text_or_json(plain_output(result))}, unread


def unread_result(result: ToolResultPart, call: ToolCallPart) -> dict[str, Any]:
    """The fields of a result that are not those of its call."""
    fields: dict[str, Any] = {}
    if result.name != call.name:
        fields["name"] = result.name
    if result.run_by != call.run_by:
        fields["run_by"] = result.run_by
    return fields


def denial(reason: Any) -> tuple[Any, bool]:
    """What the model is told of a call that somebody refused, and that it is an error."""
    return {"error": f"denied: {reason}" if reason else DENIED}, True


def denial_reason(result: ToolResultPart) -> str | None:
    """The inverse: the reason that was given, where it is one."""
    words = if_text(if_object(result.result).get("error"))
    return (
        words.removeprefix("denied: ") if words != DENIED and words.startswith("denied: ") else None
    )


def refused(id_: str, reason: Any) -> dict[str, Any]:
    """The approval of a call that somebody refused, where nothing else is known of it."""
    return {"id": id_, "approved": False, **({"reason": reason} if reason else {})}
