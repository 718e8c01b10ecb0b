"""A response → events. One state machine reads a stream in any chunking and, as the same steps, a whole answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman.codec.choices import ChoicesDecoder
from dragoman.codec.emitter import Emitter
from dragoman.errors import DragomanError
from dragoman.event import Event, PartDelta
from dragoman.message import Origin, Usage
from dragoman.wires.mistral.candidate import Candidate
from dragoman.wires.mistral.chunk import ordinary
from dragoman.wires.mistral.errors import load_error_object
from dragoman.wires.mistral.outcome import load_usage

__all__ = ["Decoder", "decoder", "load_response"]


def load_response(
    body: bytes | Mapping[str, Any], *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
) -> list[Event]:
    """A whole response, or a recorded stream → the events that its stream would have been."""
    return Decoder(origin, new_id).whole(body)


def decoder(*, origin: Origin | None = None, new_id: Callable[[], str] | None = None) -> Decoder:
    """A decoder of one response."""
    return Decoder(origin, new_id)


class Decoder(ChoicesDecoder[Candidate]):
    """Reads one response of Mistral's."""

    READ = frozenset({"id", "object", "model", "choices", "usage", "p"})  # `p` is padding

    def ordinary(self, piece: bytes) -> bool:
        """Text or thinking, and nothing else."""
        try:
            choice = ordinary(piece).choices[0]
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        content, candidate = choice.delta.content, self._candidates.get(choice.index)
        if candidate is None:
            return False
        if isinstance(content, str):
            if candidate.kind == "text" and content and (run := candidate.run) is not None:
                run.deltas.append(content)
                self._events.append(PartDelta(candidate.emitter.message_id, run.index, content))
            else:
                candidate.tell("text", content)
        else:
            candidate.tell("thinking", content[0].thinking[0].text)
            if content[0].closed is not None and candidate.kind == "thinking":
                candidate.closed = content[0].closed
        return True

    def error_of(self, chunk: dict[str, Any]) -> DragomanError | None:
        """An error in the place of an answer, in any of its shapes."""
        complains = chunk.get("detail") or chunk.get("message")
        if chunk.get("object") == "error" or chunk.get("error") or ("choices" not in chunk and complains):
            return load_error_object(chunk)
        return None

    def candidate(self, emitter: Emitter, new_id: Callable[[], str]) -> Candidate:
        """See `ChoicesDecoder.candidate`."""
        return Candidate(emitter, new_id)

    def counted(self, usage: dict[str, Any]) -> tuple[Usage | None, dict[str, Any]]:
        """See `ChoicesDecoder.counted`."""
        return load_usage(usage)
