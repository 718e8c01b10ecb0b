"""Rows of texts alone, as most of a conversation are: read and written at once, as the records of functions would."""

from __future__ import annotations

from typing import Any, cast

from dragoman.message import Content, MarkPart, Message, Role, TextPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.own import OWN
from dragoman.wires.ai_sdk_messages.reading import STEP
from dragoman.wires.ai_sdk_messages.rows import ROW
from dragoman.wires.ai_sdk_messages.times import date_of, is_js_date, js_date

__all__ = ["bare_texts", "dump_plain_row", "load_plain_row"]

_BARE = MarkPart(STEP)
_ROLES = {"user": Role.USER, "assistant": Role.MODEL}
_NAMES = {role: name for name, role in _ROLES.items()}
_READ_HERE = {"ai_sdk:notes": {"spelling": {"in": ROW}}}
_PLACE = ("threadId", "resourceId")
_PLACE_KEYS = frozenset(_PLACE)


def load_plain_row(row: dict[str, Any], before: Message | None) -> Message | None:
    """A row → a message; `None`: it is more than texts with an id and a time. `before`: the message before it."""
    id_, name, content = row.get("id"), row.get("role"), cast("dict[str, Any]", row["content"])
    if type(id_) is not str or type(name) is not str or name not in _ROLES or len(content) != 3:
        return None
    if before is not None and before.content and type(before.content[-1]) is ToolResultPart:
        return None
    parts, text = content.get("parts"), content.get("content")
    dated = "createdAt" in row
    made_at = date_of(row["createdAt"]) if dated and is_js_date(row["createdAt"]) else None
    own = {key: row[key] for key in _PLACE if key in row}
    if type(parts) is not list or not text or type(text) is not str:
        return None
    if (dated and made_at is None) or len(row) != 3 + dated + len(own):
        return None
    read = bare_texts(cast("list[Any]", parts))
    if read is None or read[1] != text:
        return None
    native = OWN.note(own, {"in": ROW}) if own else None
    return Message(_ROLES[name], tuple(read[0]), id_, made_at, None, {}, None, None, native)


def dump_plain_row(message: Message, id_: str | None) -> dict[str, Any] | None:
    """The inverse; `None`: it is more than texts, or something stands beside them. `id_`: that of its turn."""
    name = _NAMES.get(message.role)
    if (
        name is None
        or id_ is None
        or message.origin is not None
        or message.turn is not None
        or message.metadata
    ):
        return None
    if message.finish_reason is not None or message.usage is not None or not message.content:
        return None
    place: dict[str, Any] = {}
    if message.native is not None:
        place = OWN.fields(message.native)
        if message.native != {"ai_sdk": place, **_READ_HERE} or not place.keys() <= _PLACE_KEYS:
            return None
    parts: list[dict[str, Any]] = []
    for piece in message.content:
        if type(piece) is TextPart and piece.native is None:
            parts.append({"type": "text", "text": piece.text})
        elif type(piece) is MarkPart and piece.kind == STEP and piece.native is None:
            parts.append({"type": STEP})
        else:
            return None
    text = "".join([part["text"] for part in parts if "text" in part])
    dated = {} if message.created_at is None else {"createdAt": js_date(message.created_at)}
    content = {"format": 2, "parts": parts, **({"content": text} if text else {})}
    return {"id": id_, "role": name, **dated, "content": content, **place}


def bare_texts(parts: list[Any]) -> tuple[list[Content], str] | None:
    """Parts of texts and steps with nothing beside them → pieces, and the texts joined; `None`: something else is among them."""
    pieces: list[Content] = []
    texts: list[str] = []
    for part in parts:
        if type(part) is not dict:
            return None
        given = cast("dict[str, Any]", part)
        if (
            len(given) == 2
            and given.get("type") == "text"
            and type(words := given.get("text")) is str
            and words
        ):
            texts.append(words)
            pieces.append(TextPart(words))
        elif len(given) == 1 and given.get("type") == STEP:
            pieces.append(_BARE)
        else:
            return None
    return pieces, "".join(texts)
