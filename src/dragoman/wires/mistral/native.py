"""How this wire keeps what it has beyond the neutral fields: `native["mistral"]`.

Its keys are fields of the wire's own JSON object, which a dump merges in as they are, but for two that are reserved:
`spelling` (how neutral things were spelled, where that is not the default) and `response` (what stood around a
message in a response; never sent).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.message import Content, Native

__all__ = ["NAME", "extra", "is_ours", "kind_of", "marked", "respelled", "response_of", "spelling"]

NAME = "mistral"
_RESERVED = ("spelling", "response")
_NONE: dict[str, Any] = {}


def marked(fields: Mapping[str, Any], spelled: Mapping[str, Any] | None = None) -> Native:
    """This wire's fields and spellings → `native`; `None` where there is nothing to keep."""
    own = {**fields, "spelling": dict(spelled)} if spelled else dict(fields)
    return {NAME: own} if own else None


def respelled(native: Native, **spelled: Any) -> Native:
    """The same fields with more said about their spelling."""
    return {NAME: {**_own(native), "spelling": {**spelling(native), **spelled}}}


def is_ours(native: Native) -> bool:
    """Whether the value came through this wire with something of its own."""
    return native is not None and NAME in native


def kind_of(piece: Content) -> str:
    """What a piece of content is, in a word, such as `thinking`."""
    return str(piece.__struct_config__.tag)


def extra(native: Native) -> dict[str, Any]:
    """This wire's own fields."""
    return {key: value for key, value in _own(native).items() if key not in _RESERVED}


def spelling(native: Native) -> dict[str, Any]:
    """How neutral things were spelled."""
    return _own(native).get("spelling", _NONE)


def response_of(native: Native) -> dict[str, Any]:
    """What stood around the message in its response."""
    return _own(native).get("response", _NONE)


def _own(native: Native) -> dict[str, Any]:
    return (native.get(NAME) or _NONE) if native else _NONE
