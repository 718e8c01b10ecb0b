"""The events of AG-UI, streamed → events. Those of our own encoder come back as they were; of
others' each message is told as the protocol has it.

`Decoder` reads what concerns the run: its start and end, runs within tools, steps, state, anything
by name. Below it stand the parts of messages (`decode_parts`) and the messages (`decode_messages`).
Names of the time before 1.0 are read (`decode_variants`), and chunks are what they stand for. A run that
begins with the extras `v` is one of our own encoder; nothing that others carry is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import body_bytes, if_object, if_text
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import (
    Event,
    MessageDropped,
    PartDelta,
    RunError,
    RunFinished,
    RunStarted,
    event_from_json,
)
from dragoman.json_bytes import Json
from dragoman.message import Origin
from dragoman.wires.ag_ui.decode_parts import PartsDecoder
from dragoman.wires.ag_ui.decode_variants import OldEvents
from dragoman.wires.ag_ui.errors import error_of
from dragoman.wires.ag_ui.events import CALL, READ, REASONING, TEXT, load_event
from dragoman.wires.ag_ui.quirks import CARRIED, load_extras

__all__ = ["Decoder", "decoder", "load_response"]

_CONTENT = {family.content: family.name for family in (TEXT, CALL, REASONING)}
"""Type of a content object → the name of its family."""
_BEGINNINGS = ("RUN_STARTED", "RUN_ERROR")
"""Types that may come first, and after an end."""


class _Content(msgspec.Struct, gc=False, rename="camel"):
    """What nearly all of a stream consists of, as far as it is read."""

    type: str
    delta: str
    message_id: str = ""
    tool_call_id: str = ""
    metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_content = msgspec.json.Decoder(_Content).decode


class Decoder(PartsDecoder):
    """Reads an AG-UI stream of any version."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the AG-UI decoder. The arguments are those of `ResponseDecoder`."""
        super().__init__(origin, new_id)
        self._older = OldEvents()
        self._has_begun = False
        self._has_ended = False
        self._started_id = ""
        """The run's id, from its start."""

    def read_fast(self, payload: bytes) -> bool:
        """Implements `ResponseDecoder.read_fast` for AG-UI. Reads the content of an open part, the
        most frequent object."""
        # most other payloads are told apart without parsing them
        if b'"delta"' not in payload or self._has_ended or self._older.is_within_chunks:
            return False
        try:
            content = _content(payload)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return False
        if content.metadata is not msgspec.UNSET or not content.delta:
            return False
        family = _CONTENT.get(content.type)
        if family == CALL.name:
            id_ = content.tool_call_id
        else:
            id_ = content.message_id
        part = self.open.get((family, id_))
        if part is None or part.is_ended:
            return False
        part.deltas.append(content.delta)
        self._events.append(PartDelta(part.message_id, part.index, content.delta))
        return True

    def read_event(self, event: Json) -> None:
        """See `ResponseDecoder.read_event`. An object of an old version may stand for several."""
        for fields in self._older.read(event):
            self.read_object(*self.read_type(fields))

    def read_type(self, event: Json) -> tuple[str, Json]:
        """See `RunDecoder.read_type`."""
        kind = event.get("type")
        if isinstance(kind, str):
            return kind, event
        if event.get("error") is not None or "message" in event:
            raise error_of(event)
        raise DecodeError("an event of AG-UI has a type, and this one has none")

    def admit(self, object_type: str, fields: Json) -> bool:  # noqa: ARG002 the shell's
        """See `RunDecoder.admit`."""
        if not self._has_begun and object_type not in _BEGINNINGS:
            raise DecodeError(f"a stream of AG-UI begins with RUN_STARTED, not {object_type}")
        return not self._has_ended or object_type in _BEGINNINGS

    def end(self) -> None:
        """Implements `ResponseDecoder.end` for AG-UI."""
        if self._has_ended:
            self._over = True
            return
        for fields in self._older.close():
            self.read_object(*self.read_type(fields))
        super().end()

    def read_body(self, body: bytes) -> None:
        """Implements `ResponseDecoder.read_body` for AG-UI. Reads a list of events, or an error
        body."""
        try:
            value = json_bytes.decode(body)
        except ValueError:
            super().read_body(body)
            return
        if isinstance(value, list):
            for event in value:  # pyright: ignore[reportUnknownVariableType]
                self.read_payload(body_bytes(if_object(event)))
            if not self._over:
                self.end()
        else:
            super().read_body(body)

    # the run

    def _load(self, fields: Json) -> Event | None:
        """Returns the event of an AG-UI object, or None if no dragoman event stands behind it."""
        if self.extras(fields).get("made"):
            return None
        return load_event(fields, self.calls)

    def _event(self, fields: Json) -> None:
        """Adds the event for an AG-UI object that is one of its own."""
        event = self._load(fields)
        if event is not None:
            self._events.append(event)

    def _run_started(self, fields: Json) -> None:
        """Begins an AG-UI run. A stream may hold several, one after another."""
        self._has_begun, self._has_ended = True, False
        self.begin_run()
        self.is_own = load_extras(fields.get("metadata")).get("v") == 1
        event = self._load(fields)
        if isinstance(event, RunStarted):
            self._started_id = event.run_id
            self._events.append(event)

    def _run_finished(self, fields: Json) -> None:
        """Ends the AG-UI run, and closes what is still open."""
        self.finish_all()
        self.add_unstreamed()
        self._has_ended = True
        event = self._load(fields)
        if isinstance(event, RunFinished):
            if self.is_own:
                run_id = event.run_id
            else:
                run_id = event.run_id or self._started_id
            self._events.append(msgspec.structs.replace(event, run_id=run_id))

    def _run_error(self, fields: Json) -> None:
        """Ends the run with an error, or as cancelled for AG-UI peers that know no such outcome."""
        error = error_of(fields)
        self._has_ended = True
        if not self.is_own:
            self.cut_run(error)
            self._events.append(RunError(error, self._started_id or None))
        elif finished := if_object(self.extras(fields).get("finished")):
            # a peer of the time before 1.0 was told so that the run was cancelled
            self._event(
                {
                    **finished,
                    "metadata": fields.get("metadata"),
                    "type": "RUN_FINISHED",
                }
            )
        else:
            self._own_error(fields)

    def _own_error(self, fields: Json) -> None:
        """Adds the error event that dragoman's own AG-UI encoder wrote."""
        carried = if_object(self.extras(fields).get("error"))
        run_id, native = carried.get("run_id"), if_object(carried.get("native"))
        if not isinstance(run_id, str):
            run_id = None
        self._events.append(RunError(error_of(fields), run_id, native or None))

    # runs within tools

    def _subagent_started(self, fields: Json) -> None:
        """Starts a run within a tool, as AG-UI's stream reports it."""
        event = load_event(fields, self.calls)
        assert isinstance(event, RunStarted)
        self.runs[if_text(fields.get("subagentRunId"))] = event.run_id
        # the protocol names a parent only where that is within a tool itself
        if event.parent_run_id is None and not self.is_own:
            event = msgspec.structs.replace(event, parent_run_id=self._started_id or None)
        self._events.append(event)

    def _subagent_finished(self, fields: Json) -> None:
        """Ends an AG-UI run within a tool, and closes its messages."""
        owner = if_text(fields.get("subagentRunId"))
        self.finish_message(owner)
        self.finish_aside(owner)
        self._event(fields)

    def _subagent_error(self, fields: Json) -> None:
        """Ends an AG-UI run within a tool with an error."""
        if self.is_own:
            self._own_error(fields)
        else:
            owner = if_text(fields.get("subagentRunId"))
            self._events.append(RunError(error_of(fields), owner or None))

    # messages that stand, and events that are carried

    def _messages_snapshot(self, fields: Json) -> None:
        """Reads a list of all AG-UI messages. In dragoman's own stream it only retracts one."""
        if not self.is_own:
            self.list_messages(fields.get("messages"))
            return
        dropped = if_object(self.extras(fields).get("dropped"))
        if isinstance(id_ := dropped.get("message_id"), str):
            self._events.append(MessageDropped(id_, if_text(dropped.get("reason"))))

    def _custom(self, fields: Json) -> None:
        """Adds an AG-UI custom event, or the event that it carries."""
        if not self.is_own or fields.get("name") != CARRIED:
            self._event(fields)
            return
        value: Any = if_text(fields.get("value"))
        try:
            json_bytes.check_depth(value, 3 * json_bytes.MOST_DEPTH)
            self._events.append(event_from_json(value))
        except (HistoryError, ValueError, TypeError) as error:
            raise DecodeError("an event that was carried cannot be read") from error

    STEPS = {
        **dict.fromkeys(READ, _event),
        **PartsDecoder.STEPS,
        "RUN_STARTED": _run_started,
        "RUN_FINISHED": _run_finished,
        "RUN_ERROR": _run_error,
        "SUBAGENT_STARTED": _subagent_started,
        "SUBAGENT_FINISHED": _subagent_finished,
        "SUBAGENT_ERROR": _subagent_error,
        "MESSAGES_SNAPSHOT": _messages_snapshot,
        "CUSTOM": _custom,
    }


decoder, load_response = Decoder.create, Decoder.load_response
