"""Makes the results of calls that a run waited for, as a person or a client answered."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.errors import ResumeError
from dragoman.interrupt import Resume
from dragoman.message import ToolCallPart, ToolResultPart
from dragoman.tools.tool_result import success_result

__all__ = [
    "UNKNOWN_OUTCOME",
    "make_denial",
    "make_resumed_result",
    "make_undone",
    "make_unknown_result",
]

UNKNOWN_OUTCOME = (
    "outcome unknown: this call was allowed and begun before, and nobody knows how it ended; it was not run again. "
    "Find out what it did before it is called once more"
)
"""The error that stands in for the result of a call that may have acted."""


def make_unknown_result(call: ToolCallPart) -> ToolResultPart:
    """Returns the result of a call of which nobody knows what it did."""
    return ToolResultPart(call.id, call.name, {"error": UNKNOWN_OUTCOME}, is_error=True)


def make_denial(call: ToolCallPart, reason: Any) -> ToolResultPart:
    """Returns the result of a denied call."""
    message = f"denied: {reason or 'somebody decided that this call is not to be run'}"
    return ToolResultPart(call.id, call.name, {"error": message}, is_error=True, denied=True)


def make_undone(call: ToolCallPart, reason: Any) -> ToolResultPart:
    """Returns the result of a resumed run's call that a person knows to have done nothing."""
    message = (
        f"not carried out: {reason or 'the process that ran the call ended before it did anything'}"
    )
    return ToolResultPart(call.id, call.name, {"error": message}, is_error=True)


def make_resumed_result(call: ToolCallPart, resume: Resume, value: Any) -> ToolResultPart:
    """Returns a resume's value as the result of its call."""
    if isinstance(value, ToolResultPart):
        return msgspec.structs.replace(value, id=call.id, name=call.name)
    try:
        return success_result(call, value).part
    except Exception as error:
        raise ResumeError(
            f"the answer to {resume.interrupt_id!r} is no JSON value: {error}"
        ) from error
