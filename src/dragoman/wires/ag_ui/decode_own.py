"""What our own encoder wrote → the events that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.carried import changed
from dragoman.codec.json_values import if_object, if_text, rest
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunStarted,
    event_from_json,
)
from dragoman.fold import close_part
from dragoman.message import Content, Role, ThinkingPart, ToolCallPart
from dragoman.wires.ag_ui.encode_parts import natural_start
from dragoman.wires.ag_ui.errors import error_of
from dragoman.wires.ag_ui.events import READ, load_event
from dragoman.wires.ag_ui.messages_load import raised
from dragoman.wires.ag_ui.quirks import CARRIED, others, unpacked
from dragoman.wires.ag_ui.tools import load_result

__all__ = ["OwnRun"]

_IGNORED = ("type", "metadata", "messageId", "subagentRunId", "timestamp", "rawEvent")


_KEYS = {
    "TEXT_MESSAGE_CONTENT": "TEXT ",
    "TOOL_CALL_ARGS": "TOOL ",
    "REASONING_MESSAGE_CONTENT": "REASONING ",
}
"""Type of content → the beginning of the key of what it belongs to."""


class _Open:
    """A part that is open."""

    __slots__ = ("base", "begun", "deltas", "finished", "index", "message_id", "signed")

    def __init__(self, message_id: str, index: int, base: Content, begun: Content) -> None:
        self.message_id = message_id
        self.index = index
        self.base = base
        self.begun = begun
        self.deltas: list[str | bytes] = []
        self.finished: Content | None = None
        self.signed: Any = None


class OwnRun:
    """Objects → events."""

    def __init__(self, events: list[Event]) -> None:
        """`events`: fills up."""
        self._events = events
        self._open: dict[str, _Open] = {}
        self._entries: dict[str, str] = {}
        """Ids of their messages → those of ours."""
        self._names: dict[str, str] = {}
        self._runs: dict[str, str] = {}
        self._ends = {"TEXT_MESSAGE_END", "TOOL_CALL_END", "REASONING_MESSAGE_END"}

    def cut(self) -> None:
        """The stream ended too early: what is open stays open, as in a run that was cut."""
        self._open.clear()

    def content(self, kind: str, id_: str, delta: str) -> bool:
        """Content of what is open; `False`: it is of another kind."""
        part = self._open.get(_KEYS[kind] + id_) if kind in _KEYS else None
        if part is None or part.finished is not None:
            return False
        part.deltas.append(delta)
        self._events.append(PartDelta(part.message_id, part.index, delta))
        return True

    def take(self, kind: str, fields: Mapping[str, Any]) -> None:
        """One object.

        Raises:
            DecodeError: it does not go on with what came before.
        """
        held = unpacked(fields.get("metadata"))
        if kind in _KEYS:
            self._delta(fields, held)
        elif kind in self._ends:
            self._end(kind, fields, held)
        elif kind in ("TEXT_MESSAGE_START", "REASONING_MESSAGE_START", "TOOL_CALL_START"):
            self._start(kind, fields, held)
        elif kind == "REASONING_ENCRYPTED_VALUE":
            part = self._open.get(_key("REASONING", fields.get("entityId")))
            if part is not None and isinstance(part.finished, ThinkingPart):
                part.finished = raised(part.finished, part.signed, fields.get("encryptedValue"))
        elif kind == "REASONING_END":
            part = self._open.pop(_key("REASONING", fields.get("messageId")), None)
            if part is not None and part.finished is not None:
                self._events.append(PartFinished(part.message_id, part.index, part.finished))
        elif kind == "TOOL_CALL_RESULT":
            self._result(fields, held)
        elif kind in ("RUN_ERROR", "SUBAGENT_ERROR"):
            self._error(fields, held)
        elif kind == "MESSAGES_SNAPSHOT":
            dropped = if_object(held.get("dropped"))
            if isinstance(id_ := dropped.get("message_id"), str):
                self._events.append(MessageDropped(id_, if_text(dropped.get("reason"))))
        elif kind == "CUSTOM" and fields.get("name") == CARRIED:
            self._carried(fields.get("value"))
        elif kind in READ and not held.get("made"):
            self._event(fields)

    def _event(self, fields: Mapping[str, Any]) -> None:
        event = load_event(fields, {})
        if event is None:
            return
        if isinstance(event, RunStarted) and fields["type"] == "SUBAGENT_STARTED":
            self._runs[if_text(fields.get("subagentRunId"))] = event.run_id
        self._events.append(event)

    def _carried(self, value: Any) -> None:
        try:
            json_bytes.bound(value if isinstance(value, str) else "", 3 * json_bytes.MOST_DEPTH)
            event = event_from_json(value if isinstance(value, str) else "")
        except (HistoryError, ValueError, TypeError) as error:
            raise DecodeError("an event that was carried cannot be read") from error
        self._events.append(event)

    def _error(self, fields: Mapping[str, Any], held: Mapping[str, Any]) -> None:
        if finished := if_object(held.get("finished")):
            event = load_event(
                {**finished, "metadata": fields.get("metadata"), "type": "RUN_FINISHED"}, {}
            )
            if event is not None:
                self._events.append(event)
            return
        more = if_object(held.get("error"))
        run_id, native = more.get("run_id"), more.get("native")
        self._events.append(
            RunError(
                error_of(fields),
                run_id if isinstance(run_id, str) else None,
                if_object(native) or None,
            )
        )

    def _message_id(self, held: Mapping[str, Any], entry: str) -> str:
        first = of if isinstance(of := held.get("of"), str) else entry
        given = held.get("m")
        message_id = given if isinstance(given, str) else self._entries.get(first, first)
        self._entries[entry] = message_id
        return message_id

    def _begin(
        self, fields: Mapping[str, Any], held: Mapping[str, Any], message_id: str, role: Role
    ) -> None:
        if "start" in held:
            owner = fields.get("subagentRunId")
            run_id = self._runs.get(owner, owner) if isinstance(owner, str) else None
            start = natural_start(message_id, role, others(fields.get("metadata")), run_id)
            self._events.append(changed(start, held["start"], MessageStarted))

    def _start(self, kind: str, fields: Mapping[str, Any], held: Mapping[str, Any]) -> None:
        if kind == "TOOL_CALL_START":
            entry, id_ = if_text(fields.get("parentMessageId")), if_text(fields.get("toolCallId"))
            base: Content = ToolCallPart(id_, if_text(fields.get("toolCallName")))
        else:
            entry = id_ = if_text(fields.get("messageId"))
            base = ThinkingPart() if kind == "REASONING_MESSAGE_START" else OpenText()
        message_id = self._message_id(held, entry)
        self._begin(fields, held, message_id, Role.MODEL)
        begun = changed(base, held.get("part"), type(base))
        if isinstance(begun, ToolCallPart):
            self._names[begun.id] = begun.name
        index = _index(held)
        self._open[_key(kind, id_)] = _Open(message_id, index, base, begun)
        self._events.append(PartStarted(message_id, index, begun))

    def _part(self, kind: str, fields: Mapping[str, Any]) -> _Open:
        id_ = fields.get("toolCallId" if kind.startswith("TOOL") else "messageId")
        part = self._open.get(_key(kind, id_))
        if part is None or part.finished is not None:
            raise DecodeError(f"{kind} names nothing that is open")
        return part

    def _delta(self, fields: Mapping[str, Any], held: Mapping[str, Any]) -> None:
        part = self._part(fields["type"], fields)
        delta = if_text(fields.get("delta"))
        if delta and not held.get("made"):
            part.deltas.append(delta)
            self._events.append(PartDelta(part.message_id, part.index, delta))

    def _end(self, kind: str, fields: Mapping[str, Any], held: Mapping[str, Any]) -> None:
        part = self._part(kind, fields)
        key = _key(kind, fields.get("toolCallId" if kind.startswith("TOOL") else "messageId"))
        if held.get("made"):
            del self._open[key]
            return
        if "part" in held:
            read = close_part(part.base, part.deltas)
            finished = (
                _whole(held["part"]) if read is None else changed(read, held["part"], Content)
            )
        else:
            finished = close_part(part.begun, part.deltas)
        part.finished, part.signed = finished, held.get("signed")
        if not kind.startswith("REASONING"):
            del self._open[key]
            if finished is not None:
                self._events.append(PartFinished(part.message_id, part.index, finished))

    def _result(self, fields: Mapping[str, Any], held: Mapping[str, Any]) -> None:
        try:
            piece = load_result(rest(fields, *_IGNORED), held, self._names)
        except HistoryError as error:
            raise DecodeError(error.message) from error
        message_id = self._message_id(held, if_text(fields.get("messageId")))
        self._begin(fields, held, message_id, Role.USER)
        index = _index(held)
        self._events += [
            PartStarted(message_id, index, piece),
            PartFinished(message_id, index, piece),
        ]


def _whole(fields: Any) -> Content | None:
    try:
        return msgspec.convert(fields, Content)
    except (ValueError, TypeError):
        return None


def _key(kind: str, id_: Any) -> str:
    return f"{kind.partition('_')[0]} {id_ if isinstance(id_, str) else ''}"


def _index(held: Mapping[str, Any]) -> int:
    at = held.get("at")
    return at if isinstance(at, int) and not isinstance(at, bool) and at >= 0 else 0
