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
    """Whether two values are the same JSON: `1`, `1.0` and `true` are not."""
    if value is other:
        return True
    if type(value) is str is type(other):  # nearly all that is compared, without encoding it
        return value == other
    return _stored(value) == _stored(other)


def find_difference(value: msgspec.Struct, read: msgspec.Struct) -> Json:
    """The fields of `value` that differ from what was `read`, as JSON has them; all of them, and
    the name of its type, where `read` is of another type."""
    if type(value) is not type(read):
        return msgspec.to_builtins(value)
    return {
        name: msgspec.to_builtins(field)
        for name in value.__struct_fields__
        if not is_equal(field := getattr(value, name), getattr(read, name))
    }


def apply_difference(read: S, fields: Any, kind: Any) -> S:
    """What was `read`, with the fields that were carried; as it is where they are no fields of a
    `kind`."""
    if not isinstance(fields, dict) or not fields:
        return read
    try:
        carried = if_object(fields)
        whole = carried if "type" in carried else {**msgspec.to_builtins(read), **carried}
        return msgspec.convert(whole, kind)
    except (ValueError, TypeError, RecursionError):
        return read


def restore_fields(request: RunRequest, held: JsonMap, names: Collection[str]) -> RunRequest:
    """A request with those of its fields that were carried. `names`: fields that may be; fields
    that are none of a request's kind change nothing."""
    fields = {name: value for name, value in held.items() if name in names}
    try:
        given = msgspec.convert(fields, RunRequest)
    except (ValueError, TypeError, RecursionError):
        return request
    return request.replace(**{name: getattr(given, name) for name in fields})


def _stored(value: Any) -> bytes:
    try:
        return _encode(value)
    except (ValueError, TypeError):  # half a character, which no JSON holds
        return json_bytes.encode(value)
