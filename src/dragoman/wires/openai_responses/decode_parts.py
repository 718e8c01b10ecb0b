"""Reads the items of a response while they come: which parts of each are open, and how it ends.

An item begins with its first event and is whole with `finish`. Deltas between the two go to its
open parts. At the end of a response `settle` compares all items with the terminal event: it adds
what is missing and amends thinking that has changed. Items are known by their index, or by their id
where a server gives no index.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import if_object, if_text, read_extra_fields
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
    "response.shell_call_command.added": ("commands", "command_index"),
    "response.shell_call_command.delta": ("commands", "command_index"),
    "response.apply_patch_call_operation_diff.delta": ("diff", ""),
}
"""Type of a delta → the kind of part that it adds to, and the field with the index of the piece."""
_OPENINGS = {"input": '{"input":"', "code": '{"code":"', "commands": '{"action":{"commands":["', "diff": ""}  # fmt: skip
"""Kind of a text that is a part of a call's arguments → their JSON up to it; empty: it depends on the
item."""
_NEXT = '","'
"""JSON between two commands."""
_WHOLE = -1
"""Key of the one part of an item that is a call or thinking. Texts have the index of their
block."""
_encode = json_bytes.encode


class _OpenItem:
    """An item: its open parts in order, and the last piece of thinking that deltas named."""

    __slots__ = ("fields", "number", "parts", "piece", "pieces", "type")

    def __init__(self, number: int, item: JsonMap) -> None:
        """Keeps a Responses item that streams."""
        self.number = number
        self.type = str(item.get("type", "message"))
        self.fields = item
        self.parts: dict[Any, OpenPart] = {}
        self.piece: tuple[str, int] | None = None
        # The item's content once it is whole. Until then None, and deltas are taken.
        self.pieces: list[Content] | None = None


class OpenItems:
    """Reads items into an emitter."""

    def __init__(self, out: Emitter) -> None:
        """Starts without items of a streamed Responses answer."""
        self.refused = False
        """True if the model refused to answer."""
        self._out = out
        self._items: list[_OpenItem] = []
        self._by_index: dict[int, _OpenItem] = {}
        # Id of an item → its index.
        self._ids: dict[str, int] = {}
        self._last_index = 0
        self._calls: Calls = {}
        self._images = 0

    def add(self, index: int | None, item: Json) -> None:
        """Begins a Responses item of a response that streams."""
        entry = _OpenItem(len(self._items), item)
        self._items.append(entry)
        index = entry.number if index is None else index
        self._by_index[index] = entry
        if id_ := if_text(item.get("id")):
            self._ids[id_] = index
        self._last_index = max(self._last_index, index)
        sent, unsent = split_sendable(item)
        opened: Content | None = None
        known_arguments: JsonMap = {}
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
                known_arguments = call.arguments
        if opened is not None:
            part = self._out.ensure_part((entry.number, _WHOLE), opened)
            if known_arguments:
                # They count if the stream is cut before anything else came.
                part.part = msgspec.structs.replace(opened, arguments=known_arguments)
            entry.parts[_WHOLE] = part

    def part(self, part_kind: str, index: int, piece_index: int) -> OpenPart | None:
        """Returns the open part that a delta adds to. None if its Responses item is whole already.

        Raises:
            DecodeError: it names no item, or one of another type.
        """
        if index not in self._by_index and part_kind != "call":
            # Some servers do not say when an item begins.
            self.add(index, {"type": "reasoning" if part_kind in REASONING else "message"})
        entry = self._by_index.get(index)
        if entry is None:
            raise DecodeError(f"a delta names item {index}, which has not begun")
        if entry.pieces is not None:
            return None
        if part_kind in ("text", "refusal"):
            return self._open_text(entry, part_kind, piece_index)
        part = entry.parts.get(_WHOLE)
        if part is None:
            raise DecodeError(
                f"a delta of {part_kind} does not fit item {index}, which is a {entry.type}"
            )
        if part_kind != "call":
            if entry.piece is not None and entry.piece != (part_kind, piece_index):
                self._out.add(part, BETWEEN)
            entry.piece = (part_kind, piece_index)
        return part

    def delta(self, kind: str, event: JsonMap) -> None:
        """Adds a delta of an unusual kind or shape. Unknown ones are skipped, since the whole
        Responses item has everything."""
        delta = event.get("command" if kind.endswith(".added") else "delta")
        if kind not in _SLOW or not isinstance(delta, str):
            return
        part_kind, field = _SLOW[kind]
        index, piece_index = event.get("output_index"), event.get(field, 0)
        if not isinstance(index, int):
            index = self._index_of(event.get("item_id"))
        if not isinstance(piece_index, int):
            piece_index = 0
        opening = _OPENINGS.get(part_kind)
        part = self.part(part_kind if opening is None else "call", index, piece_index)
        if part is None:
            return
        if opening is not None:
            # The text becomes the JSON that the call's arguments will be.
            delta = _encode(delta).decode()[1:-1]
            entry = self._by_index[index]
            if not part.deltas:
                delta = (opening or _open_diff(entry.fields)) + delta
            elif entry.piece != (part_kind, piece_index):
                delta = _NEXT + delta
            entry.piece = (part_kind, piece_index)
        self._out.add(part, delta)

    def finish(self, index: int | None, item: Json) -> None:
        """Ends a Responses item with all that it holds. A repeated end of the same item changes
        nothing.

        Args:
            index: the item's index; None if the server gives none, so that its id tells the item.
            item: the whole item.
        """
        entry = self._by_index.get(self._index_of(item.get("id")) if index is None else index)
        # An item that never began, or another one at an index that is taken by a whole item.
        if entry is None or (entry.pieces is not None and entry.fields.get("id") != item.get("id")):
            self.add(index, item)
            entry = self._items[-1]
        if entry.pieces is None:
            self._end_item(entry, item)

    def settle(self, output: Any) -> None:
        """Compares all Responses items with the terminal event: adds what is missing, and amends
        thinking that has changed."""
        left: dict[str, dict[int, _OpenItem]] = {}
        for entry in self._items:
            left.setdefault(entry.type, {})[entry.number] = entry
        # Reversed, so that the first item of an id is the last of its list, which `pop` takes.
        by_id: dict[tuple[str, str], list[_OpenItem]] = {}
        for entry in reversed(self._items):
            by_id.setdefault((entry.type, if_text(entry.fields.get("id"))), []).append(entry)
        for item in cast("list[Any]", output) if isinstance(output, list) else ():
            if not isinstance(item, dict):
                raise DecodeError("an item of the output is no JSON object")
            item = cast("Json", item)
            item_type = str(item.get("type", "message"))
            same_type = left.get(item_type)
            if not same_type:
                self.add(None, item)
                self._end_item(self._items[-1], item)
                continue
            same_id = by_id.get((item_type, if_text(item.get("id"))), [])
            entry = _take_begun_item(same_type, same_id)
            if entry.pieces is None:
                self._end_item(entry, item)
            elif item_type == "reasoning":
                self._amend_thinking(entry, item)

    def _amend_thinking(self, entry: _OpenItem, item: Json) -> None:
        """Replaces the thinking of a Responses item if the terminal event has another one."""
        part = entry.parts.get(_WHOLE)
        if part is None or not isinstance(part.part, ThinkingPart):
            return
        sent, unsent = split_sendable(item)
        pieces = load_item(sent, {}, unsent)
        if pieces != entry.pieces:
            self._out.amend(part, pieces[0])

    def _end_item(self, entry: _OpenItem, item: Json) -> None:
        """Closes the parts of a Responses item with what it really is, and adds what is missing."""
        # Some servers say only now of what type an item is.
        entry.type = str(item.get("type", "message"))
        sent, unsent = split_sendable(item)
        pieces = entry.pieces = load_item(sent, self._calls, unsent, images=self._images)
        self._images += sum(isinstance(piece, DataPart) for piece in pieces)
        for piece in pieces:
            if OWN.form(piece.native).get("type") == "refusal":
                self.refused = True
        parts = [entry.parts[index] for index in sorted(entry.parts)]
        for piece in pieces:
            part = None
            if isinstance(piece, (TextPart, ThinkingPart, ToolCallPart)):
                part = _find_part(parts, piece)
                if part is not None:
                    parts.remove(part)
                    self._close_part(part, piece)
            if part is None:
                self._out.add_whole_part(piece)
        for part in parts:
            self._out.close(part)

    def _open_text(self, entry: _OpenItem, part_kind: str, index: int) -> OpenPart:
        """Returns the open text of a Responses block. It begins with its first delta."""
        self.refused = self.refused or part_kind == "refusal"
        part = entry.parts.get(index)
        if part is None:
            item = (
                None
                if entry.parts
                else read_extra_fields(entry.fields, "role", "content", "status")
            )
            native = OWN.note(item=item, form={"type": part_kind} if part_kind == "refusal" else {})
            part = entry.parts[index] = self._out.ensure_part(
                (entry.number, index), OpenText(native=native)
            )
        return part

    def _close_part(self, part: OpenPart, piece: TextPart | ThinkingPart | ToolCallPart) -> None:
        """Closes a part of a Responses answer with its piece, after the rest of its text."""
        text = _text_of(piece)
        streamed = "".join(map(str, part.deltas))
        if text.startswith(streamed):
            self._out.add(part, text[len(streamed) :])
        part.part, part.deltas = piece, []
        if not (isinstance(piece, ToolCallPart) and piece.state == "invalid"):
            # Of an invalid call the end of the response says whether it was cut.
            self._out.close(part)

    def _index_of(self, id_: Any) -> int:
        """Returns the index of the Responses item of that id, or of the latest item."""
        index = self._ids.get(if_text(id_), self._last_index)
        if index in self._by_index:
            return index
        return self._last_index


def _open_diff(item: JsonMap) -> str:
    """Returns the JSON of the arguments of a Responses patch up to its diff."""
    operation = read_extra_fields(if_object(item.get("operation")), "diff")
    return f"{_encode({'operation': {**operation, 'diff': ''}}).decode()[:-3]}"


def _find_part(parts: list[OpenPart], piece: Content) -> OpenPart | None:
    """Returns the first part that may end as a piece. None if there is none."""
    return next((part for part in parts if _may_be(part, piece)), None)


def _may_be(part: OpenPart, piece: Content) -> bool:
    """True if a part, as it began, may end as that piece."""
    return isinstance(piece, TextPart if isinstance(part.part, OpenText) else type(part.part))


def _text_of(piece: TextPart | ThinkingPart | ToolCallPart) -> str:
    """Returns the text that the deltas of a part of a Responses answer add up to."""
    if not isinstance(piece, ToolCallPart):
        return piece.text
    if piece.raw is not None:
        return piece.raw
    if piece.arguments or choose_item_type(piece) == FUNCTION:
        return arguments_text(piece)
    return ""


def _take_begun_item(same_type: dict[int, _OpenItem], same_id: list[_OpenItem]) -> _OpenItem:
    """Returns the Responses item that began with an id, and takes it out of both collections.

    `same_type`: items of its type that are not compared yet, by number. `same_id`: items of its
    type and id, the first one last.
    """
    while same_id and same_id[-1].number not in same_type:
        same_id.pop()
    # Some servers give an item another id in each event. Then the order decides.
    entry = same_id.pop() if same_id else next(iter(same_type.values()))
    del same_type[entry.number]
    return entry
