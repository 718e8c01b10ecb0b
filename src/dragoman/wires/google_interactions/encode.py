"""Writes events as a response, streamed or whole, as the official client reads it.

Each part is a step, or a piece of the step `model_output` that is open. That step ends only when
something else begins, since an image may follow a text in it. Texts cannot share one: no delta says
which of them it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dragoman import json_bytes
from dragoman.codec.framing import frame_server_event
from dragoman.codec.json_values import drop_empty, if_list, if_object, pick, read_extra_fields
from dragoman.codec.response_encoder import NO_OBJECTS, Objects, ResponseEncoder
from dragoman.codec.response_state import name_model
from dragoman.codec.serving import SSE_PING
from dragoman.codec.wire_operations import ResponseFormat
from dragoman.errors import DragomanError
from dragoman.event import MessageDropped, MessageStarted, PartDelta, PartFinished, PartStarted
from dragoman.fold import arguments_text
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
from dragoman.wires.google_interactions.content import dump_block, is_block
from dragoman.wires.google_interactions.errors import describe_error, dump_error
from dragoman.wires.google_interactions.quirks import OWN
from dragoman.wires.google_interactions.steps import OUTPUT, StepList, dump_step, read_step_start
from dragoman.wires.google_interactions.usage import dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

stream_type = "text/event-stream"
"""The media type of a streamed response."""
ping = SSE_PING
"""Bytes that keep a stream open."""

_AT_START = ("type", "id", "call_id", "name", "server_name")
"""Fields of a step that does not stream which are sent when it begins; the rest is a delta."""
_Key = tuple[str, int]


def envelope(request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002
    """Returns the fields of an interaction that no event holds: its id, when it was made, and the
    model that was asked."""
    timestamp = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    model = {"model": request.model} if request is not None and request.model else {}
    return {
        "id": f"v1_{id.removeprefix('v1_')}",
        "created": timestamp,
        "updated": timestamp,
        **model,
    }


def _dump(message: Message, envelope: JsonMap) -> Json:
    """Writes a whole interaction."""
    steps = StepList(OUTPUT)
    for piece in message.content:
        if is_block(piece):
            steps.add_block(dump_block(piece, cites=True)[0], read_step_start(piece.native))
        elif isinstance(piece, ToolCallPart) and piece.state != "complete":
            continue  # nobody is to run it with empty arguments
        elif (step := dump_step(piece)) is not None:
            steps.add_step(step)
    response = OWN.response(message.native)
    head = drop_empty(_dump_head(envelope, message.origin, message.id or "", response))
    end = _dump_end(message.finish_reason, message.usage, response)
    return {**head, **end, "steps": steps.steps} | dict(envelope)


def _dump_head(
    envelope: JsonMap, origin: Origin | None, message_id: str, response: JsonMap
) -> Json:
    """Returns the fields by which an interaction begins. One that was not stored has an empty
    id."""
    provider_id = (origin and origin.response_id) or response.get("id", message_id)
    head: Json = {"object": "interaction", "id": envelope.get("id") or provider_id}
    if model := envelope.get("model") or name_model(origin):
        head["model"] = model
    return head


def _dump_end(reason: FinishReason | None, usage: Usage | None, response: JsonMap) -> Json:
    """Returns the fields by which an interaction ends. `response`: those beyond the message's."""
    end: Json = {"status": dump_finish(reason, response.get("status"))}
    if counts := dump_usage(usage, if_object(response.get("usage"))):
        end["usage"] = counts
    return {**end, **read_extra_fields(response, "status", "usage", "id")}


class _Written:
    """A part that is being written."""

    __slots__ = ("index", "part", "sent")

    def __init__(self, index: int, part: Content) -> None:
        """Begins a part of a streamed interaction."""
        self.index = index
        self.part = part
        self.sent = False
        """True once a delta of it was sent."""


