"""Helpers of the tests of tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.message import ToolCallPart
from dragoman.tools import (
    ParallelToolExecutor,
    Tool,
    ToolContext,
    ToolExecutionResult,
    ToolExecutor,
)

EXECUTORS = pytest.mark.parametrize(
    "executor", [ToolExecutor(), ParallelToolExecutor()], ids=["sequential", "parallel"]
)


def call(name: str, call_id: str = "1", **arguments: Any) -> ToolCallPart:
    return ToolCallPart(call_id, name, arguments)


def batch(
    executor: ToolExecutor, calls: list[ToolCallPart], *tools: Tool, **context: Any
) -> list[ToolExecutionResult]:
    context = {"deps": None, **context}
    return asyncio.run(
        executor.execute_batch(calls, {each.name: each for each in tools}, ToolContext(**context))
    )


def outcome(function: Callable[..., Any], **options: Any) -> ToolExecutionResult:
    (result,) = batch(ToolExecutor(), [call("it")], Tool("it", handler=function, **options))
    return result


def raising(error: BaseException) -> Callable[[], Awaitable[Any]]:
    async def raises() -> Any:
        raise error

    return raises
