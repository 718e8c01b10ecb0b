"""One answer, from the prompt to its end or to Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, Unpack

from dragoman.message import Content
from dragoman.result import ChatResult

if TYPE_CHECKING:
    from dragoman.agent import Agent, RunOptions

__all__ = ["answer"]


async def answer(
    agent: Agent[Any],
    prompt: list[Content],
    show: Callable[[ChatResult[str]], None],
    **how: Unpack[RunOptions],
) -> ChatResult[str]:
    """Sends a prompt and shows what comes → the whole. Ctrl-C ends it where it stands, as `cancelled`.

    Raises:
        DragomanError: as `Run.result`.
    """
    async with agent.run(prompt, **how) as run:
        with _interrupted_by(run.cancel):
            async with aclosing(run.steps()) as steps:
                async for step in steps:
                    for chunk in step.chunks():
                        show(chunk)
            return await run.result()


@contextmanager
def _interrupted_by(cancel: Callable[[], None]) -> Generator[None]:
    """The first Ctrl-C calls `cancel`; a second one, should that not help, is an interrupt as usual."""
    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        cancel()

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
