"""A response → events: one state machine for streamed and whole ones. A whole response takes the steps of its stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.framing import EventStream, is_json
from dragoman.codec.json_values import as_index, body_bytes, if_object, if_text, need_object, rest
from dragoman.errors import DecodeError, DragomanError, StreamCutError
from dragoman.event import Event, OpenText
from dragoman.fold import parse_call
from dragoman.message import FinishReason, Origin, ThinkingPart, ToolCallPart
from dragoman.wires.cohere.calls import load_call
from dragoman.wires.cohere.content import load_block
from dragoman.wires.cohere.errors import error_of
from dragoman.wires.cohere.messages import PLAN
from dragoman.wires.cohere.outcome import dump_finish, load_finish, load_usage, other_usage
from dragoman.wires.cohere.quirks import OWN

__all__ = ["Decoder", "decoder", "load_response"]


class _Block(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str = ""
    thinking: str = ""


class _Content(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    content: _Block


class _ContentDelta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    message: _Content


class _More(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The events that nearly all of a stream consists of; all others are read as plain JSON. No field is passed over, and no tag
    is searched for, so that nothing nests too deep for it."""

    type: Literal["content-delta"]
    index: int
    delta: _ContentDelta


_decode_more = msgspec.json.Decoder(_More).decode
_PLANNED = ThinkingPart(native=OWN.with_form(None, field=PLAN))
_MESSAGE = ("role", "content", PLAN, "tool_calls", "citations")


def decoder(*, origin: Origin | None = None, new_id: Callable[[], str] | None = None) -> Decoder:
    """A decoder of one response. `new_id` mints the message's id, and those of calls that come without one."""
    return Decoder(origin, new_id)


def load_response(
    body: bytes | Mapping[str, Any], *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
) -> list[Event]:
    """A whole response → the events that its stream would have been; an error's body → `RunError`."""
    decoder = Decoder(origin, new_id)
    return [*decoder.feed(body_bytes(body)), *decoder.close()]


