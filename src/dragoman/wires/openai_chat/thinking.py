"""A model's thinking ⇄ `ThinkingPart`: `reasoning_content`, `reasoning` and `reasoning_details` (signed, encrypted).

A part knows the fields that it came in (spelling `fields`); a detail's own fields (type, signature, data, id, index,
format) are its native ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_objects, if_text, merged, rest
from dragoman.message import ThinkingPart
from dragoman.wires.openai_chat.quirks import OWN

__all__ = ["DETAILS", "PLAIN", "again_in", "dump_thinking", "fields_of", "load_detail", "load_thinking", "text_key"]

PLAIN = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"


def text_key(kind: object) -> str:
    """The field of a detail that holds its text."""
    return "summary" if kind == "reasoning.summary" else "text"


def load_thinking(message: Mapping[str, Any]) -> tuple[list[ThinkingPart], tuple[str, ...]]:
    """A message's thinking, and the fields that told it. Fields that say the same are one thinking."""
    details = if_objects(message.get(DETAILS))
    read = [field for field in PLAIN if isinstance(message.get(field), str) and message[field]]
    told: dict[str, list[str]] = {}
    for field in read:
        told.setdefault(message[field], []).append(field)
    parts = [load_detail(entry) for entry in details]
    if parts and (same := told.pop("".join(part.text for part in parts), None)):
        parts = [load_detail(entry, [*same, DETAILS]) for entry in details]
    plain = [
        ThinkingPart(text, OWN.note({}, None if fields == ["reasoning_content"] else {"fields": fields}))
        for text, fields in told.items()
    ]
    return plain + parts, (*read, *((DETAILS,) if parts else ()))


def load_detail(entry: Mapping[str, Any], fields: Sequence[str] = ()) -> ThinkingPart:
    """One of `reasoning_details`."""
    key = text_key(entry.get("type"))
    text = if_text(entry.get(key))
    own = rest(entry, key) if text else dict(entry)
    fields = fields or ([] if own else [DETAILS])
    return ThinkingPart(text, OWN.note(own, {"fields": list(fields)} if fields else None))


def fields_of(part: ThinkingPart) -> list[str]:
    """The fields that a part came in, where that is noted."""
    return [field for field in if_list(OWN.form(part.native).get("fields")) if field in (*PLAIN, DETAILS)]


def again_in(part: ThinkingPart) -> list[str]:
    """The fields in which an answer told a detail's text a second time. A request does not."""
    return [field for field in if_list(OWN.form(part.native).get("again")) if field in PLAIN]


def dump_thinking(parts: Sequence[ThinkingPart], default: str | None) -> dict[str, Any]:
    """Thinking → the fields that carry it. `default`: the field for what came in none of ours; `None`: leave it out."""
    out: dict[str, Any] = {}
    for part in parts:
        own = OWN.fields(part.native)
        for field in fields_of(part) or ([DETAILS] if own else [default]):
            if field == DETAILS:
                text = {text_key(own.get("type")): part.text} if part.text else {}
                out.setdefault(DETAILS, []).append(merged(text, own))
            elif field is not None and part.text:
                out[field] = out.get(field, "") + part.text
    return out
