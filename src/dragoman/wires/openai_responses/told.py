"""The items of a response while they are told: what is open of each, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dragoman.emit import Emitter, OpenPart
from dragoman.errors import DecodeError
from dragoman.event import OpenText
from dragoman.fold import arguments_text
from dragoman.message import Content, DataPart, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires.openai_responses.calls import FUNCTION, KINDS, kind_of
from dragoman.wires.openai_responses.items import Calls, load_item, sendable
from dragoman.wires.openai_responses.native import note, rest, spelling
from dragoman.wires.openai_responses.thinking import BETWEEN

__all__ = ["ToldItems"]

_SLOW = {
    "response.output_text.delta": ("text", "content_index"),
    "response.refusal.delta": ("refusal", "content_index"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index"),
    "response.reasoning_text.delta": ("content", "content_index"),
    "response.function_call_arguments.delta": ("call", ""),
    "response.mcp_call_arguments.delta": ("call", ""),
    "response.custom_tool_call_input.delta": ("input", ""),
    "response.code_interpreter_call_code.delta": ("code", ""),
}
"""Type of a delta → what it is more of, and the field that says of which piece."""
_encode = msgspec.json.encode


class _Told:
    """One item: the parts that are open of it, in order, and how the last piece of thinking was named."""

    __slots__ = ("fields", "id", "parts", "piece", "pieces", "type")

    def __init__(self, item: Mapping[str, Any]) -> None:
        self.type = str(item.get("type", "message"))
        self.id = item.get("id")
        self.fields = item
        self.parts: dict[Any, OpenPart] = {}
        self.piece: tuple[str, int] | None = None
        self.pieces: list[Content] | None = None  # once it is whole


class ToldItems:
    """Tells items to an emitter."""

    def __init__(self, out: Emitter) -> None:
        self.refused = False
        """Whether the model declined."""
        self._out = out
        self._items: dict[int, _Told] = {}
        self._calls: Calls = {}
        self._images = 0

    def add(self, index: int | None, item: dict[str, Any]) -> None:
        """An item begins."""
        index = len(self._items) if index is None else index
        told = self._items[index] = _Told(item)
        sent, unsent = sendable(item)
        opened: Content | None = None
        if told.type == "reasoning":
            opened = ThinkingPart(native=note(rest(sent, "type", "summary", "content"), response=unsent))
        elif told.type in KINDS:
            call = load_item({**rest(sent, "result"), "arguments": ""} if told.type == FUNCTION else sent, {}, unsent)[
                0
            ]
            if isinstance(call, ToolCallPart):
                opened = msgspec.structs.replace(call, arguments={}, raw=None, state="complete")
        if opened is not None:
            told.parts["item"] = self._out.part((index, "item"), opened)

    def part(self, what: str, index: int, place: int) -> OpenPart:
        """The open part that a delta is more of.

        Raises:
            DecodeError: it names none.
        """
        told = self._items.get(index)
        if told is None and what != "call":
            kind = "reasoning" if what in ("summary", "content") else "message"
            self.add(index, {"type": kind})  # a server that does not say when an item begins
            told = self._items[index]
        if told is None:
            raise DecodeError(f"a delta names item {index}, which has not begun")
        if what in ("text", "refusal"):
            return self._text(told, what, index, place)
        part = told.parts.get("item")
        if part is None or told.pieces is not None:
            raise DecodeError(f"a delta does not fit item {index}, which is a {told.type}")
        if what != "call":
            if told.piece is not None and told.piece != (what, place):
                self._out.add(part, BETWEEN)
            told.piece = (what, place)
        return part

    def delta(self, kind: str, event: Mapping[str, Any], delta: str) -> None:
        """A delta of an unusual kind or shape. Those that are not known are passed over: the whole item tells all."""
        if kind not in _SLOW:
            return
        what, field = _SLOW[kind]
        index, place = event.get("output_index"), event.get(field, 0)
        if not isinstance(index, int):
            index = self._named(event.get("item_id"))
        if what in ("input", "code"):  # told as the text that its arguments' JSON will be
            told = self._items.get(index)
            if told is not None and (part := told.parts.get("item")) is not None:
                escaped = _encode(delta).decode()[1:-1]
                self._out.add(part, escaped if part.deltas else f'{{"{what}":"{escaped}')
        else:
            self._out.add(self.part(what, index, place if isinstance(place, int) else 0), delta)

    def finish(self, index: int | None, item: dict[str, Any]) -> None:
        """An item is whole."""
        if index is None:
            index = self._named(item.get("id"))
        if index not in self._items:
            self.add(index, item)
        told = self._items[index]
        if told.pieces is not None:
            return
        sent, unsent = sendable(item)
        pieces = told.pieces = load_item(sent, self._calls, unsent, images=self._images)
        self._images += sum(isinstance(piece, DataPart) for piece in pieces)
        self.refused = self.refused or any(spelling(piece.native).get("type") == "refusal" for piece in pieces)
        parts = [told.parts[place] for place in sorted(told.parts, key=lambda place: -1 if place == "item" else place)]
        for piece in pieces:
            if parts and isinstance(piece, (TextPart, ThinkingPart, ToolCallPart)):
                self._close(parts.pop(0), piece)
            else:
                self._out.whole(piece)
        for part in parts:
            self._out.close(part)

    def settle(self, output: Any) -> None:
        """The terminal word on all items: tells what was not told, and amends thinking that is told otherwise."""
        if not isinstance(output, list):
            return
        for position, item in enumerate(cast("list[Any]", output)):
            if not isinstance(item, dict):
                raise DecodeError("an item of the output is no JSON object")
            item = cast("dict[str, Any]", item)
            index = self._known(position, item)
            told = self._items.get(index)
            if told is None or told.pieces is None:
                self.finish(index, item)
            elif told.type == "reasoning":
                sent, unsent = sendable(item)
                amended = load_item(sent, {}, unsent)
                if amended != told.pieces and "item" in told.parts:
                    self._out.amend(told.parts["item"], amended[0])

    def _text(self, told: _Told, what: str, index: int, place: int) -> OpenPart:
        self.refused = self.refused or what == "refusal"
        part = told.parts.get(place)
        if part is None:
            if told.pieces is not None:
                raise DecodeError(f"a delta names item {index}, which is whole already")
            item = None if told.parts else rest(told.fields, "role", "content", "status")
            how = {"type": what} if what == "refusal" else {}
            part = told.parts[place] = self._out.part((index, place), OpenText(native=note(item=item, spelling=how)))
        return part

    def _close(self, part: OpenPart, piece: TextPart | ThinkingPart | ToolCallPart) -> None:
        """Closes a part with what it really is; tells what was not told of it."""
        text = _text_of(piece)
        streamed = "".join(map(str, part.deltas))
        if text.startswith(streamed):
            self._out.add(part, text[len(streamed) :])
        part.part, part.deltas = piece, []
        if not (isinstance(piece, ToolCallPart) and piece.state == "invalid"):
            self._out.close(part)  # else the end of the response tells whether it was cut

    def _named(self, id_: Any) -> int:
        """The item of that id, else the latest."""
        found = [index for index, told in self._items.items() if told.id == id_ and id_ is not None]
        return found[0] if found else max(self._items, default=0)

    def _known(self, position: int, item: Mapping[str, Any]) -> int:
        """The place under which an item of the terminal output was told; a new one where it was not."""
        id_, type_ = item.get("id"), item.get("type", "message")
        for index, told in self._items.items():
            if told.type == type_ and id_ is not None and told.id == id_:
                return index
        told = self._items.get(position)
        if told is None:
            return position
        return position if told.type == type_ else max(self._items) + 1


def _text_of(piece: TextPart | ThinkingPart | ToolCallPart) -> str:
    """What the deltas of a part would have been."""
    if not isinstance(piece, ToolCallPart):
        return piece.text
    if piece.raw is not None:
        return piece.raw
    return arguments_text(piece) if piece.arguments or kind_of(piece) == FUNCTION else ""
