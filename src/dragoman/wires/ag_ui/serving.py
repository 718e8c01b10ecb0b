"""What a server of AG-UI answers beside runs: what an agent can do, and the schema of what clients send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.codec.body_schema import TEXT, JsonSchema, a_list, an_object, either
from dragoman.request import ToolSpec

__all__ = ["bodies", "dump_capabilities"]

_ANY: JsonSchema = {}
_SOURCE = either(
    an_object({"type": {"const": "url"}, "value": TEXT}, mimeType=TEXT),
    an_object({"type": {"const": "data"}, "value": TEXT, "mimeType": TEXT}),
)
_PIECE = either(
    an_object({"type": {"const": "text"}, "text": TEXT}),
    an_object({"type": {"enum": ["image", "audio", "document"]}, "source": _SOURCE}),
)
_CALL = an_object({"id": TEXT, "type": {"const": "function"}, "function": an_object({"name": TEXT, "arguments": TEXT})})
_MESSAGE = either(
    an_object({"id": TEXT, "role": {"const": "user"}, "content": either(TEXT, a_list(_PIECE, least=1))}),
    an_object({"id": TEXT, "role": {"enum": ["system", "developer"]}, "content": TEXT}),
    an_object({"id": TEXT, "role": {"const": "assistant"}}, content=TEXT, toolCalls=a_list(_CALL)),
    an_object({"id": TEXT, "role": {"const": "tool"}, "toolCallId": TEXT, "content": TEXT}),
)
_INPUT = an_object(
    {"threadId": TEXT, "runId": TEXT, "messages": a_list(_MESSAGE)},
    tools=a_list(an_object({"name": TEXT, "description": TEXT}, parameters={"type": "object"})),
    context=a_list(an_object({"description": TEXT, "value": TEXT})),
    state=_ANY,
    forwardedProps=_ANY,
    parentRunId=TEXT,
    resume=a_list(an_object({"interruptId": TEXT, "status": {"enum": ["resolved", "cancelled"]}}, payload=_ANY)),
)
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
