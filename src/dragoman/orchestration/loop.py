"""What a run does from its first event to its last: model calls, the tools between them, and other
agents that go on in its place (`Loop`); and the same between the hooks of its start and its end
(`watch_run`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from inspect import isawaitable
from logging import DEBUG, WARNING
from time import monotonic
from typing import Literal

import anyio
import msgspec

from dragoman.errors import DragomanError
from dragoman.event import Event, RunError, RunFinished, RunStarted, StepFinished, StepStarted
from dragoman.fold import unfold
from dragoman.hooks import RequestLoss, RunEnd, RunStart, call_hooks
from dragoman.json_bytes import JsonMap
from dragoman.logs import logger
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration.going_on import go_on
from dragoman.orchestration.handing_over import hand_over
from dragoman.orchestration.iteration import RETURN_RESULT, Rewriting, StreamingIterationResult
from dragoman.orchestration.orchestrator import StreamingOrchestrator
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.transcript import Transcript
from dragoman.result import ChatResult
from dragoman.tools.outcome import describe_error

__all__ = [
    "Ending",
    "Loop",
    "wrap_foreign_error",
    "watch_run",
]

_LOG = logger("run")


class Loop:
    """The steps of one run. It raises what ends the run before its time; `end_open_step` has the
    events that its end then lacks."""

    def __init__(
        self,
        model: ChatModel,
        orchestrator: StreamingOrchestrator,
        state: StreamingState,
        *,
        opening: Sequence[Message],
        begin: Callable[[], Awaitable[Sequence[Message]]] | None,
        output_schema: JsonMap | None,
    ) -> None:
        """`opening`: the messages with which it begins, which the state's history holds. `begin`:
        gives them once the tools of sets are known, where that needs them, or the conversation is
        read from a store."""
        self.transcript = Transcript(state, typed=output_schema is not None)
        """What the run has made by now."""
        self.has_begun = False
        """Whether the first event is told."""
        self._model, self._orchestrator, self._state = model, orchestrator, state
        self._opening, self._begin = opening, begin
        self._schema = output_schema
        by_call = getattr(orchestrator, "provider_hint", None) == RETURN_RESULT
        self._typed: Literal["text", "call"] | None = (
            None if output_schema is None else "call" if by_call else "text"
        )
        self._step: str | None = None
        self._losses_named = 0
        self._rewriting = None if _is_built_in(orchestrator) else Rewriting()
        self.transcript.rewriting = self._rewriting
        state.stands_alone = False
        if self._rewriting is None:
            state.output_text = None

    async def steps(
        self, identify: Callable[[], str | None]
    ) -> AsyncGenerator[StreamingIterationResult, None]:
        """What happens, in order. `identify` is called first: whatever asks in the run's name can
        say so from then on; it gives the id of the run around this one.

        Raises:
            Exception: why the run cannot go on.
        """
        state, orchestrator, transcript = self._state, self._orchestrator, self.transcript
        parent_id = identify()
        started = RunStarted(
            state.run_id, state.thread_id, parent_id, state.resource_id, self._typed
        )
        self.has_begun = True
        first = StreamingIterationResult(events=[started, *state.shared.snapshot()])
        yield first if len(first.events) == 1 else transcript.record(first)
        if self._opening:
            yield self._tell_opening(self._opening)
        try:
            # Sets are entered after the first events: a reader sees the run begin while they
            # connect.
            if state.toolset is not None:
                await state.enter()
            if self._begin is not None:
                await state.list_tools()
                yield self._tell_opening(await self._begin())
            await _await_if_needed(orchestrator.initialize(state))
            model = self._bound()
            if state.plan is not None:
                async with aclosing(go_on(state, state.plan)) as steps:
                    async for step in steps:
                        yield transcript.absorb(step)
                state.account.check()
            goes_on = not transcript.pending
            while goes_on or state.transfer is not None:
                transfer, state.transfer, goes_on = state.transfer, None, False
                if transfer is None:
                    state.account.begin(model_calls=1)
                    if state.toolset is not None and await state.list_tools():
                        model = self._bound()
                    transcript.model_calls += 1
                    name = f"model call {transcript.model_calls}"
                    _LOG.debug("run %s: %s to %s", state.run_id, name, model.name)
                    results = orchestrator.process_iteration(model, state, self._schema)
                else:
                    name = f"hand-off to {transfer.tool.to}"
                    _LOG.debug("run %s: %s", state.run_id, name)
                    results = hand_over(state, transfer, by_call=self._typed == "call")
                try:
                    yield self._begin_step(name)
                    async for result in results:
                        goes_on = result.should_continue
                        if self._rewriting is not None:
                            result = self._rewritten(result, self._rewriting)
                        if (
                            result.events
                            and type(last := result.events[-1]) is RunError
                            and self._is_own(last)
                        ):
                            yield transcript.record(
                                msgspec.structs.replace(result, events=result.events[:-1])
                            )
                            raise last.error
                        yield transcript.absorb(result)
                finally:
                    await results.aclose()
                # An agent within a tool may have met a limit that is this run's too.
                state.account.check()
                yield self._end_step(name)
        finally:
            try:
                await self._finalize()
            finally:
                if state.toolset is not None:
                    await state.leave()
        state.complete()
        transcript.is_complete = True
        _LOG.info("run %s ended: %s, %s", state.run_id, transcript.finish_reason, transcript.usage)
        outcome = "pending" if transcript.pending else "success"
        finished = RunFinished(
            state.run_id, outcome, transcript.usage, transcript.pending, transcript.shown.value()
        )
        if late_events := state.outbox.close():
            yield transcript.record(StreamingIterationResult(events=late_events))
        yield StreamingIterationResult(events=[finished])

    def _rewritten(
        self, step: StreamingIterationResult, rewriting: Rewriting
    ) -> StreamingIterationResult:
        """The step as its output says; the history has the message that it finishes then."""
        step, message = rewriting.apply(step, self._state.shows)
        if message is not None:
            self._state.replace_in_history(message)
        return step

    def end_open_step(self) -> list[Event]:
        """The end of a step in whose middle the run ended."""
        step, self._step = self._step, None
        losses = self._new_losses()
        return [] if step is None else [StepFinished(step, losses)]

    def _tell_opening(self, messages: Sequence[Message]) -> StreamingIterationResult:
        """Tells the messages with which it begins."""
        self.transcript.messages += messages
        return StreamingIterationResult(events=unfold(messages), messages=messages)

    def _begin_step(self, name: str) -> StreamingIterationResult:
        self._step = name
        return self.transcript.record(StreamingIterationResult(events=[StepStarted(name)]))

    def _end_step(self, name: str) -> StreamingIterationResult:
        self._step = None
        losses = self._new_losses()
        return self.transcript.record(
            StreamingIterationResult(events=[StepFinished(name, losses)], losses=losses)
        )

    def _is_own(self, error: RunError) -> bool:
        """Whether it is this run that failed, and not one in its tools."""
        return error.run_id in (None, self._state.run_id)

    def _bound(self) -> ChatModel:
        """The model, which is asked with the tools of the next step."""
        state, request = self._state, self._state.request
        if state.specs:
            request = request.replace(tools=(*state.specs, *request.tools))
        return self._model.bound(request, state.losses)

    async def _finalize(self) -> None:
        """Calls the orchestrator's `finalize`, also in the middle of a cancellation."""
        task = asyncio.current_task()
        # The scope is not free.
        if task is None or not task.cancelling():
            await _await_if_needed(self._orchestrator.finalize(self._state))
            return
        with anyio.CancelScope(shield=True):
            await _await_if_needed(self._orchestrator.finalize(self._state))

    def _new_losses(self) -> tuple[Loss, ...]:
        """What requests had to leave out and the run has not named yet."""
        if len(self._state.losses) == self._losses_named:
            return ()
        losses = tuple(self._state.losses)[self._losses_named :]
        self._losses_named += len(losses)
        for loss in losses:
            _LOG.log(
                DEBUG if loss.is_minor else WARNING, "run %s: left out %s", self._state.run_id, loss
            )
        return losses


