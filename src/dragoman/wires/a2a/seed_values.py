"""Messages, parts and updates of A2A of any age as plain JSON: dictionaries, objects with attributes, protobuf's messages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from dragoman.codec.json_values import if_object, if_text
from dragoman.wires.a2a.tools import CALL, RESULT, TOOL_CALLS_KEY, TOOL_RESULTS_KEY

__all__ = ["field", "parts_of", "role_name", "text_in", "tool_calls_of", "tool_results_of"]


def field(value: Any, *names: str) -> Any:
    """A field under the first of these names that is there, of a dictionary or an object; `None`: there is none."""
    value = _plain(value)
    for name in names:
        if isinstance(value, Mapping):
            if name in value:
                return cast("Mapping[str, Any]", value)[name]
        elif hasattr(value, name):
            return getattr(value, name)
    return None


def _plain(value: Any) -> Any:
    """A message of protobuf as a dictionary; anything else as it is."""
    if not hasattr(value, "DESCRIPTOR"):
        return value
    to_dict: Any = import_module("google.protobuf.json_format").MessageToDict
    return to_dict(value)


def role_name(message: Any) -> str:
    """`user` or `agent`, from any age's word for it; else the word itself, or empty."""
    role = field(message, "role")
    word = if_text(role) or if_text(getattr(role, "value", None))
    return word.removeprefix("ROLE_").lower() if word.startswith("ROLE_") else word


def parts_of(message: Any) -> list[Any]:
    """The parts of a message, each out of its wrapper."""
    parts = field(message, "parts")
    found = list(cast("list[Any]", parts)) if isinstance(parts, list | tuple) else []
    roots = [field(part, "root") for part in found]
    return [part if root is None else root for part, root in zip(found, roots, strict=True)]


def text_in(message: Any) -> str | None:
    """All text, joined without a separator; `None`: there is no part of text."""
    texts = [text for part in parts_of(message) if isinstance(text := field(part, "text"), str)]
    return "".join(texts) if texts else None


def tool_calls_of(message: Any) -> list[Any] | None:
    """The calls of all its parts; `None`: no part has calls, not even an empty list."""
    return _tools(message, TOOL_CALLS_KEY, CALL)


def tool_results_of(message: Any) -> list[Any] | None:
    """The results, likewise."""
    return _tools(message, TOOL_RESULTS_KEY, RESULT)


def _tools(message: Any, key: str, kind: str) -> list[Any] | None:
    found: list[Any] | None = None
    for part in parts_of(message):
        data = if_object(field(part, "data"))
        if key in data:
            listed = data[key]
            found = [
                *(found or []),
                *(cast("list[Any]", listed) if isinstance(listed, list) else []),
            ]
        elif data.get("type") == kind:
            found = [*(found or []), data]
    return found
