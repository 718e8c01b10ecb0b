"""This wire's own fields of a value: those beyond the neutral ones, and how the neutral ones were spelled.

Its keys are fields of the wire's own JSON object, which a dump writes as they are, but for those that are reserved:

- `spelling`: how neutral things were spelled, where it is not the usual way;
- `response`: what stands in a response only (of a message: around it). Never sent in a request;
- `item`: of a piece of a message item's content, the fields of the item that it begins; a piece without goes on with the
  item before, where that has such a mark, and is else an item of its own;
- `digest`: of a message, that of its content as it came, to know that it was not edited since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.message import Native

__all__ = ["NAME", "begun_item", "fields", "is_ours", "note", "of_message", "response", "rest", "spelled", "spelling"]

NAME = "openai_responses"
_RESERVED = ("spelling", "response", "item", "digest")


def is_ours(native: Native) -> bool:
    """Whether the value came through this wire with something of its own."""
    return native is not None and NAME in native


def fields(native: Native) -> dict[str, Any]:
    """The fields that are written as they are."""
    return {key: value for key, value in of_message(native).items() if key not in _RESERVED}


def spelling(native: Native) -> Mapping[str, Any]:
    """How neutral fields were spelled, where it is not the usual way."""
    return of_message(native).get("spelling", {})


def response(native: Native) -> Mapping[str, Any]:
    """What stands in a response only."""
    return of_message(native).get("response", {})


def begun_item(native: Native) -> Mapping[str, Any] | None:
    """Fields of the message item that begins with this piece; `None`: nothing is known of it."""
    return of_message(native).get("item")


def note(fields: Mapping[str, Any] | None = None, **reserved: Mapping[str, Any] | str | None) -> Native:
    """The native mapping of these fields; `reserved` as above. `None` where there is nothing to say."""
    told = {key: value for key, value in reserved.items() if value or (key == "item" and value is not None)}
    own = {**(fields or {}), **told}
    return {NAME: own} if own else None


def spelled(native: Native, **how: Any) -> Native:
    """The same native mapping with more noted of the spelling."""
    return {NAME: {**of_message(native), "spelling": {**spelling(native), **how}}}


def rest(block: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """The fields of a JSON object that are not among the known ones."""
    return {key: value for key, value in block.items() if key not in known}


def of_message(native: Native) -> Mapping[str, Any]:
    """All that is this wire's own, reserved keys included."""
    return cast("Mapping[str, Any]", native.get(NAME, {})) if native else {}
