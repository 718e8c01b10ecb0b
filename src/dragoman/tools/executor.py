"""Runs the calls of one model message, in sight of hooks: `ToolExecutor` one after another,
`ParallelToolExecutor` side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import groupby
from time import monotonic
from typing import Any

from dragoman.errors import SettingsError, ToolError
from dragoman.event import ToolStarted
from dragoman.hooks import Hooks, ToolEnd, ToolStart, call_hooks, find_active_hooks
from dragoman.logs import logger
from dragoman.message import ToolCallPart
from dragoman.tools.call_record import AskUser
from dragoman.tools.context import ToolContext
from dragoman.tools.definition import Tool
from dragoman.tools.tool_result import ToolExecutionResult, error_result, success_result

__all__ = [
    "BoundExecutor",
    "ParallelToolExecutor",
    "Report",
    "ToolExecutor",
    "watch_call",
]

Report = Callable[[int, ToolExecutionResult], None]
"""Takes a call's place in its batch and what came of it, once it is done."""

_LOG = logger("tools")
_NOBODY: ToolContext[Any] = ToolContext(None)
_RUN: ContextVar[ToolContext[Any]] = ContextVar("dragoman_tools", default=_NOBODY)
"""What the tools of the running batch may know, for executors that do not hand it on themselves."""
_CANCELLED_AGAIN = 1.0
"""Seconds after which a call that goes on although it was cancelled is cancelled again; so long it
may clean up."""
_UNREADABLE = {
    "cut": "the arguments were truncated before their end, so the tool was not run; call it again, with shorter ones",
    "invalid": "the arguments are not valid JSON (an object is needed), so the tool was not run; call it again",
}


class ToolExecutor:
    """Runs calls strictly one after another. Whatever a tool raises becomes its result, never an
    exception.

    A subclass may change `execute_single` (one call) or `execute_batch` (their order). What the
    tools may know (`ToolContext`) reaches them also where it hands on calls and tools alone.
    """

    @property
    def context(self) -> ToolContext[Any]:
        """Returns the context for the tools of the batch that is running; `call` is filled in for
        each."""
        return _RUN.get()

    async def execute_batch(
        self,
        calls: Sequence[ToolCallPart],
        tools: Mapping[str, Tool],
        context: ToolContext[Any] | None = None,
    ) -> list[ToolExecutionResult]:
        """Executes all tool calls; the results stand in the order of the calls. `context`: in place
        of the run's."""
        with _share_knowledge(context):
            return await self.execute_reporting(calls, tools)

    async def execute_reporting(
        self, calls: Sequence[ToolCallPart], tools: Mapping[str, Tool], report: Report | None = None
    ) -> list[ToolExecutionResult]:
        """Returns what `execute_batch` does, and `report` is called with each result as soon as it
        is there."""
        return await self._in_turn(range(len(calls)), calls, tools, report)

    async def execute_single(
        self, call: ToolCallPart, tools: Mapping[str, Tool], context: ToolContext[Any] | None = None
    ) -> ToolExecutionResult:
        """Executes one tool call, approved or not, in sight of hooks. Any `Exception` becomes an
        error result. `context`: in place of the run's.

        Raises:
            BaseException: cancellation of the caller, and what else is no `Exception`.
        """
        context = context or self.context
        if hooks := context.run.hooks if context.run is not None else find_active_hooks():
            tool = tools.get(call.name)
            start = ToolStart(context.run, call, "" if tool is None else tool.description)
            return await watch_call(hooks, start, self._run_call(call, tools, context))
        return await self._run_call(call, tools, context)

    async def _run_call(
        self, call: ToolCallPart, tools: Mapping[str, Tool], context: ToolContext[Any]
    ) -> ToolExecutionResult:
        """Executes one tool call. Every error, also a failed lookup, becomes a result for the
        model."""
        try:
            tool = _find_tool(call, tools)
            if context.records is not None:
                edited = context.records.edited_arguments(call)
                context.outbox.put([ToolStarted(call.id, call.name, edited)])
            return success_result(call, await tool.run(call, context))
        except AskUser as question:
            return error_result(call, question)
        except Exception as error:  # noqa: BLE001 - the model is told
            result = error_result(call, error)
            _LOG.warning("%s failed: %s", call.name, str(result.error))
            return result
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return error_result(call, ToolError(f"{call.name} was cancelled from within"))

    async def _in_turn(
        self,
        indexes: Iterable[int],
        calls: Sequence[ToolCallPart],
        tools: Mapping[str, Tool],
        report: Report | None,
    ) -> list[ToolExecutionResult]:
        """Executes the tool calls at these places one after another."""
        results: list[ToolExecutionResult] = []
        for index in indexes:
            results.append(result := await self.execute_single(calls[index], tools))
            if report is not None:
                report(index, result)
        return results


