"""The bridge between the two nouns: `fold` (events → messages), `unfold` (messages → events), and `compact`.

`fold(unfold(m)) == m` for every message. Folding is linear: deltas are kept in a list until their part is closed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.message import Content, DataPart, Message, Native, TextPart, ThinkingPart, ToolCallPart

__all__ = ["MessageBuilder", "close_part", "compact", "fold", "parse_call", "unfold"]


class MessageBuilder:
    """Builds one message from its events, in any order that keeps each part's own."""

    def __init__(self, start: MessageStarted) -> None:
        self.start = start
        self._finish: MessageFinished | None = None
        self._open: dict[int, Content] = {}
        self._deltas: dict[int, list[str | bytes]] = {}
        self._done: dict[int, Content | None] = {}

    def add(self, event: PartStarted | PartDelta | PartFinished | MessageFinished) -> None:
        """Takes the next event of this message. A delta for a part that is not open is ignored (decision 13)."""
        if isinstance(event, PartDelta):
            if (deltas := self._deltas.get(event.index)) is not None:
                deltas.append(event.delta)
        elif isinstance(event, PartStarted):
            self._open[event.index] = event.part
            self._deltas[event.index] = []
        elif isinstance(event, PartFinished):
            self._done[event.index] = event.part
            self._open.pop(event.index, None)
            self._deltas.pop(event.index, None)
        else:
            self._finish = event

    def message(self) -> Message:
        """The message so far; parts that are still open are closed as cut."""
        start, finish = self.start, self._finish
        parts = dict(self._done)
        for index, part in self._open.items():
            parts[index] = close_part(part, self._deltas[index], cut=True)
        content = tuple([part for _, part in sorted(parts.items()) if part is not None])
        native = start.native
        if finish is not None and finish.native:
            native = _merged(native, finish.native)
        return Message(
            start.role,
            content,
            id=None if start.anonymous else start.message_id,
            created_at=start.created_at,
            origin=(finish.origin if finish is not None else None) or start.origin,
            metadata={**start.metadata, **(finish.metadata if finish is not None else {})},
            finish_reason=finish.finish_reason if finish is not None else None,
            usage=finish.usage if finish is not None else None,
            native=native,
        )

    def cut(self) -> list[PartFinished]:
        """Closes the parts that are still open, as cut → the events that say so."""
        message_id, events = self.start.message_id, list[PartFinished]()
        for index, part in list(self._open.items()):
            if (closed := close_part(part, self._deltas[index], cut=True)) is not None:
                events.append(PartFinished(message_id, index, closed))
        for event in events:
            self.add(event)
        return events


def fold(events: Iterable[Event]) -> list[Message]:
    """The messages that these events tell of: candidate 0, without those that were dropped, in order of their start."""
    builders: list[MessageBuilder] = []
    latest: dict[str, MessageBuilder] = {}
    for event in events:
        if isinstance(event, (PartDelta, PartStarted, PartFinished, MessageFinished)):
            if (builder := latest.get(event.message_id)) is not None:
                builder.add(event)
        elif isinstance(event, MessageStarted):
            builder = latest[event.message_id] = MessageBuilder(event)
            builders.append(builder)
        elif isinstance(event, MessageDropped) and (builder := latest.pop(event.message_id, None)) is not None:
            builders.remove(builder)
    return [builder.message() for builder in builders if builder.start.candidate == 0]


def unfold(messages: Iterable[Message]) -> list[Event]:
    """Events that fold to these messages, each part told whole."""
    messages = list(messages)
    taken = {message.id for message in messages}
    events: list[Event] = []
    for position, message in enumerate(messages):
        message_id = message.id
        if message_id is None:
            message_id = f"#{position}"
            while message_id in taken:
                message_id += "'"
        metadata = message.metadata
        if message.thinking:  # derived from the content, so it comes back by itself
            metadata = {key: value for key, value in metadata.items() if key != "thinking"}
        events.append(
            MessageStarted(
                message_id,
                message.role,
                origin=message.origin,
                metadata=metadata,
                native=message.native,
                created_at=message.created_at,
                anonymous=message.id is None,
            )
        )
        for index, part in enumerate(message.content):
            opened, delta = _opened(part)
            events.append(PartStarted(message_id, index, opened))
            if delta:
                events.append(PartDelta(message_id, index, delta))
            events.append(PartFinished(message_id, index, part))
        events.append(MessageFinished(message_id, message.finish_reason, message.usage))
    return events


