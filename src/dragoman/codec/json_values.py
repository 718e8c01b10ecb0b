"""JSON that others wrote, read with care. `if_…` passes over what is of another kind than it should
be; `as_…` takes that for a `DecodeError`, where passing over it would lose a part of an answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar, cast

from dragoman import json_bytes
from dragoman.errors import DecodeError, HistoryError
from dragoman.json_bytes import Json, JsonMap

__all__ = [
    "first_text",
    "as_index",
    "as_list",
    "as_object",
    "as_text",
    "body_bytes",
    "drop_none",
    "check_depth",
    "merge_pieces",
    "if_list",
    "if_object",
    "if_objects",
    "if_text",
    "shape_error",
    "merge_wire_fields",
    "need_object",
    "optional_field",
    "pick",
    "read_extra_fields",
    "text_or_json",
    "has_error",
    "drop_empty",
    "select_unread",
]


T = TypeVar("T")
_DICT: Any = dict
_LIST: Any = list
"""Of no declared kind: a checker would take their elements for unknown, and a cast costs as much as
the look itself."""
_EMPTY: tuple[Any, ...] = ("", [], {})


def shape_error(value: Any, what: str) -> DecodeError:
    """Returns the error for a JSON value of the wrong shape. `what`: the value and its fault, in
    words."""
    body = json_bytes.encode(value)
    return DecodeError(
        f"the provider sent {what}: {body[:200].decode(errors='replace')}. This is a fault of its own; try again.",
        body=body,
    )


def check_depth(payload: T) -> T:
    """Returns a JSON payload unchanged if it does not nest too deep.

    Raises:
        HistoryError: it nests too deep.
    """
    try:
        json_bytes.check_value_depth(payload)
    except ValueError as error:
        raise HistoryError(f"what was given cannot be read: {error}") from error
    return payload


def body_bytes(body: bytes | JsonMap) -> bytes:
    """Returns a response's JSON body as bytes; it may be decoded JSON already.

    Raises:
        DecodeError: it nests too deep.
    """
    if isinstance(body, bytes):
        return body
    try:
        json_bytes.check_value_depth(body)
    except ValueError as error:
        raise DecodeError(f"the answer cannot be read: {error}") from error
    return json_bytes.encode(body)


def if_object(value: Any) -> Json:
    """Returns the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, _DICT) else {}


def if_list(value: Any) -> list[Any]:
    """Returns the value if it is a list, else an empty one."""
    return value if isinstance(value, _LIST) else []


def if_objects(value: Any) -> list[Json]:
    """Returns the value if it is a list of JSON objects, else an empty list."""
    entries = if_list(value)
    # A generator would cost more than the look at each.
    for entry in entries:
        if not isinstance(entry, dict):
            return []
    return entries


def if_text(value: Any) -> str:
    """Returns the value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def first_text(fields: JsonMap, *names: str) -> str:
    """Returns the first of these fields that is a text and not empty, else an empty text."""
    texts = (if_text(fields.get(name)) for name in names)
    return next(filter(None, texts), "")


def as_object(value: Any, name: str) -> Json:
    """Returns the value if it is a JSON object; None counts as an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise shape_error(value, f"a {name} that is no object")
    return cast("Json", value)


def need_object(value: Any, what: str) -> Json:
    """Returns the value if it is a JSON object."""
    if not isinstance(value, dict):
        raise DecodeError(f"{what} is no JSON object")
    return cast("Json", value)


def as_list(value: Any, name: str) -> list[Any]:
    """Returns the value if it is a list; None counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise shape_error(value, f"{name} that are no list")
    return cast("list[Any]", value)


def as_index(value: Any) -> int | str | None:
    """Returns a value that can tell entries of a list apart, or None."""
    return value if isinstance(value, (int, str)) else None


def as_text(value: Any) -> str:
    """Returns the value if it is a text. None is an empty text; other values become JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json_bytes.encode(value).decode()


def text_or_json(value: Any) -> str:
    """Returns a text as it is, any other value as JSON."""
    if isinstance(value, str):
        return value
    return json_bytes.encode(value).decode()


def select_unread(fields: Json, read: Collection[str]) -> Json:
    """Returns the fields of a JSON object not in `read` that are neither null nor empty."""
    return {
        key: value
        for key, value in fields.items()
        if key not in read and (value or (value is not None and value not in _EMPTY))
    }


def drop_empty(fields: Json) -> Json:
    """Returns the fields of a JSON object that are neither null nor empty."""
    return {
        key: value
        for key, value in fields.items()
        if value or (value is not None and value not in _EMPTY)
    }


def merge_pieces(fields: Json, more: JsonMap) -> None:
    """Merges fields of JSON values that come in pieces into `fields`: lists are extended, any other
    value is replaced. Linear in the pieces."""
    for name, value in more.items():
        if not isinstance(value, list):
            fields[name] = value
            continue
        if not isinstance(before := fields.get(name), list):
            before = fields[name] = []
        cast("list[Any]", before).extend(cast("list[Any]", value))


def optional_field(name: str, value: Any) -> Json:
    """Returns an object with this field, or an empty one if the value is None, zero or empty."""
    return {name: value} if value else {}


def read_extra_fields(block: JsonMap, *read_names: str) -> Json:
    """Returns the fields of a JSON object other than `read_names`."""
    return {key: value for key, value in block.items() if key not in read_names}


def pick(fields: JsonMap, names: Collection[str]) -> Json:
    """Returns the fields with these names."""
    return {name: fields[name] for name in names if name in fields}


def drop_none(fields: JsonMap) -> Json:
    """Returns the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def has_error(result: Any) -> bool:
    """True if the JSON value of a tool's result says that the tool failed: an object with the key
    `error`, or the text of one."""
    if isinstance(result, str) and result.lstrip().startswith("{"):
        try:
            result = json_bytes.decode(result)
        except ValueError:
            return False
    return "error" in if_object(result)


def merge_wire_fields(block: Json, wire_fields: JsonMap) -> Json:
    """Adds the wire's own fields to a JSON object, level by level, and returns it. Neutral fields
    are never overwritten."""
    for key, value in wire_fields.items():
        if key not in block:
            block[key] = value
        # A copy, since the inner object may be the caller's own, such as a tool's schema.
        elif isinstance(block[key], dict) and isinstance(value, Mapping):
            block[key] = merge_wire_fields(dict(block[key]), cast("JsonMap", value))
    return block
