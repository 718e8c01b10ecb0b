"""One answer, from the prompt to its end or to Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Unpack

from dragoman.cli.interrupt import Interrupts
from dragoman.message import Content
from dragoman.result import ChatResult

if TYPE_CHECKING:
    from dragoman.agent import Agent, RunOptions

__all__ = ["answer"]


async def answer(
    agent: Agent[Any],
    prompt: list[Content],
    show: Callable[[ChatResult[str]], None],
    interrupts: Interrupts,
    **how: Unpack[RunOptions],
) -> ChatResult[str]:
    """Sends a prompt and shows what comes → the whole. Ctrl-C ends it where it stands, as `cancelled`; a second one, should
    that not help, cancels the task.

    Raises:
        DragomanError: as `Run.result`.
    """
    task = asyncio.current_task()
    assert task is not None
    async with agent.run(prompt, **how) as run:
        with interrupts.to(run.cancel, task.cancel):
            async with aclosing(run.steps()) as steps:
                async for step in steps:
                    for chunk in step.chunks():
                        show(chunk)
            return await run.result()
