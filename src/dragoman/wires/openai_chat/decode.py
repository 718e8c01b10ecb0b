"""A response → events. One state machine reads a stream in any chunking and, as the same steps, a whole answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman.codec.choices import ChoicesDecoder
from dragoman.codec.emitter import Emitter
from dragoman.codec.json_values import as_list, as_object, if_object, unread
from dragoman.errors import DragomanError
from dragoman.event import Event, PartDelta
from dragoman.message import Origin, Usage
from dragoman.wires.openai_chat.candidate import Candidate
from dragoman.wires.openai_chat.chunk import Delta, ordinary
from dragoman.wires.openai_chat.errors import load_error_object, vendor_error
from dragoman.wires.openai_chat.usage import load_usage

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
    """Reads one response of Chat Completions."""

    READ = frozenset({"id", "object", "model", "choices", "usage", "error", "obfuscation", "prompt", "x_groq"})

    def ordinary(self, piece: bytes) -> bool:
        """More of a text, of thinking, or of a call's arguments, and nothing else."""
        try:
            choice = ordinary(piece).choices[0]
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        delta, candidate = choice.delta, self._candidates.get(choice.index)
        if candidate is None:
            return False
        if choice.content_filter_results:
            candidate.filtered(choice.content_filter_results)
        if delta.tool_calls is None and (text := delta.content) and candidate.kind == "text" and _is_plain(delta):
            run: Any = candidate.run
            run.deltas.append(text)
            self._events.append(PartDelta(candidate.message_id, run.index, text))
            return True
        return _more(candidate, delta)

    def note(self, chunk: dict[str, Any]) -> None:
        """See `ChoicesDecoder.note`; Groq tells its usage elsewhere."""
        groq = as_object(chunk.get("x_groq"), "x_groq")
        self.add_usage(groq.get("usage"))
        super().note(chunk)
        if own := unread(groq, ("id", "usage")):
            self._response["x_groq"] = own

    def error_of(self, chunk: dict[str, Any]) -> DragomanError | None:
        """An error in the place of an answer, or of a choice."""
        for one in (chunk, *as_list(chunk.get("choices"), "choices")):
            if error := if_object(one).get("error"):
                return load_error_object(error, chunk)
        return vendor_error(chunk)

    def candidate(self, emitter: Emitter, new_id: Callable[[], str]) -> Candidate:
        """See `ChoicesDecoder.candidate`."""
        return Candidate(emitter, new_id)

    def counted(self, usage: dict[str, Any]) -> tuple[Usage | None, dict[str, Any]]:
        """See `ChoicesDecoder.counted`."""
        return load_usage(usage)


def _is_plain(delta: Delta) -> bool:
    return not delta.reasoning_content and not delta.reasoning


def _more(candidate: Candidate, delta: Delta) -> bool:
    """Tells an ordinary chunk: more of a text, of thinking, or of a call's arguments; `False` where it is none of these."""
    text, thought = delta.content, delta.reasoning_content
    if delta.tool_calls is not None:
        piece = delta.tool_calls[0]
        alone = not text and _is_plain(delta) and candidate.run is None
        return alone and candidate.calls.more(piece.index, piece.function.arguments)
    if text and _is_plain(delta):
        candidate.tell("text", text)
        return True
    if thought and not text and not delta.reasoning:
        candidate.think(("reasoning_content",), thought)
        return True
    return False
