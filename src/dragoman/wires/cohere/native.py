"""How this wire keeps what it has beyond the neutral fields: `native["cohere"]`, and JSON that others wrote read with care.

Its keys are fields of the wire's own JSON object, which a dump writes as they are, but for `spelling` (how neutral
things were spelled) and `response` (what stood around a message in a response; never sent).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.message import Content, Native

__all__ = [
    "NAME",
    "extra",
    "if_list",
    "if_object",
    "if_text",
    "kind_of",
    "marked",
    "merged",
    "respelled",
    "response",
    "rest",
    "spelling",
]

NAME = "cohere"
_RESERVED = ("spelling", "response")


def marked(fields: Mapping[str, Any], **reserved: Mapping[str, Any]) -> Native:
    """The native mapping of these fields; `reserved` are `spelling` and `response`. `None` where there is nothing to say."""
    own = {**fields, **{key: dict(value) for key, value in reserved.items() if value}}
    return {NAME: own} if own else None


def extra(native: Native) -> dict[str, Any]:
    """The fields that are written as they are."""
    return {key: value for key, value in _own(native).items() if key not in _RESERVED}


def spelling(native: Native) -> Mapping[str, Any]:
    """How neutral fields were spelled, where it is not the usual way."""
    return _own(native).get("spelling", {})


def response(native: Native) -> Mapping[str, Any]:
    """Of a message: fields of the response around it."""
    return _own(native).get("response", {})


def respelled(native: Native, **spelled: Any) -> Native:
    """The same fields with more said about their spelling."""
    return {NAME: {**_own(native), "spelling": {**spelling(native), **spelled}}}


def rest(block: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """The fields of a JSON object that nobody has read."""
    return {key: value for key, value in block.items() if key not in known}


def merged(block: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with this wire's own fields added, level by level. What is neutral is never overwritten."""
    for key, value in own.items():
        if key not in block:
            block[key] = value
        elif isinstance(block[key], dict) and isinstance(value, Mapping):
            block[key] = merged(dict(block[key]), cast("Mapping[str, Any]", value))
    return block


def kind_of(piece: Content) -> str:
    """What a piece of content is, in a word, such as `thinking`."""
    return str(piece.__struct_config__.tag)


def if_object(value: Any) -> dict[str, Any]:
    """The value where it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def if_list(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def if_text(value: Any) -> str:
    """The value where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def _own(native: Native) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", native.get(NAME) or {}) if native else {}
