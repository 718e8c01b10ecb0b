"""UI messages of ai 5 and later: the table from which the other dialects of UI messages start, a
message around its parts, and what one release of the library has and another has not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.codec.json_values import if_object, if_text, read_extra_fields
from dragoman.loss import Lost
from dragoman.message import Message, Role
from dragoman.wires.ai_sdk_messages.detection import is_v4
from dragoman.wires.ai_sdk_messages.files import dump_file, load_file
from dragoman.wires.ai_sdk_messages.marks import dump_mark
from dragoman.wires.ai_sdk_messages.notes import OURS, OWN, UI, Part, Parts
from dragoman.wires.ai_sdk_messages.read_parts import STEP, Envelope, UIDialect
from dragoman.wires.ai_sdk_messages.texts_and_thinking import (
    dump_reasoning,
    dump_text,
    load_reasoning,
    load_text,
)
from dragoman.wires.ai_sdk_messages.ui_tool_parts import add_result, dump_call, load_tool

__all__ = ["UI_DIALECT", "filler", "keep_in_metadata", "restrict", "with_metadata"]

_NEWER: Mapping[str, frozenset[str]] = {
    "v5": frozenset(["custom", "reasoning-file", "steering-message"]),
    "v6": frozenset(["custom", "reasoning-file", "steering-message"]),
    "v7": frozenset(),
}
"""Release → types of parts that only later releases have."""
_DENIED = "Tool call execution denied."


def filler(role: Role) -> Part:
    """Returns the part that says nothing for an empty UI message, which the library's check would
    refuse."""
    if role is Role.MODEL:
        return {"type": STEP}
    return {"type": "text", "text": ""}


def _ui_envelope(envelope: Envelope) -> Part:
    """Returns the AI SDK UI message around its parts."""
    first = envelope.first
    message: Part = {"role": envelope.role, "parts": envelope.parts}
    if envelope.id is not None:
        message = {"id": envelope.id, **message}
    fields = _own_fields(first) if first.native else {}
    message |= with_metadata(envelope, fields)
    if fields:
        return {**message, **read_extra_fields(fields, "metadata")}
    return message


def _own_fields(first: Message) -> Part:
    """Returns the further fields of an AI SDK message that was read in this dialect."""
    if OWN.form(first.native).get("in", UI) != UI:
        return {}
    fields = OWN.fields(first.native)
    # Those of a message of ai 4 that went through another format would make it one again.
    if fields and is_v4(fields):
        return {}
    return fields


def with_metadata(envelope: Envelope, fields: Part) -> Part:
    """Returns the field `metadata` of an AI SDK message, or nothing. `fields` are those that it was
    read with."""
    first = envelope.first
    if first.metadata and OURS not in first.metadata:
        metadata = dict(first.own_metadata)
    else:
        metadata = {}
    if envelope.extras:
        metadata[OURS] = envelope.extras
    read_metadata = fields.get("metadata")
    if isinstance(read_metadata, dict):
        return {"metadata": {**metadata, **if_object(read_metadata)}}
    if metadata or "metadata" in fields:
        return {"metadata": metadata or read_metadata}
    return {}


def keep_in_metadata(fields: Part, extras: Any) -> Part:
    """Returns a message's fields with foreign extras back in its metadata."""
    return {**fields, "metadata": {**if_object(fields.get("metadata")), OURS: extras}}


UI_DIALECT = UIDialect(
    UI,
    {
        "text": load_text,
        "reasoning": load_reasoning,
        "file": load_file,
        "dynamic-tool": load_tool,
    },
    {"tool-": load_tool},
    done={"state": "done"},
    shared_text=("citations",),
    dump_text=dump_text,
    dump_thinking=dump_reasoning,
    dump_file=lambda file, dialect, _: dump_file(file, dialect),
    dump_call=lambda call, dialect, answered, _: dump_call(call, dialect, answered),
    add_result=add_result,
    dump_mark=dump_mark,
    envelope=_ui_envelope,
    keep=keep_in_metadata,
)


def restrict(parts: Parts, version: str, lose: Callable[[Lost, str], None]) -> Parts:
    """Returns the AI SDK parts that a release of the library accepts. `lose` takes those that it
    lacks."""
    restricted: Parts = []
    for part in parts:
        if part["type"] in _NEWER.get(version, ()):
            lose(Lost.provider, f"ai {version[1:]} has no part {part['type']}")
        elif version == "v5" and "approval" in part and "state" in part:
            restricted.append(_without_approval(part))
        else:
            restricted.append(part)
    return restricted


def _without_approval(part: Part) -> Part:
    """Returns a call for AI SDK 5, which knows no approvals: a waiting one is a call, a denied one
    has failed."""
    plain, state = read_extra_fields(part, "approval"), part["state"]
    if state == "output-denied":
        reason = if_text(if_object(part["approval"]).get("reason"))
        text = _DENIED
        if reason:
            text = f"denied: {reason}"
        return {**plain, "state": "output-error", "errorText": text}
    if state.startswith("approval-"):
        return {**plain, "state": "input-available"}
    return plain
