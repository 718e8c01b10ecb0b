"""One prompt on the command line, with what comes after it where it waits (issue 9): what is kept
of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dragoman import Interrupt, Message, Resume, Role, TextPart, tool
from dragoman.cli.ctrl_c import Interrupts
from dragoman.cli.send_prompt import send_and_ask
from dragoman.errors import ProviderError, ResumeError
from support.model import agent, call, says

pytestmark = pytest.mark.anyio


@tool(requires_approval=True)
def delete(path: str) -> str:
    """Deletes a file."""
    return f"{path} is deleted"


async def approve(pending: Sequence[Interrupt], check: Callable[[Resume], object]) -> list[Resume]:
    with pytest.raises(ResumeError):
        check(pending[0].answer("what?"))
    answers = [interrupt.approve() for interrupt in pending]
    check(answers[0])
    return answers


async def nobody(_pending: Sequence[Interrupt], _check: Callable[[Resume], object]) -> list[Resume]:
    return []


async def sent(a: Any, history: list[Message], asks: Any) -> list[str]:
    """What the runs of a prompt gave."""
    with Interrupts() as interrupts:
        results = await send_and_ask(
            a, [TextPart("Delete x and y.")], lambda _: None, interrupts, history, asks
        )
    return [result.output for result in results]


async def test_it_goes_on_with_answers_until_nothing_waits() -> None:
    answers = [
        says("One.", call("delete", path="x")),
        says("Two.", call("delete", id="c2", path="y")),
        says("Done."),
    ]
    a, script = agent(*answers, tools=[delete])
    history: list[Message] = []
    assert await sent(a, history, approve) == ["One.", "Two.", "Done."]
    assert [message.role for message in history] == [Role.USER, Role.MODEL] * 3
    assert script.requests[2].messages == tuple(history[:-1])


async def test_it_ends_where_nobody_answers() -> None:
    a, script = agent(says("One.", call("delete", path="x")), tools=[delete])
    history: list[Message] = []
    assert await sent(a, history, nobody) == ["One."]
    assert (len(history), len(script.requests)) == (2, 1)


async def test_what_was_run_is_kept_where_the_model_fails_after_it() -> None:
    a, _ = agent(says(call("delete", path="x")), ProviderError("down"), tools=[delete])
    history: list[Message] = []
    with pytest.raises(ProviderError):
        await sent(a, history, approve)
    assert [message.role for message in history] == [Role.USER, Role.MODEL, Role.USER]
    assert history[-1].tool_results[0].result == "x is deleted"


async def test_a_prompt_to_which_the_model_said_nothing_is_forgotten() -> None:
    a, _ = agent(ProviderError("down"))
    history: list[Message] = []
    with pytest.raises(ProviderError):
        await sent(a, history, nobody)
    assert history == []
