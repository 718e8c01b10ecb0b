"""Where the messages of a format stand in JSON: in a list alone, beside other fields, in the body of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.codec.json_values import if_list, if_objects

__all__ = ["Layout"]


class Layout(msgspec.Struct, frozen=True):
    """Where a format's messages stand in the body of a request, and what of it `load_messages` takes: the list alone, unless it says more."""

    fields: tuple[str, ...] | None = None
    """Fields of a body that may hold the list of messages, the usual one first. `None`: any that other formats have; empty: none, the list
    stands in no body."""
    beside: tuple[str, ...] | None = None
    """The payload is an object: the list under the first of `fields`, and these fields of the body where it has them."""
    text: bool = False
    """The first of `fields` may hold a text in place of the list."""
    whole: bool = False
    """The payload is the body itself, with all of its fields."""
    own: frozenset[str] = frozenset()
    """Fields of a body that hardly another format with the same list has."""
    of_tools: frozenset[str] = frozenset()
    """The same of an element of the body's `tools`."""

    def evidence(self, body: Mapping[str, Any]) -> int:
        """How many of the fields beside the messages hardly another format has."""
        tools = if_objects(body.get("tools")) if self.of_tools else []
        return len(self.own & body.keys()) + sum(
            not self.of_tools.isdisjoint(tool) for tool in tools
        )

    def payload(self, messages: Sequence[Any], body: Mapping[str, Any]) -> Any:
        """What `load_messages` takes: messages, with the fields of the body that belong to them."""
        field = next(iter(self.fields or ()), "")
        if self.whole and len(if_list(body.get(field))) == len(messages) > 0:
            return body
        if self.beside is None:
            return list(messages)
        listed = body[field] if isinstance(body.get(field), str) else list(messages)
        return {field: listed, **{other: body[other] for other in self.beside if other in body}}
