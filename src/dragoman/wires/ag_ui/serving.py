"""What a server of AG-UI answers beside runs: what an agent can do, and the schema of what clients
send."""

from __future__ import annotations

from dragoman.codec.agent_card import Abilities, AgentCard
from dragoman.codec.body_schema import TEXT, JsonSchema, any_of, list_schema, object_schema
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import ToolSpec

__all__ = ["bodies", "dump_capabilities"]

_ANY: JsonSchema = {}
_SOURCE = any_of(
    object_schema({"type": {"const": "url"}, "value": TEXT}, mimeType=TEXT),
    object_schema({"type": {"const": "data"}, "value": TEXT, "mimeType": TEXT}),
)
_PIECE = any_of(
    object_schema({"type": {"const": "text"}, "text": TEXT}),
    object_schema({"type": {"enum": ["image", "audio", "document"]}, "source": _SOURCE}),
)
_CALL = object_schema(
    {
        "id": TEXT,
        "type": {"const": "function"},
        "function": object_schema({"name": TEXT, "arguments": TEXT}),
    }
)
_MESSAGE = any_of(
    object_schema(
        {
            "id": TEXT,
            "role": {"const": "user"},
            "content": any_of(TEXT, list_schema(_PIECE, least=1)),
        }
    ),
    object_schema(
        {
            "id": TEXT,
            "role": {"enum": ["system", "developer"]},
            "content": TEXT,
        }
    ),
    object_schema(
        {"id": TEXT, "role": {"const": "assistant"}}, content=TEXT, toolCalls=list_schema(_CALL)
    ),
    object_schema(
        {
            "id": TEXT,
            "role": {"const": "tool"},
            "toolCallId": TEXT,
            "content": TEXT,
        }
    ),
)
_INPUT = object_schema(
    {"threadId": TEXT, "runId": TEXT, "messages": list_schema(_MESSAGE)},
    tools=list_schema(
        object_schema({"name": TEXT, "description": TEXT}, parameters={"type": "object"})
    ),
    context=list_schema(object_schema({"description": TEXT, "value": TEXT})),
    state=_ANY,
    forwardedProps=_ANY,
    parentRunId=TEXT,
    resume=list_schema(
        object_schema(
            {"interruptId": TEXT, "status": {"enum": ["resolved", "cancelled"]}}, payload=_ANY
        )
    ),
)
bodies: JsonMap = {"/ag-ui": _INPUT, "/ag-ui/{model}": _INPUT}
"""Path → JSON Schema of the body."""


def dump_capabilities(card: AgentCard, abilities: Abilities) -> Json:
    """Returns what an agent can do, as AG-UI's `AgentCapabilities`."""
    named = {
        "description": card.description,
        "version": card.version,
        "provider": card.organization,
        "documentationUrl": card.documentation_url,
    }
    agents = (*abilities.agents, *abilities.successors)
    thinks = abilities.thinking
    return {
        "identity": {
            "name": card.name,
            "type": "dragoman",
            **{name: text for name, text in named.items() if text},
        },
        "transport": {
            "streaming": True,
            "resumable": abilities.resumable,
            "pushNotifications": False,
        },
        "tools": {
            "supported": bool(abilities.tools) or abilities.client_tools,
            "items": [_dump_capability_tool(tool) for tool in abilities.tools],
            "parallelCalls": abilities.parallel_tools,
            "clientProvided": abilities.client_tools,
        },
        "output": {"structuredOutput": False},
        "state": {
            "snapshots": True,
            "deltas": True,
            "memory": abilities.memory,
            "persistentState": abilities.memory,
        },
        "multiAgent": {
            "supported": bool(agents),
            "delegation": bool(abilities.agents),
            "handoffs": bool(abilities.successors),
            "subagents": [
                {"name": agent.name, "description": agent.description} for agent in agents
            ],
        },
        "reasoning": {
            "supported": thinks,
            "streaming": thinks,
            "encrypted": thinks,
        },
        "multimodal": {
            "input": {
                "image": abilities.images,
                "audio": abilities.audio,
                "video": False,
                "pdf": abilities.files,
                "file": abilities.files,
            },
            "output": {"image": abilities.makes_media, "audio": abilities.makes_media},
        },
        "humanInTheLoop": {
            "supported": abilities.approvals or abilities.client_tools,
            "approvals": abilities.approvals,
            "interrupts": True,
            "approveWithEdits": abilities.edits,
        },
    }


def _dump_capability_tool(tool: ToolSpec) -> Json:
    """Returns an agent's tool as an entry of AG-UI's capabilities."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.input_schema),
    }
