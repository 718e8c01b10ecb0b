"""What the wires of Anthropic, Cohere and Ollama say of themselves: their name, and the defaults of
their record of differences."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import wires
from dragoman.codec.efforts import TOKENS
from dragoman.codec.fit_ids import CALL_IDS, TOOL_NAMES
from dragoman.message import Message

DEFAULTS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "reads": (),
        "max_tokens": None,
        "budgets": TOKENS,
        "profile": None,
        "unsigned_thinking": False,
        "in_path": False,
        "server_tools": {
            "code_execution": "code_execution_20250825",
            "computer_use": "computer_20251124",
            "mcp": "mcp_toolset",
            "memory": "memory_20250818",
            "tool_search": "tool_search_tool_bm25_20251119",
            "web_fetch": "web_fetch_20250910",
            "web_search": "web_search_20250305",
        },
        "betas": {
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
        },
        "opening": ".",
        "ids": CALL_IDS,
        "names": TOOL_NAMES,
    },
    "cohere": {"reads": (), "budgets": {effort: tokens for effort, tokens in TOKENS.items() if effort != "high"}, "ids": CALL_IDS, "names": TOOL_NAMES},
    "ollama": {"reads": (), "levels": ("gpt-oss",)},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_a_wire_is_known_by_its_name_and_its_record_does_not_change(name: str) -> None:
    wire: Any = wires.get(name)
    quirks = wire.Quirks()
    assert {field: getattr(quirks, field) for field in quirks.__struct_fields__} == DEFAULTS[name]
    with pytest.raises(AttributeError):
        quirks.reads = ("x",)
    with pytest.raises(TypeError):
        wire.Quirks(("x",))
    assert all(not isinstance(value, dict) for value in msgspec.structs.asdict(quirks).values())
    assert wire.name == name
    payload: Any = [{"role": "user", "content": "a", "own": 1}]
    (message,) = wire.load_messages({"messages": payload} if name == "anthropic" else payload)
    assert message == Message.user("a").replace(native={name: {"own": 1}})
