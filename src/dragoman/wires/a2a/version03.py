"""A2A 0.3, for its clients and agents: objects of 1.0 as its two bindings have them, and its
parameters as 1.0 has them.

By JSON-RPC (`OLD_RPC`) each object says its kind, and states and roles have other names. The REST
binding (`OLD_REST`) keeps to the names of protobuf: it starts from the former and overrides what it
has otherwise. A stream of either says which update is its last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import drop_empty, if_list, if_object, if_text, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.wires.a2a.quirks import OLD_KINDS

__all__ = ["OLD_REST", "OLD_RPC", "OldBinding", "new_params", "old_card"]

_LAST_STATES = frozenset(
    ["completed", "failed", "canceled", "rejected", "input-required", "auth-required"]
)
"""States that end a stream."""
_SCHEMES: Mapping[str, str] = {
    "httpAuthSecurityScheme": "http",
    "apiKeySecurityScheme": "apiKey",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
"""Field that holds a security scheme in 1.0 → its type in 0.3."""


class OldBinding:
    """The JSON-RPC binding of version 0.3."""

    def dump_object(self, item: JsonMap) -> Json:
        """Returns an object of a stream as 0.3 writes it."""
        dumps = {
            "task": self.dump_task,
            "message": self.dump_message,
            "statusUpdate": self._dump_status_update,
            "artifactUpdate": self._dump_artifact_update,
        }
        name = next((name for name in dumps if name in item), "artifactUpdate")
        return self._wrap(name, dumps[name](if_object(item.get(name))))

    def dump_task(self, task: JsonMap) -> Json:
        """Returns a task as 0.3 writes it."""
        dumped = self._with_kind("task", {**task, "status": self._dump_status(task.get("status"))})
        if "history" in task:
            messages = map(if_object, if_list(task["history"]))
            dumped["history"] = [self.dump_message(message) for message in messages]
        if "artifacts" in task:
            dumped["artifacts"] = list(map(self._dump_artifact, if_list(task["artifacts"])))
        return dumped

    def dump_message(self, message: JsonMap) -> Json:
        """Returns a message as 0.3 writes it."""
        role = "user"
        if message.get("role") == "ROLE_AGENT":
            role = "agent"
        return {**self._dump_artifact(message), "kind": "message", "role": role}

    def dump_push(self, config: JsonMap) -> Json:
        """Returns the configuration of push notifications as 0.3 writes it."""
        address = read_extra_fields(config, "taskId")
        # 0.3 lists the schemes that may be used, 1.0 names one.
        if auth := if_object(address.get("authentication")):
            schemes = [auth["scheme"]] if "scheme" in auth else []
            address["authentication"] = {"schemes": schemes, **read_extra_fields(auth, "scheme")}
        return {"taskId": config.get("taskId"), "pushNotificationConfig": address}

    def dump_params(self, params: JsonMap) -> Json:
        """Returns the parameters of a message as 0.3 writes them."""
        if "message" not in params:
            return dict(params)
        return {**params, "message": self.dump_message(if_object(params["message"]))}

    def _wrap(self, name: str, value: Json) -> Json:  # noqa: ARG002 the other binding names it
        """Returns a member of a stream's object, which the REST binding puts under its name."""
        return value

    def _with_kind(self, name: str, value: Json) -> Json:
        """Returns an object with its `kind`, which the REST binding leaves out."""
        return {**value, "kind": OLD_KINDS[name]}

    def _dump_status_update(self, update: Json) -> Json:
        """Returns an update of the status, which says whether it is the last."""
        status = if_object(update.get("status"))
        dumped = {
            **update,
            "status": self._dump_status(status),
            "final": _old_state(status) in _LAST_STATES,
        }
        return self._with_kind("statusUpdate", dumped)

    def _dump_artifact_update(self, update: Json) -> Json:
        """Returns an update of an artifact."""
        artifact = self._dump_artifact(update.get("artifact"))
        return self._with_kind("artifactUpdate", {**update, "artifact": artifact})

    def _dump_artifact(self, artifact: Any) -> Json:
        """Returns an artifact with its parts in the old form."""
        fields = if_object(artifact)
        return {**fields, "parts": self._dump_parts(fields)}

    def _dump_parts(self, holder: JsonMap) -> list[Json]:
        """Returns the parts of a message or artifact in the old form."""
        return [self._dump_part(if_object(part)) for part in if_list(holder.get("parts"))]

    def _dump_status(self, status: Any) -> Json:
        """Returns a status with the old name of its state."""
        fields = if_object(status)
        dumped = dict(fields)
        if (state := self._dump_state(fields)) is not None:
            dumped["state"] = state
        if "message" in fields:
            dumped["message"] = self.dump_message(if_object(fields["message"]))
        return dumped

    def _dump_state(self, status: JsonMap) -> Any:
        """Returns the old name of a status's state."""
        return _old_state(status)

    def _dump_part(self, part: JsonMap) -> Json:
        """Returns a part in the old form: text, data or file."""
        if "metadata" in part:
            metadata = {"metadata": part["metadata"]}
        else:
            metadata = {}
        if "text" in part:
            return {"kind": "text", "text": part["text"], **metadata}
        if "data" in part:
            return {"kind": "data", "data": _object_of(part["data"]), **metadata}
        named = {"mimeType": part.get("mediaType"), "name": part.get("filename")}
        if "raw" in part:
            source = {"bytes": part["raw"]}
        else:
            source = {"uri": part.get("url", "")}
        return {"kind": "file", "file": {**source, **drop_empty(named)}, **metadata}


