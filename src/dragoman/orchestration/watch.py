"""A run, as hooks see it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from time import monotonic
from typing import Literal

from dragoman.errors import DragomanError
from dragoman.hooks import RequestLoss, RunEnd, RunStart, fire
from dragoman.message import Origin
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.state import StreamingState
from dragoman.result import ChatResult

__all__ = ["Ending", "watched"]

Ending = tuple[
    Literal["success", "pending", "cancelled", "error"], ChatResult[str], DragomanError | None
]
"""How a run ended, what it gave, and why it failed."""


async def watched(
    steps: AsyncGenerator[StreamingIterationResult, None],
    begin: Callable[[], Awaitable[RunStart]],
    state: StreamingState,
    target: Origin,
    ending: Callable[[Exception | None], Ending],
) -> AsyncGenerator[StreamingIterationResult, None]:
    """A run's steps, between the hooks of its start and its end. `begin`: what is told of its start. `target`: whom it asks, where nobody has answered yet. `ending`: takes
    what was raised."""
    start, began_at, noted = await begin(), monotonic(), 0
    hooks = start.run.hooks
    raised: Exception | None = None

    async def tell_losses() -> int:
        losses = tuple(state.losses)
        for loss in losses[noted:]:
            await fire(
                hooks,
                "loss",
                RequestLoss(start.run, state.accumulated_message.origin or target, loss),
            )
        return len(losses)

    try:
        await fire(hooks, "run_start", start)
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
            await fire(hooks, "run_end", RunEnd(start, monotonic() - began_at, *ending(raised)))
