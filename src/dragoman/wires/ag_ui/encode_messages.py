"""The messages of a run as AG-UI has them: what tells of each of their events, and all that stands
where one is taken back.

The start of a message waits for its first part, and the start of a result for its end: one object
tells of both. Where another event comes first, what waits is carried as it is.
"""

from __future__ import annotations

from dragoman.codec.json_difference import is_equal
from dragoman.codec.run_encoder import RunEncoder, split_frame
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
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Role, ToolResultPart
from dragoman.request import RunRequest
from dragoman.wires.ag_ui.encode_parts import WrittenMessage, WrittenPart
from dragoman.wires.ag_ui.messages import dump_conversation
from dragoman.wires.ag_ui.messages_dump import DumpedNames
from dragoman.wires.ag_ui.quirks import CARRIED, Quirks, dump_metadata

__all__ = ["MessagesEncoder"]


class MessagesEncoder(RunEncoder[WrittenPart]):
    """Writes the events of messages."""

    def __init__(self, quirks: Quirks, request: RunRequest | None) -> None:
        """Creates an encoder. `request` is what the run answers: the AG-UI peer has its
        messages."""
        super().__init__()
        self.quirks = quirks
        self.group = DumpedNames(extras=quirks.extras, parts=quirks.current)
        self.subagents: dict[str, str] = {}
        """Id of an open run within a tool → the protocol's id of it."""
        self._request_messages = request.messages if request else ()
        self._client_ids: set[str] = set()
        """Ids of the messages that the client wrote itself."""
        for message in self._request_messages:
            # ids that the client has must not come twice, in whatever the run says
            self.group.add_known(message)
            if message.id is not None and message.role is not Role.MODEL:
                self._client_ids.add(message.id)
        self._skipped: set[str] = set()
        self.messages: dict[str, WrittenMessage] = {}
        """Messages of the run that were not retracted, by id."""

    def meta(self, extras: JsonMap, metadata: JsonMap = {}) -> Json:
        """Returns the field `metadata`, or nothing if it would be empty."""
        return dump_metadata(metadata, extras if self.quirks.extras else {})

    def owner_of(self, run_id: str | None) -> str | None:
        """Returns AG-UI's id for a run within a tool, or None for the run itself."""
        if run_id is None:
            return None
        return self.subagents.get(run_id)

    def carry(self, event: Event) -> None:
        """Writes an event that AG-UI has no form for as a custom one."""
        if not self.quirks.extras or getattr(event, "message_id", None) in self._skipped:
            return
        try:
            value = event_to_json(event).decode()
        except HistoryError:
            return
        self.write({"type": "CUSTOM", "name": CARRIED, "value": value})

    def end_parts(self, messages: list[WrittenMessage]) -> None:
        """Closes the open parts of these messages, in the order of the AG-UI messages."""
        order = {message.id: position for position, message in enumerate(messages)}
        for _, part in sorted(self.take_parts(order), key=lambda entry: order[entry[0][0]]):
            self.write(*part.dump_cut(self.meta))

    def messages_of(self, owner: str) -> list[WrittenMessage]:
        """Returns the messages of a run within a tool."""
        return [message for message in self.messages.values() if message.owner == owner]

    # what waits for the event behind it

    def carry_unjoined(self, event: Event) -> None:
        """Carries the waiting start unless this event completes it."""
        if self.pending and not self._is_joined(event):
            self.carry_pending()

    def _is_joined(self, event: Event) -> bool:
        """True if an event completes the waiting start, so that one AG-UI object shows both."""
        last = self.pending[-1]
        if isinstance(last, MessageStarted):
            return isinstance(event, PartStarted) and event.message_id == last.message_id
        is_end = isinstance(event, PartFinished)
        return is_end and (event.message_id, event.index) == (last.message_id, last.index)

    def carry_pending(self) -> None:
        """Carries events of AG-UI messages that are pending in dragoman's extension of the
        stream."""
        pending, self.pending = self.pending, []
        for event in pending:
            self.carry(event)

    def _message_started(self, event: MessageStarted) -> None:
        """Begins an AG-UI message, whose start waits for its first part. Messages of the client
        itself are skipped."""
        # the run's events begin with what the client said: it has that already
        if event.message_id in self._client_ids and event.role is not Role.MODEL:
            self._skipped.add(event.message_id)
            return
        self._skipped.discard(event.message_id)
        if (earlier := self.messages.get(event.message_id)) is not None:
            self.end_parts([earlier])
        owner = self.owner_of(event.run_id)
        self.messages[event.message_id] = WrittenMessage(event, owner, self.group)
        # the protocol knows one answer; the others are for decoders of ours
        if event.candidate:
            self.carry(event)
        else:
            self.pending = [event]

    def _part_started(self, event: PartStarted) -> None:
        """Opens a part of an AG-UI stream. The start of a result waits for its end."""
        if event.message_id in self._skipped:
            return
        key = (event.message_id, event.index)
        message = self.messages.get(event.message_id)
        if message is None or key in self.open or not message.can_write(event.part):
            self.carry_pending()
            self.carry(event)
            return
        if isinstance(event.part, ToolResultPart):
            self.pending.append(event)
            return
        start = None
        if self.pending:
            start = self.pending[0]
        self.pending = []
        part = self.open[key] = message.open_part(event)
        part.frame = split_frame(self.frame(part.dump_delta("")))
        self.write(*part.dump_start(self.meta, start))

    def _delta(self, event: PartDelta) -> None:
        """Writes a delta of an open part of an AG-UI stream."""
        part = self.open.get((event.message_id, event.index))
        if part is None or isinstance(event.delta, bytes):
            self.carry(event)
        elif event.delta:
            part.deltas.append(event.delta)
            self.write(part.dump_delta(event.delta))

    def _part_finished(self, event: PartFinished) -> None:
        """Writes the end of a part as AG-UI events."""
        # only a result waits for its end (see `carry_unjoined`)
        if self.pending:
            self._result(event)
        elif (part := self.take_part((event.message_id, event.index))) is not None:
            self.write(*part.dump_end(event.part, self.meta))
        else:
            self.carry(event)

    def _result(self, event: PartFinished) -> None:
        """Writes the AG-UI event of the tool result whose start waits. If its end differs, both are
        carried."""
        *starts, begun = self.pending
        piece = event.part
        if not isinstance(piece, ToolResultPart) or not is_equal(piece, begun.part):
            self.carry_pending()
            self.carry(event)
            return
        self.pending = []
        message = self.messages[event.message_id]
        start = starts[0] if starts else None
        self.write(message.dump_result(event.index, piece, start, self.meta))

    def _message_dropped(self, event: MessageDropped) -> None:
        """Retracts a message by a list of all AG-UI messages that stand."""
        message = self.messages.pop(event.message_id, None)
        if message is None:
            self.carry(event)
            return
        self.end_parts([message])
        if not message.is_written:
            self.carry(event)
            return
        # the protocol takes back nothing: it replaces all messages
        standing = self._list_standing()
        if self.quirks.extras and not any(entry["role"] == "reasoning" for entry in standing):
            standing += message.dump_void(self.meta)
        dropped = {"message_id": event.message_id, "reason": event.reason}
        metadata = self.meta({"dropped": dropped})
        self.write({"type": "MESSAGES_SNAPSHOT", "messages": standing, **metadata})

    def _list_standing(self) -> list[Json]:
        """Returns all messages that stand: the AG-UI request's, and those of the run."""
        before = dump_conversation(self._request_messages, extras=self.quirks.extras)
        entries = [
            entry for message in self.messages.values() for entry in message.dump_entries(self.meta)
        ]
        return [*before, *entries]

    STEPS = {
        MessageStarted: _message_started,
        PartStarted: _part_started,
        PartDelta: _delta,
        PartFinished: _part_finished,
        MessageFinished: carry,
        MessageDropped: _message_dropped,
    }
