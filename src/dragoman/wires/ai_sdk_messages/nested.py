"""An object within an object as one: fields of `toolInvocation` beside those of its part, fields of a row's `content` beside those of the
row, so that one note says how both differ from what would be written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["flat", "is_flat", "nested"]

_INNER, _OUTER = "inner/", "outer/"


def flat(
    outer: Mapping[str, Any], inner: Mapping[str, Any], own: Collection[str], holder: str
) -> dict[str, Any]:
    """The fields of both. `own`: names of those that are the inner object's, where no prefix says something else; `holder`: field of the outer
    one that holds it, which is left out."""
    out = {(key if key in own else _INNER + key): value for key, value in inner.items()}
    for key, value in outer.items():
        if key != holder:
            out[_OUTER + key if key in own else key] = value
    return out


def is_flat(outer: Mapping[str, Any]) -> bool:
    """Whether no field is named like those that `flat` makes."""
    return not any(key.startswith((_INNER, _OUTER)) for key in outer)


def nested(
    fields: Mapping[str, Any], own: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inverse: the outer object without its holder, and the inner one."""
    outer: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    for key, value in fields.items():
        if key in own:
            inner[key] = value
        elif key.startswith(_INNER):
            inner[key.removeprefix(_INNER)] = value
        else:
            outer[key.removeprefix(_OUTER)] = value
    return outer, inner
