"""Reads a response. One state machine reads streams and whole responses: a whole response gives its
steps at once.

Nearly all events of a stream add text to the step that is open. `read_fast` reads those by struct
types that decode nothing else. Steps that do not stream, such as a search, are gathered from their
events and read whole when they end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from dragoman.codec.emitter import OpenPart
from dragoman.codec.json_values import (
    as_index,
    as_list,
    if_list,
    if_object,
    if_text,
    merge_pieces,
    need_object,
    read_extra_fields,
)
from dragoman.codec.response_decoder import MessageDecoder
from dragoman.errors import DecodeError
from dragoman.event import OpenText
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    FinishReason,
    Native,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from dragoman.wires.google_interactions.citations import load_annotations
from dragoman.wires.google_interactions.content import is_block, load_block
from dragoman.wires.google_interactions.errors import error_of
from dragoman.wires.google_interactions.quirks import OWN
from dragoman.wires.google_interactions.steps import OUTPUT, THOUGHT, load_model_step, load_thought
from dragoman.wires.google_interactions.tools import FUNCTION, load_call
from dragoman.wires.google_interactions.usage import (
    CONTINUES,
    TOKEN,
    dump_finish,
    load_finish,
    load_usage,
    other_usage,
)

__all__ = ["Decoder", "decoder", "load_response"]


class _Text(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str
    type: Literal["text"]


class _More(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A delta of a text, which nearly all events of a stream are. No unknown field is allowed, so
    that nothing can nest too deep for the decoder."""

    delta: _Text
    index: int
    event_type: Literal["step.delta"]


_decode_more = msgspec.json.Decoder(_More).decode
_ANNOTATIONS = ("text_annotation_delta", "text_annotation")
_BEGUN_BY = {"text": OUTPUT, "thought_summary": THOUGHT, "thought_signature": THOUGHT}
"""Type of a delta → the type of the step that it begins, if none has begun."""
_READ = ("id", "model", "status", "usage", "steps", "object")


class _Step:
    """A step that is open."""

    __slots__ = ("fields", "noted", "part")

    def __init__(self, fields: Json) -> None:
        """Begins a streamed step. `fields`: all of it so far, but for what parts were made of."""
        self.fields = fields
        self.noted = False
        """True once a piece says that the step begins there."""
        self.part: OpenPart | None = None


