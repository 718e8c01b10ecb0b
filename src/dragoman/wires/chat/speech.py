"""OpenAI's endpoint for speech, `/audio/speech`. The answer is the bytes of the audio, or a stream of
events that hold them, which tells the tokens too."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.codec.audio import AUDIO_FORMATS, normalize_audio_type
from dragoman.codec.byte_answer import AudioDecoder
from dragoman.codec.json_values import drop_none, if_text, optional_field, shape_error
from dragoman.codec.media_fields import (
    MediaEncoder,
    MediaResponse,
    dump_media_usage,
    find_format,
    find_mime_type,
    load_media_usage,
    take_text,
)
from dragoman.codec.response_decoder import MessageDecoder
from dragoman.codec.response_encoder import frame_typed_event
from dragoman.content import DataPart
from dragoman.errors import DecodeError, DragomanError, InvalidRequestError
from dragoman.event import Event, PartDelta, PartStarted
from dragoman.json_bytes import Json, JsonMap
from dragoman.media_request import SpeechRequest
from dragoman.message import FinishReason, Message, Origin
from dragoman.request import HttpRequest
from dragoman.wires.chat.errors import dump_error
from dragoman.wires.chat.record import DialectRecord
from dragoman.wires.wire import StreamDecoder

__all__ = ["Speech"]

_EVENTS = "text/event-stream"
_USUAL_TYPE = "audio/mpeg"
_DELTA, _DONE = "speech.audio.delta", "speech.audio.done"


class Speech(msgspec.Struct, frozen=True, eq=False):
    """The endpoint for speech of one format of the family (see `wires.MediaWire`)."""

    chat: DialectRecord

    def load_request(self, body: JsonMap, *, path: str = "") -> SpeechRequest:
        """Reads the speech body of a request. `path` says nothing.

        Raises:
            InvalidRequestError: there is no text, or a field has another type.
        """
        del path
        fields = dict(body)
        if isinstance(fields.get("voice"), dict):
            # A voice of the account stays as it is.
            voice = None
        else:
            voice = take_text(fields, "voice")
        stream_format = take_text(fields, "stream_format")
        if stream_format not in (None, "audio", "sse"):
            raise InvalidRequestError("stream_format must be audio or sse").at(
                field="stream_format"
            )
        speed = fields.get("speed", 1)
        if isinstance(speed, bool) or not isinstance(speed, int | float) or not 0 < speed <= 10:
            raise InvalidRequestError("speed must be a number above 0").at(field="speed")
        return SpeechRequest(
            take_text(fields, "model") or "",
            take_text(fields, "input", needed=True) or "",
            voice,
            find_mime_type(AUDIO_FORMATS, take_text(fields, "response_format"), "response_format"),
            take_text(fields, "instructions"),
            stream_format == "sse",
            fields,
        )

    def dump_http(self, request: SpeechRequest, *, quirks: Any = None) -> HttpRequest:
        """Writes path, headers and body of a speech request.

        Raises:
            InvalidRequestError: the API makes no audio of that type.
        """
        del quirks
        mime_type = request.mime_type and normalize_audio_type(request.mime_type)
        fields = {
            "model": request.model or None,
            "input": request.text,
            "voice": request.voice,
            "response_format": find_format(AUDIO_FORMATS, mime_type),
            "instructions": request.instructions,
            "stream_format": "sse" if request.stream else None,
        }
        return HttpRequest("/audio/speech", body={**drop_none(fields), **request.options})

    def decoder(
        self,
        request: SpeechRequest,
        *,
        media_type: str = "",
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> StreamDecoder:
        """Returns a decoder of the answer to a speech request: audio, events with audio, or an
        error."""
        mime_type = normalize_audio_type(media_type)
        if mime_type in (_EVENTS, "application/json") or mime_type.startswith("text/"):
            return _EventDecoder(self.chat, request.mime_type or _USUAL_TYPE, origin, new_id)
        if mime_type.startswith("audio/"):
            # With its parameters, such as the rate of raw samples.
            mime_type = media_type if ";" in media_type else mime_type
        else:
            mime_type = request.mime_type or _USUAL_TYPE
        return AudioDecoder(mime_type, origin, new_id)

    def dump_response(self, message: Message, *, request: SpeechRequest) -> MediaResponse:
        """Writes the audio of a message as a whole speech answer.

        Raises:
            DecodeError: there is none.
        """
        del request
        for part in message.parts:
            if isinstance(part, DataPart):
                return MediaResponse(part.mime_type, part.data)
        raise DecodeError("the model answered without audio")

    def encoder(self, request: SpeechRequest) -> MediaEncoder:
        """Returns an encoder of the answer to a speech request as it comes: bytes, or events."""
        if request.stream:
            return _EventEncoder(self.chat)
        return _AudioEncoder()


class _EventDecoder(MessageDecoder):
    """Reads a stream of events with audio, or an error that came in place of audio."""

    def __init__(
        self,
        chat: DialectRecord,
        mime_type: str,
        origin: Origin | None,
        new_id: Callable[[], str] | None,
    ) -> None:
        """Creates the decoder of speech that comes as server-sent events."""
        super().__init__(origin, new_id)
        self._chat = chat
        self._mime_type = mime_type

    def read_event(self, event: Json) -> None:
        """Reads one event of a streamed speech answer."""
        event_type = event.get("type")
        if event_type == _DELTA:
            audio = self._out.ensure_part("audio", DataPart(b"", self._mime_type))
            self._out.add(audio, _decode_audio(if_text(event.get("audio"))))
        elif event_type == _DONE:
            if self._out.find("audio") is None:
                raise shape_error(event, "speech without audio")
            usage, beside = load_media_usage(event.get("usage"))
            metadata = optional_field("usage", beside)
            self._over = True
            self._out.finish(FinishReason.stop, usage, metadata=metadata)
        elif (error := self._chat.error_of(event)) is not None:
            raise error
        elif not event_type:
            raise shape_error(event, "what is neither audio nor an error")


def _decode_audio(text: str) -> bytes:
    """Returns the bytes of base64 audio in a speech event. Raises `DecodeError` if it is
    invalid."""
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise shape_error(text[:100], "audio that is no base64") from error


class _AudioEncoder(MediaEncoder):
    """Writes the bytes of audio as they come. An error in the middle ends them."""

    stream_type, ping = _USUAL_TYPE, b""

    def feed(self, event: Event) -> bytes:
        """Returns the audio bytes of an event of a speech answer."""
        if isinstance(event, PartStarted) and isinstance(event.part, DataPart):
            self.stream_type = event.part.mime_type
        if isinstance(event, PartDelta) and isinstance(event.delta, bytes):
            return event.delta
        return b""


class _EventEncoder(MediaEncoder):
    """Writes audio as a stream of events."""

    def __init__(self, chat: DialectRecord) -> None:
        super().__init__()
        self._chat = chat

    def delta(self, event: PartDelta) -> bytes:
        """Writes the event for more audio of a speech answer."""
        if not isinstance(event.delta, bytes):
            return b""
        return frame_typed_event({"type": _DELTA, "audio": b64encode(event.delta).decode()})

    def finish(self, message: Message) -> bytes:
        """Tells the tokens."""
        usage = dump_media_usage(message.usage, message.metadata.get("usage"))
        return frame_typed_event({"type": _DONE, **drop_none({"usage": usage})})

    def error(self, error: DragomanError) -> bytes:
        """Tells of an error as the API does."""
        return frame_typed_event({"type": "error", **dump_error(self._chat, error).body})
