"""Reads a response. One state machine reads streams and whole responses; a whole response takes the
steps of its stream.

Nearly all events of a stream add text to the block that is open. `read_fast` reads those by struct
types that decode nothing else. Every other event is decoded as JSON and goes through `take`, which
hands events of one part to `_part`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Literal, cast

import msgspec
from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.emitter import OpenPart
from dragoman.codec.json_values import (
    as_index,
    as_list,
    if_object,
    if_text,
    need_object,
    read_extra_fields,
)
from dragoman.codec.response_decoder import MessageDecoder
from dragoman.errors import DecodeError
from dragoman.event import OpenText
from dragoman.fold import parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Origin, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires.cohere.citations import load_citations
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
    """A content delta, which nearly all events of a stream are. No unknown field is allowed and no
    tag is searched for, so that nothing can nest too deep for the decoder."""

    type: Literal["content-delta"]
    index: int
    delta: _ContentDelta


_decode_more = msgspec.json.Decoder(_More).decode
_PLAN_PART = load_plan()
_MESSAGE = ("role", "content", PLAN, "tool_calls", "citations")


class Decoder(MessageDecoder):
    """Reads a streamed response, or a whole one."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the Cohere decoder. The arguments are those of `MessageDecoder`."""
        super().__init__(origin, new_id)
        # The block that the next deltas are for: its index, its part, and whether it is thinking.
        self._index: Any = None
        self._block: OpenPart | None = None
        self._thinks = False
        self._late: Hashable | None = None
        self._calls = 0
        self._ended: set[OpenPart] = set()
        """Calls whose end has come."""
        self._citations: list[Any] = []
        """Sources of the text that is open."""
        self._cited: list[Any] = []
        """Sources of texts that are closed."""
        self._own: Json = {}
        """Further fields of the message."""
        self._response: Json = {}
        """Fields of the response beyond the message's."""

    def read_fast(self, payload: bytes) -> bool:
        """Reads a delta of the Cohere block that is open. False if the event is another one."""
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
        """Reads any event of a Cohere stream but the expected delta."""
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
            # In a whole answer the log probabilities are one list.
            if logprobs := event.get("logprobs") or delta.get("logprobs"):
                self._response.setdefault("logprobs", []).append(logprobs)

    def _part(self, event_type: str, index: int | str | None, message: Json) -> None:
        """Reads an event of the Cohere stream about one piece of the message. Unknown events add
        nothing."""
        if event_type in ("content-start", "content-delta"):
            block = need_object(message.get("content"), "content")
            self._content(index, block, opens=event_type == "content-start")
        elif event_type == "content-end":
            self._end_block(_content_key(index))
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
        """Begins the message of a Cohere stream."""
        self._out.origin = replace(
            self._out.origin or Origin(""), response_id=if_text(event.get("id")) or None
        )
        self._own |= read_extra_fields(message, *_MESSAGE)
        self._out.start(native=OWN.note(self._own))

    def _whole(self, event: Json) -> None:
        """Reads a whole Cohere response in the steps of its stream."""
        message = need_object(event.get("message"), "message")
        self._start(event, message)
        self._plan(message.get(PLAN))
        self._citations += as_list(message.get("citations"), "citations")
        for index, block in enumerate(as_list(message.get("content"), "blocks of content")):
            self._content(index, need_object(block, "a block"), opens=True)
            self._close(_content_key(index))
        for index, call in enumerate(as_list(message.get("tool_calls"), "calls")):
            self._call(index, need_object(call, "a call"), opens=True)
            self._close_call(index)
        self._finish(read_extra_fields(event, "id", "message"))

    def _plan(self, text: Any) -> None:
        """Adds to the tool plan of a Cohere stream."""
        if text is not None and not isinstance(text, str):
            raise DecodeError("a tool plan is no text")
        if text:
            self._out.add(self._out.ensure_part(PLAN, _PLAN_PART), text)

    def _content(self, index: int | str | None, block: Json, *, opens: bool) -> None:
        """Adds a delta of a Cohere stream to a content block. `opens`: the Cohere block begins."""
        key = _content_key(index)
        # Deltas do not repeat the type of their block.
        block_type = block.get("type", "thinking" if "thinking" in block else "text")
        if opens:
            self._close(PLAN)
        self._close_late()
        if block_type not in ("text", "thinking"):
            self._out.add_whole_part(load_block(block))
            return
        text = block.get(block_type)
        if text is None:
            text = ""
        if not isinstance(text, str):
            raise DecodeError(f"a {block_type} is no text")
        open_part = self._out.find(key)
        thinks = block_type == "thinking"
        if open_part is not None and isinstance(open_part.part, ThinkingPart) is not thinks:
            raise DecodeError(f"a {block_type} does not fit the block that it is for")
        native = OWN.note(read_extra_fields(block, "type", block_type))
        if open_part is None:
            part = ThinkingPart(native=native) if thinks else OpenText(native=native)
            open_part = self._out.ensure_part(key, part)
        self._index, self._block, self._thinks = index, open_part, thinks
        self._out.add(open_part, text)

    def _call(self, index: int | str | None, call: Json, *, opens: bool) -> None:
        """Adds a delta of a Cohere stream to a call. `opens`: the call begins."""
        if opens:
            self._close(PLAN)
            self._close_late()
            self._begin_call(index, call)
        open_part = self._out.find(("call", index))
        if open_part is None:
            raise DecodeError(f"a delta names call {index}, which is not open")
        text = if_object(call.get("function")).get("arguments")
        # Whole responses may hold the arguments as an object.
        if text is not None and not isinstance(text, str):
            text = json_bytes.encode(text).decode()
        self._out.add(open_part, text or "")

    def _begin_call(self, index: int | str | None, call: Json) -> None:
        """Begins a call of a Cohere stream. It gets a fresh id if the provider gave none."""
        function = if_object(call.get("function"))
        if not if_text(function.get("name")):
            raise DecodeError("a call names no tool")
        call_id = provider_id = if_text(call.get("id"))
        if not provider_id:
            call_id = self._out.new_id() if self._out.new_id else f"call-{self._calls}"
        self._calls += 1
        loaded = load_call(
            {**call, "id": call_id, "function": read_extra_fields(function, "arguments")}
        )
        fields = OWN.fields(loaded.native)
        if not provider_id:
            fields = {**fields, "id": None}
        part = ToolCallPart(call_id, loaded.name, native=OWN.note(fields))
        self._out.ensure_part(("call", index), part)

    def _end_block(self, key: Hashable) -> None:
        """Ends a content block of a Cohere stream. A text stays open for its sources, which some
        streams give later."""
        part = self._out.find(key)
        if part is None or not isinstance(part.part, TextPart):
            self._close(key)
            return
        self._close_late()
        self._late = key
        self._block = None

    def _close_late(self) -> None:
        """Closes the text of a Cohere stream that has ended and is still open."""
        late, self._late = self._late, None
        if late is not None:
            self._close(late)

    def _close(self, key: Hashable) -> None:
        """Closes a part of a Cohere stream, if it is open."""
        part = self._out.find(key)
        if part is None:
            return
        if part is self._block:
            self._block = None
        if self._citations and isinstance(part.part, TextPart):
            cited, self._citations = self._citations, []
            self._out.cite(load_citations(cited))
            self._cited += cited
        self._out.close(part)

    def _close_call(self, index: int | str | None) -> None:
        """Ends a call of a Cohere stream. If its arguments do not parse, it stays open until the
        finish reason says whether a limit cut it."""
        part = self._out.find(("call", index))
        if part is None or part in self._ended:
            return
        self._ended.add(part)
        text = "".join(map(str, part.deltas))
        if text and parse_call(cast("ToolCallPart", part.part), text).state == "complete":
            self._out.close(part)

    def _finish(self, end: JsonMap) -> None:
        """Finishes the message of a Cohere stream. `end`: the fields of the last event, or of a
        whole Cohere response."""
        vendor_reason = end.get("finish_reason")
        text = if_text(end.get("error"))
        if text or vendor_reason in ("ERROR", "TIMEOUT"):
            text = text or "the answer ended with an error and no words"
            error = error_of({"message": text, "error_type": vendor_reason})
            raise error.at(body=json_bytes.encode(end))
        self._over = True
        self._out.start()
        self._close_late()
        self._out.close_all(cut=vendor_reason == "MAX_TOKENS")
        reason = load_finish(vendor_reason, bool(self._out.calls()))
        usage = if_object(end.get("usage"))
        response = {
            **self._response,
            **read_extra_fields(end, "finish_reason", "usage", "error", "type"),
        }
        # A word that the neutral reason would not be written as is kept.
        if vendor_reason is not None and dump_finish(reason) != vendor_reason:
            response["finish_reason"] = vendor_reason
        if other := other_usage(usage):
            response["usage"] = other
        own_fields = {**self._own}
        if all_citations := [*self._cited, *self._citations]:
            own_fields["citations"] = all_citations
        if not vendor_reason:
            reason = FinishReason.unspecified
        native = OWN.note(own_fields, response=response)
        self._out.finish(reason, load_usage(usage), native=native)


decoder, load_response = Decoder.create, Decoder.load_response


def _content_key(index: int | str | None) -> Hashable:
    """Returns the key of a content block. A block without an index is the first."""
    return "content", index if isinstance(index, int) else 0
