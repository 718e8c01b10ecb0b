"""A response → events: one state machine for streamed and whole ones. A whole response takes the
steps of its stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.emitter import OpenPart
from dragoman.codec.json_values import (
    as_list,
    if_object,
    if_objects,
    if_text,
    need_object,
    read_extra_fields,
)
from dragoman.codec.response_decoder import MessageDecoder
from dragoman.errors import DecodeError, DragomanError
from dragoman.event import OpenText
from dragoman.fold import parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import Content, FinishReason, Origin, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires.anthropic.citations import load_citations
from dragoman.wires.anthropic.content import load_block
from dragoman.wires.anthropic.errors import error_of
from dragoman.wires.anthropic.quirks import NAME, OWN
from dragoman.wires.anthropic.tools import CALLS, load_call
from dragoman.wires.anthropic.usage import dump_finish, load_finish, load_usage, other_usage

__all__ = ["Decoder", "decoder", "grown", "load_response"]


class _Text(msgspec.Struct, tag="text_delta", gc=False, forbid_unknown_fields=True):
    text: str


class _Thinking(msgspec.Struct, tag="thinking_delta", gc=False, forbid_unknown_fields=True):
    text: str = msgspec.field(name="thinking")


class _Input(msgspec.Struct, tag="input_json_delta", gc=False, forbid_unknown_fields=True):
    text: str = msgspec.field(name="partial_json")


class _Delta(msgspec.Struct, tag_field="type", tag="content_block_delta", gc=False):
    """The events that nearly all of a stream consists of; all others are read as plain JSON."""

    index: int
    delta: _Text | _Thinking | _Input


_decode_delta = msgspec.json.Decoder(_Delta).decode
_KINDS: Mapping[type, type[_Text | _Thinking | _Input]] = {
    OpenText: _Text,
    ThinkingPart: _Thinking,
    ToolCallPart: _Input,
}
_MAIN: Mapping[str, tuple[type, str]] = {
    "text_delta": (OpenText, "text"),
    "thinking_delta": (ThinkingPart, "thinking"),
    "input_json_delta": (ToolCallPart, "partial_json"),
}
"""The deltas that a block mostly consists of → its part, and their field that is added to it."""
_TRANSFORMATIONS = {
    "thinking_dropped": "dropped",
    "thinking_mismatch_allowed": "still accepted",
}
_MESSAGE = ("type", "role", "content", "id", "model", "usage", "stop_reason")
"""Fields of a message that are read; the others stand in the message's `response`."""


