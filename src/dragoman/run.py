"""A run: one prompt's way through model calls and tools. It owns what it starts; leaving its block ends it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from time import monotonic
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import anyio
import msgspec

from dragoman.errors import DragomanError, LimitReachedError
from dragoman.event import Event, RunError, RunFinished, RunStarted, StepFinished, StepStarted
from dragoman.fold import unfold
from dragoman.limits import Limits, Spent, reached
from dragoman.logs import logger
from dragoman.loss import Loss
from dragoman.message import FinishReason, Message, Role, ToolCallPart, Usage
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration import StreamingIterationResult, StreamingOrchestrator, StreamingState
from dragoman.orchestration.iteration import provider_metadata
from dragoman.result import ChatResult

__all__ = ["Run"]

T = TypeVar("T")

_LOG = logger("run")
_CANCELLED = "cancelled"
_BUSY_SECONDS = 0.005
"""After so long without a pause the event loop is given back, so that a fast stream starves nobody."""


class Run(Generic[T]):
    """Use it in `async with`; iterate over its events, or ask for its result, or both.

    It works only while it is being read (its consumer sets the pace) and owns no task between two reads.
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
        self._model = model
        self._orchestrator = orchestrator
        self._state = state
        self._opening = tuple(opening)
        self._schema = output_schema
        self._limits = limits
        self._convert = convert
        self._steps = self._drive()
        state.check_tool_calls = lambda calls: self._check(tool_calls=calls)
        self._messages: list[Message] = []
        self._usage: Usage | None = None
        self._finish_reason = FinishReason.unspecified
        self._pending: tuple[ToolCallPart, ...] = ()
        self._metadata: dict[str, Any] = {}
        self._model_calls = 0
        self._losses_named = 0
        self._began_at = monotonic()
        self.error: DragomanError | None = None
        """What it failed with, once it has."""
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._stop: str | None = None
        self._interrupted = False
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the run where it stands. What it holds (connection, tools) is given back."""
        self._end()
        await self._steps.aclose()

    def cancel(self) -> None:
        """Stops the run, from any thread. It ends with outcome `cancelled`, and its result is what there is."""
        self._stop = self._stop or _CANCELLED
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._interrupt)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The run's events. A failure is the last of them, as `RunError`, and `result()` raises it."""
        async with aclosing(self.steps()) as steps:
            async for step in steps:
                for event in step.events:
                    yield event

    async def result(self) -> ChatResult[T]:
        """Waits for the end of the run → what it gave.

        Raises:
            DragomanError: the run failed; the error holds the partial message.
            LimitReachedError: a limit ended it; the error holds the result so far.
            TypedOutputError: the output is not of the type asked for.
        """
        async with aclosing(self.steps()) as steps:
            async for _ in steps:
                pass
        if self.error is not None:
            raise self.error
        text = self._result()
        unfinished = self._finish_reason is FinishReason.cancelled or self._pending
        output = text.output if unfinished else self._convert(text.output)
        return cast(ChatResult[T], msgspec.structs.replace(text, output=output))

    async def steps(self) -> AsyncGenerator[StreamingIterationResult, None]:
        """The run as its orchestrator's steps: one per network read. A failure is the last step's `RunError`."""
        self._loop = loop = asyncio.get_running_loop()
        if self._limits.seconds is not None and self._timer is None:
            self._timer = loop.call_later(self._limits.seconds, self._expire)
        paused_at = monotonic()
        while not self._ended:
            self._waiting = asyncio.current_task()
            try:
                if self._stop is not None:
                    await self._steps.aclose()
                    step = self._stopped(self._stop)
                else:
                    if monotonic() - paused_at > _BUSY_SECONDS:
                        await anyio.sleep(0)
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
                step = self._failed(error)
            finally:
                self._waiting = None
            yield step

    async def _drive(self) -> AsyncGenerator[StreamingIterationResult, None]:
        state, orchestrator = self._state, self._orchestrator
        yield StreamingIterationResult(events=[RunStarted(self.id)])
        if self._opening:
            self._messages += self._opening
            yield StreamingIterationResult(events=unfold(self._opening), messages=self._opening)
        try:
            await orchestrator.initialize(state)
            goes_on = True
            while goes_on:
                self._check(model_calls=1)
                self._model_calls += 1
                step = f"model call {self._model_calls}"
                _LOG.debug("run %s: %s to %s", self.id, step, self._model.name)
                yield StreamingIterationResult(events=[StepStarted(step)])
                async with aclosing(orchestrator.process_iteration(self._model, state, self._schema)) as results:
                    async for result in results:
                        goes_on = result.should_continue
                        self._absorb(result)
                        yield result
                losses = self._new_losses()
                yield StreamingIterationResult(events=[StepFinished(step, losses)], losses=losses)
        finally:
            await self._finalize()
        state.complete()
        _LOG.info("run %s ended: %s, %s", self.id, self._finish_reason, self._usage)
        yield StreamingIterationResult(
            events=[RunFinished(self.id, "pending" if self._pending else "success", self._usage, self._pending)]
        )

    async def _finalize(self) -> None:
        """Calls the orchestrator's `finalize`, also in the middle of a cancellation (D-06)."""
        task = asyncio.current_task()
        if task is None or not task.cancelling():  # the scope is not free
            await self._orchestrator.finalize(self._state)
            return
        with anyio.CancelScope(shield=True):
            await self._orchestrator.finalize(self._state)

    def _check(self, *, model_calls: int = 0, tool_calls: int = 0) -> None:
        """Raises `LimitReachedError` where the run may not make so many more calls."""
        tokens = self._usage.total_tokens if self._usage is not None else None
        spent = Spent(
            model_calls=self._model_calls,
            tool_calls=self._state.tool_calls_made,
            total_tokens=tokens or 0,
            seconds=monotonic() - self._began_at,
        )
        if reason := reached(self._limits, spent, model_calls=model_calls, tool_calls=tool_calls):
            raise LimitReachedError(reason, result=self._result())

    def _absorb(self, step: StreamingIterationResult) -> None:
        self._messages += step.messages
        if step.usage is not None:
            self._usage = step.usage if self._usage is None else self._usage + step.usage
        if step.finish_reason is not FinishReason.unspecified:
            self._finish_reason = step.finish_reason
        if step.metadata:
            self._metadata.update(step.metadata)
        self._pending += step.pending

    def _interrupt(self) -> None:
        if self._waiting is not None and not self._interrupted:
            self._interrupted = True
            self._waiting.cancel()

    def _expire(self) -> None:
        self._stop = self._stop or reached(Limits(seconds=self._limits.seconds), Spent(seconds=math.inf))
        self._interrupt()

    def _stopped(self, why: str) -> StreamingIterationResult:
        """The end of a run that was cancelled, or ran out of time."""
        self._end()
        self._new_losses()
        events: list[Event] = []
        if self._state.intake is not None and (events := self._state.intake.cut(FinishReason.cancelled)):
            self._messages.append(self._state.intake.message())
        self._finish_reason = FinishReason.cancelled
        if why != _CANCELLED:
            self.error = LimitReachedError(why, result=self._result())
            return StreamingIterationResult(events=[*events, RunError(self.error, self.id)])
        return StreamingIterationResult(events=[*events, RunFinished(self.id, "cancelled", self._usage)])

    def _failed(self, error: DragomanError) -> StreamingIterationResult:
        self._end()
        self.error = error
        self._new_losses()
        _LOG.warning("run %s failed: %s", self.id, str(error))  # a record that is kept must not keep the run
        intake = self._state.intake
        events = intake.cut(FinishReason.error) if intake is not None and intake.error is error else []
        return StreamingIterationResult(events=[*events, RunError(error, self.id)])

    def _end(self) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    def _result(self) -> ChatResult[str]:
        """What there is so far, its output as text."""
        spoken = [message for message in self._messages if message.role is Role.MODEL]
        metadata = dict[str, Any]()
        for message in spoken:
            for part in message.content:
                metadata.update(provider_metadata(part))
        metadata.update(self._metadata)
        thinking = "".join([message.thinking or "" for message in spoken]) or None
        if thinking is not None:
            metadata["thinking"] = thinking
        return ChatResult(
            self._output(spoken),
            tuple(self._messages),
            self._finish_reason,
            self._usage,
            thinking,
            metadata,
            (spoken[-1].id or "") if spoken else "",
            self._pending,
            tuple(self._state.losses),
        )

    def _new_losses(self) -> tuple[Loss, ...]:
        """What requests had to leave out and the run has not named yet."""
        losses = tuple(self._state.losses)[self._losses_named :]
        self._losses_named += len(losses)
        for loss in losses:
            _LOG.warning("run %s: left out %s", self.id, loss)
        return losses

    def _output(self, spoken: Sequence[Message]) -> str:
        """All text with the newlines of D-24 (D-09); of a typed run the JSON alone (D-15)."""
        if self._state.output is not None:
            return self._state.output
        if self._schema is not None:
            return spoken[-1].text if spoken else ""
        output, after_tools = "", False
        for message in self._messages[len(self._opening) :]:
            if message.role is Role.USER:
                after_tools = after_tools or bool(message.tool_results)
            elif text := message.text:
                output += ("\n" if after_tools else "") + text
        return output
