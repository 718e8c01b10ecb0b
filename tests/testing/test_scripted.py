"""A scripted model: what a test says comes out of an agent, by every wire, and what the agent asked is there to look at."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from dragoman import Agent, ModelRequest, errors, wires
from dragoman.testing import Answer, ScriptedModel, ScriptError, call, outline, typed

pytestmark = pytest.mark.anyio

WIRES = [(wire, stream) for wire in wires.names() for stream in (True, False)]
each_wire = pytest.mark.parametrize(("wire", "stream"), WIRES, ids=lambda value: str(value))


def get_weather(city: str) -> str:
    """Tells the weather."""
    return f"rain in {city}"


@each_wire
async def test_text_and_calls_in_order(wire: str, stream: bool) -> None:
    model = ScriptedModel([call("get_weather", city="Oslo"), "It rains."], wire=wire, stream=stream)
    result = await Agent(model, tools=[get_weather]).send("How is it in Oslo?")
    model.assert_exhausted()
    assert result.output == "It rains."
    assert [outline(request.messages) for request in model.requests] == [
        ["user: How is it in Oslo?"],
        [
            "user: How is it in Oslo?",
            'model calls get_weather {"city":"Oslo"}',
            'get_weather gives "rain in Oslo"',
        ],
    ]
    assert result.usage and result.usage.total_tokens and result.usage.total_tokens > 20


@each_wire
async def test_a_generator_says_it_piece_by_piece(wire: str, stream: bool) -> None:
    async def speak(request: ModelRequest) -> AsyncIterator[object]:
        yield "one "
        yield "two"
        yield call("get_weather", city="Oslo")
        yield call("get_weather", city="Bergen")

    model = ScriptedModel([speak, "Rain."], wire=wire, stream=stream)
    result = await Agent(model, tools=[get_weather]).send("How?")
    assert [each.arguments["city"] for message in result.messages for each in message.tool_calls] == ["Oslo", "Bergen"]
    assert result.output == "one two\nRain."


@each_wire
async def test_typed_output(wire: str, stream: bool) -> None:
    assert (await Agent(ScriptedModel([typed(42)], wire=wire, stream=stream)).send_for("?", int)).output == 42


@each_wire
async def test_a_refusal_is_the_error_that_was_said(wire: str, stream: bool) -> None:
    model = ScriptedModel([errors.RateLimitError("slower", retry_after=3)], wire=wire, stream=stream)
    with pytest.raises(errors.RateLimitError, match="slower") as caught:
        await Agent(model).send("?")
    assert (caught.value.status, caught.value.retry_after, caught.value.provider) == (429, 3, "scripted")


@each_wire
async def test_a_cut(wire: str, stream: bool) -> None:
    model = ScriptedModel([Answer(content="abc " * 30, cut=True)], wire=wire, stream=stream)
    with pytest.raises(errors.StreamCutError) as caught:
        await Agent(model).send("?")
    if stream:
        assert caught.value.partial is not None
        assert 0 < len(caught.value.partial.text) < 120


async def test_a_script_that_is_at_its_end_says_so_and_shows_what_was_asked() -> None:
    agent = Agent(model := ScriptedModel(["Hello."]))
    await agent.send("Hi!")
    with pytest.raises(AssertionError, match=r"request 2 has no answer: the script has 1[^$]*user: And now\?"):
        await agent.send("And now?")
    with pytest.raises(ScriptError, match="1 requests got no answer"):
        model.assert_exhausted()


async def test_what_was_not_asked_for_is_an_error() -> None:
    model = ScriptedModel(["One.", "Two."])
    await Agent(model).send("?")
    with pytest.raises(ScriptError, match=r"1 answers were not asked for; the next is 'Two\.'"):
        model.assert_exhausted()
