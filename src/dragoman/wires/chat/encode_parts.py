"""Writes the parts of one answer as deltas of its message.

A part passes through `begin`, `add_delta` and `end`. Text, thinking and calls go out delta by
delta. `end` sends what the deltas did not hold: a signature, a name that changed, or a part that
had no deltas at all. The methods from `choose_text_field` on are those that a wire overrides.
"""

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
"""Fields that a later piece of a detail repeats."""


class SentPart:
    """A part that is being sent."""

    __slots__ = ("entry", "number", "part", "sent")

    def __init__(self, part: Content) -> None:
        """Keeps a part as far as it was sent in a Chat stream."""
        self.part = part
        self.sent: list[str] = []
        self.number = 0
        """Index of a call among the calls."""
        self.entry: Json = {}
        """WireNative fields of a detail of thinking."""


class ChatParts:
    """Writes the parts of one answer. A run may have several messages in it."""

    FIELDS: ClassVar[frozenset[str]] = frozenset({"role", "content"})
    """Fields of the message that hold its parts, beside thinking and calls."""

    def __init__(self, chat: DialectRecord) -> None:
        """Creates the encoder of parts for a Chat stream."""
        self.chat = chat
        self._open: dict[Place, SentPart] = {}
        self._numbers: Counter[str] = Counter()
        self._used_indexes: set[tuple[str, int]] = set()
        self._texts: dict[str, set[str]] = {}
        """Message id → the fields in which its text was sent."""
        self._void: set[str] = set()
        """Fields whose text was retracted: their next text begins on a new line."""

    def drop(self, message_id: str) -> None:
        """Drops a retracted message from a Chat Completions stream. What was sent of it cannot be
        taken back, so the next text begins on a line of its own."""
        self._open = {key: opened for key, opened in self._open.items() if key[0] != message_id}
        # Clients have shown this text already, so what follows is kept apart from it.
        self._void |= self._texts.pop(message_id, set())

    def begin(self, key: Place, part: Content) -> list[Delta]:
        """Returns the deltas for a part that has begun."""
        opened = self._open[key] = SentPart(part)
        if isinstance(part, ToolCallPart) and part.run_by != "provider":
            return self.begin_call(opened, part)
        if isinstance(part, ThinkingPart) and self.chat.details:
            detail_fields = self.chat.own.fields(part.native)
            if detail_fields:
                opened.entry = {**detail_fields, "index": self._choose_index(detail_fields)}
        return []

    def add_delta(self, key: Place, delta: str | bytes) -> list[Delta]:
        """Returns the Chat Completions deltas for more of an open part."""
        opened = self._open.get(key)
        if opened is None or not isinstance(delta, str) or not delta:
            return []
        part, first = opened.part, not opened.sent
        opened.sent.append(delta)
        if isinstance(part, TextPart):
            return [self.dump_text(key, [self.choose_text_field(part)], delta)]
        if isinstance(part, ThinkingPart):
            return self.add_thinking(key, opened, part, delta, first=first)
        if isinstance(part, ToolCallPart) and part.run_by != "provider":
            return self.add_call_arguments(opened, part, delta)
        return []

    def end(self, key: Place, part: Content) -> list[Delta]:
        """Returns the Chat Completions deltas for what of a part has not been sent when it ends."""
        opened = self._open.get(key)
        if opened is None:
            return []
        whole_text, sent_text = _whole_text(part), "".join(opened.sent)
        # Text that was sent and is not in the finished part cannot be taken back.
        unsent_text = whole_text.removeprefix(sent_text) if whole_text.startswith(sent_text) else ""
        deltas = self.add_delta(key, unsent_text)
        del self._open[key]
        if isinstance(part, TextPart):
            return deltas
        if isinstance(part, ThinkingPart):
            return deltas + self.end_thinking(opened, part)
        if isinstance(part, ToolCallPart) and part.run_by != "provider":
            return deltas + self.end_call(opened, part)
        return self.dump_whole_part(part)

    def dump_fields(self, fields: JsonMap) -> Delta:
        """Returns the delta for fields of the Chat message beside its content, such as
        `annotations`. Entries of lists get an index, without which the official clients drop them
        from a stream."""
        chat = self.chat
        delta: Delta = {}
        further = read_extra_fields(fields, *self.FIELDS, *chat.thinking, chat.details, chat.calls)
        for name, value in further.items():
            entries = if_objects(value)
            if entries:
                value = [{"index": self.next_index(name), **entry} for entry in entries]
            delta[name] = value
        return delta

    def dump_text(self, place: Place, fields: Sequence[str], delta: str) -> Delta:
        """Returns the Chat Completions delta that adds text to these fields. A client joins all
        text that a field gets."""
        self._texts.setdefault(place[0], set()).update(fields)
        if not self._void:
            return dict.fromkeys(fields, delta)
        apart = self._void.intersection(fields)
        self._void -= apart
        return {field: f"\n{delta}" if field in apart else delta for field in fields}

    def next_index(self, field: str) -> int:
        """Returns the next index in a field that is a list."""
        self._numbers[field] += 1
        return self._numbers[field] - 1

    # what a wire may have in another form

    def choose_text_field(self, part: TextPart) -> str:  # noqa: ARG002 for those that have several
        """Returns the field in which a text is sent."""
        return "content"

    def add_thinking(
        self, key: Place, opened: SentPart, part: ThinkingPart, delta: str, *, first: bool
    ) -> list[Delta]:
        """Returns the Chat deltas for more of a thinking part. Thinking that came in no field of
        this format goes to the first one for it."""
        chat = self.chat
        if not opened.entry:
            fields = [field for field in list_thinking_fields(chat, part) if field in chat.thinking]
            fields = fields or [*chat.thinking[:1]]
            if fields:
                return [self.dump_text(key, fields, delta)]
            return []
        entry = opened.entry if first else self._names(opened)
        again = [
            field for field in list_thinking_fields(chat, part, "again") if field in chat.thinking
        ]
        detail = {**entry, get_detail_text_field(entry.get("type")): delta}
        return [{**self.dump_text(key, again, delta), chat.details: [detail]}]

    def end_thinking(self, opened: SentPart, part: ThinkingPart) -> list[Delta]:
        """Returns the Chat deltas for the fields of a thinking detail that came late, such as its
        signature."""
        if not self.chat.details:
            return []
        sent_fields = opened.entry if opened.sent else {}
        late = read_extra_fields(
            _find_changes(sent_fields, self.chat.own.fields(part.native)), "index"
        )
        if late:
            return [{self.chat.details: [{**self._names(opened), **late}]}]
        return []

    def begin_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:
        """Returns the Chat deltas that begin a call for the client."""
        opened.number = self.next_index(self.chat.calls)
        function = {"name": part.name, self.chat.inputs["function"]: ""}
        call_fields = read_extra_fields(self.chat.own.fields(part.native), "id")
        call = {"id": part.id, "type": "function", "function": function, **call_fields}
        return [self.dump_call_piece(opened, call)]

    def add_call_arguments(self, opened: SentPart, part: ToolCallPart, delta: str) -> list[Delta]:  # noqa: ARG002
        """Returns the deltas for more arguments of a call."""
        return [self.dump_call_piece(opened, {"function": {self.chat.inputs["function"]: delta}})]

    def end_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:
        """Returns the Chat deltas for fields of a call beside its arguments, and a name, that came
        late."""
        sent_fields = self.chat.own.fields(opened.part.native)
        call_fields = read_extra_fields(self.chat.own.fields(part.native), "id")
        late = _find_changes(sent_fields, call_fields)
        if isinstance(opened.part, ToolCallPart) and opened.part.name != part.name:
            late = {"function": {"name": part.name}, **late}
        if late:
            return [self.dump_call_piece(opened, late)]
        return []

    def dump_call_piece(self, opened: SentPart, fields: JsonMap) -> Delta:
        """Returns the delta for a piece of a call."""
        return {self.chat.calls: [{"index": opened.number, **fields}]}

    def dump_whole_part(self, part: Content) -> list[Delta]:  # noqa: ARG002 for those that have a place for it
        """Returns the deltas for any other part, when it ends. The family has no field for one."""
        return []

    def _names(self, opened: SentPart) -> Json:
        """Returns the fields that identify a detail, which every piece of it repeats."""
        return {name: opened.entry[name] for name in _NAMES if name in opened.entry}

    def _choose_index(self, detail_fields: Json) -> Any:
        """Returns the index of a thinking detail in the Chat stream, or a free one if a detail of
        the same type has it already, since clients would join the two."""
        counter = f"{self.chat.details} {detail_fields.get('type')}"
        index = detail_fields.get("index", 0)
        if not isinstance(index, int):
            return index
        if (counter, index) in self._used_indexes:
            index = self._numbers[counter]
        self._used_indexes.add((counter, index))
        self._numbers[counter] = max(self._numbers[counter], index + 1)
        return index


def _find_changes(before: JsonMap, after: JsonMap) -> Json:
    """Returns the fields for the delta of a Chat Completions part: those of `after` that `before`
    lacks or has with another value."""
    return {
        name: value for name, value in after.items() if name not in before or before[name] != value
    }


def _whole_text(part: Content) -> str:
    """Returns the text that the Chat Completions deltas of a whole part add up to."""
    if isinstance(part, (TextPart, ThinkingPart)):
        return part.text
    if not isinstance(part, ToolCallPart):
        return ""
    if part.raw is not None:
        return part.raw
    return json_bytes.encode(part.arguments).decode()
