"""The loop's one step: a model call and the tools it asks for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from dragoman.errors import TypedOutputError
from dragoman.event import PartStarted
from dragoman.fold import unfold
from dragoman.message import NOTES, FinishReason, Message, TextPart, ToolCallPart, ToolResultPart
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration.intake import Intake
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.state import StreamingState
from dragoman.request import ModelRequest
from dragoman.shapes import if_object
from dragoman.tools import ToolContext, runnable

__all__ = ["DefaultStreamingOrchestrator", "Steps", "StreamingOrchestrator", "response_metadata"]

Steps = AsyncGenerator[StreamingIterationResult, None]


class StreamingOrchestrator(Protocol):
    """Owns the loop's step. `initialize` is called once before the first, `finalize` once at the end, also on error."""

    provider_hint: str

    async def initialize(self, state: StreamingState) -> None:
        """Before the first step."""
        ...

    def process_iteration(
        self, model: ChatModel, state: StreamingState, output_schema: Mapping[str, Any] | None = None
    ) -> Steps:
        """One model call and the tools it asks for. The last result says whether the run goes on."""
        ...

    async def finalize(self, state: StreamingState) -> None:
        """After the last step, on error and cancellation too (D-06)."""
        ...


class DefaultStreamingOrchestrator:
    """Text as it comes; tool calls executed and their results given back; typed output by the provider's own means."""

    provider_hint = "default"

    async def initialize(self, state: StreamingState) -> None:
        """Nothing to prepare."""

    async def finalize(self, state: StreamingState) -> None:
        """Nothing to clean up."""

    async def process_iteration(
        self, model: ChatModel, state: StreamingState, output_schema: Mapping[str, Any] | None = None
    ) -> Steps:
        """One model call; a turn that the provider paused goes on in the same message (decision 21).

        Raises:
            DragomanError: the call failed; nothing is added to the history for it (D-32).
        """
        intake = state.reset_for_new_message(self.shows)
        request = self.request(state, output_schema)
        while True:
            async with aclosing(model.batches(request)) as batches:
                async for events in batches:
                    if told := intake.feed(events):
                        yield StreamingIterationResult(events=told, prefix=intake.prefix, shown=intake.shown)
                    if intake.error is not None:
                        raise intake.error
            if intake.finish is None or intake.finish.finish_reason is not FinishReason.pause:
                break
            request = request.replace(messages=(*state.conversation_history, intake.resume()))
        async with aclosing(self.finished(state, intake)) as results:
            async for result in results:
                yield result

    def request(self, state: StreamingState, output_schema: Mapping[str, Any] | None) -> ModelRequest:
        """The request of the next model call."""
        return state.request.replace(
            messages=state.conversation_history, tools=(*state.specs, *state.request.tools), output_schema=output_schema
        )

    def shows(self, part: PartStarted) -> bool:
        """Whether a part's deltas are the run's output."""
        return isinstance(part.part, TextPart)

    async def finished(self, state: StreamingState, intake: Intake) -> Steps:
        """The model has spoken: the message is told and kept, its calls are answered."""
        finish = intake.finish
        if finish is None:
            yield StreamingIterationResult(should_continue=False)
            return
        message = intake.message()
        calls = message.tool_calls
        for call in calls:
            state.tool_id_coordinator.register(call)
        if not message.content and self.asks_again_when_empty(state):
            yield StreamingIterationResult(usage=finish.usage)
            return
        state.add_to_history(message)
        state.intake = None
        correction = None if calls else self.correction(state, message)
        yield StreamingIterationResult(
            events=[intake.held, finish] if intake.held is not None else [finish],
            messages=(message,),
            should_continue=bool(calls) or correction is not None,
            finish_reason=finish.finish_reason or FinishReason.unspecified,
            usage=finish.usage,
            metadata=response_metadata(message),
            shown=intake.shown,
        )
        if calls:
            yield await self.answered(state, calls)
        elif correction is not None:
            yield self.said(state, correction)

    def asks_again_when_empty(self, state: StreamingState) -> bool:
        """An empty message right after tools: asked again once for each round of tools (D-29)."""
        if not state.has_recent_tool_execution or state.empty_after_tools_continuations:
            return False
        state.empty_after_tools_continuations += 1
        return True

    def correction(self, state: StreamingState, message: Message) -> Message | None:
        """What to tell the model about an output of the wrong type (decision 10); `None`: it is right.

        Raises:
            TypedOutputError: it has been told often enough.
        """
        if state.validate is None:
            return None
        try:
            state.validate(message.text)
        except ValueError as error:
            if not state.output_retries:
                raise TypedOutputError.because(str(error), output=message.text, partial=message) from error
            state.output_retries -= 1
            return Message.user(f"That is not a valid answer: {error}\nAnswer again, with valid JSON only.")
        return None

    async def answered(self, state: StreamingState, calls: Sequence[ToolCallPart]) -> StreamingIterationResult:
        """Executes the calls → one user message with all results in call order (D-28); what the client runs is pending."""
        mine = [call for call in calls if runnable(call, state.tool_map)]
        pending = tuple(call for call in calls if call not in mine)
        results = await self.execute_tool_calls(state, mine)
        state.request_next_message_prefix()
        state.empty_after_tools_continuations = 0
        if not results:
            return StreamingIterationResult(
                should_continue=False, pending=pending, finish_reason=FinishReason.tool_calls
            )
        told = self.said(state, Message.user(*results))
        if not pending:
            return told
        return StreamingIterationResult(
            events=told.events,
            messages=told.messages,
            should_continue=False,
            pending=pending,
            finish_reason=FinishReason.tool_calls,
        )

    async def execute_tool_calls(self, state: StreamingState, calls: Sequence[ToolCallPart]) -> list[ToolResultPart]:
        """Runs the tools. An override point of the seeds."""
        if not calls:
            return []
        state.check_tool_calls(len(calls))
        state.tool_calls_made += len(calls)
        context = ToolContext(state.deps, state.run_id, state.conversation_history)
        results = await state.executor.execute_batch(calls, state.tool_map, context)
        return [result.part for result in results]

    def said(self, state: StreamingState, message: Message) -> StreamingIterationResult:
        """A user message of the run's own: kept and told whole."""
        if state.new_id is not None:
            message = message.replace(id=state.new_id(), created_at=state.clock())
        state.add_to_history(message)
        return StreamingIterationResult(events=unfold([message]), messages=(message,))


def response_metadata(message: Message) -> dict[str, Any]:
    """What the provider said around its message (D-99), told once and never stored in the message's metadata."""
    metadata: dict[str, Any] = {}
    for notes in [own for key, own in (message.native or {}).items() if key.endswith(NOTES)]:
        metadata.update(if_object(if_object(notes).get("response")))
    origin = message.origin
    if origin is not None and origin.served_model:
        metadata["model"] = origin.served_model
    if origin is not None and origin.response_id:
        metadata["response_id"] = origin.response_id
    return metadata
