"""Bytes in JSON: base64, Node's `Buffer`, and a `Uint8Array`, which becomes an object of numbers."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, cast

from dragoman.codec.json_values import if_object
from dragoman.codec.media import decode_base64
from dragoman.wires.ai_sdk_messages.notes import Part

__all__ = ["decode_bytes", "encode_bytes"]


_MAX_BYTES = 2**26


def decode_bytes(value: Any) -> tuple[bytes, str] | None:
    """Returns the bytes that an AI SDK file writes in JSON, and their form there, or None.

    The forms are base64, Node's `Buffer`, and a `Uint8Array` as an object of numbers.
    """
    if isinstance(value, bytes):
        return value, "bytes"
    if isinstance(value, str):
        data = decode_base64(value)
        if data is None:
            return None
        return (data, "base64")
    numbers, form = _numbers_of(if_object(value))
    is_bytes = all(type(number) is int and 0 <= number < 256 for number in numbers)
    if form and is_bytes and len(numbers) <= _MAX_BYTES:
        return (bytes(numbers), form)
    return None


def _numbers_of(fields: Part) -> tuple[list[Any], str]:
    """Returns the numbers in the AI SDK's JSON for bytes and the form of that JSON, or an empty
    list and text."""
    listed = fields.get("data")
    if isinstance(listed, list) and len(fields) == 2 and fields.get("type") == "Buffer":
        return cast("list[Any]", listed), "buffer"
    if fields and all(key == str(index) for index, key in enumerate(fields)):
        return list(fields.values()), "numbers"
    return [], ""


def encode_bytes(data: bytes, form: Any) -> Any:
    """Returns bytes in JSON in a form of `decode_bytes`, or in one that model messages note."""
    if form == "buffer":
        return {"type": "Buffer", "data": list(data)}
    if form in ("numbers", "array"):
        return {str(index): number for index, number in enumerate(data)}
    if form == "base64":
        return b64encode(data).decode()
    return data
