"""A run: one prompt's way through model calls and tools. It owns what it starts; leaving its block
ends it.

`Run` drives the steps of a `Loop` (`_read`), one per network read, and turns whatever ends them
into a last step: an error, a limit, a cancellation. Events, chunks and the result are all read from
these steps. Nothing runs in the background but tools, in one task of the run.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

import anyio
import msgspec

from dragoman.errors import DragomanError, LimitReachedError
from dragoman.event import Event, RunError, RunFinished
from dragoman.figure import Figure
from dragoman.hooks import Hooks, RunStart, find_active_hooks
from dragoman.limits import Limits, Spent, find_reached_limit
from dragoman.logs import logger
from dragoman.message import FinishReason, Message, Origin
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration import StreamingIterationResult, StreamingOrchestrator, StreamingState
from dragoman.orchestration.loop import Ending, Loop, watch_run, wrap_foreign_error
from dragoman.orchestration.output_type import TypedOutput
from dragoman.orchestration.partial_output import OutputEvents, find_element_type, read_partials
from dragoman.request import RunInfo
from dragoman.result import ChatResult, sum_usage
from dragoman.run_display import LiveDrawable, draw_run
from dragoman.runtime import running_loop
from dragoman.tools import ToolContext

if TYPE_CHECKING:
    from dragoman.memory.conversation import ConversationRecorder

__all__ = ["Run"]

T = TypeVar("T")

_LOG = logger("run")
_CANCELLED = "cancelled"
_BUSY_SECONDS = 0.005
"""After so long without a pause the event loop is given back, so that a fast stream starves
nobody."""


class Run(LiveDrawable, Generic[T]):
    """Use it in `async with`; iterate over its events, or ask for its result, or both.

    It works only while it is being read: its consumer sets the pace. Tools alone go on between two
    reads, in one task of the run.
    """

    def __init__(
        self,
        model: ChatModel,
        orchestrator: StreamingOrchestrator,
        state: StreamingState,
        *,
        opening: Sequence[Message],
        output: TypedOutput[T] | None,
        limits: Limits,
        output_events: bool = False,
        agent_name: str = "",
        begin: Callable[[], Awaitable[Sequence[Message]]] | None = None,
        hooks: tuple[Hooks, ...] = (),
        conversation: ConversationRecorder | None = None,
        known: Callable[[], Awaitable[Sequence[Message]]] | None = None,
    ) -> None:
        """Makes a run; called by `Agent.run`.

        Args:
            model: the model that is asked first.
            orchestrator: decides the steps.
            state: what the orchestrator works on.
            opening: the run's first messages, which its history holds.
            output: the type of the output; `None`: text.
            output_events: a typed output is told as `Custom` events while it is being written.
            limits: how far the run may go.
            agent_name: the agent's name for people.
            begin: gives the opening once the thread is read and the tools of sets are listed.
            hooks: watch the run.
            conversation: keeps the run's messages.
            known: gives the messages that the run begins with, if `begin` gives the opening.
        """
        self.id = state.run_id
        self.thread_id = state.thread_id
        """Id of the conversation; before it begins, it may be given another."""
        self._model = model
        self._state = state
        self.parent_id: str | None = None
        """Id of the run within whose tool this one runs."""
        self.agent_name = agent_name
        """The agent's name for people."""
        self._limits = limits
        self._conversation = conversation
        self._known = known if begin is not None else None
        self.output = output
        """The type of the output; `None`: text."""
        self._work = Loop(
            model,
            orchestrator,
            state,
            opening=tuple(opening),
            begin=begin,
            output_schema=None if output is None else output.schema,
        )
        self._transcript = self._work.transcript
        if output_events and output is not None:
            self._transcript.output_events = OutputEvents(output)
        self._watch(find_active_hooks(hooks))
        state.account.reached = self._find_reached_limit
        self._began_at = monotonic()
        self._seconds_before = 0.0
        """Seconds since a durable run began in an earlier process."""
        self._told = 0
        """Number of messages that were passed on."""
        self._kept = 0
        """Number of messages of a durable run that its thread holds."""
        if (story := state.story) is not None:
            state.account.model_calls, state.account.tool_calls = (
                story.model_calls,
                story.tool_calls,
            )
            self._told = len(story.messages)
            if story.began_at is not None:
                self._seconds_before = (state.clock() - story.began_at).total_seconds()
                self._began_at -= self._seconds_before
        self.error: DragomanError | None = None
        """Why the run failed; `None` while it has not."""
        self.exception: Exception | None = None
        """The exception that `result()` raises: `error`, or what the user's code raised."""
        self._ended = False
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
        """Ends the run where it stands, and releases its connection and tools."""
        await self.leave()

    async def leave(self) -> list[Event]:
        """Closes the run, and returns the events that end it; none if it had ended before, or has
        never begun."""
        is_open = not self._ended
        self._end()
        await self._steps.aclose()
        if not is_open:
            return []
        events = self._end_events(FinishReason.cancelled)
        # A durable run goes on elsewhere, without a message that was cut.
        if self._conversation is not None and self._state.story is None:
            with anyio.CancelScope(shield=True):
                await self._conversation.keep(self._transcript.messages, is_over=True)
        if self._display is not None:
            self.redraw(is_over=True)
        if self._work.has_begun:
            return [*events, RunFinished(self.id, "cancelled", self._transcript.usage)]
        return []

    @property
    def loaded(self) -> tuple[Message, ...] | None:
        """Returns the messages of the thread that the run continues, once they are read, or None if
        it reads none."""
        if self._conversation is None:
            return None
        return self._conversation.loaded

    def within(self, context: ToolContext[Any], *, share_state: bool = False) -> None:
        """Makes this run a part of the run whose tool starts it; call it before the run begins.
        Its calls and tokens count there, too. `share_state`: both runs share one state."""
        self.parent_id = context.run_id or None
        self._state.call_id = context.call.id or None
        # A run without a thread has its own id for one.
        if self.thread_id == self.id:
            self.thread_id = context.thread_id or self.id
        if context.account is not None:
            self._state.account.join(context.account)
        self._state.stored = context.stored
        if share_state:
            self._state.shared = context.state
            if self._conversation is not None:
                self._conversation.share(None)
        if context.run is not None and context.run.hooks:
            self._watch(tuple(dict.fromkeys((*context.run.hooks, *self._hooks))))

    def hold_calls(self, stored: Callable[[], Awaitable[None]]) -> None:
        """Holds each round of tools back until its calls are stored. Call it before the run begins.

        `stored`: waits until all events of the run so far are stored."""
        self._state.stored = stored

    def _watch(self, hooks: tuple[Hooks, ...]) -> None:
        """Prepares the run's steps, with hooks around them."""
        self._hooks, self._steps = hooks, self._work.steps(self._identify)
        if hooks:
            target = Origin(self._model.provider.name, None, self._model.name)
            self._steps = watch_run(
                self._steps, self._run_start, self._state, target, self._outcome
            )

    def cancel(self) -> None:
        """Cancels this run, from any thread. It ends with outcome `cancelled`, and its result is
        what there is."""
        self._stop = self._stop or _CANCELLED
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._interrupt)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yields the run's events. A failure is the last of them, as `RunError`, and `result()`
        raises it."""
        async with aclosing(self.steps(chunks=False)) as steps:
            async for step in steps:
                for event in step.events:
                    yield event

    async def result(self) -> ChatResult[T]:
        """Waits for the end of the run and returns its result.

        Raises:
            DragomanError: the run failed; `result` of the error is what there was until then.
            LimitReachedError: a limit ended it.
            TypedOutputError: the output is not of the type asked for.
            Exception: what code of the user's (a middleware, an orchestrator, an executor, a validator) raised, as it is.
        """
        steps = self._read(asyncio.current_task(running_loop()), chunks=False)
        try:
            async for _ in steps:
                pass
        finally:
            await steps.aclose()
        if self._conversation is not None:
            await self._conversation.finish()
        if self.exception is not None:
            raise self.exception
        text = self.so_far()
        checks = self._state.checks
        if checks is not None and checks.has_accepted(text.output):
            return cast(ChatResult[T], msgspec.structs.replace(text, output=checks.value))
        if self._transcript.finish_reason is FinishReason.cancelled or self._transcript.pending:
            return cast(ChatResult[T], text)
        if self.output is None:
            return cast(ChatResult[T], text)
        try:
            value = self.output.convert(text.output)
        except DragomanError as error:
            error.result = text
            raise
        return cast(ChatResult[T], msgspec.structs.replace(text, output=value))

    def partials(
        self, *, elements: bool = False, growing_text: bool = False
    ) -> AsyncGenerator[ChatResult[Any], None]:
        """Yields the output while it is being written, as `Agent.send_stream_for`: as a `Partial`, or
        with `elements` each element of a list once it is whole. The last chunk is the result.

        Raises:
            TypeError: the output is text, or with `elements` no list.
        """
        element_type = None
        if elements:
            element_type = find_element_type(self.output and self.output.type)
        return read_partials(self, element_type=element_type, growing_text=growing_text)

    def steps(self, *, chunks: bool = True) -> AsyncGenerator[StreamingIterationResult, None]:
        """Returns the run as its orchestrator's steps: one per network read. A failure is the last
        step's `RunError`.

        `chunks`: whether anybody reads the steps' `chunks()`; without them a step costs less.
        """
        return self._read(None, chunks=chunks)

    async def _read(
        self, reader: asyncio.Task[Any] | None, *, chunks: bool
    ) -> AsyncGenerator[StreamingIterationResult, None]:
        """Yields the steps of the run. `reader`: the task that reads all of them; `None`: each may
        be read in another."""
        self._transcript.chunks = chunks
        self._loop = loop = running_loop()
        if self._limits.seconds is not None and self._timer is None:
            seconds_left = self._limits.seconds - self._seconds_before
            self._timer = loop.call_later(seconds_left, self._expire)
        paused_at = monotonic()
        while not self._ended:
            if self._waiting is not None:
                raise RuntimeError("this run is being read already; read it in one place at a time")
            self._waiting = reader or asyncio.current_task(loop)
            try:
                if self._stop is not None and not self._transcript.is_complete:
                    self._interrupted = True
                    await self._steps.aclose()
                    step = self._stop_step(self._stop)
                else:
                    # A stream that is always ready would otherwise starve other tasks of the loop.
                    if monotonic() - paused_at > _BUSY_SECONDS:
                        await asyncio.sleep(0)
                        paused_at = monotonic()
                    step = await anext(self._steps)
            except StopAsyncIteration:
                self._end()
                if self._display is not None:
                    self.redraw(is_over=True)
                return
            except asyncio.CancelledError:
                # Only the cancellation that `_interrupt` asked for is ours to swallow; one that
                # came from outside goes on.
                if self._stop is None or self._waiting is None or self._waiting.uncancel() > 0:
                    raise
                # It may have come in the pause above, while tools are at work.
                await self._steps.aclose()
                step = self._stop_step(self._stop)
            except DragomanError as error:
                step = self._fail_step(error, error)
            except Exception as error:  # noqa: BLE001 - the user's code may raise anything
                step = self._fail_step(wrap_foreign_error(error), error)
            finally:
                self._waiting = None
            # Stored before anybody sees it, so that no client knows a message that a store lacks.
            if self._conversation is not None:
                step = await self._keep_messages(step, self._conversation)
            if self._display is not None:
                self.redraw(is_over=self._ended)
            yield step

    async def _keep_messages(
        self, step: StreamingIterationResult, conversation: ConversationRecorder
    ) -> StreamingIterationResult:
        """Stores the messages of a step of the run, and returns the step. If they cannot be stored,
        the run fails, and the step says so."""
        last = step.events[-1] if step.events else None
        is_over = isinstance(last, RunFinished | RunError)
        messages = self._transcript.messages
        try:
            if self._state.story is not None:
                messages = await self._wait_for_messages(step)
            await conversation.keep(messages, is_over=is_over)
        except Exception as error:  # noqa: BLE001 - whatever a store raises
            self._conversation = None
            await self._steps.aclose()
            failed = self._fail_step(
                error if isinstance(error, DragomanError) else wrap_foreign_error(error), error
            )
            before = [
                event for event in step.events if not isinstance(event, RunFinished | RunError)
            ]
            return msgspec.structs.replace(step, events=[*before, *failed.events])
        if isinstance(last, RunFinished) and last.outcome == "success":
            conversation.end()
        return step

    async def _wait_for_messages(self, step: StreamingIterationResult) -> Sequence[Message]:
        """Returns the messages of a durable run that its thread may hold: those that the log holds,
        and at the run's end all."""
        messages, told = self._transcript.messages, self._told
        self._told = len(messages)
        if step.events and isinstance(step.events[-1], RunFinished | RunError) and self._ended:
            return messages
        if self._kept < told and self._state.stored is not None:
            await self._state.stored()
        self._kept = told
        return messages[:told]

    def so_far(self) -> ChatResult[str]:
        """Returns the result so far, with its output as text. An unfinished message counts as far
        as it was shown."""
        return self._transcript.result()

    def __figure__(self) -> Figure:
        """Returns the picture of the run: its result so far."""
        name = self.agent_name or f"run {self.id}"
        return draw_run(name, self.so_far(), self.error, is_over=self._ended)

    def _identify(self) -> str | None:
        """Puts the run's ids into its requests, and returns the id of the run around it."""
        state = self._state
        if state.request.run is None:
            state.thread_id = self.thread_id
            info = RunInfo(
                self.id,
                self.thread_id,
                state.resource_id,
                self.parent_id,
                self.agent_name,
                state.context,
                state.shared.value,
                self._hooks,
            )
            state.request = state.request.replace(model=self._model.string, run=info)
        return self.parent_id

    async def _run_start(self) -> RunStart:
        """Returns the value for the hook `run_start`."""
        self._identify()
        assert self._state.request.run is not None
        messages: Sequence[Message] = self._state.conversation_history
        if self._known is not None:
            # The run itself reads the conversation again, and fails with the reason.
            with suppress(Exception):
                messages = await self._known()
        return RunStart(self._state.request.run, self._model.string, tuple(messages))

    def _outcome(self, raised: Exception | None) -> Ending:
        """Returns the outcome of the run, its result, and the error if it failed."""
        result = self.so_far()
        if self._transcript.is_complete:
            return "pending" if result.pending else "success", result, None
        if raised is None and self._stop not in (None, _CANCELLED):
            raised = LimitReachedError(self._stop)
        if raised is None:
            return "cancelled", result, None
        return (
            "error",
            result,
            raised if isinstance(raised, DragomanError) else wrap_foreign_error(raised),
        )

    def _find_reached_limit(self, model_calls: int, tool_calls: int) -> str | None:
        """Returns the run's limit that leaves no room for so many more calls; `None` if there is
        room."""
        account, usage = self._state.account, None
        if self._limits.total_tokens is not None:
            usage = sum_usage(account.calls)
        taken = Spent(
            model_calls=account.model_calls,
            tool_calls=account.tool_calls,
            total_tokens=(usage and usage.total_tokens) or 0,
            cost=None if self._limits.cost is None else self._transcript.cost(),
            seconds=monotonic() - self._began_at,
        )
        return find_reached_limit(
            self._limits, taken, model_calls=model_calls, tool_calls=tool_calls
        )

    def _interrupt(self) -> None:
        """Interrupts the run: cancels its tools and the step that it waits for."""
        if self._state.tool_round is not None:
            self._state.tool_round.cancel()
        if self._waiting is not None and not self._interrupted and not self._transcript.is_complete:
            self._interrupted = True
            self._waiting.cancel()

    def _expire(self) -> None:
        """Interrupts the run because its time limit is reached."""
        self._stop = self._stop or find_reached_limit(
            Limits(seconds=self._limits.seconds), Spent(seconds=math.inf)
        )
        self._interrupt()

    def _stop_step(self, why: str) -> StreamingIterationResult:
        """Returns the end of a run that was cancelled, or ran out of time."""
        if why != _CANCELLED:
            return self._fail_step(error := LimitReachedError(why), error, FinishReason.cancelled)
        self._end()
        events = self._end_events(FinishReason.cancelled)
        self._transcript.finish_reason = FinishReason.cancelled
        return StreamingIterationResult(
            events=[*events, RunFinished(self.id, "cancelled", self._transcript.usage)]
        )

    def _fail_step(
        self, error: DragomanError, raised: Exception, reason: FinishReason = FinishReason.error
    ) -> StreamingIterationResult:
        """Returns the step that reports the run's failure."""
        self._end()
        events = self._end_events(reason)
        error.result = self.so_far()
        self.error, self.exception = error, raised
        # A record that is kept must not keep the run.
        _LOG.warning("run %s failed: %s", self.id, str(error))
        return StreamingIterationResult(events=[*events, RunError(error, self.id)])

    def _end_events(self, reason: FinishReason) -> list[Event]:
        """Returns the events that end what is still open in the run."""
        events = self._transcript.cut(reason)
        return [
            *events,
            *self._transcript.shown.retract_open(),
            *self._state.outbox.close(),
            *self._work.end_open_step(),
        ]

    def _end(self) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
