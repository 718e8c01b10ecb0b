"""The answers that a client's copy of a conversation holds: calls that somebody has approved or denied there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.codec.json_values import if_text
from dragoman.history.format_fields import approval_of
from dragoman.interrupt import Resume
from dragoman.message import Message, ToolCallPart
from dragoman.repair import open_calls

__all__ = ["approvals"]


def approvals(
    copy: Iterable[Message], merged: Sequence[Message], stored: Iterable[Message]
) -> tuple[Resume, ...]:
    """The answers to calls that still wait in the merged conversation. Only to those that are stored: a call that the client alone knows is
    not allowed by the client."""
    answers = {
        call.id: answer
        for message in copy
        for call in message.tool_calls
        if (answer := _answer(call))
    }
    if not answers:
        return ()
    from dragoman.orchestration.interrupts import ids_of  # needed for answers only

    known = {call.id for message in stored for call in message.tool_calls}
    return tuple(
        [
            Resume(ids_of(merged, one)[0], payload=answers[one.call.id])
            for one in open_calls(merged)
            if one.call.id in answers and one.call.id in known
        ]
    )


def _answer(call: ToolCallPart) -> dict[str, Any]:
    """What somebody said of a call; empty: nothing."""
    approval = approval_of(call) or {}
    if not isinstance(approval.get("approved"), bool):
        return {}
    reason = if_text(approval.get("reason"))
    return {"approved": approval["approved"], **({"reason": reason} if reason else {})}