class Encoder(ResponseEncoder):
    """Writes the events of the model's messages as Server-Sent Events."""

    DONE = frame_server_event(b"[DONE]", "done")

    def __init__(self, envelope: JsonMap) -> None:
        """Creates the encoder. `envelope`: fields of the interaction, which replace those of the
        events."""
        super().__init__(OWN, envelope)
        self._open: dict[_Key, _Written] = {}
        self._next = 0
        # The `model_output` that has no open part but has not ended, and what it ended with.
        self._resting: int | None = None
        self._rests_on_text = False

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:  # noqa: ARG002
        """Returns the events that begin the interaction, for its first message."""
        if not first:
            return NO_OBJECTS
        head = self._dump_head() | {"status": "in_progress"}
        update = {"interaction_id": head.get("id", ""), "status": "in_progress"}
        return [
            _make_event("interaction.created", interaction=head),
            _make_event("interaction.status_update", **update),
        ]

    def part_started(self, event: PartStarted) -> Objects:
        """Begins the step of a part that streams. Others are written when they end."""
        part = event.part
        is_call = isinstance(part, ToolCallPart) and part.run_by != "provider"
        if not (is_call or isinstance(part, TextPart | ThinkingPart)):
            return NO_OBJECTS
        if isinstance(part, TextPart):
            index, begun = self._begin_content(part, is_text=True)
        else:
            step = dump_step(part) or {}
            # Arguments follow in deltas, as the API sends them.
            if isinstance(part, ToolCallPart):
                step["arguments"] = {}
            index, begun = self._begin_step(read_extra_fields(step, "summary", "signature"))
        self._open[event.message_id, event.index] = _Written(index, part)
        return begun

    def delta(self, event: PartDelta) -> Objects:
        """Returns the event for a delta of an open part of an interaction."""
        written = self._open.get((event.message_id, event.index))
        if written is None:
            return NO_OBJECTS
        written.sent = True
        return [_make_delta(written.index, _dump_text_delta(written.part, str(event.delta)))]

    def part_finished(self, event: PartFinished) -> Objects:
        """Returns the events that end a part of an interaction, or those of one that did not
        stream."""
        written = self._open.pop((event.message_id, event.index), None)
        # A part that does not stream has not begun on the wire.
        if written is None:
            return self._dump_whole(event.part)
        part, index, deltas = event.part, written.index, list[Json]()
        if not written.sent and (text := _read_whole_text(part)):
            deltas.append(_dump_text_delta(part, text))
        deltas += _dump_last_deltas(written.part, part)
        events = [_make_delta(index, delta) for delta in deltas]
        # An image may follow the text in its step.
        if isinstance(written.part, TextPart):
            return [*events, *self._rest(index, on_text=True)]
        return [*events, _make_event("step.stop", index=index)]

    def message_dropped(self, event: MessageDropped) -> Objects:
        """Implements `ResponseEncoder.message_dropped` for the Interactions API. Ends what is open,
        since the format cannot take anything back."""
        ends: list[Json] = []
        for key in [key for key in self._open if key[0] == event.message_id]:
            ends.append(_make_event("step.stop", index=self._open.pop(key).index))
        return [*ends, *self._stop_resting()]

    def error(self, error: DragomanError) -> Objects:
        return [_make_event("error", error=describe_error(error))]

    def end(self) -> Objects:
        """Returns the event `interaction.completed`, and what ends before it."""
        state = self._state
        ends = _dump_end(state.reason, state.usage, state.envelope)
        interaction = {**self._dump_head(), **ends} | dict(self._envelope)
        return [
            *self._stop_resting(),
            _make_event("interaction.completed", interaction=interaction),
        ]

    def frame(self, data: JsonMap) -> bytes:
        return frame_server_event(json_bytes.encode(data), data["event_type"])

    def _dump_head(self) -> Json:
        """Returns the fields by which the interaction of this stream begins."""
        state = self._state
        return _dump_head(self._envelope, state.origin, state.response_id, state.envelope)

    def _dump_whole(self, part: Content) -> Objects:
        """Writes a part of an interaction that comes in one piece."""
        if is_block(part):
            block = dump_block(part, cites=True)[0]
            # An empty text comes whole, and would join another one in its step.
            is_text = block.get("type") == "text"
            index, begun = self._begin_content(part, is_text=is_text)
            return [*begun, _make_delta(index, block), *self._rest(index, on_text=is_text)]
        step = dump_step(part)
        if step is None:
            return NO_OBJECTS
        index, begun = self._begin_step(pick(step, _AT_START))
        events = list(begun)
        if step_delta := read_extra_fields(step, *_AT_START):
            events.append(_make_delta(index, {"type": step.get("type"), **step_delta}))
        return [*events, _make_event("step.stop", index=index)]

    def _begin_content(self, part: Content, *, is_text: bool) -> tuple[int, list[Json]]:
        """Returns the index of the `model_output` for a piece of content, and the events that begin
        it if it is new."""
        # Two texts in one step could not be told apart: a delta names only the step.
        start = read_step_start(part.native)
        if self._resting is not None and start is None and not (is_text and self._rests_on_text):
            index, self._resting = self._resting, None
            return index, []
        return self._begin_step({"type": OUTPUT, **(start or {})})

    def _begin_step(self, step: Json) -> tuple[int, list[Json]]:
        """Returns the index of a new step of the Interactions stream, and the events that begin
        it."""
        ends = self._stop_resting()
        index, self._next = self._next, self._next + 1
        return index, [*ends, _make_event("step.start", index=index, step=step)]

    def _rest(self, index: int, *, on_text: bool) -> Sequence[Json]:
        """Lets a `model_output` wait for more content. Returns the end of the one that waited."""
        ends = self._stop_resting()
        self._resting, self._rests_on_text = index, on_text
        return ends

    def _stop_resting(self) -> list[Json]:
        """Ends the `model_output` of the Interactions stream that waits for more content."""
        index, self._resting = self._resting, None
        return [] if index is None else [_make_event("step.stop", index=index)]


