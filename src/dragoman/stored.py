"""The stored form of a message through the versions: JSON, brought up to the newest.

| version | what is other |
|---|---|
| 2 | a wire's notes stand in `native` beside its fields, under a key of their own |
| 1 | they stood among its fields, under reserved names |
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

__all__ = ["newest", "unknown"]

_UNKNOWN = "dragoman"
"""Key in `native` of a provider part that stands for a piece of a kind that this release does not know: the piece as stored."""
_NOTES = ":notes"
_NOTED = ("spelling", "response", "item", "digest")
"""Names that were reserved for notes in version 1. One wire alone noted the last two; no other had fields of these names."""


def unknown(
    kind: str, native: Mapping[str, Any] | None, kinds: Collection[str]
) -> dict[str, Any] | None:
    """What a provider part stands for where that is a piece of a kind that is none of `kinds`: the piece as it was stored."""
    held: Any = native[_UNKNOWN] if native is not None and set(native) == {_UNKNOWN} else None
    piece = cast("dict[str, Any]", held) if isinstance(held, dict) else {}
    return piece if kind not in kinds and piece.get("type") == kind else None


def newest(stored: Any, kinds: Collection[str]) -> Any:
    """The JSON of a message of an older version, or with pieces of other `kinds` than those, as this release writes it."""
    if not isinstance(stored, dict):
        return stored
    fields = cast("dict[str, Any]", stored)
    content = fields.get("content")
    pieces = cast("list[Any]", content) if isinstance(content, list) else []
    if fields.get("v") == 1:
        fields, pieces = {**_two_rooms(fields), "v": 2}, [_two_rooms(piece) for piece in pieces]
    return {**fields, "content": [_known(piece, kinds) for piece in pieces]} if pieces else fields


def _known(piece: Any, kinds: Collection[str]) -> Any:
    fields = cast("dict[str, Any]", piece) if isinstance(piece, dict) else {}
    kind = fields.get("type")
    if not isinstance(kind, str) or kind in kinds:
        return cast("Any", piece)
    return {"type": "provider", "kind": kind, "native": {_UNKNOWN: fields}}


def _two_rooms(value: Any) -> Any:
    """Version 1 → 2: a message, or a piece of its content, or of a result's."""
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    if isinstance(native := fields.get("native"), dict):
        fields = {**fields, "native": _split(cast("dict[str, Any]", native))}
    if fields.get("is_content") is True and isinstance(result := fields.get("result"), list):
        fields = {**fields, "result": [_two_rooms(piece) for piece in cast("list[Any]", result)]}
    return fields


def _split(native: Mapping[str, Any]) -> dict[str, Any]:
    split: dict[str, Any] = {}
    for wire, own in native.items():
        fields = cast("dict[str, Any]", own) if isinstance(own, dict) else {}
        notes = {name: value for name, value in fields.items() if name in _NOTED}
        left = (
            {name: value for name, value in fields.items() if name not in _NOTED}
            if notes
            else cast("Any", own)
        )
        if left or not notes:
            split[wire] = left
        if notes:
            split[wire + _NOTES] = notes
    return split
