"""Writes events as a response, streamed as lines or whole, as the official client reads it.

A line holds the fields of a message, and the last one is `done` and holds the counts. Requests of
the older `/api/generate` get the text in `response`, without a message around it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dragoman.codec.json_values import merge_wire_fields, read_extra_fields
from dragoman.codec.response_encoder import NO_OBJECTS, Objects, ResponseEncoder, frame_line
from dragoman.codec.response_state import name_model
from dragoman.codec.timing import AnswerTimer
from dragoman.codec.wire_operations import ResponseFormat
from dragoman.errors import DragomanError
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    FinishReason,
    Message,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from dragoman.request import ModelRequest
from dragoman.wires.ollama.content import dump_block
from dragoman.wires.ollama.errors import dump_error
from dragoman.wires.ollama.generate import GENERATE, is_generate
from dragoman.wires.ollama.quirks import OWN
from dragoman.wires.ollama.tools import dump_call, set_call_index
from dragoman.wires.ollama.usage import dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

stream_type = "application/x-ndjson"
"""Media type of a streamed response."""
ping = b""
"""No bytes: a line without JSON is an error, so nothing keeps a stream open."""

_NO_TIME = "1970-01-01T00:00:00Z"
_TEXTS = ("content", "thinking")
"""Fields whose values a client joins."""


def _dump(message: Message, envelope: JsonMap) -> Json:
    """Writes a whole response of Ollama's API."""
    values: dict[str, list[Any]] = {}
    for piece in message.content:
        for field, value in _dump_fields(piece).items():
            values.setdefault(field, []).extend([value] if field in _TEXTS else value)
    for index, call in enumerate(values.get("tool_calls", ())):
        set_call_index(call, index)
    fields: Json = {**values}
    for field in _TEXTS:
        if field in values:
            fields[field] = "".join(values[field])
    response = OWN.response(message.native)
    own_fields = OWN.fields(message.native)
    body = {
        **_dump_head(message.origin, envelope, response),
        **_dump_body(fields, own_fields, generates=_generates(envelope)),
        **_dump_finish_fields(message.finish_reason, message.usage, response),
    }
    return merge_wire_fields(
        merge_wire_fields(body, read_extra_fields(response, "created_at")), _dump_timing(envelope)
    )


