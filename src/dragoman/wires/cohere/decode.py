"""A response → events: one state machine for streamed and whole ones. A whole response takes the
steps of its stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Literal, cast

import msgspec
from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.decoder import MessageDecoder
from dragoman.codec.emitter import OpenPart
from dragoman.codec.json_values import (
    as_index,
    as_list,
    if_object,
    if_text,
    need_object,
    read_extra_fields,
)
from dragoman.errors import DecodeError
from dragoman.event import OpenText
from dragoman.fold import parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Origin, ThinkingPart, ToolCallPart
from dragoman.wires.cohere.content import PLAN, load_block, load_plan
from dragoman.wires.cohere.errors import error_of
from dragoman.wires.cohere.quirks import OWN
from dragoman.wires.cohere.tools import load_call
from dragoman.wires.cohere.usage import dump_finish, load_finish, load_usage, other_usage

__all__ = ["Decoder", "decoder", "load_response"]


class _Block(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str = ""
    thinking: str = ""


class _Content(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    content: _Block


class _ContentDelta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    message: _Content


class _More(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The events that nearly all of a stream consists of; all others are read as plain JSON. No
    field is passed over, and no tag is searched for, so that nothing nests too deep for it."""

    type: Literal["content-delta"]
    index: int
    delta: _ContentDelta


_decode_more = msgspec.json.Decoder(_More).decode
_PLAN_PART = load_plan()
_MESSAGE = ("role", "content", PLAN, "tool_calls", "citations")


