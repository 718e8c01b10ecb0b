"""UI messages of ai 4: their table, and what stands around the parts.

Fields beside the parts (`content`, `toolInvocations`, `reasoning`: the mirrors) say again what the
parts say. One that does not is noted with a digest of what the parts say, and is written so only
while they say that. A message without parts is read from its mirrors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.message import Message, Role
from dragoman.wires.ai_sdk_messages.dragoman_metadata import ONE_STEP
from dragoman.wires.ai_sdk_messages.files import dump_old_file, load_attachment, load_old_file
from dragoman.wires.ai_sdk_messages.js_dates import old_date, old_date_of
from dragoman.wires.ai_sdk_messages.marks import dump_old_mark, load_source
from dragoman.wires.ai_sdk_messages.notes import OURS, OWN, V4, Part, Parts, dialect_of, present
from dragoman.wires.ai_sdk_messages.read_parts import (
    ATTACHMENT,
    Envelope,
    Reading,
    fault,
    load_parts,
    role_in,
)
from dragoman.wires.ai_sdk_messages.read_turn import Head, Loading, add_turn, id_in, turn_of
from dragoman.wires.ai_sdk_messages.text_only_messages import load_plain_old
from dragoman.wires.ai_sdk_messages.texts_and_thinking import dump_details, load_details, load_text
from dragoman.wires.ai_sdk_messages.tool_invocations import (
    INVOCATION,
    add_old_result,
    dump_old_call,
    load_old_invocation,
)
from dragoman.wires.ai_sdk_messages.ui_messages import UI_DIALECT

__all__ = ["V4_DIALECT", "load_v4"]

_ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.MODEL,
    "data": Role.USER,
}
_MIRRORS = ("content", "toolInvocations", "reasoning")
_ATTACHED = "experimental_attachments"
_READ = ("id", "role", "parts", "createdAt", _ATTACHED, "annotations", *_MIRRORS)


def load_v4(entry: Part, where: str, loading: Loading) -> None:
    """Reads a UI message of ai 4, and adds it to the conversation.

    Raises:
        HistoryError: it cannot be read.
    """
    if loading.add_plain(load_plain_old, entry):
        return
    role = role_in(entry, _ROLES, where)
    head = Head(V4_DIALECT, read_extra_fields(entry, *_READ), {"in": V4})
    if entry["role"] == "data":
        head.form["role"] = "data"
    id_in(entry, head)
    parts = entry.get("parts")
    has_parts = isinstance(parts, list)
    if not has_parts:
        parts = _parts_of(entry, where)
        head.form["parts"] = "absent"
        head.fields |= {"parts": entry["parts"]} if "parts" in entry else {}
    _read_annotations(entry, head)
    reading = Reading(V4_DIALECT, role)
    # Fields beside each other have no order, so that nothing in them stands behind a call.
    reading.implies_steps &= has_parts and ONE_STEP not in if_object(head.extras)
    load_parts(cast("Parts", parts), reading, f"{where}.parts")
    _read_attachments(entry, reading, head, where)
    _read_time(entry, head)
    _note_mirrors(entry, _mirrors_of(cast("Parts", parts), role), head.form)
    add_turn(turn_of(reading, head, loading), head, loading)


def _parts_of(entry: Part, where: str) -> Parts:
    """Returns parts for a message that has none: its calls, thinking and text."""
    content = entry.get("content", "")
    if not isinstance(content, str):
        fault(f"{where}.content must be a string, or there are parts")
    parts: Parts = [
        {"type": INVOCATION, "toolInvocation": invocation}
        for invocation in if_list(entry.get("toolInvocations"))
    ]
    if text := if_text(entry.get("reasoning")):
        details = [{"type": "text", "text": text}]
        parts.append({"type": "reasoning", "reasoning": text, "details": details})
    if content:
        return [*parts, {"type": "text", "text": content}]
    return parts


def _read_annotations(entry: Part, head: Head) -> None:
    """Reads what the annotations of a message carry. The others stay among its fields."""
    if "annotations" not in entry:
        return
    annotations = if_list(entry["annotations"])
    last = if_object(annotations[-1]) if annotations else {}
    head.extras = last[OURS] if last.keys() == {OURS} else None
    if head.extras is None:
        other_annotations = entry["annotations"]
    else:
        other_annotations = annotations[:-1]
    if other_annotations or head.extras is None:
        head.fields["annotations"] = other_annotations


def _read_attachments(
    entry: Part,
    reading: Reading,
    head: Head,
    where: str,
) -> None:
    """Reads the attachments of a UI message of ai 4 as files."""
    attached = entry.get(_ATTACHED)
    for number, attachment in enumerate(if_list(attached)):
        load_attachment(attachment, reading, f"{where}.{_ATTACHED}[{number}]")
    if _ATTACHED in entry and not if_list(attached):
        head.fields[_ATTACHED] = attached


def _read_time(entry: Part, head: Head) -> None:
    """Reads the time of a message, and notes it if it would be written differently."""
    if "createdAt" not in entry:
        return
    head.created_at = old_date_of(entry["createdAt"])
    written = _format_time(head.created_at)
    if written is None or written != entry["createdAt"]:
        head.form["createdAt"] = [written, entry["createdAt"]]


def _format_time(time: datetime | None) -> str | None:
    """Returns a time as text, or None."""
    return None if time is None else old_date(time)


def _mirrors_of(parts: Parts, role: Role) -> Part:
    """Returns the fields that repeat what the parts say."""
    texts = [if_text(part.get("text")) for part in parts if part["type"] == "text"]
    mirrors: Part = {"content": "".join(texts)}
    invocations = [part["toolInvocation"] for part in parts if part["type"] == INVOCATION]
    if invocations:
        mirrors["toolInvocations"] = invocations
    thinking = [if_text(part.get("reasoning")) for part in parts if part["type"] == "reasoning"]
    if thinking and role is Role.MODEL:
        mirrors["reasoning"] = "".join(thinking)
    return mirrors


def _note_mirrors(entry: Part, mirrors: Part, form: Part) -> None:
    """Notes the mirrors that differ from the parts, with a digest of what the parts say."""
    differ: dict[str, list[Any]] = {}
    for key in _MIRRORS:
        is_mirrored = key in mirrors and key in entry and mirrors[key] == entry[key]
        if not is_mirrored and (key in mirrors or key in entry):
            read = [entry[key]] if key in entry else []
            differ[key] = [_digest(mirrors.get(key)), *read]
    if differ:
        form["mirrors"] = differ


def _restore_mirrors(mirrors: Part, form: Part) -> Part:
    """Returns the mirrors as they were read, while the parts still say the same. The inverse of
    `_note_mirrors`."""
    for key, (digest, *read) in if_object(form.get("mirrors")).items():
        # An edited part makes the old mirror wrong.
        if key in _MIRRORS and _digest(mirrors.get(key)) == digest:
            mirrors.pop(key, None)
            mirrors |= {key: read[0]} if read else {}
    return mirrors


def _digest(value: Any) -> str:
    """Returns a short hash of a JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _envelope(envelope: Envelope) -> Part:
    """Returns the UI message of ai 4 around its parts."""
    first = envelope.first
    is_own = dialect_of(first.native) == V4
    fields = OWN.fields(first.native) if is_own else {}
    form = OWN.form(first.native) if is_own else {}
    parts, attached = _split_attachments(envelope.parts)
    message = {**present(id=envelope.id), **_time_field(first, form)}
    message["role"] = if_text(form.get("role")) or envelope.role
    message |= _restore_mirrors(_mirrors_of(parts, first.role), form)
    if form.get("parts") != "absent":
        message["parts"] = parts
    if attached:
        message[_ATTACHED] = attached
    if envelope.extras:
        fields = _keep(fields, envelope.extras)
    return {**message, **fields}


