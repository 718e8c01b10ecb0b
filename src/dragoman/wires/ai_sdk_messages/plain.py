"""UI messages of texts alone, as most of a conversation are: read and written at once, as the records of functions would."""

from __future__ import annotations

from typing import Any, cast

from dragoman.message import Content, MarkPart, Message, Role, TextPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.reading import STEP

__all__ = ["dump_plain", "load_plain"]

_BARE = MarkPart(STEP)
_ROLES = {"user": Role.USER, "assistant": Role.MODEL}
_NAMES = {Role.USER: "user", Role.MODEL: "assistant"}


def load_plain(entry: Any, before: Message | None) -> Message | None:
    """A UI message → ours; `None`: it is none of texts alone. `before`: the message before it."""
    if type(entry) is not dict or len(fields := cast("dict[str, Any]", entry)) != 3:
        return None
    id_, name, parts = fields.get("id"), fields.get("role"), fields.get("parts")
    if (
        type(id_) is not str
        or type(name) is not str
        or type(parts) is not list
        or not parts
        or name not in _ROLES
    ):
        return None
    if before is not None and before.content and type(before.content[-1]) is ToolResultPart:
        return None
    role = _ROLES[name]
    size = 3 if role is Role.MODEL else 2
    content: list[Content] = []
    for part in cast("list[Any]", parts):
        if type(part) is not dict:
            return None
        given = cast("dict[str, Any]", part)
        type_, text = given.get("type"), given.get("text")
        if type_ == "text" and type(text) is str and text and len(given) == size:
            if size == 3 and given.get("state") != "done":
                return None
            content.append(TextPart(text))
        elif type_ == STEP and len(given) == 1 and role is Role.MODEL:
            content.append(_BARE)
        else:
            return None
    return Message(role, tuple(content), id_)


def dump_plain(message: Message, id_: str | None) -> dict[str, Any] | None:
    """The inverse; `None`: it is more than texts, or something stands beside them. `id_`: that of its turn."""
    role = message.role
    if (
        message.native is not None
        or message.origin is not None
        or message.turn is not None
        or message.metadata
    ):
        return None
    if (
        message.created_at is not None
        or message.finish_reason is not None
        or message.usage is not None
    ):
        return None
    if id_ is None or role is Role.SYSTEM or not message.content:
        return None
    parts: list[dict[str, Any]] = []
    for piece in message.content:
        if type(piece) is TextPart and piece.native is None:
            text: dict[str, Any] = {"type": "text", "text": piece.text}
            if role is Role.MODEL:
                text["state"] = "done"
            parts.append(text)
        elif type(piece) is MarkPart and piece.kind == STEP and piece.native is None:
            parts.append({"type": STEP})
        else:
            return None
    return {"id": id_, "role": _NAMES[role], "parts": parts}
