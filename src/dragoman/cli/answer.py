"""One answer, from the prompt to its end or to Ctrl-C, and what comes after it where it waits."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from dragoman.cli.ask import Terminal, ask_all
from dragoman.cli.interrupt import Interrupts
from dragoman.cli.terminal import escape
from dragoman.interrupt import Interrupt, Resume
from dragoman.json_bytes import JsonMap
from dragoman.message import Content, Message, Role
from dragoman.result import ChatResult

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.cli.screen import Screen
    from dragoman.run import Run

__all__ = ["Ask", "RunChoices", "send_and_ask", "make_asker"]


class RunChoices(TypedDict, total=False):
    """What the command line says of a run."""

    model: str | None
    """Another model than the agent's."""
    output_schema: JsonMap | None
    """JSON Schema of the output."""
    thread_id: str
    """Id of the conversation."""


Ask = Callable[[Sequence[Interrupt], Callable[[Resume], object]], Awaitable[list[Resume]]]
"""(what is waited for, what raises `ResumeError` where an answer does not fit) → the answers; none:
it is left pending."""


def make_asker(screen: Screen, interrupts: Interrupts) -> Ask:
    """Asks at the terminal, where there is one; else answers nothing. Ctrl-C or Ctrl-D leaves all
    that was asked at once pending."""
    out = next((stream for stream in (sys.stderr, sys.stdout) if stream.isatty()), None)
    if out is None or sys.stdin is None or not sys.stdin.isatty():
        return _answer_nothing

    def say(text: str) -> None:
        print(escape(text), file=out, flush=True)

    async def ask_at_terminal(
        pending: Sequence[Interrupt], check: Callable[[Resume], object]
    ) -> list[Resume]:
        from dragoman.cli.editor import Editor, LineGivenUp

        screen.finish()
        editor = Editor(interrupts, keeps=False, suffix=".json")
        try:
            return await ask_all(pending, Terminal(editor.read, say, check))
        except (LineGivenUp, EOFError):
            return []

    return ask_at_terminal


async def _answer_nothing(
    _pending: Sequence[Interrupt], _check: Callable[[Resume], object]
) -> list[Resume]:
    return []


async def send_and_ask(
    agent: Agent[Any],
    prompt: list[Content],
    show: Callable[[ChatResult[str]], None],
    interrupts: Interrupts,
    history: list[Message],
    asks: Ask,
    **options: Unpack[RunChoices],
) -> list[ChatResult[str]]:
    """Sends a prompt and shows what comes; where that waits, takes the answers that `asks` gets and
    goes on → the result of each run.

    `history` grows by what was said, also where it ends in an error. A prompt to which the model
    said nothing leaves nothing there.

    Raises:
        DragomanError: as `Run.result`.
    """
    results = [
        await _show_run(agent.run(prompt, history=history, **options), show, interrupts, history)
    ]

    # What a thread has stands in the history, too, and is checked at once.
    check_options: RunChoices = {
        **options,
        "thread_id": "",
    }

    def check(resume: Resume) -> object:
        return agent.run(None, history=history, resume=[resume], **check_options)

    while (pending := results[-1].pending) and (resume := await asks(pending, check)):
        run = agent.run(None, history=history, resume=resume, **options)
        results.append(await _show_run(run, show, interrupts, history, goes_on=True))
    return results


async def _show_run(
    run: Run[str],
    show: Callable[[ChatResult[str]], None],
    interrupts: Interrupts,
    history: list[Message],
    *,
    goes_on: bool = False,
) -> ChatResult[str]:
    """One run. Ctrl-C ends it where it stands, as `cancelled`; a second one, should that not help,
    cancels the task."""
    task = asyncio.current_task()
    assert task is not None
    try:
        async with run:
            with interrupts.to(run.cancel, task.cancel):
                async with aclosing(run.steps()) as steps:
                    async for step in steps:
                        for chunk in step.chunks():
                            show(chunk)
                return await run.result()
    finally:
        messages = run.so_far().messages
        if goes_on or any(message.role is Role.MODEL for message in messages):
            history += messages
