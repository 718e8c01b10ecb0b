"""Orchestrators: one step of a run, a model call and the tools that it asks for.

A run calls `process_iteration` again and again until a step says that it does not go on. One
iteration sends a request, passes on the model's events as they come (`Intake`), stores the
finished message, and then answers its calls. `answer_calls` holds back the calls that wait for a
person or a client, runs the others in a `ToolRound`, and ends with one message of all results.

An answer of the wrong type or an empty answer after tools adds another iteration instead. The
methods without an underscore are the points that subclasses override.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Collection, Sequence
from functools import lru_cache
from typing import Protocol

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.errors import ModelRetry, TypedOutputError
from dragoman.event import Event, MessageDropped, MessageFinished, PartStarted
from dragoman.fold import unfold
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    NOTES,
    FinishReason,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration.accumulator import Intake
from dragoman.orchestration.handoff import is_handoff, transfer_results
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.shown_output import is_text
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.tool_round import ToolRound
from dragoman.orchestration.waiting import close_round, hold_back_calls
from dragoman.request import ModelRequest
from dragoman.tools import AskUser, ToolExecutionResult

__all__ = ["DefaultStreamingOrchestrator", "Steps", "StreamingOrchestrator", "response_metadata"]

_CAPITAL = re.compile(r"(?<=[a-z0-9])[A-Z]")

Steps = AsyncGenerator[StreamingIterationResult, None]

_MOST_PAUSES = 20
"""Times that one message is continued after the provider paused its turn."""


def _count_said(message: Message) -> int:
    """Returns how many pieces a message has that are not its provider's alone."""
    return sum(not isinstance(piece, ProviderPart) for piece in message.content)


class StreamingOrchestrator(Protocol):
    """Protocol of an orchestrator, which makes one step of the loop at a time. `initialize` is
    called once before the first step, `finalize` once at the end, also after an error.

    Whatever has these three methods will do. A run shows the text of the model's messages and tells
    the events of messages for which an orchestrator gave none; see `StreamingIterationResult`.
    """

    provider_hint: str

    def initialize(self, state: StreamingState) -> Awaitable[None] | None:
        """Prepares the run before its first step; plain or async."""
        ...

    def process_iteration(
        self,
        model: ChatModel,
        state: StreamingState,
        output_schema: JsonMap | None = None,
    ) -> Steps:
        """Calls the model once and runs the tools that it asks for. The last step says whether the
        run goes on."""
        ...

    def finalize(self, state: StreamingState) -> Awaitable[None] | None:
        """Cleans up after the last step, also after an error or a cancellation; plain or async."""
        ...


