"""Reads a response. One state machine reads streams and whole responses: a whole one gives its blocks
at once.

Nearly all events of a stream add text to a block. `read_fast` reads those by struct types that
decode nothing else. A text begins with its first delta; calls, results and images have an event
for their start. Results and images are gathered and read whole when they end.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import msgspec
from msgspec.structs import replace

from dragoman.codec.binary_frames import FAULT, BinaryEventStream
from dragoman.codec.emitter import OpenPart
from dragoman.codec.json_values import (
    as_list,
    if_list,
    if_object,
    if_objects,
    if_text,
    need_object,
    read_extra_fields,
)
from dragoman.codec.response_decoder import MessageDecoder
from dragoman.errors import DecodeError, DragomanError
from dragoman.fold import parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Origin, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires.anthropic.decode import grown
from dragoman.wires.bedrock_converse.citations import load_citations
from dragoman.wires.bedrock_converse.content import REASONING
from dragoman.wires.bedrock_converse.errors import error_of
from dragoman.wires.bedrock_converse.messages import load_pieces
from dragoman.wires.bedrock_converse.quirks import NAME, OWN
from dragoman.wires.bedrock_converse.tools import CALL, load_call
from dragoman.wires.bedrock_converse.usage import dump_finish, load_finish, load_usage, other_usage

__all__ = ["Decoder", "decoder", "load_response"]


class _Text(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str


class _More(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    index: int = msgspec.field(name="contentBlockIndex")
    delta: _Text
    padding: str = msgspec.field(name="p", default="")
    """Characters that hide the length of the text from who listens to the connection."""


class _Delta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A delta of a text, which nearly all events of a stream are. No unknown field is allowed, so
    that nothing can nest too deep for the decoder."""

    more: _More = msgspec.field(name="contentBlockDelta")


_decode_delta = msgspec.json.Decoder(_Delta).decode


