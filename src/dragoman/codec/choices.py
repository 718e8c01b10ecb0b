"""Responses made of chunks with choices, as Chat Completions has them and those that took its shape: what their decoders share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter
from dragoman.codec.framing import EventStream, is_json
from dragoman.codec.json_values import as_list, as_object, body_bytes, if_object, malformed, unread
from dragoman.errors import DecodeError, DragomanError, StreamCutError
from dragoman.event import Event, RunError
from dragoman.message import FinishReason, Origin, Usage

__all__ = ["Candidate", "ChoicesDecoder"]

_END = b"[DONE]"


class Candidate(Protocol):
    """One of the answers that a response gives, told by the choices of its index."""

    emitter: Emitter

    said: str | None
    """Why it stopped, in the provider's word; `None`: it has not stopped."""

    def add(self, choice: dict[str, Any], *, whole: bool) -> None:
        """One choice of a chunk, or of a whole answer.

        Raises:
            DecodeError: it is not of this format.
        """
        ...

    def finish(self, usage: Usage | None, origin: Origin | None, response: dict[str, Any]) -> None:
        """The answer is complete."""
        ...

    def fail(self, error: DragomanError, usage: Usage | None, origin: Origin | None, response: dict[str, Any]) -> None:
        """The answer ends with an error, which carries what there was of it."""
        ...


C = TypeVar("C", bound=Candidate)


class ChoicesDecoder(ABC, Generic[C]):
    """Reads one response. It never raises for what a provider sent: that becomes a `RunError`, and ends it."""

    READ: frozenset[str] = frozenset({"id", "object", "model", "choices", "usage", "error"})
    """Fields of a chunk that are read; the others stand in the message's `response`."""
    SILENT: frozenset[str] = frozenset({"role"})
    """Fields of a choice's message that say nothing by themselves."""

    def __init__(self, origin: Origin | None = None, new_id: Callable[[], str] | None = None) -> None:
        self._origin = origin or Origin("")
        self._new_id = new_id
        self._stream = EventStream()
        self._events: list[Event] = []
        self._candidates: dict[int, C] = {}
        self._usage: dict[str, Any] = {}
        self._response: dict[str, Any] = {}
        self._identified = False
        self._over = False

    @abstractmethod
    def ordinary(self, piece: bytes) -> bool:
        """Reads a chunk of the most frequent kind, the shortest way; `False` where it is of another kind."""

    @abstractmethod
    def error_of(self, chunk: dict[str, Any]) -> DragomanError | None:
        """The error that a chunk tells of."""

    @abstractmethod
    def candidate(self, emitter: Emitter, new_id: Callable[[], str]) -> C:
        """The reader of one candidate. `new_id`: makes ids of calls."""

    @abstractmethod
    def counted(self, usage: dict[str, Any]) -> tuple[Usage | None, dict[str, Any]]:
        """The usage, and what was told beside it."""

    def note(self, chunk: dict[str, Any]) -> None:
        """What stands around the choices: who answered, tokens, fields of the vendor's own; the last word counts, but of the
        id the first: some end with a chunk of another's."""
        model, response_id = chunk.get("model"), chunk.get("id")
        if model and isinstance(model, str) and model != self._origin.served_model:
            self._origin = replace(self._origin, served_model=model)
        if response_id and isinstance(response_id, str) and not self._identified:
            self._identified = True
            self._origin = replace(self._origin, response_id=response_id)
        self.add_usage(chunk.get("usage"))
        self._response.update(unread(chunk, self.READ))

    def add_usage(self, usage: Any) -> None:
        """Tokens that were told."""
        if usage is not None:
            counts = as_object(usage, "usage")
            self._usage.update({name: number for name, number in counts.items() if number is not None})

    def feed(self, data: bytes) -> list[Event]:
        """More bytes, cut anywhere → the events that they complete."""
        for piece in self._stream.feed(data):
            if not (self._over or self.ordinary(piece)):
                self._read(piece)
        return self._take()

    def whole(self, body: Any) -> list[Event]:
        """A whole response, or a recorded stream, as bytes; or the JSON value of one → all its events."""
        try:
            data = body_bytes(body)
        except DecodeError as error:
            self._fail(error)
            return self._take()
        return self.feed(data) + self.close()

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
            chunk = json_bytes.decode(piece)
        except ValueError as error:
            shown = piece[:200].decode(errors="replace")
            self._fail(DecodeError(f"the provider sent what is no JSON ({error}): {shown}. Try again.", body=piece))
            return
        try:
            self._add(as_object(chunk, "chunk"), whole=whole)
        except DragomanError as error:
            self._fail(error)

    def _add(self, chunk: dict[str, Any], *, whole: bool) -> None:
        error = self.error_of(chunk)
        try:
            if error is None and whole and "choices" not in chunk:
                raise malformed(chunk, "an answer without choices")
            self.note(chunk)
            for position, one in enumerate(as_list(chunk.get("choices"), "choices")):
                choice = as_object(one, "choice")
                index = choice.get("index")
                if error is None or self._says(choice):
                    place = index if isinstance(index, int) else position if whole else 0
                    self._candidate(place).add(choice, whole=whole)
        except DecodeError:
            if error is None:
                raise
        if error is not None:  # what stands beside it was paid for
            raise error
        if whole:
            self._finish()

    def _says(self, choice: dict[str, Any]) -> bool:
        """Whether a choice tells something of an answer."""
        said = {**if_object(choice.get("delta")), **if_object(choice.get("message"))}
        return bool(unread(said, self.SILENT))

    def _candidate(self, index: int) -> C:
        candidate = self._candidates.get(index)
        if candidate is None:
            emitter = Emitter(self._new_id, candidate=index, origin=self._origin)
            emitter.events = self._events
            numbers = count()
            new_id = self._new_id or (lambda: f"call-{next(numbers)}")
            candidate = self._candidates[index] = self.candidate(emitter, new_id)
        return candidate

    def _finish(self) -> None:
        """The answer is complete. Its usage is told once, with the first candidate."""
        self._over = True
        usage, response = self._paid()
        if not self._candidates:
            self._candidate(0)
        for index, candidate in sorted(self._candidates.items(), key=lambda item: item[0]):
            first = index == min(self._candidates)
            candidate.finish(usage if first else None, self._newer_origin(candidate), response if first else {})

    def _fail(self, error: DragomanError) -> None:
        """The answer ends with an error, which carries what came before it and what that cost."""
        self._over = True
        error.at(provider=self._origin.provider or None)
        usage, response = self._paid()
        if usage is not None and any((usage.input_tokens, usage.output_tokens, usage.total_tokens)):
            self._candidate(min(self._candidates, default=0))
        candidates = [self._candidates[index] for index in sorted(self._candidates)]
        for candidate in candidates[1:]:
            candidate.emitter.finish(FinishReason.error, cut=True)
        if candidates:
            candidates[0].fail(error, usage, self._newer_origin(candidates[0]), response)
        else:
            self._events.append(RunError(error))

    def _paid(self) -> tuple[Usage | None, dict[str, Any]]:
        """The tokens, and what stood around the choices."""
        usage, beside = self.counted(self._usage)
        return usage, {**self._response, **({"usage": beside} if beside else {})}

    def _newer_origin(self, candidate: C) -> Origin | None:
        """The origin, where more of it is known than when the candidate began."""
        return self._origin if candidate.emitter.origin != self._origin else None
