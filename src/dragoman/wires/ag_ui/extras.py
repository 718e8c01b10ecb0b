"""What the protocol has no field for is one text under the key `dragoman` of metadata, so that no peer changes a byte of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.json_values import if_object
from dragoman.wires.ag_ui.quirks import OURS, RESERVED

__all__ = ["metadata_of", "others", "packed", "unpacked"]


def packed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata that carries these fields; empty where there are none."""
    return {OURS: json_bytes.encode(fields).decode()} if fields else {}


def unpacked(metadata: Any) -> dict[str, Any]:
    """The fields that metadata carries; empty where nothing of ours is there, or nothing that can be read."""
    text = if_object(metadata).get(OURS)
    if not isinstance(text, str):
        return {}
    try:
        return if_object(json_bytes.decode(text))
    except ValueError:
        return {}


def metadata_of(metadata: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The field `metadata` of an object that has both; none where both are empty."""
    both = {**metadata, **packed(fields)}
    return {"metadata": both} if both else {}


def others(metadata: Any) -> dict[str, Any]:
    """The part of metadata that is the application's."""
    return {key: value for key, value in if_object(metadata).items() if key not in RESERVED}
