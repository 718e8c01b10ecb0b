"""One request to a model, as hooks see it."""

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
    ModelRetry,
    ModelStart,
    RequestLoss,
    call_hooks,
    collect_headers,
    log_failure,
)
from dragoman.loss import Loss
from dragoman.message import FinishReason
from dragoman.request import HttpRequest
from dragoman.tools.outcome import describe_error
from dragoman.transport.base import Response
from dragoman.transport.retry import RETRIED

__all__ = ["Watch"]


class Watch:
    """Tells hooks of one request: `begin`, `add`, `end`. Nothing is told of one that never
    began."""

    __slots__ = ("_began_at", "_first_at", "_hooks", "_losses", "_reads", "_start", "raised")

    def __init__(self, hooks: tuple[Hooks, ...]) -> None:
        self.raised: Exception | None = None
        """What was raised instead of being told."""
        self._hooks = hooks
        self._losses: tuple[Loss, ...] = ()
        self._start: ModelStart | None = None
        self._reads: list[list[Event]] = []
        self._began_at = self._first_at = 0.0

    async def begin(self, start: ModelStart) -> None:
        """The request is known, and to whom it goes. Where it is sent once more, that is the
        same."""
        if self._start is None:
            self._start, self._began_at = start, monotonic()
            await call_hooks(self._hooks, "model_start", start)

    async def report_losses(self, losses: tuple[Loss, ...]) -> None:
        """What the request has to leave out. A run tells of that itself."""
        self._losses = losses
        if losses and self._start is not None and self._start.run is None:
            for loss in losses:
                await call_hooks(self._hooks, "loss", RequestLoss(None, self._start.target, loss))

    async def send(
        self, send: Callable[[HttpRequest], Awaitable[Response]], request: HttpRequest
    ) -> Response:
        """Sends the request, with what hooks add to it."""
        entered: list[tuple[Hooks, AbstractContextManager[Any]]] = []
        for hook in self._hooks:
            if (
                hook.model_context is not None
                and (context_entered := self._enter_context(hook)) is not None
            ):
                entered.append(context_entered)
        raised: BaseException | None = None
        token = RETRIED.set(self._report_retry)
        try:
            if more := collect_headers(self._hooks):
                request = msgspec.structs.replace(request, headers={**more, **request.headers})
            return await send(request)
        except BaseException as error:
            raised = error
            raise
        finally:
            # with which a task is destroyed, in somebody else's context
            if not isinstance(raised, GeneratorExit):
                RETRIED.reset(token)
            for hooks, context in reversed(entered):
                try:
                    context.__exit__(None if raised is None else type(raised), raised, None)
                except Exception as error:  # noqa: BLE001 - whatever code of the user's raises
                    log_failure(hooks.model_context, error)

    def _enter_context(self, hooks: Hooks) -> tuple[Hooks, AbstractContextManager[Any]] | None:
        """A hook's context manager, entered; `None`: it has none, or it failed."""
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
        """What one read gave, where that is more than a delta: the piece that is finished says it
        again."""
        if not self._reads:
            self._first_at = monotonic()
        self._reads.append(events)

    async def end(self) -> None:
        """The answer is at its end, failed, or is left."""
        start, self._start = self._start, None
        if start is None:
            return
        finish, opened = _find_end(self._reads), _find_start(self._reads)
        error = self._find_error()
        if error is not None:
            reason = FinishReason.error
        else:
            reason = (
                FinishReason.cancelled
                if finish is None
                else finish.finish_reason or FinishReason.unspecified
            )
        end = ModelEnd(
            start,
            monotonic() - self._began_at,
            None if opened is None else self._first_at - self._began_at,
            (finish and finish.origin) or (opened and opened.origin),
            reason,
            None if finish is None else finish.usage,
            self._losses,
            error,
            self._reads,
        )
        await call_hooks(self._hooks, "model_end", end)

    def _find_error(self) -> DragomanError | None:
        """Why the request failed."""
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
        if self._start is not None:
            run, provider = self._start.run, self._start.target.provider
            await call_hooks(
                self._hooks, "retry", ModelRetry(run, provider, attempt, wait, status, error)
            )


def _find_start(reads: Sequence[Sequence[Event]]) -> MessageStarted | None:
    """The start of the answer."""
    for events in reads:
        for event in events:
            if type(event) is MessageStarted and event.candidate == 0:
                return event
    return None


def _find_end(reads: Sequence[Sequence[Event]]) -> MessageFinished | None:
    """The end of the answer. It stands among the last events."""
    for events in reversed(reads):
        for event in reversed(events):
            if type(event) is MessageFinished:
                return event
    return None
