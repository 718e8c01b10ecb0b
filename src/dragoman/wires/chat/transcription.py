"""OpenAI's endpoint for transcripts, `/audio/transcriptions`, which Groq, Mistral and many servers
speak.

A request is a form with a file. The answer is JSON, a stream of events, or plain text; here it is one
message with the text. What else is said of it stands in the message's metadata under the API's names:
`language`, `duration`, `segments` and `words` with `start` and `end` in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, get_args

import msgspec

from dragoman.codec.audio import is_recording
from dragoman.codec.byte_answer import PlainTextDecoder
from dragoman.codec.json_values import drop_none, if_text
from dragoman.codec.media import load_url
from dragoman.codec.media_fields import MediaResponse, take_flag, take_text
from dragoman.codec.multipart import dump_form
from dragoman.content import DataPart, LinkPart
from dragoman.errors import InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.media_request import Timestamps, TranscriptionRequest
from dragoman.message import Message, Origin
from dragoman.request import HttpRequest
from dragoman.wires.chat.record import DialectRecord
from dragoman.wires.chat.transcription_answer import (
    TranscriptDecoder,
    TranscriptEncoder,
    TranscriptEvents,
    dump_transcript,
)
from dragoman.wires.wire import StreamDecoder

__all__ = ["Transcription"]

_FORMATS = ("json", "text", "srt", "verbose_json", "vtt", "diarized_json")
_WITH_TIMES = ("srt", "verbose_json", "vtt")


class Transcription(msgspec.Struct, frozen=True, eq=False):
    """The endpoint for transcripts of one format of the family (see `wires.MediaWire`)."""

    chat: DialectRecord
    events: TranscriptEvents = TranscriptEvents()
    """What its events and counts are called."""
    formats: bool = True
    """True if a request chooses the form of its answer, and asks for times by that."""
    link: str = ""
    """The field for the URL of a recording. Empty: the API takes none."""

    def load_request(self, body: JsonMap, *, path: str = "") -> TranscriptionRequest:
        """Reads a transcription request: the fields of a form, or a body of JSON that names the
        recording by its URL. `path` says nothing.

        Raises:
            InvalidRequestError: there is no recording, or a field has another type.
        """
        del path
        fields = dict(body)
        audio = self._take_audio(fields)
        answer_format = take_text(fields, "response_format") if self.formats else None
        if answer_format not in (None, *_FORMATS):
            raise InvalidRequestError(f"response_format must be one of {', '.join(_FORMATS)}").at(
                field="response_format"
            )
        timestamps = _take_timestamps(fields)
        # Times are given in some forms of an answer alone.
        if self.formats:
            timestamps = (timestamps or ("segment",)) if answer_format in _WITH_TIMES else ()
        return TranscriptionRequest(
            take_text(fields, "model") or "",
            audio,
            take_text(fields, "language"),
            take_text(fields, "prompt"),
            timestamps,
            take_flag(fields, "stream"),
            {name: value for name, value in fields.items() if value not in (None, "")},
            self.chat.own.note(form=drop_none({"response_format": answer_format})),
        )

    def dump_http(self, request: TranscriptionRequest, *, quirks: Any = None) -> HttpRequest:
        """Writes path, headers and form of a transcription request.

        Raises:
            InvalidRequestError: the recording is a link, which the API does not take.
        """
        del quirks
        fields: Json = {
            "model": request.model or None,
            "language": request.language,
            "prompt": request.prompt,
            "stream": request.stream or None,
        }
        if self.formats and request.timestamps:
            fields["response_format"] = "verbose_json"
        if not self.formats or "word" in request.timestamps:
            fields["timestamp_granularities"] = request.timestamps
        fields |= request.options
        if isinstance(request.audio, DataPart):
            fields["file"] = request.audio
        elif self.link:
            fields[self.link] = request.audio.url
        else:
            raise InvalidRequestError(
                "the provider writes down files and no links; download the recording, and pass DataPart.from_file(…)"
            ).at(field="file")
        content_type, data = dump_form(fields)
        return HttpRequest("/audio/transcriptions", {"content-type": content_type}, data)

    def decoder(
        self,
        request: TranscriptionRequest,
        *,
        media_type: str = "",
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> StreamDecoder:
        """Returns a decoder of the answer to a transcription request: JSON, events, or plain
        text."""
        del request
        if media_type.partition(";")[0].strip().lower() == "text/plain":
            return PlainTextDecoder(origin, new_id)
        return TranscriptDecoder(self.chat, self.events, origin, new_id)

    def dump_response(self, message: Message, *, request: TranscriptionRequest) -> MediaResponse:
        """Writes a transcript as a whole answer, in the form that the request asks for.

        Raises:
            InvalidRequestError: that form needs times, and the model told none.
        """
        form = self.chat.own.form(request.native)
        answer_format = if_text(form.get("response_format")) or "json"
        if not self.formats:
            answer_format = ""
        return dump_transcript(message, answer_format, self.events)

    def encoder(self, request: TranscriptionRequest) -> TranscriptEncoder:
        """Returns an encoder of a streamed answer to a request."""
        del request
        return TranscriptEncoder(self.chat, self.events)

    def _take_audio(self, fields: Json) -> DataPart | LinkPart:
        """Takes the recording out of a transcription body."""
        audio = fields.pop("file", None)
        if audio is None:
            url = if_text(fields.pop(self.link, None) if self.link else None)
            audio = load_url(url) if url.startswith(("data:", "https://", "http://")) else None
        if not isinstance(audio, DataPart | LinkPart):
            raise InvalidRequestError("file is needed: a recording, as a file of a form").at(
                field="file"
            )
        if isinstance(audio, DataPart):
            check_recording(audio)
        return audio


def check_recording(part: DataPart) -> None:
    """Raises `InvalidRequestError` if a file is no recording for a transcription.

    Raises:
        InvalidRequestError: it is empty, or of another type.
    """
    if not part.data:
        raise InvalidRequestError("file is empty").at(field="file")
    if not is_recording(part.mime_type):
        raise InvalidRequestError(f"file is no recording but {part.mime_type:.100}").at(
            field="file"
        )


def _take_timestamps(fields: Json) -> tuple[Timestamps, ...]:
    """Takes the setting for timestamps out of the form of a transcription request."""
    value = fields.pop("timestamp_granularities", None)
    values = [value] if isinstance(value, str) else value or []
    choices = get_args(Timestamps)
    if not isinstance(values, list) or not all(
        item in choices for item in cast("list[Any]", values)
    ):
        raise InvalidRequestError(
            f"timestamp_granularities must be a list of {' and '.join(choices)}"
        ).at(field="timestamp_granularities")
    return tuple(dict.fromkeys(cast("list[Timestamps]", values)))