class Decoder(MessageDecoder):
    """Reads a streamed response, or a whole one."""

    FRAMES = BinaryEventStream

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the Converse decoder. The arguments are those of `MessageDecoder`."""
        super().__init__(origin, new_id)
        # Index of a block that comes whole at its end → its block_type and the fields that it began with.
        self._whole: dict[int, tuple[str, Json]] = {}
        # Index of a block → the fields of its deltas beside text and arguments.
        self._beside: dict[int, list[JsonMap]] = {}
        # Id of each call so far → its tool.
        self._names: dict[str, str] = {}
        # The text that the last delta was for, and its index.
        self._text: OpenPart | None = None
        self._index = -1
        self._reason: str | None = None
        self._response: Json = {}

    def read_fast(self, payload: bytes) -> bool:
        """Reads a delta of the Converse text that is open. False if the event is another one."""
        try:
            more = _decode_delta(payload).more
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if self._text is None or more.index != self._index:
            return False
        self._out.add(self._text, more.delta.text)
        return True

    def read_event(self, event: Json) -> None:
        """Reads any event of a Converse stream but the expected delta, or a whole response."""
        if "output" in event:
            self._read_whole(event)
            return
        name = next(iter(event), "")
        _check_error(event, name)
        fields = need_object(event[name], name)
        if name == "messageStart":
            self._out.start()
        elif name == "contentBlockStart":
            self._begin(_read_index(fields), need_object(fields.get("start"), "start"))
        elif name == "contentBlockDelta":
            self._add(_read_index(fields), need_object(fields.get("delta"), "delta"))
        elif name == "contentBlockStop":
            self._end_block(_read_index(fields))
        elif name == "messageStop":
            self._reason = if_text(fields.get("stopReason"))
            self._response |= read_extra_fields(fields, "stopReason", "p")
        elif name == "metadata":
            self._finish(fields)

    def end(self) -> None:
        """Ends a Converse answer at the end of the bytes: without a stop reason it was cut. Only
        the counts come after that."""
        if self._reason is None:
            super().end()
        else:
            self._finish({})

    def _read_whole(self, response: Json) -> None:
        """Reads a whole Converse response."""
        self._out.start()
        message = need_object(need_object(response["output"], "output").get("message"), "message")
        blocks = as_list(message.get("content"), "blocks of content")
        # An empty text says nothing, as one of a stream to which nothing is added.
        spoken = [need_object(block, "a block") for block in blocks if block != {"text": ""}]
        for part in load_pieces(spoken, self._names):
            self._out.add_whole_part(part)
        self._reason = if_text(response.get("stopReason"))
        self._finish(read_extra_fields(response, "output", "stopReason"))

    def fail(self, error: DragomanError) -> None:
        """Implements `MessageDecoder.fail` for Converse."""
        for index in list(self._beside):
            self._settle(index)
        super().fail(error)

    def _begin(self, index: int, start: Json) -> None:
        """Begins a block of a Converse stream that has an event for its start."""
        if self._out.find(index) is not None or index in self._whole:
            raise DecodeError(f"block {index} begins twice")
        block_type = next(iter(start), "")
        if block_type != CALL:
            self._whole[index] = block_type, if_object(start.get(block_type))
            return
        call = load_call({CALL: {**if_object(start[CALL]), "input": {}}})
        if call is None:
            raise DecodeError("a call has no id or no name")
        self._names[call.id] = call.name
        self._out.ensure_part(index, call)

    def _add(self, index: int, delta: Json) -> None:
        """Adds a delta to a block of a Converse stream."""
        block_type = next(iter(delta), "")
        more = delta.get(block_type)
        if block_type == "text":
            self._index, self._text = index, self._need_part(index, block_type, TextPart)
            self._out.add(self._text, _need_text(more))
        elif block_type == CALL:
            part = self._need_part(index, block_type, ToolCallPart)
            self._out.add(part, _need_text(need_object(more, block_type).get("input")))
        elif block_type == REASONING:
            part, fields = (
                self._need_part(index, block_type, ThinkingPart),
                need_object(more, block_type),
            )
            self._out.add(part, _need_text(fields.get("text", "")))
            self._note(index, read_extra_fields(fields, "text"))
        elif block_type == "citation":
            self._need_part(index, block_type, TextPart)
            self._note(index, {"citations": [more]})
        elif block_type:
            self._whole.setdefault(index, (block_type, {}))
            content = if_list(more)
            self._note(index, {"content": content} if content else if_object(more))

    def _note(self, index: int, fields: JsonMap) -> None:
        """Keeps fields of a delta until the block of the Converse stream ends."""
        if fields:
            self._beside.setdefault(index, []).append(fields)

    def _need_part(self, index: int, block_type: str, part_type: type) -> OpenPart:
        """Returns the open part that a delta of a Converse stream is for. Texts and reasoning begin
        with their first delta.

        Raises:
            DecodeError: the block is none of this block_type.
        """
        begins = {TextPart: None, ThinkingPart: ThinkingPart()}
        part = self._out.find(index)
        if part is None and part_type in begins:
            part = self._out.ensure_part(index, begins[part_type])
        if part is None or not isinstance(part.part, part_type):
            raise DecodeError(f"a delta of {block_type} does not fit block {index}")
        return part

    def _end_block(self, index: int) -> None:
        """Ends a block of a Converse stream. A call whose arguments do not parse stays open until
        the stop reason says whether a limit cut it."""
        if index in self._whole:
            block_type, begun = self._whole.pop(index)
            fields = grown(begun, self._beside.pop(index, ()))
            if if_objects(fields.get("content")):
                fields["content"] = _join_texts(fields["content"])
            for part in load_pieces([{block_type: fields}], self._names):
                self._out.add_whole_part(part)
            return
        part = self._settle(index)
        if part is None:
            return
        if part is self._text:
            self._text = None
        text = "".join(map(str, part.deltas))
        if isinstance(part.part, ToolCallPart) and parse_call(part.part, text).state != "complete":
            return
        self._out.close(part)

    def _settle(self, index: int) -> OpenPart | None:
        """Adds what deltas held beside text to the part of a Converse block. Returns the part, or
        None if the block is not open."""
        part = self._out.find(index)
        # Deltas of an unknown type are a block of their own, whatever index they name.
        deltas = () if index in self._whole else self._beside.pop(index, ())
        if part is not None and deltas:
            fields = part.native[NAME] = grown({}, deltas)
            if isinstance(part.part, TextPart):
                part.part = replace(part.part, citations=load_citations(fields["citations"]))
        return part

    def _finish(self, metadata: JsonMap) -> None:
        """Finishes the message of a Converse answer. `metadata`: counts, and what else stands
        around the message."""
        self._over = True
        self._out.start()
        for index in list(self._whole):
            self._end_block(index)
        for index in list(self._beside):
            self._settle(index)
        usage = if_object(metadata.get("usage"))
        reason = load_finish(self._reason)
        self._out.close_all(cut=reason is FinishReason.length)
        reason = load_finish(self._reason, calls=bool(self._out.calls()))
        response = {**self._response, **read_extra_fields(metadata, "usage", "p")}
        if self._reason and dump_finish(reason) != self._reason:
            response["stopReason"] = self._reason
        if other := other_usage(usage):
            response["usage"] = other
        self._out.finish(reason, load_usage(usage), native=OWN.note(response=response))


decoder, load_response = Decoder.create, Decoder.load_response


def _check_error(event: Json, name: str) -> None:
    """Checks that an event of a Converse stream tells of no error. `name`: its type.

    Raises:
        DragomanError: it does.
    """
    if name == FAULT:
        raise DecodeError(f"the event stream is corrupt: {event[name]}. Send the request again.")
    if name.endswith("Exception") or name == "error":
        raise error_of(event[name], name.removesuffix("error"))
    # The body of an error, under the status of an answer.
    if not isinstance(event.get(name), dict):
        raise error_of(event)


def _join_texts(blocks: list[Json]) -> list[Json]:
    """Returns the content of a Converse result whose texts came in pieces, one text for each run of
    them."""
    joined: list[Json] = []
    for is_text, run in groupby(blocks, key=lambda block: block.keys() == {"text"}):
        pieces = list(run)
        if is_text:
            pieces = [{"text": "".join([if_text(piece["text"]) for piece in pieces])}]
        joined += pieces
    return joined


def _read_index(fields: JsonMap) -> int:
    """Returns the index of the block that an event of a Converse stream is about."""
    index = fields.get("contentBlockIndex")
    if type(index) is not int:
        raise DecodeError("an event does not say which block it is about")
    return index


def _need_text(text: object) -> str:
    """Returns the text of a delta of a Converse stream."""
    if not isinstance(text, str):
        raise DecodeError("a delta holds no text")
    return text
