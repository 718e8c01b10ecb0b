"""Tool calls as they come in pieces. A piece belongs to the call that its index names, or else its id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import as_index, as_object, as_text, malformed, rest, telling
from dragoman.fold import parse_call
from dragoman.json_end import JsonEnd
from dragoman.message import ToolCallPart
from dragoman.wires.openai_chat.quirks import OWN

__all__ = ["StreamedCalls"]

_EMPTY = ToolCallPart("", "")


class StreamedCalls:
    """The calls of one message. Their arguments are parsed when the answer is complete."""

    def __init__(self, emitter: Emitter, fresh_id: Callable[[], str]) -> None:
        self._emitter = emitter
        self._fresh_id = fresh_id
        self._all: list[OpenPart] = []
        self._by_index: dict[Any, OpenPart] = {}
        self._by_id: dict[str, OpenPart] = {}
        self._ends: dict[int, JsonEnd] = {}

    def add(self, entry: dict[str, Any], *, whole: bool = False) -> None:
        """One of a chunk's `tool_calls`. `whole`: a call of a whole answer, which is all there.

        Raises:
            DecodeError: it continues a call that nobody began.
        """
        custom = entry.get("type") == "custom"
        body = as_object(entry.get("custom" if custom else "function"), "tool call")
        name, call_id, index = as_text(body.get("name")), as_text(entry.get("id")), as_index(entry.get("index"))
        text = as_text(body.get("input" if custom else "arguments"))
        part = None if whole else self._find(index, call_id, name, text)
        if part is None:
            if not name and not call_id:
                raise malformed(entry, "a piece of a tool call that nobody began")
            part = self._begin(index, call_id, name, {"type": "custom"} if custom else {})
        call = _call(part)
        if name and name != call.name:
            part.part = replace(call, name=name)
        if own := telling(rest(entry, "index", "id", "type", "function", "custom")):
            OWN.open_fields(part.native).update(own)
        self._emitter.add(part, _escaped(text) if custom else text)

    def more(self, index: int, text: str) -> bool:
        """More arguments of the call that began with this index; `False`: none did."""
        part = self._by_index.get(index)
        if part is not None:
            self._emitter.add(part, text)
        return part is not None

    def add_function_call(self, body: dict[str, Any]) -> None:
        """A piece of the older `function_call`, of which a message has one."""
        name, part = as_text(body.get("name")), self._by_index.get("function_call")
        if part is None:
            if not name:
                raise malformed(body, "a piece of a function call that nobody began")
            part = self._begin("function_call", "", name, {"field": "function_call"})
        self._emitter.add(part, as_text(body.get("arguments")))

    def close(self, *, at_limit: bool) -> None:
        """The answer is complete. `at_limit`: the token limit ended it, so a call that does not parse is cut."""
        for part in self._all:
            custom = OWN.form(_call(part).native).get("type") == "custom"
            cut = at_limit and _is_cut("".join(map(str, part.deltas)), custom=custom)
            if custom and not cut:
                self._emitter.add(part, '"}')
            self._emitter.close(part, cut=cut)

    def _find(self, index: Any, call_id: str, name: str, text: str) -> OpenPart | None:
        """The call that a piece continues; `None` where it begins one, or continues none."""
        known = self._by_id.get(call_id)
        part = self._by_index.get(index) if index is not None else None
        if part is None:
            return known if index is None or not name else None
        call = _call(part)
        if call_id == call.id:
            return part
        if call_id:
            return known or (None if name else part)
        if not name or not call.name:
            return part
        # no id, and a name again: some repeat it with every piece, some send all calls under one index
        return None if name != call.name or (text and self._is_complete(part)) else part

    def _is_complete(self, part: OpenPart) -> bool:
        """Whether the arguments of a call have all come."""
        return part.deltas == ["null"] or self._ends.setdefault(part.index, JsonEnd()).among(part.deltas)

    def _begin(self, index: Any, call_id: str, name: str, spelled: dict[str, str]) -> OpenPart:
        native = OWN.note({} if call_id else {"id": None}, spelled)
        call = ToolCallPart(call_id or self._fresh_id(), name, native=native)
        part = self._emitter.part(len(self._all), call)
        self._all.append(part)
        self._by_index[len(self._all) if index is None else index] = part
        if call_id:
            self._by_id[call_id] = part
        if spelled.get("type") == "custom":
            self._emitter.add(part, '{"input":"')
        return part


def _call(part: OpenPart) -> ToolCallPart:
    return part.part if isinstance(part.part, ToolCallPart) else _EMPTY


def _is_cut(text: str, *, custom: bool) -> bool:
    return not text or (not custom and parse_call(_EMPTY, text).state != "complete")


def _escaped(text: str) -> str:
    """Text as it stands inside a JSON string."""
    return json_bytes.encode(text).decode()[1:-1]
