"""Objects of 1.0 as clients of 0.3 read them: each says its kind, states and roles have other names, and a stream says which update is its last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_text

__all__ = [
    "new_params",
    "old_card",
    "old_object",
    "old_params",
    "old_push",
    "old_rest",
    "old_rest_push",
    "old_task",
]

_FINAL = frozenset(
    ["completed", "failed", "canceled", "rejected", "input-required", "auth-required"]
)
"""States with which a stream ends."""
_SCHEMES: Mapping[str, str] = {
    "httpAuthSecurityScheme": "http",
    "apiKeySecurityScheme": "apiKey",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
"""Field of 1.0 that holds a scheme → its type in 0.3."""


def old_object(each: Mapping[str, Any]) -> dict[str, Any]:
    """An object of a stream."""
    if "task" in each:
        return old_task(if_object(each["task"]))
    if "message" in each:
        return _message(if_object(each["message"]))
    if "statusUpdate" in each:
        update = dict(if_object(each["statusUpdate"]))
        status = _status(if_object(update.get("status")))
        return {
            **update,
            "kind": "status-update",
            "status": status,
            "final": status["state"] in _FINAL,
        }
    update = dict(if_object(each.get("artifactUpdate")))
    return {
        **update,
        "kind": "artifact-update",
        "artifact": _parted(if_object(update.get("artifact"))),
    }


def old_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """A task."""
    made: dict[str, Any] = {
        **task,
        "kind": "task",
        "status": _status(if_object(task.get("status"))),
    }
    if "history" in task:
        made["history"] = [_message(if_object(one)) for one in if_list(task["history"])]
    if "artifacts" in task:
        made["artifacts"] = [_parted(if_object(one)) for one in if_list(task["artifacts"])]
    return made


def old_push(config: Mapping[str, Any]) -> dict[str, Any]:
    """An address for push notifications."""
    left = {name: value for name, value in config.items() if name != "taskId"}
    if auth := if_object(left.get("authentication")):
        more = {name: value for name, value in auth.items() if name != "scheme"}
        left["authentication"] = {"schemes": [auth["scheme"]] if "scheme" in auth else [], **more}
    return {"taskId": config.get("taskId"), "pushNotificationConfig": left}


def old_rest_push(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same as the REST binding has it: by its name."""
    name = f"tasks/{config.get('taskId')}/pushNotificationConfigs/{config.get('id')}"
    return {"name": name, "pushNotificationConfig": old_push(config)["pushNotificationConfig"]}


def old_card(card: Mapping[str, Any]) -> dict[str, Any]:
    """What a card says to clients of 0.3 beside what it says to those of 1.0, who read schemes of security in either form."""
    found = [if_object(one) for one in if_list(card.get("supportedInterfaces"))]
    plain = [one for one in found if one.get("protocolBinding") in ("JSONRPC", "HTTP+JSON")]
    if not plain:
        return {}
    more = [{"url": one.get("url"), "transport": one.get("protocolBinding")} for one in plain]
    security = {
        name: _scheme(if_object(one))
        for name, one in if_object(card.get("securitySchemes")).items()
    }
    locked: dict[str, Any] = (
        {"securitySchemes": security, "security": [{name: [] for name in security}]}
        if security
        else {}
    )
    extended = if_object(card.get("capabilities")).get("extendedAgentCard") is True
    return {
        **locked,
        **({"supportsAuthenticatedExtendedCard": True} if extended else {}),
        "protocolVersion": "0.3.0",
        "url": plain[0].get("url"),
        "preferredTransport": plain[0].get("protocolBinding"),
        "additionalInterfaces": more,
    }


