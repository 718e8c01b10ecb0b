"""The short way for messages of texts alone, as most of a conversation are: they are read and
written at once, without the tables.

Each function here returns None for a message that says anything else, which then goes the long way.
Both ways give the same.
"""

from __future__ import annotations

from typing import Any, cast

from dragoman.codec.json_values import pick
from dragoman.message import Content, MarkPart, Message, Role, TextPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.js_dates import date_of, is_js_date, js_date
from dragoman.wires.ai_sdk_messages.notes import NAME, OWN, ROW, V4, Part, Parts
from dragoman.wires.ai_sdk_messages.read_parts import STEP

__all__ = ["dump_plain_row", "load_plain_old", "load_plain_row"]

_STEP = {"type": STEP}
_BARE_STEP = MarkPart(STEP)
_ROLES = {"user": Role.USER, "assistant": Role.MODEL}
_NAMES = {role: name for name, role in _ROLES.items()}
_READ_HERE = {"ai_sdk:notes": {"spelling": {"in": ROW}}}
_THREAD = ("threadId", "resourceId")
_THREAD_KEYS = frozenset(_THREAD)


def load_plain_old(entry: Part, before: Message | None) -> Message | None:
    """Returns the message of a UI message of AI SDK 4 with an id, a time and texts, or None."""
    id_, role = entry.get("id"), _role_of(entry, before)
    dated = "createdAt" in entry
    if type(id_) is not str or role is None or len(entry) != 4 + dated:
        return None
    date = _date_in(entry)
    if dated and date is None:
        return None
    content = _load_texts(entry.get("parts"))
    if content is None or entry.get("content") != _join(content):
        return None
    return Message(role, tuple(content), id_, date, native=OWN.note(None, {"in": V4}))


def load_plain_row(row: Part, before: Message | None) -> Message | None:
    """Returns the message of a Mastra row with an id, a time, a thread and texts, or None."""
    inner = cast("Part", row["content"])
    text = inner.get("content")
    if len(inner) != 3 or not text or type(text) is not str:
        return None
    id_, role, dated = row.get("id"), _role_of(row, before), "createdAt" in row
    thread = pick(row, _THREAD)
    if type(id_) is not str or role is None or len(row) != 3 + dated + len(thread):
        return None
    date = _date_in(row)
    if dated and date is None:
        return None
    content = _load_texts(inner.get("parts"))
    if content is None or text != _join(content):
        return None
    native = None
    if thread:
        native = OWN.note(thread, {"in": ROW})
    return Message(role, tuple(content), id_, date, native=native)


def _role_of(entry: Part, before: Message | None) -> Role | None:
    """Returns the role of an AI SDK message, or None if it has another role or may continue the
    results before it."""
    name = entry.get("role")
    # Behind results a message of the model's may need a turn of its own.
    if before is not None and before.content and type(before.content[-1]) is ToolResultPart:
        return None
    if type(name) is str:
        return _ROLES.get(name)
    return None


def _date_in(entry: Part) -> Any:
    """Returns the time of a message, or None if it has none or writes it in another way."""
    date = entry.get("createdAt")
    return date_of(date) if is_js_date(date) else None


def _load_texts(parts: Any) -> list[Content] | None:
    """Returns the pieces of an AI SDK message with only plain texts and steps, or None if there are
    others."""
    if type(parts) is not list:
        return None
    content: list[Content] = []
    for part in cast("list[Any]", parts):
        text = None
        if type(part) is dict:
            text = cast("Part", part).get("text")
        if text and type(text) is str and part == {"type": "text", "text": text}:
            content.append(TextPart(text))
        elif part == _STEP:
            content.append(_BARE_STEP)
        else:
            return None
    return content


def _join(content: list[Content]) -> str:
    """Returns the text of all pieces."""
    return "".join([piece.text for piece in content if type(piece) is TextPart])


def dump_plain_row(message: Message, id_: str) -> Part | None:
    """Returns a Mastra row, or None. `id_` is that of its turn."""
    thread: Part = {}
    if message.native is not None:
        # Of all notes only those of such a row's thread can be written here.
        thread = OWN.fields(message.native)
        is_row = message.native == {NAME: thread, **_READ_HERE}
        if not is_row or not thread.keys() <= _THREAD_KEYS:
            return None
    parts = None
    if _is_bare(message):
        parts = _dump_texts(message)
    if parts is None:
        return None
    text = "".join([part["text"] for part in parts if "text" in part])
    if message.created_at is None:
        dated = {}
    else:
        dated = {"createdAt": js_date(message.created_at)}
    content = {"format": 2, "parts": parts, **({"content": text} if text else {})}
    return {
        "id": id_,
        "role": _NAMES[message.role],
        **dated,
        "content": content,
        **thread,
    }


def _is_bare(message: Message) -> bool:
    """True if an AI SDK message has nothing beside its content, native fields and time."""
    has_more = message.metadata or message.finish_reason is not None or message.usage is not None
    is_alone = message.origin is None and message.turn is None and message.role in _NAMES
    return is_alone and not has_more and bool(message.content)


def _dump_texts(message: Message) -> Parts | None:
    """Returns the parts of texts and steps in a Mastra row, or None if there are others. The
    inverse of `_load_texts`."""
    parts: Parts = []
    for piece in message.content:
        if type(piece) is TextPart and piece.native is None:
            parts.append({"type": "text", "text": piece.text})
        elif type(piece) is MarkPart and piece.kind == STEP and piece.native is None:
            parts.append({"type": STEP})
        else:
            return None
    return parts
