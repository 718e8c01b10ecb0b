"""JSON that others wrote, read with care: `if_…` passes over what is of another kind than it should be."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["if_list", "if_object", "if_objects"]


def if_object(value: Any) -> dict[str, Any]:
    """The value where it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def if_list(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def if_objects(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in a list."""
    return [cast("dict[str, Any]", each) for each in if_list(value) if isinstance(each, dict)]
