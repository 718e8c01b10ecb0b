"""What an endpoint for media is asked: `ImageRequest`, `SpeechRequest` and `TranscriptionRequest`.

Requests are neutral; a wire turns one into a body and back. Each is answered with the events of one
message: images and speech are its data, a transcript is its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dragoman.message import DataPart, LinkPart, Message, Native

__all__ = [
    "ImageRequest",
    "MediaKind",
    "MediaRequest",
    "SpeechRequest",
    "Timestamps",
    "TranscriptionRequest",
]

MediaKind = Literal["images", "speech", "transcription"]
"""Which endpoint for media; also the name of its capability, its purpose and its room in a wire."""
Timestamps = Literal["segment", "word"]
"""What of a transcript is to have a beginning and an end."""


class ImageRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """An image that is to be made or, where there are images, to be edited."""

    model: str
    """The provider's name of the model."""
    prompt: str
    """What is to be seen. Never empty."""
    images: tuple[DataPart | LinkPart, ...] = ()
    """The images to edit, or to take as examples; none: the prompt alone."""
    mask: DataPart | None = None
    """An image whose transparent places are those to edit in the first image; `None`: all of it."""
    count: int | None = None
    """How many images to make; `None`: one, or as many as the provider usually makes."""
    size: str | None = None
    """`WIDTHxHEIGHT` in pixels, or another of the provider's words; `None`: the provider's."""
    mime_type: str | None = None
    """Type of the images, such as `image/png`; `None`: the provider's."""
    stream: bool = False
    """Whether images are to come while they are drawn, as far as the provider can."""
    options: Mapping[str, Any] = {}
    """Body fields without a neutral name, passed through as they are."""
    native: Native = None
    """As in `ModelRequest`."""

    @property
    def message(self) -> Message:
        """Returns the user's message that says the same as the request."""
        return Message.user(self.prompt, *self.images, *filter(None, [self.mask]))

    def replace(self, **changes: Any) -> ImageRequest:
        """Returns a copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class SpeechRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text that is to be spoken."""

    model: str
    """The provider's name of the model."""
    text: str
    """What is to be said. Never empty."""
    voice: str | None = None
    """The provider's name of a voice; `None`: its usual one."""
    mime_type: str | None = None
    """Type of the audio, such as `audio/mpeg`; `None`: the provider's."""
    instructions: str | None = None
    """How it is to be said, in words."""
    stream: bool = False
    """Whether the audio is to come while it is made, as far as the provider can."""
    options: Mapping[str, Any] = {}
    """Body fields without a neutral name, passed through as they are."""
    native: Native = None
    """As in `ModelRequest`."""

    @property
    def message(self) -> Message:
        """Returns the user's message that says the same as the request."""
        return Message.user(self.text)

    def replace(self, **changes: Any) -> SpeechRequest:
        """Returns a copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class TranscriptionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Audio whose words are to be written down."""

    model: str
    """The provider's name of the model."""
    audio: DataPart | LinkPart
    """The recording. Never empty."""
    language: str | None = None
    """Code of the language that is spoken, such as `en`; `None`: the model finds out."""
    prompt: str | None = None
    """Words that help the model, such as names that occur."""
    timestamps: tuple[Timestamps, ...] = ()
    """What is to have times; none: the text alone."""
    stream: bool = False
    """Whether the text is to come while it is written, as far as the provider can."""
    options: Mapping[str, Any] = {}
    """Body fields without a neutral name, passed through as they are."""
    native: Native = None
    """As in `ModelRequest`."""

    @property
    def message(self) -> Message:
        """Returns the user's message that says the same as the request."""
        return Message.user(self.audio)

    def replace(self, **changes: Any) -> TranscriptionRequest:
        """Returns a copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)


MediaRequest = ImageRequest | SpeechRequest | TranscriptionRequest