class Decoder(MessageDecoder):
    """Reads a streamed response, or a whole one."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the Interactions decoder. The arguments are those of `MessageDecoder`."""
        super().__init__(origin, new_id)
        self._steps: dict[Any, _Step] = {}
        # The text that the next deltas are for, and the index of its step.
        self._text: OpenPart | None = None
        self._index: Any = None
        # The piece that came last, and the tools of the calls.
        self._last: Content | None = None
        self._names: dict[str, str] = {}
        self._parts = 0
        self._seen = 0
        self._response: Json = {}

    def read_fast(self, payload: bytes) -> bool:
        """Reads a delta of the Interactions text that is open. False if the event is another
        one."""
        try:
            event = _decode_more(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if self._text is None or event.index != self._index:
            return False
        self._out.add(self._text, event.delta.text)
        return True

    def read_event(self, event: Json) -> None:
        """Reads any event of an Interactions stream but the expected delta, or a whole
        interaction."""
        event_type = event.get("event_type")
        if event_type == "interaction.created":
            self._start(need_object(event.get("interaction"), "interaction"))
        elif event_type == "step.start":
            self._begin(_read_index(event), need_object(event.get("step"), "step"))
        elif event_type == "step.delta":
            self._add(_read_index(event), need_object(event.get("delta"), "delta"))
        elif event_type == "step.stop":
            self._end(_read_index(event))
        elif event_type == "interaction.completed":
            self._finish(need_object(event.get("interaction"), "interaction"))
        elif event_type == "error" or (event_type is None and event.get("error")):
            raise error_of(event)
        elif event_type is None and ("status" in event or "steps" in event):
            self._finish(event)
        elif not isinstance(event_type, str):
            raise DecodeError("the provider sent what is neither an event nor an interaction")

    def _start(self, interaction: JsonMap) -> None:
        """Begins the message of an interaction, or adds what is known of its origin."""
        fields: dict[str, str] = {}
        if model := if_text(interaction.get("model")):
            fields["served_model"] = model
        if interaction_id := if_text(interaction.get("id")):
            fields["response_id"] = interaction_id
        self._out.origin = replace(self._out.origin or Origin(""), **fields)
        # An interaction that is not stored has an empty id, or none if it is whole.
        unnamed = {} if interaction_id else {"id": ""}
        self._out.start(native=OWN.note(response=unnamed))

    def _begin(self, index: Any, step: Json) -> None:
        """Begins a step of an Interactions stream, and the part that its deltas are for."""
        # Its deltas could not be told from those of the first.
        if index in self._steps:
            raise DecodeError(f"step {index} begins twice")
        self._seen += 1
        open_step = self._steps[index] = _Step(step)
        step_type = if_text(step.get("type"))
        opened: Content | None = None
        if step_type == OUTPUT and (blocks := if_list(step.get("content"))):
            open_step.fields = read_extra_fields(step, "content")
            for block in blocks:
                self._add_content(index, open_step, need_object(block, "a block of content"))
        elif step_type == THOUGHT:
            opened = load_thought(step)
        elif step_type.endswith("_call") and (call := load_call(step)) is not None:
            self._names[call.id] = call.name
            opened = call
            # Deltas bring the arguments of a function; those of the first event stand for none.
            if step_type == FUNCTION:
                opened = replace(call, arguments={})
        if opened is not None:
            open_step.part = self._out.ensure_part(index, opened)
            self._last = opened

    def _add(self, index: Any, delta: Json) -> None:
        """Adds a delta to a step of an Interactions stream."""
        delta_type = if_text(delta.get("type"))
        if index not in self._steps and delta_type in _BEGUN_BY:
            self._begin(index, {"type": _BEGUN_BY[delta_type]})
        step = self._steps.get(index)
        if step is None:
            raise DecodeError(f"a delta names step {index}, which has not begun")
        step_type = step.fields.get("type")
        if step_type == OUTPUT:
            self._add_content(index, step, delta)
        elif step_type == THOUGHT and step.part is not None:
            self._add_thought(step, step.part, delta)
        elif delta_type == "arguments_delta":
            if step.part is None or not isinstance(step.part.part, ToolCallPart):
                raise DecodeError(f"arguments do not fit step {index}, which is no call")
            self._out.add(step.part, _need_text(delta.get("arguments")))
        else:
            merge_pieces(step.fields, read_extra_fields(delta, "type"))

    def _add_content(self, index: Any, step: _Step, block: Json) -> None:
        """Adds a piece of content to a `model_output` of an Interactions stream."""
        block_type = block.get("type")
        if block_type in _ANNOTATIONS:
            if step.part is not None:
                fields = OWN.open_fields(step.part.native)
                fields.setdefault("annotations", []).extend(if_list(block.get("annotations")))
            return
        if block_type != "text":
            self._end_text(step)
            # Images and the like come whole.
            self._add_whole(self._note_start(step, load_block(block)))
            return
        text, fields = _need_text(block.get("text")), read_extra_fields(block, "type", "text")
        if step.part is None:
            self._parts += 1
            part = self._note_start(step, OpenText())
            step.part = self._out.ensure_part(("text", self._parts), part)
            self._last = part
        if fields:
            OWN.open_fields(step.part.native).update(fields)
        self._text, self._index = step.part, index
        self._out.add(step.part, text)

    def _note_start(self, step: _Step, part: Content) -> Content:
        """Returns the piece with a note that an Interactions step begins with it, where that does
        not follow from the order."""
        fields = read_extra_fields(step.fields, "type", "content")
        after_content = self._last is not None and is_block(self._last)
        if step.noted or not (fields or after_content):
            step.noted = True
            return part
        step.noted = True
        return replace(part, native=OWN.with_notes(part.native, step=fields))

    def _add_thought(self, step: _Step, part: OpenPart, delta: Json) -> None:
        """Adds a delta to a thought of an Interactions stream: a piece of its summary, or the
        signature."""
        if delta.get("type") != "thought_summary":
            OWN.open_fields(part.native).update(read_extra_fields(delta, "type"))
            return
        content = if_object(delta.get("content"))
        summary = step.fields.setdefault("summary", [])
        summary.append(content)
        if content.keys() == {"type", "text"} and content["type"] == "text":
            self._out.add(part, _need_text(content["text"]))
        else:
            # The text does not say it all, so the whole summary is kept.
            OWN.open_form(part.native)["summary"] = summary

    def _end(self, index: Any) -> None:
        """Ends a step of an Interactions stream."""
        step = self._steps.pop(index, None)
        if step is None:
            return
        step_type = step.fields.get("type")
        if step_type == OUTPUT:
            self._end_text(step)
            # A step without any content is kept as it is.
            if not step.noted:
                self._add_steps([step.fields])
        elif step.part is not None and (step_type in (THOUGHT, FUNCTION)):
            self._end_part(step, step.part)
        elif step.part is not None:
            self._out.end(step.part, load_model_step(step.fields, self._names, self._last)[0])
        else:
            self._add_steps([step.fields])

    def _end_part(self, step: _Step, part: OpenPart) -> None:
        """Ends a thought or a function call. A call without deltas has the arguments with which its
        Interactions step began."""
        if part.deltas or not isinstance(part.part, ToolCallPart):
            self._out.close(part)
        else:
            self._out.end(part, load_call(step.fields) or part.part)

    def _end_text(self, step: _Step) -> None:
        """Ends the text of a `model_output` of an Interactions stream, with its sources."""
        part, step.part = step.part, None
        if part is None:
            return
        if part is self._text:
            self._text = None
        if not any(part.deltas):
            self._add_empty_text(part.part.native)
        # Sources count bytes of the whole text, which is known only now.
        annotations = OWN.open_fields(part.native).get("annotations") if part.native else None
        if annotations and isinstance(part.part, TextPart):
            text = "".join(map(str, part.deltas))
            part.part = replace(part.part, citations=load_annotations(annotations, text))
        self._out.close(part)

    def _add_empty_text(self, native: Native) -> None:
        """Adds a text of an Interactions stream to which no delta added anything, as it is read
        where it comes whole. `native`: what is noted of it."""
        block = load_block({"type": "text", "text": "", **OWN.fields(native)})
        notes = OWN.notes(native)
        if "step" in notes:
            block = replace(block, native=OWN.with_notes(block.native, step=notes["step"]))
        self._add_whole(block)

    def _add_steps(self, steps: list[Any]) -> None:
        """Adds whole steps of an interaction."""
        for step in steps:
            for part in load_model_step(need_object(step, "a step"), self._names, self._last):
                self._add_whole(part)

    def _add_whole(self, part: Content) -> None:
        self._last = part
        if isinstance(part, ToolCallPart):
            self._names[part.id] = part.name
        self._out.add_whole_part(part)

    def _finish(self, interaction: JsonMap) -> None:
        """Reads the last event of an Interactions stream, or a whole interaction."""
        self._start(interaction)
        for index in list(self._steps):
            step = self._steps[index]
            # A call stays open, so that a limit may say that it was cut.
            if step.part is None or not isinstance(step.part.part, ToolCallPart | ThinkingPart):
                self._end(index)
        # A stream's last event may repeat the steps that have come.
        if not self._seen:
            self._add_steps(as_list(interaction.get("steps"), "steps"))
        self._over = True
        status, usage = interaction.get("status"), if_object(interaction.get("usage"))
        if status == "failed":
            self._out.finish(FinishReason.error, load_usage(usage), cut=True)
            raise error_of(interaction).at(partial=self._out.build_partial_message())
        # Whether a limit cut a call must be known before the calls are closed.
        reason = load_finish(status, calls=False)
        self._out.close_all(cut=reason is FinishReason.length)
        reason = load_finish(status, bool(self._out.calls()))
        if status == CONTINUES and if_text(interaction.get(TOKEN)):
            reason = FinishReason.pause
        response = read_extra_fields(interaction, *_READ)
        if not if_text(interaction.get("id")):
            response["id"] = ""
        if status is not None and dump_finish(reason) != status:
            response["status"] = status
        if other := other_usage(usage):
            response["usage"] = other
        self._out.finish(
            reason,
            load_usage(usage),
            origin=self._out.origin,
            native=OWN.note(response=response),
        )


decoder, load_response = Decoder.create, Decoder.load_response


def _read_index(event: JsonMap) -> int | str | None:
    """Returns the index of the step that an event of an Interactions stream is about."""
    return as_index(event.get("index"))


def _need_text(text: Any) -> str:
    """Returns the text of a delta of an Interactions stream."""
    if not isinstance(text, str):
        raise DecodeError("a delta holds no text")
    return text
