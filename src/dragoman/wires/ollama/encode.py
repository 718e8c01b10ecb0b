"""Events → a response, streamed as lines or whole, as the official client reads it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dragoman.codec.encoder import NO_OBJECTS, Objects, ResponseEncoder, frame_line
from dragoman.codec.formats import ResponseFormat
from dragoman.codec.json_values import merge_wire_fields, read_extra_fields
from dragoman.codec.response import name_model
from dragoman.codec.timing import AnswerTimer
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
"""Of a stream's bytes."""
ping = b""
"""A line without JSON is none: nothing keeps a stream open."""

_NO_TIME = "1970-01-01T00:00:00Z"
_TEXTS = ("content", "thinking")
"""Fields whose values are joined by who reads the lines."""


def _dump(message: Message, envelope: JsonMap) -> Json:
    """A whole response."""
    values: dict[str, list[Any]] = {}
    for field, value in (item for piece in message.content for item in _fields(piece).items()):
        values.setdefault(field, []).extend([value] if field in _TEXTS else value)
    for index, call in enumerate(values.get("tool_calls", ())):
        set_call_index(call, index)
    fields = {
        field: "".join(pieces) if field in _TEXTS else pieces for field, pieces in values.items()
    }
    response = OWN.response(message.native)
    body = {
        **_head(message.origin, envelope, response),
        **_body(fields, OWN.fields(message.native), generates=_generates(envelope)),
        **_tail(message.finish_reason, message.usage, response),
    }
    return merge_wire_fields(
        merge_wire_fields(body, read_extra_fields(response, "created_at")), _dump_timing(envelope)
    )


def envelope(request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002, ARG001 the protocol's
    """What `encoder` and `dump_response` take of a request. No response has an id. `timing`: an
    `AnswerTimer`, where the caller measures."""
    created = {"timing": None, "created_at": now.astimezone(UTC).isoformat().replace("+00:00", "Z")}
    if request is None:
        return created
    return {
        **created,
        "model": request.model,
        **({"path": GENERATE} if is_generate(request) else {}),
    }


class Encoder(ResponseEncoder):
    """Events of the model's messages → lines. Several messages become one. Texts that no other
    piece separates are one text for who reads the lines."""

    def __init__(self, envelope: JsonMap) -> None:
        """`envelope`: `model` and `created_at`, where the events' own are not to be told, and
        `path`, that of the request: `/api/generate` is answered in the form of its own."""
        super().__init__(OWN, envelope)
        self._generates = _generates(envelope)
        self._head: Json = {}
        # parts that are open → the field of their deltas
        self._fields: dict[tuple[str, int], str] = {}
        # those of which a delta was sent
        self._sent: set[tuple[str, int]] = set()
        # further fields of each message
        self._own: dict[str, Json] = {}
        self._calls = 0

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:
        if first:
            self._head = _head(self._state.origin, self._envelope, self._state.envelope)
        return self._keep(event)

    def part_started(self, event: PartStarted) -> Objects:
        if isinstance(event.part, (TextPart, ThinkingPart)):
            field = "content" if isinstance(event.part, TextPart) else "thinking"
            self._fields[event.message_id, event.index] = field
        return NO_OBJECTS

    def delta(self, event: PartDelta) -> Objects:
        key = (event.message_id, event.index)
        if (field := self._fields.get(key)) is None:
            return NO_OBJECTS
        self._sent.add(key)
        if self._generates:
            return [self._line({field: event.delta})]
        message = {"role": "assistant", "content": "", field: event.delta}
        return [{**self._head, "message": message, "done": False}]

    def part_finished(self, event: PartFinished) -> Objects:
        if (event.message_id, event.index) in self._sent or not (fields := _fields(event.part)):
            return NO_OBJECTS
        for call in fields.get("tool_calls", ()):
            set_call_index(call, self._calls)
            self._calls += 1
        return [self._line(fields)]

    def message_finished(self, event: MessageFinished) -> Objects:
        return self._keep(event)

    def message_dropped(self, event: MessageDropped) -> Objects:
        """A line's end stands between the texts of the message and those that follow, since no line
        takes back."""
        self._own.pop(event.message_id, None)
        # No line takes back what was sent: a line's end keeps the next message apart from it.
        dropped = {key for key in self._sent if key[0] == event.message_id}
        self._sent -= dropped
        fields = sorted({self._fields[key] for key in dropped})
        return [self._line(dict.fromkeys(fields, "\n"))] if fields else NO_OBJECTS

    def error(self, error: DragomanError) -> Objects:
        return [dump_error(error).body]

    def end(self) -> Objects:
        """The line that is done."""
        state = self._state
        own_fields = {
            name: value for fields in self._own.values() for name, value in fields.items()
        }
        line = {
            **self._head,
            **_dump_time(self._envelope, state.envelope),
            **_body({}, own_fields, generates=self._generates),
            **_tail(state.reason, state.usage, state.envelope),
        }
        return [
            merge_wire_fields(
                merge_wire_fields(line, read_extra_fields(state.envelope, "created_at")),
                _dump_timing(self._envelope),
            )
        ]

    def frame(self, data: JsonMap) -> bytes:
        return frame_line(data)

    def _keep(self, event: MessageStarted | MessageFinished) -> Objects:
        """The message's further fields, for the last line."""
        self._own.setdefault(event.message_id, {}).update(OWN.fields(event.native))
        return NO_OBJECTS

    def _line(self, fields: JsonMap) -> Json:
        return {**self._head, **_body(fields, {}, generates=self._generates), "done": False}


_RESPONSES = ResponseFormat(Encoder, _dump, dump_error)
encoder, dump_response = _RESPONSES.encoder, _RESPONSES.dump_response


def _fields(piece: Content) -> Json:
    """A piece → its fields of the message; none for what a response cannot hold. A call that is not
    whole is none: its arguments are an object here, and a client would run it with an empty one."""
    if isinstance(piece, ToolCallPart):
        is_shown = piece.run_by != "provider" and piece.state == "complete"
        return {"tool_calls": [dump_call(piece, piece.id)]} if is_shown else {}
    if (block := dump_block(piece)) is None:
        return {}
    field, value = block
    return {field: value if field in _TEXTS else [value]}


def _dump_timing(envelope: JsonMap) -> dict[str, int]:
    """What the last line says of time, in nanoseconds. A server that passes an answer on loads no
    model: what it does before it asks stands in that place."""
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


def _head(origin: Origin | None, envelope: JsonMap, response: JsonMap) -> Json:
    model = envelope.get("model") or name_model(origin)
    return {"model": model, **_dump_time(envelope, response)}


def _dump_time(envelope: JsonMap, response: JsonMap) -> Json:
    return {"created_at": envelope.get("created_at") or response.get("created_at") or _NO_TIME}


def _generates(envelope: JsonMap) -> bool:
    """Whether it answers a request of `/api/generate`."""
    return str(envelope.get("path", "")).endswith(GENERATE)


def _body(fields: JsonMap, own_fields: JsonMap, *, generates: bool) -> Json:
    """The fields of a message, as the request's endpoint has them."""
    if generates:
        return merge_wire_fields(
            {"response": fields.get("content", ""), **read_extra_fields(fields, "content")},
            own_fields,
        )
    return {
        "message": merge_wire_fields({"role": "assistant", "content": "", **fields}, own_fields)
    }


def _tail(reason: FinishReason | None, usage: Usage | None, response: JsonMap) -> Json:
    """What the last line says of the whole."""
    why = dump_finish(reason, response.get("done_reason"))
    return {"done": True, **({} if why is None else {"done_reason": why}), **dump_usage(usage)}
