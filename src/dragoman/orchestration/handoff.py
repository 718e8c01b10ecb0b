"""Hand-offs: another agent continues the conversation. Its run is part of this one, and what it
says becomes a message of this run's model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import dropwhile
from typing import Any

import anyio
import msgspec

from dragoman.codec.json_values import read_extra_fields
from dragoman.errors import ResumeError, ToolError
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
from dragoman.fold import parse_call, part_events, unfold
from dragoman.json_bytes import Json
from dragoman.message import (
    OURS,
    Content,
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.orchestration.accumulator import Intake, MessageAccumulator
from dragoman.orchestration.interrupts import WaitingCall
from dragoman.orchestration.iteration import RETURN_RESULT, StreamingIterationResult
from dragoman.orchestration.resume import Decision
from dragoman.orchestration.shown_output import is_text
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.waiting import build_waiting_call, close_round
from dragoman.repair import find_open_calls
from dragoman.result import ChatResult
from dragoman.runtime import new_id
from dragoman.tools.agent_tool import Handoff, Transfer
from dragoman.tools.call_record import AgentWaits, InnerRun
from dragoman.tools.context import begin_inner_run, relay_of
from dragoman.tools.tool_result import error_result

__all__ = ["hand_over", "is_handoff", "transfer_results"]

_FILE_PARTS = (DataPart, FilePart, LinkPart)


def is_handoff(state: StreamingState, call: ToolCallPart) -> bool:
    """True if a call hands the conversation to another agent."""
    return call.state == "complete" and isinstance(state.tool_map.get(call.name), Handoff)


def transfer_results(
    state: StreamingState, calls: Sequence[ToolCallPart], *, waits: bool, **details: Any
) -> list[ToolResultPart]:
    """Returns the results of hand-off calls. The first call hands over, unless another call of the
    round waits. `details`: fields of the `Transfer`."""
    results: list[ToolResultPart] = []
    for call in calls:
        tool = state.tool_map[call.name]
        assert isinstance(tool, Handoff)
        try:
            _check_transfer(state, tool, call, waits=waits)
        except Exception as error:  # noqa: BLE001 - a schema of the user's may raise anything: the model is told
            results.append(error_result(call, error).part)
            continue
        state.account.begin(tool_calls=1)
        state.transfer = Transfer(tool, **details)
        results.append(
            ToolResultPart(call.id, call.name, f"Handed over to {tool.to}, who goes on from here.")
        )
    return results


def _check_transfer(
    state: StreamingState, tool: Handoff, call: ToolCallPart, *, waits: bool
) -> None:
    """Raises `ToolError` if a hand-off call cannot hand over now."""
    if waits or state.output is not None:
        raise ToolError(
            "not handed over: another call of the same answer comes first; call it again after that"
        )
    if state.transfer is not None:
        raise ToolError(f"not handed over: {state.transfer.tool.to} goes on")
    tool.convert_arguments(call.arguments)


async def hand_over(
    state: StreamingState, transfer: Transfer, *, by_call: bool
) -> AsyncGenerator[StreamingIterationResult, None]:
    """Carries out a hand-off: runs the other agent and yields its steps as this run's. `by_call`:
    this run's output is the arguments of a `return_result` call.

    Raises:
        Exception: what the other's run failed with.
    """
    tool, context = transfer.tool, state.tool_context()
    history = [*dropwhile(_is_system, state.conversation_history)]
    before, prompt = InnerRun(after=history[-1].id), None
    if transfer.runs:
        before, prompt = transfer.runs[-1], _join_messages(transfer.new)
        history = [*_messages_until(history, before.after), *before.messages]
    options: Json = {
        **state.output_options,
        "history": history,
        "resume": transfer.resume,
    }
    if tool.limits is not None:
        options["limits"] = tool.limits
    # The other agent has its own system message, and the state of this run.
    run = begin_inner_run(context, tool.sender(), prompt, share_state=True, **options)
    relay, answer = relay_of(context, run), _OtherAnswer(state, tool.to, by_call=by_call)
    if events := answer.repeat(run.so_far()):
        yield StreamingIterationResult(events=events)
    try:
        async with aclosing(run.steps()) as steps:
            async for step in steps:
                answer.watch(step.events)
                yield StreamingIterationResult(
                    events=[*relay.feed(step.events), *answer.feed(step.pieces)]
                )
    finally:
        # Also where this run is cancelled: the stream must tell how the inner run ended.
        with anyio.CancelScope(shield=True):
            state.outbox.put(relay.feed(await run.leave()))
    if run.exception is not None:
        raise run.exception
    result: ChatResult[str] = run.so_far()
    state.losses |= dict.fromkeys(result.losses)
    if result.pending:
        call = ToolCallPart((state.new_id or new_id)(), tool.name)
        yield answer.finish(result, call)
        inner_run = InnerRun((*before.messages, *result.messages), after=before.after)
        yield _wait_for_agent(state, call, AgentWaits(result.pending, (inner_run,)))
    else:
        yield answer.finish(result)
        if (returned := answer.returned) is not None:
            tool_round = state.begin_round([returned])
            tool_round.add(0, ToolResultPart(returned.id, returned.name, "ok"))
            step = close_round(state, tool_round, [])
            yield msgspec.structs.replace(
                step, should_continue=False, finish_reason=FinishReason.stop
            )


class _OtherAnswer:
    """Rewrites what the other agent shows into a message of this run's model, while it streams."""

    def __init__(self, state: StreamingState, to: str, *, by_call: bool) -> None:
        """Prepares the answer of the agent that a handoff goes to."""
        self._state, self._to, self._by_call = state, to, by_call
        self._new_id = state.new_id or new_id
        self._id = ""
        self._texts: list[str] = []
        self._open: ToolCallPart | OpenText = OpenText()
        self._source: MessageStarted | None = None
        self._thinking: list[ThinkingPart] = []
        self._index = 0
        self._intake = state.intake = Intake(MessageAccumulator(), state.losses, turn=state.turn)
        state.shows = _is_output_call if by_call else is_text
        self.returned: ToolCallPart | None = None
        """The call whose arguments are the output, once it is whole."""

    def watch(self, events: Sequence[Event]) -> None:
        """Remembers the start and the thinking of the other's streamed message. Its text is
        repeated here, and signed thinking must precede the text that it belongs to."""
        for event in events:
            if isinstance(event, MessageStarted) and event.role is Role.MODEL:
                self._source, self._thinking = event, []
            elif isinstance(event, PartFinished) and isinstance(event.part, ThinkingPart):
                self._thinking.append(event.part)

    def feed(self, pieces: Sequence[ChatResult[str]]) -> Sequence[Event]:
        """Takes pieces of the output of the run that was handed to, and returns the events of this
        run's message."""
        events: list[Event] = []
        for piece in pieces:
            if piece.retracted:
                events += self._retract_text("".join(self._texts).removesuffix(piece.retracted))
            if piece.output:
                events += [*self._begin_text(), PartDelta(self._id, self._index, piece.output)]
                self._texts.append(piece.output)
        return self._intake.feed(events)

    def repeat(self, result: ChatResult[str]) -> Sequence[Event]:
        """Takes what the other run has said in an earlier process. Returns the events that show it
        again."""
        if not result.output:
            return ()
        spoken = (message for message in result.messages if message.role is Role.MODEL)
        self.watch(unfold([next(message for message in spoken if message.text or self._by_call)]))
        return self.feed([result])

    def _finish_text(self, text: str) -> Content:
        """Returns the hand-off's open part with its whole text: a text, or the call that returns
        the output."""
        if not isinstance(self._open, ToolCallPart):
            return TextPart(text)
        self.returned = parse_call(self._open, text)
        return self.returned

    def finish(
        self, result: ChatResult[str], call: ToolCallPart | None = None
    ) -> StreamingIterationResult:
        """Returns the step that ends the message after a hand-off. `call`: the open call with which
        a waiting agent continues later."""
        state = self._state
        events: list[Event] = []
        other_parts = _list_files(result.messages)
        reason = result.finish_reason
        if call is not None:
            other_parts, reason = [call], FinishReason.tool_calls
            # An agent that waits has no valid output yet.
            if self._by_call:
                events += self._retract_text("")
        if other_parts and not self._id:
            events += self._begin_message()
        next_index = self._index
        if text := "".join(self._texts):
            events.append(PartFinished(self._id, self._index, self._finish_text(text)))
            next_index += 1
        for index, part in enumerate(other_parts, next_index):
            events += part_events(self._id, index, part)
        metadata = {"agent": self._to, **read_extra_fields(result.metadata, "thinking")}
        if not self._id:
            state.intake = None
            return StreamingIterationResult(
                should_continue=False, finish_reason=reason, metadata=metadata
            )
        origin, agent = _find_origin(result.messages), {"agent": metadata["agent"]}
        told_events = self._intake.feed(
            [*events, MessageFinished(self._id, reason, origin=origin, metadata=agent)]
        )
        message, state.intake = self._intake.message(), None
        state.add_to_history(message)
        if self.returned is not None:
            state.output = text
        return StreamingIterationResult(
            events=[*told_events, *self._intake.end()],
            messages=(message,),
            should_continue=False,
            finish_reason=reason,
            metadata=metadata,
        )

    def _begin_text(self) -> list[Event]:
        """Returns the events that start the hand-off's message and its text; none if they have
        started."""
        if self._id:
            return []
        events = self._begin_message()
        self._index, self._open = 0, OpenText()
        if self._by_call:
            self._open = ToolCallPart(self._new_id(), RETURN_RESULT)
        else:
            for index, part in enumerate(self._thinking):
                events += part_events(self._id, index, part)
            self._index = len(self._thinking)
        return [*events, PartStarted(self._id, self._index, self._open)]

    def _begin_message(self) -> list[Event]:
        """Returns the event that starts the message after a hand-off."""
        self._id = self._new_id()
        native = self._source.native if self._source is not None else None
        ours = {OURS: native[OURS]} if native and OURS in native else None
        return [MessageStarted(self._id, Role.MODEL, native=ours, created_at=self._state.clock())]

    def _retract_text(self, remaining: str) -> list[Event]:
        """Returns the events that withdraw the hand-off's message and show it again with the
        remaining text."""
        if not self._id:
            return []
        events: list[Event] = [MessageDropped(self._id, f"{self._to} began again")]
        self._id, self._texts = "", []
        if remaining:
            self._texts.append(remaining)
            events += self._begin_text()
            events.append(PartDelta(self._id, self._index, remaining))
        return events