class Decoder(MessageDecoder):
    """A streamed response, or a whole one → events."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the Anthropic decoder. The arguments are those of `MessageDecoder`."""
        super().__init__(origin, new_id)
        self._stop_reason: str | None = None
        self._usage: Json = {}
        # Fields of the response beyond the message's.
        self._response: Json = {}
        # Blocks that become parts when they are whole.
        self._held: dict[int, Json] = {}
        # The deltas of each open block, but for its main ones.
        self._further: dict[int, list[JsonMap]] = {}
        # Id of each call so far → its tool.
        self._names: dict[str, str] = {}
        # A call that may have been cut: the stop reason or the next block decides.
        self._late: OpenPart | None = None
        # The block that deltas are coming for, its part, and the kind of its deltas.
        self._index = -1
        self._part = OpenPart(-1, None, OpenText())
        self._kind: type[_Text | _Thinking | _Input] | None = None

    def read_fast(self, payload: bytes) -> bool:
        """Reads a delta of the Anthropic block that is open, which nearly all events are."""
        # Deep in what is passed over.
        try:
            event = _decode_delta(payload)
        except (
            msgspec.DecodeError,
            UnicodeDecodeError,
            RecursionError,
        ):
            return False
        if event.index != self._index and (part := self._out.find(event.index)) is not None:
            self._index, self._part, self._kind = event.index, part, _KINDS.get(type(part.part))
        if event.index != self._index or type(event.delta) is not self._kind:
            return False
        self._out.add(self._part, event.delta.text)
        return True

    def read_event(self, event: Json) -> None:
        """Reads any event of an Anthropic stream that `read_fast` does not."""
        event_type = event.get("type")
        if event_type == "message_start":
            self._start(need_object(event.get("message"), "message"))
        elif event_type == "content_block_start":
            self._open(
                _number(event.get("index")),
                need_object(event.get("content_block"), "content_block"),
            )
        elif event_type == "content_block_delta":
            self._add(_number(event.get("index")), need_object(event.get("delta"), "delta"))
        elif event_type == "content_block_stop":
            self._close(_number(event.get("index")))
        elif event_type == "message_delta":
            self._update(event)
        elif event_type == "message_stop":
            self._finish()
        elif event_type == "message":
            self._whole(event)
        elif event_type == "error" or (event_type is None and "error" in event):
            raise error_of(event)
        elif event_type is None:
            raise DecodeError("an event has no type")

    def end(self) -> None:
        """Ends an Anthropic answer at the end of the bytes: without a stop reason it was cut."""
        if self._stop_reason is None:
            super().end()
        else:
            self._finish()

    def fail(self, error: DragomanError) -> None:
        """Implements `MessageDecoder.fail` for Anthropic."""
        for index in list(self._further):
            self._settle(index)
        super().fail(error)

    def _whole(self, message: Json) -> None:
        self._start(message)
        self._update({"delta": {"stop_reason": message.get("stop_reason")}})
        self._finish()

    def _start(self, message: Json) -> None:
        """Reads the start of Anthropic's message: its model, id and usage."""
        model, id_ = message.get("model"), message.get("id")
        self._out.origin = msgspec.structs.replace(
            self._out.origin or Origin(""),
            served_model=model if isinstance(model, str) else None,
            response_id=id_ if isinstance(id_, str) else None,
        )
        self._note(read_extra_fields(message, *_MESSAGE))
        self._count(message.get("usage"))
        # Whole; the end's takes its place.
        if other_usage(self._usage):
            begun = {"usage": dict(self._usage)}
        else:
            begun = {}
        self._out.start(native=OWN.note(response=begun))
        for index, block in enumerate(
            as_list(message.get("content") or None, "the blocks of content")
        ):
            self._open(index, need_object(block, "a block"))
            self._close(index)

    def _open(self, index: int, block: Json) -> None:
        """Opens the part for a content block, or holds the Anthropic block until it is complete."""
        # It was not the last block, so nothing cut it.
        if self._late is not None:
            self._out.close(self._late)
            self._late = None
        self._index = -1
        opened = self._load_start(block)
        if opened is None:
            self._held[index] = dict(block)
        else:
            self._out.add(self._out.ensure_part(index, opened[0]), opened[1])

    def _load_start(self, block: Json) -> tuple[Content, str] | None:
        """Converts an Anthropic block to its part without what deltas tell, and what is already
        known of that."""
        block_type = if_text(block.get("type"))
        block_fields = {
            key: value for key, value in block.items() if key not in ("type", "text", "thinking")
        }
        if block_type == "text" and isinstance(text := block.get("text"), str):
            native = OWN.note({key: value for key, value in block_fields.items() if value})
            cited = load_citations(block.get("citations"))
            return OpenText(native=native, citations=cited), text
        if block_type == "thinking" and isinstance(text := block.get("thinking"), str):
            # Noted, so that a dump does not add a signature that the provider never gave.
            form = {} if "signature" in block_fields else {"signature": "absent"}
            return ThinkingPart(native=OWN.note(block_fields, form=form)), text
        if block_type in CALLS:
            return self._load_call_start(block)
        return None

    def _load_call_start(self, block: Json) -> tuple[ToolCallPart, str] | None:
        """Converts the Anthropic block of a call to its part without arguments, and the JSON of
        those that it holds already."""
        call_id = block.get("id") or self._make_call_id()
        call = load_call({**block, "id": call_id, "input": {}})
        if call is None:
            return None
        self._names[call.id] = call.name
        # The note tells a made-up id from one of the provider's.
        if not block.get("id"):
            native = OWN.note({**OWN.fields(call.native), "id": None})
            call = msgspec.structs.replace(call, native=native)
        # A stream begins a call with `{}`, which its deltas replace; a whole block has them all.
        if not block.get("input"):
            return call, ""
        return call, json_bytes.encode(block["input"]).decode()

    def _make_call_id(self) -> str:
        """Returns an id for an Anthropic `tool_use` block that came without one."""
        if self._out.new_id:
            return self._out.new_id()
        return f"call-{len(self._names)}"

    def _add(self, index: int, delta: Json) -> None:
        """Returns a delta that is not the Anthropic block's main one: a signature, a citation, or
        one of a block that comes whole."""
        delta_type = if_text(delta.get("type"))
        part = self._out.find(index)
        if index in self._held:
            self._further.setdefault(index, []).append(delta)
        elif part is None:
            raise DecodeError(f"a delta names block {index}, which is not open")
        elif delta_type in _MAIN:
            of, field = _MAIN[delta_type]
            text = delta.get(field)
            if type(part.part) is not of or not isinstance(text, str):
                raise DecodeError(f"a {delta_type} does not fit block {index}")
            self._out.add(part, text)
            OWN.open_notes(part.native).setdefault("delta", {}).update(
                read_extra_fields(delta, "type", field)
            )
        else:
            if delta_type == "citations_delta":
                more = {"citations": [delta.get("citation")]}
            else:
                more = delta
            self._further.setdefault(index, []).append(more)

    def _close(self, index: int) -> None:
        """Closes the part of a content block, or adds an Anthropic block that was held."""
        if (held_block := self._held.pop(index, None)) is not None:
            self._out.add_whole_part(
                load_block(grown(held_block, self._further.pop(index, ())), self._names)
            )
        elif (part := self._out.find(index)) is not None and part is not self._late:
            self._index = -1
            self._settle(index)
            text = "".join(map(str, part.deltas))
            if isinstance(part.part, ToolCallPart) and (
                not text or parse_call(part.part, text).state == "invalid"
            ):
                self._late = part
                return
            self._out.close(part)

    def _settle(self, index: int) -> None:
        """Adds what further deltas held to an Anthropic block that is a part."""
        part, deltas = self._out.find(index), self._further.pop(index, ())
        if part is not None and deltas:
            fields = part.native[NAME] = grown(OWN.fields(part.part.native), deltas)
            if isinstance(part.part, TextPart):
                cited = load_citations(fields.get("citations"))
                part.part = msgspec.structs.replace(part.part, citations=cited)

    def _update(self, event: Json) -> None:
        """Reads an update of the Anthropic message: stop reason, usage and further fields."""
        delta = need_object(event.get("delta") or {}, "delta")
        reason = delta.get("stop_reason")
        # Others than the last update of a response may have none.
        if isinstance(reason, str):
            self._stop_reason = reason
        self._note(read_extra_fields(delta, "stop_reason"))
        self._note(read_extra_fields(event, "type", "delta", "usage"))
        self._count(event.get("usage"))

    def _note(self, fields: JsonMap) -> None:
        self._response |= {key: value for key, value in fields.items() if value is not None}

    def _count(self, usage: Any) -> None:
        """Takes over the latest usage: each count is the total so far and never added."""
        self._usage |= {key: value for key, value in if_object(usage).items() if value is not None}

    def _finish(self) -> None:
        """Ends the Anthropic message with its stop reason, and closes what is still open."""
        self._over = True
        reason = load_finish(self._stop_reason)
        cut = reason is FinishReason.length
        for index in list(self._held):
            self._close(index)
        for index in list(self._further):
            self._settle(index)
        self._out.close_all(cut=cut)
        if reason is FinishReason.stop and self._out.calls():
            reason = FinishReason.tool_calls
        response = dict(self._response)
        if self._stop_reason is not None and dump_finish(reason) != self._stop_reason:
            response["stop_reason"] = self._stop_reason
        if other := other_usage(self._usage):
            response["usage"] = other
        self._out.finish(
            reason,
            load_usage(self._usage),
            native=OWN.note(response=response),
            losses=load_transformations(response.get("input_transformations")),
        )


