"""Reasoning items ↔ `ThinkingPart`: one item, one part. Its id and its encrypted content are the part's native fields.

An item tells its thinking in pieces, as `summary` or as `content`; a part's text joins them with blank lines, and its
spelling tells where they were joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object, rest
from dragoman.message import ThinkingPart
from dragoman.wires.openai_responses.quirks import OWN

__all__ = ["BETWEEN", "TYPES", "dump_reasoning", "load_reasoning", "resolved", "texts_of"]

BETWEEN = "\n\n"
"""Stands between two pieces of thinking."""
TYPES = {"summary": "summary_text", "content": "reasoning_text"}
"""Field of a reasoning item → the type of its pieces."""


def load_reasoning(item: Mapping[str, Any], unsent: Mapping[str, Any] = {}) -> ThinkingPart:
    """A reasoning item → the part. `unsent`: fields that a response tells and no request may."""
    told = {field: texts for field, kind in TYPES.items() if (texts := texts_of(item.get(field), kind)) is not None}
    text = BETWEEN.join([text for texts in told.values() for text in texts])
    pieces = {field: [len(text) for text in texts] for field, texts in told.items()}
    usual = pieces == ({"summary": [len(text)]} if text else {"summary": []})
    return ThinkingPart(
        text,
        OWN.note(rest(item, "type", *told), form={} if usual else {"pieces": pieces}, response=unsent),
    )


def dump_reasoning(part: ThinkingPart) -> dict[str, Any]:
    """The part → its reasoning item."""
    own = OWN.fields(part.native)
    pieces: Mapping[str, list[int]] = {
        field: [length if type(length) is int else 0 for length in if_list(lengths)]
        for field, lengths in if_object(OWN.form(part.native).get("pieces")).items()
        if field in TYPES
    }
    if not pieces and "summary" not in own:
        pieces = {"summary": [len(part.text)] if part.text else []}
    lengths = [length for of_field in pieces.values() for length in of_field]
    texts = iter(_split(part.text, lengths) or [part.text, *("" for _ in lengths)])
    told = {
        field: [{"type": TYPES[field], "text": next(texts)} for _ in of_field] for field, of_field in pieces.items()
    }
    return {"type": "reasoning", **own, **told}


def resolved(part: ThinkingPart) -> bool:
    """Whether the item can be understood without the provider having stored it."""
    return bool(OWN.fields(part.native).get("encrypted_content"))


def texts_of(pieces: Any, kind: str) -> list[str] | None:
    """The texts of such pieces; `None` where they are of another shape, and kept as they are."""
    if not isinstance(pieces, list):
        return None
    texts: list[str] = []
    for piece in cast("list[Any]", pieces):
        match piece:
            case {"type": str(told), "text": str(text), **others} if told == kind and not others:
                texts.append(text)
            case _:
                return None
    return texts


def _split(text: str, lengths: Sequence[int]) -> list[str] | None:
    """The text cut into the pieces that it was joined from; `None` where it is not the same text any more."""
    out: list[str] = []
    at = 0
    for length in lengths:
        out.append(text[at : at + length])
        at += length + len(BETWEEN)
    return out if BETWEEN.join(out) == text else None
