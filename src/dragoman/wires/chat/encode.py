"""Writes events as a response: the chunks of a stream, or one body that holds the same.

A whole response is its own stream, joined as clients join it (`dump_response`), so that the two
cannot differ. Only candidate 0 is written. Several model messages, as a run with tools has them,
become one answer, because the format has no other way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, cast

from dragoman import json_bytes
from dragoman.codec.citations import CitedText
from dragoman.codec.framing import frame_server_event
from dragoman.codec.json_values import as_index, if_list, if_object, if_objects, read_extra_fields
from dragoman.codec.response_encoder import NO_OBJECTS, Objects, ResponseEncoder
from dragoman.codec.response_state import drop_retracted, name_model
from dragoman.errors import DragomanError
from dragoman.event import (
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
from dragoman.fold import compact
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Citation, Native
from dragoman.request import ModelRequest
from dragoman.wires.chat.encode_parts import ChatParts
from dragoman.wires.chat.errors import dump_error
from dragoman.wires.chat.record import DialectRecord
from dragoman.wires.chat.usage import dump_finish, dump_usage

__all__ = ["STREAM_TYPE", "Encoder", "dump_response", "envelope"]

STREAM_TYPE = "text/event-stream"
"""Media type of a streamed response."""

_REPLACED = ("role", "type", "id", "index", "name")
"""Fields that a later delta replaces, where other texts are joined."""


class Encoder(ResponseEncoder):
    """Writes one streamed response. `objects` returns deltas of the message until `end`."""

    DONE: ClassVar[bytes] = frame_server_event(b"[DONE]")
    PARTS: ClassVar[type[ChatParts]] = ChatParts
    OF_CHOICE: ClassVar[tuple[str, ...]] = ("logprobs",)
    """Fields of a message's `response` that belong to its choice. The others stand beside the
    choices."""
    LISTS: ClassVar[frozenset[str]] = frozenset({"annotations"})
    """Fields of a message, beside its calls, whose entries have an index in a stream only."""
    INDEXED: ClassVar[frozenset[str]] = frozenset()
    """Further fields whose entries are told apart by an index."""
    WHOLE: ClassVar[JsonMap] = {}
    """Fields that every whole message has."""

    def __init__(self, chat: DialectRecord, *, include_usage: bool = True, **envelope: Any) -> None:
        """Creates the encoder. `envelope`: fields of every chunk (`id`, `model`, `created`,
        `system_fingerprint` …). `include_usage`: True if the end holds the usage, as a client asks
        for by `stream_options`."""
        super().__init__(chat.own, envelope)
        self.chat = chat
        self._include_usage = include_usage
        self._head = b""
        self._parts = self.PARTS(chat)
        self._beside: dict[str, Json] = {}
        self._cited = CitedText(keeps_texts=False)

    def close(self) -> bytes:
        """Returns the end of the Chat stream: finish reason, usage, and the mark that nothing
        follows. A response without messages has one too."""
        if self._over:
            return b""
        self._over = True
        return b"".join([self.frame(data) for data in self.end()]) + self.DONE

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:
        """Returns the first chunk of a Chat stream, and encodes what all chunks begin with."""
        self._beside[event.message_id] = self._fields(event.native)
        if not first:
            return NO_OBJECTS
        # All chunks begin alike: that is encoded once, and `frame` puts the deltas behind it.
        self._head = (
            b"data: "
            + json_bytes.encode(self.dump_envelope(chunk=True))[:-1]
            + b',"choices":[{"index":0,"delta":'
        )
        return [{"role": "assistant", "content": ""}]

    def part_started(self, event: PartStarted) -> Objects:
        return self._parts.begin((event.message_id, event.index), event.part)

    def delta(self, event: PartDelta) -> Objects:
        return self._parts.add_delta((event.message_id, event.index), event.delta)

    def part_finished(self, event: PartFinished) -> Objects:
        self._cited.add(event.part)
        return self._parts.end((event.message_id, event.index), event.part)

    def message_finished(self, event: MessageFinished) -> Objects:
        """See `ResponseEncoder`. Writes the fields of the message beside its content."""
        sources: Json = {}
        if self._cited.citations:
            sources = self.dump_citations(self._cited.citations)
            self._cited.citations = []
        fields = self._parts.dump_fields(
            {**sources, **self._beside[event.message_id], **self._fields(event.native)}
        )
        if fields:
            return [{**self.chat.no_text, **fields}]
        return NO_OBJECTS

    def message_dropped(self, event: MessageDropped) -> Objects:
        self._parts.drop(event.message_id)
        return NO_OBJECTS

    def dump_citations(self, citations: Sequence[Citation]) -> Json:  # noqa: ARG002 for those that have a field for it
        """Returns the fields of a message for the sources of its text."""
        return {}

    def error(self, error: DragomanError) -> Objects:
        self._head = b""
        return [dump_error(self.chat, error).body]

    def end(self) -> Objects:
        """Returns the last chunks of a Chat stream: finish reason and usage."""
        self._head = b""
        envelope = self.dump_envelope(chunk=True)
        usage = self.dump_usage() if self._include_usage else {}
        choice = {"index": 0, "delta": {**self.chat.no_text}, **self.dump_finish()}
        last = {**envelope, "choices": [choice]}
        if not self.chat.usage_apart:
            return [{**last, **usage}]
        if not usage:
            return [last]
        return [last, {**envelope, "choices": [], **usage}]

    def frame(self, data: JsonMap) -> bytes:
        """Returns a Chat chunk as a server-sent event, with the head that all chunks share."""
        encoded = json_bytes.encode(data)
        if self._head:
            return self._head + encoded + b',"finish_reason":null}]}\n\n'
        return frame_server_event(encoded)

    def dump_envelope(self, *, chunk: bool) -> Json:
        """Returns what stands around the choices of a Chat chunk, or of a whole response."""
        state = self._state
        usual = {
            "id": state.response_id,
            "object": "chat.completion.chunk" if chunk else "chat.completion",
            "created": 0,
            "model": name_model(state.origin),
        }
        beside = read_extra_fields(state.envelope, *self.OF_CHOICE, "usage", "finish_reason")
        return {**usual, **beside, **self._envelope}

    def dump_finish(self) -> Json:
        """Returns the fields of a Chat choice beside its message."""
        fields, reason = self._state.envelope, self._state.reason
        beside = {name: fields[name] for name in self.OF_CHOICE if name in fields}
        vendor_reason = dump_finish(self.chat, reason, fields.get("finish_reason"))
        return {**beside, "finish_reason": vendor_reason}

    def dump_usage(self) -> Json:
        """Returns the field of a Chat answer that holds the usage, if it is known."""
        usage = self._state.usage
        if usage is None:
            return {}
        return {"usage": dump_usage(self.chat, usage, self._state.envelope.get("usage", {}))}

    def _fields(self, native: Native) -> Json:
        """Returns the fields of the message beside its content."""
        noted_fields = if_object(self.chat.own.notes(native).get("message"))
        return {**noted_fields, **self.chat.own.fields(native)}


def envelope(
    chat: DialectRecord,
    request: ModelRequest | None,
    *,
    id: str,  # noqa: A002 the protocol's
    now: datetime,
) -> Json:
    """Returns the arguments of an encoder for an answer to `request`. A client that asked for a
    stream without usage gets none."""
    fields: Json = {"id": f"{chat.id_prefix}{id}", "created": int(now.timestamp())}
    if request is None:
        return fields
    if request.model:
        fields["model"] = request.model
    if request.stream and "stream_options" in chat.streaming:
        options = {**chat.streaming, **chat.own.fields(request.native)}["stream_options"]
        unstated = "stream_options" not in chat.own.form(request.native)
        fields["include_usage"] = unstated and if_object(options).get("include_usage") is True
    return fields


def dump_response(encoder: Encoder, events: Iterable[Event], losses: list[Loss] | None) -> Json:
    """Writes events as a whole Chat response. If one of them is an error, returns the error's
    body."""
    chat = encoder.chat
    message: Json = {"role": "assistant", "content": None, **encoder.WHOLE}
    lists = encoder.LISTS | {chat.calls}
    indexed = lists | encoder.INDEXED | {chat.details}
    last_entries: _LastEntries = {}
    # A whole response is its stream, joined as clients join it, so that the two cannot differ.
    for event in compact(drop_retracted(events, losses)):
        if isinstance(event, RunError):
            return dump_error(chat, event.error).body
        if isinstance(event, RunFinished):
            continue
        for delta in encoder.objects(event):
            _join_delta(message, delta, indexed, last_entries)
    for field in lists & message.keys():
        entries = [read_extra_fields(entry, "index") for entry in if_objects(message[field])]
        message[field] = entries or message[field]
    choice = {"index": 0, "message": message, "logprobs": None, **encoder.dump_finish()}
    return {**encoder.dump_envelope(chunk=False), "choices": [choice], **encoder.dump_usage()}


_LastEntries = dict[tuple[str, Any], Json]
"""A field and an index → the last entry with that index in that list."""


def _join_delta(
    message: Json,
    delta: JsonMap,
    indexed: frozenset[str],
    last_entries: _LastEntries,
) -> None:
    """Adds a delta to the Chat message, as a client does."""
    for field, value in delta.items():
        if field in indexed and isinstance(value, list):
            before = message[field] = if_list(message.get(field))
            _join_entries(field, before, cast("list[Any]", value), last_entries)
        else:
            message[field] = _join_values(field, message.get(field), value)


def _join_values(field: str, before: Any, value: Any) -> Any:
    """Returns the value of a Chat Completions field with more of it, for a whole answer."""
    if before is None or before == "" or field in _REPLACED:
        return value
    if isinstance(value, str) and isinstance(before, str):
        return before + value
    if isinstance(value, list) and isinstance(before, list):
        return [*cast("list[Any]", before), *cast("list[Any]", value)]
    if isinstance(value, Mapping) and isinstance(before, dict):
        return _merge_objects(cast("Json", before), cast("JsonMap", value))
    return before


def _merge_objects(before: Json, more: JsonMap) -> Json:
    """Returns a Chat object with the fields of a later piece added."""
    return before | {
        field: _join_values(field, before.get(field), value) for field, value in more.items()
    }


def _join_entries(
    field: str, before: list[Any], entries: list[Any], last_entries: _LastEntries
) -> None:
    """Adds entries to a list of the Chat message. Entries with one index are one Chat entry: calls,
    whose later pieces hold nothing but the index, and details of the same type."""
    for value in entries:
        entry = if_object(value)
        index, entry_type = as_index(entry.get("index")), entry.get("type")
        same_entry = None if index is None else last_entries.get((field, index))
        if same_entry is not None and entry_type in (None, same_entry.get("type")):
            same_entry.update(_merge_objects(same_entry, entry))
        else:
            before.append({**entry} if entry else value)
            last_entries[field, index] = before[-1] if entry else {}
