"""What MCP servers ask while they work: people (elicitation), models (sampling), roots; and what
they tell: progress, logs, traces."""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
from mcp import types

from dragoman import Agent, Message, dump_messages, load_messages, tool
from dragoman.errors import ToolError
from dragoman.event import Custom
from dragoman.mcp import MCPToolset, mcp
from dragoman.mcp.calls import Inputs
from dragoman.request import ModelRequest
from dragoman.result import ChatResult
from dragoman.testing import ScriptedModel
from dragoman.testing import call as calls
from dragoman.tools import AskUser
from support import mcp_server
from support.answered import answered
from support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")]
NOBODY: Any = None


@pytest.fixture(params=["auto", "legacy"])
def protocol(request: pytest.FixtureRequest) -> str:
    return request.param


def again(result: ChatResult[Any], *before: Message) -> list[Message]:
    """The history as another process has it."""
    return load_messages(dump_messages([*before, *result.messages]))


async def question(server: MCPToolset, name: str, **arguments: Any) -> AskUser:
    """What a call asks."""
    with pytest.raises(AskUser) as asked:
        await server.call_tool(name, arguments, answered())
    return asked.value


async def test_a_form_is_a_question_and_its_answer_is_given_when_the_server_asks_again(
    protocol: str, tmp_path: Path
):
    log = tmp_path / "log"
    model = ScriptedModel([calls("order", what="box"), "Done."])
    server = mcp(mcp_server.server(log=log), protocol=protocol)
    first = await Agent(model, tools=[server]).send("Order a box.")
    (wait,) = first.pending
    assert (wait.reason, wait.message) == ("input", "How big is the box to be?")
    assert wait.schema is not None
    assert wait.schema["properties"].keys() == {"size", "count"}
    assert wait.metadata["server"] == server.name
    assert "answered" not in log.read_text()  # the call is over before its question gets any answer

    elsewhere = Agent(model, tools=[mcp(mcp_server.server(log=log), protocol=protocol)])
    result = await elsewhere.send(
        None, history=again(first), resume=[wait.answer({"size": "large", "count": 2})]
    )
    assert result.output == "Done."
    assert model.requests[-1].messages[-1].tool_results[0].result == "2 large box"
    assert "answered accept" in log.read_text() or protocol == "auto"


async def test_a_form_that_nobody_fills_ends_the_call(protocol: str):
    model = ScriptedModel([calls("order", what="box"), "Done."])
    agent = Agent(model, tools=[mcp(mcp_server.server(), protocol=protocol)])
    first = await agent.send("Order a box.")
    await agent.send(None, history=first.messages, resume=[first.pending[0].cancel()])
    assert "not answered" in str(model.requests[-1].messages[-1].tool_results[0].result)


async def test_an_answer_that_does_not_fit_what_is_asked_now_is_not_given(protocol: str):
    async with mcp(mcp_server.server(), protocol=protocol) as server:
        asked = await question(server, "order", what="box")
        with pytest.raises(ToolError, match=r"not match|failed"):
            await server.call_tool("order", {"what": "box"}, answered({"colour": "red"}, to=asked))


async def test_an_answer_is_given_to_the_question_that_was_read_and_to_no_other(protocol: str):
    """A server that asks something else, or whose run takes another way, has a person asked
    again."""
    async with mcp(mcp_server.server(), protocol=protocol) as server:
        asked = await question(server, "order", what="box")
    async with mcp(
        mcp_server.server(), protocol=protocol
    ) as server:  # which cannot read what the first one wrote
        with pytest.raises(AskUser, match="How big is the house") as other:
            await server.call_tool(
                "order", {"what": "house"}, answered({"size": "large"}, to=asked)
            )
        both = answered({"size": "large"}, {"size": "small", "count": 3}, to=other.value)
        assert await server.call_tool("order", {"what": "house"}, both) == "3 small house"


async def test_a_page_is_a_sign_in(protocol: str):
    model = ScriptedModel([calls("pay"), "Done."])
    agent = Agent(model, tools=[mcp(mcp_server.server(), protocol=protocol)])
    first = await agent.send("Pay.")
    (wait,) = first.pending
    assert (wait.reason, wait.message, wait.metadata["url"]) == (
        "auth",
        "Please pay.",
        "https://pay.example.com/1",
    )
    await agent.send(None, history=first.messages, resume=[wait.answer(True)])
    assert model.requests[-1].messages[-1].tool_results[0].result == "accept"


