"""Sends one prompt, shows the answer as it comes, and asks the user for what the run waits for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from dragoman.cli.ask_user import Terminal, ask_all
from dragoman.cli.ctrl_c import Interrupts
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
    """Options of a run that the command line sets."""

    model: str | None
    """A model in place of the agent's."""
    output_schema: JsonMap | None
    """JSON Schema of the output."""
    thread_id: str
    """Id of the conversation."""


Ask = Callable[[Sequence[Interrupt], Callable[[Resume], object]], Awaitable[list[Resume]]]
"""Takes the pending interrupts and a function that raises `ResumeError` for an invalid answer.
Returns the answers, or none to leave the run pending."""


def make_asker(screen: Screen, interrupts: Interrupts) -> Ask:
    """Returns a function that, after a prompt was sent, asks at the terminal, or answers nothing if
    there is no terminal. Ctrl-C or Ctrl-D leaves all questions of a round pending."""
    # Questions go to standard error first, so that a piped answer stays clean.
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
        # Answers are not prompts, which one may want to recall later.
        editor = Editor(interrupts, keeps=False, suffix=".json")
        try:
            return await ask_all(pending, Terminal(editor.read, say, check))
        except (LineGivenUp, EOFError):
            return []

    return ask_at_terminal


async def _answer_nothing(
    _pending: Sequence[Interrupt], _check: Callable[[Resume], object]
) -> list[Resume]:
    """Answers none of the interrupts that follow a prompt, so that all stay pending."""
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
    """Sends a prompt, shows the answer, and continues the run with the user's answers while it
    waits. Returns the result of each run.

    `history` grows by the new messages, also after an error. If the model said nothing it stays as
    it is.

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
    """Shows the run of a prompt and returns its result. Ctrl-C cancels the run, which then ends as
    `cancelled`; a second Ctrl-C cancels the task if that does not help."""
    task = asyncio.current_task()
    assert task is not None
    try:
        async with run:
            # The first Ctrl-C keeps what was said. The second one ends a run that does not react.
            with interrupts.to(run.cancel, task.cancel):
                async with aclosing(run.steps()) as steps:
                    async for step in steps:
                        for chunk in step.chunks():
                            show(chunk)
                return await run.result()
    finally:
        # Also after an error: what was shown is a part of the conversation.
        messages = run.so_far().messages
        if goes_on or any(message.role is Role.MODEL for message in messages):
            history += messages
