"""Events → a response, streamed or whole, as the official clients read it.

A `_Part` collects what comes of a part, and an `_Open` holds the parts of a message in a heap by
index. `_write` takes parts from the top of the heap while they can be written: the wire has no
indexes of parts, so their order is all that a client knows. Successive texts would be joined by
a client, so an empty text is written between two parts. `ArrayEncoder` writes the same chunks as
elements of one JSON array.
"""

from __future__ import annotations

from datetime import datetime
from heapq import heappop, heappush

from dragoman import json_bytes
from dragoman.codec.citations import CitedText
from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.response_encoder import NO_OBJECTS, Objects, ResponseEncoder
from dragoman.codec.response_state import name_model
from dragoman.codec.serving import SSE_PING
from dragoman.codec.wire_operations import ResponseFormat
from dragoman.errors import DragomanError
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.fold import close_part
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
from dragoman.wires.google.citations import dump_grounding
from dragoman.wires.google.content import dump_content
from dragoman.wires.google.errors import dump_error
from dragoman.wires.google.quirks import OWN, Quirks
from dragoman.wires.google.tools import SIGNATURE, OutgoingContents
from dragoman.wires.google.usage import BLOCKED, dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

stream_type = "text/event-stream"
"""Of a stream's bytes."""
ping = SSE_PING
"""Keeps a stream open."""

_OUTSIDE = ("createTime", "modelStatus", "promptFeedback", "turnToken")
"""Fields of a response that stand beside its candidates; all others are the candidate's."""
_QUIRKS = Quirks()
_NOTHING = OpenText()
"""What became of a text that never came."""


def _dump(message: Message, envelope: JsonMap) -> Json:
    """Returns a whole response of Gemini's API."""
    content: Json = {"role": "model"}
    if parts := [part for piece in message.content for part in _parts(piece)]:
        content["parts"] = parts
    malformed = any(_is_malformed(piece) for piece in message.content)
    grounding = dump_grounding(CitedText.of(message.content))
    end = _end(
        content,
        message.finish_reason,
        message.usage,
        {**grounding, **OWN.response(message.native)},
        malformed=malformed,
    )
    return {**end, **_identity(message.origin, envelope)}


