"""What a server of AG-UI answers beside runs: what an agent can do, and the schema of what clients send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.codec.body_schema import TEXT, a_list, an_object
from dragoman.request import ToolSpec

__all__ = ["bodies", "dump_capabilities"]

_MESSAGE = an_object({"id": TEXT, "role": TEXT})
_INPUT = an_object({"threadId": TEXT, "runId": TEXT, "messages": a_list(_MESSAGE)})
bodies: Mapping[str, Any] = {"/ag-ui": _INPUT, "/ag-ui/{model}": _INPUT}
"""Path → JSON Schema of what clients send there."""


def dump_capabilities(
    name: str,
    *,
    description: str = "",
    tools: Sequence[ToolSpec] = (),
    typed: bool = False,
    thinking: bool = True,
    agents: Sequence[str] = (),
    approvals: bool = True,
) -> dict[str, Any]:
    """What an agent can do (`AgentCapabilities`). `agents`: names of those that it hands work to; `typed`: its output is held to a schema."""
    items = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)} for tool in tools
    ]
    return {
        "identity": {"name": name, "type": "dragoman", **({"description": description} if description else {})},
        "transport": {"streaming": True},
        "tools": {"supported": True, "items": items, "parallelCalls": True},
        "output": {"structuredOutput": typed},
        "state": {"snapshots": True, "deltas": True, "memory": True, "persistentState": True},
        "multiAgent": {"supported": bool(agents), "subagents": [{"name": agent} for agent in agents]},
        "reasoning": {"supported": thinking, "streaming": thinking, "encrypted": thinking},
        "humanInTheLoop": {"supported": True, "approvals": approvals},
    }