class Decoder:
    """A streamed response → events. What comes after an error, or after the end, is ignored."""

    def __init__(self, origin: Origin | None, new_id: Callable[[], str] | None) -> None:
        self._stream = EventStream()
        self._out = Emitter(new_id, origin=origin)
        self._over = False
        self._index: Any = None  # the block that deltas are coming for, its part, and whether that is thinking
        self._block: OpenPart | None = None
        self._thinks = False
        self._calls = 0
        self._ended: set[OpenPart] = set()  # calls whose end was told
        self._citations: list[Any] = []
        self._own: dict[str, Any] = {}  # further fields of the message
        self._around: dict[str, Any] = {}  # fields of the response around it

    def feed(self, data: bytes) -> list[Event]:
        """More bytes, cut anywhere → the events that they complete."""
        for payload in self._stream.feed(data):
            self._read(payload)
        return self._out.take()

    def close(self) -> list[Event]:
        """The end of the bytes. An answer whose end was never told was cut."""
        for payload in self._stream.close():
            if is_json(payload):  # else it is the first half of an event
                self._read(payload)
        if self._stream.body:
            self._read(self._stream.body)
        if not self._over:
            self._fail(StreamCutError("the stream ended before the answer did; send the request again"))
        return self._out.take()

    def _read(self, payload: bytes) -> None:
        if self._over:
            return
        try:
            event = _decode_more(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._step(payload)
            return
        block, part = event.delta.message.content, self._block
        if event.index != self._index or part is None or (block.text if self._thinks else block.thinking):
            self._step(payload)
        else:
            self._out.add(part, block.thinking if self._thinks else block.text)

    def _step(self, payload: bytes) -> None:
        """Any event but the delta that was expected."""
        if payload.strip() == b"[DONE]":
            return
        try:
            event = need_object(json_bytes.decode(payload), "an event")
            kind = event.get("type")
            delta = if_object(event.get("delta"))
            message = if_object(delta.get("message"))
            if "finish_reason" in event or isinstance(event.get("message"), dict):
                self._whole(event)
            elif kind == "message-start":
                self._start(event, message)
            elif kind == "message-end":
                self._finish(delta)
            elif kind is None or kind == "error":
                self._fail(error_of(event, body=payload))
            else:
                self._part(str(kind), as_index(event.get("index")), message)
                self._log(event.get("logprobs") or delta.get("logprobs"))
        except DecodeError as error:
            self._fail(error.at(body=payload))
        except ValueError as error:
            self._fail(DecodeError(f"a piece of the answer is not JSON: {error}", body=payload))

    def _part(self, kind: str, index: int | str | None, message: dict[str, Any]) -> None:
        """An event of one piece of the message; of an unknown kind: nothing."""
        if kind in ("content-start", "content-delta"):
            block = need_object(message.get("content"), "content")
            self._content(index, block, opens=kind == "content-start")
        elif kind == "content-end":
            self._close(_content_key(index))
        elif kind == "tool-plan-delta":
            self._plan(message.get(PLAN))
        elif kind in ("tool-call-start", "tool-call-delta"):
            self._call(index, need_object(message.get("tool_calls"), "tool_calls"), opens=kind == "tool-call-start")
        elif kind == "tool-call-end":
            self._close_call(index)
        elif kind == "citation-start":
            self._citations.append(message.get("citations"))

    def _start(self, event: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        self._out.origin = replace(self._out.origin or Origin(""), response_id=if_text(event.get("id")) or None)
        self._own |= rest(message, *_MESSAGE)
        self._out.start(native=OWN.note(self._own))

    def _whole(self, event: dict[str, Any]) -> None:
        message = need_object(event.get("message"), "message")
        self._start(event, message)
        self._plan(message.get(PLAN))
        for index, block in enumerate(_list(message.get("content"), "content")):
            self._content(index, need_object(block, "a block"), opens=True)
            self._close(_content_key(index))
        for index, call in enumerate(_list(message.get("tool_calls"), "tool_calls")):
            self._call(index, need_object(call, "a call"), opens=True)
            self._close_call(index)
        self._citations += _list(message.get("citations"), "citations")
        self._finish(rest(event, "id", "message"))

    def _plan(self, text: Any) -> None:
        if text is not None and not isinstance(text, str):
            raise DecodeError("a tool plan is no text")
        if text:
            self._out.add(self._out.part(PLAN, _PLANNED), text)

    def _content(self, index: int | str | None, block: dict[str, Any], *, opens: bool) -> None:
        key = _content_key(index)
        kind = block.get("type", "thinking" if "thinking" in block else "text")
        text = "" if not isinstance(kind, str) or block.get(kind) is None else block[kind]
        if opens:
            self._close(PLAN)
        if kind not in ("text", "thinking"):
            self._out.whole(load_block(block))
            return
        if not isinstance(text, str):
            raise DecodeError(f"a {kind} is no text")
        open_part = self._out.find(key)
        thinks = kind == "thinking"
        if open_part is not None and isinstance(open_part.part, ThinkingPart) is not thinks:
            raise DecodeError(f"a {kind} does not fit the block that it is for")
        native = OWN.note(rest(block, "type", kind))
        if open_part is None:
            open_part = self._out.part(key, ThinkingPart(native=native) if thinks else OpenText(native=native))
        self._index, self._block, self._thinks = index, open_part, thinks
        self._out.add(open_part, text)

    def _call(self, index: int | str | None, call: dict[str, Any], *, opens: bool) -> None:
        function = if_object(call.get("function"))
        text = function.get("arguments")
        if opens:
            self._close(PLAN)
            if not if_text(function.get("name")):
                raise DecodeError("a call names no tool")
            given = if_text(call.get("id"))
            minted = given or (self._out.new_id() if self._out.new_id else f"call-{self._calls}")
            self._calls += 1
            part = load_call({**call, "id": minted, "function": rest(function, "arguments")})
            own = OWN.fields(part.native)
            part = ToolCallPart(minted, part.name, native=OWN.note(own if given else {**own, "id": None}))
            self._out.part(("call", index), part)
        open_part = self._out.find(("call", index))
        if open_part is None:
            raise DecodeError(f"a delta names call {index}, which is not open")
        if text is not None and not isinstance(text, str):
            text = json_bytes.encode(text).decode()
        self._out.add(open_part, text or "")

    def _close(self, key: Hashable) -> None:
        if (part := self._out.find(key)) is not None:
            self._block = None if part is self._block else self._block
            self._out.close(part)

    def _close_call(self, index: int | str | None) -> None:
        """The end of a call. One that may have been cut stays open, until the finish reason tells."""
        part = self._out.find(("call", index))
        if part is None or part in self._ended:
            return
        self._ended.add(part)
        text = "".join(map(str, part.deltas))
        if text and parse_call(cast("ToolCallPart", part.part), text).state == "complete":
            self._out.close(part)

    def _finish(self, end: Mapping[str, Any]) -> None:
        told = end.get("finish_reason")
        if (words := if_text(end.get("error"))) or told in ("ERROR", "TIMEOUT"):
            words = words or "the answer ended with an error and no words"
            self._fail(error_of({"message": words, "error_type": told}, body=json_bytes.encode(end)))
            return
        self._over = True
        self._out.start()
        self._out.close_all(cut=told == "MAX_TOKENS")
        reason = load_finish(told, bool(self._out.calls()))
        usage = if_object(end.get("usage"))
        around = {**self._around, **rest(end, "finish_reason", "usage", "error", "type")}
        if told is not None and dump_finish(reason) != told:
            around["finish_reason"] = told
        if other := other_usage(usage):
            around["usage"] = other
        own = {**self._own, **({"citations": self._citations} if self._citations else {})}
        self._out.finish(
            reason if told else FinishReason.unspecified, load_usage(usage), native=OWN.note(own, response=around)
        )

    def _fail(self, error: DragomanError) -> None:
        self._over = True
        self._out.fail(error)

    def _log(self, logprobs: Any) -> None:
        """Log probabilities of a piece of text, which stand beside its delta; in a whole answer they are one list."""
        if logprobs:
            self._around.setdefault("logprobs", []).append(logprobs)


def _content_key(index: int | str | None) -> Hashable:
    """A block without a number is the first."""
    return "content", index if isinstance(index, int) else 0


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise DecodeError(f"{what} is no list")
    return cast("list[Any]", value)
