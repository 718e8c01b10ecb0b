"""Answers that are no JSON: the bytes of audio, and plain text."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable

from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.content import DataPart
from dragoman.errors import DecodeError
from dragoman.event import Event
from dragoman.message import FinishReason, Origin

__all__ = ["AudioDecoder", "PlainTextDecoder"]


class AudioDecoder:
    """Reads audio as it comes into one part."""

    def __init__(
        self, mime_type: str, origin: Origin | None, new_id: Callable[[], str] | None
    ) -> None:
        """Starts to read an answer whose bytes are audio. `mime_type`: of the audio."""
        self._out = Emitter(new_id, origin=origin)
        self._mime_type = mime_type
        self._part: OpenPart | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Returns the events of more bytes of an audio answer."""
        if self._part is None:
            self._part = self._out.ensure_part("audio", DataPart(b"", self._mime_type))
        self._out.add(self._part, data)
        return self._out.take()

    def close(self) -> list[Event]:
        """Returns the last events of an answer of audio bytes."""
        if self._part is None:
            self._out.fail(
                DecodeError("the provider sent no audio. This is a fault of its own; try again.")
            )
        else:
            self._out.finish(FinishReason.stop)
        return self._out.take()


class PlainTextDecoder:
    """Reads text in UTF-8 as it comes into one part."""

    def __init__(self, origin: Origin | None, new_id: Callable[[], str] | None) -> None:
        self._out = Emitter(new_id, origin=origin)
        # A character may be cut between two reads.
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def feed(self, data: bytes) -> list[Event]:
        """Returns the events of more bytes."""
        self._out.add_text("text", self._decode(data))
        return self._out.take()

    def close(self) -> list[Event]:
        """Returns the last events of an answer whose bytes are plain text."""
        self._out.add_text("text", self._decode(b"", final=True))
        self._out.finish(FinishReason.stop)
        return self._out.take()
