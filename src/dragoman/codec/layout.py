"""What a format says of its JSON: where its messages are in the body of a request, and which of their fields a history goes by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman.codec.json_values import if_list, if_objects
from dragoman.message import Native

__all__ = ["HistoryFields", "Layout", "Regeneration", "ThreadFields"]


class ThreadFields(NamedTuple):
    """Names of the fields that say which conversation a message is of."""

    thread_id: str
    """Field with the id of the thread."""
    resource_id: str
    """Field with the id of whoever the thread belongs to."""


class Regeneration(NamedTuple):
    """How the body of a request asks for another answer to a question."""

    field: str
    """Field that says what is asked for."""
    value: str
    """Its value where that is another answer."""
    message_id: str
    """Field with the id of the answer, or of its question."""


class HistoryFields(msgspec.Struct, frozen=True):
    """Which fields of a family of formats hold what a list of messages goes by. An empty name: the family has no such field."""

    native: str
    """Key in `native` under which the family's fields are."""
    approval: str = ""
    """Field of a call: an object with `approved` and `reason` once somebody answered, without `approved` before."""
    step_time: str = ""
    """Field of the mark at which a step begins: the time, in milliseconds since 1970."""
    step_model: str = ""
    """Field of that mark: the model that makes the step."""
    thread: ThreadFields | None = None
    """Fields of a message's `native` that name its thread."""
    stored_thread: Callable[[Native], Mapping[str, Any]] | None = None
    """Reads the same fields from what was noted of a row of a store."""
    sealed: tuple[str, str] = ("", "")
    """Key in a message's metadata, and the field there that is true if the message never changes."""
    done: tuple[str, ...] = ()
    """Keys in an answer's metadata that say a task is done, so that the answer is a turn by itself."""


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
    follows: str = ""
    """Field of a body with the id of the response that its messages follow."""
    regeneration: Regeneration | None = None
    """How a body asks for another answer."""
    thread: ThreadFields | None = None
    """Fields of each message that name its thread: written where a message has none."""

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
