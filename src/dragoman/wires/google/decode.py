"""A response → events: one state machine for streamed and whole ones. A whole response is a stream of one chunk.

The first part of a chunk goes on with the text (or thinking) that is open; every further one, and every part with something
more to it, is a part of its own. So separate parts stay separate, and signed parts are never merged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.framing import EventStream, is_json
from dragoman.codec.json_values import body_bytes, if_object, need_object, rest
from dragoman.errors import DecodeError, DragomanError, ProviderError, StreamCutError
from dragoman.event import Event, OpenText, PartDelta
from dragoman.message import FinishReason, Origin, ThinkingPart
from dragoman.wires.google.errors import error_of
from dragoman.wires.google.outcome import BLOCKED, add_fields, dump_finish, load_finish, load_usage, other_usage
from dragoman.wires.google.pairing import Pairing
from dragoman.wires.google.partial import PartialCall
from dragoman.wires.google.parts import load_part
from dragoman.wires.google.quirks import OWN

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
"""A count, or several by modality. Bounded in depth, as all of a chunk is that is decoded by these types."""


class _Chunk(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """What nearly all of a stream consists of: one more piece of text. All other chunks are read as plain JSON."""

    candidates: tuple[_Candidate]
    usage: dict[str, _Count] | None = msgspec.field(default=None, name="usageMetadata")
    model: str | None = msgspec.field(default=None, name="modelVersion")
    id: str | None = msgspec.field(default=None, name="responseId")
    created: str | None = msgspec.field(default=None, name="createTime")


_decode_chunk = msgspec.json.Decoder(_Chunk).decode
_VALUE = re.compile(r"[^\s,\]]")
_IDENTITY = ("candidates", "usageMetadata", "modelVersion", "responseId")
_SAID = ("content", "index", "finishReason")


def decoder(*, origin: Origin | None = None, new_id: Callable[[], str] | None = None) -> Decoder:
    """A decoder of one response. `new_id` mints the message's id, and those of calls that come without one."""
    return Decoder(origin, new_id)


def load_response(
    body: bytes | Mapping[str, Any], *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
) -> list[Event]:
    """A whole response → the events that its stream would have been; an error's body → `RunError`.

    Raises:
        DecodeError: a body that is given as a value nests too deep.
    """
    decoder = Decoder(origin, new_id)
    return [*decoder.feed(body_bytes(body)), *decoder.close()]


class _Answer:
    """One candidate, as far as it is known."""

    def __init__(self, out: Emitter) -> None:
        self.out = out
        self.pairing = Pairing(out.new_id)
        self.open: OpenPart | None = None  # the text or thinking that more may come for
        self.thought = False  # whether that is thinking
        self.partial: PartialCall | None = None
        self.reason: str | int | None = None
        self.around: dict[str, Any] = {}  # fields of the candidate beside its content
        self.count = 0  # texts so far

    def say(self, text: str, *, thought: bool, joins: bool) -> None:
        """More text or thinking."""
        if not text:
            return
        if self.open is None or self.thought != thought or not joins:
            self.end()
            self.open = self.out.part(self.count, ThinkingPart() if thought else OpenText())
            self.thought = thought
            self.count += 1
        self.out.add(self.open, text)

    def end(self) -> None:
        """Nothing more comes for what is open."""
        if self.open is not None:
            self.out.close(self.open)
            self.open = None
        if self.partial is not None:
            self.out.whole(self.partial.call())
            self.partial = None