class DefaultStreamingOrchestrator:
    """Streams text, runs tool calls and returns their results to the model, and leaves typed output
    to the provider."""

    provider_hint = "default"
    own_tools: frozenset[str] = frozenset()
    """Names of tools that the orchestrator answers itself, in `own_results`, after the other
    tools."""

    async def initialize(self, state: StreamingState) -> None:
        """Does nothing."""

    async def finalize(self, state: StreamingState) -> None:
        """Does nothing."""

    async def process_iteration(
        self,
        model: ChatModel,
        state: StreamingState,
        output_schema: JsonMap | None = None,
    ) -> Steps:
        """Calls the model once, as orchestrators do by default. If the provider pauses its turn,
        the next call continues the same message.

        Raises:
            DragomanError: the call failed; nothing is added to the history for it.
        """
        intake = state.reset_for_new_message(self.shows)
        request = self.request(state, output_schema)
        said = -1
        # A provider that pauses without an end is left with what it has said.
        for pauses in range(_MOST_PAUSES + 1):
            batches = model.batches(request)
            try:
                async for events in batches:
                    if passed_events := intake.feed(events):
                        yield StreamingIterationResult(
                            events=passed_events, output=state.output_of(passed_events)
                        )
                    if intake.error is not None:
                        raise intake.error
            finally:
                await batches.aclose()
            paused = intake.finish and intake.finish.finish_reason is FinishReason.pause
            if not paused or pauses == _MOST_PAUSES:
                break
            before, said = said, _count_said(intake.message())
            if said == before or "compaction" in request.options:
                # It has paused twice and said nothing between, or was asked to sum up and no more.
                break
            # The provider paused a long turn: sent again with what it has said so far, it goes on.
            request = request.replace(messages=(*state.conversation_history, intake.resume()))
        results = self.finish_message(state, intake)
        try:
            async for result in results:
                yield result
        finally:
            await results.aclose()

    def request(self, state: StreamingState, output_schema: JsonMap | None) -> ModelRequest:
        """Returns the orchestrator's request of the next model call."""
        request = state.request.replace(
            messages=state.conversation_history,
            tools=(*state.specs, *state.request.tools),
            output_schema=output_schema,
        )
        shared, run = state.shared.value, request.run
        if run is None or run.state == shared:
            return request
        return request.replace(run=msgspec.structs.replace(run, state=shared))

    def shows(self, part: PartStarted) -> bool:
        """True if a part's deltas are output of the run."""
        return is_text(part)

    async def finish_message(self, state: StreamingState, intake: Intake) -> Steps:
        """Shows and stores the model's finished message, then answers its calls."""
        finish = intake.finish
        if finish is None:
            yield StreamingIterationResult(should_continue=False)
            return
        message = intake.message()
        if _is_empty(message) and self.asks_again_when_empty(state):
            state.intake = None
            yield _drop_message(intake, finish)
            return
        checked = await self._check_output(state, message)
        if checked is message:
            events = intake.end()
        else:
            events = _tell_again(intake, checked)
            message = checked
        state.add_to_history(message)
        state.intake = None
        yield StreamingIterationResult(
            events=events,
            messages=(message,),
            should_continue=bool(message.tool_calls),
            finish_reason=finish.finish_reason or FinishReason.unspecified,
            usage=finish.usage,
            metadata=response_metadata(message),
        )
        steps = self.answer_message(state, message)
        try:
            async for step in steps:
                yield step
        finally:
            await steps.aclose()

    async def answer_message(self, state: StreamingState, message: Message) -> Steps:
        """Answers the calls of the model's last message, which is stored, or corrects its output.
        Yields no step if there is nothing to do."""
        for call in message.tool_calls:
            state.tool_id_coordinator.register(call)
        if message.tool_calls:
            steps = self.answer_calls(state, message.tool_calls)
            try:
                async for step in steps:
                    yield step
            finally:
                await steps.aclose()
            if state.failure is not None:
                raise state.failure
        elif (correction := self._correct(state, message)) is not None:
            yield self.add_message(state, correction)

    async def judge_stored(self, state: StreamingState, message: Message) -> None:
        """Has the output checks judge a message again that an earlier process has stored. They change
        nothing of it."""
        await self._check_output(state, message, is_stored=True)

    def asks_again_when_empty(self, state: StreamingState) -> bool:
        """True if the model is asked again because its message after tool results was empty: once
        for each round of tools."""
        if not state.has_recent_tool_execution or state.empty_after_tools_continuations:
            return False
        state.empty_after_tools_continuations += 1
        return True

    def correction(self, state: StreamingState, message: Message) -> Message | None:
        """Returns the orchestrator's message that tells the model why its output has the wrong
        type, or None if it is valid.

        Raises:
            TypedOutputError: it has been told often enough.
        """
        if state.validate is None:
            return None
        try:
            state.validate(message.text)
        except ValueError as error:
            if state.output_retries < 1:
                raise TypedOutputError.because(
                    str(error), output=message.text, partial=message
                ) from error
            state.output_retries -= 1
            return Message.user(
                f"That is not a valid answer: {error}\nAnswer again, with valid JSON only."
            )
        return None

    def read_output(self, message: Message) -> str | None:
        """Returns the text of the run's output if a message holds it, for output checks."""
        return None if message.tool_calls else message.text

    def write_output(self, message: Message, text: str) -> Message:
        """Returns a message with another text as its output, as this orchestrator writes it."""
        is_text = [isinstance(part, TextPart) for part in message.content]
        start = [*is_text, True].index(True)
        behind = [part for part in message.content[start:] if not isinstance(part, TextPart)]
        # A text part is never empty.
        texts = [TextPart(text)][: len(text)]
        return message.replace(content=(*message.content[:start], *texts, *behind))

    async def _check_output(
        self, state: StreamingState, message: Message, *, is_stored: bool = False
    ) -> Message:
        """Runs the orchestrator's output checks on a finished message. Returns it as they leave it.
        What they send back stands in `state.refused`. `is_stored`: the checks have left it so."""
        state.refused = None
        if state.checks is None:
            return message
        text = self.read_output(message)
        # What has another type is told to the model anyway.
        if text is None or not state.checks.can_read(text):
            return message
        try:
            accepted = await state.checks.apply(state.tool_context(), text, is_final=is_stored)
        except ModelRetry as error:
            state.refused = error.message
            return message
        if accepted == text:
            return message
        return self.write_output(message, accepted)

    def _correct(self, state: StreamingState, message: Message) -> Message | None:
        """Returns what the model is told if its output has the wrong type, or a check sends it
        back; None if it is good."""
        if state.refused is None:
            return self.correction(state, message)
        if state.output_retries < 1:
            raise TypedOutputError.refused(state.refused, output=message.text, partial=message)
        state.output_retries -= 1
        return Message.user(state.refused)

    def _add_own_results(
        self,
        state: StreamingState,
        tool_round: ToolRound,
        calls: Sequence[ToolCallPart],
        slots: Sequence[int],
    ) -> None:
        """Adds the results of the orchestrator's own tools. `slots`: the indexes of their calls."""
        if slots:
            results = self.own_results(state, [calls[slot] for slot in slots])
            _add_results(tool_round, slots, results)

    async def answer_calls(self, state: StreamingState, calls: Sequence[ToolCallPart]) -> Steps:
        """Runs one round of tool calls. Yields a step for the events of each tool, then a last one,
        which ends the user message with all results in the order of the calls. Calls of the client's
        tools, approvals and questions become pending.

        A slot is the place of a call among those that run. Not run here are calls of the
        orchestrator's own tools, hand-offs, and calls whose result is known already.
        """
        runnable, waiting = await hold_back_calls(state, calls)
        own_slots = [slot for slot, call in enumerate(runnable) if call.name in self.own_tools]
        transfers = [slot for slot, call in enumerate(runnable) if is_handoff(state, call)]
        tool_round = state.begin_round(runnable)
        settled = state.settle_calls(runnable, {*own_slots, *transfers})
        _add_results(tool_round, [*settled], [*settled.values()])
        left_out = {*own_slots, *transfers, *settled}
        if len(left_out) < len(runnable):
            self._start_tools(state, tool_round, runnable, left_out)
            try:
                while events := await tool_round.events():
                    yield StreamingIterationResult(events=events)
            finally:
                await tool_round.end()
        self._add_own_results(state, tool_round, runnable, own_slots)
        _add_transfers(state, tool_round, runnable, transfers, waits=bool(waiting))
        # The next text of the model begins a new line, and it may be empty again as often.
        state.request_next_message_prefix()
        state.empty_after_tools_continuations = 0
        last_step = close_round(state, tool_round, waiting)
        # The other agent continues in place of this run's model.
        if state.transfer is not None:
            last_step = msgspec.structs.replace(last_step, should_continue=False)
        yield last_step

    def _start_tools(
        self,
        state: StreamingState,
        tool_round: ToolRound,
        calls: Sequence[ToolCallPart],
        without: Collection[int],
    ) -> None:
        """Starts to run, for the orchestrator, the calls, except those in the slots `without`."""
        slots = [slot for slot in range(len(calls)) if slot not in without]
        selected = calls if len(slots) == len(calls) else [calls[slot] for slot in slots]
        base_method = DefaultStreamingOrchestrator.execute_tool_calls
        if type(self).execute_tool_calls is base_method and state.executor.reports:

            def report(index: int, result: ToolExecutionResult) -> None:
                tool_round.report(slots[index], result)

            work = state.executor.execute_reporting(selected, state.tool_map, report)
            tool_round.start(work, reports=len(selected))
        else:
            tool_round.start(self._run_batch(state, tool_round, selected, slots))

    async def _run_batch(
        self,
        state: StreamingState,
        tool_round: ToolRound,
        calls: Sequence[ToolCallPart],
        slots: Sequence[int],
    ) -> None:
        """Runs calls through an overridden method or a custom executor and adds the results at
        their slots."""
        results = await self.execute_tool_calls(state, calls)
        asking = [id(call) for call, _ in tool_round.asks]
        slots = [slot for slot, call in zip(slots, calls, strict=True) if id(call) not in asking]
        # An overriding method may give more or fewer results: then they stand behind the calls.
        if len(results) != len(slots):
            slots = range(len(slots) + len(calls), len(slots) + len(calls) + len(results))
        for slot, part in zip(slots, results, strict=True):
            tool_round.add(slot, part)

    async def execute_tool_calls(
        self, state: StreamingState, calls: Sequence[ToolCallPart]
    ) -> list[ToolResultPart]:
        """Runs the tools of the orchestrator's calls and returns their results, without those that
        ask a person first. An override point of the seeds: if overridden, results appear when it
        returns, not one by one."""
        if not calls:
            return []
        results = await state.executor.execute_batch(calls, state.tool_map)
        if state.tool_round is not None:
            state.tool_round.asks += [
                (result.tool_call, result.exception)
                for result in results
                if isinstance(result.exception, AskUser)
            ]
        return [result.part for result in results if not isinstance(result.exception, AskUser)]

    def own_results(
        self,
        state: StreamingState,  # noqa: ARG002
        calls: Sequence[ToolCallPart],  # noqa: ARG002
    ) -> list[ToolResultPart]:
        """Returns the results of the orchestrator's own calls of `own_tools`, in order."""
        return []

    def add_message(self, state: StreamingState, message: Message) -> StreamingIterationResult:
        """Adds a user message of the orchestrator itself and returns the step that shows it."""
        if state.new_id is not None:
            message = message.replace(id=state.new_id(), created_at=state.clock())
        state.add_to_history(message)
        return StreamingIterationResult(events=unfold([message]), messages=(message,))


