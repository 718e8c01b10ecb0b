"""Types of request fields, by what a JSON value is: for servers, which refuse a field that is something else and name it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

__all__ = ["JsonType", "fault_of_type", "typed"]

JsonType: TypeAlias = Literal[
    "a number",
    "a whole number",
    "a number as a text",
    "true or false",
    "a text",
    "a list",
    "an object",
]

_NUMBERS = (int, float)
_NUMERAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def typed(**fields: Iterable[str]) -> dict[str, tuple[JsonType, ...]]:
    """The fields of each type: `typed(number=("temperature",), text_or_list=("stop",))`; words as in `_WORDS`, joined by `_or_`."""
    return {
        field: tuple([_WORDS[word] for word in kind.split("_or_")])
        for kind, names in fields.items()
        for field in names
    }


_WORDS: Mapping[str, JsonType] = {
    "number": "a number",
    "whole": "a whole number",
    "numeral": "a number as a text",
    "flag": "true or false",
    "text": "a text",
    "list": "a list",
    "object": "an object",
}


def fault_of_type(value: Any, types: Iterable[JsonType]) -> str:
    """What a value should be, in words; empty: it is, or it is `null`."""
    types = tuple(types)
    if value is None or any(_is(value, each) for each in types):
        return ""
    return " or ".join(types)


def _is(value: Any, kind: JsonType) -> bool:
    if kind in ("a number", "a whole number"):
        is_number = isinstance(value, _NUMBERS) and not isinstance(value, bool)
        return is_number and (kind == "a number" or value % 1 == 0)
    if kind == "a number as a text":
        return isinstance(value, str) and _NUMERAL.fullmatch(value) is not None
    kinds: Mapping[JsonType, type] = {
        "true or false": bool,
        "a text": str,
        "a list": list,
        "an object": dict,
    }
    return isinstance(value, kinds[kind])
