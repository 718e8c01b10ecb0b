"""A model's thinking in fields of the message ⇄ `ThinkingPart`: plain text, and details (signed, encrypted).

A part knows the fields that it came in (wire form `fields`); a detail's own fields (type, signature, data, id, index,
format) are its native ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.codec.json_values import if_list, if_objects, if_text, merged, rest
from dragoman.message import ThinkingPart

if TYPE_CHECKING:
    from dragoman.wires.chat.dialect import Chat

__all__ = [
    "dump_thinking",
    "fields_of",
    "load_detail",
    "load_thinking",
    "plain_thinking",
    "text_key",
]


def text_key(kind: object) -> str:
    """The field of a detail that holds its text."""
    return "summary" if kind == "reasoning.summary" else "text"


def load_thinking(
    chat: Chat, message: Mapping[str, Any]
) -> tuple[list[ThinkingPart], tuple[str, ...]]:
    """A message's thinking, and the fields that hold it. Fields that hold the same are one thinking."""
    entries = if_objects(message.get(chat.details)) if chat.details else []
    read = [
        field for field in chat.thinking if isinstance(message.get(field), str) and message[field]
    ]
    texts: dict[str, list[str]] = {}
    for field in read:
        texts.setdefault(message[field], []).append(field)
    details = [load_detail(chat, entry) for entry in entries]
    if details and (same := texts.pop("".join(part.text for part in details), None)):
        details = [load_detail(chat, entry, [*same, chat.details]) for entry in entries]
    plain = [plain_thinking(chat, fields, text) for text, fields in texts.items()]
    return plain + details, (*read, *((chat.details,) if details else ()))


def plain_thinking(chat: Chat, fields: Sequence[str], text: str = "") -> ThinkingPart:
    """Thinking that came as text in these fields."""
    return ThinkingPart(
        text, chat.own.note(form=None if [*fields] == [chat.thinking[0]] else {"fields": [*fields]})
    )


def load_detail(chat: Chat, entry: Mapping[str, Any], fields: Sequence[str] = ()) -> ThinkingPart:
    """One of the details. `fields`: those that hold the same text."""
    key = text_key(entry.get("type"))
    text = if_text(entry.get(key))
    own = rest(entry, key) if text else dict(entry)
    fields = fields or ([] if own else [chat.details])
    return ThinkingPart(text, chat.own.note(own, {"fields": list(fields)} if fields else None))


def fields_of(chat: Chat, part: ThinkingPart, note: str = "fields") -> list[str]:
    """The fields that a part came in, where that is noted. Note `again`: those in which a response held a detail's text a
    second time; a request does not."""
    return [
        field
        for field in if_list(chat.own.form(part.native).get(note))
        if field in (*chat.thinking, chat.details)
    ]


def dump_thinking(
    chat: Chat, parts: Sequence[ThinkingPart], default: str | None, joined: list[int] | None = None
) -> dict[str, Any]:
    """Thinking → the fields that carry it. `default`: the field for what came in none of ours; `None`: leave it out. `joined` takes
    which parts were added to the text of those before them."""
    out: dict[str, Any] = {}
    for number, part in enumerate(parts):
        own = chat.own.fields(part.native)
        for field in fields_of(chat, part) or (
            [chat.details] if own and chat.details else [default]
        ):
            if field and field == chat.details:
                text = {text_key(own.get("type")): part.text} if part.text else {}
                out.setdefault(field, []).append(merged(text, own))
            elif field is not None and part.text:
                if joined is not None and field in out and number not in joined:
                    joined.append(number)
                out[field] = out.get(field, "") + part.text
    return out
