"""A response made of chunks with choices → events. One state machine reads a stream in any chunking
and, as the same steps, a whole answer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar

from msgspec.structs import replace

from dragoman.codec.decoder import ResponseDecoder
from dragoman.codec.emitter import Emitter
from dragoman.codec.json_values import as_list, as_object, if_object, select_unread, shape_error
from dragoman.errors import DecodeError, DragomanError
from dragoman.event import RunError
from dragoman.json_bytes import Json
from dragoman.message import FinishReason, Origin, Usage
from dragoman.wires.chat.decode_parts import ChatCandidate
from dragoman.wires.chat.record import DialectRecord

__all__ = ["Decoder"]


class Decoder(ResponseDecoder):
    """Reads one response, which may hold several candidates."""

    CANDIDATE: ClassVar[type[ChatCandidate]] = ChatCandidate
    """Reads one candidate."""
    READ: ClassVar[frozenset[str]] = frozenset(
        {"id", "object", "model", "choices", "usage", "error"}
    )
    """Fields of a chunk that are read; the others stand in the message's `response`."""

    def __init__(
        self,
        chat: DialectRecord,
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        """See `ResponseDecoder`."""
        super().__init__(origin, new_id)
        self._chat = chat
        self._candidates: dict[int, Any] = {}
        self._usage: Json = {}
        self._response: Json = {}
        self._identified = False
        self._whole = False

    def read_event(self, event: Json) -> None:
        """See `ResponseDecoder`."""
        whole, error = self._whole, self._chat.error_of(event)
        try:
            if error is None and whole and "choices" not in event:
                raise shape_error(event, "an answer without choices")
            self.note(event)
            for position, entry in enumerate(as_list(event.get("choices"), "choices")):
                choice = as_object(entry, "choice")
                index = choice.get("index")
                if error is None or _has_content(choice):
                    # chunks without an index are of the one candidate; a whole answer lists its
                    # candidates in order
                    usual = position if whole else 0
                    number = index if isinstance(index, int) else usual
                    self._candidate(number).add(choice, whole=whole)
        except DecodeError:
            if error is None:
                raise
        # what stands beside it was paid for
        if error is not None:
            raise error
        if whole:
            self.read_done()

    def note(self, chunk: Json) -> None:
        """What stands around the choices: who answered, tokens, fields of the vendor's own; the
        last word counts, but of the id the first: some end with a chunk of another's."""
        changes: dict[str, str] = {}
        if (
            (model := chunk.get("model"))
            and isinstance(model, str)
            and model != self._origin.served_model
        ):
            changes["served_model"] = model
        if (
            not self._identified
            and (response_id := chunk.get("id"))
            and isinstance(response_id, str)
        ):
            self._identified = True
            changes["response_id"] = response_id
        if changes:
            self._origin = replace(self._origin, **changes)
        if (usage := chunk.get("usage")) is not None:
            self.add_usage(usage)
        if not self.READ.issuperset(chunk):
            self._response.update(select_unread(chunk, self.READ))

    def add_usage(self, usage: Any) -> None:
        """Tokens, as a chunk counts them."""
        counts = as_object(usage, "usage")
        self._usage.update({name: number for name, number in counts.items() if number is not None})

    def read_body(self, body: bytes) -> None:
        """See `ResponseDecoder`."""
        self._whole = True
        super().read_body(body)

    def end(self) -> None:
        """See `ResponseDecoder`; some send no mark of the end."""
        if self._candidates and all(
            candidate.vendor_reason for candidate in self._candidates.values()
        ):
            self.read_done()
        else:
            super().end()

    def read_done(self) -> None:
        """The answer is complete. Its usage stands with the first candidate."""
        self._over = True
        usage, response = self._envelope()
        if not self._candidates:
            self._candidate(0)
        for index, candidate in sorted(self._candidates.items()):
            first = index == min(self._candidates)
            candidate.finish(
                usage if first else None, self._newer_origin(candidate), response if first else {}
            )

    def fail(self, error: DragomanError) -> None:
        """The answer ends with an error, which carries what came before it and what that cost."""
        self._over = True
        error.at(provider=self._origin.provider or None)
        usage, response = self._envelope()
        if usage is not None and any((usage.input_tokens, usage.output_tokens, usage.total_tokens)):
            self._candidate(min(self._candidates, default=0))
        candidates: list[ChatCandidate] = [
            self._candidates[index] for index in sorted(self._candidates)
        ]
        for candidate in candidates[1:]:
            candidate.emitter.finish(FinishReason.error, cut=True)
        if candidates:
            candidates[0].fail(error, usage, self._newer_origin(candidates[0]), response)
        else:
            self._events.append(RunError(error))

    def _candidate(self, index: int) -> ChatCandidate:
        candidate = self._candidates.get(index)
        if candidate is None:
            emitter = Emitter(
                self._new_id, candidate=index, origin=self._origin, events=self._events
            )
            numbers = count()
            new_id = self._new_id or (lambda: f"call-{next(numbers)}")
            candidate = self._candidates[index] = self.CANDIDATE(self._chat, emitter, new_id)
        return candidate

    def _envelope(self) -> tuple[Usage | None, Json]:
        """The tokens, and what stood around the choices."""
        usage, beside = self._chat.load_usage(self._usage)
        return usage, {**self._response, **({"usage": beside} if beside else {})}

    def _newer_origin(self, candidate: ChatCandidate) -> Origin | None:
        """The origin, where more of it is known than when the candidate began."""
        return self._origin if candidate.emitter.origin != self._origin else None


def _has_content(choice: Json) -> bool:
    """Whether a choice holds something of an answer."""
    return bool(
        select_unread(
            {**if_object(choice.get("delta")), **if_object(choice.get("message"))}, ("role",)
        )
    )
