"""What AG-UI is here: its name, its version, and what a peer takes.

What the protocol has no field for is one text under the key `dragoman` of metadata, so that no peer
changes a byte of it (`packed`, `unpacked`). Names of fields as Python has them are read too: the
protocol's own package writes them where it is not asked for its aliases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object, optional_field, read_extra_fields
from dragoman.codec.native import WireNative
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Native

__all__ = [
    "CARRIED",
    "NAME",
    "OURS",
    "OWN",
    "RESERVED",
    "VERSION",
    "Quirks",
    "is_current",
    "dump_metadata",
    "load_native",
    "app_metadata",
    "dump_extras",
    "rename_fields",
    "rename_message",
    "load_extras",
    "add_extras",
]

NAME = "ag_ui"
OWN = WireNative(NAME)
"""The wire's part of `native`."""
VERSION = "1.0"
"""Protocol version that is written."""
OURS = "dragoman"
"""Metadata key that holds what the protocol has no field for."""
CARRIED = "dragoman.event"
"""Name of the custom event that carries an event without a form in the protocol, as JSON text."""
RESERVED = frozenset([OURS, "ag-ui"])
"""Metadata keys that do not belong to the application."""

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


class Quirks(msgspec.Struct, frozen=True):
    """What a peer takes."""

    current: bool = False
    """True if the peer reads what 1.0 added: `pendingToolCallIds`, and the outcome `cancelled`."""
    extras: bool = True
    """True if the peer gets what the protocol has no field for."""


def is_current(version: Any) -> bool:
    """True if an AG-UI peer that declares this version reads all of 1.0."""
    # peers send what they like: no digit may be another script's, and no number endless
    head, dot, tail = version.partition(".") if isinstance(version, str) else ("", "", "")
    return (
        bool(dot)
        and head.isascii()
        and tail.isascii()
        and head.isdigit()
        and tail.isdigit()
        and int(head[:9]) >= 1
    )


def dump_extras(fields: JsonMap) -> Json:
    """Returns the AG-UI metadata that carries these fields, or an empty object for none."""
    if fields:
        return {OURS: json_bytes.encode(fields).decode()}
    return {}


def load_extras(metadata: Any) -> Json:
    """Returns the fields that AG-UI metadata carries, or an empty object if there are none or they
    are unreadable."""
    text = if_object(metadata).get(OURS)
    if not isinstance(text, str):
        return {}
    try:
        return if_object(json_bytes.decode(text))
    except ValueError:
        return {}


def dump_metadata(metadata: JsonMap, fields: JsonMap) -> Json:
    """Returns AG-UI's field `metadata` with the application's metadata and the extras, or nothing
    if both are empty."""
    both = {**metadata, **dump_extras(fields)}
    return optional_field("metadata", both)


def add_extras(fields: JsonMap, extras: JsonMap) -> Json:
    """Returns an object with extras added to its metadata."""
    if not extras and "metadata" not in fields:
        return dict(fields)
    metadata = dump_metadata(if_object(fields.get("metadata")), extras)
    if metadata:
        return {**fields, **metadata}
    return read_extra_fields(fields, "metadata")


def load_native(fields: JsonMap, *neutral: str, form: JsonMap | None = None) -> Native:
    """Returns an AG-UI object's fields beyond the `neutral` ones, and the application's
    metadata."""
    native_fields = read_extra_fields(fields, "metadata", *neutral)
    if metadata := app_metadata(fields.get("metadata")):
        native_fields["metadata"] = metadata
    return OWN.note(native_fields, form)


def app_metadata(metadata: Any) -> Json:
    """Returns the application's metadata, without the reserved keys."""
    return {key: value for key, value in if_object(metadata).items() if key not in RESERVED}


def rename_fields(fields: JsonMap, names: Mapping[str, str] = _OF_REQUEST) -> Json:
    """Returns an AG-UI object under the protocol's names. A field that has its name already stays.

    Args:
        fields: the object.
        names: Python's name → the protocol's. By default those of a request and its answers.
    """
    return {
        names.get(name, name) if names.get(name) not in fields else name: value
        for name, value in fields.items()
    }


def rename_message(fields: Json) -> Json:
    """Returns a message under AG-UI's names, or the same object if it has them."""
    if not fields.keys().isdisjoint(_OF_MESSAGE):
        fields = rename_fields(fields, _OF_MESSAGE)
    for name, change in (("toolCalls", _rename_call), ("content", _rename_part)):
        listed = if_list(fields.get(name))
        renamed = [
            change(if_object(entry)) if isinstance(entry, dict) else entry for entry in listed
        ]
        if renamed != listed:
            fields = {**fields, name: renamed}
    return fields


def _rename_call(fields: Json) -> Json:
    """Returns a call under AG-UI's names."""
    if "encrypted_value" not in fields:
        return fields
    return rename_fields(fields, _OF_MESSAGE)


def _rename_part(fields: Json) -> Json:
    """Returns a content part under AG-UI's names."""
    if "mime_type" in (source := if_object(fields.get("source"))):
        fields = {**fields, "source": rename_fields(source, _OF_PART)}
    if "mime_type" in fields:
        return rename_fields(fields, _OF_PART)
    return fields
