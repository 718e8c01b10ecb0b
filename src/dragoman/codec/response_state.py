"""What every encoder does the same way: of a run's events, those that a response tells, and what
they say of its end.

A response is one message of the model's. Of a run it tells all of them as one; other candidates,
and what others said, are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import add
from typing import Any

from dragoman.codec.json_values import if_objects
from dragoman.codec.marks import strip_marks
from dragoman.errors import DragomanError
from dragoman.event import (
    PARTIAL_IMAGE,
    PARTS_DROPPED,
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.fold import fold
from dragoman.inner_runs import InnerRuns, without_inner_runs
from dragoman.json_bytes import Json
from dragoman.loss import Loss, Lost
from dragoman.message import FinishReason, Message, Native, Origin, Role, Usage

__all__ = [
    "ResponseState",
    "dump_usage_entries",
    "list_further_candidates",
    "drop_retracted",
    "load_usage_entries",
    "name_model",
    "join_messages",
]


class ResponseState:
    """What is known of a response while its events come."""

    __slots__ = (
        "_ids",
        "_inner",
        "_native",
        "_usages",
        "envelope",
        "id",
        "origin",
        "reason",
        "response_id",
        "started",
    )

    def __init__(self, envelope: Callable[[Native], Json]) -> None:
        """Starts the state of a response, without messages. `envelope`: reads the wire's own fields
        around a message from the `native` of its start and end."""
        self.started = False
        self.id = ""
        """Of the first message."""
        self.response_id = ""
        """Its provider's id of it, else its own; empty where it has none."""
        self.origin: Origin | None = None
        """Of the first message."""
        self.envelope: Json = {}
        self.reason: FinishReason | None = None
        self._usages: dict[str, Usage] = {}
        self._native = envelope
        self._ids: set[str] = set()
        self._inner = InnerRuns()

    @property
    def usage(self) -> Usage | None:
        """Returns the usage of all messages of the response that were not withdrawn, summed."""
        if self._usages:
            return sum(self._usages.values(), Usage())
        return None

    def accepts(self, event: Event) -> bool:
        """True if an event belongs to the response whose state this is. Records what the event says
        about the whole."""
        if isinstance(event, (PartDelta, PartStarted, PartFinished)):
            return event.message_id in self._ids
        if self._inner.has(event):
            return False
        if isinstance(event, MessageStarted):
            return self._start(event)
        if isinstance(event, (MessageFinished, MessageDropped)):
            return self._end(event)
        if isinstance(event, RunFinished) and event.outcome == "cancelled":
            self.reason = self.reason or FinishReason.cancelled
        if isinstance(event, Custom):
            return event.name in (PARTIAL_IMAGE, PARTS_DROPPED) and self.started
        return isinstance(event, (RunError, RunFinished))

    def _start(self, event: MessageStarted) -> bool:
        """Takes the start of a message into the state of the response. Returns True if the response
        includes the message."""
        if event.role is not Role.MODEL or event.candidate != 0:
            return False
        if not self.started:
            self.started, self.id, self.origin = True, event.message_id, event.origin
            # The id of an anonymous message only ties its events together: no provider knows it.
            if event.origin and event.origin.response_id:
                self.response_id = event.origin.response_id
            elif not event.anonymous:
                self.response_id = self.id
        self._ids.add(event.message_id)
        self.envelope |= self._native(event.native)
        return True

    def _end(self, event: MessageFinished | MessageDropped) -> bool:
        """Takes into the state of the response the end of a message, or that it was withdrawn.
        Returns True if the response includes it."""
        if event.message_id not in self._ids:
            return False
        if isinstance(event, MessageDropped):
            self._ids.remove(event.message_id)
            self._usages.pop(event.message_id, None)
            self.reason = None
            return True
        self.reason = event.finish_reason
        self.envelope |= self._native(event.native)
        if event.usage is not None:
            before = self._usages.get(event.message_id)
            if before is None:
                self._usages[event.message_id] = event.usage
            else:
                self._usages[event.message_id] = before + event.usage
        return True