def envelope(request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002, ARG001 the protocol's
    """Returns what `encoder` and `dump_response` take of a Gemini request: `array` if its client
    asks for a stream without `alt=sse`. No response has a time."""
    if request is None:
        return {"id": id}
    return {
        "id": id,
        "model": request.model,
        **({"array": True} if OWN.form(request.native).get("stream") else {}),
    }


class _Part:
    """A part that is being written."""

    def __init__(self, part: Content) -> None:
        """Keeps a part as far as it was written in a Gemini stream."""
        self.began = part
        self.waiting: list[str | bytes] = []
        self.finished: Content | None = None
        # Some of its text is written.
        self.begun = False


class _Open:
    """The parts of a message that are not written yet."""

    def __init__(self) -> None:
        self.parts: dict[int, _Part] = {}
        self.order: list[int] = []
        """A heap of their indexes."""

    def add(self, index: int, part: Content) -> None:
        """Adds a part that begins to those that Gemini's chunks are written from."""
        if index not in self.parts:
            heappush(self.order, index)
        self.parts[index] = _Part(part)


class Encoder(ResponseEncoder):
    """Events of the model's messages → Server-Sent Events. Several messages become one candidate.

    Parts are written in their order: what comes of a later part waits until those before it are
    finished. Text and thinking are written as they come, unless they have native fields, which a
    chunk must hold together with the text.
    """

    def __init__(self, envelope: JsonMap) -> None:
        """Starts a Gemini response. `envelope`: its `id` and `model`, where they replace those of
        the events."""
        super().__init__(OWN, envelope)
        self._identity: Json = {}
        # Message → what is not written of it yet.
        self._parts: dict[str, _Open] = {}
        # A call was left out that no arguments can be read of.
        self._malformed = False
        # What the last chunk's text would be taken to go on with.
        self._text: type[Content] | None = None
        self._cited = CitedText()

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:  # noqa: ARG002 the first opens nothing
        self._parts[event.message_id] = _Open()
        self._identity = self._identity or _identity(event.origin, self._envelope)
        return NO_OBJECTS

    def part_started(self, event: PartStarted) -> Objects:
        self._parts[event.message_id].add(event.index, event.part)
        return NO_OBJECTS

    def delta(self, event: PartDelta) -> Objects:
        """Returns the Gemini chunks that a delta completes."""
        open_parts = self._parts[event.message_id]
        if (part := open_parts.parts.get(event.index)) is None:
            return NO_OBJECTS
        part.waiting.append(event.delta)
        return self._write(open_parts)

    def part_finished(self, event: PartFinished) -> Objects:
        """Returns the Gemini chunks that the end of a part completes."""
        open_parts = self._parts[event.message_id]
        if (part := open_parts.parts.get(event.index)) is None:
            return NO_OBJECTS
        part.finished = event.part
        self._cited.add(event.part)
        return self._write(open_parts)

    def message_finished(self, event: MessageFinished) -> Objects:
        return self._flush(event.message_id)

    def message_dropped(self, event: MessageDropped) -> Objects:
        """Implements `ResponseEncoder.message_dropped` for Gemini. What is written already, no
        client of this format can take back: a text is ended by a line's end."""
        self._parts[event.message_id] = _Open()
        if self._text is OpenText:
            return [self._content([{"text": "\n"}])]
        return NO_OBJECTS

    def error(self, error: DragomanError) -> Objects:
        return [dump_error(error).body]

    def end(self) -> Objects:
        """Returns the last chunk of Gemini's stream: finish reason and usage."""
        state = self._state
        unfinished = [chunk for message_id in self._parts for chunk in self._flush(message_id)]
        envelope = {**dump_grounding(self._cited), **state.envelope}
        end = _end(
            {"role": "model"}, state.reason, state.usage, envelope, malformed=self._malformed
        )
        return [*unfinished, self._chunk(end)]

    def _write(self, open_parts: _Open) -> Objects:
        """Returns all Gemini chunks that may be written now."""
        out: list[Json] = []
        while open_parts.order:
            index = open_parts.order[0]
            part = open_parts.parts[index]
            if (
                isinstance(part.began, (OpenText, ThinkingPart))
                and not OWN.is_ours(part.began.native)
                and part.waiting
            ):
                out.append(self._more(part, "".join(map(str, part.waiting))))
                part.waiting.clear()
            if part.finished is None:
                break
            if part.finished is not _NOTHING:
                out += self._finish(part, part.finished)
            del open_parts.parts[heappop(open_parts.order)]
        return out

    def _flush(self, message_id: str) -> Objects:
        """Returns the Gemini chunks with the rest of a message, whose parts nobody finished."""
        open_parts = self._parts[message_id]
        for part in open_parts.parts.values():
            part.finished = (
                part.finished or close_part(part.began, part.waiting, cut=True) or _NOTHING
            )
        return self._write(open_parts)

    def _more(self, part: _Part, text: str) -> Json:
        """Returns more text of a Gemini part. Text that continues another part's is behind an empty
        one."""
        if isinstance(part.began, ThinkingPart):
            piece = {"text": text, "thought": True}
        else:
            piece = {"text": text}
        apart = not part.begun and self._text is type(part.began)
        self._text, part.begun = type(part.began), True
        return self._content([{"text": ""}, piece] if apart else [piece])

    def _finish(self, part: _Part, finished: Content) -> list[Json]:
        """Returns the end of a Gemini part: what its text did not say."""
        is_ours = OWN.is_ours(finished.native)
        if part.begun and not is_ours:
            return []
        if (
            not part.begun
            and not is_ours
            and isinstance(finished, (TextPart, ThinkingPart))
            and finished.text
        ):
            return [
                self._more(
                    _Part(part.began if isinstance(part.began, OpenText) else finished),
                    finished.text,
                )
            ]
        self._text = None
        if part.begun:
            signature = OWN.fields(finished.native).get(SIGNATURE)
            if signature:
                parts = [{"text": "", SIGNATURE: signature}]
            else:
                parts = []
        else:
            self._malformed = self._malformed or _is_malformed(finished)
            parts = _parts(finished)
        return [self._content(parts)] if parts else []

    def _content(self, parts: list[Json]) -> Json:
        return self._chunk(
            {"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}]}
        )

    def _chunk(self, chunk: Json) -> Json:
        return {**chunk, **self._identity}


class ArrayEncoder(Encoder):
    """The same as a JSON array that grows, as clients have it that ask for a stream without
    `alt=sse`."""

    DONE = b""
    stream_type = "application/json"
    ping = b"\n"

    def __init__(self, envelope: JsonMap) -> None:
        """See `Encoder`."""
        super().__init__(envelope)
        self._before, self._is_closed = b"[", False

    def frame(self, data: JsonMap) -> bytes:
        before, self._before = self._before, b",\r\n"
        return before + json_bytes.encode(data)

    def close(self) -> bytes:
        """Returns the end of the JSON array in which Gemini streams without `alt=sse`, also behind
        an error."""
        if self._is_closed:
            return b""
        self._is_closed = True
        return super().close() + (b"[]" if self._before == b"[" else b"]")


def _stream(envelope: JsonMap) -> Encoder:
    return (ArrayEncoder if envelope.get("array") else Encoder)(envelope)


_RESPONSES = ResponseFormat(_stream, _dump, dump_error)
encoder, dump_response = _RESPONSES.encoder, _RESPONSES.dump_response


def _parts(piece: Content) -> list[Json]:
    """Returns a piece as clients are shown it: also the thinking of other providers, without what
    they signed. A call that is not whole is none: its arguments are a Gemini object here, and a
    client would run it with an empty one."""
    if isinstance(piece, ToolCallPart) and piece.state != "complete":
        return []
    if isinstance(piece, ThinkingPart) and piece.text and not OWN.is_ours(piece.native):
        piece = ThinkingPart(piece.text)
    out = OutgoingContents(
        messages=(),
        target=None,
        quirks=_QUIRKS,
        losses=[],
        unreadable=(None,),
        ids={},
        names={},
        model="",
    )
    return dump_content((piece,), out, 0)


def _is_malformed(piece: Content) -> bool:
    return isinstance(piece, ToolCallPart) and piece.state == "invalid"


def _identity(origin: Origin | None, envelope: JsonMap) -> Json:
    model = envelope.get("model") or name_model(origin)
    id_ = envelope.get("id") or (origin and origin.response_id)
    return {**({"modelVersion": model} if model else {}), **({"responseId": id_} if id_ else {})}


def _end(
    content: Json,
    reason: FinishReason | None,
    usage: Usage | None,
    envelope: JsonMap,
    *,
    malformed: bool = False,
) -> Json:
    """Returns the fields of a Gemini response, or of the last chunk of one."""
    outside = {key: envelope[key] for key in _OUTSIDE if key in envelope}
    if (blocked := envelope.get(BLOCKED)) is not None:
        outside["promptFeedback"] = {
            "blockReason": blocked,
            **if_object(outside.get("promptFeedback")),
        }
    counts = dump_usage(usage, if_object(envelope.get("usageMetadata")))
    original = envelope.get("finishReason")
    finish = dump_finish(reason, original if isinstance(original, (str, int)) else None)
    if malformed and reason is FinishReason.tool_calls:
        finish = "MALFORMED_FUNCTION_CALL"
    fields = read_extra_fields(envelope, *_OUTSIDE, BLOCKED, "usageMetadata", "finishReason")
    empty = "blockReason" in if_object(outside.get("promptFeedback")) and "parts" not in content
    if empty:
        candidates = []
    else:
        candidates = [{"content": content, "finishReason": finish, "index": 0, **fields}]
    return {"candidates": candidates, **({"usageMetadata": counts} if counts else {}), **outside}
