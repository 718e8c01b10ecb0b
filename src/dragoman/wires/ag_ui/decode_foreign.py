"""What others wrote → events. Their messages are ours: reasoning belongs to the message of the model's that follows it, results that follow each
other are one message of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec.ids import DistinctIds
from dragoman.codec.json_values import if_text, rest
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
)
from dragoman.fold import close_part, unfold
from dragoman.message import (
    Content,
    FinishReason,
    Native,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from dragoman.wires.ag_ui.decode_snapshot import Snapshot, ToldMessage
from dragoman.wires.ag_ui.errors import error_of
from dragoman.wires.ag_ui.events import READ, load_event
from dragoman.wires.ag_ui.messages import load_conversation
from dragoman.wires.ag_ui.messages_load import ROLES
from dragoman.wires.ag_ui.quirks import OWN, others
from dragoman.wires.ag_ui.tools import load_result

__all__ = ["ForeignRun"]

_STARTS = ("TEXT_MESSAGE_START", "REASONING_MESSAGE_START", "TOOL_CALL_START")
_KEYS = {
    "TEXT_MESSAGE_CONTENT": "TEXT ",
    "TOOL_CALL_ARGS": "TOOL ",
    "REASONING_MESSAGE_CONTENT": "REASONING ",
}
"""Type of content → the beginning of the key of what it belongs to."""
_ENDS = ("TEXT_MESSAGE_END", "REASONING_MESSAGE_END", "TOOL_CALL_END")
_COMMON = ("type", "metadata", "timestamp", "rawEvent", "subagentRunId")


class _Open:
    """A part that is open."""

    __slots__ = ("deltas", "ended", "index", "message", "part", "sealed")

    def __init__(self, message: ToldMessage, index: int, part: Content) -> None:
        self.message = message
        self.index = index
        self.part = part
        self.deltas: list[str | bytes] = []
        self.sealed: str | None = None
        self.ended = False


class ForeignRun:
    """Objects → events."""

    def __init__(
        self, events: list[Event], origin: Origin | None, new_id: Callable[[], str] | None
    ) -> None:
        """`events`: fills up. `new_id`: makes the ids of messages that come without one."""
        self._events = events
        self._origin = origin
        self._new_id = new_id
        self._count = 0
        self._current: dict[str, ToldMessage] = {}
        """Owner → the message that is open, and that what comes next may belong to."""
        self._aside: list[ToldMessage] = []
        """Those beside them: another began before their parts were at their end."""
        self._ids = DistinctIds()
        self._standing: dict[str, ToldMessage] = {}
        """Messages that were told and stand, by id."""
        self._snapshot: Snapshot | None = None
        """All messages as they were listed, while none was told since."""
        self._entries: dict[str, ToldMessage] = {}
        """Ids of their messages → the message of ours, while it is open."""
        self._open: dict[str, _Open] = {}
        self._calls: dict[str, ToolCallPart] = {}
        self._names: dict[str, str] = {}
        self._run_id = ""

    def content(self, kind: str, id_: str, delta: str) -> bool:
        """Content of what is open; `False`: it is of another kind."""
        part = self._open.get(_KEYS[kind] + id_) if kind in _KEYS else None
        if part is None or part.ended:
            return False
        part.deltas.append(delta)
        self._events.append(PartDelta(part.message.id, part.index, delta))
        return True

    def take(self, kind: str, fields: Mapping[str, Any]) -> None:
        """One object.

        Raises:
            DecodeError: it does not go on with what came before.
        """
        if kind in _KEYS:
            self._delta(kind, fields)
        elif kind in _STARTS:
            self._start(kind, fields)
        elif kind in _ENDS:
            self._end(kind, fields)
        elif kind == "REASONING_END":
            self._sealed_end(fields)
        elif kind == "REASONING_ENCRYPTED_VALUE":
            self._seal(fields)
        elif kind == "TOOL_CALL_RESULT":
            self._result(fields)
        elif kind == "RUN_ERROR":
            self.cut()
            self._events.append(RunError(error_of(fields), self._run_id or None))
        elif kind == "SUBAGENT_ERROR":
            self._events.append(
                RunError(error_of(fields), if_text(fields.get("subagentRunId")) or None)
            )
        elif kind == "MESSAGES_SNAPSHOT":
            self._list(fields)
        elif kind in READ:
            self._event(kind, fields)

    def _event(self, kind: str, fields: Mapping[str, Any]) -> None:
        if kind == "RUN_FINISHED":
            self._close_all()
            self._tell_listed()
        elif kind == "SUBAGENT_FINISHED":
            self._finish(if_text(fields.get("subagentRunId")))
            self._finish_aside(if_text(fields.get("subagentRunId")))
        event = load_event(fields, self._calls)
        if isinstance(event, RunStarted) and kind == "RUN_STARTED":
            self._run_id = event.run_id
            self._current.clear()
            self._aside.clear()
            self._standing.clear()
            self._snapshot = None
            self._entries.clear()
            self._open.clear()
        elif isinstance(event, RunStarted) and event.parent_run_id is None:
            event = replace(event, parent_run_id=self._run_id or None)
        if isinstance(event, RunFinished) and kind == "RUN_FINISHED" and event.run_id == "":
            event = replace(event, run_id=self._run_id)
        if event is not None:
            self._events.append(event)

    # messages

    def _message(
        self, id_: str, role: Role, owner: str, metadata: Mapping[str, Any], native: Native = None
    ) -> ToldMessage:
        """The message that is open under an id, else a new one."""
        current = self._current.get(owner)
        known = self._entries.get(id_)
        if known is not None and (known is current or known in self._aside) and known.role is role:
            return known
        if current is not None and not current.spoke and current.role is role is Role.MODEL:
            self._entries[id_] = current  # so far it has nothing but thinking
            current.entries.append(id_)
            return current
        self._leave(owner)
        message_id = self._fresh(id_)
        message = self._current[owner] = self._entries[id_] = ToldMessage(message_id, role, owner)
        self._standing[message_id] = message
        self._snapshot = None
        message.entries.append(id_)
        origin = (
            self._origin if role is Role.MODEL and self._origin and self._origin.provider else None
        )
        start = MessageStarted(
            message_id, role, origin=origin, metadata=metadata, native=native, run_id=owner or None
        )
        self._events.append(start)
        return message

    def _fresh(self, id_: str) -> str:
        if not id_:
            self._count += 1
            id_ = self._new_id() if self._new_id else f"message-{self._count}"
        return self._ids.take(id_)

    def _leave(self, owner: str) -> None:
        """Another message begins: the one that is open is closed, or stays open beside it until its parts are at their end."""
        message = self._current.get(owner)
        if message is not None and self._goes_on(message):
            self._aside.append(self._current.pop(owner))
        else:
            self._finish(owner)

    def _goes_on(self, message: ToldMessage) -> bool:
        """Whether a part of it is still to end."""
        parts = [self._open.get(key) for key in message.parts]
        return any(
            part is not None and part.message is message and not part.ended for part in parts
        )

    def _finish(self, owner: str, *, cut: bool = False) -> None:
        """Closes the message that is open."""
        message = self._current.pop(owner, None)
        if message is not None:
            self._closed(message, cut=cut)

    def _finish_aside(self, owner: str | None = None, *, cut: bool = False) -> None:
        """Closes those that are open beside them. `owner`: only this one's."""
        for message in [each for each in self._aside if owner is None or each.owner == owner]:
            self._aside.remove(message)
            self._closed(message, cut=cut)

    def _closed(self, message: ToldMessage, *, cut: bool = False) -> None:
        for key in message.parts:
            if (part := self._open.get(key)) is not None and part.message is message:
                del self._open[key]
                self._close(part, cut=cut or not part.ended)
        for entry in message.entries:
            if self._entries.get(entry) is message:
                del self._entries[entry]
        reason = None
        if message.role is Role.MODEL:
            reason = (
                FinishReason.error
                if cut
                else FinishReason.tool_calls
                if message.calls
                else FinishReason.stop
            )
        self._events.append(MessageFinished(message.id, reason))

    def _close_all(self) -> None:
        self._finish_aside()
        for owner in list(self._current):
            self._finish(owner)

    def cut(self) -> None:
        """The run ended too early."""
        self._finish_aside(cut=True)
        for owner in list(self._current):
            self._finish(owner, cut=True)

    # parts

    def _start(self, kind: str, fields: Mapping[str, Any]) -> None:
        owner = if_text(fields.get("subagentRunId"))
        own = rest(
            fields, *_COMMON, "messageId", "role", "toolCallId", "toolCallName", "parentMessageId"
        )
        metadata = others(fields.get("metadata"))
        if kind == "TOOL_CALL_START":
            part, message, id_ = self._call(fields, owner, own, metadata)
        else:
            id_ = if_text(fields.get("messageId"))
            if kind == "TEXT_MESSAGE_START":
                role = fields.get("role")
                ours = ROLES.get(role, Role.MODEL) if isinstance(role, str) else Role.MODEL
                native = OWN.note(own, {"role": "developer"} if role == "developer" else None)
                message = self._message(id_, ours, owner, metadata, native)
                message.spoke, part = True, OpenText()
                message.spoken.add(id_)
            else:
                message = self._message(id_, Role.MODEL, owner, {})
                if message.spoke:
                    self._leave(owner)
                    message = self._message(id_, Role.MODEL, owner, {})
                own = {**own, "id": id_, **({"metadata": metadata} if metadata else {})}
                part = ThinkingPart(native=OWN.note(own))
        key = _key(kind, id_)
        if key in self._open:
            raise DecodeError(f"{kind} opens {id_!r}, which is open already")
        self._open[key] = _Open(message, message.next, part)
        message.parts.append(key)
        message.next += 1
        self._events.append(PartStarted(message.id, self._open[key].index, part))

    def _call(
        self, fields: Mapping[str, Any], owner: str, own: dict[str, Any], metadata: dict[str, Any]
    ) -> tuple[Content, ToldMessage, str]:
        id_, parent = if_text(fields.get("toolCallId")), if_text(fields.get("parentMessageId"))
        current = self._current.get(owner)
        if not parent and current is not None and current.role is Role.MODEL:
            message = current
        else:
            message = self._message(parent or id_, Role.MODEL, owner, {})
        message.spoke = True
        message.calls.add(id_)
        message.spoken.update([parent] if parent else ())
        name = if_text(fields.get("toolCallName"))
        self._names[id_] = name
        if metadata:
            own["metadata"] = metadata
        return ToolCallPart(id_, name, native=OWN.note(own)), message, id_

    def _part(self, kind: str, fields: Mapping[str, Any]) -> _Open:
        part = self._open.get(_key(kind, _id(kind, fields)))
        if part is None or part.ended:
            raise DecodeError(f"{kind} names nothing that is open")
        return part

    def _delta(self, kind: str, fields: Mapping[str, Any]) -> None:
        part = self._part(kind, fields)
        if delta := if_text(fields.get("delta")):
            part.deltas.append(delta)
            self._events.append(PartDelta(part.message.id, part.index, delta))

    def _end(self, kind: str, fields: Mapping[str, Any]) -> None:
        part = self._part(kind, fields)
        part.ended = True
        if kind != "REASONING_MESSAGE_END":  # its signature may follow
            del self._open[_key(kind, _id(kind, fields))]
            self._close(part)
        if part.message in self._aside and not self._goes_on(part.message):
            self._aside.remove(part.message)
            self._closed(part.message)

    def _close(self, part: _Open, *, cut: bool = False) -> None:
        made = part.part
        if part.sealed is not None:
            own = {**OWN.fields(made.native), "encryptedValue": part.sealed}
            made = replace(made, native=OWN.note(own, OWN.form(made.native)))
        whole = close_part(made, part.deltas, cut=cut)
        if whole is not None:
            if isinstance(whole, ToolCallPart):
                self._calls[whole.id] = whole
            elif isinstance(whole, TextPart):
                part.message.texts.add(whole.text)
            self._events.append(PartFinished(part.message.id, part.index, whole))

    def _seal(self, fields: Mapping[str, Any]) -> None:
        part = self._open.get(_key("REASONING", if_text(fields.get("entityId"))))
        value = fields.get("encryptedValue")
        if part is not None and isinstance(value, str):
            part.sealed = value

    def _sealed_end(self, fields: Mapping[str, Any]) -> None:
        part = self._open.pop(_key("REASONING", if_text(fields.get("messageId"))), None)
        if part is not None:
            self._close(part)

    def _result(self, fields: Mapping[str, Any]) -> None:
        owner, id_ = if_text(fields.get("subagentRunId")), if_text(fields.get("messageId"))
        message = {
            **rest(fields, "type", "timestamp", "rawEvent", "subagentRunId", "messageId"),
            "role": "tool",
        }
        try:
            piece = load_result(message, {}, self._names)
        except HistoryError as error:
            raise DecodeError(error.message) from error
        current = self._current.get(owner)
        if current is None or current.role is not Role.USER or current.spoke:
            self._leave(owner)
            current = self._message(id_, Role.USER, owner, {})
        elif id_:
            own = {**OWN.fields(piece.native), "id": id_}
            piece = replace(piece, native=OWN.note(own, OWN.form(piece.native)))
        index = current.next
        current.next += 1
        current.spoken.add(id_)
        current.calls.add(piece.id)
        self._events += [
            PartStarted(current.id, index, piece),
            PartFinished(current.id, index, piece),
        ]

    def _list(self, fields: Mapping[str, Any]) -> None:
        """All messages that stand: what was told and is none of them is retracted."""
        listed = fields.get("messages")
        if not isinstance(listed, list):
            raise DecodeError("the messages of MESSAGES_SNAPSHOT are a list")
        self._snapshot = Snapshot(cast("object", listed))
        for message in [each for each in self._standing.values() if not self._snapshot.has(each)]:
            if message in self._aside:
                self._aside.remove(message)
                self._closed(message)
            elif self._current.get(message.owner) is message:
                self._finish(message.owner)
            del self._standing[message.id]
            self._events.append(MessageDropped(message.id))

    def _tell_listed(self) -> None:
        """Tells what stands in the list of messages alone."""
        if self._snapshot is None:
            return
        messages = load_conversation(
            self._snapshot.untold(self._standing.values()), self._origin, []
        )
        for message in messages:
            self._calls.update({call.id: call for call in message.tool_calls})
            reason = FinishReason.tool_calls if message.tool_calls else FinishReason.stop
            ended = reason if message.role is Role.MODEL else None
            self._events += unfold(
                [message.replace(id=self._fresh(message.id or ""), finish_reason=ended)]
            )


def _id(kind: str, fields: Mapping[str, Any]) -> str:
    return if_text(fields.get("toolCallId" if kind.startswith("TOOL") else "messageId"))


def _key(kind: str, id_: str) -> str:
    return f"{kind.partition('_')[0]} {id_}"
