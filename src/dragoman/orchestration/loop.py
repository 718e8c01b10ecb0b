"""The loop of a run, from its first event to its last: model calls, the tools between them, and
hand-offs (`Loop`); and its hooks for start and end (`watch_run`)."""

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
from dragoman.orchestration.continuation import resume_run
from dragoman.orchestration.going_on import answer_again
from dragoman.orchestration.handoff import hand_over
from dragoman.orchestration.iteration import RETURN_RESULT, Rewriting, StreamingIterationResult
from dragoman.orchestration.orchestrator import StreamingOrchestrator
from dragoman.orchestration.resume import CallPlan, ResumePlan
from dragoman.orchestration.shown_output import is_text
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.story import MODEL_STEP
from dragoman.orchestration.transcript import Transcript
from dragoman.result import ChatResult
from dragoman.tools.tool_result import describe_error

__all__ = [
    "Ending",
    "Loop",
    "wrap_foreign_error",
    "watch_run",
]

_LOG = logger("run")


class Loop:
    """The loop of one run. It raises the exception that ends the run early; then `end_open_step`
    returns the missing events."""

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
        """Creates the loop. `opening`: the run's first messages, already in the state's history.
        `begin`: returns them later, if they depend on toolsets or on a store."""
        # What an output check may send back can be void, too.
        is_checked = output_schema is not None or state.checks is not None
        self.transcript = Transcript(state, typed=is_checked, has_schema=output_schema is not None)
        """Records the messages and output of the run so far."""
        self.has_begun = False
        """True once the first event was sent."""
        self._model, self._orchestrator, self._state = model, orchestrator, state
        self._opening, self._begin = opening, begin
        self._schema = output_schema
        self._typed: Literal["text", "call"] | None = None
        if is_checked:
            by_call = getattr(orchestrator, "provider_hint", None) == RETURN_RESULT
            self._typed = "call" if by_call else "text"
        self._owner = 1
        if state.story is not None:
            self._owner = state.story.owner
            state.shows = getattr(orchestrator, "shows", is_text)
            self.transcript.go_on(state.story)
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
        """Yields the loop's steps, those of the run. `identify` is called first, so that requests
        of the run can name it, and returns the id of the run around this one.

        Raises:
            Exception: why the run cannot go on.
        """
        state, orchestrator, transcript = self._state, self._orchestrator, self.transcript
        parent_id = identify()
        self.has_begun = True
        yield self._first_step(parent_id)
        try:
            # Sets are entered after the first events: a reader sees the run begin while they
            # connect.
            if state.toolset is not None:
                await state.enter()
            if self._begin is not None:
                await state.list_tools()
                yield self._tell_opening(await self._begin())
            await _await_if_needed(orchestrator.initialize(state))
            model = self._bind_model()
            if isinstance(state.plan, ResumePlan):
                async with aclosing(resume_run(state, state.plan)) as steps:
                    async for step in steps:
                        yield transcript.absorb(step)
                state.account.check()
            goes_on = not transcript.pending
            while goes_on or state.transfer is not None:
                transfer, state.transfer, goes_on = state.transfer, None, False
                if isinstance(state.plan, CallPlan):
                    # No step: what the last one showed is not void.
                    name, results = None, answer_again(orchestrator, state)
                elif transfer is None:
                    state.account.begin(model_calls=1)
                    if state.toolset is not None and await state.list_tools():
                        model = self._bind_model()
                    transcript.model_calls += 1
                    name = f"{MODEL_STEP}{transcript.model_calls}"
                    _LOG.debug("run %s: %s to %s", state.run_id, name, model.name)
                    results = orchestrator.process_iteration(model, state, self._schema)
                else:
                    name = f"hand-off to {transfer.tool.to}"
                    # An earlier process may have begun the same one.
                    if self._owner > 1:
                        name += f", going on {self._owner}"
                    _LOG.debug("run %s: %s", state.run_id, name)
                    results = hand_over(state, transfer, by_call=self._typed == "call")
                try:
                    if name is not None:
                        yield self._begin_step(name)
                    async for result in results:
                        goes_on = result.should_continue
                        if self._rewriting is not None:
                            result = self._rewrite_step(result, self._rewriting)
                        if (
                            result.events
                            and type(last := result.events[-1]) is RunError
                            and self._is_own_error(last)
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
                # The end of the last step is told with that of the run.
                if goes_on or state.transfer is not None:
                    yield self._end_step()
        finally:
            try:
                await self._finalize()
            finally:
                if state.toolset is not None:
                    await state.leave()
        await self._check_output()
        state.complete()
        transcript.is_complete = True
        _LOG.info("run %s ended: %s, %s", state.run_id, transcript.finish_reason, transcript.usage)
        outcome = "pending" if transcript.pending else "success"
        finished = RunFinished(
            state.run_id, outcome, transcript.usage, transcript.pending, transcript.shown.value()
        )
        last = self._end_step(state.outbox.close())
        output = transcript.output_events
        rest = [] if output is None else output.feed((), is_last=True)
        yield msgspec.structs.replace(last, events=[*last.events, *rest, finished])

    async def _check_output(self) -> None:
        """Runs at the end of the loop the output checks on an output that its orchestrator did not
        give them: a custom one, or one that handed over.

        Raises:
            TypedOutputError: a check sends it back.
        """
        checks, text = self._state.checks, self.transcript.shown.text()
        if checks is None or self.transcript.pending or checks.has_accepted(text):
            return
        await checks.apply_last(self._state.tool_context(), text)

    def _first_step(self, parent_id: str | None) -> StreamingIterationResult:
        """Returns the loop's first events, which begin the run, without those that an earlier
        process has told, and its first messages, where they are known."""
        state, story, events = self._state, self._state.story, list[Event]()
        if story is None or not story.has_started:
            ids = state.run_id, state.thread_id, parent_id, state.resource_id
            events.append(RunStarted(*ids, self._typed, call_id=state.call_id))
        if story is None or not story.has_state:
            events += state.shared.snapshot()
        first = StreamingIterationResult(events=events)
        if len(events) != 1:
            first = self.transcript.record(first)
        if not self._opening:
            return first
        told = self._tell_opening(self._opening)
        return msgspec.structs.replace(
            first, events=[*first.events, *told.events], messages=told.messages
        )

    def _rewrite_step(
        self, step: StreamingIterationResult, rewriting: Rewriting
    ) -> StreamingIterationResult:
        """Returns the loop's step changed to match its output, and updates the history."""
        step, message = rewriting.apply(step, self._state.shows)
        if message is not None:
            self._state.replace_in_history(message)
        return step

    def end_open_step(self) -> list[StepFinished]:
        """Returns the events that end the loop's step, if one is open."""
        step, self._step = self._step, None
        losses = self._take_losses()
        if step is None:
            return []
        return [StepFinished(step, losses)]

    def _tell_opening(self, messages: Sequence[Message]) -> StreamingIterationResult:
        """Returns the step with the run's first messages."""
        self.transcript.messages += messages
        return StreamingIterationResult(events=unfold(messages), messages=messages)

    def _begin_step(self, name: str) -> StreamingIterationResult:
        """Returns the event that starts a step."""
        self._step = name
        return self.transcript.record(StreamingIterationResult(events=[StepStarted(name)]))

    def _end_step(self, late_events: Sequence[Event] = ()) -> StreamingIterationResult:
        """Returns the event that ends the loop's open step, with its losses, and those that tools
        emitted after it."""
        ended = self.end_open_step()
        losses = ended[0].losses if ended else ()
        return self.transcript.record(
            StreamingIterationResult(events=[*ended, *late_events], losses=losses)
        )

    def _is_own_error(self, error: RunError) -> bool:
        """True if this run failed, and not a run inside its tools."""
        return error.run_id in (None, self._state.run_id)

    def _bind_model(self) -> ChatModel:
        """Returns the model with the tools of the loop's next step."""
        state, request = self._state, self._state.request
        if state.specs:
            request = request.replace(tools=(*state.specs, *request.tools))
        return self._model.bound(request, state.losses)

    async def _finalize(self) -> None:
        """Calls the orchestrator's `finalize`, even while the run is cancelled."""
        task = asyncio.current_task()
        # A shielded scope costs some microseconds, so only a cancelled run opens one.
        if task is None or not task.cancelling():
            await _await_if_needed(self._orchestrator.finalize(self._state))
            return
        with anyio.CancelScope(shield=True):
            await _await_if_needed(self._orchestrator.finalize(self._state))

    def _take_losses(self) -> tuple[Loss, ...]:
        """Returns the losses of the loop that were not reported yet, and logs them."""
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
    """Awaits the result of a method that may be plain or async."""
    if isawaitable(outcome):
        await outcome


def _is_built_in(orchestrator: StreamingOrchestrator) -> bool:
    """True if the steps of the loop's orchestrator are dragoman's own, so that nobody changes their
    output."""
    return getattr(orchestrator.process_iteration, "__module__", "").startswith(
        "dragoman.orchestration."
    )


def wrap_foreign_error(error: Exception) -> DragomanError:
    """Returns a `DragomanError` for an exception of other code that ended the loop, for the run's
    events."""
    wrapped = DragomanError(
        f"{type(error).__name__} in the run, from code that is not dragoman's: {describe_error(error)}"
    )
    wrapped.__cause__ = error
    return wrapped


Ending = tuple[
    Literal["success", "pending", "cancelled", "error"], ChatResult[str], DragomanError | None
]
"""Outcome of a run, its result, and its error."""


async def watch_run(
    steps: AsyncGenerator[StreamingIterationResult, None],
    begin: Callable[[], Awaitable[RunStart]],
    state: StreamingState,
    target: Origin,
    ending: Callable[[Exception | None], Ending],
) -> AsyncGenerator[StreamingIterationResult, None]:
    """Yields the steps of a run's loop between the hooks of its start and end. `begin`: returns the
    record of its start. `target`: the model that it asks, until one has answered. `ending`: takes
    the exception and returns the outcome."""
    start, began_at, loss_count = await begin(), monotonic(), 0
    hooks = start.run.hooks
    raised: Exception | None = None

    async def tell_losses() -> int:
        losses = tuple(state.losses)
        for loss in losses[loss_count:]:
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
                if len(state.losses) > loss_count:
                    loss_count = await tell_losses()
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