def _split_attachments(written: Parts) -> tuple[Parts, Parts]:
    """Returns the parts of a message, and its attachments."""
    parts = [part for part in written if part["type"] != ATTACHMENT]
    return parts, [
        read_extra_fields(part, "type") for part in written if part["type"] == ATTACHMENT
    ]


def _time_field(first: Message, form: Part) -> Part:
    """Returns the time of a message as it was read, while it is that time. The inverse of
    `_read_time`."""
    time = _format_time(first.created_at)
    noted = if_list(form.get("createdAt"))
    if noted and noted[0] == time:
        return {"createdAt": noted[1]}
    return present(createdAt=time)


def _keep(fields: Part, extras: Any) -> Part:
    """Returns a message's fields with foreign extras back in its annotations."""
    return {**fields, "annotations": [*if_list(fields.get("annotations")), {OURS: extras}]}


V4_DIALECT = replace(
    UI_DIALECT,
    name=V4,
    loaders={
        "text": load_text,
        "reasoning": load_details,
        "file": load_old_file,
        "source": load_source,
        INVOCATION: load_old_invocation,
    },
    prefixed={},
    mime="mimeType",
    done={},
    shared_text=(),
    dump_thinking=dump_details,
    dump_file=dump_old_file,
    dump_call=dump_old_call,
    add_result=add_old_result,
    dump_mark=dump_old_mark,
    envelope=_envelope,
    keep=_keep,
    metadata_first=True,
    times=True,
)