def compact(events: Iterable[Event]) -> list[Event]:
    """Joins the deltas of each part that no other event separates; leaves every other event alone. `fold` sees no difference."""
    out: list[Event] = []
    waiting: dict[tuple[str, int], list[str | bytes]] = {}

    def flush() -> None:
        for (message_id, index), deltas in waiting.items():
            out.append(PartDelta(message_id, index, _join(deltas)))
        waiting.clear()

    for event in events:
        if isinstance(event, PartDelta):
            waiting.setdefault((event.message_id, event.index), []).append(event.delta)
        else:
            if waiting:
                flush()
            out.append(event)
    flush()
    return out


def close_part(
    part: Content, deltas: Sequence[str | bytes], *, cut: bool = False, native: Native = None
) -> Content | None:
    """An open part and its deltas → the finished part; `None` for a text that never came.

    `cut`: the stream ended inside it, so a call is not to be executed. `native` is added to the part's own.
    """
    if native:
        native = _merged(part.native, native)
        part = msgspec.structs.replace(part, native=native)
    if isinstance(part, TextPart):
        text = part.text + "".join(map(str, deltas))
        return TextPart(text, part.native) if text else None
    if isinstance(part, ThinkingPart):
        return ThinkingPart(part.text + "".join(map(str, deltas)), part.native) if deltas else part
    if isinstance(part, ToolCallPart):
        if cut:
            return msgspec.structs.replace(
                part, arguments={}, raw=(part.raw or "") + "".join(map(str, deltas)), state="cut"
            )
        return (
            parse_call(part, (part.raw or "") + "".join(map(str, deltas))) if deltas or part.raw is not None else part
        )
    if isinstance(part, DataPart) and deltas:
        return msgspec.structs.replace(part, data=part.data + b"".join(map(_bytes, deltas)))
    return part


def parse_call(call: ToolCallPart, text: str) -> ToolCallPart:
    """A call whose arguments have all come, as text (D-96: empty and `null` are `{}`). What is no JSON object makes it invalid.

    The text is kept as `raw` where writing `arguments` again would not give it back.
    """
    stripped = text.strip()
    if not stripped or stripped == "null":
        return msgspec.structs.replace(call, arguments={}, raw=text if text != "{}" else None, state="complete")
    try:
        arguments = msgspec.json.decode(stripped)
    except (msgspec.DecodeError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        return msgspec.structs.replace(call, arguments={}, raw=text, state="invalid")
    spelled = msgspec.json.encode(arguments).decode() == text
    return msgspec.structs.replace(call, arguments=arguments, raw=None if spelled else text, state="complete")


def _opened(part: Content) -> tuple[Content, str | bytes]:
    """A finished part → how it began, and the one delta that it is then told in."""
    if isinstance(part, TextPart):
        return OpenText(native=part.native), part.text
    if isinstance(part, ThinkingPart):
        return ThinkingPart(native=part.native), part.text
    if isinstance(part, DataPart):
        return msgspec.structs.replace(part, data=b""), part.data
    if isinstance(part, ToolCallPart):
        text = part.raw if part.raw is not None else msgspec.json.encode(part.arguments).decode()
        return msgspec.structs.replace(part, arguments={}, raw=None, state="complete"), text
    return part, ""


def _join(deltas: Sequence[str | bytes]) -> str | bytes:
    if all(isinstance(delta, str) for delta in deltas):
        return "".join(map(str, deltas))
    return b"".join(map(_bytes, deltas))


def _bytes(delta: str | bytes) -> bytes:
    return base64.b64decode(delta) if isinstance(delta, str) else delta


def _merged(one: Mapping[str, Any] | None, two: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(one or {})
    for wire, fields in two.items():
        mine = merged.get(wire)
        merged[wire] = {**mine, **fields} if isinstance(mine, Mapping) and isinstance(fields, Mapping) else fields
    return merged
