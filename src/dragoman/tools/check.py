"""A light check of arguments against a JSON Schema that was given as it is: what is required, and top-level types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import ToolError

__all__ = ["check"]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def check(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Passes over every keyword that it does not know.

    Raises:
        ToolError: an argument is missing or of a wrong type; the text says which and what was expected.
    """
    faults = [f"{name}: is required, but was not given" for name in schema.get("required", ()) if name not in arguments]
    properties = schema.get("properties", {})
    for name, value in arguments.items():
        expected = properties[name].get("type") if isinstance(properties.get(name), Mapping) else None
        names = [expected] if isinstance(expected, str) else expected or []
        if names and not any(_is(value, one) for one in names):
            faults.append(f"{name}: should be {' or '.join(names)}, got {value!r:.100}")
    if faults:
        raise ToolError("invalid arguments: " + "; ".join(faults))


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean" or name not in _TYPES
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return name not in _TYPES or isinstance(value, _TYPES[name])
