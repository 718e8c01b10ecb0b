"""What the protocol has no field for stands as one text under the key `dragoman` of metadata, so that no peer changes a byte of it.

Of a value it holds what would not be read from the fields beside it: the difference, never the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object
from dragoman.wires.ag_ui.quirks import OURS, RESERVED

__all__ = ["changed", "difference", "is_equal", "metadata_of", "others", "packed", "unpacked"]

S = TypeVar("S", bound=msgspec.Struct)
_encode = msgspec.json.Encoder(order="deterministic").encode


def packed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields → the metadata that holds them; empty where there are none."""
    return {OURS: json_bytes.encode(fields).decode()} if fields else {}


def unpacked(metadata: Any) -> dict[str, Any]:
    """The inverse; empty where nothing of ours is there, or nothing that can be read."""
    text = if_object(metadata).get(OURS)
    if not isinstance(text, str):
        return {}
    try:
        return if_object(json_bytes.decode(text))
    except ValueError:
        return {}


def metadata_of(metadata: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The field `metadata` of an object that holds both; none where there is nothing to hold."""
    held = {**metadata, **packed(fields)}
    return {"metadata": held} if held else {}


def others(metadata: Any) -> dict[str, Any]:
    """Metadata that is the application's."""
    return {key: value for key, value in if_object(metadata).items() if key not in RESERVED}


def is_equal(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: `1`, `1.0` and `true` are not."""
    return _stored(one) == _stored(other)


def difference(value: msgspec.Struct, read: msgspec.Struct) -> dict[str, Any]:
    """The fields of a value that would be read otherwise, as JSON has them; the name of its type too, where that is another."""
    if type(value) is type(read):
        return {
            name: msgspec.to_builtins(mine)
            for name in value.__struct_fields__
            if not is_equal(mine := getattr(value, name), getattr(read, name))
        }
    return msgspec.to_builtins(value)


def changed(read: S, fields: Any, kind: Any) -> S:
    """What was read, with the fields that were carried (of another type: all of them); itself where they are no fields of it."""
    if not isinstance(fields, dict) or not fields:
        return read
    try:
        whole = "type" in fields
        return msgspec.convert(
            fields if whole else {**msgspec.to_builtins(read), **if_object(fields)}, kind
        )
    except (ValueError, TypeError, RecursionError):
        return read


def _stored(value: Any) -> bytes | None:
    try:
        return _encode(value)
    except (ValueError, TypeError):  # half a character, which no JSON holds
        return json_bytes.encode(value)
