"""What a server of A2A answers beside tasks: the card that says what an agent can do, and the JSON
Schemas of what clients send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.agent_card import Abilities, AgentCard, Skill
from dragoman.codec.body_schema import BOOLEAN, TEXT, JsonSchema, any_of, list_schema, object_schema
from dragoman.json_bytes import Json, JsonMap
from dragoman.wires.a2a.quirks import EXTENSION, VERSION

__all__ = ["CARD_PATH", "MEDIA_TYPES", "bodies", "dump_card"]

CARD_PATH = "/.well-known/agent-card.json"
"""Path of the agent card, at the root of a host."""
MEDIA_TYPES = ("application/json", "application/a2a+json")
"""Media types that clients may send."""
_BINDINGS: Mapping[str, str] = {
    "jsonrpc": "JSONRPC",
    "rest": "HTTP+JSON",
    "grpc": "GRPC",
}
_TEXT_MODES = ("text/plain", "application/json")


def dump_card(
    card: AgentCard,
    abilities: Abilities,
    interfaces: Mapping[str, str],
    *,
    extended: bool = False,
    security: JsonMap = {},
) -> Json:
    """Returns an A2A agent card as JSON.

    Args:
        card: name, description and other texts.
        abilities: what the agent can do.
        interfaces: binding (`jsonrpc`, `rest`, `grpc`) → its URL, the preferred one first.
        extended: True if callers with a key may ask for an extended card.
        security: name → security scheme, each of which is required.
    """
    # Clients that do not know the extension lose nothing that the protocol has.
    extension = {
        "uri": EXTENSION,
        "description": "Messages and runs, exactly",
        "required": False,
    }
    skills, inputs, outputs = card.skills, card.input_modes, card.output_modes
    if skills is None:
        skills = _default_skills(card, abilities)
    if inputs is None:
        inputs = _default_inputs(abilities)
    if outputs is None:
        outputs = _default_outputs(abilities)
    dumped: Json = {
        "name": card.name,
        "description": card.description or card.name,
        "version": card.version,
        "supportedInterfaces": [
            {
                "url": url,
                "protocolBinding": _BINDINGS[binding],
                "protocolVersion": VERSION,
            }
            for binding, url in interfaces.items()
        ],
        "capabilities": {
            "streaming": True,
            "pushNotifications": abilities.push,
            "extendedAgentCard": extended,
            "extensions": [extension],
        },
        "defaultInputModes": list(inputs),
        "defaultOutputModes": list(outputs),
        "skills": [_dump_skill(skill) for skill in skills],
    }
    if card.organization:
        dumped["provider"] = {"organization": card.organization, "url": card.organization_url}
    addresses = {"iconUrl": card.icon_url, "documentationUrl": card.documentation_url}
    dumped |= {name: url for name, url in addresses.items() if url}
    if security:
        required: list[Any] = [{"schemes": {scheme: {"list": []}}} for scheme in security]
        dumped |= {"securitySchemes": dict(security), "securityRequirements": required}
    return dumped


def _default_inputs(abilities: Abilities) -> list[str]:
    """Returns the media types that an A2A agent reads."""
    modes = {
        "image/*": abilities.images,
        "audio/*": abilities.audio,
        "application/pdf": abilities.files,
    }
    return [*_TEXT_MODES, *[mode for mode, is_read in modes.items() if is_read]]


def _default_outputs(abilities: Abilities) -> list[str]:
    """Returns the media types that an A2A agent writes."""
    if abilities.makes_media:
        return [*_TEXT_MODES, "image/*"]
    return [*_TEXT_MODES]


def _default_skills(card: AgentCard, abilities: Abilities) -> list[Skill]:
    """Returns a skill for the chat itself, and one for each tool and each A2A agent behind it."""
    description = card.description or f"Talks with {card.name}"
    specs = {"tool": abilities.tools, "agent": (*abilities.agents, *abilities.successors)}
    return [
        Skill(
            id="chat",
            name=card.name,
            description=description,
            tags=("chat",),
        ),
        *[
            Skill(id=spec.name, description=spec.description, tags=(tag,))
            for tag, tagged in specs.items()
            for spec in tagged
        ],
    ]


def _dump_skill(skill: Skill) -> Json:
    """Returns a skill of an A2A agent card."""
    name = skill.name or skill.id
    dumped: Json = {
        "id": skill.id,
        "name": name,
        "description": skill.description or name,
        "tags": list(skill.tags),
    }
    if skill.examples:
        return {**dumped, "examples": list(skill.examples)}
    return dumped


_COUNT: JsonSchema = {"type": "integer", "minimum": 0, "maximum": 100}
_ANY: JsonSchema = {"type": "object"}
_STATUS: JsonSchema = {
    "enum": [
        f"TASK_STATE_{state}"
        for state in ("WORKING", "INPUT_REQUIRED", "COMPLETED", "FAILED", "CANCELED")
    ]
}
_PART = any_of(
    object_schema({"text": TEXT}, metadata=_ANY),
    object_schema({"url": TEXT}, mediaType=TEXT, filename=TEXT),
    object_schema(
        {"raw": {"type": "string", "contentEncoding": "base64"}}, mediaType=TEXT, filename=TEXT
    ),
    object_schema({"data": {}}, metadata=_ANY),
)
_MESSAGE = object_schema(
    {
        "messageId": TEXT,
        "role": {"const": "ROLE_USER"},
        "parts": list_schema(_PART, least=1),
    },
    contextId=TEXT,
    taskId=TEXT,
    metadata=_ANY,
    extensions=list_schema(TEXT),
    referenceTaskIds=list_schema(TEXT),
)
_AUTHENTICATION = object_schema({"scheme": TEXT}, credentials=TEXT)
_PUSH = object_schema(
    {"url": TEXT},
    id=TEXT,
    token=TEXT,
    authentication=_AUTHENTICATION,
)
_CONFIGURATION = object_schema(
    acceptedOutputModes=list_schema(TEXT),
    historyLength=_COUNT,
    returnImmediately=BOOLEAN,
    taskPushNotificationConfig=_PUSH,
)
_SEND = object_schema({"message": _MESSAGE}, configuration=_CONFIGURATION, metadata=_ANY)
_TASK = object_schema({"id": TEXT}, historyLength=_COUNT)
_LIST = object_schema(
    contextId=TEXT,
    status=_STATUS,
    pageSize={"type": "integer", "minimum": 1, "maximum": 100},
    pageToken=TEXT,
    historyLength=_COUNT,
    includeArtifacts=BOOLEAN,
    statusTimestampAfter={"type": "string", "format": "date-time"},
)
_OF_TASK = {"taskId": TEXT, "id": TEXT}
_PARAMS: Mapping[str, JsonSchema] = {
    "SendMessage": _SEND,
    "SendStreamingMessage": _SEND,
    "GetTask": _TASK,
    "ListTasks": _LIST,
    "CancelTask": object_schema({"id": TEXT}, metadata=_ANY),
    "SubscribeToTask": object_schema({"id": TEXT}),
    "CreateTaskPushNotificationConfig": object_schema(
        {"taskId": TEXT, "url": TEXT}, id=TEXT, token=TEXT, authentication=_AUTHENTICATION
    ),
    "GetTaskPushNotificationConfig": object_schema(_OF_TASK),
    "ListTaskPushNotificationConfigs": object_schema({"taskId": TEXT}),
    "DeleteTaskPushNotificationConfig": object_schema(_OF_TASK),
    "GetExtendedAgentCard": _ANY,
}
"""JSON-RPC method → schema of its parameters."""


def _rpc_schema(method: str, params: JsonSchema) -> JsonSchema:
    """Returns the schema of a JSON-RPC request for a method that an A2A server offers."""
    id_: JsonSchema = {"type": ["string", "integer", "null"]}
    return object_schema(
        {
            "jsonrpc": {"const": "2.0"},
            "id": id_,
            "method": {"const": method},
            "params": params,
        }
    )


_OLD_PART = any_of(
    object_schema({"text": TEXT}),
    object_schema({"file": object_schema(fileWithUri=TEXT, mimeType=TEXT)}),
)
_OLD_MESSAGE = object_schema(
    {
        "messageId": TEXT,
        "role": {"const": "ROLE_USER"},
        "content": list_schema(_OLD_PART, least=1),
    },
    contextId=TEXT,
)
_RPC = any_of(*[_rpc_schema(method, params) for method, params in _PARAMS.items()])
_AT: Mapping[str, JsonSchema] = {
    "": _RPC,
    "/": _RPC,
    "/message:send": _SEND,
    "/message:stream": _SEND,
    "/v1/message:send": object_schema({"request": _OLD_MESSAGE}, configuration=_ANY),
    "/v1/message:stream": object_schema({"request": _OLD_MESSAGE}, configuration=_ANY),
    "/tasks/{id}/pushNotificationConfigs": _PUSH,
}
bodies: Mapping[str, JsonSchema] = {
    root + path: schema for root in ("/a2a", "/a2a/agents/{model}") for path, schema in _AT.items()
}
"""Path → JSON Schema of the body. Other paths need none."""
