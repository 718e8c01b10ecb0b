"""Names of fields as Python has them: what the protocol's own package writes where it is not asked for its aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_list, if_object

__all__ = ["renamed", "renamed_message"]

_OF_REQUEST: Mapping[str, str] = {
    "thread_id": "threadId",
    "run_id": "runId",
    "parent_run_id": "parentRunId",
    "forwarded_props": "forwardedProps",
    "protocol_version": "protocolVersion",
    "interrupt_id": "interruptId",
}
_OF_MESSAGE: Mapping[str, str] = {
    "tool_calls": "toolCalls",
    "tool_call_id": "toolCallId",
    "encrypted_value": "encryptedValue",
    "activity_type": "activityType",
    "subagent_run_id": "subagentRunId",
}
_OF_PART: Mapping[str, str] = {"mime_type": "mimeType"}


def renamed(fields: Mapping[str, Any], names: Mapping[str, str] = _OF_REQUEST) -> dict[str, Any]:
    """An object with the protocol's names, where these are not there already. By default those of a request and of an answer in it."""
    return {
        names.get(name, name) if names.get(name) not in fields else name: value
        for name, value in fields.items()
    }


def renamed_message(fields: dict[str, Any]) -> dict[str, Any]:
    """A message with the protocol's names; itself where it has them."""
    if not fields.keys().isdisjoint(_OF_MESSAGE):
        fields = renamed(fields, _OF_MESSAGE)
    for name, change in (("toolCalls", _call), ("content", _part)):
        listed = if_list(fields.get(name))
        changed = [change(if_object(each)) if isinstance(each, dict) else each for each in listed]
        if changed != listed:
            fields = {**fields, name: changed}
    return fields


def _call(fields: dict[str, Any]) -> dict[str, Any]:
    return fields if "encrypted_value" not in fields else renamed(fields, _OF_MESSAGE)


def _part(fields: dict[str, Any]) -> dict[str, Any]:
    if "mime_type" in (source := if_object(fields.get("source"))):
        fields = {**fields, "source": renamed(source, _OF_PART)}
    return renamed(fields, _OF_PART) if "mime_type" in fields else fields