def list_further_candidates(events: Iterable[Event]) -> list[Loss]:
    """Returns the losses of every response: the candidates beyond the first."""
    numbers = [
        event.candidate for event in events if isinstance(event, MessageStarted) and event.candidate
    ]
    return [
        Loss(None, None, Lost.candidate, "a response holds the first alone", f"candidate {number}")
        for number in numbers
    ]


def name_model(origin: Origin | None) -> str:
    """Returns for a response the name of the model that answers: the one that serves, else the
    requested one; empty if unknown."""
    if origin is not None:
        return origin.served_model or origin.model or ""
    return ""


def drop_retracted(events: Iterable[Event], losses: list[Loss] | None = None) -> list[Event]:
    """Returns the events of a response without those of runs within tools and of messages that a
    `MessageDropped` retracts. Adds a loss for each candidate beyond the first to `losses`: a
    response holds one."""
    events = without_inner_runs(events)
    if losses is not None:
        losses += list_further_candidates(events)
    retracted_indexes: set[int] = set()
    message_indexes: dict[str, list[int]] = {}
    for index, event in enumerate(events):
        message_id = getattr(event, "message_id", None)
        if isinstance(event, MessageStarted):
            message_indexes[event.message_id] = []
        if message_id in message_indexes:
            message_indexes[message_id].append(index)
        if isinstance(event, MessageDropped):
            retracted_indexes.update(message_indexes.pop(event.message_id, ()))
    if retracted_indexes:
        return [event for index, event in enumerate(events) if index not in retracted_indexes]
    return events


def join_messages(
    events: Iterable[Event], losses: list[Loss] | None = None
) -> Message | DragomanError:
    """Joins all model messages of a response into one, or returns the error that the events tell
    of. Id and origin are those of the first message, as in a stream; the end is the last one's, the
    usage that of all. Adds a loss for each candidate beyond the first to `losses`."""
    events = without_inner_runs(events)
    if losses is not None:
        losses += list_further_candidates(events)
    # A client of a whole response gets either an answer or an error, never both.
    for event in events:
        if isinstance(event, RunError):
            return event.error
    messages = [message for message in fold(events) if message.role is Role.MODEL] or [
        Message.model()
    ]
    origins = (message.origin for message in messages)
    return messages[-1].replace(
        id=messages[0].id,
        origin=next(filter(None, origins), None),
        content=tuple(piece for message in messages for piece in strip_marks(message).content),
        usage=_sum_usages(messages),
    )


def _sum_usages(messages: Iterable[Message]) -> Usage | None:
    """Returns the tokens of all messages of a response; None if no message tells any."""
    usages = [message.usage for message in messages if message.usage is not None]
    if usages:
        return sum(usages, Usage())
    return None


_FIELDS: Mapping[str, str] = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "total_tokens": "totalTokens",
    "reasoning_tokens": "reasoningTokens",
    "cache_read_tokens": "cachedInputTokens",
    "cache_write_tokens": "cacheWriteInputTokens",
}
_MOST = 2**53 - 1
"""The largest whole number that every reader of JSON keeps."""


def load_usage_entries(entries: Any) -> Usage | None:
    """Returns the sum of the usage entries of a response, or None if there are none. Values that
    are no counts are ignored."""
    read = [
        Usage(**{name: n for name, field in _FIELDS.items() if _is_count(n := entry.get(field))})
        for entry in if_objects(entries)
    ]
    return reduce(add, read) if read else None


def dump_usage_entries(usage: Usage | None) -> list[Json]:
    """Returns one usage entry of a response, or none if nothing is known. Reverses
    `load_usage_entries`."""
    fields = {
        field: n for name, field in _FIELDS.items() if _is_count(n := getattr(usage, name, None))
    }
    return [fields] if fields else []


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
