"""Answers of the endpoint for transcripts: whole, streamed, and as subtitles."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.audio import dump_subtitles
from dragoman.codec.json_values import (
    as_text,
    drop_none,
    if_object,
    if_objects,
    if_text,
    optional_field,
    read_extra_fields,
    shape_error,
)
from dragoman.codec.media_fields import (
    MediaEncoder,
    MediaResponse,
    dump_media_usage,
    load_media_usage,
)
from dragoman.codec.response_decoder import MessageDecoder
from dragoman.codec.response_encoder import frame_typed_event
from dragoman.errors import DragomanError, InvalidRequestError
from dragoman.event import PartDelta
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Message, Origin, TextPart
from dragoman.wires.chat.errors import dump_error
from dragoman.wires.chat.record import DialectRecord

__all__ = ["TranscriptDecoder", "TranscriptEncoder", "TranscriptEvents", "dump_transcript"]

_JSON, _TEXT = "application/json", "text/plain; charset=utf-8"


class TranscriptEvents(msgspec.Struct, frozen=True):
    """What the events of a stream are called, and its counts of tokens."""

    delta: str = "transcript.text.delta"
    """Type of an event with more text."""
    text: str = "delta"
    """Field of that text."""
    done: str = "transcript.text.done"
    """Type of the last event, which holds all of it."""
    segment: str = "transcript.text.segment"
    """Type of an event with a part of the text and its times."""
    language: str = ""
    """Type of an event with the language. Empty: there is none."""
    counts: tuple[str, str, str] = ("input_tokens", "output_tokens", "total_tokens")
    """Fields for the tokens of the request, of the answer, and of both."""


class TranscriptDecoder(MessageDecoder):
    """Reads a transcript, whole or streamed."""

    def __init__(
        self,
        chat: DialectRecord,
        names: TranscriptEvents,
        origin: Origin | None,
        new_id: Callable[[], str] | None,
    ) -> None:
        """Creates the decoder of a transcription answer."""
        super().__init__(origin, new_id)
        self._chat, self._names = chat, names
        self._metadata: Json = {}
        self._segments: list[Json] = []

    def read_event(self, event: Json) -> None:
        """Reads one event of a stream, or a whole answer."""
        names, event_type = self._names, if_text(event.get("type"))
        if event_type == names.delta:
            self._out.add_text("text", as_text(event.get(names.text)))
        elif event_type == names.segment:
            self._segments.append(read_extra_fields(event, "type"))
        elif event_type and event_type == names.language:
            self._metadata["language"] = event.get("audio_language")
        elif event_type == names.done:
            self._finish(event)
        elif (error := self._chat.error_of(event)) is not None:
            raise error
        elif isinstance(event.get("text"), str):
            self._finish(event)
        elif not event_type:
            raise shape_error(event, "what is neither a transcript nor an error")

    def _finish(self, answer: JsonMap) -> None:
        """Ends the message of a transcription. The last event has the whole text, whatever the
        deltas said."""
        self._over = True
        self._out.start()
        text = if_text(answer.get("text"))
        text_part = self._out.find("text")
        if text_part is None:
            self._out.add_text("text", text)
        # A provider may correct at the end what it wrote before.
        elif text and text != "".join(cast("list[str]", text_part.deltas)):
            self._out.end(text_part, TextPart(text))
        usage, beside = load_media_usage(answer.get("usage"))
        metadata = {
            **optional_field("segments", self._segments),
            **self._metadata,
            **drop_none(read_extra_fields(answer, "type", "task", "text", "usage", "model")),
            **optional_field("usage", beside),
        }
        origin = self._out.origin
        if origin is not None and (model := if_text(answer.get("model"))):
            origin = msgspec.structs.replace(origin, served_model=model)
        self._out.finish(FinishReason.stop, usage, origin=origin, metadata=metadata)


def dump_transcript(message: Message, answer_format: str, names: TranscriptEvents) -> MediaResponse:
    """Writes a transcript as a whole transcription answer. `answer_format`: the API's word for its
    form; empty: there is one alone.

    Raises:
        InvalidRequestError: that form needs times, and the model told none.
    """
    if answer_format == "text":
        return MediaResponse(_TEXT, f"{message.text}\n".encode())
    if answer_format in ("srt", "vtt"):
        segments = if_objects(message.metadata.get("segments"))
        if not segments and message.text:
            raise InvalidRequestError(
                f"response_format {answer_format} needs times, and this model told none; take json or text"
            ).at(field="response_format")
        subtitles = dump_subtitles(segments, vtt=answer_format == "vtt")
        return MediaResponse(_TEXT, subtitles.encode())
    body = _dump_whole(message, names)
    if answer_format in ("verbose_json", "diarized_json"):
        body = {"task": "transcribe", **_dump_duration(message), **body}
    if not answer_format:
        model = message.origin and (message.origin.served_model or message.origin.model)
        body = {"model": model or "", "language": None, **body}
    return MediaResponse(_JSON, json_bytes.encode(body))


def _dump_whole(message: Message, names: TranscriptEvents) -> Json:
    """Returns a whole transcription answer: the text, what is said of it, and the tokens."""
    metadata = dict(message.metadata)
    beside = if_object(metadata.pop("usage", None))
    usage = dump_media_usage(message.usage, beside, names.counts)
    # OpenAI's counts tell of what they are; a duration says so itself.
    if usage is not None and message.usage is not None and names.counts[0] == "input_tokens":
        usage = {"type": "tokens", **usage}
    return {"text": message.text, **metadata, **drop_none({"usage": usage})}


def _dump_duration(message: Message) -> Json:
    """Returns the fields that a transcription answer with times always has."""
    segments = if_objects(message.metadata.get("segments"))
    ends = [end for segment in segments if isinstance(end := segment.get("end"), int | float)]
    return {"language": "", "duration": max(ends, default=0.0)}


class TranscriptEncoder(MediaEncoder):
    """Writes a transcript as a stream of events."""

    def __init__(self, chat: DialectRecord, names: TranscriptEvents) -> None:
        super().__init__()
        self._chat, self._names = chat, names

    def delta(self, event: PartDelta) -> bytes:
        """Writes the event for more text of a transcript."""
        if not isinstance(event.delta, str):
            return b""
        return frame_typed_event({"type": self._names.delta, self._names.text: event.delta})

    def finish(self, message: Message) -> bytes:
        """Writes the event for the whole text of a transcript, with the tokens."""
        body = _dump_whole(message, self._names)
        model = message.origin and (message.origin.served_model or message.origin.model)
        # An API that tells the language by an event of its own always has both fields.
        if self._names.language:
            body = {"model": model or "", "language": None, **body}
        return frame_typed_event({"type": self._names.done, **body})

    def error(self, error: DragomanError) -> bytes:
        """Tells of an error as the API does."""
        return frame_typed_event({"type": "error", **dump_error(self._chat, error).body})
