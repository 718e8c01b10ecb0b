"""One call of a tool, as hooks see it."""

from __future__ import annotations

from collections.abc import Coroutine
from time import monotonic
from typing import Any

from dragoman.hooks import Hooks, ToolEnd, ToolStart, fire
from dragoman.tools.ask import AskUser
from dragoman.tools.outcome import ToolExecutionResult

__all__ = ["watched"]


async def watched(
    hooks: tuple[Hooks, ...], start: ToolStart, work: Coroutine[Any, Any, ToolExecutionResult]
) -> ToolExecutionResult:
    """Runs a tool between the hooks of its start and its end."""
    result: ToolExecutionResult | None = None
    raised: BaseException | None = None
    began_at = monotonic()
    try:
        await fire(hooks, "tool_start", start)
        result = await work
        return result  # noqa: TRY300 - the end is told first
    except BaseException as error:
        raised = error
        raise
    finally:
        work.close()
        error = raised if result is None else result.exception
        part = None if result is None or isinstance(error, AskUser) else result.part
        await fire(hooks, "tool_end", ToolEnd(start, monotonic() - began_at, part, error))
