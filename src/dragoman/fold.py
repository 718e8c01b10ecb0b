"""The bridge between the two nouns: `fold` (events → messages), `unfold` (messages → events), and
`compact`.

`fold(unfold(m)) == m` for every message. Folding is linear: deltas are kept in a list until their
part is closed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec

from dragoman import json_bytes
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
from dragoman.message import (
    Content,
    DataPart,
    Message,
    Native,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

__all__ = [
    "MessageBuilder",
    "MessageFolder",
    "arguments_json",
    "arguments_text",
    "close_part",
    "compact",
    "fold",
    "parse_call",
    "unfold",
    "part_events",
]


class MessageBuilder:
    """Builds one message from events: the message that `start` opens, else the first of
    candidate 0.

    Events of one part must come in order; events of other messages are ignored. If its message is
    dropped, the builder begins again.
    """

    def __init__(self, start: MessageStarted | None = None) -> None:
        self._begin(start)

    def _begin(self, start: MessageStarted | None) -> None:
        """Resets the fold for the next message."""
        self.start = start
        self._id = None if start is None else start.message_id
        self._finish: MessageFinished | None = None
        self._parts: dict[int, Content] = {}
        self._deltas: dict[int, list[str | bytes]] = {}
        """Of the parts that are open."""
        self._unread: list[Sequence[PartDelta]] | None = None

    def add(self, event: Event) -> None:
        """Folds the next event into the message. A delta for a part that is not open is ignored."""
        if isinstance(event, PartDelta):
            if (
                event.message_id == self._id
                and (deltas := self._deltas.get(event.index)) is not None
            ):
                if self._unread:
                    self._read()
                deltas.append(event.delta)
        elif isinstance(event, MessageStarted):
            if self.start is None and event.candidate == 0:
                self._begin(event)
        elif getattr(event, "message_id", None) != self._id:
            # Of another message, or of none.
            pass
        elif isinstance(event, PartStarted):
            if self._unread:
                self._read()
            self._parts[event.index] = event.part
            self._deltas[event.index] = []
        elif isinstance(event, PartFinished):
            self._parts[event.index] = event.part
            self._deltas.pop(event.index, None)
            if not self._deltas:
                self._unread = None
        elif isinstance(event, MessageFinished):
            self._finish = event
        elif isinstance(event, MessageDropped):
            self._begin(None)

    def add_deltas(self, events: Sequence[PartDelta]) -> None:
        """Takes the next events if all are deltas. Has the effect of `add` for each, but reads them
        only when needed: a finished part says all that its deltas said."""
        # A slow stream is nothing but these: its events would be four times the size of its text.
        if len(events) == 1:
            MessageBuilder.add(self, events[0])
        elif self._unread is None:
            self._unread = [events]
        else:
            self._unread.append(events)

    def _read(self) -> None:
        """Folds the deltas that were kept unread to the open parts."""
        unread, self._unread = self._unread, None
        for events in unread or ():
            for event in events:
                if (
                    event.message_id == self._id
                    and (deltas := self._deltas.get(event.index)) is not None
                ):
                    deltas.append(event.delta)

    def content(self) -> tuple[Content, ...]:
        """Returns the folded content of the message so far. Parts that are still open are closed as
        cut."""
        if self._unread:
            self._read()
        parts = self._parts
        if self._deltas:
            open_parts = self._deltas.items()
            parts = parts | {
                index: close_part(parts[index], deltas, cut=True) for index, deltas in open_parts
            }
        return tuple([part for _, part in sorted(parts.items()) if part is not None])

    def message(self) -> Message:
        """Returns the message that the events so far fold to. Before any event it is an empty model
        message."""
        start = self.start or MessageStarted("", Role.MODEL, anonymous=True)
        finish = self._finish or MessageFinished(start.message_id)
        return Message(
            start.role,
            self.content(),
            id=None if start.anonymous else start.message_id,
            created_at=start.created_at,
            origin=finish.origin or start.origin,
            metadata={**start.metadata, **finish.metadata},
            finish_reason=finish.finish_reason,
            usage=finish.usage,
            native=_merge_native(start.native, finish.native),
            turn=start.turn,
        )

    def cut(self) -> list[PartFinished]:
        """Folds an end: closes the open parts of the message as cut, and returns the events that
        say so."""
        self._read()
        closed = [
            (index, close_part(self._parts[index], deltas, cut=True))
            for index, deltas in self._deltas.items()
        ]
        events = [
            PartFinished(self._id or "", index, part) for index, part in closed if part is not None
        ]
        for event in events:
            self.add(event)
        return events


class MessageFolder:
    """Folds events into messages piece by piece: candidate 0, without messages that were dropped."""

    def __init__(self, run_id: str | None = None) -> None:
        """`run_id`: see `fold`."""
        self._run_id = run_id
        self._builders: dict[MessageBuilder, None] = {}
        self._latest: dict[str, MessageBuilder] = {}

    def feed(self, events: Iterable[Event]) -> None:
        """Takes the next events."""
        builders, latest = self._builders, self._latest
        for event in events:
            if isinstance(event, (PartDelta, PartStarted, PartFinished, MessageFinished)):
                if (builder := latest.get(event.message_id)) is not None:
                    builder.add(event)
            elif isinstance(event, MessageStarted):
                if event.run_id != self._run_id:
                    latest.pop(event.message_id, None)
                    continue
                builder = latest[event.message_id] = MessageBuilder(event)
                if event.candidate == 0:
                    builders[builder] = None
            elif (
                isinstance(event, MessageDropped)
                and (builder := latest.pop(event.message_id, None)) is not None
            ):
                builders.pop(builder, None)

    def messages(self) -> list[Message]:
        """Returns the messages so far, in order of their start."""
        return [builder.message() for builder in self._builders]


def fold(events: Iterable[Event], run_id: str | None = None) -> list[Message]:
    """Returns the messages that these events tell of: candidate 0, without those that were dropped,
    in order of their start.

    `run_id`: those of a run within a tool; left out, those of the run whose stream it is.
    """
    folder = MessageFolder(run_id)
    folder.feed(events)
    return folder.messages()


def unfold(messages: Iterable[Message]) -> list[Event]:
    """Returns events that fold to these messages, each part told whole."""
    messages = list(messages)
    taken = {message.id for message in messages}
    events: list[Event] = []
    for position, message in enumerate(messages):
        # Events name their message, so one without an id gets one that no other has; `anonymous`
        # lets `fold` take it off again.
        message_id = message.id
        if message_id is None:
            message_id = f"#{position}"
            while message_id in taken:
                message_id += "'"
        events.append(
            MessageStarted(
                message_id,
                message.role,
                origin=message.origin,
                metadata=message.own_metadata,
                native=message.native,
                created_at=message.created_at,
                anonymous=message.id is None,
                turn=message.turn,
            )
        )
        for index, part in enumerate(message.content):
            events += part_events(message_id, index, part)
        events.append(MessageFinished(message_id, message.finish_reason, message.usage))
    return events


def part_events(message_id: str, index: int, part: Content) -> list[Event]:
    """Unfolds a part: returns the events into which a complete one unfolds: its start, one delta
    and its end."""
    opened, delta = _open_part(part)
    if delta:
        deltas = [PartDelta(message_id, index, delta)]
    else:
        deltas = []
    return [PartStarted(message_id, index, opened), *deltas, PartFinished(message_id, index, part)]


def compact(events: Iterable[Event]) -> list[Event]:
    """Compacts events: joins the deltas of each part that no other event separates; leaves every
    other event alone. `fold` sees no difference."""
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
            flush()
            out.append(event)
    flush()
    return out


def close_part(
    part: Content, deltas: Sequence[str | bytes], *, cut: bool = False, native: Native = None
) -> Content | None:
    """Folds an open part and its deltas to the finished part. None for an empty text.

    Args:
        part: the part as it began.
        deltas: its deltas, in order.
        cut: the stream ended inside the part, so a call must not be executed.
        native: native fields to add to the part's own.
    """
    if native:
        part = msgspec.structs.replace(part, native=_merge_native(part.native, native))
    if isinstance(part, TextPart):
        text = part.text + _text(deltas)
        if text:
            return TextPart(text, part.native, part.citations)
        return None
    if isinstance(part, ThinkingPart):
        return ThinkingPart(part.text + _text(deltas), part.native)
    if isinstance(part, ToolCallPart):
        if not deltas and part.raw is None and not cut:
            return part
        text = (part.raw or "") + _text(deltas)
        if not cut:
            return parse_call(part, text)
        if part.arguments and not text:
            text = _encode(part.arguments)
        return msgspec.structs.replace(part, arguments={}, raw=text, state="cut")
    if isinstance(part, DataPart):
        return msgspec.structs.replace(part, data=part.data + b"".join(map(_bytes, deltas)))
    return part


def parse_call(call: ToolCallPart, text: str) -> ToolCallPart:
    """Folds a call's argument deltas: returns it with its complete arguments, given as text. An
    empty text and `null` are `{}`; anything else that is not a JSON object makes the call invalid.

    The text is kept as `raw` if writing `arguments` again would not give it back.
    """
    try:
        arguments = json_bytes.decode(text.strip() or "null")
    except ValueError:
        return msgspec.structs.replace(call, arguments={}, raw=text, state="invalid")
    if arguments is None:
        return msgspec.structs.replace(call, arguments={}, raw=text, state="complete")
    if not isinstance(arguments, dict):
        return msgspec.structs.replace(call, arguments={}, raw=text, state="invalid")
    raw = text
    if _encode(cast("json_bytes.JsonMap", arguments)) == text:
        raw = None
    return msgspec.structs.replace(call, arguments=arguments, raw=raw, state="complete")


def arguments_text(call: ToolCallPart) -> str:
    """Returns the arguments of an unfolded call as JSON text, in the provider's spelling if that
    still holds. `{}` if they are cut or invalid."""
    text = _encode(call.arguments)
    if call.state != "complete" or call.raw is None:
        return text
    parsed = parse_call(call, call.raw)
    if parsed.state == "complete" and _encode(parsed.arguments) == text:
        return call.raw
    return text


def arguments_json(call: ToolCallPart) -> str:
    """Returns the arguments of a folded call as the JSON object that a request needs. `{}` if the
    text of the arguments is no object: providers write "no arguments" as an empty text or
    `null`."""
    text = arguments_text(call)
    if text.lstrip().startswith("{"):
        return text
    return "{}"


def _open_part(part: Content) -> tuple[Content, str | bytes]:
    """Unfolds a finished part: returns it as it began, and the one delta that completes it."""
    if isinstance(part, TextPart):
        return OpenText(native=part.native), part.text
    if isinstance(part, ThinkingPart):
        return ThinkingPart(native=part.native), part.text
    if isinstance(part, DataPart):
        return msgspec.structs.replace(part, data=b""), part.data
    if isinstance(part, ToolCallPart):
        if part.state == "complete":
            text = arguments_text(part)
        else:
            text = part.raw or ""
        return msgspec.structs.replace(part, arguments={}, raw=None, state="complete"), text
    return part, ""


def _text(deltas: Sequence[str | bytes]) -> str:
    """Folds deltas to a text; bytes among them are decoded."""
    try:
        return "".join(cast("Sequence[str]", deltas))
    except TypeError:
        # There are bytes among them.
        return "".join(
            [
                delta if isinstance(delta, str) else delta.decode(errors="replace")
                for delta in deltas
            ]
        )


def _join(deltas: Sequence[str | bytes]) -> str | bytes:
    if all(isinstance(delta, str) for delta in deltas):
        return _text(deltas)
    return b"".join(map(_bytes, deltas))


_BASE64 = re.compile("[^=]+=*")


def _bytes(delta: str | bytes) -> bytes:
    """Folds a delta of bytes: returns them, which JSON has as base64; several of those may have
    been joined, so each ends with its padding."""
    if isinstance(delta, bytes):
        return delta
    return b"".join(map(base64.b64decode, _BASE64.findall(delta)))


def _encode(arguments: json_bytes.JsonMap) -> str:
    return json_bytes.encode(arguments).decode()


def _merge_native(first: Native, second: Native) -> Native:
    """Merges the native fields of a folded part's start and end, wire by wire; the second's win."""
    if not first or not second:
        return second or first
    merged = dict(first)
    for wire, fields in second.items():
        fields_before = merged.get(wire)
        merged[wire] = (
            {**fields_before, **fields}
            if isinstance(fields_before, Mapping) and isinstance(fields, Mapping)
            else fields
        )
    return merged