async def _await_if_needed(outcome: Awaitable[None] | None) -> None:
    """Waits for what a method gave that may be plain or async."""
    if isawaitable(outcome):
        await outcome


def _is_built_in(orchestrator: StreamingOrchestrator) -> bool:
    """Whether the steps are the library's own: then nobody changes their output."""
    return getattr(orchestrator.process_iteration, "__module__", "").startswith(
        "dragoman.orchestration."
    )


def wrap_foreign_error(error: Exception) -> DragomanError:
    """The error of ours that stands for somebody else's exception in the events."""
    wrapped = DragomanError(
        f"{type(error).__name__} in the run, from code that is not dragoman's: {describe_error(error)}"
    )
    wrapped.__cause__ = error
    return wrapped


Ending = tuple[
    Literal["success", "pending", "cancelled", "error"], ChatResult[str], DragomanError | None
]
"""How a run ended, what it gave, and why it failed."""


async def watch_run(
    steps: AsyncGenerator[StreamingIterationResult, None],
    begin: Callable[[], Awaitable[RunStart]],
    state: StreamingState,
    target: Origin,
    ending: Callable[[Exception | None], Ending],
) -> AsyncGenerator[StreamingIterationResult, None]:
    """A run's steps, between the hooks of its start and its end. `begin`: what is told of its
    start. `target`: whom it asks, where nobody has answered yet. `ending`: takes what was
    raised."""
    start, began_at, noted = await begin(), monotonic(), 0
    hooks = start.run.hooks
    raised: Exception | None = None

    async def tell_losses() -> int:
        losses = tuple(state.losses)
        for loss in losses[noted:]:
            await call_hooks(
                hooks,
                "loss",
                RequestLoss(start.run, state.accumulated_message.origin or target, loss),
            )
        return len(losses)

    try:
        await call_hooks(hooks, "run_start", start)
        async with aclosing(steps):
            async for step in steps:
                if len(state.losses) > noted:
                    noted = await tell_losses()
                yield step
    except Exception as error:
        raised = error
        raise
    finally:
        try:
            await tell_losses()
        finally:
            await call_hooks(
                hooks, "run_end", RunEnd(start, monotonic() - began_at, *ending(raised))
            )