decoder, load_response = Decoder.create, Decoder.load_response


def load_transformations(entries: Any) -> tuple[Loss, ...]:
    """Returns what the provider says that it did with the thinking of an Anthropic request
    (`input_transformations`), as losses."""
    losses: list[Loss] = []
    for entry in if_objects(entries):
        kind, reason = if_text(entry.get("type")), if_text(entry.get("reason"))
        verb = _TRANSFORMATIONS.get(kind)
        if verb is not None:
            why = f"the provider {verb} it: {reason} at {if_text(entry.get('path'))}"
            losses.append(Loss(None, None, Lost.thinking, why))
    return tuple(losses)


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise DecodeError("a block has no index")
    return value


def grown(block: JsonMap, deltas: Iterable[JsonMap]) -> Json:
    """Returns an Anthropic block with the fields of its deltas: text is added to text, list to
    list, anything else stands in place of what was there."""
    runs: dict[str, list[Any]] = {key: [value] for key, value in block.items()}
    for delta in deltas:
        for key, value in read_extra_fields(delta, "type").items():
            run = runs.setdefault(key, [])
            if run and not (type(run[-1]) is type(value) and isinstance(value, (str, list))):
                run.clear()
            run.append(value)
    return {key: run[0] if len(run) == 1 else _join_run(run) for key, run in runs.items()}


def _join_run(run: list[Any]) -> Any:
    if isinstance(run[0], str):
        return "".join(run)
    return [entry for entries in run for entry in entries]
