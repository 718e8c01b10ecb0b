"""Tools: what they are (`Tool`, `tool`), what they know (`ToolContext`) and how they are run
(`ToolExecutor`)."""

from __future__ import annotations

from dragoman.tools.agent_tool import Handoff, handoff
from dragoman.tools.call_ids import (
    ToolIdCoordinator,
    assign_tool_call_ids,
    check_tool_ids,
    generate_tool_call_id,
    is_valid_tool_call_id,
)
from dragoman.tools.call_record import AskUser, SignIn
from dragoman.tools.context import PRELIMINARY, PROGRESS, ToolContext
from dragoman.tools.definition import FunctionTool, Tool, tool, tool_map
from dragoman.tools.executor import BoundExecutor, ParallelToolExecutor, Report, ToolExecutor
from dragoman.tools.outbox import Emission, Outbox
from dragoman.tools.shared_state import SharedState
from dragoman.tools.tool_result import ToolExecutionResult
from dragoman.tools.toolsets import CombinedToolset, Toolset, split_tools, toolset

__all__ = [
    "AskUser",
    "BoundExecutor",
    "CombinedToolset",
    "Emission",
    "FunctionTool",
    "Handoff",
    "Outbox",
    "PRELIMINARY",
    "PROGRESS",
    "ParallelToolExecutor",
    "Report",
    "SharedState",
    "SignIn",
    "Tool",
    "ToolContext",
    "ToolExecutionResult",
    "ToolExecutor",
    "ToolIdCoordinator",
    "Toolset",
    "assign_tool_call_ids",
    "check_tool_ids",
    "generate_tool_call_id",
    "handoff",
    "is_valid_tool_call_id",
    "split_tools",
    "tool",
    "tool_map",
    "toolset",
]
