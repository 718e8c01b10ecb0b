"""A response → events: one state machine for streamed and whole ones. A whole response is a stream
of one chunk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter
from dragoman.codec.json_values import as_list, if_object, need_object, read_extra_fields
from dragoman.codec.response_decoder import ResponseDecoder
from dragoman.errors import DecodeError, DragomanError, ProviderError
from dragoman.event import PartDelta, RunError
from dragoman.json_bytes import Json
from dragoman.message import FinishReason, Origin
from dragoman.wires.google.citations import GROUNDING, load_citations
from dragoman.wires.google.decode_parts import CandidateState
from dragoman.wires.google.errors import error_of
from dragoman.wires.google.quirks import OWN
from dragoman.wires.google.usage import (
    BLOCKED,
    CONTINUATION_TOKEN,
    add_fields,
    dump_finish,
    load_finish,
    load_usage,
    other_usage,
)

__all__ = ["Decoder", "decoder", "load_response"]


class _Part(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str
    thought: bool = False


class _Content(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    parts: tuple[_Part]
    role: str | None = None


class _Candidate(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    content: _Content
    index: int = 0


_Count = int | float | str | None | list[dict[str, int | float | str | None]]
"""A count, or several by modality. Bounded in depth, as all of a chunk is that is decoded by these
types."""


class _Chunk(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """What nearly all of a stream consists of: one more piece of text. All other chunks are read as
    plain JSON."""

    candidates: tuple[_Candidate]
    usage: dict[str, _Count] | None = msgspec.field(default=None, name="usageMetadata")
    model: str | None = msgspec.field(default=None, name="modelVersion")
    id: str | None = msgspec.field(default=None, name="responseId")
    created: str | None = msgspec.field(default=None, name="createTime")


_decode_chunk = msgspec.json.Decoder(_Chunk).decode
_VALUE = re.compile(r"[^\s,\]]")
_IDENTITY = ("candidates", "usageMetadata", "modelVersion", "responseId")
_READ = ("content", "index", "finishReason")


class Decoder(ResponseDecoder):
    """A streamed response, or a whole one → events. The end of the bytes ends the answer: the API
    has no other mark, and may go on after a finish reason."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the Gemini decoder. The arguments are those of `ResponseDecoder`."""
        super().__init__(origin, new_id)
        self._candidates: dict[int, CandidateState] = {}
        self._usage: Json = {}
        # Fields of the response around its candidates.
        self._envelope: Json = {}
        # A body that is a whole response.
        self._whole: bytes | None = None

    def read_fast(self, payload: bytes) -> bool:
        """Reads more text or thinking of a candidate that has begun, which nearly all Gemini chunks
        are."""
        try:
            chunk = _decode_chunk(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        chunk_candidate = chunk.candidates[0]
        candidate = self._candidates.get(chunk_candidate.index)
        if candidate is None:
            return False
        if (usage := chunk.usage) is not None:
            if None in usage.values():
                self._count(usage)
            else:
                self._usage.update(usage)
        part = chunk_candidate.content.parts[0]
        if (open_part := candidate.open) is not None and candidate.thinks is part.thought:
            if part.text:
                open_part.deltas.append(part.text)
                self._events.append(PartDelta(candidate.out.message_id, open_part.index, part.text))
        else:
            candidate.add_text(part.text, thinks=part.thought, joins=True)
        return True

    def read_body(self, body: bytes) -> None:
        """Reads a whole Gemini answer, or the array that a stream is without `alt=sse`, which may
        be cut."""
        if not body.startswith(b"["):
            self._whole = body
            self.read_payload(body)
            return
        try:
            json_bytes.check_depth(body)
        except ValueError as error:
            self.fail(DecodeError(f"the answer cannot be read: {error}", body=body))
            return
        text, start, decoder = body.decode(errors="replace"), 1, json.JSONDecoder()
        while not self._over and (match := _VALUE.search(text, start)) is not None:
            try:
                chunk, start = decoder.raw_decode(text, match.start())
            except ValueError:
                break
            try:
                self.read_event(need_object(chunk, "a chunk"))
            except DragomanError as error:
                self.fail(error.at(body=body))

    def read_event(self, event: Json) -> None:
        """Reads any chunk of a Gemini stream that `read_fast` does not."""
        if "error" in event:
            raise error_of(event)
        model, id_ = event.get("modelVersion"), event.get("responseId")
        self._origin = msgspec.structs.replace(
            self._origin,
            served_model=model if isinstance(model, str) else self._origin.served_model,
            response_id=id_ if isinstance(id_, str) else self._origin.response_id,
        )
        add_fields(self._envelope, read_extra_fields(event, *_IDENTITY))
        if isinstance(usage := event.get("usageMetadata"), dict):
            self._count(cast("Json", usage))
        for candidate in as_list(event.get("candidates"), "candidates"):
            self._add(need_object(candidate, "a candidate"))

    def _is_complete(self) -> bool:
        """True if the Gemini answer came whole, or all its candidates have a finish reason."""
        return self._whole is not None or all(
            candidate.reason is not None for candidate in self._candidates.values()
        )

    def end(self) -> None:
        """Ends a Gemini answer at the end of the bytes: without a finish reason it was cut, unless
        it came whole."""
        candidates, whole = self._candidates, self._whole is not None
        refused = "blockReason" in if_object(self._envelope.get("promptFeedback"))
        if not candidates and refused:
            self._candidate(0)
        elif not candidates and whole:
            self.fail(
                ProviderError(
                    "the answer has no candidates; send the request again", body=self._whole
                )
            )
        elif not candidates or not self._is_complete():
            super().end()
        if self._over:
            return
        self._over = True
        for index, candidate in sorted(candidates.items()):
            self._finish(
                candidate,
                refused=refused and candidate.reason is None,
                first=index == min(candidates),
            )

    def fail(self, error: DragomanError) -> None:
        """Implements `ResponseDecoder.fail` for Gemini. The error carries the first candidate; the
        others are cut."""
        self._over = True
        candidates = [candidate for _, candidate in sorted(self._candidates.items())]
        for candidate in candidates[1:]:
            candidate.out.finish(FinishReason.error, cut=True)
        if candidates:
            candidates[0].fail(error)
        else:
            self._events.append(RunError(error))

    def _add(self, candidate_fields: Json) -> None:
        """Reads what a Gemini chunk says of a candidate."""
        index = candidate_fields.get("index")
        candidate = self._candidate(index if isinstance(index, int) else 0)
        content = need_object(candidate_fields.get("content") or {}, "content")
        for part_index, part in enumerate(as_list(content.get("parts"), "parts")):
            candidate.add_part(need_object(part, "a part"), joins=part_index == 0)
        add_fields(candidate.fields, read_extra_fields(candidate_fields, *_READ))
        if isinstance(reason := candidate_fields.get("finishReason"), str) or type(reason) is int:
            candidate.reason = reason

    def _candidate(self, index: int) -> CandidateState:
        """Returns the state of one Gemini candidate, begun with its first chunk."""
        candidate = self._candidates.get(index)
        if candidate is None:
            out = Emitter(self._new_id, candidate=index, origin=self._origin, events=self._events)
            out.start()
            candidate = self._candidates[index] = CandidateState(out)
        return candidate

    def _count(self, usage: Json) -> None:
        """Takes over the latest usage of a Gemini stream: each count is the total so far and never
        added."""
        if None in usage.values():
            usage = {key: value for key, value in usage.items() if value is not None}
        self._usage.update(usage)

    def _finish(self, candidate: CandidateState, *, refused: bool, first: bool) -> None:
        """Ends a Gemini candidate. `first`: the usage is told with it."""
        out = candidate.out
        if refused:
            reason = FinishReason.content_filter
        else:
            reason = load_finish(candidate.reason)
            if candidate.reason == "CONTINUATION" and CONTINUATION_TOKEN in candidate.fields:
                reason = FinishReason.pause
        if GROUNDING in candidate.fields:
            out.cite(load_citations(candidate.fields, out.read_text()))
        candidate.close(cut=reason is FinishReason.length)
        if reason is FinishReason.stop and out.calls():
            reason = FinishReason.tool_calls
        envelope = {**self._envelope, **candidate.fields}
        if candidate.reason not in (None, "", dump_finish(reason)):
            envelope["finishReason"] = candidate.reason
        if "blockReason" in (feedback := if_object(envelope.get("promptFeedback"))):
            envelope |= {
                BLOCKED: feedback["blockReason"],
                "promptFeedback": read_extra_fields(feedback, "blockReason"),
            }
        if first and (other := other_usage(self._usage)):
            envelope["usageMetadata"] = other
        usage = load_usage(self._usage) if first else None
        origin = None if out.origin == self._origin else self._origin
        out.finish(reason, usage, origin=origin, native=OWN.note(response=envelope))


decoder, load_response = Decoder.create, Decoder.load_response
