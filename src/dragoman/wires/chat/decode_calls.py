"""Tool calls as they come: each whole, or in pieces. A piece belongs to the call that its index names, or else its id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import as_index, as_object, as_text, filled, malformed, rest
from dragoman.event import PartDelta
from dragoman.fold import parse_call
from dragoman.json_bytes import JsonEnd
from dragoman.message import ToolCallPart
from dragoman.wires.chat.tools import call_kind

if TYPE_CHECKING:
    from dragoman.wires.chat.dialect import Chat

__all__ = ["StreamedCalls"]

_EMPTY = ToolCallPart("", "")


class StreamedCalls:
    """The calls of one message. Their arguments are parsed when the answer is complete."""

    def __init__(self, chat: Chat, emitter: Emitter, fresh_id: Callable[[], str]) -> None:
        self._chat = chat
        self._emitter = emitter
        self._fresh_id = fresh_id
        self._all: list[OpenPart] = []
        self._by_index: dict[Any, OpenPart] = {}
        self._by_id: dict[str, OpenPart] = {}
        self._ends: dict[int, JsonEnd] = {}

    def add(
        self, entry: dict[str, Any], *, whole: bool = False, form: dict[str, str] | None = None
    ) -> None:
        """A call, or a piece of one. `whole`: a call of a whole answer, which is all there; `form`: its wire form.

        Raises:
            DecodeError: it continues a call that nobody began.
        """
        kind = call_kind(self._chat, entry)
        body = as_object(entry.get(kind), "tool call")
        name, call_id, index = (
            as_text(body.get("name")),
            as_text(entry.get("id")),
            as_index(entry.get("index")),
        )
        call_id = "" if call_id in self._chat.no_ids else call_id
        text = as_text(body.get(self._chat.inputs[kind]))
        part = None if whole else self._find(index, call_id, name, text)
        if part is None:
            if not name and (self._chat.calls_have_names or not call_id):
                raise malformed(entry, "a piece of a tool call that nobody began")
            part = self._begin(
                index, call_id, name, form or ({"type": kind} if kind != "function" else {})
            )
        call = _call(part)
        if name and name != call.name:
            part.part = replace(call, name=name)
        if own := filled(rest(entry, "index", "id", "type", *self._chat.inputs)):
            self._chat.own.open_fields(part.native).update(own)
        self._emitter.add(part, text if kind == "function" else _escaped(text))

    def more(self, index: int, text: str) -> bool:
        """More arguments of the call that began with this index; `False`: none did."""
        part = self._by_index.get(index)
        if part is None:
            return False
        if text:  # a call is started with its first piece
            part.deltas.append(text)
            self._emitter.events.append(PartDelta(self._emitter.message_id, part.index, text))
        return True

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
            is_text = self._is_text(part)
            text = "".join(map(str, part.deltas)) if at_limit else ""
            cut = at_limit and (
                not text or (not is_text and parse_call(_EMPTY, text).state != "complete")
            )
            if is_text and not cut:
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
        return part.deltas == ["null"] or self._ends.setdefault(part.index, JsonEnd()).among(
            part.deltas
        )

    def _begin(self, index: Any, call_id: str, name: str, form: dict[str, str]) -> OpenPart:
        native = self._chat.own.note({} if call_id else {"id": None}, form)
        part = self._emitter.part(
            len(self._all), ToolCallPart(call_id or self._fresh_id(), name, native=native)
        )
        self._all.append(part)
        self._by_index[len(self._all) if index is None else index] = part
        if call_id:
            self._by_id[call_id] = part
        if self._is_text(part):
            self._emitter.add(part, '{"input":"')
        return part

    def _is_text(self, part: OpenPart) -> bool:
        """Whether its input is a text, and no JSON."""
        return self._chat.own.form(_call(part).native).get("type") in self._chat.inputs


def _call(part: OpenPart) -> ToolCallPart:
    return part.part if isinstance(part.part, ToolCallPart) else _EMPTY


def _escaped(text: str) -> str:
    """Text as it stands inside a JSON string."""
    return json_bytes.encode(text).decode()[1:-1]
