"""What a conversation waits for."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.interrupt import Interrupt
from dragoman.message import ToolCallPart
from dragoman.tools import AskUser, Tool

__all__ = ["waiting_for"]


def waiting_for(call: ToolCallPart, tools: Mapping[str, Tool], ask: AskUser | None = None) -> Interrupt:
    """What a call waits for that is not to be run now, or whose tool asked for something first (`ask`)."""
    if ask is not None:
        return Interrupt(
            call.id, ask.reason, call, ask.message, ask.schema, ask.expires_at, metadata=dict(ask.metadata)
        )
    tool = tools.get(call.name)
    return Interrupt(call.id, "tool" if tool is None or tool.handler is None else "approval", call)
