"""Messages of a run say which turn they are shown in (decision 30): that of the run's first model
message; who goes on with a turn, keeps it."""

from __future__ import annotations

import pytest

from dragoman import Message, ToolCallPart, ToolResultPart, fold, tool
from dragoman.codec.turns import split_turns
from support.model import agent, call, says, waiting

pytestmark = pytest.mark.anyio


@tool
async def t(x: int = 0) -> int:
    """Adds one."""
    return x + 1


async def test_a_run_is_one_turn() -> None:
    a, _ = agent(says("A", call("t")), says(call("t", id="c2")), says("B"), says("C"), tools=[t])
    async with a.run("hi") as run:
        told = fold([event async for event in run])
        first = await run.result()
    assert [message.turn for message in first.messages] == [None, "m1", "m1", "m1", "m1", "m1"]
    assert [message.turn for message in told] == [message.turn for message in first.messages]
    second = await a.send("more", history=first.messages)
    assert [message.turn for message in second.messages] == [None, second.messages[1].id]
    assert len(split_turns([*first.messages, *second.messages])) == 4


async def test_a_resume_goes_on_with_the_turn_that_it_waits_in() -> None:
    a, _ = agent(says("A", waiting()), says("B"))
    first = await a.send("hi", tools=[waits()])
    (interrupt,) = first.pending
    second = await a.send(
        None, history=first.messages, resume=[interrupt.answer("x")], tools=[waits()]
    )
    assert {message.turn for message in (*first.messages[1:], *second.messages)} == {"m1"}
    answered = await a.send(
        [ToolResultPart("c1", "ask", "x")], history=first.messages, tools=[waits()]
    )
    assert answered.messages[-1].turn == "m1"


async def test_a_turn_without_a_name_is_gone_on_with_as_it_is() -> None:
    a, _ = agent(says("B"))
    history = [
        Message.user("hi"),
        Message.model(ToolCallPart("c", "t")),
        Message.user(ToolResultPart("c", "t", 1)),
    ]
    result = await a.send(None, history=history)
    assert result.messages[-1].turn is None
    assert len(split_turns([*history, *result.messages])) == 2


def waits() -> object:
    from dragoman import Tool

    return Tool("ask", "Asks.", None)