def _is_empty(message: Message) -> bool:
    """True if a message contains nothing but thinking."""
    return all(isinstance(part, ThinkingPart) for part in message.content)


def response_metadata(message: Message) -> Json:
    """Returns the provider's metadata about its response, for a step of the orchestrator, which is
    shown once and never stored in the message. Keys are in snake_case, whatever the provider
    writes."""
    metadata: Json = {}
    for notes in [fields for key, fields in (message.native or {}).items() if key.endswith(NOTES)]:
        for name, value in if_object(if_object(notes).get("response")).items():
            metadata[_write_in_snake_case(name)] = value
    origin = message.origin
    if origin is not None and origin.served_model:
        metadata["model"] = origin.served_model
    if origin is not None and origin.response_id:
        metadata["response_id"] = origin.response_id
    return metadata


@lru_cache
def _write_in_snake_case(name: str) -> str:
    return _CAPITAL.sub(lambda letter: f"_{letter[0].lower()}", name)


def _drop_message(intake: Intake, finish: MessageFinished) -> StreamingIterationResult:
    """Returns the orchestrator's step that drops an empty message before the model is asked
    again."""
    # Nobody has seen the start of a message that is still held.
    if intake.held is not None:
        return StreamingIterationResult(events=[], usage=finish.usage)
    dropped = MessageDropped(finish.message_id, "nothing was said; the model is asked again")
    return StreamingIterationResult(events=[dropped], usage=finish.usage)


def _tell_again(intake: Intake, message: Message) -> list[Event]:
    """Returns the events of a message that an orchestrator's output check changed, in place of what
    was shown of it."""
    events = unfold([message])
    if intake.held is not None:
        return events
    return [MessageDropped(message.id or "", "an output check changed it"), *events]


def _add_transfers(
    state: StreamingState,
    tool_round: ToolRound,
    calls: Sequence[ToolCallPart],
    slots: Sequence[int],
    *,
    waits: bool,
) -> None:
    """Adds the results of the orchestrator's hand-off calls. `slots`: their indexes. `waits`: a
    call was held back."""
    # A tool that ran in this round may have asked, and then its call waits too.
    waits = waits or bool(tool_round.asks)
    results = transfer_results(state, [calls[slot] for slot in slots], waits=waits)
    _add_results(tool_round, slots, results)


def _add_results(
    tool_round: ToolRound, slots: Sequence[int], results: Sequence[ToolResultPart]
) -> None:
    """Adds the results of some of the orchestrator's calls to a round. `slots`: the numbers of
    those calls in it."""
    for slot, part in zip(slots, results, strict=True):
        tool_round.add(slot, part)
