"""Messages of a run as AG-UI has them: what tells of each of their events, and all that stands where one is taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from dragoman import json_bytes
from dragoman.errors import HistoryError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    event_to_json,
)
from dragoman.message import Role
from dragoman.request import RunRequest
from dragoman.wires.ag_ui.encode_parts import MessageParts, Part
from dragoman.wires.ag_ui.extras import metadata_of
from dragoman.wires.ag_ui.messages import dump_conversation
from dragoman.wires.ag_ui.messages_dump import Group
from dragoman.wires.ag_ui.quirks import CARRIED, Quirks

__all__ = ["MessageEncoder", "Object"]

Object = dict[str, Any]
_encode = json_bytes.encode


class MessageEncoder:
    """Events of messages → objects. The start of a message, and that of a result, are held until the event behind them: one object tells of both."""

    def __init__(
        self,
        quirks: Quirks,
        request: RunRequest | None,
        out: list[Object],
        owner: Callable[[str | None], str | None],
    ) -> None:
        """`request`: what the run answers, whose messages the peer has. `out`: fills up. `owner`: under which the protocol knows a run within
        a tool."""
        self._quirks = quirks
        self._request = request
        self._out = out
        self._owner = owner
        self.group = Group(extras=quirks.extras, parts=quirks.current)
        self._known: set[str] = set()
        for message in request.messages if request else ():
            self.group.meet(message)
            if message.id is not None and message.role is not Role.MODEL:
                self._known.add(message.id)
        self._skipped: set[str] = set()
        self._messages: dict[str, MessageParts] = {}
        self._prefixes: dict[tuple[str, int], tuple[bytes, list[Any]]] = {}
        self._held: list[MessageStarted | PartStarted] = []
        self.steps: Mapping[type, Callable[[Any], None]] = {
            MessageStarted: self._message_started,
            PartStarted: self._part_started,
            PartDelta: self._delta,
            PartFinished: self._part_finished,
            MessageFinished: self.carry,
            MessageDropped: self._message_dropped,
        }
        """Type of an event → what tells of it."""

    def meta(self, extras: Mapping[str, Any], metadata: Mapping[str, Any] = {}) -> Object:
        """The field `metadata`, where there is something to hold."""
        return metadata_of(metadata, extras if self._quirks.extras else {})

    def clear(self) -> None:
        """Another run begins."""
        self._messages.clear()

    def settle(self, event: Event) -> None:
        """What is held is told, where an event does not go on with it."""
        if self._held and not self._joins(event):
            self.release()

    def delta(self, event: PartDelta) -> bytes | None:
        """The bytes of a delta of a text, of thinking or of arguments; `None`: it is none of those."""
        found = self._prefixes.get((event.message_id, event.index))
        if found is None or self._held or not event.delta or isinstance(event.delta, bytes):
            return None
        prefix, deltas = found
        deltas.append(event.delta)
        return prefix + _encode(event.delta) + b"}\n\n"

    def carry(self, event: Event) -> None:
        """An event that the protocol has no form for, as it is."""
        if not self._quirks.extras or getattr(event, "message_id", None) in self._skipped:
            return
        try:
            value = event_to_json(event).decode()
        except HistoryError:
            return
        self._out.append({"type": "CUSTOM", "name": CARRIED, "value": value})

    def end(self, owner: str | None) -> None:
        """Closes the parts that are open: all, or those of a run within a tool."""
        for message in self._messages.values():
            if owner is None or message.owner == owner:
                self._end_parts(message)

    def _end_parts(self, message: MessageParts) -> None:
        for index, part in list(message.open.items()):
            self._prefixes.pop((message.id, index), None)
            self._out += part.cut(self.meta)
            del message.open[index]

    def _joins(self, event: Event) -> bool:
        """Whether an event goes on with what is held, so that one object tells of both."""
        last = self._held[-1]
        if isinstance(last, PartStarted):
            return (
                isinstance(event, PartFinished)
                and event.message_id == last.message_id
                and event.index == last.index
            )
        return isinstance(event, PartStarted) and event.message_id == last.message_id

    def release(self) -> None:
        """Tells what is held."""
        held, self._held = self._held, []
        for event in held:
            self.carry(event)

    def _message_started(self, event: MessageStarted) -> None:
        if event.message_id in self._known and event.role is not Role.MODEL:
            self._skipped.add(event.message_id)
            return
        self._skipped.discard(event.message_id)
        if (before := self._messages.get(event.message_id)) is not None:
            self._end_parts(before)
        self._messages[event.message_id] = MessageParts(
            event, self._owner(event.run_id), self.group
        )
        if event.candidate:
            self.carry(event)
        else:
            self._held = [event]

    def _part_started(self, event: PartStarted) -> None:
        message = self._messages.get(event.message_id)
        if event.message_id in self._skipped:
            return
        if message is None or not message.takes(event):
            self.release()
            self.carry(event)
            return
        if message.holds(event):
            self._held.append(event)
            return
        start = self._held[0] if self._held else None
        self._held = []
        part = message.start(event)
        self._out += part.started(self.meta, cast("MessageStarted | None", start))
        self._prefixes[event.message_id, event.index] = (part.prefix(), part.deltas)

    def _delta(self, event: PartDelta) -> None:
        message = self._messages.get(event.message_id)
        part = message.open.get(event.index) if message else None
        if part is None or isinstance(event.delta, bytes):
            self.carry(event)
        elif event.delta:
            part.deltas.append(event.delta)
            self._out.append(part.delta(event.delta))

    def _part_finished(self, event: PartFinished) -> None:
        message = self._messages.get(event.message_id)
        if self._held:
            held, self._held = self._held, []
            begun = cast("PartStarted", held[-1])
            start = cast("MessageStarted | None", held[0] if len(held) > 1 else None)
            result = None if message is None else message.result(event, begun, start, self.meta)
            if result is None:
                self._held = held
                self.release()
                self.carry(event)
            else:
                self._out.append(result)
            return
        part: Part | None = message.open.pop(event.index, None) if message else None
        if part is None:
            self.carry(event)
            return
        self._prefixes.pop((event.message_id, event.index), None)
        self._out += part.finished(event, self.meta)

    def _message_dropped(self, event: MessageDropped) -> None:
        message = self._messages.pop(event.message_id, None)
        if message is None:
            self.carry(event)
            return
        self._end_parts(message)
        if not message.shown:
            self.carry(event)
            return
        standing = self._standing()
        if self._quirks.extras and not any(each["role"] == "reasoning" for each in standing):
            standing += message.void(self.meta)
        held = self.meta({"dropped": {"message_id": event.message_id, "reason": event.reason}})
        self._out.append({"type": "MESSAGES_SNAPSHOT", "messages": standing, **held})

    def _standing(self) -> list[Object]:
        """All messages that stand: those of the request, and what was told and not taken back."""
        before = (
            dump_conversation(self._request.messages, extras=self._quirks.extras)
            if self._request
            else []
        )
        return [
            *before,
            *[entry for message in self._messages.values() for entry in message.entries(self.meta)],
        ]