_RESPONSES = ResponseFormat(Encoder, _dump, dump_error)
encoder, dump_response = _RESPONSES.encoder, _RESPONSES.dump_response


def _make_event(event_type: str, **fields: Any) -> Json:
    return {"event_type": event_type, **fields}


def _make_delta(index: int, delta: JsonMap) -> Json:
    return {"event_type": "step.delta", "index": index, "delta": delta}


def _dump_text_delta(part: Content, text: str) -> Json:
    """Returns the delta of an Interactions stream for more of a part's text."""
    if isinstance(part, ThinkingPart):
        return {"type": "thought_summary", "content": {"type": "text", "text": text}}
    if isinstance(part, ToolCallPart):
        return {"type": "arguments_delta", "arguments": text}
    return {"type": "text", "text": text}


def _read_whole_text(part: Content) -> str:
    """Returns the text that the Interactions deltas of a part add up to."""
    if isinstance(part, TextPart | ThinkingPart):
        return part.text
    if isinstance(part, ToolCallPart):
        if part.state != "complete":
            return part.raw or ""
        return arguments_text(part) if part.arguments else ""
    return ""


def _dump_last_deltas(begun: Content, part: Content) -> list[Json]:
    """Returns the deltas of an Interactions stream with what a part has beyond its text: the
    signature of a thought, the sources of a text, and further fields that it did not begin with."""
    if isinstance(part, ThinkingPart):
        begun_fields = OWN.fields(begun.native)
        fields = {
            name: field
            for name, field in OWN.fields(part.native).items()
            if name == "signature" or begun_fields.get(name) != field
        }
        return [{"type": "thought_signature", **fields}] if fields else []
    if not isinstance(part, TextPart):
        return []
    block = read_extra_fields(dump_block(part, cites=True)[0], "type", "text")
    annotations = if_list(block.pop("annotations", None))
    deltas: list[Json] = [{"type": "text", "text": "", **block}] if block else []
    if annotations:
        deltas.append({"type": "text_annotation_delta", "annotations": annotations})
    return deltas
