"""The objects of an A2A stream, taken apart: members, texts, parts, and calls for the client.

`decode_plain` reads a run with these functions. They keep no state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_text, pick
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, Role, ToolCallPart
from dragoman.wires.a2a.quirks import OLD_KINDS, app_metadata, role_of
from dragoman.wires.a2a.runs import last_index

__all__ = [
    "assign_call",
    "assign_to_client",
    "dump_note",
    "find_answers",
    "list_parts",
    "split_member",
    "split_text",
    "read_text",
]


_MEMBERS = {old_kind: name for name, old_kind in OLD_KINDS.items()}
"""`kind` of an object in 0.3 → the member that holds it in 1.0."""


def split_member(event: JsonMap) -> tuple[str, Json]:
    """Returns the member of an A2A stream's object: its name in version 1.0, and its fields.

    A task or a message may stand alone, as in 0.3. Returns an empty name for anything else.
    """
    for name in OLD_KINDS:
        if isinstance(event.get(name), dict):
            return name, if_object(event[name])
    object_type = event.get("kind")
    if isinstance(object_type, str) and object_type in _MEMBERS:
        return _MEMBERS[object_type], dict(event)
    # Some older agents leave the kind out, so the fields must tell.
    if "parts" in event and "role" in event:
        return "message", dict(event)
    if isinstance(event.get("id"), str) and "status" in event:
        return "task", dict(event)
    return "", {}


def split_text(parts: Sequence[Json]) -> tuple[str, list[Json]]:
    """Returns an A2A artifact's text and its other parts, which stay the same however the text is
    cut."""
    text = "".join([if_text(part.get("text")) for part in parts])
    return text, [part for part in parts if "text" not in part]


def find_answers(history: Sequence[Any]) -> list[Json]:
    """Returns the A2A messages of a history behind the last question."""
    messages = [if_object(message) for message in history]
    question_index = last_index(messages, lambda message: role_of(message.get("role")) is Role.USER)
    return messages[question_index + 1 :]


def dump_note(message: Json) -> Json:
    """Returns the value of the custom event for an A2A status message that reports progress."""
    note: Json = {"message": pick(message, ("messageId", "parts"))}
    if metadata := app_metadata(message.get("metadata")):
        note["metadata"] = metadata
    return note


def assign_call(call: ToolCallPart) -> ToolCallPart:
    """Returns an A2A agent's call as one that the client runs."""
    return ToolCallPart(
        call.id, call.name, call.arguments, call.raw, call.state, "client", call.native
    )


def assign_to_client(piece: Content) -> Content:
    """Returns an A2A agent's piece of content, where a call is one that the client runs."""
    if isinstance(piece, ToolCallPart):
        return assign_call(piece)
    return piece


def read_text(message: Json) -> str:
    """Returns the text of all A2A parts of a message."""
    texts = [
        if_text(if_object(part.get("root")).get("text")) or if_text(part.get("text"))
        for part in list_parts(message)
    ]
    return "".join(texts)


def list_parts(message: Json) -> list[Json]:
    """Returns the parts of a message or artifact. A part that is no object counts as an empty
    one."""
    return [if_object(part) for part in if_list(message.get("parts"))]
