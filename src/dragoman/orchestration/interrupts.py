"""What a conversation waits for."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.interrupt import Interrupt
from dragoman.message import ToolCallPart
from dragoman.tools import Tool

__all__ = ["waiting_for"]


def waiting_for(call: ToolCallPart, tools: Mapping[str, Tool]) -> Interrupt:
    """What a call waits for that is not to be run now."""
    tool = tools.get(call.name)
    return Interrupt(call.id, "tool" if tool is None or tool.handler is None else "approval", call)
