"""What a format says of itself as data: where its messages are in JSON, and which of its fields a
history acts on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman.codec.json_values import if_list, if_objects
from dragoman.json_bytes import JsonMap
from dragoman.message import Native

__all__ = ["FormatFields", "Layout", "Regeneration"]


def _no_fields(_: Native) -> JsonMap:
    return {}


class FormatFields(msgspec.Struct, frozen=True):
    """Which of a format's own fields a history acts on. A format has it as its attribute `fields`;
    an empty name means that it has no such field."""

    native: str
    """Name under which the format's own fields are in `native`."""
    approval: str = ""
    """Field of a call: an object that says `approved` (a boolean) and `reason`."""
    step_time: str = ""
    """Field of a step's mark: when the step began, in milliseconds since 1970."""
    step_model: str = ""
    """Field of a step's mark: the model that makes the step."""
    thread: str = ""
    """Field of each element of a written conversation: the id of its thread."""
    resource: str = ""
    """Field of each element of a written conversation: the id of the thread's owner."""
    thread_of: Callable[[Native], JsonMap] = _no_fields
    """(native of a message) → the fields `thread` and `resource`, as far as the message names
    them."""
    seal: tuple[str, ...] = ()
    """Path in a message's metadata to a flag: the message never changes."""
    done: tuple[str, ...] = ()
    """Keys of a message's metadata that say that its task is done, so that nothing is merged with
    it."""


class Regeneration(NamedTuple):
    """How the body of a request asks for another answer to a question."""

    field: str
    """Field that says what is asked for."""
    value: str
    """Its value where that is another answer."""
    message_id: str
    """Field with the id of the answer, or of its question."""


class Layout(msgspec.Struct, frozen=True):
    """Where a format's messages stand in the body of a request, and what of it `load_messages`
    takes: the list alone, unless it says more."""

    fields: tuple[str, ...] | None = None
    """Fields of a body that may hold the list of messages, the usual one first. `None`: any that
    other formats have; empty: none, the list stands in no body."""
    beside: tuple[str, ...] | None = None
    """The payload is an object: the list under the first of `fields`, and these fields of the body
    where it has them."""
    text: bool = False
    """The first of `fields` may hold a text in place of the list."""
    whole: bool = False
    """The payload is the body itself, with all of its fields."""
    distinctive: frozenset[str] = frozenset()
    """Fields of a body that hardly another format with the same list has."""
    of_tools: frozenset[str] = frozenset()
    """The same of an element of the body's `tools`."""
    follows: str = ""
    """Field of a body with the id of the response that its messages follow."""
    regeneration: Regeneration | None = None
    """How a body asks for another answer."""

    def evidence(self, body: JsonMap) -> int:
        """Returns how many fields beside the messages hardly another format has."""
        fields = len(self.distinctive & body.keys())
        if not self.of_tools:
            return fields
        tools = if_objects(body.get("tools"))
        return fields + sum(not self.of_tools.isdisjoint(tool) for tool in tools)

    def payload(self, messages: Sequence[Any], body: JsonMap) -> Any:
        """Returns what `load_messages` takes: the messages, with the fields of the body that belong
        to them."""
        field = next(iter(self.fields or ()), "")
        if self.whole and len(if_list(body.get(field))) == len(messages) > 0:
            return body
        if self.beside is None:
            return list(messages)
        if isinstance(body.get(field), str):
            listed = body[field]
        else:
            listed = list(messages)
        return {field: listed, **{other: body[other] for other in self.beside if other in body}}
