"""A run of an agent as the one message that its user's own run takes for a model's answer.

Texts, thinking and files are the message's. A tool that the agent ran itself is one that the
provider ran; a call that its client is to run is a call for the tools here; and what else it waits
for (an approval, an answer, a sign-in) is a call that waits for the client (see `waits`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import groupby
from typing import Any

import msgspec

from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.marks import attach_interrupt
from dragoman.codec.native import WireNative
from dragoman.codec.response_decoder import ResponseDecoder
from dragoman.errors import DragomanError, StreamCutError
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
)
from dragoman.inner_runs import InnerRuns
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json
from dragoman.message import (
    Content,
    FinishReason,
    Origin,
    Role,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

__all__ = ["AgentAnswer", "AnswerDecoder"]

Key = tuple[str, int]
_QUESTIONS: Mapping[str, str] = {
    "input": "ask_user",
    "auth": "sign_in",
    "approval": "approve",
    "tool": "run_tool",
    "doubt": "decide",
}
"""What is waited for → the name of a call that stands for it where the agent names none."""


class AgentAnswer:
    """The events of a run → those of a message. Fed with lists, as they come."""

    def __init__(
        self,
        wire_native: WireNative,
        *,
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
        tools: Collection[str] = (),
        task: Callable[[], str] = str,
    ) -> None:
        """Starts the answer (one message) that an agent's run gives. `wire_native`: the wire's, for
        notes that tell the agent about its own message. `tools`: names of the tools that the agent
        was sent; it runs all others itself. `task`: returns the id of the agent's task, or an empty
        text if the run's id is all there is."""
        self._task = task
        self._own, self._origin, self._new_id, self._tools = wire_native, origin, new_id, tools
        self._out = Emitter(new_id, origin=origin)
        self._inner = InnerRuns()
        self._parts: dict[Key, OpenPart] = {}
        self._closed: dict[int, tuple[str, Content, OpenPart]] = {}
        """Index → whose part it was, the part as it is told, and what it was opened as."""
        self._calls: dict[str, int] = {}
        """Id of a call of the agent's that has no result → its index."""
        self._models: set[str] = set()
        self._users: set[str] = set()
        self._run_id: str | None = None
        self._thread_id: str | None = None
        self._usage: Usage | None = None
        self._reason: FinishReason | None = None
        self.is_over = False
        """Whether the run has ended."""

    @property
    def run_id(self) -> str | None:
        """Returns the agent's id of the run or task, or None if it has not begun or is over."""
        if self.is_over or self._run_id is None:
            return None
        return self._task() or self._run_id

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Converts the run's next events to those of the message."""
        for event in events:
            if type(event) is PartDelta:
                if (part := self._parts.get((event.message_id, event.index))) is not None:
                    self._out.add(part, event.delta)
            elif not self._inner.has(event) and not self.is_over:
                self._take_event(event)
        return self._out.take()

    def _take_event(self, event: Event) -> None:
        """Takes one event of the agent's run, by its type."""
        if isinstance(event, MessageStarted):
            self._note_author(event)
        elif isinstance(event, PartStarted):
            self._begin(event)
        elif isinstance(event, PartFinished):
            self._end_part(event)
        elif isinstance(event, MessageFinished):
            self._note_end(event)
        elif isinstance(event, MessageDropped):
            self._drop_message(event)
        elif isinstance(event, StateSnapshot | StateDelta | Custom):
            self._out.events.append(msgspec.structs.replace(event, run_id=None))
        elif isinstance(event, RunStarted):
            self._run_id, self._thread_id = event.run_id, event.thread_id
        elif isinstance(event, RunFinished):
            self._finish_answer(event)
        elif isinstance(event, RunError):
            self._fail_answer(event.error)

    def _note_author(self, event: MessageStarted) -> None:
        """Records whether a message of the agent's run is the model's or its user's; of others,
        nothing is told."""
        # An id that starts again may have another role.
        self._models.discard(event.message_id)
        self._users.discard(event.message_id)
        if event.role is Role.MODEL and event.candidate == 0:
            self._models.add(event.message_id)
        elif event.role is Role.USER:
            self._users.add(event.message_id)

    def _note_end(self, event: MessageFinished) -> None:
        """Records why a message in the agent's answer ended, and adds its tokens to those of the
        run."""
        if event.message_id not in self._models:
            return
        self._reason = event.finish_reason or self._reason
        if self._usage is None:
            self._usage = event.usage
        else:
            self._usage = self._usage + (event.usage or Usage())

    # parts

    def _begin(self, event: PartStarted) -> None:
        part, key = event.part, (event.message_id, event.index)
        if event.message_id in self._models and not isinstance(part, ToolResultPart):
            self._parts[key] = self._out.ensure_part(key, self._mark_runner(part))

    def _mark_runner(self, part: Content) -> Content:
        """Returns the part of the agent's answer; a call that the agent runs itself is marked as
        the provider's."""
        if not isinstance(part, ToolCallPart) or part.run_by == "provider":
            return part
        if part.name in self._tools:
            return msgspec.structs.replace(part, run_by="agent")
        return msgspec.structs.replace(part, run_by="provider")

    def _end_part(self, event: PartFinished) -> None:
        """Ends a part of the agent's message, or adds the result of a call."""
        key, part = (event.message_id, event.index), event.part
        if isinstance(part, ToolResultPart):
            if event.message_id in self._models or event.message_id in self._users:
                self._add_result(event.message_id, part)
            return
        opened = self._parts.pop(key, None)
        if opened is None:
            return
        message_part = self._mark_runner(part)
        self._closed[opened.index] = event.message_id, message_part, opened
        if isinstance(message_part, ToolCallPart) and message_part.run_by == "provider":
            # Until its result, or the end of the run, says what becomes of it.
            self._calls[message_part.id] = opened.index
        else:
            self._out.end(opened, message_part)

    def _add_result(self, message_id: str, result: ToolResultPart) -> None:
        """Adds the result of a call that the agent ran itself."""
        if (index := self._calls.pop(result.id, None)) is not None:
            self._settle(index)
        message_part = msgspec.structs.replace(result, run_by="provider")
        opened = self._out.ensure_part(
            (message_id, "result", result.id, len(self._closed)), message_part
        )
        self._closed[opened.index] = message_id, message_part, opened
        self._out.end(opened, message_part)

    def _settle(self, index: int, message_part: ToolCallPart | None = None) -> None:
        message_id, part, opened = self._closed[index]
        self._closed[index] = message_id, message_part or part, opened
        self._out.end(opened, message_part or part)

    def _drop_message(self, event: MessageDropped) -> None:
        """Drops the message of the agent's answer that was told so far, and tells again what of it
        does not come from the dropped one."""
        if event.message_id not in self._models | self._users:
            return
        before, stood = self._out, self._closed
        if before.started:
            before.events.append(MessageDropped(before.message_id, event.reason))
        self._out = Emitter(self._new_id, origin=self._origin, events=before.events)
        self._parts, self._closed, self._calls = {}, {}, {}
        self._models.discard(event.message_id)
        self._users.discard(event.message_id)
        for _, (message_id, part, _opened) in sorted(stood.items()):
            if message_id != event.message_id:
                again = self._out.ensure_part((message_id, "again", len(self._closed)), part)
                self._closed[again.index] = message_id, part, again
                self._out.end(again, part)

    # the end

    def _finish_answer(self, event: RunFinished) -> None:
        """Ends the answer, with calls for what the agent's run waits for."""
        self.is_over = True
        self._out.start()
        # First what belongs to a call that was told, so that the call ends with its interrupt.
        unnamed = [
            interrupt
            for interrupt in event.pending
            if interrupt.call is None or not self._is_named(interrupt)
        ]
        for index in list(self._calls.values()):
            self._settle(index)
        for interrupt in unnamed:
            self._add_question(interrupt)
        self._out.finish(
            self._end_reason(event),
            event.usage or self._usage,
            origin=self._answer_origin(),
            native=self._answer_notes(waits=bool(event.pending)),
        )

    def _end_reason(self, event: RunFinished) -> FinishReason:
        """Returns the reason for which the agent's answer ends, by the calls that it leaves
        open."""
        if event.outcome == "cancelled":
            return FinishReason.cancelled
        if any(
            isinstance(part, ToolCallPart) and part.run_by != "provider"
            for _, part, _ in self._closed.values()
        ):
            return FinishReason.tool_calls
        # The agent's model stopped for calls that the agent ran itself: nobody has to run them.
        if self._reason is None or self._reason is FinishReason.tool_calls:
            return FinishReason.stop
        return self._reason

    def _is_named(self, interrupt: Interrupt) -> bool:
        """True if the interrupt of the agent's run belongs to a call that was told, and attaches it
        to that call."""
        call = interrupt.call
        if call is None or any(
            part.id == call.id and part.run_by == "agent"
            for _, part, _ in self._closed.values()
            if isinstance(part, ToolCallPart)
        ):
            return call is not None
        if (index := self._calls.pop(call.id, None)) is None:
            return False
        closed_part = self._closed[index][1]
        if isinstance(closed_part, ToolCallPart):
            call = closed_part
        self._settle(index, attach_interrupt(call, interrupt))
        return True

    def _add_question(self, interrupt: Interrupt) -> None:
        """Adds to the agent's answer a call for an interrupt that belongs to no call of the run."""
        arguments = {
            name: value
            for name in ("message", "schema")
            if (value := getattr(interrupt, name)) is not None
        }
        call = interrupt.call or ToolCallPart(interrupt.id, _QUESTIONS[interrupt.reason], arguments)
        message_part = attach_interrupt(call, interrupt)
        opened = self._out.ensure_part(("waits", interrupt.id), message_part)
        self._closed[opened.index] = "", message_part, opened
        self._out.end(opened, message_part)

    def _fail_answer(self, error: DragomanError) -> None:
        """Ends the answer with the error of the agent's run."""
        self.is_over = True
        for index in list(self._calls.values()):
            self._settle(index)
        self._out.fail(error, self._usage, origin=self._answer_origin())

    def fail(self, error: DragomanError) -> list[Event]:
        """Ends the agent's answer with an error and returns the last events."""
        if not self.is_over:
            self._fail_answer(error)
        return self._out.take()

    def _answer_origin(self) -> Origin | None:
        if self._origin is None or self._run_id is None:
            return self._origin
        return msgspec.structs.replace(self._origin, response_id=self._run_id)

    def _answer_notes(self, *, waits: bool) -> Any:
        """Returns the notes that let the agent recognize its answer later: its thread and task, and
        how many parts each of its messages had."""
        whose = [self._closed[index][0] for index in sorted(self._closed)]
        turns = [[id_, len(list(same))] for id_, same in groupby(whose)]
        waiting_id = None
        if waits:
            waiting_id = self._task() or self._run_id
        notes: Json = {"thread": self._thread_id, "turns": turns, "waits": waiting_id}
        return self._own.note(**notes)


class AnswerDecoder:
    """A protocol's decoder whose run is told as one message."""

    def __init__(self, decoder: ResponseDecoder, answer: AgentAnswer) -> None:
        self._decoder, self.answer = decoder, answer

    def feed(self, data: bytes) -> list[Event]:
        """Reads more bytes, cut anywhere, and returns the events that they complete."""
        return self.answer.feed(self._decoder.feed(data))

    def close(self) -> list[Event]:
        """Ends the stream of an agent's answer and returns the last events."""
        events = self.answer.feed(self._decoder.close())
        if self.answer.is_over:
            return events
        return [
            *events,
            *self.answer.fail(
                StreamCutError("the stream ended before the run did. Send the request again.")
            ),
        ]
