"""The items of a response while they come: what is open of each, and how it ends."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import if_text, read_extra_fields
from dragoman.errors import DecodeError
from dragoman.event import OpenText
from dragoman.fold import arguments_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, DataPart, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires.openai_responses.content import BETWEEN, REASONING, split_sendable
from dragoman.wires.openai_responses.items import Calls, load_item
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.tools import CALL_ITEMS, FUNCTION, choose_item_type

__all__ = ["OpenItems"]

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
_WHOLE = -1
"""Place of the one part of an item that is a call or thinking; texts have the place of their
block."""
_encode = json_bytes.encode


class _OpenItem:
    """One item: the parts that are open of it, in order, and the name of the last piece of
    thinking."""

    __slots__ = ("fields", "number", "parts", "piece", "pieces", "type")

    def __init__(self, number: int, item: JsonMap) -> None:
        self.number = number
        self.type = str(item.get("type", "message"))
        self.fields = item
        self.parts: dict[Any, OpenPart] = {}
        self.piece: tuple[str, int] | None = None
        self.pieces: list[Content] | None = None  # once it is whole


class OpenItems:
    """Reads items into an emitter. They are known by their index, where a server gives it, else by
    their id."""

    def __init__(self, out: Emitter) -> None:
        self.refused = False
        """Whether the model declined."""
        self._out = out
        self._items: list[_OpenItem] = []
        self._at: dict[int, _OpenItem] = {}
        self._ids: dict[str, int] = {}  # id of an item → its index
        self._last = 0  # the largest index
        self._calls: Calls = {}
        self._images = 0

    def add(self, index: int | None, item: Json) -> None:
        """An item begins."""
        entry = _OpenItem(len(self._items), item)
        self._items.append(entry)
        index = entry.number if index is None else index
        self._at[index] = entry
        if id_ := if_text(item.get("id")):
            self._ids[id_] = index
        self._last = max(self._last, index)
        sent, unsent = split_sendable(item)
        opened: Content | None = None
        if entry.type == "reasoning":
            opened = ThinkingPart(
                native=OWN.note(
                    read_extra_fields(sent, "type", "summary", "content"), response=unsent
                )
            )
        elif entry.type in CALL_ITEMS:
            known = (
                {**sent, "arguments": ""}
                if entry.type == FUNCTION
                else read_extra_fields(sent, "result")
            )
            call = load_item(known, {}, unsent)[0]
            if isinstance(call, ToolCallPart):
                opened = msgspec.structs.replace(call, arguments={}, raw=None, state="complete")
        if opened is not None:
            entry.parts[_WHOLE] = self._out.ensure_part((entry.number, _WHOLE), opened)

    def part(self, what: str, index: int, piece_index: int) -> OpenPart | None:
        """The open part that a delta is more of; `None`: its item is whole already.

        Raises:
            DecodeError: it names none.
        """
        if index not in self._at and what != "call":
            kind = "reasoning" if what in REASONING else "message"
            self.add(index, {"type": kind})  # a server that does not say when an item begins
        entry = self._at.get(index)
        if entry is None:
            raise DecodeError(f"a delta names item {index}, which has not begun")
        if entry.pieces is not None:
            return None
        if what in ("text", "refusal"):
            return self._text(entry, what, piece_index)
        part = entry.parts.get(_WHOLE)
        if part is None:
            raise DecodeError(
                f"a delta of {what} does not fit item {index}, which is a {entry.type}"
            )
        if what != "call":
            if entry.piece is not None and entry.piece != (what, piece_index):
                self._out.add(part, BETWEEN)
            entry.piece = (what, piece_index)
        return part

    def delta(self, kind: str, event: JsonMap, delta: str) -> None:
        """A delta of an unusual kind or shape. Those that are not known are passed over: the whole
        item has all."""
        if kind not in _SLOW:
            return
        what, field = _SLOW[kind]
        index, piece_index = event.get("output_index"), event.get(field, 0)
        if not isinstance(index, int):
            index = self._named(event.get("item_id"))
        if what not in ("input", "code"):
            if (
                part := self.part(what, index, piece_index if isinstance(piece_index, int) else 0)
            ) is not None:
                self._out.add(part, delta)
        elif (
            part := self.part("call", index, 0)
        ) is not None:  # it becomes the text that its arguments' JSON will be
            escaped = _encode(delta).decode()[1:-1]
            self._out.add(part, escaped if part.deltas else f'{{"{what}":"{escaped}')

    def finish(self, index: int | None, item: Json) -> None:
        """An item is whole."""
        entry = self._at.get(self._named(item.get("id")) if index is None else index)
        if entry is None or (entry.pieces is not None and entry.fields.get("id") != item.get("id")):
            self.add(index, item)
            entry = self._items[-1]
        if entry.pieces is None:
            self._end(entry, item)

    def settle(self, output: Any) -> None:
        """The terminal word on all items: adds what is missing, and amends thinking that is another
        now."""
        unread: dict[str, dict[int, _OpenItem]] = {}
        named: dict[tuple[str, str], list[_OpenItem]] = {}  # the first of them last
        for entry in self._items:
            unread.setdefault(entry.type, {})[entry.number] = entry
        for entry in reversed(self._items):
            named.setdefault((entry.type, if_text(entry.fields.get("id"))), []).append(entry)
        for item in cast("list[Any]", output) if isinstance(output, list) else ():
            if not isinstance(item, dict):
                raise DecodeError("an item of the output is no JSON object")
            item = cast("Json", item)
            type_ = str(item.get("type", "message"))
            alike = unread.get(type_)
            if not alike:
                self.add(None, item)
                self._end(self._items[-1], item)
                continue
            same = named.get((type_, if_text(item.get("id"))), [])
            while same and same[-1].number not in alike:
                same.pop()
            # some servers give an item another id in each event
            entry = same.pop() if same else next(iter(alike.values()))
            del alike[entry.number]
            if entry.pieces is None:
                self._end(entry, item)
            elif (
                type_ == "reasoning"
                and (part := entry.parts.get(_WHOLE))
                and isinstance(part.part, ThinkingPart)
            ):
                sent, unsent = split_sendable(item)
                amended = load_item(sent, {}, unsent)
                if amended != entry.pieces:
                    self._out.amend(part, amended[0])

    def _end(self, entry: _OpenItem, item: Json) -> None:
        """Closes the parts of an item with what it really is, and adds what is missing."""
        entry.type = str(item.get("type", "message"))  # some servers only now say what it is
        sent, unsent = split_sendable(item)
        pieces = entry.pieces = load_item(sent, self._calls, unsent, images=self._images)
        self._images += sum(isinstance(piece, DataPart) for piece in pieces)
        self.refused = self.refused or any(
            OWN.form(piece.native).get("type") == "refusal" for piece in pieces
        )
        parts = [entry.parts[index] for index in sorted(entry.parts)]
        for piece in pieces:
            text = isinstance(piece, (TextPart, ThinkingPart, ToolCallPart))
            if (
                text
                and (part := next((part for part in parts if _may_be(part, piece)), None))
                is not None
            ):
                parts.remove(part)
                self._close(part, piece)
            else:
                self._out.add_whole_part(piece)
        for part in parts:
            self._out.close(part)

    def _text(self, entry: _OpenItem, what: str, index: int) -> OpenPart:
        self.refused = self.refused or what == "refusal"
        part = entry.parts.get(index)
        if part is None:
            item = (
                None
                if entry.parts
                else read_extra_fields(entry.fields, "role", "content", "status")
            )
            native = OWN.note(item=item, form={"type": what} if what == "refusal" else {})
            part = entry.parts[index] = self._out.ensure_part(
                (entry.number, index), OpenText(native=native)
            )
        return part

    def _close(self, part: OpenPart, piece: TextPart | ThinkingPart | ToolCallPart) -> None:
        text = _text_of(piece)
        streamed = "".join(map(str, part.deltas))
        if text.startswith(streamed):
            self._out.add(part, text[len(streamed) :])
        part.part, part.deltas = piece, []
        if not (isinstance(piece, ToolCallPart) and piece.state == "invalid"):
            self._out.close(part)  # else it is known at the end of the response whether it was cut

    def _named(self, id_: Any) -> int:
        """The index of the item of that id, else of the latest."""
        index = self._ids.get(if_text(id_), self._last)
        return index if index in self._at else self._last


def _may_be(part: OpenPart, piece: Content) -> bool:
    """Whether a part, as it began, is of the kind of that piece."""
    return isinstance(piece, TextPart if isinstance(part.part, OpenText) else type(part.part))


def _text_of(piece: TextPart | ThinkingPart | ToolCallPart) -> str:
    """What the deltas of a part would have been."""
    if not isinstance(piece, ToolCallPart):
        return piece.text
    if piece.raw is not None:
        return piece.raw
    return arguments_text(piece) if piece.arguments or choose_item_type(piece) == FUNCTION else ""
