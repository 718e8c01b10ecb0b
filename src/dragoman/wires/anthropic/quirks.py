"""How vendors and models that speak this wire differ, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from dragoman.codec.efforts import TOKENS
from dragoman.codec.fit_ids import CALL_IDS, TOOL_NAMES, NameRule
from dragoman.codec.native import WireNative
from dragoman.model_profile import ModelProfile
from dragoman.request import Effort

__all__ = ["NAME", "OWN", "Quirks"]

NAME = "anthropic"

OWN = WireNative(NAME)
"""Its part of `native`."""

_SERVER_TOOLS = {
    "code_execution": "code_execution_20250825",
    "computer_use": "computer_20251124",
    "mcp": "mcp_toolset",
    "memory": "memory_20250818",
    "tool_search": "tool_search_tool_bm25_20251119",
    "web_fetch": "web_fetch_20250910",
    "web_search": "web_search_20250305",
}
_BETAS = {
    "advisor_20260301": "advisor-tool-2026-03-01",
    "block_binding": "thinking-binding-controls-2026-08-01",
    "code_execution_20250522": "code-execution-2025-05-22",
    "code_execution_20250825": "code-execution-2025-08-25",
    "compact_20260112": "compact-2026-01-12",
    "clear_thinking_20251015": "context-management-2025-06-27",
    "clear_tool_uses_20250919": "context-management-2025-06-27",
    "computer_20241022": "computer-use-2024-10-22",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
    "container_upload": "files-api-2025-04-14",
    "file": "files-api-2025-04-14",
    "mcp_servers": "mcp-client-2025-04-04",
    "mcp_toolset": "mcp-client-2025-11-20",
    "memory_20250818": "context-management-2025-06-27",
    "output_format": "structured-outputs-2025-11-13",
    "task_budget": "task-budgets-2026-03-13",
    "tool_addition": "mid-conversation-tool-changes-2026-07-01",
    "tool_definition": "inline-tools-2026-09-15",
    "tool_removal": "mid-conversation-tool-changes-2026-07-01",
    "web_fetch_20250910": "web-fetch-2025-09-10",
}


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """How an endpoint of the Messages API differs. The defaults are Anthropic's own API."""

    reads: tuple[str, ...] = ()
    """The names of other providers whose signed content the endpoint reads. Anthropic reads only
    its own."""
    max_tokens: int | None = None
    """The token limit to send when the request has none, since the API requires a number. `None`:
    the most that the model's answers may have, or 32,768."""
    budgets: Mapping[Effort, int] = TOKENS
    """Each effort with its tokens of thinking, for models that take a budget. Anthropic's least is
    1,024."""
    profile: ModelProfile | None = None
    """What is known of the requested model. `None`: nothing."""
    unsigned_thinking: bool = False
    """True if thinking without a signature may be sent (llama.cpp, DeepSeek and others that sign
    nothing)."""
    server_tools: Mapping[str, str] = MappingProxyType(_SERVER_TOOLS)
    """The name of a tool that the provider runs, with the version to ask for."""
    betas: Mapping[str, str] = MappingProxyType(_BETAS)
    """Something in a request (a type of tool, block, source or edit, a field) → the value of
    `anthropic-beta` that it needs."""
    in_path: bool = False
    """True if the model stands in the path and the version of the API in the body (Vertex AI)."""
    opening: str = "."
    """The user text to send before a conversation that begins with the model. Some endpoints do not
    accept such a conversation."""
    ids: NameRule = CALL_IDS
    """The ids of tool calls that the endpoint accepts."""
    names: NameRule = TOOL_NAMES
    """The names of tools that the endpoint accepts."""
