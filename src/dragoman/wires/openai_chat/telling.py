"""The parts of one answer → deltas of its message. What a part's deltas did not say is said when it ends.

A call that somebody must answer is one of `tool_calls`. What the provider ran itself is told in `executed_tools`,
thinking in `reasoning_content`, images in `images`: fields that vendors use and official clients pass over. Entries of
lists have an index, without which the official clients do not take them from a stream.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from typing import Any

import msgspec

from dragoman.message import Content, DataPart, LinkPart, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.shapes import if_objects, rest
from dragoman.wires.openai_chat.calls import dump_executed
from dragoman.wires.openai_chat.content import dump_block
from dragoman.wires.openai_chat.native import extra, spelling
from dragoman.wires.openai_chat.thinking import DETAILS, PLAIN, text_key

__all__ = ["Telling"]

_Delta = dict[str, Any]
_Place = tuple[str, int]
"""A message's id and a part's index."""
_NAMES = ("type", "index", "id")
"""What a later piece of a detail repeats."""


class _Told:
    """A part that is being told."""

    __slots__ = ("entry", "number", "part", "said")

    def __init__(self, part: Content) -> None:
        self.part = part
        self.said = ""
        self.number = 0
        self.entry: dict[str, Any] = {}


class Telling:
    """Tells the parts of one answer, of which a run may have several messages."""

    def __init__(self) -> None:
        self._open: dict[_Place, _Told] = {}
        self._numbers: Counter[str] = Counter()
        self._executed: dict[str, tuple[int, ToolCallPart]] = {}

    def begin(self, place: _Place, part: Content) -> list[_Delta]:
        """A part is open."""
        told = self._open[place] = _Told(part)
        if isinstance(part, ThinkingPart) and (own := extra(part.native)):
            told.entry = {**own, "index": self._free_index(own)}
        if not isinstance(part, ToolCallPart) or part.run_by == "provider":
            return []
        told.number = self._number("tool_calls")
        function = {"name": part.name, "arguments": ""}
        start = {"index": told.number, "id": part.id, "type": "function", "function": function}
        return [] if _custom(part) else [{"tool_calls": [start]}]

    def more(self, place: _Place, delta: str | bytes) -> list[_Delta]:
        """More of an open part."""
        told = self._open.get(place)
        if told is None or not isinstance(delta, str) or not delta:
            return []
        part, first, told.said = told.part, not told.said, told.said + delta
        if isinstance(part, TextPart):
            return [{spelling(part.native).get("field", "content"): delta}]
        if isinstance(part, ThinkingPart) and told.entry:
            entry = told.entry if first else {name: told.entry[name] for name in _NAMES if name in told.entry}
            return [{DETAILS: [{**entry, text_key(entry.get("type")): delta}]}]
        if isinstance(part, ThinkingPart):
            return [dict.fromkeys(spelling(part.native).get("fields", PLAIN[:1]), delta)]
        if isinstance(part, ToolCallPart) and part.run_by != "provider" and not _custom(part):
            return [{"tool_calls": [{"index": told.number, "function": {"arguments": delta}}]}]
        return []

    def end(self, place: _Place, part: Content) -> list[_Delta]:
        """A part is closed: whatever of it is not told yet."""
        told = self._open.get(place)
        if told is None:
            return []
        deltas = self.more(place, _left(_whole_text(part), told.said))
        del self._open[place]
        if isinstance(part, ThinkingPart):
            return deltas + _signed(part, told)
        if isinstance(part, (ToolCallPart, ToolResultPart)) and part.run_by == "provider":
            return self._ran(part)
        if isinstance(part, ToolCallPart):
            return deltas + _called(part, told)
        if isinstance(part, (DataPart, LinkPart)):
            return self._shown(part)
        return deltas

    def notes(self, fields: dict[str, Any]) -> list[_Delta]:
        """Fields of the message beside its content, such as `annotations`."""
        numbered: dict[str, Any] = {
            name: [{"index": self._number(name), **entry} for entry in entries]
            if (entries := if_objects(value))
            else value
            for name, value in fields.items()
        }
        return [numbered] if numbered else []

    def _number(self, field: str) -> int:
        self._numbers[field] += 1
        return self._numbers[field] - 1

    def _free_index(self, own: dict[str, Any]) -> Any:
        """A detail's index, or another where one of its type has it already: they would be read as one."""
        kind, index = own.get("type"), own.get("index", 0)
        while self._numbers[f"{kind} {index}"] and isinstance(index, int):
            index += 1
        self._number(f"{kind} {index}")
        return index

    def _ran(self, part: ToolCallPart | ToolResultPart) -> list[_Delta]:
        """A tool that the provider ran: its call, later its result."""
        if isinstance(part, ToolCallPart):
            number = self._number("executed_tools")
            self._executed[part.id] = (number, part)
            return [{"executed_tools": [dump_executed(part, None, number)]}]
        if part.id not in self._executed:
            return []
        number, call = self._executed[part.id]
        return [{"executed_tools": [rest(dump_executed(call, part, number), "arguments")]}]

    def _shown(self, part: DataPart | LinkPart) -> list[_Delta]:
        """An image, or spoken audio; this format has nothing for other media."""
        if isinstance(part, DataPart) and part.mime_type.startswith("audio/"):
            audio = {"id": "", "data": b64encode(part.data).decode(), "expires_at": 0, "transcript": ""}
            return [{"audio": {**audio, **extra(part.native)}}]
        block = dump_block(part) or {}
        if block.get("type") != "image_url":
            return []
        return [{"images": [{"index": self._number("images"), **block}]}]


def _custom(part: ToolCallPart) -> bool:
    return spelling(part.native).get("type") == "custom"


def _whole_text(part: Content) -> str:
    if isinstance(part, (TextPart, ThinkingPart)):
        return part.text
    if isinstance(part, ToolCallPart):
        return part.raw if part.raw is not None else msgspec.json.encode(part.arguments).decode()
    return ""


def _left(text: str, said: str) -> str:
    """What is left of a text to say; what was said and is not of it cannot be taken back."""
    return text[len(said) :] if text.startswith(said) else ""


def _signed(part: ThinkingPart, told: _Told) -> list[_Delta]:
    """What a detail of thinking holds beside its text, as far as that came late."""
    own, known = extra(part.native), told.entry if told.said else {}
    late = {name: value for name, value in own.items() if name not in known or known[name] != value}
    late = rest(late, "index")
    named = {name: told.entry[name] for name in _NAMES if name in told.entry}
    return [{DETAILS: [{**named, **late}]}] if late else []


def _called(part: ToolCallPart, told: _Told) -> list[_Delta]:
    """What a call holds beside its arguments, and a name that came late; a custom call whole."""
    late = rest(extra(part.native), "id")
    if _custom(part):
        body = {"name": part.name, "input": part.arguments.get("input", "")}
        late = {"id": part.id, "type": "custom", "custom": body, **late}
    elif isinstance(told.part, ToolCallPart) and told.part.name != part.name:
        late = {"function": {"name": part.name}, **late}
    return [{"tool_calls": [{"index": told.number, **late}]}] if late else []
