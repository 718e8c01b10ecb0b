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

from dragoman.codec.decoder import ResponseDecoder
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.marks import attach_interrupt
from dragoman.codec.native import WireNative
from dragoman.errors import DragomanError, StreamCutError
from dragoman.event import (
    Custom,
    Event,
    InnerRuns,
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
}
"""What is waited for → the name of a call that stands for it where the agent names none."""


class AgentAnswer:
    """The events of a run → those of a message. Fed with lists, as they come."""

    def __init__(
        self,
        own: WireNative,
        *,
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
        tools: Collection[str] = (),
        task: Callable[[], str] = str,
    ) -> None:
        """`own`: of the wire, whose notes say how the message is told to the agent again. `tools`:
        names of those that the agent was sent: calls of others are its own. `task`: gives the id of
        what goes on there, where that is not the run's."""
        self._task = task
        self._own, self._origin, self._new_id, self._tools = own, origin, new_id, tools
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
        """The agent's id of the run (of the task, where it has tasks); `None`: it has not begun, or
        is over."""
        return None if self.is_over or self._run_id is None else self._task() or self._run_id

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """The run's next events → the message's."""
        for event in events:
            if type(event) is PartDelta:
                if (part := self._parts.get((event.message_id, event.index))) is not None:
                    self._out.add(part, event.delta)
            elif not self._inner.has(event) and not self.is_over:
                self._take(event)
        return self._out.take()

    def _take(self, event: Event) -> None:
        if isinstance(event, MessageStarted):
            is_model = event.role is Role.MODEL and event.candidate == 0
            for is_there, whose in (
                (is_model, self._models),
                (event.role is Role.USER, self._users),
            ):
                (whose.add if is_there else whose.discard)(event.message_id)
        elif isinstance(event, PartStarted):
            self._begin(event)
        elif isinstance(event, PartFinished):
            self._end(event)
        elif isinstance(event, MessageFinished):
            if event.message_id in self._models:
                self._reason = event.finish_reason or self._reason
                self._usage = (
                    event.usage if self._usage is None else self._usage + (event.usage or Usage())
                )
        elif isinstance(event, MessageDropped):
            self._drop(event)
        elif isinstance(event, StateSnapshot | StateDelta | Custom):
            self._out.events.append(msgspec.structs.replace(event, run_id=None))
        elif isinstance(event, RunStarted):
            self._run_id, self._thread_id = event.run_id, event.thread_id
        elif isinstance(event, RunFinished):
            self._finish(event)
        elif isinstance(event, RunError):
            self._fail(event.error)

    # parts

    def _begin(self, event: PartStarted) -> None:
        part, key = event.part, (event.message_id, event.index)
        if event.message_id in self._models and not isinstance(part, ToolResultPart):
            self._parts[key] = self._out.ensure_part(key, self._whose(part))

    def _whose(self, part: Content) -> Content:
        """A call of the agent's own says so."""
        if not isinstance(part, ToolCallPart) or part.run_by == "provider":
            return part
        return msgspec.structs.replace(
            part, run_by="agent" if part.name in self._tools else "provider"
        )

    def _end(self, event: PartFinished) -> None:
        key, part = (event.message_id, event.index), event.part
        if isinstance(part, ToolResultPart):
            if event.message_id in self._models or event.message_id in self._users:
                self._answered(event.message_id, part)
            return
        opened = self._parts.pop(key, None)
        if opened is None:
            return
        shown = self._whose(part)
        self._closed[opened.index] = event.message_id, shown, opened
        if isinstance(shown, ToolCallPart) and shown.run_by == "provider":
            self._calls[shown.id] = (
                opened.index
            )  # until its result, or the end of the run, says what becomes of it
        else:
            self._out.end(opened, shown)

    def _answered(self, message_id: str, result: ToolResultPart) -> None:
        """What came of a call of the agent's own."""
        if (index := self._calls.pop(result.id, None)) is not None:
            self._settle(index)
        shown = msgspec.structs.replace(result, run_by="provider")
        opened = self._out.ensure_part((message_id, "result", result.id, len(self._closed)), shown)
        self._closed[opened.index] = message_id, shown, opened
        self._out.end(opened, shown)

    def _settle(self, index: int, shown: ToolCallPart | None = None) -> None:
        message_id, part, opened = self._closed[index]
        self._closed[index] = message_id, shown or part, opened
        self._out.end(opened, shown or part)

    def _drop(self, event: MessageDropped) -> None:
        """A message is void: what was told is, too, and what stands of it is told again."""
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

    def _finish(self, event: RunFinished) -> None:
        self.is_over = True
        self._out.start()
        waits = [each for each in event.pending if each.call is None or not self._is_named(each)]
        for index in list(self._calls.values()):
            self._settle(index)
        for each in waits:
            self._ask(each)
        asks = any(
            isinstance(part, ToolCallPart) and part.run_by != "provider"
            for _, part, _ in self._closed.values()
        )
        reason = FinishReason.tool_calls if asks else self._reason or FinishReason.stop
        if reason is FinishReason.tool_calls and not asks:
            reason = FinishReason.stop
        if event.outcome == "cancelled":
            reason = FinishReason.cancelled
        self._out.finish(
            reason,
            event.usage or self._usage,
            origin=self._answer_origin(),
            native=self._notes(waits=bool(event.pending)),
        )

    def _is_named(self, interrupt: Interrupt) -> bool:
        """Whether what is waited for is a call that was told, which says so then."""
        call = interrupt.call
        if call is None or any(
            part.id == call.id and part.run_by == "agent"
            for _, part, _ in self._closed.values()
            if isinstance(part, ToolCallPart)
        ):
            return call is not None
        if (index := self._calls.pop(call.id, None)) is None:
            return False
        shown = self._closed[index][1]
        self._settle(
            index, attach_interrupt(shown if isinstance(shown, ToolCallPart) else call, interrupt)
        )
        return True

    def _ask(self, interrupt: Interrupt) -> None:
        """What is waited for without a call that was told, as one."""
        arguments = {
            name: value
            for name in ("message", "schema")
            if (value := getattr(interrupt, name)) is not None
        }
        call = interrupt.call or ToolCallPart(interrupt.id, _QUESTIONS[interrupt.reason], arguments)
        shown = attach_interrupt(call, interrupt)
        opened = self._out.ensure_part(("waits", interrupt.id), shown)
        self._closed[opened.index] = "", shown, opened
        self._out.end(opened, shown)

    def _fail(self, error: DragomanError) -> None:
        self.is_over = True
        for index in list(self._calls.values()):
            self._settle(index)
        self._out.fail(error, self._usage, origin=self._answer_origin())

    def fail(self, error: DragomanError) -> list[Event]:
        """The answer ends with an error → the last events."""
        if not self.is_over:
            self._fail(error)
        return self._out.take()

    def _answer_origin(self) -> Origin | None:
        if self._origin is None or self._run_id is None:
            return self._origin
        return msgspec.structs.replace(self._origin, response_id=self._run_id)

    def _notes(self, *, waits: bool) -> Any:
        """What the agent must hear again: which conversation and task it was, and which of its
        messages the pieces are."""
        whose = [self._closed[index][0] for index in sorted(self._closed)]
        turns = [[id_, len(list(same))] for id_, same in groupby(whose)]
        waiting_id = (self._task() or self._run_id) if waits else None
        notes: Json = {"thread": self._thread_id, "turns": turns, "waits": waiting_id}
        return self._own.note(**notes)


class AnswerDecoder:
    """A protocol's decoder whose run is told as one message."""

    def __init__(self, decoder: ResponseDecoder, answer: AgentAnswer) -> None:
        self._decoder, self.answer = decoder, answer

    def feed(self, data: bytes) -> list[Event]:
        """More bytes, cut anywhere → the events that they complete."""
        return self.answer.feed(self._decoder.feed(data))

    def close(self) -> list[Event]:
        """The end of the bytes → the last events."""
        events = self.answer.feed(self._decoder.close())
        if self.answer.is_over:
            return events
        return [
            *events,
            *self.answer.fail(
                StreamCutError("the stream ended before the run did. Send the request again.")
            ),
        ]