async def test_a_page_may_be_declined(protocol: str):
    async with mcp(mcp_server.server(), protocol=protocol) as server:
        asked = await question(server, "pay")
        assert await server.call_tool("pay", {}, answered(False, to=asked)) == "decline"


async def test_a_call_that_is_refused_until_somebody_went_to_a_page(tmp_path: Path):
    key = tmp_path / "key"
    async with mcp(mcp_server.server(), protocol="legacy") as server:
        with pytest.raises(AskUser, match="Unlock it") as asked:
            await server.call_tool("locked", {"key": str(key)}, answered())
        assert (asked.value.reason, asked.value.metadata["url"]) == (
            "auth",
            "https://lock.example.com",
        )
        key.touch()
        with pytest.raises(AskUser, match="What then") as then:
            await server.call_tool("locked", {"key": str(key)}, answered(True, to=asked.value))
        small = answered(True, {"size": "small"}, to=then.value)
        assert await server.call_tool("locked", {"key": str(key)}, small) == "small"


async def test_which_of_several_calls_asks_is_never_guessed(tmp_path: Path):
    """Of a server of before 2026 that is a program nobody can tell; a question waits until only one
    call can have asked it."""
    log = tmp_path / "log"
    async with mcp(mcp_server.server(log=log), protocol="legacy") as server:
        slow = asyncio.create_task(server.call_tool("slow", {"seconds": 0.3}))
        with pytest.raises(AskUser, match="box"):
            await server.call_tool("order", {"what": "box"}, answered())
        assert await slow == "done"


async def test_a_question_that_any_of_several_calls_may_ask_is_not_answered():
    inputs = Inputs(mcp("x")._options, "x")  # pyright: ignore[reportPrivateUsage]
    asked = types.ElicitRequestFormParams(message="Sure?", requested_schema={"type": "object"})
    with inputs.call(answered({"sure": True})), inputs.call(answered({"sure": False})):
        tasks = [asyncio.create_task(inputs.elicit(NOBODY, asked), context=Context()) for _ in "ab"]
        done, held = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result() for task in done] == [types.ElicitResult(action="cancel")]
        for task in held:
            task.cancel()


@pytest.mark.parametrize("answered_itself", [True, False])
async def test_a_question_of_a_call_that_was_left_is_not_another_call_s(answered_itself: bool):
    """What is left may ask only where the other calls have ended as the server wanted: a cancelled
    one may be who asked."""
    inputs = Inputs(mcp("x", sampling=lambda request: "yes")._options, "x")  # pyright: ignore[reportPrivateUsage]
    asked = types.CreateMessageRequestParams(messages=[], max_tokens=1)
    with inputs.call(answered()):
        with inputs.call(answered()) as other:
            task = asyncio.create_task(inputs.sample(NOBODY, asked), context=Context())
            await asyncio.sleep(0)
            other.answered = answered_itself
        found = await task
    assert isinstance(found, types.CreateMessageResult) == answered_itself


async def test_a_question_without_a_call_is_not_answered():
    inputs = Inputs(mcp("x")._options, "x")  # pyright: ignore[reportPrivateUsage]
    asked = types.ElicitRequestFormParams(message="Sure?", requested_schema={"type": "object"})
    assert await inputs.elicit(NOBODY, asked) == types.ElicitResult(action="cancel")


async def test_a_model_is_asked_by_an_agent(protocol: str):
    small = ScriptedModel(["Brief."], chat_model="small-1")
    model = ScriptedModel([calls("summary", text="long"), "Done."])
    agent = Agent(model, tools=[mcp(mcp_server.server(), protocol=protocol, sampling=Agent(small))])
    await agent.send("Go.")
    (asked,) = small.requests
    assert [(one.role, one.text) for one in asked.messages] == [
        ("system", "Be brief."),
        ("user", "Sum up: long"),
    ]
    assert (asked.settings.max_tokens, asked.settings.temperature, asked.settings.stop) == (
        50,
        0.5,
        ("END",),
    )
    assert model.requests[-1].messages[-1].tool_results[0].result == "small-1: Brief."


async def test_an_agent_that_is_asked_may_wait_for_somebody(protocol: str):
    @tool(requires_approval=True)
    def look() -> str:
        """Looks."""
        return "seen"

    small = ScriptedModel([calls("look"), "Brief."])
    model = ScriptedModel([calls("summary", text="long"), "Done."])

    def agent() -> Agent[None]:
        helper = Agent(small, tools=[look])
        return Agent(model, tools=[mcp(mcp_server.server(), protocol=protocol, sampling=helper)])

    first = await agent().send("Go.")
    (wait,) = first.pending
    assert (wait.reason, wait.call and wait.call.name) == ("approval", "look")
    await agent().send(None, history=again(first), resume=[wait.approve()])
    assert model.requests[-1].messages[-1].tool_results[0].result == "scripted-1: Brief."
    assert len(small.requests) == 2