def _scheme(scheme: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(scheme)
    for name, kind in _SCHEMES.items():
        if name in scheme:
            made |= {"type": kind, **if_object(scheme[name])}
    return {**made, "in": made["location"]} if "location" in made else made


def _status(status: Mapping[str, Any]) -> dict[str, Any]:
    state = (
        if_text(status.get("state")).removeprefix("TASK_STATE_").lower().replace("_", "-")
        or "unknown"
    )
    state = "canceled" if state == "cancelled" else state
    message = {"message": _message(if_object(status["message"]))} if "message" in status else {}
    return {**status, "state": state, **message}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    role = "agent" if message.get("role") == "ROLE_AGENT" else "user"
    return {**_parted(message), "kind": "message", "role": role}


def _parted(holder: Mapping[str, Any]) -> dict[str, Any]:
    return {**holder, "parts": [_part(if_object(part)) for part in if_list(holder.get("parts"))]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"metadata": part["metadata"]} if "metadata" in part else {}
    if "text" in part:
        return {"kind": "text", "text": part["text"], **metadata}
    if "data" in part:
        data = if_object(part["data"]) or {"value": part["data"]}
        return {"kind": "data", "data": data, **metadata}
    file = {"bytes": part["raw"]} if "raw" in part else {"uri": part.get("url", "")}
    named = {"mimeType": part.get("mediaType"), "name": part.get("filename")}
    return {
        "kind": "file",
        "file": {**file, **{key: value for key, value in named.items() if value}},
        **metadata,
    }


def old_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a message."""
    return (
        {**params, "message": _message(if_object(params["message"]))}
        if "message" in params
        else dict(params)
    )


def old_rest(each: Mapping[str, Any]) -> dict[str, Any]:
    """An object of a stream as the REST binding of 0.3 has it, which keeps to protobuf's names."""
    if "task" in each:
        return {"task": _rest_task(if_object(each["task"]))}
    if "message" in each:
        return {"msg": _rest_message(if_object(each["message"]))}
    if "statusUpdate" in each:
        update = dict(if_object(each["statusUpdate"]))
        status = _rest_status(if_object(update.get("status")))
        final = _status({"state": status.get("state")})["state"] in _FINAL
        return {"statusUpdate": {**update, "status": status, "final": final}}
    update = dict(if_object(each.get("artifactUpdate")))
    return {
        "artifactUpdate": {
            **update,
            "artifact": _rest_parted(if_object(update.get("artifact")), "parts"),
        }
    }


def _rest_task(task: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {**task, "status": _rest_status(if_object(task.get("status")))}
    if "history" in task:
        made["history"] = [_rest_message(if_object(one)) for one in if_list(task["history"])]
    if "artifacts" in task:
        made["artifacts"] = [
            _rest_parted(if_object(one), "parts") for one in if_list(task["artifacts"])
        ]
    return made


def _rest_status(status: Mapping[str, Any]) -> dict[str, Any]:
    made = {name: value for name, value in status.items() if name != "message"}
    if status.get("state") == "TASK_STATE_CANCELED":
        made["state"] = "TASK_STATE_CANCELLED"
    return (
        {**made, "message": _rest_message(if_object(status["message"]))}
        if "message" in status
        else made
    )


def _rest_message(message: Mapping[str, Any]) -> dict[str, Any]:
    return _rest_parted(message, "content")


def _rest_parted(holder: Mapping[str, Any], field: str) -> dict[str, Any]:
    left = {
        name: value for name, value in holder.items() if name not in ("parts", "referenceTaskIds")
    }
    return {**left, field: [_rest_part(if_object(part)) for part in if_list(holder.get("parts"))]}


def _rest_part(part: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"metadata": part["metadata"]} if "metadata" in part else {}
    if "text" in part:
        return {"text": part["text"], **metadata}
    if "data" in part:
        return {"data": {"data": if_object(part["data"]) or {"value": part["data"]}}, **metadata}
    file = {"fileWithBytes": part["raw"]} if "raw" in part else {"fileWithUri": part.get("url", "")}
    named = {"mimeType": part.get("mediaType"), "name": part.get("filename")}
    return {"file": {**file, **{key: value for key, value in named.items() if value}}, **metadata}


def new_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a message as the REST binding of 0.3 has them → as 1.0 has."""
    message = if_object(params.get("request")) or if_object(params.get("message"))
    parts = [
        _new_part(if_object(part)) for part in if_list(message.get("content", message.get("parts")))
    ]
    left = {name: value for name, value in message.items() if name != "content"}
    return {**params, "message": {**left, "parts": parts}}


def _new_part(part: Mapping[str, Any]) -> dict[str, Any]:
    made = {name: value for name, value in part.items() if name not in ("file", "data")}
    if "data" in part:
        held = if_object(part["data"])
        return {**made, "data": held.get("data", held)}
    if "file" not in part:
        return made
    file = if_object(part["file"])
    found = {"raw": file.get("fileWithBytes"), "url": file.get("fileWithUri")}
    found |= {"mediaType": file.get("mimeType"), "filename": file.get("name")}
    return {**made, **{name: value for name, value in found.items() if value}}
