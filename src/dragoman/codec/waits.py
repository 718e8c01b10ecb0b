"""What an agent that is asked like a model waits for stands on the calls of its message, and what it is answered on their results.

So a conversation that waits for somebody is whole in its messages: another process, on another day, can go on with it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.interrupt import Interrupt, Resume
from dragoman.message import NOTES, OURS, Native, ToolCallPart, ToolResultPart

__all__ = ["KEY", "answer_to", "answering", "interrupt_of", "waiting"]

KEY = OURS + NOTES
"""In `native`, under which it stands."""
_WAITS = "waits"
_ANSWERS = "answers"


def waiting(call: ToolCallPart, interrupt: Interrupt) -> ToolCallPart:
    """The call with what the agent wants before it goes on with it. A call that the client is to run may be run by any tool of that name;
    what else is waited for is the agent's own business."""
    held = msgspec.to_builtins(msgspec.structs.replace(interrupt, call=None))
    run_by = "agent" if interrupt.reason == "tool" else "client"
    return msgspec.structs.replace(call, run_by=run_by, native=_with(call.native, _WAITS, held))


def interrupt_of(call: ToolCallPart) -> Interrupt | None:
    """What the agent wants before it goes on with a call; `None`: it is a call like any other."""
    held = _held(call.native, _WAITS)
    try:
        read = msgspec.convert(held, Interrupt) if held else None
    except msgspec.ValidationError:
        return None
    return None if read is None else msgspec.structs.replace(read, call=call)


def answering(result: ToolResultPart, resume: Resume) -> ToolResultPart:
    """The result of such a call with what is answered to the agent."""
    return msgspec.structs.replace(
        result, native=_with(result.native, _ANSWERS, msgspec.to_builtins(resume))
    )


def answer_to(interrupt: Interrupt, result: ToolResultPart) -> Resume:
    """What a result answers to what its call waits for. One that says nothing of it, as repair makes them up, gives up."""
    held = _held(result.native, _ANSWERS)
    try:
        given = msgspec.convert(held, Resume) if held else Resume(interrupt.id, "cancelled")
    except msgspec.ValidationError:
        given = Resume(interrupt.id, "cancelled")
    return msgspec.structs.replace(
        given, interrupt_id=interrupt.id, signature=interrupt.signature, metadata=interrupt.metadata
    )


def _with(native: Native, key: str, value: Any) -> dict[str, Any]:
    return {**(native or {}), KEY: {**if_object((native or {}).get(KEY)), key: value}}


def _held(native: Native, key: str) -> dict[str, Any]:
    return if_object(if_object((native or {}).get(KEY)).get(key))
