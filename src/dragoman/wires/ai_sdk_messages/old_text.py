"""Texts as ai 4 and Mastra have them: parts `text` ↔ pieces."""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import if_object
from dragoman.codec.native import Own
from dragoman.message import TextPart, ThinkingPart
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.own import applied
from dragoman.wires.ai_sdk_messages.reading import Reading, load_mark, text_field

__all__ = ["dump_empty_text", "dump_old_text", "load_old_text"]

_GOOGLE = Own("google")
_KEY = "providerMetadata"


def load_old_text(part: dict[str, Any], it: Reading, where: str) -> None:
    """A text. An empty one that Google signed is thinking, any other empty one a mark."""
    text = text_field(part, "text", where)
    dialect = it.dialect
    if text:
        if len(part) == 2:
            it.add(TextPart(text))
            return
        it.opens()
        it.add(it.read(TextPart(text), part, lambda made: dump_old_text(made, dialect), "text"))
    elif isinstance(
        if_object(if_object(part.get(_KEY)).get("google")).get("thoughtSignature"), str
    ):
        it.opens()
        form, extra = {"text": "empty"}, _GOOGLE.note(form={"thought": "absent"}) or {}
        it.add(
            it.read(
                ThinkingPart(""),
                part,
                lambda made: dump_empty_text(made, dialect),
                "text",
                form=form,
                extra=extra,
            )
        )
    else:
        load_mark(part, it, where)


def dump_old_text(piece: TextPart, dialect: str) -> dict[str, Any]:
    """The inverse."""
    made: dict[str, Any] = {"type": "text", "text": piece.text}
    if piece.native is None:
        return made
    if metadata := metadata_of("text", piece.native):
        made[_KEY] = metadata
    return applied(piece.native, made, dialect)


def dump_empty_text(piece: ThinkingPart, dialect: str) -> dict[str, Any]:
    """What signs, on a text that is empty."""
    made: dict[str, Any] = {"type": "text", "text": ""}
    if metadata := metadata_of("text", piece.native):
        made[_KEY] = metadata
    return applied(piece.native, made, dialect)
