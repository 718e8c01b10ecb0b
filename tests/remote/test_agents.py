"""An agent that speaks a protocol, asked like a model: the same run as if it were here (T-60 to
T-70)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import (
    Agent,
    DragomanError,
    FinishReason,
    Message,
    PartDelta,
    Role,
    ToolCallPart,
    ToolContext,
    ToolResultPart,
    dump_messages,
    fold,
    handoff,
    load_messages,
    remote_agent,
    serve,
    tool,
)
from dragoman.errors import AuthenticationError, RateLimitError, SettingsError, StreamCutError
from dragoman.message import TextPart
from dragoman.testing import ScriptedModel
from support.apps import AppTransport
from support.protocols import PAID, pay, reply, roll

pytestmark = pytest.mark.anyio

HOST = "there.example"
URLS = {"a2a": f"a2a:http://{HOST}/a2a", "ag_ui": f"ag-ui:http://{HOST}/ag-ui"}


@tool
async def name_it(ctx: ToolContext[None]) -> str:
    """Asks for a name."""
    return f"named {ctx.ask('Which name?', {'type': 'string'})}"


@tool
async def count(ctx: ToolContext[None]) -> str:
    """Counts."""
    ctx.state.patch([{"op": "replace", "path": "/n", "value": ctx.state.value["n"] + 1}])
    return "counted"


@pytest.fixture(params=sorted(URLS))
def url(request: pytest.FixtureRequest) -> str:
    return URLS[request.param]


@asynccontextmanager
async def there(
    script: Any = reply, tools: Any = (roll, pay), **how: Any
) -> AsyncGenerator[AppTransport]:
    """A server with an agent, and the way to it."""
    PAID.clear()
    how.setdefault("hosts", [HOST])
    app = serve.app(Agent(ScriptedModel(script, wire="anthropic"), tools=tools), **how)
    async with app.router.lifespan_context(app):
        yield AppTransport({HOST: app})


def calls(message: Message) -> list[tuple[str, str]]:
    return [(type(p).__name__, getattr(p, "run_by", "")) for p in message.content]


async def test_the_answer_is_one_message_with_what_the_agent_did_in_it(url: str) -> None:
    async with there() as transport:
        result = await Agent(url, transport=transport).send("Please roll.")
    [_, answer] = result.messages
    assert calls(answer) == [
        ("ThinkingPart", ""),
        ("TextPart", ""),
        ("ToolCallPart", "provider"),
        ("ToolResultPart", "provider"),
        ("TextPart", ""),
    ]
    assert result.output == "Let me.Seen 3."
    assert answer.finish_reason is FinishReason.stop
    assert answer.origin is not None
    assert answer.origin.provider == url.partition(":")[0]
    assert answer.origin.model == url.partition(":")[2]
    assert result.usage is not None
    assert result.usage.output_tokens
    assert result.pending == ()
    assert result.losses == ()


async def test_it_streams(url: str) -> None:
    words = " ".join(str(number) for number in range(200))
    async with there(lambda _: words) as transport:
        events = [event async for event in Agent(url, transport=transport).send_events("Count.")]
    assert sum(isinstance(event, PartDelta) for event in events) > 2
    assert fold(events)[-1].text == words


async def test_the_conversation_goes_on_and_nothing_is_told_twice(url: str) -> None:
    async with there() as transport:
        agent = Agent(url, transport=transport)
        first = await agent.send("Please roll.")
        second = await agent.send("And now?", history=load_messages(dump_messages(first.messages)))
        assert second.output == "Seen 5."
        answers = transport.apps[HOST].state.service.answers
        thread = first.messages[-1].native[f"{'a2a' if 'a2a' in url else 'ag_ui'}:notes"]["thread"]
        last = await answers.find("anonymous", [f"thread:{thread}"])
        kept = [m for one in await answers.chain("anonymous", last.id) for m in one.messages]
    assert [m.role for m in kept] == [
        Role.USER,
        Role.MODEL,
        Role.USER,
        Role.MODEL,
        Role.USER,
        Role.MODEL,
    ]
    assert len({m.id for m in kept}) == 6


@pytest.mark.parametrize("verdict", ["approve", "deny", "cancel"])
async def test_an_approval_waits_here_and_is_carried_out_there(url: str, verdict: str) -> None:
    """Also in another process, on another day."""
    async with there() as transport:
        waits = await Agent(url, transport=transport).send("Now pay.")
        [pending] = waits.pending
        assert pending.reason == "approval"
        assert pending.call is not None
        assert (pending.call.name, pending.call.arguments) == ("pay", {"sum": 3})
        assert PAID == []
        later = Agent(url, transport=transport)
        history = load_messages(dump_messages(waits.messages))
        assert [each.id for each in later.pending(history)] == [pending.id]
        resume: Callable[[], Any] = getattr(pending, verdict)
        result = await later.send(None, history=history, resume=[resume()])
    assert len(PAID) == (verdict == "approve")
    assert "Seen" in result.output
    assert result.pending == ()
    [told] = [
        p
        for m in result.messages
        for p in m.content
        if isinstance(p, ToolResultPart) and p.run_by == "provider"
    ]
    assert told.id == pending.call.id
    assert told.is_error is (verdict != "approve")


async def test_a_task_may_wait_more_than_once(url: str) -> None:
    def script(request: Any) -> Any:
        done = sum(len(m.tool_results) for m in request.messages)
        return (
            Message.model(ToolCallPart(f"p{done}", "pay", {"sum": done})) if done < 3 else "Paid."
        )

    async with there(script) as transport:
        agent = Agent(url, transport=transport)
        history = (result := await agent.send("Pay thrice.")).messages
        while result.pending:
            result = await agent.send(
                None, history=history, resume=[each.approve() for each in result.pending]
            )
            history += result.messages
    assert (PAID, result.output) == ([0, 1, 2], "Paid.")


async def test_who_says_something_else_gives_up_what_was_waited_for(url: str) -> None:
    async with there() as transport:
        agent = Agent(url, transport=transport)
        waits = await agent.send("Now pay.")
        result = await agent.send("Never mind.", history=waits.messages)
    assert PAID == []
    assert "Seen" in result.output


async def test_a_question_is_asked_here(url: str) -> None:
    def script(request: Any) -> Any:
        results = [r.result for m in request.messages for r in m.tool_results]
        return str(results[-1]) if results else Message.model(ToolCallPart("n1", "name_it", {}))

    async with there(script, [name_it]) as transport:
        agent = Agent(url, transport=transport)
        waits = await agent.send("Name it.")
        [pending] = waits.pending
        assert (pending.reason, pending.message, pending.schema) == (
            "input",
            "Which name?",
            {"type": "string"},
        )
        with pytest.raises(DragomanError, match="not what was asked for"):
            await agent.send(None, history=waits.messages, resume=[pending.answer(7)])
        result = await agent.send(None, history=waits.messages, resume=[pending.answer("Ada")])
    assert result.output == "named Ada"


async def test_tools_of_this_side_are_called_by_that_side(url: str) -> None:
    """T-64, T-65: the client runs the tools."""
    asked: list[str] = []

    @tool
    def weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return "sunny"

    def script(request: Any) -> Any:
        results = [r for m in request.messages for r in m.tool_results]
        if results:
            return f"It is {results[-1].result}."
        assert [spec.name for spec in request.tools if spec.name == "weather"]
        return Message.model("One moment.", ToolCallPart("w1", "weather", {"city": "Rome"}))

    async with there(script, ()) as transport:
        result = await Agent(url, transport=transport, tools=[weather]).send("The weather?")
    assert asked == ["Rome"]
    assert result.output == "One moment.\nIt is sunny."
    assert [m.role for m in result.messages] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    [call] = result.messages[1].tool_calls
    assert (call.id, call.run_by) == ("w1", "agent")


async def test_a_conversation_changes_its_model_in_the_middle_and_back(url: str) -> None:
    heard: list[list[str]] = []

    def script(request: Any) -> str:
        heard.append([m.text for m in request.messages if m.role is not Role.SYSTEM])
        return f"There {len(heard)}."

    async with there(script) as transport:
        here = Agent(ScriptedModel(["Here 1.", "Here 2."]))
        remote = Agent(url, transport=transport)
        history = (await here.send("My name is Ada.")).messages
        history += (await remote.send("Who am I?", history=history)).messages
        history += (await here.send("Really?", history=history)).messages
        history += (await remote.send("And now?", history=history)).messages
    assert [m.text for m in history[1::2]] == ["Here 1.", "There 1.", "Here 2.", "There 2."]
    if url.startswith("ag-ui"):
        assert heard[1] == [m.text for m in history[:-1]]
    else:
        assert heard[0] == [
            "What was said before:\n\nUser: My name is Ada.\n\nAssistant: Here 1.Who am I?"
        ]
        assert "Really?" in heard[1][-1]
        assert "Ada" not in heard[1][-1]


async def test_state_is_shared_both_ways() -> None:
    def script(request: Any) -> Any:
        if any(m.tool_results for m in request.messages):
            return "Done."
        return Message.model(ToolCallPart("k1", "count", {}))

    async with there(script, [count]) as transport:
        result = await Agent(URLS["ag_ui"], transport=transport).send("Count.", state={"n": 1})
    assert result.state == {"n": 2}


async def test_errors_of_that_side_are_errors_here(url: str) -> None:
    def limited(_: Any) -> Any:
        raise RateLimitError("slow down")

    async with there(limited) as transport:
        with pytest.raises(DragomanError) as failed:
            await Agent(url, transport=transport).send("Hi.")
        assert failed.value.provider == url.partition(":")[0]
        assert failed.value.result is not None
    async with there(auth="the right key") as transport:
        with pytest.raises(AuthenticationError):
            await Agent(url, transport=transport, api_key="a wrong key").send("Hi.")
        assert (
            await Agent(url, transport=transport, api_key="the right key").send("Hi.")
        ).output == "Seen 1."


async def test_who_has_a_key_calls_the_conversation_as_that_side_does(url: str) -> None:
    async with there(auth="the right key") as transport:
        agent = Agent(url, transport=transport, api_key="the right key")
        waits = await agent.send("Now pay.")
        [name] = [notes["thread"] for notes in (waits.messages[1].native or {}).values()]
        assert "/" not in name
        result = await agent.send(
            None, history=waits.messages, resume=[each.approve() for each in waits.pending]
        )
    assert (PAID, result.output) == ([3], "Seen 3.")


async def test_a_run_that_is_left_ends_there() -> None:
    """A task of A2A goes on for a client that is gone (T-67), so it is told."""
    words = " ".join(str(number) for number in range(5000))
    async with there(lambda _: words) as transport:
        async with Agent(URLS["a2a"], transport=transport).run("Count.") as run:
            async for event in run:
                if isinstance(event, PartDelta) and event.delta != "Count.":
                    break
        methods = [r.body["method"] for r in transport.requests if r.method == "POST"]
    assert methods == ["SendStreamingMessage", "CancelTask"]


async def test_an_agent_elsewhere_is_a_tool(url: str) -> None:
    """T-70: a hand-off of a part of the work, and what it waits for is waited for here."""

    def here(request: Any) -> Any:
        results = [r for m in request.messages for r in m.tool_results]
        wants = request.messages[0].text
        return (
            f"It says: {results[-1].result}"
            if results
            else Message.model(ToolCallPart("a1", "clerk", {"prompt": wants}))
        )

    async with there() as transport:
        clerk = remote_agent(url, "clerk", transport=transport)
        agent = Agent(ScriptedModel(here), tools=[clerk])
        assert (await agent.send("Please roll.")).output == "It says: Let me.Seen 3."
        waits = await agent.send("Now pay.")
        [pending] = waits.pending
        assert (pending.reason, pending.parent) == ("approval", ("a1",))
        result = await agent.send(None, history=waits.messages, resume=[pending.approve()])
    assert PAID == [3]
    assert result.output == "It says: Seen 3."


async def test_a_conversation_is_handed_over_to_an_agent_elsewhere(url: str) -> None:
    async with there(lambda request: f"Over here, I heard {len(request.messages)}.") as transport:
        clerk = handoff(Agent(url, transport=transport), "clerk")
        agent = Agent(
            ScriptedModel([Message.model(ToolCallPart("h1", "transfer_to_clerk", {}))]),
            tools=[clerk],
        )
        result = await agent.send("I want the clerk.")
    assert result.output.startswith("Over here")


@pytest.mark.parametrize(
    "url", ["", "clerk", "openai:gpt-4o", "a2a:", "a2a:host/agent", "ftp://host/x"]
)
def test_a_remote_agent_has_a_url(url: str) -> None:
    """T-70: without the agent's address the hand-off is refused."""
    with pytest.raises(SettingsError, match="URL"):
        remote_agent(url)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://weather.example/a2a", "weather_example"),
        ("https://host/a2a/agents/weather", "weather"),
        ("ag-ui:https://host/ag-ui/clerk?x=1", "clerk"),
    ],
)
def test_its_name_is_made_of_its_url(url: str, name: str) -> None:
    assert remote_agent(url).name == name


async def test_what_an_agent_took_back_is_taken_back_here(url: str) -> None:
    async with there(lambda _: "Later.") as transport:
        remote = Agent(url, transport=transport)
        result = await remote.send("Hi.")
    assert result.messages[-1].content == (TextPart("Later."),)


async def test_a_cut_stream_is_an_error_with_what_came(url: str) -> None:
    class Cut(AppTransport):
        async def send(self, request: Any) -> Any:
            answer = await super().send(request)
            if request.method == "POST":
                read, seen = answer.read, [0]

                async def less() -> bytes:
                    seen[0] += 1
                    return await read() if seen[0] < 12 else b""

                answer.read = less
            return answer

    words = " ".join(str(number) for number in range(5000))
    async with there(lambda _: words) as transport:
        cut = Cut(transport.apps)
        with pytest.raises(StreamCutError) as failed:
            await Agent(url, transport=cut).send("Count.")
    assert failed.value.partial is not None
    assert words.startswith(failed.value.partial.text)
