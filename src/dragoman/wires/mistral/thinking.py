"""A chunk of thinking ⇄ `ThinkingPart`.

A chunk's thinking is a list of texts and of references to sources. One text is the usual; what else there is stands in
the spelling `items`: for each text its length, and every other item itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_objects, merged, rest
from dragoman.message import ThinkingPart
from dragoman.wires.mistral.quirks import OWN

__all__ = ["dump_thinking", "item_text", "load_thinking"]


def load_thinking(chunk: Mapping[str, Any]) -> ThinkingPart | None:
    """A chunk of thinking → the part; `None` where it is none."""
    told, own = chunk.get("thinking"), rest(chunk, "type", "thinking")
    if isinstance(told, str):
        return ThinkingPart(told, OWN.note(own, {"items": "string"}))
    if not isinstance(told, list) or (told and not if_objects(told)):
        return None
    texts = [item_text(item) for item in if_objects(told)]
    items = [len(text) if text else item for text, item in zip(texts, if_objects(told), strict=True)]
    usual = len(items) == 1 and texts[0] is not None
    return ThinkingPart("".join(filter(None, texts)), OWN.note(own, None if usual else {"items": items}))


def dump_thinking(part: ThinkingPart) -> dict[str, Any]:
    """The inverse. Where the text is another than the one that came, it is one text."""
    items = OWN.form(part.native).get("items")
    if items == "string":
        told: Any = part.text
    elif items is not None and sum(item for item in if_list(items) if isinstance(item, int)) == len(part.text):
        told = _divided(part.text, if_list(items))
    else:
        told = [{"type": "text", "text": part.text}] if part.text else []
    return merged({"type": "thinking", "thinking": told}, OWN.fields(part.native))


def item_text(item: Mapping[str, Any]) -> str | None:
    """The text of an item that is text and nothing else, and not empty."""
    text = item.get("text")
    return text if len(item) == 2 and item.get("type") == "text" and isinstance(text, str) and text else None


def _divided(text: str, items: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if isinstance(item, int):
            out.append({"type": "text", "text": text[:item]})
            text = text[item:]
        else:
            out.append(item)
    return out
