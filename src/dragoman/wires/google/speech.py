"""Speech of Gemini, which has no endpoint for it: a chat is asked to answer with audio alone.

Older models answer with raw samples, which become a WAV file unless raw samples were asked for. The
model chooses the type of the audio, and the part says which it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dragoman.codec.audio import is_pcm, wrap_wav
from dragoman.codec.json_values import if_object
from dragoman.content import DataPart, TextPart
from dragoman.event import Event, PartDelta, PartFinished, PartStarted
from dragoman.fold import part_events
from dragoman.json_bytes import Json
from dragoman.media_request import SpeechRequest
from dragoman.message import Message, Origin
from dragoman.request import HttpRequest, ModelRequest
from dragoman.wires.google.decode import decoder as chat_decoder
from dragoman.wires.google.quirks import OWN
from dragoman.wires.google.request import dump_http as dump_chat
from dragoman.wires.wire import StreamDecoder

__all__ = ["decoder", "dump_http"]


def dump_http(request: SpeechRequest, *, quirks: Any = None) -> HttpRequest:
    """Writes path, headers and body of a Gemini speech request. Audio always comes whole."""
    options = dict(request.options)
    config: Json = {"responseModalities": ["AUDIO"]}
    if request.voice is not None:
        voice = {"prebuiltVoiceConfig": {"voiceName": request.voice}}
        config["speechConfig"] = {"voiceConfig": voice}
    config |= if_object(options.pop("generationConfig", None))
    style = request.instructions and {"speechMetadata": {"style": request.instructions}}
    chat = ModelRequest(
        request.model,
        (Message.user(TextPart(request.text, OWN.note(style or None))),),
        options={**options, "generationConfig": config},
    )
    return dump_chat(chat, quirks=quirks)


def decoder(
    request: SpeechRequest,
    *,
    media_type: str = "",
    origin: Origin | None = None,
    new_id: Callable[[], str] | None = None,
) -> StreamDecoder:
    """Returns a decoder of the Gemini answer with speech, which is that of a chat."""
    del media_type
    chat = chat_decoder(origin=origin, new_id=new_id)
    if is_pcm(request.mime_type or ""):
        return chat
    return _WavDecoder(chat)


class _WavDecoder:
    """Reads an answer in which raw samples become a WAV file."""

    def __init__(self, chat: StreamDecoder) -> None:
        self._chat = chat
        self._samples: set[int] = set()

    def feed(self, data: bytes) -> list[Event]:
        """Returns the events that more bytes complete."""
        return list(self._convert_pcm(self._chat.feed(data)))

    def close(self) -> list[Event]:
        """Returns the last events."""
        return list(self._convert_pcm(self._chat.close()))

    def _convert_pcm(self, events: Iterable[Event]) -> Iterable[Event]:
        """Returns the events with Gemini's raw PCM audio as a WAV file."""
        for event in events:
            if isinstance(event, PartStarted) and _is_samples(event.part):
                self._samples.add(event.index)
            elif isinstance(event, PartFinished) and isinstance(part := event.part, DataPart):
                # The head of a WAV file tells its length, so the samples must be complete.
                if event.index in self._samples:
                    yield from part_events(event.message_id, event.index, wrap_wav(part))
                else:
                    yield event
            elif not isinstance(event, PartDelta) or event.index not in self._samples:
                yield event


def _is_samples(part: object) -> bool:
    return isinstance(part, DataPart) and is_pcm(part.mime_type)
