"""What a protocol has no field for, carried beside what it has, so that clients and servers of ours
lose nothing.

One rule: write a value as the protocol has it, read that again, and carry the fields that would be
read otherwise (`difference`). Whoever reads puts them in the place of what was read (`changed`). A
value that is read as another type is carried whole.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import RunRequest

__all__ = ["apply_difference", "find_difference", "is_equal", "restore_fields"]

S = TypeVar("S", bound=msgspec.Struct)
_encode = msgspec.json.Encoder(order="deterministic").encode


def is_equal(value: Any, other: Any) -> bool:
    """True if two JSON values are the same, without a difference: `1`, `1.0` and `true` are not."""
    if value is other:
        return True
    # Nearly all that is compared, without encoding it.
    if type(value) is str is type(other):
        return value == other
    return _encode_value(value) == _encode_value(other)


def find_difference(value: msgspec.Struct, read: msgspec.Struct) -> Json:
    """Returns the fields of `value` that differ from those of `read`, as JSON (a difference). If
    the types differ, returns all fields and the type's name."""
    if type(value) is not type(read):
        return msgspec.to_builtins(value)
    return {
        name: msgspec.to_builtins(field)
        for name in value.__struct_fields__
        # Most fields are the very same object.
        if (field := getattr(value, name)) is not (other := getattr(read, name))
        and not is_equal(field, other)
    }


def apply_difference(read: S, fields: Any, target_type: Any) -> S:
    """Returns `read` with the fields of a difference applied, or unchanged if they do not fit
    `target_type`."""
    if not isinstance(fields, dict) or not fields:
        return read
    try:
        carried = if_object(fields)
        if "type" in carried:
            whole = carried
        else:
            whole = {**msgspec.to_builtins(read), **carried}
        return msgspec.convert(whole, target_type)
    except (ValueError, TypeError, RecursionError):
        return read


def restore_fields(
    request: RunRequest, stored_fields: JsonMap, names: Collection[str]
) -> RunRequest:
    """Returns a request with the fields that dragoman carried in its extension. `names`: fields
    that may be carried. A field of a wrong type is ignored."""
    fields = {name: value for name, value in stored_fields.items() if name in names}
    try:
        stored_request = msgspec.convert(fields, RunRequest)
    except (ValueError, TypeError, RecursionError):
        return request
    return request.replace(**{name: getattr(stored_request, name) for name in fields})


def _encode_value(value: Any) -> bytes:
    """Encodes a value as JSON, to find differences, also one with unpaired surrogates."""
    try:
        return _encode(value)
    except (ValueError, TypeError):
        # Half a character, which no JSON holds.
        return json_bytes.encode(value)
