"""A response → events. One state machine reads a stream in any chunking and, as the same steps, a whole answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.emit import Emitter
from dragoman.errors import DecodeError, DragomanError, StreamCutError
from dragoman.event import Event, PartDelta, RunError
from dragoman.framing import EventStream, is_json
from dragoman.message import FinishReason, Origin
from dragoman.shapes import as_list, as_object, if_object, malformed, unread
from dragoman.wires.openai_chat.candidate import Candidate
from dragoman.wires.openai_chat.chunk import Delta, ordinary
from dragoman.wires.openai_chat.errors import load_error_object
from dragoman.wires.openai_chat.usage import load_usage

__all__ = ["Decoder", "decoder", "load_response"]

_END = b"[DONE]"
_READ = frozenset({"id", "object", "model", "choices", "usage", "error", "obfuscation", "prompt", "x_groq"})


def load_response(
    body: bytes | Mapping[str, Any], *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
) -> list[Event]:
    """A whole response, or a recorded stream → the events that its stream would have been."""
    reader = Decoder(origin, new_id)
    data = msgspec.json.encode(body) if isinstance(body, Mapping) else body
    return reader.feed(data) + reader.close()


def decoder(*, origin: Origin | None = None, new_id: Callable[[], str] | None = None) -> Decoder:
    """A decoder of one response."""
    return Decoder(origin, new_id)


class Decoder:
    """Reads one response. It never raises for what a provider sent: that becomes a `RunError`, and ends it."""

    def __init__(self, origin: Origin | None = None, new_id: Callable[[], str] | None = None) -> None:
        self._origin = origin or Origin("")
        self._new_id = new_id
        self._stream = EventStream()
        self._events: list[Event] = []
        self._candidates: dict[int, Candidate] = {}
        self._usage: dict[str, Any] = {}
        self._response: dict[str, Any] = {}
        self._over = False

    def feed(self, data: bytes) -> list[Event]:
        """More bytes, cut anywhere → the events that they complete."""
        events, candidates = self._events, self._candidates
        for piece in self._stream.feed(data):
            if self._over:
                break
            try:
                choice = ordinary(piece).choices[0]
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                self._read(piece)
                continue
            delta, candidate = choice.delta, candidates.get(choice.index)
            if candidate is None:
                self._read(piece)
            elif delta.tool_calls is None and (text := delta.content) and candidate.kind == "text" and _is_plain(delta):
                run: Any = candidate.run
                run.deltas.append(text)
                events.append(PartDelta(candidate.message_id, run.index, text))
            elif not _more(candidate, delta):
                self._read(piece)
        return self._take()

    def close(self) -> list[Event]:
        """The end of the bytes. An answer that has no end gives a `RunError` with a `StreamCutError`."""
        for piece in self._stream.close():
            if piece.strip() == _END or is_json(piece):  # else it is the first half of a chunk
                self._read(piece)
        if self._stream.body is not None:
            self._read(self._stream.body, whole=True)
        if not self._over and self._candidates and all(one.said for one in self._candidates.values()):
            self._finish()
        if not self._over:
            self._fail(StreamCutError("the stream ended before the answer did. Try again."))
        return self._take()

    def _take(self) -> list[Event]:
        events = self._events[:]
        self._events.clear()
        return events

    def _read(self, piece: bytes, *, whole: bool = False) -> None:
        """Reads any chunk, the end mark, or a whole answer."""
        stripped = piece.strip()
        if self._over or not stripped:
            return
        if stripped == _END:
            self._finish()
            return
        try:
            chunk = msgspec.json.decode(piece)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            shown = piece[:200].decode(errors="replace")
            self._fail(DecodeError(f"the provider sent what is no JSON ({error}): {shown}. Try again.", body=piece))
            return
        try:
            self._add(as_object(chunk, "chunk"), whole=whole)
        except DragomanError as error:
            self._fail(error)

    def _add(self, chunk: dict[str, Any], *, whole: bool) -> None:
        choices = as_list(chunk.get("choices"), "choices")
        for one in (chunk, *choices):
            if error := if_object(one).get("error"):
                raise load_error_object(error, chunk)
        if whole and "choices" not in chunk:
            raise malformed(chunk, "an answer without choices")
        self._note(chunk)
        for position, one in enumerate(choices):
            choice = as_object(one, "choice")
            index = choice.get("index")
            self._candidate(index if isinstance(index, int) else position if whole else 0).add(choice, whole=whole)
        if whole:
            self._finish()

    def _note(self, chunk: dict[str, Any]) -> None:
        """What stands around the choices: who answered, tokens, the vendor's own fields; the last word counts."""
        model, response_id = chunk.get("model"), chunk.get("id")
        if model and isinstance(model, str) and model != self._origin.served_model:
            self._origin = replace(self._origin, served_model=model)
        if response_id and isinstance(response_id, str) and response_id != self._origin.response_id:
            self._origin = replace(self._origin, response_id=response_id)
        groq = as_object(chunk.get("x_groq"), "x_groq")
        for usage in (groq.get("usage"), chunk.get("usage")):
            if usage is not None:
                counts = as_object(usage, "usage")
                self._usage.update({name: count for name, count in counts.items() if count is not None})
        self._response.update(unread(chunk, _READ))
        if own := unread(groq, ("id", "usage")):
            self._response["x_groq"] = own

    def _candidate(self, index: int) -> Candidate:
        candidate = self._candidates.get(index)
        if candidate is None:
            emitter = Emitter(self._new_id, candidate=index, origin=self._origin)
            emitter.events = self._events
            numbers = count()
            fresh_id = self._new_id or (lambda: f"call-{next(numbers)}")
            candidate = self._candidates[index] = Candidate(emitter, fresh_id)
        return candidate

    def _finish(self) -> None:
        """The answer is complete. Its usage is told once, with the first candidate."""
        self._over = True
        usage, beside = load_usage(self._usage)
        response = {**self._response, **({"usage": beside} if beside else {})}
        if not self._candidates:
            self._candidate(0)
        for index, candidate in sorted(self._candidates.items()):
            first = index == min(self._candidates)
            origin = self._origin if candidate.emitter.origin != self._origin else None
            candidate.finish(usage if first else None, origin, response if first else {})

    def _fail(self, error: DragomanError) -> None:
        self._over = True
        error.at(provider=self._origin.provider or None)
        first, *others = [one.emitter for _, one in sorted(self._candidates.items())] or [None]
        for emitter in others:
            if emitter is not None:
                emitter.finish(FinishReason.error, cut=True)
        if first is not None:
            first.fail(error)
        else:
            self._events.append(RunError(error))


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
