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
from typing import Any

from dragoman.message import Native
from dragoman.native import Own

__all__ = [
    "NAME",
    "begun_item",
    "fields",
    "is_foreign",
    "is_ours",
    "note",
    "of_message",
    "response",
    "spelled",
    "spelling",
]

NAME = "openai_responses"

_OWN = Own(NAME, "item", "digest")
fields = _OWN.fields
is_foreign = _OWN.is_foreign
is_ours = _OWN.is_ours
of_message = _OWN.all
response = _OWN.response
spelling = _OWN.spelling


def spelled(native: Native, **how: Any) -> Native:
    """The same native mapping with more noted of the spelling."""
    return {NAME: {**of_message(native), "spelling": {**spelling(native), **how}}}


def begun_item(native: Native) -> Mapping[str, Any] | None:
    """Fields of the message item that begins with this piece; `None`: nothing is known of it."""
    return of_message(native).get("item")


def note(
    fields: Mapping[str, Any] | None = None,
    *,
    item: Mapping[str, Any] | None = None,
    mark: bool = False,
    **reserved: Any,
) -> Native:
    """The native mapping of these fields; `reserved` as above. `None` where there is nothing to say, unless a `mark` is wanted.
    An item without fields is one."""
    return _OWN.note({**(fields or {}), **({} if item is None else {"item": item})}, mark=mark, **reserved)
