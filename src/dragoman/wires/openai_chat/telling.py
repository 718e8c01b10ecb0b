"""The parts of one answer → deltas of its message. What a part's deltas did not say is said when it ends.

A call that somebody must answer is one of `tool_calls`. What the provider ran itself is told in `executed_tools`,
thinking in `reasoning_content`, images in `images`: fields that vendors use and official clients pass over. Entries of
lists have an index, without which the official clients do not take them from a stream.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dragoman import json_bytes
from dragoman.codec.json_values import if_objects, rest
from dragoman.message import Content, DataPart, LinkPart, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.openai_chat.calls import dump_executed
from dragoman.wires.openai_chat.content import dump_block
from dragoman.wires.openai_chat.quirks import OWN
from dragoman.wires.openai_chat.thinking import DETAILS, PLAIN, again_in, fields_of, text_key

__all__ = ["Telling"]

_Delta = dict[str, Any]
_Place = tuple[str, int]
"""A message's id and a part's index."""
_OWN = frozenset(
    {"role", "content", "refusal", "images", "audio", "executed_tools", "function_call", "tool_calls", *PLAIN, DETAILS}
)
"""Fields that say a message's content."""
_NAMES = ("type", "index", "id")
"""What a later piece of a detail repeats."""


class _Told:
    """A part that is being told."""

    __slots__ = ("entry", "number", "part", "said")

    def __init__(self, part: Content) -> None:
        self.part = part
        self.said: list[str] = []
        self.number = 0
        self.entry: dict[str, Any] = {}


class Telling:
    """Tells the parts of one answer, of which a run may have several messages."""

    def __init__(self) -> None:
        self._open: dict[_Place, _Told] = {}
        self._numbers: Counter[str] = Counter()
        self._executed: dict[str, tuple[int, ToolCallPart]] = {}
        self._taken: set[tuple[str, int]] = set()
        self._told: dict[str, set[str]] = {}
        """Message → the fields that have told text of it."""
        self._void: set[str] = set()
        """Fields whose text so far is void: what comes now begins on a line of its own."""

    def drop(self, message_id: str) -> None:
        """A message is retracted. What went out of it stays; what comes now is kept apart from it."""
        self._open = {place: told for place, told in self._open.items() if place[0] != message_id}
        self._void |= self._told.pop(message_id, set())

    def begin(self, place: _Place, part: Content) -> list[_Delta]:
        """A part is open."""
        told = self._open[place] = _Told(part)
        if isinstance(part, ThinkingPart):
            own = OWN.fields(part.native)
            told.entry = {**own, "index": self._free_index(own)} if own else {}
        if not isinstance(part, ToolCallPart) or part.run_by == "provider":
            return []
        function = {"name": part.name, "arguments": ""}
        if _older(part):
            return [{"function_call": function}]
        told.number = self._number("tool_calls")
        start = {"index": told.number, "id": part.id, "type": "function", "function": function}
        return [] if _custom(part) else [{"tool_calls": [start]}]

    def more(self, place: _Place, delta: str | bytes) -> list[_Delta]:
        """More of an open part."""
        told = self._open.get(place)
        if told is None or not isinstance(delta, str) or not delta:
            return []
        part, first = told.part, not told.said
        told.said.append(delta)
        if isinstance(part, TextPart):
            return [
                self._text(place, ["refusal" if OWN.form(part.native).get("field") == "refusal" else "content"], delta)
            ]
        if isinstance(part, ThinkingPart) and told.entry:
            entry = told.entry if first else {name: told.entry[name] for name in _NAMES if name in told.entry}
            again = self._text(place, again_in(part), delta)
            return [{**again, DETAILS: [{**entry, text_key(entry.get("type")): delta}]}]
        if isinstance(part, ThinkingPart):
            return [self._text(place, [field for field in fields_of(part) if field in PLAIN] or PLAIN[:1], delta)]
        if isinstance(part, ToolCallPart) and part.run_by != "provider" and not _custom(part):
            more = {"arguments": delta}
            return [
                {"function_call": more} if _older(part) else {"tool_calls": [{"index": told.number, "function": more}]}
            ]
        return []

    def end(self, place: _Place, part: Content) -> list[_Delta]:
        """A part is closed: whatever of it is not told yet."""
        told = self._open.get(place)
        if told is None:
            return []
        deltas = self.more(place, _left(_whole_text(part), "".join(told.said)))
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
            if name not in _OWN
        }
        return [numbered] if numbered else []

    def _text(self, place: _Place, fields: Sequence[str], delta: str) -> _Delta:
        """More text in these fields, of which a client joins all that it gets."""
        self._told.setdefault(place[0], set()).update(fields)
        apart = self._void.intersection(fields)
        self._void -= apart
        return {field: f"\n{delta}" if field in apart else delta for field in fields}

    def _number(self, field: str) -> int:
        self._numbers[field] += 1
        return self._numbers[field] - 1

    def _free_index(self, own: dict[str, Any]) -> Any:
        """A detail's index, or another where one of its type has it already: they would be read as one."""
        kind, index = f"{DETAILS} {own.get('type')}", own.get("index", 0)
        if not isinstance(index, int):
            return index
        if (kind, index) in self._taken:
            index = self._numbers[kind]
        self._taken.add((kind, index))
        self._numbers[kind] = max(self._numbers[kind], index + 1)
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
            return [{"audio": {**audio, **OWN.fields(part.native)}}]
        block = dump_block(part) or {}
        if block.get("type") != "image_url":
            return []
        return [{"images": [{"index": self._number("images"), **block}]}]


def _custom(part: ToolCallPart) -> bool:
    return OWN.form(part.native).get("type") == "custom"


def _older(part: ToolCallPart) -> bool:
    """Whether it came as the older `function_call`, of which a message has one."""
    return OWN.form(part.native).get("field") == "function_call"


def _whole_text(part: Content) -> str:
    if isinstance(part, (TextPart, ThinkingPart)):
        return part.text
    if isinstance(part, ToolCallPart):
        return part.raw if part.raw is not None else json_bytes.encode(part.arguments).decode()
    return ""


def _left(text: str, said: str) -> str:
    """What is left of a text to say; what was said and is not of it cannot be taken back."""
    return text[len(said) :] if text.startswith(said) else ""


def _signed(part: ThinkingPart, told: _Told) -> list[_Delta]:
    """What a detail of thinking holds beside its text, as far as that came late."""
    own, known = OWN.fields(part.native), told.entry if told.said else {}
    late = {name: value for name, value in own.items() if name not in known or known[name] != value}
    late = rest(late, "index")
    named = {name: told.entry[name] for name in _NAMES if name in told.entry}
    return [{DETAILS: [{**named, **late}]}] if late else []


def _called(part: ToolCallPart, told: _Told) -> list[_Delta]:
    """What a call holds beside its arguments, and a name that came late; a custom call whole."""
    late = rest(OWN.fields(part.native), "id")
    if _custom(part):
        body = {"name": part.name, "input": part.arguments.get("input", "")}
        late = {"id": part.id, "type": "custom", "custom": body, **late}
    elif isinstance(told.part, ToolCallPart) and told.part.name != part.name:
        late = {"function": {"name": part.name}, **late}
    if _older(part):
        return [{"function_call": late["function"]}] if "function" in late else []
    return [{"tool_calls": [{"index": told.number, **late}]}] if late else []