class ParallelToolExecutor(ToolExecutor):
    """Runs calls side by side, at most `max_concurrency` at a time; a `sequential` tool runs alone,
    in its place.

    No task outlives the batch: when the caller is cancelled, all calls are cancelled and awaited.

    Raises:
        SettingsError: `max_concurrency` is below 1.
    """

    def __init__(self, max_concurrency: int = 10) -> None:
        """Creates an executor of tool calls side by side. `max_concurrency`: None for no limit."""
        if max_concurrency < 1:
            raise SettingsError(
                f"max_concurrency is {max_concurrency}; at least one call must be able to run"
            )
        self.max_concurrency = max_concurrency

    async def execute_reporting(
        self, calls: Sequence[ToolCallPart], tools: Mapping[str, Tool], report: Report | None = None
    ) -> list[ToolExecutionResult]:
        """Runs calls as `ToolExecutor` does, with those between two `sequential` ones side by
        side."""
        results: list[ToolExecutionResult] = []
        for alone, group in groupby(
            range(len(calls)),
            lambda index: (call := calls[index]).name in tools and tools[call.name].sequential,
        ):
            indexes = list(group)
            if alone or len(indexes) == 1:
                together = self._in_turn
            else:
                together = self._side_by_side
            results += await together(indexes, calls, tools, report)
        return results

    async def _side_by_side(
        self,
        indexes: Sequence[int],
        calls: Sequence[ToolCallPart],
        tools: Mapping[str, Tool],
        report: Report | None,
    ) -> list[ToolExecutionResult]:
        """Executes several tool calls side by side, at most `max_concurrency` at once, and reports
        each result."""
        results: dict[int, ToolExecutionResult] = {}
        waiting = iter(indexes)

        async def worker() -> None:
            """Executes tool calls one after another until none is left."""
            for index in waiting:
                results[index] = result = await self.execute_single(calls[index], tools)
                if report is not None:
                    report(index, result)

        workers = min(self.max_concurrency, len(indexes))
        await _wait_for_all([asyncio.create_task(worker()) for _ in range(workers)])
        return [results[index] for index in indexes]


class BoundExecutor:
    """An executor as a run has it: its tools know the run, also where the executor takes calls and
    tools alone."""

    def __init__(
        self,
        executor: ToolExecutor,
        context: Callable[[], ToolContext[Any]],
        begin: Callable[[Sequence[ToolCallPart]], Awaitable[None] | None],
    ) -> None:
        """Creates an executor bound to one run's state. `context`: returns what the tools may know.
        `begin`: called before calls are run, and awaited if it returns an awaitable; it raises if
        they may not be run."""
        self.executor = executor
        self._context = context
        self._begin = begin

    @property
    def reports(self) -> bool:
        """Returns whether each result is final when its tool ends: a batch that the user overrides
        may change its results."""
        return type(self.executor).execute_batch is ToolExecutor.execute_batch

    async def execute_reporting(
        self, calls: Sequence[ToolCallPart], tools: Mapping[str, Tool], report: Report
    ) -> list[ToolExecutionResult]:
        """Runs calls as `ToolExecutor.execute_reporting` does, if it `reports`."""
        if (begun := self._begin(calls)) is not None:
            await begun
        with _share_knowledge(self._context()):
            return await self.executor.execute_reporting(calls, tools, report)

    async def execute_batch(
        self, calls: Sequence[ToolCallPart], tools: Mapping[str, Tool]
    ) -> list[ToolExecutionResult]:
        """Executes tool calls as `ToolExecutor.execute_batch` does."""
        if (begun := self._begin(calls)) is not None:
            await begun
        with _share_knowledge(self._context()):
            return await self.executor.execute_batch(calls, tools)

    async def execute_single(
        self, call: ToolCallPart, tools: Mapping[str, Tool]
    ) -> ToolExecutionResult:
        """Executes a tool call as `ToolExecutor.execute_single` does."""
        if (begun := self._begin((call,))) is not None:
            await begun
        with _share_knowledge(self._context()):
            return await self.executor.execute_single(call, tools)


@contextmanager
def _share_knowledge(context: ToolContext[Any] | None) -> Generator[None]:
    """Shares with the tools that an executor runs what they may know of the run; `None`: as it
    is."""
    if context is None:
        yield
        return
    before = _RUN.set(context)
    try:
        yield
    finally:
        _RUN.reset(before)


async def _wait_for_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Waits for all tasks of an executor. When the caller is cancelled or one of them fails, they
    are cancelled, and again while they go on all the same; what was raised first is raised here, as
    one call alone would raise it."""
    pending, timeout = set(tasks), None
    # A tool may swallow a cancellation, so those that are left are cancelled again every second.
    cancelled: asyncio.CancelledError | None = None
    while pending:
        try:
            _, pending = await asyncio.wait(
                pending, timeout=timeout, return_when=asyncio.FIRST_EXCEPTION
            )
        except asyncio.CancelledError as error:
            cancelled = error
        timeout = _CANCELLED_AGAIN
        for task in pending:
            task.cancel()
    errors = [task.exception() for task in tasks if not task.cancelled()]
    if cancelled is not None:
        raise cancelled
    if (error := next(filter(None, errors), None)) is not None:
        raise error
    if len(errors) < len(tasks):
        raise asyncio.CancelledError


def _find_tool(call: ToolCallPart, tools: Mapping[str, Tool]) -> Tool:
    """Returns the tool that a call is executed by. Raises `ToolError` if it does not exist or its
    arguments cannot be read."""
    if call.run_by == "provider":
        raise ToolError(f"{call.name} was run by the provider and is not run again")
    if call.name not in tools:
        names = ", ".join(tools) or "none"
        raise ToolError(f"there is no tool named {call.name!r}; the tools are: {names}")
    if call.state != "complete":
        raise ToolError(_UNREADABLE[call.state])
    return tools[call.name]


async def watch_call(
    hooks: tuple[Hooks, ...], start: ToolStart, work: Coroutine[Any, Any, ToolExecutionResult]
) -> ToolExecutionResult:
    """Runs a tool call between the hooks `tool_start` and `tool_end`. The latter is called in every
    case, also before an error goes on."""
    result: ToolExecutionResult | None = None
    raised: BaseException | None = None
    began_at = monotonic()
    try:
        await call_hooks(hooks, "tool_start", start)
        result = await work
        return result  # noqa: TRY300 - the end is told first
    except BaseException as error:
        raised = error
        raise
    finally:
        work.close()
        error = raised if result is None else result.exception
        if result is None or isinstance(error, AskUser):
            part = None
        else:
            part = result.part
        await call_hooks(hooks, "tool_end", ToolEnd(start, monotonic() - began_at, part, error))