def _wait_for_agent(
    state: StreamingState, call: ToolCallPart, waits: AgentWaits
) -> StreamingIterationResult:
    """Returns the step that ends a run after a hand-off to an agent that waits: an open call waits
    for the same interrupts."""
    tool_round = state.begin_round([call])
    open_call = next(
        candidate
        for candidate in find_open_calls(state.conversation_history)
        if candidate.call.id == call.id
    )
    decided = Decision(WaitingCall(open_call, ()), approved=True)
    return close_round(
        state,
        tool_round,
        [build_waiting_call(state, open_call, waits, state.records.of(call), decided)],
    )


def _messages_until(messages: Sequence[Message], message_id: str | None) -> list[Message]:
    """Returns the messages that a hand-off passes on: up to and including the one with that id.

    Raises:
        ResumeError: it is not among them.
    """
    count = next(
        (count for count, message in enumerate(messages, 1) if message.id == message_id), 0
    )
    if not count:
        raise ResumeError(
            f"the history lacks the message {message_id!r}, with which the conversation was handed over to the agent that waits; "
            "send it with the ids that its messages have"
        )
    return [*messages[:count]]


def _is_system(message: Message) -> bool:
    return message.role is Role.SYSTEM


def _is_output_call(event: PartStarted) -> bool:
    """True if a part is a call of `return_result`."""
    return isinstance(event.part, ToolCallPart) and event.part.name == RETURN_RESULT


def _join_messages(messages: Sequence[Message]) -> Message | None:
    """Returns the content of messages as the one user message of a hand-off, or None if there are
    none."""
    if not messages:
        return None
    return Message.user(*[piece for message in messages for piece in message.content])


def _list_files(messages: Sequence[Message]) -> list[Content]:
    """Returns the files that the other agent's model made."""
    parts = [part for message in messages if message.role is Role.MODEL for part in message.parts]
    return [part for part in parts if isinstance(part, _FILE_PARTS)]


def _find_origin(messages: Sequence[Message]) -> Origin | None:
    """Returns the origin of the last answer of the agent that was handed to, without its response
    id: this run's provider does not know that response."""
    origins = [
        message.origin
        for message in messages
        if message.role is Role.MODEL and message.origin is not None
    ]
    if not origins:
        return None
    return msgspec.structs.replace(origins[-1], response_id=None)
