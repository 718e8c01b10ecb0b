"""The parts of one answer → deltas of its message. What a part's deltas did not hold is sent when
it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from dragoman import json_bytes
from dragoman.codec.json_values import if_objects, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires.chat.content import get_detail_text_field, list_thinking_fields
from dragoman.wires.chat.record import DialectRecord

__all__ = ["Delta", "SentPart", "ChatParts", "Place"]

Delta = Json
Place = tuple[str, int]
"""A message's id and a part's index."""
_NAMES = ("type", "index", "id")
"""What a later piece of a detail repeats."""


class SentPart:
    """A part that is being sent."""

    __slots__ = ("entry", "number", "part", "sent")

    def __init__(self, part: Content) -> None:
        self.part = part
        self.sent: list[str] = []
        self.number = 0
        """Of a call: its index."""
        self.entry: Json = {}
        """Of a detail of thinking: its own fields."""


class ChatParts:
    """Sends the parts of one answer, of which a run may have several messages."""

    FIELDS: ClassVar[frozenset[str]] = frozenset({"role", "content"})
    """Fields of the message that hold its parts, thinking and calls aside."""

    def __init__(self, chat: DialectRecord) -> None:
        self.chat = chat
        self._open: dict[Place, SentPart] = {}
        self._numbers: Counter[str] = Counter()
        self._taken: set[tuple[str, int]] = set()
        self._texts: dict[str, set[str]] = {}
        """Message → the fields in which text of it went out."""
        self._void: set[str] = set()
        """Fields whose text so far is void: what comes now begins on a line of its own."""

    def drop(self, message_id: str) -> None:
        """A message is retracted. What went out of it stays; what comes now is kept apart from
        it."""
        self._open = {key: opened for key, opened in self._open.items() if key[0] != message_id}
        self._void |= self._texts.pop(message_id, set())

    def begin(self, key: Place, part: Content) -> list[Delta]:
        """A part is open."""
        opened = self._open[key] = SentPart(part)
        if isinstance(part, ToolCallPart) and part.run_by != "provider":
            return self.begin_call(opened, part)
        if (
            isinstance(part, ThinkingPart)
            and self.chat.details
            and (detail_fields := self.chat.own.fields(part.native))
        ):
            opened.entry = {**detail_fields, "index": self._free_index(detail_fields)}
        return []

    def more(self, key: Place, delta: str | bytes) -> list[Delta]:
        """More of an open part."""
        opened = self._open.get(key)
        if opened is None or not isinstance(delta, str) or not delta:
            return []
        part, first = opened.part, not opened.sent
        opened.sent.append(delta)
        if isinstance(part, TextPart):
            return [self.text(key, [self.choose_text_field(part)], delta)]
        if isinstance(part, ThinkingPart):
            return self.add_thinking(key, opened, part, delta, first=first)
        if isinstance(part, ToolCallPart) and part.run_by != "provider":
            return self.add_call_arguments(opened, part, delta)
        return []

    def end(self, key: Place, part: Content) -> list[Delta]:
        """A part is closed: whatever of it is not sent yet."""
        opened = self._open.get(key)
        if opened is None:
            return []
        whole, sent_text = _whole_text(part), "".join(opened.sent)
        # what was sent and is not of the part cannot be taken back
        deltas = self.more(key, whole[len(sent_text) :] if whole.startswith(sent_text) else "")
        del self._open[key]
        if isinstance(part, TextPart):
            return deltas
        if isinstance(part, ThinkingPart):
            return deltas + self.end_thinking(opened, part)
        if isinstance(part, ToolCallPart) and part.run_by != "provider":
            return deltas + self.end_call(opened, part)
        return self.whole(part)

    def fields(self, fields: JsonMap) -> Delta:
        """Fields of the message beside its content, such as `annotations`. Entries of lists have an
        index, without which the official clients do not take them from a stream."""
        chat = self.chat
        return {
            name: [{"index": self.number(name), **entry} for entry in entries]
            if (entries := if_objects(value))
            else value
            for name, value in read_extra_fields(
                fields, *self.FIELDS, *chat.thinking, chat.details, chat.calls
            ).items()
        }

    def text(self, place: Place, fields: Sequence[str], delta: str) -> Delta:
        """More text in these fields, of which a client joins all that it gets."""
        self._texts.setdefault(place[0], set()).update(fields)
        if not self._void:
            return dict.fromkeys(fields, delta)
        apart = self._void.intersection(fields)
        self._void -= apart
        return {field: f"\n{delta}" if field in apart else delta for field in fields}

    def number(self, field: str) -> int:
        """The next index in a field that is a list."""
        self._numbers[field] += 1
        return self._numbers[field] - 1

    # what a wire may have in another form

    def choose_text_field(self, part: TextPart) -> str:  # noqa: ARG002 for those that have several
        """The field in which a text is sent."""
        return "content"

    def add_thinking(
        self, key: Place, opened: SentPart, part: ThinkingPart, delta: str, *, first: bool
    ) -> list[Delta]:
        """More thinking. What came in no field of this format goes in the first for it."""
        chat = self.chat
        if not opened.entry:
            fields = [
                field for field in list_thinking_fields(chat, part) if field in chat.thinking
            ] or chat.thinking[:1]
            return [self.text(key, fields, delta)] if fields else []
        entry = opened.entry if first else self._names(opened)
        again = [
            field for field in list_thinking_fields(chat, part, "again") if field in chat.thinking
        ]
        return [
            {
                **self.text(key, again, delta),
                chat.details: [{**entry, get_detail_text_field(entry.get("type")): delta}],
            }
        ]

    def end_thinking(self, opened: SentPart, part: ThinkingPart) -> list[Delta]:
        """What a detail of thinking holds beside its text, as far as that came late."""
        detail_fields, sent_fields = (
            self.chat.own.fields(part.native),
            opened.entry if opened.sent else {},
        )
        late = {
            name: value
            for name, value in detail_fields.items()
            if name not in sent_fields or sent_fields[name] != value
        }
        late = read_extra_fields(late, "index") if self.chat.details else {}
        return [{self.chat.details: [{**self._names(opened), **late}]}] if late else []

    def begin_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:
        """A call that somebody must answer."""
        opened.number = self.number(self.chat.calls)
        function = {"name": part.name, self.chat.inputs["function"]: ""}
        call_fields = read_extra_fields(self.chat.own.fields(part.native), "id")
        return [
            self.call(
                opened, {"id": part.id, "type": "function", "function": function, **call_fields}
            )
        ]

    def add_call_arguments(self, opened: SentPart, part: ToolCallPart, delta: str) -> list[Delta]:  # noqa: ARG002
        """More arguments of a call."""
        return [self.call(opened, {"function": {self.chat.inputs["function"]: delta}})]

    def end_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:
        """What a call holds beside its arguments, and a name that came late."""
        sent_fields = self.chat.own.fields(opened.part.native)
        call_fields = read_extra_fields(self.chat.own.fields(part.native), "id")
        late = {
            name: value
            for name, value in call_fields.items()
            if name not in sent_fields or sent_fields[name] != value
        }
        if isinstance(opened.part, ToolCallPart) and opened.part.name != part.name:
            late = {"function": {"name": part.name}, **late}
        return [self.call(opened, late)] if late else []

    def call(self, opened: SentPart, fields: JsonMap) -> Delta:
        """A piece of a call."""
        return {self.chat.calls: [{"index": opened.number, **fields}]}

    def whole(self, part: Content) -> list[Delta]:  # noqa: ARG002 for those that have a place for it
        """Any other part, at its end."""
        return []

    def _names(self, opened: SentPart) -> Json:
        return {name: opened.entry[name] for name in _NAMES if name in opened.entry}

    def _free_index(self, detail_fields: Json) -> Any:
        """A detail's index, or another where one of its type has it already: they would be read as
        one."""
        counter, index = (
            f"{self.chat.details} {detail_fields.get('type')}",
            detail_fields.get("index", 0),
        )
        if not isinstance(index, int):
            return index
        if (counter, index) in self._taken:
            index = self._numbers[counter]
        self._taken.add((counter, index))
        self._numbers[counter] = max(self._numbers[counter], index + 1)
        return index


def _whole_text(part: Content) -> str:
    if isinstance(part, (TextPart, ThinkingPart)):
        return part.text
    if isinstance(part, ToolCallPart):
        return part.raw if part.raw is not None else json_bytes.encode(part.arguments).decode()
    return ""