class Decoder:
    """A streamed response → events. What comes after an error is ignored. The end of the bytes ends the answer: the API
    has no other mark, and may go on after a finish reason."""

    def __init__(self, origin: Origin | None, new_id: Callable[[], str] | None) -> None:
        self._stream = EventStream()
        self._new_id = new_id
        self._origin = origin or Origin("")
        self._events: list[Event] = []
        self._answers: dict[int, _Answer] = {}
        self._usage: dict[str, Any] = {}
        self._around: dict[str, Any] = {}  # fields of the response around its candidates
        self._over = False

    def feed(self, data: bytes) -> list[Event]:
        """More bytes, cut anywhere → the events that they complete."""
        for payload in self._stream.feed(data):
            self._read(payload)
        return self._take()

    def close(self) -> list[Event]:
        """The end of the bytes. An answer whose finish reason never came was cut."""
        for payload in self._stream.close():
            if is_json(payload):  # else it is the first half of a chunk
                self._read(payload)
        whole = False
        if (body := self._stream.body) is not None and not self._over:
            whole = self._read_body(body)
        if not self._over:
            self._end(whole)
        return self._take()

    def _read(self, payload: bytes) -> None:
        if self._over:
            return
        try:
            chunk = _decode_chunk(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._step(payload)
            return
        candidate = chunk.candidates[0]
        answer = self._answers.get(candidate.index)
        if answer is None:
            self._step(payload)
            return
        if (usage := chunk.usage) is not None:
            self._count(usage)
        part = candidate.content.parts[0]
        if (open_part := answer.open) is not None and answer.thought is part.thought:
            if part.text:
                open_part.deltas.append(part.text)
                self._events.append(PartDelta(answer.out.message_id, open_part.index, part.text))
        else:
            answer.say(part.text, thought=part.thought, joins=True)

    def _step(self, payload: bytes) -> None:
        """Any chunk but the usual one."""
        try:
            chunk = json_bytes.decode(payload)
        except ValueError as error:
            if payload.strip() != b"[DONE]":
                self._fail(DecodeError(f"a piece of the answer is not JSON: {error}", body=payload))
        else:
            self._take_in(chunk, payload)

    def _take_in(self, chunk: Any, payload: bytes) -> None:
        try:
            self._chunk(need_object(chunk, "a chunk"), payload)
        except DecodeError as error:
            self._fail(error.at(body=payload))

    def _read_body(self, body: bytes) -> bool:
        """A body that is no event stream: a whole answer, or the array that a stream is without `alt=sse`, which may be
        cut. Tells whether it is a whole answer."""
        if not body.startswith(b"["):
            self._step(body)
            return True
        try:
            json_bytes.bound(body)
        except ValueError as error:
            self._fail(DecodeError(f"the answer cannot be read: {error}", body=body))
            return False
        text, place, decoder = body.decode(errors="replace"), 1, json.JSONDecoder()
        while not self._over and (found := _VALUE.search(text, place)) is not None:
            try:
                chunk, place = decoder.raw_decode(text, found.start())
            except ValueError:
                break
            self._take_in(chunk, body)
        return False

    def _chunk(self, chunk: dict[str, Any], payload: bytes) -> None:
        if "error" in chunk:
            self._fail(error_of(chunk, body=payload))
            return
        model, id_ = chunk.get("modelVersion"), chunk.get("responseId")
        self._origin = msgspec.structs.replace(
            self._origin,
            served_model=model if isinstance(model, str) else self._origin.served_model,
            response_id=id_ if isinstance(id_, str) else self._origin.response_id,
        )
        add_fields(self._around, {key: value for key, value in chunk.items() if key not in _IDENTITY})
        if isinstance(usage := chunk.get("usageMetadata"), dict):
            self._count(cast("dict[str, Any]", usage))
        for candidate in _list(chunk.get("candidates"), "candidates"):
            self._candidate(need_object(candidate, "a candidate"))

    def _candidate(self, candidate: dict[str, Any]) -> None:
        index = candidate.get("index")
        answer = self._answer(index if isinstance(index, int) else 0)
        content = need_object(candidate.get("content") or {}, "content")
        for place, part in enumerate(_list(content.get("parts"), "parts")):
            self._part(answer, need_object(part, "a part"), joins=place == 0)
        add_fields(answer.around, {key: value for key, value in candidate.items() if key not in _SAID})
        if isinstance(reason := candidate.get("finishReason"), str) or type(reason) is int:
            answer.reason = reason

    def _answer(self, index: int) -> _Answer:
        answer = self._answers.get(index)
        if answer is None:
            out = Emitter(self._new_id, candidate=index, origin=self._origin)
            out.events = self._events
            out.start()
            answer = self._answers[index] = _Answer(out)
        return answer

    def _part(self, answer: _Answer, part: dict[str, Any], *, joins: bool) -> None:
        if part.keys() <= {"text", "thought"} and isinstance(text := part.get("text"), str):
            answer.say(text, thought=part.get("thought") is True, joins=joins)
            return
        call = part.get("functionCall")
        if isinstance(call, dict) and answer.partial is not None and "name" not in call:
            if not answer.partial.add(part):
                answer.end()
            return
        answer.end()
        if isinstance(call, dict) and ("willContinue" in call or "partialArgs" in call):
            answer.partial = PartialCall(part, answer.pairing)
            if not if_object(call).get("willContinue"):
                answer.end()
        elif part and call != {}:
            answer.out.whole(load_part(part, answer.pairing))

    def _count(self, usage: dict[str, Any]) -> None:
        """The last count that was told is the total so far, never a part to be added."""
        if None in usage.values():
            usage = {key: value for key, value in usage.items() if value is not None}
        self._usage.update(usage)

    def _end(self, whole: bool) -> None:
        self._over = True
        refused = isinstance(feedback := self._around.get("promptFeedback"), dict) and "blockReason" in feedback
        if not self._answers and refused:
            self._answer(0)
        elif not self._answers and whole:
            self._fail(
                ProviderError("the answer has no candidates; send the request again", body=self._stream.body)
            )  # D-123
            return
        elif not self._answers or not (whole or all(answer.reason is not None for answer in self._answers.values())):
            self._fail(StreamCutError("the stream ended before the answer did; send the request again"))
            return
        for index, answer in sorted(self._answers.items()):
            self._finish(answer, refused=refused and answer.reason is None, counted=index == min(self._answers))

    def _finish(self, answer: _Answer, *, refused: bool, counted: bool) -> None:
        out = answer.out
        reason = FinishReason.content_filter if refused else load_finish(answer.reason)
        if answer.partial is not None and reason is FinishReason.length:
            out.whole(answer.partial.call(cut=True))
            answer.partial = None
        answer.end()
        if reason is FinishReason.stop and out.calls():
            reason = FinishReason.tool_calls
        around = {**self._around, **answer.around}
        if answer.reason not in (None, "", dump_finish(reason)):
            around["finishReason"] = answer.reason
        if "blockReason" in (feedback := if_object(around.get("promptFeedback"))):
            around |= {BLOCKED: feedback["blockReason"], "promptFeedback": rest(feedback, "blockReason")}
        if counted and (other := other_usage(self._usage)):
            around["usageMetadata"] = other
        usage = load_usage(self._usage) if counted else None
        origin = None if out.origin == self._origin else self._origin
        out.finish(reason, usage, origin=origin, native=OWN.note(response=around))

    def _fail(self, error: DragomanError) -> None:
        self._over = True
        answers = [answer for _, answer in sorted(self._answers.items())]
        for answer in answers[1:]:
            answer.out.finish(FinishReason.error, cut=True)
        if answers and answers[0].partial is not None:
            answers[0].out.whole(answers[0].partial.call(cut=True))
        out = answers[0].out if answers else Emitter(None)
        out.events = self._events
        out.fail(error)

    def _take(self) -> list[Event]:
        events, self._events = self._events, []
        for answer in self._answers.values():
            answer.out.events = self._events
        return events


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list | None):
        raise DecodeError(f"{what} is no list")
    return cast("list[Any]", value or [])
