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
from dragoman.shapes import as_list, as_object, malformed, unread
from dragoman.wires.mistral.candidate import Candidate
from dragoman.wires.mistral.chunk import ordinary
from dragoman.wires.mistral.errors import load_error_object
from dragoman.wires.mistral.outcome import load_usage

__all__ = ["Decoder", "decoder", "load_response"]

_END = b"[DONE]"
_READ = ("id", "object", "model", "choices", "usage", "p")
"""Fields of a chunk that are read; `p` is padding."""


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
        for piece in self._stream.feed(data):
            if not self._over and not self._read_ordinary(piece):
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

    def _read_ordinary(self, data: bytes) -> bool:
        """Reads a chunk that holds text or thinking, and nothing else; `False` where it is none."""
        try:
            choice = ordinary(data).choices[0]
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

    def _read(self, piece: bytes, *, whole: bool = False) -> None:
        """Reads any chunk, the end mark, or a whole answer."""
        if self._over or not piece.strip():
            return
        if piece.strip() == _END:
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
        if chunk.get("object") == "error" or chunk.get("error") or ("choices" not in chunk and _complains(chunk)):
            raise load_error_object(chunk)
        if whole and "choices" not in chunk:
            raise malformed(chunk, "an answer without choices")
        self._note(chunk)
        for position, one in enumerate(as_list(chunk.get("choices"), "choices")):
            choice = as_object(one, "choice")
            index = choice.get("index")
            self._candidate(index if isinstance(index, int) else position if whole else 0).add(choice, whole=whole)
        if whole:
            self._finish()

    def _note(self, chunk: dict[str, Any]) -> None:
        """What stands around the choices: who answered, tokens, further fields; the last word counts."""
        told = {"served_model": chunk.get("model"), "response_id": chunk.get("id")}
        self._origin = replace(
            self._origin, **{name: value for name, value in told.items() if value and isinstance(value, str)}
        )
        counts = as_object(chunk.get("usage"), "usage")
        self._usage.update({name: count for name, count in counts.items() if count is not None})
        self._response.update(unread(chunk, _READ))

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


def _complains(chunk: Mapping[str, Any]) -> bool:
    return bool(chunk.get("detail") or chunk.get("message"))