async def test_a_model_is_asked_by_a_function(protocol: str):
    asked: list[ModelRequest] = []

    def answer(request: ModelRequest) -> str:
        asked.append(request)
        return "Short."

    async with mcp(mcp_server.server(), protocol=protocol, sampling=answer) as server:
        assert await server.call_tool("summary", {"text": "long"}) == "unknown: Short."
    assert asked[0].model == "small"


async def test_no_model_is_asked_unless_it_is_allowed(protocol: str):
    async with mcp(mcp_server.server(), protocol=protocol) as server:
        with pytest.raises(ToolError):
            await server.call_tool("summary", {"text": "long"})


async def test_what_goes_wrong_while_a_model_is_asked_is_not_told_to_the_server(protocol: str):
    def answer(request: ModelRequest) -> str:
        raise ValueError("a s3cret")

    async with mcp(mcp_server.server(), protocol=protocol, sampling=answer) as server:
        with pytest.raises((ToolError, ValueError)) as failed:
            await server.call_tool("summary", {"text": "long"})
    assert protocol == "auto" or "s3cret" not in str(failed.value)


async def test_roots_are_told(protocol: str, tmp_path: Path):
    async with mcp(mcp_server.server(), protocol=protocol, roots=[tmp_path]) as server:
        assert await server.call_tool("roots") == tmp_path.as_uri()


async def test_progress_is_an_event_of_the_run(protocol: str):
    model = ScriptedModel([calls("slow", seconds=0), "Done."])
    agent = Agent(model, tools=[mcp(mcp_server.server(), protocol=protocol)])
    events = [event async for event in agent.send_events("Go.")]
    told = [
        event.value
        for event in events
        if isinstance(event, Custom) and event.name == "tool_progress"
    ]
    assert [(one["done"], one["total"], one["message"]) for one in told] == [(0.5, 1.0, "half")]


async def test_what_a_server_logs_is_logged_as_one_line(
    protocol: str, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.DEBUG, "dragoman.mcp"):
        async with mcp(mcp_server.server(), protocol=protocol) as server:
            await server.call_tool("logs")
            await until(lambda: any("warning" in one.getMessage() for one in caplog.records))
    (line,) = [one for one in caplog.records if one.levelno >= logging.INFO]
    assert line.levelno == logging.WARNING
    assert "a\\nwarning" in line.getMessage()
    assert "(part)" in line.getMessage()


async def test_a_call_carries_the_trace():
    trace = pytest.importorskip("opentelemetry.trace")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    tracer = sdk.TracerProvider().get_tracer("tests")
    with tracer.start_as_current_span("a run") as span:
        async with mcp(mcp_server.server(), protocol="legacy") as server:
            told = await server.call_tool("trace")
    assert told.split("-")[1] == trace.format_trace_id(span.get_span_context().trace_id)


async def test_a_call_may_take_no_longer_than_its_timeout(tmp_path: Path):
    log = tmp_path / "log"
    model = ScriptedModel([calls("slow"), "Done."])
    async with mcp(mcp_server.server(log=log), timeout=0.2) as server:
        await Agent(model, tools=[server]).send("Go.")
        await until(lambda: "cancelled" in log.read_text())
    assert "did not finish within 0.2 seconds" in str(
        model.requests[-1].messages[-1].tool_results[0].result
    )


@pytest.mark.mend("1.12", "1.16")
async def test_a_call_that_is_made_directly_may_take_no_longer_either(tmp_path: Path):
    log = tmp_path / "log"
    async with mcp(mcp_server.server(log=log), timeout=0.2) as server:
        with pytest.raises(ToolError, match=r"slow did not finish within 0\.2 seconds"):
            await server.call_tool("slow")
        await until(lambda: "cancelled" in log.read_text())
        assert await server.list_tools()


@pytest.mark.mend("1.16")
async def test_calls_have_a_minute_unless_told_otherwise():
    async with (
        mcp(mcp_server.server()) as server,
        mcp(mcp_server.server(), timeout=None) as patient,
    ):
        assert {tool.timeout for tool in await server.list_tools()} == {60.0}
        assert {tool.timeout for tool in await patient.list_tools()} == {None}