class OldRestBinding(OldBinding):
    """The REST binding of version 0.3, which keeps the names of protobuf."""

    def dump_message(self, message: JsonMap) -> Json:
        """See `OldBinding.dump_message`."""
        return {
            **read_extra_fields(message, "parts", "referenceTaskIds"),
            "content": self._dump_parts(message),
        }

    def dump_push(self, config: JsonMap) -> Json:
        """See `OldBinding.dump_push`. A resource name identifies the configuration."""
        name = f"tasks/{config.get('taskId')}/pushNotificationConfigs/{config.get('id')}"
        return {"name": name, **read_extra_fields(super().dump_push(config), "taskId")}

    def _wrap(self, name: str, value: Json) -> Json:
        """See `OldBinding._wrap`."""
        return {"msg" if name == "message" else name: value}

    def _with_kind(self, name: str, value: Json) -> Json:  # noqa: ARG002 the other binding names it
        """See `OldBinding._with_kind`."""
        return value

    def _dump_state(self, status: JsonMap) -> Any:
        """See `OldBinding._dump_state`. Only one state has another spelling."""
        is_cancelled = status.get("state") == "TASK_STATE_CANCELED"
        if is_cancelled:
            return "TASK_STATE_CANCELLED"
        return status.get("state")

    def _dump_part(self, part: JsonMap) -> Json:
        """See `OldBinding._dump_part`. Fields of files and data have other names."""
        dumped = super()._dump_part(part)
        del dumped["kind"]
        if "data" in dumped:
            dumped["data"] = {"data": dumped["data"]}
        if file := dumped.get("file"):
            names = {"bytes": "fileWithBytes", "uri": "fileWithUri"}
            dumped["file"] = {names.get(name, name): value for name, value in file.items()}
        return dumped


OLD_RPC = OldBinding()
OLD_REST = OldRestBinding()


def old_card(card: JsonMap) -> Json:
    """Returns the fields that clients of 0.3 read in an agent card, or an empty object if no
    interface is for them.

    Security schemes are left to clients in either form.
    """
    interfaces = [
        {"url": interface.get("url"), "transport": interface.get("protocolBinding")}
        for interface in map(if_object, if_list(card.get("supportedInterfaces")))
        if interface.get("protocolBinding") in ("JSONRPC", "HTTP+JSON")
    ]
    if not interfaces:
        return {}
    old: Json = {}
    if schemes := if_object(card.get("securitySchemes")):
        old["securitySchemes"] = {
            name: _old_scheme(if_object(scheme)) for name, scheme in schemes.items()
        }
        old["security"] = [{name: [] for name in schemes}]
    if if_object(card.get("capabilities")).get("extendedAgentCard") is True:
        old["supportsAuthenticatedExtendedCard"] = True
    return {
        **old,
        "protocolVersion": "0.3.0",
        "url": interfaces[0]["url"],
        "preferredTransport": interfaces[0]["transport"],
        "additionalInterfaces": interfaces,
    }


def new_params(params: JsonMap) -> Json:
    """Returns the parameters of a message in version 1.0, from the REST binding of 0.3."""
    message = if_object(params.get("request")) or if_object(params.get("message"))
    parts = [
        _new_part(if_object(part)) for part in if_list(message.get("content", message.get("parts")))
    ]
    return {**params, "message": {**read_extra_fields(message, "content"), "parts": parts}}


def _new_part(part: JsonMap) -> Json:
    """Returns a part in version 1.0, from the REST binding of 0.3."""
    fields = read_extra_fields(part, "file", "data")
    if "data" in part:
        data = if_object(part["data"])
        return {**fields, "data": data.get("data", data)}
    file = if_object(part.get("file"))
    names = {
        "raw": file.get("fileWithBytes"),
        "url": file.get("fileWithUri"),
        "mediaType": file.get("mimeType"),
        "filename": file.get("name"),
    }
    return {**fields, **{name: value for name, value in names.items() if value}}


def _old_state(status: JsonMap) -> str:
    """Returns the state of a status by its name in 0.3."""
    state = if_text(status.get("state")).removeprefix("TASK_STATE_").lower().replace("_", "-")
    return {"": "unknown", "cancelled": "canceled"}.get(state, state)


def _old_scheme(scheme: JsonMap) -> Json:
    """Returns a security scheme with the type and the field names of 0.3."""
    old = dict(scheme)
    for name, scheme_type in _SCHEMES.items():
        if name in scheme:
            old |= {"type": scheme_type, **if_object(scheme[name])}
    if "location" in old:
        return {**old, "in": old["location"]}
    return old


def _object_of(data: Any) -> Json:
    """Returns data as an object, since 0.3 allows nothing else."""
    return if_object(data) or {"value": data}
