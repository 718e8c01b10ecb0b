"""A set of tools that is not written down: it is asked for its tools before each model call."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from dragoman.tools.context import ToolContext
from dragoman.tools.tool import Tool

__all__ = ["Toolset"]


class Toolset:
    """Tools that come from somewhere else. Stands beside tools and functions in `Agent(tools=…)` and in `tools=` of a send.

    A run enters it before it first asks for its tools and leaves it at its end; `async with agent` and `async with toolset` do so
    too. It may be entered many times, from any task and event loop; what it opens, it opens when it is first needed, and gives back when
    the last one has left.
    """

    async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:
        """The tools that the model may call next. `context`: what tools may know of the run; its `call` is empty.

        Raises:
            ToolError: they cannot be told.
        """
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None
