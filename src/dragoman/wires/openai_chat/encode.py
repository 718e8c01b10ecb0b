"""Events → a response: the chunks of a stream, or one body that says the same.

Candidate 0 only. Several model messages (a run with tools of its own) become one answer, as the format has no other way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from dragoman import json_bytes
from dragoman.codec.framing import event_bytes
from dragoman.codec.json_values import as_index, if_list, if_object, if_objects, rest
from dragoman.codec.response import ResponseState, kept, model_of
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.fold import compact
from dragoman.loss import Loss
from dragoman.message import Native
from dragoman.wires.openai_chat.errors import dump_error
from dragoman.wires.openai_chat.quirks import OWN
from dragoman.wires.openai_chat.telling import Telling
from dragoman.wires.openai_chat.thinking import DETAILS
from dragoman.wires.openai_chat.usage import dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder"]

_OF_CHOICE = ("logprobs", "native_finish_reason", "content_filter_results", "stop_reason", "matched_stop", "seed")
"""Fields of a message's `response` that stand in its choice; the others stand beside the choices."""
_LISTS = {"tool_calls", "images", "annotations"}
"""Fields whose entries have an index in a stream only."""
_INDEXED = {*_LISTS, "executed_tools", DETAILS}
"""Fields whose entries are told apart by an index."""
_NOT_JOINED = ("role", "type", "id", "index", "name")
_encode = json_bytes.encode


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one streamed response.

    `envelope`: fields of every chunk (`id`, `model`, `created`, `system_fingerprint` …), and `include_usage` (default
    true): whether a last chunk tells the usage, as a client asks by `stream_options`.
    """
    return Encoder(**envelope)


def dump_response(events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any) -> dict[str, Any]:
    """Events → a whole response, or, where one of them is an error, the body that tells of it. `envelope`: as for `encoder`."""
    writer = Encoder(**envelope)
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    places: _Places = {}
    for event in compact(kept(events, losses)):
        if isinstance(event, RunError):
            return dump_error(event.error)[1]
        for delta in writer.deltas(event):
            _join(message, delta, places)
    for field in _LISTS & message.keys():
        message[field] = [rest(entry, "index") for entry in if_objects(message[field])] or message[field]
    choice = {"index": 0, "message": message, "logprobs": None, **writer.outcome()}
    return {**writer.envelope("chat.completion"), "choices": [choice], **writer.usage()}


class Encoder:
    """Writes one streamed response."""

    def __init__(self, *, include_usage: bool = True, **envelope: Any) -> None:
        self._include_usage = include_usage
        self._envelope = envelope
        self._head = b""
        self._telling = Telling()
        self._answer = ResponseState(OWN.response)
        self._beside: dict[str, dict[str, Any]] = {}
        self._over = False

    def feed(self, event: Event) -> bytes:
        """One event → the chunks that tell of it."""
        if self._over:
            return b""
        if isinstance(event, RunError):
            self._over = True
            return event_bytes(_encode(dump_error(event.error)[1]))
        deltas = self.deltas(event)
        return b"".join([self._head + _encode(delta) + b',"finish_reason":null}]}\n\n' for delta in deltas])

    def close(self) -> bytes:
        """The end: why it stopped, the usage, and the mark that nothing follows."""
        if self._over:
            return b""
        self._over = True
        envelope = self.envelope("chat.completion.chunk")
        choice: dict[str, Any] = {"index": 0, "delta": {}, **self.outcome()}
        chunks: list[dict[str, Any]] = [{**envelope, "choices": [choice]}]
        if self._include_usage and (usage := self.usage()):
            chunks.append({**envelope, "choices": [], **usage})
        return b"".join([event_bytes(_encode(chunk)) for chunk in chunks]) + event_bytes(b"[DONE]")

    def deltas(self, event: Event) -> list[dict[str, Any]]:
        """One event → what it adds to the message."""
        if not self._answer.takes(event):
            return []
        if isinstance(event, PartDelta):
            return self._telling.more((event.message_id, event.index), event.delta)
        if isinstance(event, MessageStarted):
            self._beside[event.message_id] = _beside(event.native)
            return self._start()
        if isinstance(event, MessageDropped):
            self._telling.drop(event.message_id)
        if isinstance(event, (PartStarted, PartFinished)):
            tell = self._telling.begin if isinstance(event, PartStarted) else self._telling.end
            return tell((event.message_id, event.index), event.part)
        if not isinstance(event, MessageFinished):
            return []
        return self._telling.notes({**self._beside[event.message_id], **_beside(event.native)})

    def envelope(self, kind: str) -> dict[str, Any]:
        """What stands around the choices."""
        beside = rest(self._answer.envelope, *_OF_CHOICE, "usage", "finish_reason")
        return {"id": "", "object": kind, "created": 0, "model": "", **beside, **self._envelope}

    def outcome(self) -> dict[str, Any]:
        """What a choice says beside its message."""
        around = self._answer.envelope
        beside = {name: around[name] for name in _OF_CHOICE if name in around}
        return {**beside, "finish_reason": dump_finish(self._answer.reason, around.get("finish_reason"))}

    def usage(self) -> dict[str, Any]:
        """The field that tells the usage, where it is known."""
        answer = self._answer
        return {} if answer.usage is None else {"usage": dump_usage(answer.usage, answer.envelope.get("usage", {}))}

    def _start(self) -> list[dict[str, Any]]:
        if self._head:
            return []
        self._envelope = {"id": self._answer.response_id, "model": model_of(self._answer.origin), **self._envelope}
        envelope = _encode(self.envelope("chat.completion.chunk"))
        self._head = b"data: " + envelope[:-1] + b',"choices":[{"index":0,"delta":'
        return [{"role": "assistant", "content": ""}]


def _beside(native: Native) -> dict[str, Any]:
    """Fields of the message beside its content."""
    return {**if_object(OWN.notes(native).get("message")), **OWN.fields(native)}


_Places = dict[tuple[str, Any], dict[str, Any]]
"""A field and an index → the last entry of that list that has it."""


def _join(message: dict[str, Any], delta: Mapping[str, Any], places: _Places) -> None:
    """Adds a delta to the message that it belongs to, as a client does."""
    for field, value in delta.items():
        if field in _INDEXED and isinstance(value, list):
            before = message[field] = if_list(message.get(field))
            _join_entries(field, before, cast("list[Any]", value), places)
        else:
            message[field] = _joined(field, message.get(field), value)


def _joined(field: str, before: Any, value: Any) -> Any:
    """A field's value with more of it."""
    if before is None or before == "" or field in _NOT_JOINED:
        return value
    if isinstance(value, str) and isinstance(before, str):
        return before + value
    if isinstance(value, list) and isinstance(before, list):
        return [*cast("list[Any]", before), *cast("list[Any]", value)]
    if isinstance(value, Mapping) and isinstance(before, dict):
        return _with(cast("dict[str, Any]", before), cast("Mapping[str, Any]", value))
    return before


def _with(before: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return before | {field: _joined(field, before.get(field), value) for field, value in more.items()}


def _join_entries(field: str, before: list[Any], entries: list[Any], places: _Places) -> None:
    """Entries of one index are one: calls (later pieces name nothing but it), and details of one type."""
    for one in entries:
        entry = if_object(one)
        index, kind = as_index(entry.get("index")), entry.get("type")
        same = None if index is None else places.get((field, index))
        if same is not None and kind in (None, same.get("type")):
            same.update(_with(same, entry))
        else:
            before.append({**entry} if entry else one)
            places[field, index] = before[-1] if entry else {}
