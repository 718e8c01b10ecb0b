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
"""Its part of `native`."""
VERSION = "1.0"
"""Of the protocol that is written."""
OURS = "dragoman"
"""Key in metadata under which stands what the protocol has no field for."""
CARRIED = "dragoman.event"
"""Name of the custom event whose value is one of our events as JSON's text: one that the protocol
has no form for."""
RESERVED = frozenset([OURS, "ag-ui"])
"""Keys in metadata that are no application's."""

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
    """Whether it reads what came with version 1.0: `pendingToolCallIds`, and the outcome
    `cancelled`."""
    extras: bool = True
    """Whether it is sent what the protocol has no field for."""


def is_current(version: Any) -> bool:
    """Whether a peer that declares this version reads all of 1.0."""
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
    """The metadata that carries these fields; empty where there are none."""
    return {OURS: json_bytes.encode(fields).decode()} if fields else {}


def load_extras(metadata: Any) -> Json:
    """The fields that metadata carries; empty where nothing of ours is there, or nothing that can
    be read."""
    text = if_object(metadata).get(OURS)
    if not isinstance(text, str):
        return {}
    try:
        return if_object(json_bytes.decode(text))
    except ValueError:
        return {}


def dump_metadata(metadata: JsonMap, fields: JsonMap) -> Json:
    """The field `metadata` of an object that has both; none where both are empty."""
    both = {**metadata, **dump_extras(fields)}
    return optional_field("metadata", both)


def add_extras(fields: JsonMap, extras: JsonMap) -> Json:
    """An object with these extras in its metadata."""
    metadata = dump_metadata(if_object(fields.get("metadata")), extras)
    return {**read_extra_fields(fields, "metadata"), **metadata}


def load_native(fields: JsonMap, *neutral: str, form: JsonMap | None = None) -> Native:
    """The fields of an object that are not `neutral`, and the application's metadata."""
    own = read_extra_fields(fields, "metadata", *neutral)
    if metadata := app_metadata(fields.get("metadata")):
        own["metadata"] = metadata
    return OWN.note(own, form)


def app_metadata(metadata: Any) -> Json:
    """The part of metadata that is the application's."""
    return {key: value for key, value in if_object(metadata).items() if key not in RESERVED}


def rename_fields(fields: JsonMap, names: Mapping[str, str] = _OF_REQUEST) -> Json:
    """An object with the protocol's names, where these are not there already. By default those of a
    request and of an answer in it."""
    return {
        names.get(name, name) if names.get(name) not in fields else name: value
        for name, value in fields.items()
    }


def rename_message(fields: Json) -> Json:
    """A message with the protocol's names; itself where it has them."""
    if not fields.keys().isdisjoint(_OF_MESSAGE):
        fields = rename_fields(fields, _OF_MESSAGE)
    for name, change in (("toolCalls", _call), ("content", _part)):
        listed = if_list(fields.get(name))
        apply_difference = [
            change(if_object(each)) if isinstance(each, dict) else each for each in listed
        ]
        if apply_difference != listed:
            fields = {**fields, name: apply_difference}
    return fields


def _call(fields: Json) -> Json:
    return fields if "encrypted_value" not in fields else rename_fields(fields, _OF_MESSAGE)


def _part(fields: Json) -> Json:
    if "mime_type" in (source := if_object(fields.get("source"))):
        fields = {**fields, "source": rename_fields(source, _OF_PART)}
    return rename_fields(fields, _OF_PART) if "mime_type" in fields else fields
