"""Stored answers of the response cache: the cache key of a request, an answer's stored form, and
its replay as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from hashlib import sha256

import msgspec

from dragoman.errors import HistoryError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    RunError,
    event_from_json,
    event_to_json,
)
from dragoman.fold import compact
from dragoman.json_bytes import Json
from dragoman.message import FinishReason, MarkPart, Message, Origin, ToolCallPart
from dragoman.model.middleware import Destination
from dragoman.profiles.attach import lower_for
from dragoman.request import ModelRequest

__all__ = ["StoredAnswer", "cache_key", "dump_answer", "is_complete", "load_answer", "replay"]

_VERSION = 1
"""Version of the stored form. Answers of another version are ignored."""
_COMPLETE_REASONS = frozenset(
    {
        FinishReason.stop,
        FinishReason.length,
        FinishReason.tool_calls,
        FinishReason.refusal,
        FinishReason.unspecified,
        None,
    }
)
_DELTA_LENGTH = 24
"""Characters of each delta when an answer is replayed."""
_BATCH_SIZE = 16
"""Events of each batch when an answer is replayed."""


class StoredAnswer(msgspec.Struct, frozen=True):
    """An answer that was stored."""

    answered_at: float
    """Time of the answer, in seconds since 1970."""
    events: tuple[Event, ...]
    """Its events, with the deltas of each part joined."""


def is_complete(events: Sequence[Event], to: Origin) -> bool:
    """True if these events may be cached: they are a whole answer of the model `to`: it was not
    cut, failed, retracted or replaced by a fallback, has content, and all its tool calls can
    run."""
    open_messages: set[str] = set()
    has_content = False
    for event in events:
        match event:
            case RunError() | MessageDropped():
                return False
            case MessageStarted():
                open_messages.add(event.message_id)
            case PartFinished(part=part):
                has_content = True
                if isinstance(part, ToolCallPart) and part.state != "complete":
                    return False
            case MessageFinished():
                open_messages.discard(event.message_id)
                if event.finish_reason not in _COMPLETE_REASONS or event.cached:
                    return False
            case _:
                pass
        if isinstance(event, MessageStarted | MessageFinished) and not _is_from(event.origin, to):
            return False
    return has_content and not open_messages


def dump_answer(events: Sequence[Event], answered_at: datetime) -> bytes:
    """Returns an answer's stored form, as JSON.

    Raises:
        HistoryError: it holds what JSON cannot.
    """
    encoded = b",".join(map(event_to_json, compact(events)))
    return b'{"version":%d,"at":%s,"events":[%b]}' % (
        _VERSION,
        msgspec.json.encode(answered_at.timestamp()),
        encoded,
    )


def load_answer(data: bytes, to: Origin) -> StoredAnswer | None:
    """Reads a stored answer of the model `to`. Returns None if it is damaged or of another
    version."""
    try:
        stored = msgspec.json.decode(data, type=_Stored)
        if stored.version != _VERSION:
            return None
        events = tuple(event_from_json(bytes(event)) for event in stored.events)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, HistoryError):
        return None
    return StoredAnswer(stored.at, events) if is_complete(events, to) else None


def replay(
    answer: StoredAnswer, *, new_id: Callable[[], str], now: datetime
) -> Iterator[list[Event]]:
    """Yields a cached answer as a stream. Messages get new ids and the time `now`; tool calls keep
    the provider's ids."""
    ids: dict[str, str] = {}
    batch: list[Event] = []
    for event in answer.events:
        batch += _split_delta(_renew_event(event, ids, new_id, now))
        while len(batch) >= _BATCH_SIZE:
            yield batch[:_BATCH_SIZE]
            batch = batch[_BATCH_SIZE:]
    if batch:
        yield batch


class _Stored(msgspec.Struct, frozen=True):
    version: int
    at: float
    events: list[msgspec.Raw]


def _renew_event(
    event: Event, ids: dict[str, str], new_id: Callable[[], str], now: datetime
) -> Event:
    """Returns the cached answer's event with its message's new id, and with the new time or the
    mark `cached`."""
    message_id: str | None = getattr(event, "message_id", None)
    if message_id is None:
        return event
    if message_id not in ids:
        ids[message_id] = new_id()
    changes: Json = {"message_id": ids[message_id]}
    if isinstance(event, MessageStarted):
        changes["created_at"] = now
    elif isinstance(event, MessageFinished):
        changes["cached"] = True
    return msgspec.structs.replace(event, **changes)


def _split_delta(event: Event) -> list[Event]:
    """Splits a cached answer's text delta into short ones; returns any other event unchanged."""
    if not isinstance(event, PartDelta) or not isinstance(event.delta, str):
        return [event]
    starts = range(0, len(event.delta), _DELTA_LENGTH)
    return [
        PartDelta(event.message_id, event.index, event.delta[start : start + _DELTA_LENGTH])
        for start in starts
    ]


def _is_from(origin: Origin | None, to: Origin) -> bool:
    """True if an origin names the provider and model of `to`, or is unknown."""
    return origin is None or (origin.provider, origin.model) == (to.provider, to.model)


# its key


_KEY_VERSION = 1
"""Version of the key. A new one makes all earlier answers unfindable."""


def cache_key(
    request: ModelRequest, destination: Destination, scope: str | None = None
) -> str | None:
    """Returns the key under which the answer to a request is stored, or None if the request holds
    values that JSON cannot.

    The key is that of the request as its model accepts it. It covers everything that the model is
    told, but not ids, times, metadata and usage of
    messages, nor marks, nor the run. It covers the owner too: users with a `resource_id` share no
    answers. Without one, requests of the same `scope` share them, and without a scope those with
    the same credentials.
    """
    resource_id = request.run.resource_id if request.run is not None else None
    credentials = None
    if resource_id is None and scope is None:
        credentials = destination.credentials
    endpoint = (
        destination.provider,
        destination.endpoint,
        destination.model,
        destination.wire,
        destination.headers,
    )
    request, _ = lower_for(request, destination.profile, destination.wire)
    messages = tuple(map(_strip_identity, request.messages))
    relevant_request = request.replace(
        messages=messages, run=None, retries=None, verbatim=request.verbatim
    )
    try:
        return sha256(
            msgspec.json.encode(
                (_KEY_VERSION, endpoint, resource_id, scope, credentials, relevant_request)
            )
        ).hexdigest()
    except (TypeError, ValueError, RecursionError):
        return None


def _strip_identity(message: Message) -> Message:
    """Returns a message as the key of a cached answer counts it: without ids, times, metadata,
    usage and marks."""
    content = message.content
    if any(isinstance(piece, MarkPart) for piece in content):
        content = tuple(piece for piece in content if not isinstance(piece, MarkPart))
    return message.replace(
        content=content, id=None, created_at=None, metadata={}, usage=None, turn=None
    )
