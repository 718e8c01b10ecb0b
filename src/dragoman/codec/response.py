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
    Event,
    InnerRuns,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    without_inner_runs,
)
from dragoman.fold import fold
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
        """`envelope`: reads the wire's own fields around a message out of the `native` of its start
        and end."""
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
        """Of all messages that stand."""
        return sum(self._usages.values(), Usage()) if self._usages else None

    def accepts(self, event: Event) -> bool:
        """Whether an event is of this response. What it says of the whole is noted."""
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
        return isinstance(event, (RunError, RunFinished))

    def _start(self, event: MessageStarted) -> bool:
        if event.role is not Role.MODEL or event.candidate != 0:
            return False
        if not self.started:
            self.started, self.id, self.origin = True, event.message_id, event.origin
            self.response_id = (event.origin and event.origin.response_id) or (
                "" if event.anonymous else self.id
            )
        self._ids.add(event.message_id)
        self.envelope |= self._native(event.native)
        return True

    def _end(self, event: MessageFinished | MessageDropped) -> bool:
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
            self._usages[event.message_id] = event.usage if before is None else before + event.usage
        return True


def list_further_candidates(events: Iterable[Event]) -> list[Loss]:
    """What the response of these events leaves out on every wire: the candidates beyond the
    first."""
    others = [
        event.candidate for event in events if isinstance(event, MessageStarted) and event.candidate
    ]
    return [
        Loss(None, None, Lost.candidate, "a response holds the first alone", f"candidate {number}")
        for number in others
    ]


def name_model(origin: Origin | None) -> str:
    """The model that answers: the one that serves, else the one that was asked for. Empty: not
    known."""
    return (origin.served_model or origin.model or "") if origin is not None else ""


def drop_retracted(events: Iterable[Event], losses: list[Loss] | None = None) -> list[Event]:
    """The events without those of messages that are retracted in the end, and of runs within tools.
    What a response leaves out is added to `losses`."""
    events = without_inner_runs(events)
    if losses is not None:
        losses += list_further_candidates(events)
    void: set[int] = set()
    places: dict[str, list[int]] = {}
    for place, event in enumerate(events):
        message_id = getattr(event, "message_id", None)
        if isinstance(event, MessageStarted):
            places[event.message_id] = []
        if message_id in places:
            places[message_id].append(place)
        if isinstance(event, MessageDropped):
            void.update(places.pop(event.message_id, ()))
    return [event for place, event in enumerate(events) if place not in void] if void else events


def join_messages(
    events: Iterable[Event], losses: list[Loss] | None = None
) -> Message | DragomanError:
    """All messages of the model's as one, or the error that the events tell of. Its id and origin
    are those of the first message, as in a stream; the end is that of the last, the usage that of
    all. What a response leaves out is added to `losses`."""
    events = without_inner_runs(events)
    if losses is not None:
        losses += list_further_candidates(events)
    for event in events:
        if isinstance(event, RunError):
            return event.error
    messages = [message for message in fold(events) if message.role is Role.MODEL] or [
        Message.model()
    ]
    usages = [message.usage for message in messages if message.usage is not None]
    return messages[-1].replace(
        id=messages[0].id,
        origin=next((message.origin for message in messages if message.origin is not None), None),
        content=tuple(piece for message in messages for piece in strip_marks(message).content),
        usage=sum(usages, Usage()) if usages else None,
    )


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
    """Entries → their sum; `None`: there are none. What is no count in them is left out."""
    read = [
        Usage(**{ours: n for ours, theirs in _FIELDS.items() if _is_count(n := entry.get(theirs))})
        for entry in if_objects(entries)
    ]
    return reduce(add, read) if read else None


def dump_usage_entries(usage: Usage | None) -> list[Json]:
    """The inverse: one entry, or none where nothing is known."""
    fields = {
        theirs: n for ours, theirs in _FIELDS.items() if _is_count(n := getattr(usage, ours, None))
    }
    return [fields] if fields else []


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
