"""Reports one request to a model to hooks.

One `Watch` belongs to one request. `begin` reports `model_start`. `send` enters the context
managers of hooks around the transport, adds their headers, and lets the transport report its
retries. `add` only collects events, so that streaming costs nothing more. `end` finds the start,
the finish and the error among them and reports `model_end`. A hook that raises is logged and
never breaks the request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any

import msgspec

from dragoman.errors import DragomanError
from dragoman.event import Event, MessageFinished, MessageStarted, RunError
from dragoman.hooks import (
    Hooks,
    ModelEnd,
    ModelStart,
    RequestLoss,
    RequestRetry,
    call_hooks,
    collect_headers,
    log_failure,
)
from dragoman.loss import Loss
from dragoman.message import FinishReason
from dragoman.request import HttpRequest
from dragoman.tools.tool_result import describe_error
from dragoman.transport.base import Response
from dragoman.transport.retry import ON_RETRY

__all__ = ["Watch"]


class Watch:
    """Reports a request to hooks: `begin`, `add`, `end`. Reports nothing for a request that never
    began."""

    __slots__ = ("_began_at", "_first_at", "_hooks", "_losses", "_reads", "_start", "raised")

    def __init__(self, hooks: tuple[Hooks, ...]) -> None:
        """Prepares the report of one model call to hooks."""
        self.raised: Exception | None = None
        """An exception that was raised instead of being sent as an event."""
        self._hooks = hooks
        self._losses: tuple[Loss, ...] = ()
        self._start: ModelStart | None = None
        self._reads: list[list[Event]] = []
        self._began_at = self._first_at = 0.0

    async def begin(self, start: ModelStart) -> None:
        """Reports to hooks the start of a request. A second attempt of the same request is not
        reported."""
        if self._start is None:
            self._start, self._began_at = start, monotonic()
            await call_hooks(self._hooks, "model_start", start)

    async def report_losses(self, losses: tuple[Loss, ...]) -> None:
        """Reports to hooks what the request leaves out, unless a run reports it."""
        self._losses = losses
        if losses and self._start is not None and self._start.run is None:
            for loss in losses:
                await call_hooks(self._hooks, "loss", RequestLoss(None, self._start.target, loss))

    async def send(
        self, send: Callable[[HttpRequest], Awaitable[Response]], request: HttpRequest
    ) -> Response:
        """Sends the request with the headers that hooks add, inside their contexts."""
        contexts = [
            context for hook in self._hooks if (context := self._enter_context(hook)) is not None
        ]
        raised: BaseException | None = None
        token = ON_RETRY.set(self._report_retry)
        try:
            if more := collect_headers(self._hooks):
                request = msgspec.structs.replace(request, headers={**more, **request.headers})
            return await send(request)
        except BaseException as error:
            raised = error
            raise
        finally:
            # A destroyed task is closed in another context, where the token is not valid.
            if not isinstance(raised, GeneratorExit):
                ON_RETRY.reset(token)
            for hooks, context in reversed(contexts):
                try:
                    context.__exit__(None if raised is None else type(raised), raised, None)
                except Exception as error:  # noqa: BLE001 - whatever code of the user's raises
                    log_failure(hooks.model_context, error)

    def _enter_context(self, hooks: Hooks) -> tuple[Hooks, AbstractContextManager[Any]] | None:
        """Enters a hook's context manager and returns it, or None if there is none or it fails."""
        if hooks.model_context is None or self._start is None:
            return None
        try:
            context = hooks.model_context(self._start)
            context.__enter__()
        except Exception as error:  # noqa: BLE001 - whatever code of the user's raises
            log_failure(hooks.model_context, error)
            return None
        return hooks, context

    def add(self, events: list[Event]) -> None:
        """Records the events of one network read, which hooks are told of. Reads of a single delta
        may be left out: the finished part repeats them."""
        if not self._reads:
            self._first_at = monotonic()
        self._reads.append(events)

    async def end(self) -> None:
        """Reports to hooks the end of a request: finished, failed or abandoned."""
        start, self._start = self._start, None
        if start is None:
            return
        finish, answer_start = _find_end(self._reads), _find_start(self._reads)
        error = self._find_error()
        # Without an end and without an error, the reader left.
        reason, usage = FinishReason.cancelled, None
        if finish is not None:
            reason, usage = finish.finish_reason or FinishReason.unspecified, finish.usage
        if error is not None:
            reason = FinishReason.error
        first_seconds = None
        if answer_start is not None:
            first_seconds = self._first_at - self._began_at
        end = ModelEnd(
            start,
            monotonic() - self._began_at,
            first_seconds,
            (finish and finish.origin) or (answer_start and answer_start.origin),
            reason,
            usage,
            self._losses,
            error,
            self._reads,
        )
        await call_hooks(self._hooks, "model_end", end)

    def _find_error(self) -> DragomanError | None:
        """Returns the error to report to hooks, which ended the request, or None."""
        if self._reads and isinstance(last := self._reads[-1][-1], RunError):
            return last.error
        if (raised := self.raised) is None:
            return None
        error = DragomanError(f"{type(raised).__name__} in the request: {describe_error(raised)}")
        error.__cause__ = raised
        return error

    async def _report_retry(
        self, attempt: int, wait: float, status: int | None, error: DragomanError | None
    ) -> None:
        """Reports to hooks that the transport sends the request again."""
        if self._start is not None:
            run, provider = self._start.run, self._start.target.provider
            await call_hooks(
                self._hooks, "retry", RequestRetry(run, provider, attempt, wait, status, error)
            )


def _find_start(reads: Sequence[Sequence[Event]]) -> MessageStarted | None:
    """Returns the start of the answer to report to hooks, or None."""
    for events in reads:
        for event in events:
            if type(event) is MessageStarted and event.candidate == 0:
                return event
    return None


def _find_end(reads: Sequence[Sequence[Event]]) -> MessageFinished | None:
    """Returns the end of the answer to report to hooks, or None. It is among the last events."""
    for events in reversed(reads):
        for event in reversed(events):
            if type(event) is MessageFinished:
                return event
    return None
