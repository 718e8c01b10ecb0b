"""An agent as a tool of another, by the wires of four providers."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from dragoman import (
    Agent,
    DataPart,
    Limits,
    Message,
    TextPart,
    ToolContext,
    dump_messages,
    fold,
    load_messages,
    tool,
)
from dragoman.errors import LimitReachedError, ProviderError, ToolError
from dragoman.event import RunError, RunFinished, RunStarted
from dragoman.testing import ScriptedModel, call
from dragoman.tools import Tool
from support.model import agent, says
from support.model import call as calls

pytestmark = pytest.mark.anyio

WIRES = ["openai_chat", "anthropic", "google", "openai_responses"]
WAYS = [(wire, stream) for wire in WIRES for stream in (True, False)]


def model(
    *answers: Any, wire: str = "openai_chat", stream: bool = True, **fields: Any
) -> ScriptedModel:
    return ScriptedModel(answers, wire=wire, stream=stream, **fields)


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_an_agent_asks_another_and_goes_on_with_its_answer(wire: str, stream: bool) -> None:
    helper = model("It rains in Oslo.", wire=wire, stream=stream)
    outer = model(call("weatherman", prompt="Oslo?"), "Take an umbrella.", wire=wire, stream=stream)
    a = Agent(
        outer,
        tools=[Agent(helper, display_name="Weatherman", system="You know the weather.").as_tool()],
    )
    async with a.run("What shall I wear?", run_id="outer") as run:
        events = [event async for event in run]
        result = await run.result()
    assert result.output == "Take an umbrella."
    assert fold(events) == list(result.messages)
    (started,) = [
        event
        for event in events
        if isinstance(event, RunStarted) and event.parent_run_id == "outer"
    ]
    assert [message.text for message in fold(events, run_id=started.run_id)] == [
        "Oslo?",
        "It rains in Oslo.",
    ]
    assert outer.requests[1].messages[-1].tool_results[0].result == "It rains in Oslo."
    assert [message.text for message in helper.requests[0].messages] == [
        "You know the weather.",
        "Oslo?",
    ]
    assert len(result.calls) == 3
    assert {each.run_id for each in result.calls} == {"outer", started.run_id}
    assert all(each.origin is not None for each in result.calls)
    outer.assert_exhausted()


async def test_what_the_model_is_told_of_it() -> None:
    plain = Agent(model("x"), display_name="The Banker (senior)").as_tool()
    assert (plain.name, plain.description) == (
        "the_banker_senior",
        "Has The Banker (senior) do something, and gives its answer.",
    )
    assert plain.input_schema["required"] == ["prompt"]
    named = Agent(model("x")).as_tool(
        "ask", "Asks.", requires_approval=True, timeout=1.0, sequential=True
    )
    assert (named.name, named.description, named.requires_approval, named.timeout) == (
        "ask",
        "Asks.",
        True,
        1.0,
    )
    with pytest.raises(ToolError, match="two tools are named"):
        Agent(model("x"), tools=[plain, Tool(plain.name)])


class Trip(BaseModel):
    """A trip."""

    city: str = Field(description="Where to.")
    days: int = 1


async def test_arguments_may_be_those_of_a_pydantic_model() -> None:
    helper = model("Booked.")
    booker = Agent(helper).as_tool("book", prompt=Trip)
    assert booker.description == "A trip."
    assert booker.input_schema["properties"]["city"]["description"] == "Where to."
    a = Agent(
        model(call("book", city="Oslo"), call("book", days="many", city="Oslo"), "Done."),
        tools=[booker],
    )
    result = await a.send("Go.")
    assert helper.requests[0].messages[-1].text == '{"city":"Oslo","days":1}'
    assert "invalid arguments" in result.messages[4].tool_results[0].result["error"]
    assert result.output == "Done."


async def test_arguments_may_be_those_of_a_function_that_makes_the_prompt() -> None:
    helper = model("Drawn.")

    async def draw(ctx: ToolContext[Any], what: str, size: int = 3) -> Message:
        """Draws something.

        Args:
            what: the thing.
        """
        return Message.user(f"Draw {what}, {size} cm, for {ctx.deps}.")

    drawer = Agent(helper).as_tool("draw", prompt=draw)
    assert drawer.description == "Draws something."
    assert drawer.input_schema["properties"]["what"]["description"] == "the thing."
    a = Agent(model(call("draw", what="a cat"), "Done."), tools=[drawer])
    assert (await a.send("Go.", deps="Ada")).output == "Done."
    assert helper.requests[0].messages[-1].text == "Draw a cat, 3 cm, for Ada."


async def test_a_typed_output_is_json_for_the_other() -> None:
    helper = Agent(model('{"city":"Oslo","days":2}')).as_tool("plan", output_type=Trip)
    outer = model(call("plan", prompt="?"), "Done.")
    await Agent(outer, tools=[helper]).send("Go.")
    assert outer.requests[1].messages[-1].tool_results[0].result in (
        {"city": "Oslo", "days": 2},
        '{"city":"Oslo","days":2}',
    )


async def test_files_that_its_model_made_stand_beside_the_text() -> None:
    picture = DataPart(b"png", "image/png")
    inner, _ = agent(says("A cat.", picture))
    a, script = agent(says(calls("draw", prompt="?")), says("Nice."), tools=[inner.as_tool("draw")])
    await a.send("Go.")
    result = script.requests[1].messages[-1].tool_results[0]
    assert result.result == (TextPart("A cat."), picture)
    assert result.is_content


async def test_its_error_is_a_result_and_what_it_took_counts() -> None:
    helper = model(call("nothing"), ProviderError("it broke", status=500))
    a = Agent(model(call("ask", prompt="?"), "Well."), tools=[Agent(helper).as_tool("ask")])
    async with a.run("Go.") as run:
        events = [event async for event in run]
        result = await run.result()
    assert result.output == "Well."
    assert "it broke" in result.messages[2].tool_results[0].result["error"]
    assert [type(event) for event in events if isinstance(event, RunError | RunFinished)] == [
        RunError,
        RunFinished,
    ]
    assert len([each for each in result.calls if each.usage]) == 3


async def test_its_own_limits_and_those_of_the_run_around_it_both_hold() -> None:
    def asked(limits: Limits | None) -> Agent[Any]:
        helper = model(*[call("nothing")] * 5, "x")
        return Agent(
            model(call("ask", prompt="?"), "Well."),
            tools=[Agent(helper).as_tool("ask", limits=limits)],
        )

    result = await asked(Limits(model_calls=2)).send("Go.", limits=Limits(model_calls=4))
    assert "the limit of 2 model calls" in result.messages[2].tool_results[0].result["error"]
    with pytest.raises(LimitReachedError, match="3 model calls"):
        await asked(None).send("Go.", limits=Limits(model_calls=3))


def bank(
    depth: int, ran: list[str], answers: int, wire: str, stream: bool
) -> tuple[Agent[Any], list[ScriptedModel]]:
    """Agents in tools of agents; the innermost must be allowed something. `answers`: which one of
    each script comes first."""

    @tool(requires_approval=True)
    def pay(ctx: ToolContext[Any], cents: int) -> str:
        ran.append(f"{cents} by {ctx.deps}")
        return "paid"

    def scripted(*said: Any) -> ScriptedModel:
        return model(*said[answers:], wire=wire, stream=stream)

    scripts = [scripted(call("pay", cents=5), "It is paid.")]
    inner = Agent(scripts[0], tools=[pay])
    for _ in range(depth):
        scripts.append(scripted(call("delegate", prompt="Pay."), "They paid."))
        inner = Agent(scripts[-1], tools=[inner.as_tool("delegate")], approval_key="key" * 11)
    return inner, scripts


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_an_approval_three_levels_down_goes_through_two_processes(
    wire: str, stream: bool
) -> None:
    ran: list[str] = []
    a, _ = bank(3, ran, 0, wire, stream)
    first = await a.send("Pay the bill.", deps="Ada", thread_id="t")
    (wait,) = first.pending
    assert (wait.reason, len(wait.parent), ran) == ("approval", 3, [])
    assert [each.run_id for each in first.calls].count(first.calls[-1].run_id) == 1
    b, scripts = bank(3, ran, 1, wire, stream)
    history = load_messages(dump_messages(first.messages))
    second = await b.send(None, history=history, resume=[wait.approve()], deps="Ada", thread_id="t")
    assert (second.output, ran) == ("They paid.", ["5 by Ada"])
    assert len(second.calls) == 4
    for script in scripts:
        script.assert_exhausted()
    usages = [each.usage.total_tokens or 0 for each in (*first.calls, *second.calls) if each.usage]
    assert len(usages) == 8
    assert first.usage is not None and second.usage is not None
    assert sum(usages) == (first.usage.total_tokens or 0) + (second.usage.total_tokens or 0)


async def test_the_agent_itself_may_need_approval_and_then_what_its_tools_need() -> None:
    ran: list[str] = []

    @tool(requires_approval=True)
    def pay() -> str:
        ran.append("paid")
        return "paid"

    helper = Agent(model(call("pay"), "It is paid."), tools=[pay])
    a = Agent(
        model(call("ask", prompt="?"), "Done."),
        tools=[helper.as_tool("ask", requires_approval=True)],
    )
    first = await a.send("Go.")
    assert not first.pending[0].parent
    second = await a.send(None, history=first.messages, resume=[first.pending[0].approve()])
    assert len(second.pending[0].parent) == 1
    third = await a.send(
        None, history=[*first.messages, *second.messages], resume=[second.pending[0].approve()]
    )
    assert (third.output, ran) == ("Done.", ["paid"])