class Decoder(MessageDecoder):
    """A streamed response, or a whole one → events."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """See `MessageDecoder`."""
        super().__init__(origin, new_id)
        self._index: Any = (
            # the block that deltas are coming for, its part, and whether that is thinking
            None
        )
        self._block: OpenPart | None = None
        self._thinks = False
        self._calls = 0
        # calls whose end came
        self._ended: set[OpenPart] = set()
        self._citations: list[Any] = []
        # further fields of the message
        self._own: Json = {}
        # fields of the response beyond the message's
        self._response: Json = {}

    def read_fast(self, payload: bytes) -> bool:
        """A delta of the block that deltas are coming for."""
        try:
            event = _decode_more(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        block, part = event.delta.message.content, self._block
        if (
            event.index != self._index
            or part is None
            or (block.text if self._thinks else block.thinking)
        ):
            return False
        self._out.add(part, block.thinking if self._thinks else block.text)
        return True

    def read_event(self, event: Json) -> None:
        """Any event but the delta that was expected."""
        event_type = event.get("type")
        delta = if_object(event.get("delta"))
        message = if_object(delta.get("message"))
        if "finish_reason" in event or isinstance(event.get("message"), dict):
            self._whole(event)
        elif event_type == "message-start":
            self._start(event, message)
        elif event_type == "message-end":
            self._finish(delta)
        elif event_type is None or event_type == "error":
            raise error_of(event)
        else:
            self._part(str(event_type), as_index(event.get("index")), message)
            # in a whole answer they are one list
            if logprobs := event.get("logprobs") or delta.get("logprobs"):
                self._response.setdefault("logprobs", []).append(logprobs)

    def _part(self, event_type: str, index: int | str | None, message: Json) -> None:
        """An event of one piece of the message; of an unknown kind: nothing."""
        if event_type in ("content-start", "content-delta"):
            block = need_object(message.get("content"), "content")
            self._content(index, block, opens=event_type == "content-start")
        elif event_type == "content-end":
            self._close(_content_key(index))
        elif event_type == "tool-plan-delta":
            self._plan(message.get(PLAN))
        elif event_type in ("tool-call-start", "tool-call-delta"):
            self._call(
                index,
                need_object(message.get("tool_calls"), "tool_calls"),
                opens=event_type == "tool-call-start",
            )
        elif event_type == "tool-call-end":
            self._close_call(index)
        elif event_type == "citation-start":
            self._citations.append(message.get("citations"))

    def _start(self, event: JsonMap, message: JsonMap) -> None:
        self._out.origin = replace(
            self._out.origin or Origin(""), response_id=if_text(event.get("id")) or None
        )
        self._own |= read_extra_fields(message, *_MESSAGE)
        self._out.start(native=OWN.note(self._own))

    def _whole(self, event: Json) -> None:
        message = need_object(event.get("message"), "message")
        self._start(event, message)
        self._plan(message.get(PLAN))
        for index, block in enumerate(as_list(message.get("content"), "blocks of content")):
            self._content(index, need_object(block, "a block"), opens=True)
            self._close(_content_key(index))
        for index, call in enumerate(as_list(message.get("tool_calls"), "calls")):
            self._call(index, need_object(call, "a call"), opens=True)
            self._close_call(index)
        self._citations += as_list(message.get("citations"), "citations")
        self._finish(read_extra_fields(event, "id", "message"))

    def _plan(self, text: Any) -> None:
        if text is not None and not isinstance(text, str):
            raise DecodeError("a tool plan is no text")
        if text:
            self._out.add(self._out.ensure_part(PLAN, _PLAN_PART), text)

    def _content(self, index: int | str | None, block: Json, *, opens: bool) -> None:
        key = _content_key(index)
        block_type = block.get("type", "thinking" if "thinking" in block else "text")
        text = (
            ""
            if not isinstance(block_type, str) or block.get(block_type) is None
            else block[block_type]
        )
        if opens:
            self._close(PLAN)
        if block_type not in ("text", "thinking"):
            self._out.add_whole_part(load_block(block))
            return
        if not isinstance(text, str):
            raise DecodeError(f"a {block_type} is no text")
        open_part = self._out.find(key)
        thinks = block_type == "thinking"
        if open_part is not None and isinstance(open_part.part, ThinkingPart) is not thinks:
            raise DecodeError(f"a {block_type} does not fit the block that it is for")
        native = OWN.note(read_extra_fields(block, "type", block_type))
        if open_part is None:
            open_part = self._out.ensure_part(
                key, ThinkingPart(native=native) if thinks else OpenText(native=native)
            )
        self._index, self._block, self._thinks = index, open_part, thinks
        self._out.add(open_part, text)

    def _call(self, index: int | str | None, call: Json, *, opens: bool) -> None:
        function = if_object(call.get("function"))
        text = function.get("arguments")
        if opens:
            self._close(PLAN)
            if not if_text(function.get("name")):
                raise DecodeError("a call names no tool")
            provider_id = if_text(call.get("id"))
            minted = provider_id or (
                self._out.new_id() if self._out.new_id else f"call-{self._calls}"
            )
            self._calls += 1
            part = load_call(
                {**call, "id": minted, "function": read_extra_fields(function, "arguments")}
            )
            call_fields = OWN.fields(part.native)
            part = ToolCallPart(
                minted,
                part.name,
                native=OWN.note(call_fields if provider_id else {**call_fields, "id": None}),
            )
            self._out.ensure_part(("call", index), part)
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
        """The end of a call. One that may have been cut stays open, until the finish reason
        tells."""
        part = self._out.find(("call", index))
        if part is None or part in self._ended:
            return
        # What may have been cut stays open: only the finish reason tells whether a limit ended it.
        self._ended.add(part)
        text = "".join(map(str, part.deltas))
        if text and parse_call(cast("ToolCallPart", part.part), text).state == "complete":
            self._out.close(part)

    def _finish(self, end: JsonMap) -> None:
        vendor_reason = end.get("finish_reason")
        if (text := if_text(end.get("error"))) or vendor_reason in ("ERROR", "TIMEOUT"):
            text = text or "the answer ended with an error and no words"
            raise error_of({"message": text, "error_type": vendor_reason}).at(
                body=json_bytes.encode(end)
            )
        self._over = True
        self._out.start()
        self._out.close_all(cut=vendor_reason == "MAX_TOKENS")
        reason = load_finish(vendor_reason, bool(self._out.calls()))
        usage = if_object(end.get("usage"))
        response = {
            **self._response,
            **read_extra_fields(end, "finish_reason", "usage", "error", "type"),
        }
        if vendor_reason is not None and dump_finish(reason) != vendor_reason:
            response["finish_reason"] = vendor_reason
        if other := other_usage(usage):
            response["usage"] = other
        own_fields = {**self._own, **({"citations": self._citations} if self._citations else {})}
        self._out.finish(
            reason if vendor_reason else FinishReason.unspecified,
            load_usage(usage),
            native=OWN.note(own_fields, response=response),
        )


decoder, load_response = Decoder.create, Decoder.load_response


def _content_key(index: int | str | None) -> Hashable:
    """A block without a number is the first."""
    return "content", index if isinstance(index, int) else 0
