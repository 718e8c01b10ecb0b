"""What an agent does with audio beside chats: it speaks a text, and writes down what is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack, get_args

from dragoman.arguments import expect, unknown_arguments_error
from dragoman.codec.audio import is_recording
from dragoman.errors import InvalidRequestError, SettingsError
from dragoman.json_bytes import JsonMap
from dragoman.media_request import SpeechRequest, Timestamps, TranscriptionRequest
from dragoman.message import DataPart, LinkPart
from dragoman.model.agent_models import Models
from dragoman.portal import Portal, synchronous
from dragoman.providers.provider import Provider
from dragoman.result import ChatResult

__all__ = ["AudioCalls", "SpeechOptions", "TranscriptionOptions"]

_UNKNOWN_TYPE = "application/octet-stream"


class SpeechOptions(TypedDict, total=False):
    """Further options of `Agent.speak`."""

    model: str | Provider | None
    """A model string, or a provider's record; `None`: the default of the agent's provider."""
    instructions: str | None
    """How it is to be said, in words."""
    options: JsonMap
    """Body fields without a neutral name, passed on as they are, such as `speed`."""


class TranscriptionOptions(TypedDict, total=False):
    """Options of `Agent.transcribe`."""

    model: str | Provider | None
    """As in `SpeechOptions`."""
    language: str | None
    """Code of the language that is spoken, such as `en`; `None`: the model finds out."""
    prompt: str | None
    """Words that help the model, such as names that occur."""
    timestamps: Sequence[Timestamps]
    """`segment`, `word` or both: what is to have times, in `metadata`."""
    options: JsonMap
    """Body fields without a neutral name, passed on as they are, such as `temperature`."""


class AudioCalls:
    """The calls of an agent for audio."""

    _models: Models
    portal: Portal

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        mime_type: str = "audio/mpeg",
        **options: Unpack[SpeechOptions],
    ) -> DataPart:
        """Makes speech (audio) of a text. `voice`: the provider's name of one; left out, its usual
        one. `mime_type`: of the audio. A provider that cannot make that, as Gemini, makes what it
        can, and the part's own type says so.

        Raises:
            SettingsError: the provider does not speak.
            InvalidRequestError: the text is empty, or the provider has no such voice or audio.
            ProviderError: it refused; which subclass tells why.
        """
        _check_options("speak()", options, SpeechOptions)
        expect("text", text, str)
        if not text.strip():
            raise InvalidRequestError("there is nothing to speak: the text is empty").at(
                field="text"
            )
        if not mime_type.startswith("audio/"):
            raise InvalidRequestError(
                f"mime_type={mime_type!r:.100} is no audio; write one such as audio/mpeg or audio/wav"
            ).at(field="mime_type")
        request = SpeechRequest(
            "",
            text,
            voice,
            mime_type,
            options.get("instructions"),
            options=options.get("options") or {},
        )
        endpoint = self._models.media_endpoint("speech", options.get("model"))
        result = await endpoint.send(request)
        return next(part for part in result.messages[-1].parts if isinstance(part, DataPart))

    async def transcribe(
        self, part: DataPart | LinkPart, **options: Unpack[TranscriptionOptions]
    ) -> ChatResult[str]:
        """Transcribes a recording of audio: its words are `output`. `metadata` has what the
        provider tells beside them, such as `language`, `duration`, and with `timestamps` the
        `segments` and `words`.

        Raises:
            SettingsError: the provider writes no transcripts.
            InvalidRequestError: the part is empty or no recording.
            ProviderError: it refused; which subclass tells why.
        """
        _check_options("transcribe()", options, TranscriptionOptions)
        expect(
            "part",
            part,
            DataPart,
            LinkPart,
            hint='a file is read by DataPart.from_file("talk.mp3")',
        )
        _check_recording(part)
        request = TranscriptionRequest(
            "",
            part,
            options.get("language"),
            options.get("prompt"),
            _read_timestamps(options.get("timestamps") or ()),
            options=options.get("options") or {},
        )
        endpoint = self._models.media_endpoint("transcription", options.get("model"))
        return await endpoint.send(request)

    # the same from any thread, also inside a running event loop (which they block)

    speak_sync = synchronous(speak)
    transcribe_sync = synchronous(transcribe)


def _check_recording(part: DataPart | LinkPart) -> None:
    """Raises `InvalidRequestError` if a part is no audio to transcribe."""
    if isinstance(part, DataPart) and not part.data:
        raise InvalidRequestError("the recording is empty").at(field="part")
    if not is_recording(part.mime_type or _UNKNOWN_TYPE):
        raise InvalidRequestError(
            f"a part of type {part.mime_type!r:.100} is no recording; pass audio or video"
        ).at(field="part")


def _read_timestamps(timestamps: Sequence[Timestamps]) -> tuple[Timestamps, ...]:
    """Returns the kinds of timestamps that a transcription is asked for, as a tuple. Raises
    `SettingsError` for an unknown kind."""
    if isinstance(timestamps, str) or set(timestamps) - set(get_args(Timestamps)):
        raise SettingsError(
            f"timestamps={timestamps!r:.100} must be a list of {' and '.join(get_args(Timestamps))}"
        )
    return tuple(timestamps)


def _check_options(function: str, options: Any, declared: type) -> None:
    """Raises `TypeError` for an option that the audio call does not have."""
    if unknown := options.keys() - declared.__annotations__.keys():
        raise unknown_arguments_error(
            function, dict.fromkeys(unknown), list(declared.__annotations__)
        )
