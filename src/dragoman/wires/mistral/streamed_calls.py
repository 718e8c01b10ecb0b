"""Tool calls as they come: each whole, or in pieces. A piece belongs to the call that its index names, or else its id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import as_index, as_object, as_text, malformed, unread
from dragoman.fold import parse_call
from dragoman.json_end import JsonEnd
from dragoman.message import ToolCallPart
from dragoman.wires.mistral.quirks import OWN

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
        body = as_object(entry.get("function"), "tool call")
        name, call_id, index = as_text(body.get("name")), as_text(entry.get("id")), as_index(entry.get("index"))
        call_id = "" if call_id == "null" else call_id  # what the official clients write for none
        text = as_text(body.get("arguments"))
        part = None if whole else self._find(index, call_id, name, text)
        if part is None:
            if not name:
                raise malformed(entry, "a piece of a tool call that nobody began")
            part = self._begin(index, call_id, name)
        if own := unread(entry, ("index", "id", "type", "function")):
            OWN.open_fields(part.native).update(own)
        self._emitter.add(part, text)

    def answered(self, call_id: str) -> ToolCallPart | None:
        """The provider ran the tool itself: closes its call, and returns it; `None` where there is no such call."""
        part = self._by_id.pop(call_id, None)
        if part is None:
            return None
        part.part = replace(_call(part), run_by="provider")
        self._all.remove(part)
        closed = self._emitter.close(part)
        return closed if isinstance(closed, ToolCallPart) else None

    def close(self, *, at_limit: bool) -> None:
        """The answer is complete. `at_limit`: a token limit ended it, so a call that does not parse is cut."""
        for part in self._all:
            text = "".join(map(str, part.deltas))
            cut = at_limit and (not text or parse_call(_EMPTY, text).state != "complete")
            self._emitter.close(part, cut=cut)

    def _find(self, index: Any, call_id: str, name: str, text: str) -> OpenPart | None:
        """The call that a piece continues; `None` where it begins one, or continues none."""
        known = self._by_id.get(call_id)
        part = self._by_index.get(index) if index is not None else None
        if part is None:
            return known if index is None or not name else None
        if call_id == _call(part).id:
            return part
        if call_id:
            return known or (None if name else part)
        if not name:
            return part
        # no id, and a name again: it is repeated with every piece, or all calls have one index
        return None if name != _call(part).name or (text and self._is_complete(part)) else part

    def _is_complete(self, part: OpenPart) -> bool:
        """Whether the arguments of a call have all come."""
        return part.deltas == ["null"] or self._ends.setdefault(part.index, JsonEnd()).among(part.deltas)

    def _begin(self, index: Any, call_id: str, name: str) -> OpenPart:
        native = OWN.note({} if call_id else {"id": None})
        call = ToolCallPart(call_id or self._fresh_id(), name, native=native)
        part = self._emitter.part(len(self._all), call)
        self._all.append(part)
        if index is not None:
            self._by_index[index] = part
        if call_id:
            self._by_id[call_id] = part
        return part


def _call(part: OpenPart) -> ToolCallPart:
    return part.part if isinstance(part.part, ToolCallPart) else _EMPTY
