"""JSON Schemas of what clients of A2A send, for the OpenAPI document of a server: what it must hold, not all it may."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codec.body_schema import BOOLEAN, TEXT, JsonSchema, a_list, an_object, either

__all__ = ["bodies"]

_COUNT: JsonSchema = {"type": "integer", "minimum": 0, "maximum": 100}
_ANY: JsonSchema = {"type": "object"}
_STATUS: JsonSchema = {
    "enum": [
        f"TASK_STATE_{each}"
        for each in ("WORKING", "INPUT_REQUIRED", "COMPLETED", "FAILED", "CANCELED")
    ]
}
_PART = either(
    an_object({"text": TEXT}, metadata=_ANY),
    an_object({"url": TEXT}, mediaType=TEXT, filename=TEXT),
    an_object(
        {"raw": {"type": "string", "contentEncoding": "base64"}}, mediaType=TEXT, filename=TEXT
    ),
    an_object({"data": {}}, metadata=_ANY),
)
_MESSAGE = an_object(
    {"messageId": TEXT, "role": {"const": "ROLE_USER"}, "parts": a_list(_PART, least=1)},
    contextId=TEXT,
    taskId=TEXT,
    metadata=_ANY,
    extensions=a_list(TEXT),
    referenceTaskIds=a_list(TEXT),
)
_AUTHENTICATION = an_object({"scheme": TEXT}, credentials=TEXT)
_PUSH = an_object({"url": TEXT}, id=TEXT, token=TEXT, authentication=_AUTHENTICATION)
_CONFIGURATION = an_object(
    acceptedOutputModes=a_list(TEXT),
    historyLength=_COUNT,
    returnImmediately=BOOLEAN,
    taskPushNotificationConfig=_PUSH,
)
_SEND = an_object({"message": _MESSAGE}, configuration=_CONFIGURATION, metadata=_ANY)
_TASK = an_object({"id": TEXT}, historyLength=_COUNT)
_LIST = an_object(
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
    "CancelTask": an_object({"id": TEXT}, metadata=_ANY),
    "SubscribeToTask": an_object({"id": TEXT}),
    "CreateTaskPushNotificationConfig": an_object(
        {"taskId": TEXT, "url": TEXT}, id=TEXT, token=TEXT, authentication=_AUTHENTICATION
    ),
    "GetTaskPushNotificationConfig": an_object(_OF_TASK),
    "ListTaskPushNotificationConfigs": an_object({"taskId": TEXT}),
    "DeleteTaskPushNotificationConfig": an_object(_OF_TASK),
    "GetExtendedAgentCard": _ANY,
}
"""Method of JSON-RPC → its parameters."""


def _rpc(method: str, params: JsonSchema) -> JsonSchema:
    id_: JsonSchema = {"type": ["string", "integer", "null"]}
    return an_object(
        {"jsonrpc": {"const": "2.0"}, "id": id_, "method": {"const": method}, "params": params}
    )


_OLD_PART = either(
    an_object({"text": TEXT}), an_object({"file": an_object(fileWithUri=TEXT, mimeType=TEXT)})
)
_OLD_MESSAGE = an_object(
    {"messageId": TEXT, "role": {"const": "ROLE_USER"}, "content": a_list(_OLD_PART, least=1)},
    contextId=TEXT,
)
_RPC = either(*[_rpc(method, params) for method, params in _PARAMS.items()])
_AT: Mapping[str, JsonSchema] = {
    "": _RPC,
    "/": _RPC,
    "/message:send": _SEND,
    "/message:stream": _SEND,
    "/v1/message:send": an_object({"request": _OLD_MESSAGE}, configuration=_ANY),
    "/v1/message:stream": an_object({"request": _OLD_MESSAGE}, configuration=_ANY),
    "/tasks/{id}/pushNotificationConfigs": _PUSH,
}
bodies: Mapping[str, JsonSchema] = {
    root + path: schema for root in ("/a2a", "/a2a/agents/{model}") for path, schema in _AT.items()
}
"""Path → JSON Schema of what clients send there; where none is named, nothing need be sent."""
