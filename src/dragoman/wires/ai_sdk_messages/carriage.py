"""What the family has no field for, of pieces that came from elsewhere: it stands under the key `dragoman` of a part's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.message import (
    NOTES,
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Native,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.outputs import as_result
from dragoman.wires.ai_sdk_messages.own import NAME, OURS
from dragoman.wires.ai_sdk_messages.signatures import foreign, lowered

__all__ = ["carried", "is_native", "metadata_of", "with_carried"]

P = TypeVar("P", bound=Content)
_FIELDS: Mapping[type[Content], frozenset[str]] = {
    DataPart: frozenset(["name"]),
    LinkPart: frozenset(["name", "mime_type", "url"]),
    FilePart: frozenset(["id", "name", "mime_type"]),
    ToolCallPart: frozenset(["run_by", "raw", "state", "arguments"]),
    ToolResultPart: frozenset(["name", "result", "is_error", "is_content", "run_by", "denied"]),
}
"""Type of a piece → its fields that may be carried."""


def metadata_of(kind: str, native: Native, fields: Mapping[str, Any] = {}) -> dict[str, Any]:
    """The metadata of a part that is written. `fields`: those of its piece that it has no field for."""
    if not native and not fields:
        return {}
    made = lowered(kind, native)
    held = foreign(kind, native) if native else {}
    if held or fields:
        made[OURS] = {
            **({"native": held} if held else {}),
            **({"fields": dict(fields)} if fields else {}),
        }
    return made


def carried(piece: Content, ours: Any) -> bool:
    """Whether what stands under our key is something that was written for such a piece."""
    given = if_object(ours)
    native, fields = given.get("native", {}), given.get("fields", {})
    if (
        not given
        or not given.keys() <= {"native", "fields"}
        or not is_native(native)
        or not isinstance(fields, dict)
    ):
        return False
    return fields.keys() <= _FIELDS.get(type(piece), frozenset())


def with_carried(piece: P, ours: Any) -> P:
    """A piece with what was carried of it; itself where that is nothing."""
    if not carried(piece, ours):
        return piece
    given = if_object(ours)
    native = {**if_object(given.get("native")), **(piece.native or {})}
    changed = {**given.get("fields", {}), "native": native or None}
    if isinstance(piece, ToolResultPart) and "result" in changed:
        result = as_result(changed.pop("result"))
        piece = msgspec.structs.replace(piece, result=result)
    try:
        return msgspec.convert(
            {**{name: getattr(piece, name) for name in piece.__struct_fields__}, **changed},
            type(piece),
            from_attributes=True,
        )
    except (msgspec.ValidationError, ValueError, TypeError):
        return piece


def is_native(value: Any) -> bool:
    """Whether these are fields of other formats, and never their notes."""
    held = if_object(value)
    return isinstance(value, dict) and all(
        isinstance(each, dict) and NOTES[0] not in key and key != NAME for key, each in held.items()
    )