def envelope(request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002, ARG001 the protocol's
    """Returns the arguments of `encoder` and `dump_response` for an answer to `request`. No response
    has an id. `timing` may be set to an `AnswerTimer` if the caller measures."""
    created_at = now.astimezone(UTC).isoformat().replace("+00:00", "Z")
    fields: Json = {"timing": None, "created_at": created_at}
    if request is None:
        return fields
    fields["model"] = request.model
    if is_generate(request):
        fields["path"] = GENERATE
    return fields


class Encoder(ResponseEncoder):
    """Writes the events of the model's messages as lines. Several messages become one, and clients
    join texts that no other piece separates."""

    def __init__(self, envelope: JsonMap) -> None:
        """Creates the encoder. `envelope`: `model` and `created_at`, which replace the events' own,
        and the request's `path`. A request of `/api/generate` is answered in its own form."""
        super().__init__(OWN, envelope)
        self._generates = _generates(envelope)
        self._head: Json = {}
        # Open parts → the field of their deltas.
        self._fields: dict[tuple[str, int], str] = {}
        # Open parts of which a delta was sent.
        self._sent: set[tuple[str, int]] = set()
        # Message id → its further fields.
        self._own: dict[str, Json] = {}
        self._calls = 0

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:
        if first:
            self._head = _dump_head(self._state.origin, self._envelope, self._state.envelope)
        return self._keep_own_fields(event)

    def part_started(self, event: PartStarted) -> Objects:
        """Notes in which field of Ollama's message the deltas of a part go."""
        if isinstance(event.part, (TextPart, ThinkingPart)):
            field = "content" if isinstance(event.part, TextPart) else "thinking"
            self._fields[event.message_id, event.index] = field
        return NO_OBJECTS

    def delta(self, event: PartDelta) -> Objects:
        """Returns Ollama's line for a delta."""
        key = (event.message_id, event.index)
        if (field := self._fields.get(key)) is None:
            return NO_OBJECTS
        self._sent.add(key)
        if self._generates:
            return [self._dump_line({field: event.delta})]
        message = {"role": "assistant", "content": "", field: event.delta}
        return [{**self._head, "message": message, "done": False}]

    def part_finished(self, event: PartFinished) -> Objects:
        """Returns Ollama's line for a part that had no deltas, such as a call."""
        if (event.message_id, event.index) in self._sent or not (
            fields := _dump_fields(event.part)
        ):
            return NO_OBJECTS
        for call in fields.get("tool_calls", ()):
            set_call_index(call, self._calls)
            self._calls += 1
        return [self._dump_line(fields)]

    def message_finished(self, event: MessageFinished) -> Objects:
        return self._keep_own_fields(event)

    def message_dropped(self, event: MessageDropped) -> Objects:
        """See `ResponseEncoder`. No line takes back what was sent, so a line break keeps the next
        message apart."""
        self._own.pop(event.message_id, None)
        dropped = {key for key in self._sent if key[0] == event.message_id}
        self._sent -= dropped
        fields = sorted({self._fields[key] for key in dropped})
        if fields:
            return [self._dump_line(dict.fromkeys(fields, "\n"))]
        return NO_OBJECTS

    def error(self, error: DragomanError) -> Objects:
        return [dump_error(error).body]

    def end(self) -> Objects:
        """Returns Ollama's last line, which has `done` and the counts."""
        state = self._state
        own_fields: Json = {}
        for fields in self._own.values():
            own_fields |= fields
        line = {
            **self._head,
            **_dump_time(self._envelope, state.envelope),
            **_dump_body({}, own_fields, generates=self._generates),
            **_dump_finish_fields(state.reason, state.usage, state.envelope),
        }
        line = merge_wire_fields(line, read_extra_fields(state.envelope, "created_at"))
        return [merge_wire_fields(line, _dump_timing(self._envelope))]

    def frame(self, data: JsonMap) -> bytes:
        return frame_line(data)

    def _keep_own_fields(self, event: MessageStarted | MessageFinished) -> Objects:
        """Keeps the message's further fields for the last line."""
        self._own.setdefault(event.message_id, {}).update(OWN.fields(event.native))
        return NO_OBJECTS

    def _dump_line(self, fields: JsonMap) -> Json:
        return {**self._head, **_dump_body(fields, {}, generates=self._generates), "done": False}


_RESPONSES = ResponseFormat(Encoder, _dump, dump_error)
encoder, dump_response = _RESPONSES.encoder, _RESPONSES.dump_response


def _dump_fields(piece: Content) -> Json:
    """Returns the fields of the message for a piece. Empty for what a response cannot hold.

    A call that is not complete is left out: its arguments are an object here, and a client would
    run it with an empty one.
    """
    if isinstance(piece, ToolCallPart):
        if piece.run_by == "provider" or piece.state != "complete":
            return {}
        return {"tool_calls": [dump_call(piece, piece.id)]}
    block = dump_block(piece)
    if block is None:
        return {}
    field, value = block
    return {field: value if field in _TEXTS else [value]}


def _dump_timing(envelope: JsonMap) -> dict[str, int]:
    """Returns the last line's times, in nanoseconds. A server that passes an answer on loads no
    model, so `load_duration` says how long it worked before it asked."""
    timing: AnswerTimer | None = envelope.get("timing")
    if timing is None:
        return {}
    durations = timing.measure()
    return {
        "total_duration": durations.total,
        "load_duration": durations.preparation,
        "prompt_eval_duration": durations.first_part,
        "eval_duration": durations.generation,
    }


def _dump_head(origin: Origin | None, envelope: JsonMap, response: JsonMap) -> Json:
    """Returns the fields with which every line begins."""
    model = envelope.get("model") or name_model(origin)
    return {"model": model, **_dump_time(envelope, response)}


def _dump_time(envelope: JsonMap, response: JsonMap) -> Json:
    """Returns the time of a line."""
    return {"created_at": envelope.get("created_at") or response.get("created_at") or _NO_TIME}


def _generates(envelope: JsonMap) -> bool:
    """True if the response answers a request of `/api/generate`."""
    return str(envelope.get("path", "")).endswith(GENERATE)


def _dump_body(fields: JsonMap, own_fields: JsonMap, *, generates: bool) -> Json:
    """Returns the fields of a message in the form of the request's endpoint."""
    if generates:
        body = {"response": fields.get("content", ""), **read_extra_fields(fields, "content")}
        return merge_wire_fields(body, own_fields)
    return {
        "message": merge_wire_fields({"role": "assistant", "content": "", **fields}, own_fields)
    }


def _dump_finish_fields(
    reason: FinishReason | None, usage: Usage | None, response: JsonMap
) -> Json:
    """Returns what the last line says of the whole response."""
    fields: Json = {"done": True}
    vendor_reason = dump_finish(reason, response.get("done_reason"))
    if vendor_reason is not None:
        fields["done_reason"] = vendor_reason
    return fields | dump_usage(usage)
