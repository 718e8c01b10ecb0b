"""Reads a response that is made of chunks with choices. One state machine reads a stream in any
chunking and, as the same steps, a whole answer.

`Decoder` reads what stands around the choices (model, id, usage, the vendor's own fields) and
passes each choice to the `ChatCandidate` of its index. The usage is known at the end only, so no
candidate finishes before the answer is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar

from msgspec.structs import replace

from dragoman.codec.emitter import Emitter
from dragoman.codec.json_values import as_list, as_object, if_object, select_unread, shape_error
from dragoman.codec.response_decoder import ResponseDecoder
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
    """Class that reads one candidate."""
    READ: ClassVar[frozenset[str]] = frozenset(
        {"id", "object", "model", "choices", "usage", "error"}
    )
    """Fields of a chunk that are read. The others are kept in the message's `response`."""

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
        """Reads one chunk; see `ResponseDecoder`."""
        whole, error = self._whole, self._chat.error_of(event)
        try:
            if error is None and whole and "choices" not in event:
                raise shape_error(event, "an answer without choices")
            self.note(event)
            for position, entry in enumerate(as_list(event.get("choices"), "choices")):
                choice = as_object(entry, "choice")
                if error is None or _has_content(choice):
                    # A chunk without an index belongs to the one candidate. A whole answer lists its
                    # candidates in order.
                    index = choice.get("index")
                    if not isinstance(index, int):
                        index = position if whole else 0
                    self._find_candidate(index).add(choice, whole=whole)
        except DecodeError:
            # The vendor's error says more than that its chunk was malformed.
            if error is None:
                raise
        # Raised last: what stands beside an error was paid for, and is kept.
        if error is not None:
            raise error
        if whole:
            self.read_done()

    def note(self, chunk: Json) -> None:
        """Reads what stands around the choices of a Chat stream: who answered, tokens, the vendor's
        own fields. The last value counts, except for the id: some streams end with a Chat chunk of
        another id."""
        model, response_id = chunk.get("model"), chunk.get("id")
        changes: dict[str, str] = {}
        if model and isinstance(model, str) and model != self._origin.served_model:
            changes["served_model"] = model
        # Of the id the first counts, since some streams end with a chunk of another id.
        if not self._identified and response_id and isinstance(response_id, str):
            self._identified = True
            changes["response_id"] = response_id
        if changes:
            self._origin = replace(self._origin, **changes)
        if (usage := chunk.get("usage")) is not None:
            self.add_usage(usage)
        if not self.READ.issuperset(chunk):
            self._response.update(select_unread(chunk, self.READ))

    def add_usage(self, usage: Any) -> None:
        """Adds the token counts of a chunk."""
        counts = as_object(usage, "usage")
        self._usage.update({name: number for name, number in counts.items() if number is not None})

    def read_body(self, body: bytes) -> None:
        """See `ResponseDecoder`."""
        self._whole = True
        super().read_body(body)

    def end(self) -> None:
        """Implements `ResponseDecoder.end` for Chat Completions. Some vendors send no mark of the
        end."""
        # Without a mark of the end, a finish reason for each candidate is enough.
        if self._candidates and all(
            candidate.vendor_reason for candidate in self._candidates.values()
        ):
            self.read_done()
        else:
            super().end()

    def read_done(self) -> None:
        """Finishes all candidates: the Chat answer is complete. Only the first gets the usage and
        the fields around the choices, which belong to the whole answer."""
        self._over = True
        usage, response = self._envelope()
        if not self._candidates:
            self._find_candidate(0)
        for _, candidate in sorted(self._candidates.items()):
            candidate.finish(usage, self._newer_origin(candidate), response)
            usage, response = None, {}

    def fail(self, error: DragomanError) -> None:
        """Ends the Chat answer with an error, which carries what came before it and what that
        cost."""
        self._over = True
        error.at(provider=self._origin.provider or None)
        usage, response = self._envelope()
        if usage is not None and any((usage.input_tokens, usage.output_tokens, usage.total_tokens)):
            # Only a message can carry the usage, so one is begun if there is none.
            self._find_candidate(min(self._candidates, default=0))
        candidates: list[ChatCandidate] = [
            self._candidates[index] for index in sorted(self._candidates)
        ]
        if not candidates:
            self._events.append(RunError(error))
            return
        first, *others = candidates
        for candidate in others:
            candidate.emitter.finish(FinishReason.error, cut=True)
        first.fail(error, usage, self._newer_origin(first), response)

    def _find_candidate(self, index: int) -> ChatCandidate:
        """Returns the Chat stream's candidate of that index. It begins with its first choice."""
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
        """Returns the tokens of a Chat stream, and what stood around the choices."""
        usage, beside = self._chat.load_usage(self._usage)
        if not beside:
            return usage, {**self._response}
        return usage, {**self._response, "usage": beside}

    def _newer_origin(self, candidate: ChatCandidate) -> Origin | None:
        """Returns the origin of a Chat stream if it has changed since the candidate began, else
        None. Later chunks may say more, such as the model that served the request."""
        if candidate.emitter.origin != self._origin:
            return self._origin
        return None


def _has_content(choice: Json) -> bool:
    """True if a choice holds something of an answer."""
    fields = {**if_object(choice.get("delta")), **if_object(choice.get("message"))}
    return bool(select_unread(fields, ("role",)))
