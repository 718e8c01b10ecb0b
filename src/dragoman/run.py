"""A run: one prompt's way through model calls and tools. It owns what it starts; leaving its block ends it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from logging import DEBUG, WARNING
from time import monotonic
from typing import Any, Generic, Literal, Self, TypeVar, cast

import anyio
import msgspec

from dragoman.errors import DragomanError, LimitReachedError
from dragoman.event import Event, MessageDropped, RunError, RunFinished, RunStarted, StepFinished, StepStarted
from dragoman.event_loop import running_loop
from dragoman.fold import unfold
from dragoman.interrupt import Interrupt
from dragoman.limits import Limits, Spent, reached
from dragoman.logs import logger
from dragoman.loss import Loss
from dragoman.message import FinishReason, Message, Role, Usage
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration import StreamingIterationResult, StreamingOrchestrator, StreamingState
from dragoman.orchestration.foreign_error import foreign
from dragoman.orchestration.going_on import go_on
from dragoman.orchestration.iteration import metadata_of
from dragoman.orchestration.output import RETURN_RESULT
from dragoman.orchestration.shown import Shown
from dragoman.result import ChatResult

__all__ = ["Run"]

T = TypeVar("T")

_LOG = logger("run")
_CANCELLED = "cancelled"
_BUSY_SECONDS = 0.005
"""After so long without a pause the event loop is given back, so that a fast stream starves nobody."""


class Run(Generic[T]):
    """Use it in `async with`; iterate over its events, or ask for its result, or both.

    It works only while it is being read: its consumer sets the pace. Tools alone go on between two reads, in one task of the run.
    """

    def __init__(
        self,
        model: ChatModel,
        orchestrator: StreamingOrchestrator,
        state: StreamingState,
        *,
        opening: Sequence[Message],
        output_schema: Mapping[str, Any] | None,
        limits: Limits,
        convert: Callable[[str], T],
    ) -> None:
        """Made by `Agent.run`. `opening`: the messages with which it begins, which its history holds. `convert`: the output's text → the typed value."""
        self.id = state.run_id
        self.thread_id = state.thread_id
        self._model = model
        self._orchestrator = orchestrator
        self._state = state
        self._opening = tuple(opening)
        self.parent_id: str | None = None
        """Id of the run within whose tool this one runs."""
        self._schema = output_schema
        self._limits = limits
        self._convert = convert
        self._steps = self._drive()
        state.check_tool_calls = lambda calls: self._check(tool_calls=calls)
        self._messages: list[Message] = []
        by_call = getattr(orchestrator, "provider_hint", None) == RETURN_RESULT
        self._typed: Literal["text", "call"] | None = None if output_schema is None else "call" if by_call else "text"
        self._shown = Shown(typed=output_schema is not None, state=lambda: state.shared.value)
        self._usage: Usage | None = None
        self._finish_reason = FinishReason.unspecified
        self._pending: tuple[Interrupt, ...] = ()
        self._metadata: dict[str, Any] = {}
        self._model_calls = 0
        self._step: str | None = None
        self._chunks = True
        self._losses_named = 0
        self._began_at = monotonic()
        self.error: DragomanError | None = None
        """What it failed with, once it has."""
        self.exception: Exception | None = None
        """What `result()` raises, once it has failed: `error`, or what code of the user's raised, as it is."""
        self._ended = False
        self._complete = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._stop: str | None = None
        self._interrupted = False
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the run where it stands. What it holds (connection, tools) is given back."""
        self._end()
        await self._steps.aclose()
        self._cut(FinishReason.cancelled)
        self._state.outbox.close()

    def cancel(self) -> None:
        """Stops the run, from any thread. It ends with outcome `cancelled`, and its result is what there is."""
        self._stop = self._stop or _CANCELLED
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._interrupt)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The run's events. A failure is the last of them, as `RunError`, and `result()` raises it."""
        async with aclosing(self.steps(chunks=False)) as steps:
            async for step in steps:
                for event in step.events:
                    yield event

    async def result(self) -> ChatResult[T]:
        """Waits for the end of the run → what it gave.

        Raises:
            DragomanError: the run failed; `result` of the error is what there was until then.
            LimitReachedError: a limit ended it.
            TypedOutputError: the output is not of the type asked for.
            Exception: what code of the user's (a middleware, an orchestrator, an executor, a validator) raised, as it is.
        """
        async with aclosing(self.steps(chunks=False)) as steps:
            async for _ in steps:
                pass
        if self.exception is not None:
            raise self.exception
        text = self.so_far()
        if self._finish_reason is FinishReason.cancelled or self._pending:
            return cast(ChatResult[T], text)
        try:
            return cast(ChatResult[T], msgspec.structs.replace(text, output=self._convert(text.output)))
        except DragomanError as error:
            error.result = text
            raise

    async def steps(self, *, chunks: bool = True) -> AsyncGenerator[StreamingIterationResult, None]:
        """The run as its orchestrator's steps: one per network read. A failure is the last step's `RunError`.

        `chunks`: whether anybody reads the steps' `chunks()`; without them a step costs less.
        """
        self._chunks = chunks
        self._loop = loop = running_loop()
        if self._limits.seconds is not None and self._timer is None:
            self._timer = loop.call_later(self._limits.seconds, self._expire)
        paused_at = monotonic()
        while not self._ended:
            if self._waiting is not None:
                raise RuntimeError("this run is being read already; read it in one place at a time")
            self._waiting = asyncio.current_task()
            try:
                if self._stop is not None:
                    await self._steps.aclose()
                    step = self._stopped(self._stop)
                else:
                    if monotonic() - paused_at > _BUSY_SECONDS:
                        await asyncio.sleep(0)
                        paused_at = monotonic()
                    step = await anext(self._steps)
            except StopAsyncIteration:
                self._end()
                return
            except asyncio.CancelledError:
                if self._stop is None or self._waiting is None or self._waiting.uncancel() > 0:
                    raise
                step = self._stopped(self._stop)
            except DragomanError as error:
                step = self._failed(error, error)
            except Exception as error:  # noqa: BLE001 - whatever code of the user's raises
                step = self._failed(foreign(error), error)
            finally:
                self._waiting = None
            yield step

    def so_far(self) -> ChatResult[str]:
        """What there is by now, its output as text; of a message that has not come to its end what was told of it."""
        state = self._state
        partial = self._partial(FinishReason.cancelled)
        results = state.tool_round.message() if state.tool_round is not None else None
        messages = [*self._messages, *filter(None, (partial, results))]
        spoken = [message for message in messages if message.role is Role.MODEL]
        metadata = metadata_of(spoken)
        metadata.update(self._metadata)
        thinking = "".join([message.thinking or "" for message in spoken]) or None
        if thinking is not None:
            metadata["thinking"] = thinking
        return ChatResult(
            self._shown.text(),
            tuple(messages),
            self._finish_reason,
            self._usage,
            thinking,
            metadata,
            (spoken[-1].id or "") if spoken else "",
            self._pending,
            tuple(state.losses),
            state.shared.value,
        )

    async def _drive(self) -> AsyncGenerator[StreamingIterationResult, None]:
        state, orchestrator = self._state, self._orchestrator
        started = RunStarted(self.id, state.thread_id, self.parent_id, state.resource_id, self._typed)
        first = StreamingIterationResult(events=[started, *state.shared.snapshot()])
        yield first if len(first.events) == 1 else self._recorded(first)
        if self._opening:
            self._messages += self._opening
            yield StreamingIterationResult(events=unfold(self._opening), messages=self._opening)
        try:
            await orchestrator.initialize(state)
            model = self._model.bound(state.request.replace(tools=(*state.specs, *state.request.tools)), state.losses)
            if state.plan is not None:
                async with aclosing(go_on(state, state.plan)) as steps:
                    async for step in steps:
                        self._absorb(step)
                        yield self._recorded(step)
            goes_on = not self._pending
            while goes_on:
                self._check(model_calls=1)
                self._model_calls += 1
                self._step = step = f"model call {self._model_calls}"
                goes_on = False
                _LOG.debug("run %s: %s to %s", self.id, step, self._model.name)
                yield self._recorded(StreamingIterationResult(events=[StepStarted(step)]))
                results = orchestrator.process_iteration(model, state, self._schema)
                try:
                    async for result in results:
                        goes_on = result.should_continue
                        if result.events and isinstance(last := result.events[-1], RunError):
                            yield self._recorded(msgspec.structs.replace(result, events=result.events[:-1]))
                            raise last.error
                        self._absorb(result)
                        yield self._recorded(result)
                finally:
                    await results.aclose()
                self._step = None
                losses = self._new_losses()
                yield self._recorded(StreamingIterationResult(events=[StepFinished(step, losses)], losses=losses))
        finally:
            await self._finalize()
        state.complete()
        self._complete = True
        _LOG.info("run %s ended: %s, %s", self.id, self._finish_reason, self._usage)
        outcome = "pending" if self._pending else "success"
        finished = RunFinished(self.id, outcome, self._usage, self._pending, self._shown.value())
        if left := state.outbox.close():
            yield self._recorded(StreamingIterationResult(events=left))
        yield StreamingIterationResult(events=[finished])

    async def _finalize(self) -> None:
        """Calls the orchestrator's `finalize`, also in the middle of a cancellation."""
        task = asyncio.current_task()
        if task is None or not task.cancelling():  # the scope is not free
            await self._orchestrator.finalize(self._state)
            return
        with anyio.CancelScope(shield=True):
            await self._orchestrator.finalize(self._state)

    def _check(self, *, model_calls: int = 0, tool_calls: int = 0) -> None:
        """Raises `LimitReachedError` where the run may not make so many more calls."""
        spent = Spent(
            model_calls=self._model_calls,
            tool_calls=self._state.tool_calls_made,
            total_tokens=(self._usage and self._usage.total_tokens) or 0,
            seconds=monotonic() - self._began_at,
        )
        if reason := reached(self._limits, spent, model_calls=model_calls, tool_calls=tool_calls):
            raise LimitReachedError(reason)

    def _absorb(self, step: StreamingIterationResult) -> None:
        self._messages += step.messages
        if step.usage is not None:
            self._spend(step.usage)
        if step.finish_reason is not FinishReason.unspecified:
            self._finish_reason = step.finish_reason
        if step.metadata:
            self._metadata.update(step.metadata)
        self._pending += step.pending

    def _spend(self, usage: Usage | None) -> None:
        if usage is not None:
            self._usage = usage if self._usage is None else self._usage + usage

    def _recorded(self, step: StreamingIterationResult) -> StreamingIterationResult:
        """The step with the events of messages for which it has none, and with what of it is shown."""
        shown, state, events = self._shown, self._state, step.events
        if state.outbox and state.tool_round is None:
            events = [*state.outbox.take(), *events]
        given = shown.give(step.output) if step.output and not events else []
        pieces = shown.feed(events, state.shows, chunks=self._chunks)
        if step.messages and (untold := [each for each in step.messages if not shown.has_finished(each.id)]):
            more = self._anew(untold)
            events = [*events, *more]
            pieces += shown.feed(more, state.shows)
        if state.is_first_chunk_of_message:
            state.is_first_chunk_of_message = not shown.has_begun()
        if not self._chunks and events is step.events:
            return step
        return msgspec.structs.replace(step, events=events, pieces=given + pieces, message_id=shown.message_id)

    def _anew(self, messages: Sequence[Message]) -> list[Event]:
        """Messages, told whole, also where a part of them was told before."""
        dropped = [message.id for message in messages if message.id and self._shown.is_open(message.id)]
        return [*[MessageDropped(message_id, "told whole") for message_id in dropped], *unfold(messages)]

    def _cut(self, reason: FinishReason) -> list[Event]:
        """Ends the message in whose middle the run ended: it is kept as far as it was shown."""
        tool_round, self._state.tool_round = self._state.tool_round, None
        if tool_round is not None:
            self._messages += filter(None, (tool_round.message(),))
            return [*tool_round.close()]
        message = self._partial(reason)
        if message is None:
            return []
        intake, self._state.intake = self._state.intake, None
        events = (intake.cut(reason) if intake is not None else []) or self._anew([message])
        self._messages.append(message)
        self._spend(message.usage)
        self._finish_reason = reason
        self._shown.feed(events, self._state.shows)
        return events

    def _partial(self, reason: FinishReason) -> Message | None:
        """The message that has not come to its end, as far as it was told; `None`: there is none, or nothing was."""
        intake = self._state.intake
        if self._complete:
            return None
        if intake is not None and intake.has_shown:
            message = intake.message()
            whole = message.finish_reason not in (None, FinishReason.pause)
            return message if whole else message.replace(finish_reason=reason)
        if text := self._shown.unfinished():
            is_open = self._shown.is_open(self._shown.message_id)
            message_id = self._shown.message_id if is_open else f"{self.id}-{self._model_calls}"
            return Message.model(text).replace(id=message_id, finish_reason=reason)
        return None

    def _interrupt(self) -> None:
        if self._state.tool_round is not None:
            self._state.tool_round.cancel()
        if self._waiting is not None and not self._interrupted:
            self._interrupted = True
            self._waiting.cancel()

    def _expire(self) -> None:
        self._stop = self._stop or reached(Limits(seconds=self._limits.seconds), Spent(seconds=math.inf))
        self._interrupt()

    def _stopped(self, why: str) -> StreamingIterationResult:
        """The end of a run that was cancelled, or ran out of time."""
        if why != _CANCELLED:
            return self._failed(error := LimitReachedError(why), error, FinishReason.cancelled)
        self._end()
        events = self._left(FinishReason.cancelled)
        self._finish_reason = FinishReason.cancelled
        return StreamingIterationResult(events=[*events, RunFinished(self.id, "cancelled", self._usage)])

    def _failed(
        self, error: DragomanError, raised: Exception, reason: FinishReason = FinishReason.error
    ) -> StreamingIterationResult:
        self._end()
        events = self._left(reason)
        error.result = self.so_far()
        self.error, self.exception = error, raised
        _LOG.warning("run %s failed: %s", self.id, str(error))  # a record that is kept must not keep the run
        return StreamingIterationResult(events=[*events, RunError(error, self.id)])

    def _left(self, reason: FinishReason) -> list[Event]:
        """The events that end what is still open."""
        step, self._step = self._step, None
        losses = self._new_losses()
        events = self._cut(reason)
        ended = [] if step is None else [StepFinished(step, losses)]
        return [*events, *self._shown.dropped(), *self._state.outbox.close(), *ended]

    def _end(self) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    def _new_losses(self) -> tuple[Loss, ...]:
        """What requests had to leave out and the run has not named yet."""
        if len(self._state.losses) == self._losses_named:
            return ()
        losses = tuple(self._state.losses)[self._losses_named :]
        self._losses_named += len(losses)
        for loss in losses:
            _LOG.log(DEBUG if loss.is_minor else WARNING, "run %s: left out %s", self.id, loss)
        return losses
