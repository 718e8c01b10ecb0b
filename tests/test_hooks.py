"""What hooks are told of runs, model calls and tools, on every kind of wire, and that they break
nothing (D-162)."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from dragoman import Agent, DataPart, Limits, Message, Usage, tool
from dragoman.errors import LimitReachedError, ProviderConnectionError, RateLimitError
from dragoman.event import PartDelta, RunFinished
from dragoman.hooks import Hooks, add_global_hooks, call_hooks
from dragoman.message import FinishReason
from dragoman.model import ChatModel
from dragoman.providers import get
from dragoman.request import ModelRequest
from dragoman.transport import Exchange, Player, Retry
from support.answers import MODELS, agent_of, answer
from support.model import call

pytestmark = pytest.mark.anyio

ENDS = {"run_end": "run_start", "model_end": "model_start", "tool_end": "tool_start"}


class Seen:
    """Keeps what hooks are given."""

    def __init__(self, *, wait: bool = False) -> None:
        self.told: list[tuple[str, Any]] = []
        self.hooks = Hooks(
            **{name: self._keeping(name, wait) for name in Hooks.__struct_fields__[:8]}
        )

    def _keeping(self, name: str, wait: bool) -> Any:
        def keep(value: Any) -> None:
            self.told.append((name, value))

        async def keep_later(value: Any) -> None:
            await asyncio.sleep(0)
            keep(value)

        return keep_later if wait else keep

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.told]

    def of(self, name: str) -> list[Any]:
        return [value for told, value in self.told if told == name]

    def check(self) -> None:
        """For each start there is one end, with the same value."""
        for end, start in ENDS.items():
            assert sorted(id(one.start) for one in self.of(end)) == sorted(map(id, self.of(start)))


def double(x: int) -> int:
    """Doubles."""
    return 2 * x


USED = Usage(input_tokens=3, output_tokens=2, total_tokens=5)


def answers(wire: str, *, whole: bool = False) -> list[Exchange]:
    """A call of the tool, then a text."""
    call_first = answer(wire, call("double", x=2), usage=USED, whole=whole)
    return [call_first, answer(wire, "It is 4.", usage=USED, whole=whole)]


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("wire", MODELS)
async def test_a_run_with_a_tool_is_told_whole(wire: str, whole: bool, wait: bool) -> None:
    seen = Seen(wait=wait)
    agent, _ = agent_of(wire, *answers(wire, whole=whole), tools=[double], hooks=seen.hooks)
    result = await agent.send("twice 2?", thread_id="t", resource_id="you")
    assert seen.names == [
        *(
            "run_start",
            "model_start",
            "model_end",
            "tool_start",
            "tool_end",
            "model_start",
            "model_end",
            "run_end",
        )
    ]
    seen.check()
    [start], [end] = seen.of("run_start"), seen.of("run_end")
    assert (start.run.thread_id, start.run.resource_id, start.run.parent_run_id) == (
        "t",
        "you",
        None,
    )
    assert (start.model, start.messages) == (MODELS[wire], result.messages[:1])
    assert (end.outcome, end.error, end.result) == ("success", None, result)
    assert 0 < end.seconds < 60
    asked, answered = seen.of("model_start"), seen.of("model_end")
    assert [one.run for one in asked] == [start.run] * 2
    provider, _, name = MODELS[wire].partition(":")
    assert {(one.target.provider, one.target.model, one.wire) for one in asked} == {
        (provider, name, wire)
    }
    assert [len(one.request.messages) for one in asked] == [1, 3]
    assert [one.finish_reason for one in answered] == [FinishReason.tool_calls, FinishReason.stop]
    assert [(one.usage.input_tokens, one.usage.output_tokens) for one in answered] == [(3, 2)] * 2
    assert [one.message.content for one in answered] == [
        one.content for one in result.messages[1::2]
    ]
    for one in answered:
        assert (one.origin.served_model, one.error) == (name, None)
        assert one.origin.response_id
        assert 0 <= one.first_seconds <= one.seconds
    [began], [ended] = seen.of("tool_start"), seen.of("tool_end")
    assert (began.run, began.call, began.description) == (
        start.run,
        result.messages[1].tool_calls[0],
        "Doubles.",
    )
    assert (ended.result, ended.error) == (result.messages[2].tool_results[0], None)


@pytest.mark.parametrize("wire", MODELS)
async def test_a_model_by_itself_is_watched(wire: str) -> None:
    own, all_of_them = Seen(), Seen()
    model = ChatModel(
        get(MODELS[wire].partition(":")[0]),
        "m",
        transport=Player(answers(wire)),
        api_key="k",
        hooks=[own.hooks],
    )
    with add_global_hooks(all_of_them.hooks):
        events = [
            event
            async for event in model.stream(ModelRequest("", (Message.user("hi"),), stream=True))
        ]
    assert own.names == all_of_them.names == ["model_start", "model_end"]
    [end] = own.of("model_end")
    assert end.start.run is None
    assert [event for read in end.reads for event in read if not isinstance(event, PartDelta)] == [
        event for event in events if not isinstance(event, PartDelta)
    ]


@pytest.mark.parametrize("wire", MODELS)
async def test_another_attempt_is_told_by_the_transport(wire: str) -> None:
    seen = Seen(wait=True)
    limited = Exchange(status=429, headers={"retry-after": "0"})
    transport = Retry(Player([limited, *answers(wire)]), sleep=asyncio.sleep, random=lambda: 0.0)
    agent = Agent(
        MODELS[wire], tools=[double], transport=transport, api_key="k", hooks=[seen.hooks]
    )
    await agent.send("twice 2?")
    assert seen.names[:4] == ["run_start", "model_start", "retry", "model_end"]
    [retry], [start] = seen.of("retry"), seen.of("run_start")
    assert (retry.run, retry.provider, retry.attempt) == (
        start.run,
        MODELS[wire].partition(":")[0],
        1,
    )
    assert (retry.wait, retry.status, retry.error) == (0.0, 429, None)


async def test_a_connection_that_fails_is_told_with_its_error() -> None:
    seen = Seen()
    lost = ProviderConnectionError("closed")
    transport = Retry(
        Player([lost, *answers("openai_chat")]), sleep=asyncio.sleep, random=lambda: 0.0
    )
    await Agent(
        "openai:m", tools=[double], transport=transport, api_key="k", hooks=[seen.hooks]
    ).send("twice 2?")
    assert [(one.error, one.status) for one in seen.of("retry")] == [(lost, None)]


@pytest.mark.parametrize("wire", MODELS)
async def test_a_failure_is_told_of_the_call_and_of_the_run(wire: str) -> None:
    seen = Seen()
    agent, _ = agent_of(wire, Exchange(status=429), hooks=seen.hooks)
    with pytest.raises(RateLimitError) as raised:
        await agent.send("hi")
    assert seen.names == ["run_start", "model_start", "model_end", "run_end"]
    [model], [run] = seen.of("model_end"), seen.of("run_end")
    assert (model.error, model.finish_reason, model.first_seconds) == (
        raised.value,
        FinishReason.error,
        None,
    )
    assert (run.outcome, run.error) == ("error", raised.value)
    assert [message.text for message in run.result.messages] == ["hi"]


async def test_somebody_elses_exception_ends_what_began() -> None:
    seen = Seen()

    class Broken:
        async def send(self, request: Any) -> Any:
            raise ZeroDivisionError("none of ours")

        async def close(self) -> None: ...

    agent = Agent("openai:m", transport=Broken(), api_key="k", hooks=seen.hooks)
    try:
        raise KeyError("what the caller handles is no error of the run's")
    except KeyError:
        with pytest.raises(ZeroDivisionError) as raised:
            await agent.send("hi")
    seen.check()
    for end in (*seen.of("model_end"), *seen.of("run_end")):
        assert end.error.__cause__ is raised.value


async def test_what_a_caller_handles_is_no_error_of_the_run() -> None:
    seen = Seen()
    agent, _ = agent_of("openai_chat", answer("openai_chat", "a"), hooks=seen.hooks)
    try:
        raise KeyError("before")
    except KeyError:
        await agent.send("hi")
    assert [end.error for end in (*seen.of("model_end"), *seen.of("run_end"))] == [None, None]


@pytest.mark.parametrize("leave", ["break", "close", "forget", "cancel", "task", "scope"])
@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.slow
async def test_a_run_that_is_left_ends_once(leave: str, wait: bool) -> None:
    seen = Seen(wait=wait)
    agent, _ = agent_of("openai_chat", answer("openai_chat", "word " * 50), hooks=seen.hooks)
    run = agent.run("hi")

    async def read(*, until: int) -> None:
        deltas = 0
        async for event in run:
            deltas += isinstance(event, PartDelta)
            if deltas == until:
                return

    if leave == "break":
        async with run:
            await read(until=3)
    elif leave == "close":
        await read(until=3)
        await run.close()
        await run.close()
    elif leave == "forget":
        events = agent.send_events("hi")
        async for event in events:
            if isinstance(event, PartDelta) and "word" in str(event.delta):
                break
        del events, event
        gc.collect()
        for _ in range(1000):
            await asyncio.sleep(0)
    elif leave == "cancel":
        async with run:
            await read(until=3)
            run.cancel()
            assert (await run.result()).finish_reason is FinishReason.cancelled
    elif leave == "task":

        async def reading() -> None:
            async with run:
                await read(until=3)
                await asyncio.sleep(9)

        task = asyncio.create_task(reading())
        while "model_start" not in seen.names:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        with anyio.CancelScope() as scope:
            async with run:
                await read(until=3)
                scope.cancel()
                await anyio.sleep(9)
    seen.check()
    [end] = seen.of("run_end")
    assert (end.outcome, end.error) == ("cancelled", None)
    assert [one.finish_reason for one in seen.of("model_end")] == [FinishReason.cancelled]
    if leave == "cancel":
        assert end.result.messages[-1].text.startswith("word")


async def test_a_run_that_is_left_at_its_end_succeeded_and_one_that_is_never_read_never_began() -> (
    None
):
    seen = Seen()
    agent, _ = agent_of("openai_chat", answer("openai_chat", "a"), hooks=seen.hooks)
    async with agent.run("hi"):
        pass
    assert seen.names == []
    async with agent.run("hi") as run:
        async for event in run:
            if isinstance(event, RunFinished):
                break
    assert [end.outcome for end in seen.of("run_end")] == ["success"]


async def test_a_limit_and_what_is_waited_for() -> None:
    seen = Seen()

    def ask(x: int) -> int:
        raise AssertionError

    asks = [answer("openai_chat", call("ask", x=1))] * 2
    agent, _ = agent_of(
        "openai_chat", *asks, tools=[tool(requires_approval=True)(ask)], hooks=seen.hooks
    )
    result = await agent.send("hi")
    [end] = seen.of("run_end")
    assert (end.outcome, end.result.pending) == ("pending", result.pending)
    with pytest.raises(LimitReachedError) as raised:
        await agent.send("hi", limits=Limits(model_calls=0))
    end = seen.of("run_end")[-1]
    assert (end.outcome, end.error) == ("error", raised.value)


@pytest.mark.slow
async def test_time_that_runs_out_is_an_error() -> None:
    seen = Seen()

    async def slow(x: int) -> int:
        await asyncio.sleep(9)
        return x

    agent, _ = agent_of(
        "openai_chat", answer("openai_chat", call("slow", x=1)), tools=[slow], hooks=seen.hooks
    )
    with pytest.raises(LimitReachedError):
        await agent.send("hi", limits=Limits(seconds=0.5))
    seen.check()
    [tool], [run] = seen.of("tool_end"), seen.of("run_end")
    assert (tool.result, type(tool.error)) == (None, asyncio.CancelledError)
    assert (run.outcome, type(run.error)) == ("error", LimitReachedError)


async def test_tools_side_by_side_fail_and_are_unknown() -> None:
    seen = Seen(wait=True)

    async def fail() -> None:
        raise ValueError("no")

    calls = (
        call("double", id="a", x=1),
        call("fail", id="b"),
        call("nothing", id="c"),
        call("double", id="d", x="?"),
    )
    both = (answer("openai_chat", *calls), answer("openai_chat", "ok"))
    agent, _ = agent_of("openai_chat", *both, tools=[double, fail], hooks=seen.hooks)
    result = await agent.send("hi")
    seen.check()
    ends = {end.start.call.id: end for end in seen.of("tool_end")}
    assert [ends[part.id].result for part in result.messages[2].tool_results] == [
        *result.messages[2].tool_results
    ]
    assert [type(ends[one].error).__name__ for one in "abcd"] == [
        "NoneType",
        "ValueError",
        "ToolError",
        "ToolError",
    ]


async def test_what_a_tool_hook_sets_in_the_context_the_tool_sees() -> None:
    from contextvars import ContextVar

    held: ContextVar[str] = ContextVar("held", default="")
    tokens = {}
    after = []

    def begin(start: Any) -> None:
        tokens[start] = held.set(start.call.id)

    def end(one: Any) -> None:
        held.reset(tokens.pop(one.start))
        after.append(held.get())

    def in_a_thread() -> str:
        return held.get()

    async def in_a_task() -> str:
        await asyncio.sleep(0)
        return held.get()

    calls = (call("in_a_thread", id="a"), call("in_a_task", id="b"), call("in_a_task", id="c"))
    both = (answer("openai_chat", *calls), answer("openai_chat", "ok"))
    hooks = Hooks(tool_start=begin, tool_end=end)
    agent, _ = agent_of("openai_chat", *both, tools=[in_a_thread, in_a_task], hooks=hooks)
    result = await agent.send("hi")
    assert [part.result for part in result.messages[2].tool_results] == ["a", "b", "c"]
    assert (after, tokens) == ([""] * 3, {})


async def test_what_is_left_out_is_told_once_a_run() -> None:
    seen = Seen()
    agent, _ = agent_of("openai_chat", *answers("openai_chat"), tools=[double], hooks=seen.hooks)
    result = await agent.send(["look", DataPart(b"\x00\x01", "application/x-strange", "f.bin")])
    losses = seen.of("loss")
    assert result.losses
    assert tuple(one.loss for one in losses) == result.losses
    assert {(one.run, one.target.provider) for one in losses} == {
        (seen.of("run_start")[0].run, "openai")
    }


async def test_what_a_request_that_fails_leaves_out_is_told_too() -> None:
    seen = Seen()
    agent, _ = agent_of("openai_chat", Exchange(status=429), hooks=seen.hooks)
    with pytest.raises(RateLimitError):
        await agent.send(["look", DataPart(b"\x00\x01", "application/x-strange", "f.bin")])
    assert seen.names == ["run_start", "model_start", "model_end", "loss", "run_end"]


async def test_of_a_model_by_itself_what_is_left_out_is_told_for_each_request() -> None:
    seen = Seen()
    model = ChatModel(
        get("openai"),
        "m",
        transport=Player(answers("openai_chat")),
        api_key="k",
        hooks=[seen.hooks],
    )
    request = ModelRequest(
        "",
        (Message.user("x", DataPart(b"\x00\x01", "application/x-strange", "f.bin")),),
        stream=True,
    )
    for _ in range(2):
        assert [event async for event in model.stream(request)]
    [one, two] = seen.of("loss")
    assert (one.loss, one.run, one.target.provider) == (two.loss, None, "openai")
    assert [end.losses for end in seen.of("model_end")] == [(one.loss,)] * 2


def failing(value: Any) -> None:
    raise ValueError("a hook of yours")


async def failing_later(value: Any) -> None:
    await asyncio.sleep(0)
    raise ValueError("a hook of yours")


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize(
    "hook",
    [failing, failing_later, lambda value: 7, lambda: None],
    ids=["failing", "failing later", "no awaitable", "no argument"],
)
async def test_a_hook_that_fails_breaks_nothing_and_is_logged_once(
    hook: Any, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    broken = Hooks(**dict.fromkeys(Hooks.__struct_fields__, hook))
    agent, _ = agent_of(
        "openai_chat", *answers("openai_chat"), tools=[double], hooks=[broken, seen.hooks]
    )
    with caplog.at_level(logging.ERROR, logger="dragoman.hooks"):
        result = await agent.send("twice 2?")
    assert result.output == "It is 4."
    assert len(seen.names) == 8
    logged = [record for record in caplog.records if record.name == "dragoman.hooks"]
    assert len(logged) == 1


async def test_starts_are_told_in_order_and_ends_in_reverse() -> None:
    told: list[str] = []
    both = [
        Hooks(
            run_start=lambda _, n=n: told.append(f"{n}+"),
            run_end=lambda _, n=n: told.append(f"{n}-"),
        )
        for n in "ab"
    ]
    agent, _ = agent_of("openai_chat", answer("openai_chat", "a"), hooks=both)
    await agent.send("hi")
    assert told == ["a+", "b+", "b-", "a-"]


async def test_a_cancellation_passes_once_all_are_told() -> None:
    seen = Seen()

    async def cancelled(value: Any) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await call_hooks([Hooks(retry=cancelled), seen.hooks], "retry", 1)
    assert seen.told == [("retry", 1)]


async def test_one_line_watches_all_agents_until_it_is_taken_back() -> None:
    seen = Seen()
    watching = add_global_hooks(seen.hooks)
    try:
        agent, _ = agent_of("openai_chat", *[answer("openai_chat", "a")] * 2, hooks=seen.hooks)
        await agent.send("hi")
        assert len(seen.of("run_start")) == 1  # also where the agent has it too
    finally:
        watching.close()
    other, _ = agent_of("openai_chat", answer("openai_chat", "a"))
    await other.send("hi")
    assert len(seen.of("run_start")) == 1


async def test_propagated_headers_are_sent_and_a_users_own_go_before_them() -> None:
    hooks = Hooks(propagate=lambda: {"traceparent": "00-1-2-01", "x-mine": "hook"})
    agent, transport = agent_of(
        "openai_chat", answer("openai_chat", "a"), headers={"x-mine": "agent"}, hooks=hooks
    )
    await agent.send("hi")
    [request] = transport.requests
    assert (request.headers["traceparent"], request.headers["x-mine"]) == ("00-1-2-01", "agent")


async def test_what_stands_around_the_sending_is_seen_by_it_alone() -> None:
    from contextlib import contextmanager
    from contextvars import ContextVar

    held: ContextVar[str] = ContextVar("held", default="")

    @contextmanager
    def around(start: Any) -> Any:
        token = held.set(start.target.provider)
        try:
            yield
        finally:
            held.reset(token)

    hooks = Hooks(model_context=around, propagate=lambda: {"x-held": held.get()})
    agent, transport = agent_of("openai_chat", answer("openai_chat", "a b c"), hooks=hooks)
    async with aclosing(agent.send_events("hi")) as events:
        async for _ in events:
            assert held.get() == ""
    assert transport.requests[0].headers["x-held"] == "openai"


async def test_hooks_are_of_their_type() -> None:
    with pytest.raises(TypeError, match="hooks"):
        Agent("openai:m", hooks=[lambda _: None])  # type: ignore[list-item]
