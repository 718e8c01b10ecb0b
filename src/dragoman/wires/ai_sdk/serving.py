"""What a server of UI message streams answers beside runs."""

from __future__ import annotations

from dragoman.codec.agent_card import Abilities, AgentCard
from dragoman.codec.body_schema import TEXT, JsonSchema, any_of, list_schema, object_schema
from dragoman.json_bytes import Json, JsonMap

__all__ = ["bodies", "dump_capabilities", "nothing_runs"]

nothing_runs = 204
"""HTTP status for a client that resumes a stream when nothing is running."""
_STATE: JsonSchema = {"enum": ["input-available", "output-available", "output-error"]}
_PART = any_of(
    object_schema({"type": {"const": "text"}, "text": TEXT}),
    object_schema({"type": {"const": "file"}, "mediaType": TEXT, "url": TEXT}),
    object_schema({"type": {"const": "step-start"}}),
    object_schema(
        {
            "type": {"const": "tool-look"},
            "toolCallId": TEXT,
            "state": _STATE,
        },
        input={},
        output={},
    ),
)
_MESSAGE = object_schema(
    {
        "id": TEXT,
        "role": {"enum": ["user", "assistant", "system"]},
        "parts": list_schema(_PART),
    }
)
_TRIGGER: JsonSchema = {"enum": ["submit-message", "regenerate-message"]}
_INPUT = object_schema(
    {"id": TEXT, "messages": list_schema(_MESSAGE)}, trigger=_TRIGGER, messageId=TEXT
)
bodies: JsonMap = {
    "/ai-sdk": _INPUT,
    "/ai-sdk/{model}": _INPUT,
    "/ai-sdk/{model}/object": any_of(TEXT, object_schema({})),
}
"""Path → JSON Schema of the body."""


def dump_capabilities(card: AgentCard, abilities: Abilities) -> Json:
    """Returns what an agent can do. The protocol has no such answer; this one is dragoman's."""
    tools = [{"name": tool.name, "description": tool.description} for tool in abilities.tools]
    return {"name": card.name, "description": card.description, "tools": tools}
