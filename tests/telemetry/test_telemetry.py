"""Spans and metrics by OpenTelemetry's conventions, in their right places, also where a run is left
(D-162)."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context
from types import coroutine
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler

from dragoman import Agent, DataPart, Message, ToolContext, Usage, tool
from dragoman.errors import ProviderConnectionError, RateLimitError, SettingsError
from dragoman.event import PartDelta
from dragoman.hooks import Hooks, ModelStart, RequestRetry, add_global_hooks, call_hooks
from dragoman.message import (
    FilePart,
    LinkPart,
    MarkPart,
    Origin,
    ProviderPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.model import ChatModel
from dragoman.model.report_to_hooks import Watch
from dragoman.model_profile import ModelProfile
from dragoman.providers import get
from dragoman.request import HttpRequest, ModelRequest, ServerTool, Settings
from dragoman.telemetry import content, telemetry
from dragoman.tools import ToolExecutor
from dragoman.transport import Exchange, Player, Retry
from dragoman.transport.retry import ON_RETRY
from support.answers import MODELS, agent_of, answer
from support.conventions import CONTENT, METRICS, PROVIDERS, SAMPLING, SPANS, check_attributes
from support.mcp import ERAS
from support.model import call

pytestmark = pytest.mark.anyio

USED = Usage(
    input_tokens=9,
    output_tokens=4,
    total_tokens=13,
    cache_read_tokens=3,
    cache_write_tokens=2,
    reasoning_tokens=1,
)


class Sampled(Sampler):
    """Keeps what a sampler sees of each span."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def should_sample(
        self, parent_context: Any, trace_id: int, name: str, *rest: Any, **more: Any
    ) -> Any:
        attributes = more.get("attributes", rest[1] if len(rest) > 1 else None)
        self.seen.append(dict(attributes or {}))
        return ALWAYS_ON.should_sample(parent_context, trace_id, name, *rest, **more)

    def get_description(self) -> str:
        return "all"


class Telemetry:
    """The SDK in memory, and the hooks that fill it."""

    def __init__(self, **how: Any) -> None:
        self._exporter, self._reader, self.sampler = (
            InMemorySpanExporter(),
            InMemoryMetricReader(),
            Sampled(),
        )
        self.tracers = TracerProvider(sampler=self.sampler)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._logs = InMemoryLogRecordExporter()
        loggers = LoggerProvider()
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        self.hooks = telemetry(
            self.tracers, MeterProvider([self._reader]), loggers, **{"metrics": "all", **how}
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    @property
    def events(self) -> list[Any]:
        return [one.log_record for one in self._logs.get_finished_logs()]

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.split(" ")[0] == name]

    def one(self, name: str) -> ReadableSpan:
        [span] = self.named(name)
        return span

    def metrics(self) -> dict[str, list[Any]]:
        data = self._reader.get_metrics_data()
        found: dict[str, list[Any]] = {}
        for metric in [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics:
            found[metric.name] = list(metric.data.data_points)
            unit, buckets, must, may = METRICS[metric.name]
            assert metric.unit == unit
            for point in metric.data.data_points:
                check_attributes(point.attributes, must=must, may=may)
                if buckets is not None:
                    assert list(point.explicit_bounds) == buckets
        return found

    def check(self) -> None:
        """All that was made is as the conventions have it, and nothing is left over."""
        for span, sampled in zip(
            sorted(self.spans, key=lambda one: one.start_time), self.sampler.seen, strict=True
        ):
            operation = span.attributes["gen_ai.operation.name"]
            kind, must, may = SPANS[operation]
            assert span.kind.name == kind
            check_attributes(span.attributes, must=must, may=may)
            assert {
                name: span.attributes[name]
                for name in SAMPLING[operation]
                if name in span.attributes
            }.items() <= {**sampled}.items()
            assert span.instrumentation_scope.name == "dragoman"
        self.metrics()
        assert trace.get_current_span() is trace.INVALID_SPAN


@pytest.fixture(autouse=True)
def no_complaints(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """OpenTelemetry logs what goes wrong, such as a context that cannot be detached; so do
    hooks."""
    with caplog.at_level(logging.WARNING):
        yield
    assert [
        one.getMessage()
        for one in caplog.get_records("call")
        if one.name.startswith(("opentelemetry", "dragoman.hooks"))
    ] == []


def double(x: int) -> int:
    """Doubles."""
    return 2 * x


def answers(wire: str, *, whole: bool = False) -> list[Exchange]:
    return [
        answer(wire, call("double", x=2), usage=USED, whole=whole),
        answer(wire, "It is 4.", usage=USED, whole=whole),
    ]


def parent(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


ACCEPTS_ALL = ModelProfile(
    thinks="asked",
    ways=("adaptive", "effort", "level"),
    efforts=("low",),
    refused=(),
    refused_thinking=(),
    fixed=(),
    fixed_thinking=(),
    ranges={},
    ranges_thinking={},
    together=(),
)
"""So that spans say all that was asked for."""


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("wire", MODELS)
async def test_a_run_by_the_conventions(wire: str, whole: bool) -> None:
    spy = Telemetry()
    settings = Settings(
        temperature=1, max_tokens=50, top_p=0.5, stop=("x",), seed=7, reasoning="low"
    )
    agent, player = agent_of(
        wire,
        *answers(wire, whole=whole),
        tools=[double],
        settings=settings,
        hooks=spy.hooks,
        display_name="Adder",
        profile=ACCEPTS_ALL,
    )
    await agent.send("twice 2?", thread_id="t")
    spy.check()
    run, tool_span = spy.one("invoke_agent"), spy.one("execute_tool")
    first, second = spy.named("chat")
    model = MODELS[wire].partition(":")[2]
    assert (run.name, tool_span.name, first.name) == (
        "invoke_agent Adder",
        "execute_tool double",
        f"chat {model}",
    )
    assert parent(run) is None
    assert {parent(span) for span in (first, second, tool_span)} == {run.context.span_id}
    assert {span.context.trace_id for span in spy.spans} == {run.context.trace_id}
    assert {span.attributes["gen_ai.conversation.id"] for span in spy.spans} == {"t"}
    assert not {name for span in spy.spans for name in span.attributes} & CONTENT
    assert first.attributes["gen_ai.provider.name"] in PROVIDERS
    assert first.attributes["gen_ai.request.temperature"] == 1.0
    assert first.attributes["gen_ai.request.stop_sequences"] == ("x",)
    assert first.attributes["gen_ai.request.reasoning.level"] == "low"
    assert first.attributes["gen_ai.response.model"] == model
    assert first.attributes["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert second.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert second.attributes["gen_ai.usage.input_tokens"] == 9
    assert second.attributes["gen_ai.usage.cache_read.input_tokens"] == 3
    assert run.attributes["gen_ai.usage.input_tokens"] == 18
    assert tool_span.attributes["gen_ai.tool.description"] == "Doubles."
    sent = [request.headers["traceparent"].split("-")[1:3] for request in player.requests]
    assert sent == [
        [f"{one.context.trace_id:032x}", f"{one.context.span_id:016x}"] for one in (first, second)
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            "0.1",
            (
                "inference.duration",
                "inference.time_to_first_chunk",
                "inference.operation.input_tokens",
            ),
        ),
        ("1.41", ("operation.duration", "operation.time_to_first_chunk", "token.usage")),
    ],
)
async def test_metrics_by_the_conventions(names: Any, expected: tuple[str, ...]) -> None:
    spy = Telemetry(conventions=names)
    agent, _ = agent_of(
        "anthropic", *answers("anthropic"), tools=[double], hooks=spy.hooks, display_name="Adder"
    )
    await agent.send("twice 2?")
    metrics = spy.metrics()
    assert {f"gen_ai.client.{name}" for name in expected} <= metrics.keys()
    [duration] = metrics[f"gen_ai.client.{expected[0]}"]
    assert duration.count == 2
    tokens_in = metrics[f"gen_ai.client.{expected[2]}"]
    assert sorted(point.sum for point in tokens_in) == ([18] if names == "0.1" else [8, 18])
    written = {"0.1": "cache_write", "1.41": "cache_creation"}[names]
    assert spy.named("chat")[0].attributes[f"gen_ai.usage.{written}.input_tokens"] == 2
    [cached] = metrics["gen_ai.client.inference.usage.cache_read.input_tokens"]
    assert cached.value == 6
    [run], [models], [tools] = [
        metrics[f"gen_ai.invoke_agent.{n}"] for n in ("duration", "inference_calls", "tool_calls")
    ]
    assert (run.count, models.sum, tools.sum) == (1, 2, 1)
    assert run.attributes == {"gen_ai.agent.name": "Adder"}
    [tool_point] = metrics["gen_ai.execute_tool.duration"]
    assert tool_point.attributes["gen_ai.tool.name"] == "double"


async def test_of_a_model_call_the_duration_alone_is_recorded_unless_more_is_wanted() -> None:
    spy = Telemetry(metrics="duration")
    agent, _ = agent_of("anthropic", *answers("anthropic"), tools=[double], hooks=spy.hooks)
    await agent.send("twice 2?")
    assert [name for name in spy.metrics() if name.startswith("gen_ai.client.")] == [
        "gen_ai.client.inference.duration"
    ]
    assert {"gen_ai.invoke_agent.duration", "gen_ai.execute_tool.duration"} <= spy.metrics().keys()
    with pytest.raises(SettingsError, match='"duration" or "all"'):
        telemetry(metrics="tokens")  # type: ignore[arg-type]


async def test_content_is_there_where_it_is_wanted() -> None:
    spy = Telemetry(content=True)
    agent, _ = agent_of(
        "anthropic", *answers("anthropic"), tools=[double], system="Be nice.", hooks=spy.hooks
    )
    await agent.send("twice 2?")
    spy.check()
    second = spy.named("chat")[1].attributes
    assert json.loads(second["gen_ai.system_instructions"]) == [
        {"type": "text", "content": "Be nice."}
    ]
    assert json.loads(second["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "twice 2?"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "double", "arguments": {"x": 2}}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": 4}]},
    ]
    said = [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "It is 4."}],
            "finish_reason": "stop",
        }
    ]
    assert json.loads(second["gen_ai.output.messages"]) == said
    [definition] = json.loads(second["gen_ai.tool.definitions"])
    assert (definition["type"], definition["name"]) == ("function", "double")
    assert definition["parameters"]["properties"] == {"x": {"type": "integer"}}
    tool_span, run = spy.one("execute_tool").attributes, spy.one("invoke_agent").attributes
    assert (tool_span["gen_ai.tool.call.arguments"], tool_span["gen_ai.tool.call.result"]) == (
        '{"x":2}',
        "4",
    )
    assert json.loads(run["gen_ai.output.messages"]) == said
    assert run["gen_ai.system_instructions"] == second["gen_ai.system_instructions"]


def test_every_piece_of_content_has_a_form() -> None:
    run = {"run_by": "provider"}
    messages = [
        Message.user(
            "hi",
            DataPart(b"\x00", "image/png"),
            LinkPart("http://x/a.pdf"),
            FilePart("f1", "audio/wav"),
        ),
        Message.model(
            *(
                ThinkingPart("hm"),
                ProviderPart("compaction"),
                MarkPart("step"),
                ToolCallPart("s1", "search", {"q": "x"}, **run),
            ),
            ToolResultPart("s1", "search", ["found"], **run),
        ),
        Message.user(ToolResultPart("c1", "look", [DataPart(b"\x01", "text/csv")])),
    ]
    user, model, tools = json.loads(content.dump_json(content.dump_conversation(messages)))
    assert [part["type"] for part in user["parts"]] == ["text", "blob", "uri", "file"]
    assert user["parts"][1] == {
        "type": "blob",
        "mime_type": "image/png",
        "modality": "image",
        "content": "AA==",
    }
    assert [part.get("modality") for part in user["parts"][2:]] == ["document", "audio"]
    assert (model["role"], [part["type"] for part in model["parts"]]) == (
        "assistant",
        ["reasoning", "compaction", "server_tool_call", "server_tool_call_response"],
    )
    assert tools == {
        "role": "tool",
        "parts": [
            {
                "type": "tool_call_response",
                "id": "c1",
                "response": [
                    {
                        "type": "blob",
                        "mime_type": "text/csv",
                        "modality": "document",
                        "content": "AQ==",
                    }
                ],
            }
        ],
    }
    assert content.dump_tools([ServerTool("web_search")]) == [
        {"type": "builtin", "name": "web_search"}
    ]


@pytest.mark.parametrize("wire", MODELS)
async def test_an_error_is_on_the_request_and_on_the_run(wire: str) -> None:
    spy = Telemetry()
    agent, _ = agent_of(wire, Exchange(status=429), hooks=spy.hooks)
    with pytest.raises(RateLimitError):
        await agent.send("hi")
    spy.check()
    for span in spy.spans:
        assert span.attributes["error.type"] == "RateLimitError"
        assert (span.status.status_code.name, [event.name for event in span.events]) == (
            "ERROR",
            ["exception"],
        )
    [duration] = spy.metrics()["gen_ai.client.inference.duration"]
    assert duration.attributes["error.type"] == "RateLimitError"
    [event] = spy.events
    assert (event.event_name, event.severity_number.value) == (
        "gen_ai.client.operation.exception",
        13,
    )
    assert (event.span_id, event.attributes["exception.type"]) == (
        spy.one("chat").context.span_id,
        "dragoman.errors.RateLimitError",
    )


async def test_a_tool_that_fails_is_an_error_of_its_span_alone() -> None:
    spy = Telemetry(content=True)

    def fail() -> None:
        raise ValueError("half of one: \ud83d")

    both = (answer("openai_chat", call("fail")), answer("openai_chat", "ok"))
    agent, _ = agent_of("openai_chat", *both, tools=[fail], hooks=spy.hooks)
    await agent.send("hi")
    spy.check()
    assert [span.name for span in spy.spans if span.status.status_code.name == "ERROR"] == [
        "execute_tool fail"
    ]
    span, [event] = spy.one("execute_tool"), spy.events
    assert span.attributes["error.type"] == "ValueError"
    assert (event.event_name, event.attributes["exception.type"]) == (
        "gen_ai.execute_tool.exception",
        "ValueError",
    )


def test_half_a_character_is_escaped() -> None:
    assert json.loads(content.dump_json({"text": "\ud83d", "data": b"\x00"})) == {
        "text": "\ud83d",
        "data": "AA==",
    }


async def test_what_tools_do_stands_under_their_spans() -> None:
    spy = Telemetry()
    inner, _ = agent_of("google", answer("google", "4"), hooks=spy.hooks, display_name="Inner")

    async def in_a_task(context: ToolContext) -> str:
        with spy.tracers.get_tracer("mine").start_as_current_span("task"):
            await asyncio.sleep(0)
        return (await context.send(inner, "2+2?")).output

    def in_a_thread() -> str:
        with spy.tracers.get_tracer("mine").start_as_current_span("thread"):
            return "t"

    both = (
        answer("openai_chat", call("in_a_task"), call("in_a_thread", id="c2")),
        answer("openai_chat", "ok"),
    )
    agent, _ = agent_of("openai_chat", *both, tools=[in_a_task, in_a_thread], hooks=spy.hooks)
    await agent.send("hi")
    spans = {span.name: span for span in spy.spans}
    task, thread = spans["execute_tool in_a_task"], spans["execute_tool in_a_thread"]
    assert parent(spans["task"]) == task.context.span_id
    assert parent(spans["thread"]) == thread.context.span_id
    assert parent(spans["invoke_agent Inner"]) == task.context.span_id
    assert parent(spans["chat gemini-2.5-flash"]) == spans["invoke_agent Inner"].context.span_id
    assert {span.context.trace_id for span in spy.spans} == {task.context.trace_id}


async def test_an_agent_within_a_tool_is_seen_by_the_hooks_of_the_one_around_it() -> None:
    spy = Telemetry()
    inner, _ = agent_of("google", answer("google", "4"), display_name="Inner")
    both = (answer("openai_chat", call("adder", prompt="2+2?")), answer("openai_chat", "ok"))
    tools = [inner.as_tool("adder", "Adds.")]
    agent, _ = agent_of("openai_chat", *both, tools=tools, hooks=spy.hooks)
    await agent.send("hi")
    spy.check()
    spans = {span.name: span for span in spy.spans}
    assert parent(spans["invoke_agent Inner"]) == spans["execute_tool adder"].context.span_id
    assert "gen_ai.conversation.id" not in spans["invoke_agent Inner"].attributes


async def test_a_synchronous_agent_in_a_thread_stands_under_its_tool() -> None:
    spy = Telemetry()
    inner, _ = agent_of("google", answer("google", "4"), hooks=spy.hooks, display_name="Inner")

    def ask() -> str:
        with inner:
            return inner.send_sync("2+2?").output

    both = (answer("openai_chat", call("ask")), answer("openai_chat", "ok"))
    agent, _ = agent_of("openai_chat", *both, tools=[ask], hooks=spy.hooks)
    await agent.send("hi")
    spans = {span.name: span for span in spy.spans}
    assert parent(spans["invoke_agent Inner"]) == spans["execute_tool ask"].context.span_id


async def test_a_run_stands_under_the_span_that_is_current_and_makes_none_current() -> None:
    spy = Telemetry()
    agent, _ = agent_of("openai_chat", *answers("openai_chat"), tools=[double], hooks=spy.hooks)
    with spy.tracers.get_tracer("mine").start_as_current_span("request") as mine:
        async for _ in agent.send_events("hi"):
            assert trace.get_current_span() is mine
    assert parent(spy.one("invoke_agent")) == mine.get_span_context().span_id


async def test_runs_side_by_side_in_one_task_keep_apart() -> None:
    spy = Telemetry()
    agents = [
        agent_of(
            "openai_chat",
            *answers("openai_chat"),
            tools=[double],
            hooks=spy.hooks,
            display_name=name,
        )[0]
        for name in "ab"
    ]
    streams = [agent.send_events("hi") for agent in agents]
    left = list(streams)
    while left:
        for stream in list(left):
            if await anext(stream, None) is None:
                left.remove(stream)
    spy.check()
    runs = {span.name: span for span in spy.named("invoke_agent")}
    assert runs.keys() == {"invoke_agent a", "invoke_agent b"}
    for run in runs.values():
        children = [span for span in spy.spans if parent(span) == run.context.span_id]
        assert len(children) == 3
        assert {span.context.trace_id for span in children} == {run.context.trace_id}


@pytest.mark.parametrize("way", ["forget", "close", "cancel", "task"])
@pytest.mark.slow
async def test_no_span_is_left_behind(way: str) -> None:
    spy = Telemetry()
    agent, _ = agent_of(
        "openai_chat", answer("openai_chat", "word " * 50, usage=USED), hooks=spy.hooks
    )

    async def read(events: Any) -> None:
        async for event in events:
            if isinstance(event, PartDelta) and "word" in str(event.delta):
                return

    if way == "forget":
        await read(agent.send_events("hi"))
        gc.collect()
        for _ in range(1000):
            await asyncio.sleep(0)
    elif way == "close":
        async with agent.run("hi") as run:
            await read(run)
    elif way == "cancel":
        async with agent.run("hi") as run:
            await read(run)
            run.cancel()
            await run.result()
    else:
        began = asyncio.Event()

        async def reading() -> None:
            async with agent.run("hi") as run:
                await read(run)
                began.set()
                await asyncio.sleep(9)

        task = asyncio.create_task(reading())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    spy.check()
    assert [span.attributes["gen_ai.response.finish_reasons"] for span in spy.spans] == [
        ("error",)
    ] * 2
    assert {span.status.status_code.name for span in spy.spans} == {"UNSET"}


async def test_a_tool_that_is_cancelled_ends_its_span() -> None:
    spy = Telemetry()
    began = asyncio.Event()

    async def slow() -> None:
        began.set()
        await asyncio.sleep(9)

    agent, _ = agent_of(
        "openai_chat",
        answer("openai_chat", call("slow"), call("slow", id="c2")),
        tools=[slow],
        hooks=spy.hooks,
    )
    async with agent.run("hi") as run:
        reading = asyncio.create_task(run.result())
        await began.wait()
        run.cancel()
        await reading
    spy.check()
    assert len(spy.named("execute_tool")) == 2


@pytest.mark.slow
def test_a_loop_that_is_closed_over_a_request_makes_no_noise() -> None:
    spy = Telemetry()

    class Stuck:
        async def send(self, request: Any) -> Any:
            await asyncio.Event().wait()

        async def close(self) -> None: ...

    agent = Agent("openai:m", transport=Stuck(), api_key="k", hooks=spy.hooks)
    loop = asyncio.new_event_loop()
    task = loop.create_task(agent.send("hi"))
    for _ in range(5):
        loop.run_until_complete(asyncio.sleep(0))
    task._log_destroy_pending = False
    with suppress(RuntimeError):  # a generator that is running cannot be closed
        task.get_coro().close()
    loop.close()
    del task
    gc.collect()
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_a_request_whose_task_is_destroyed_leaves_other_contexts_alone() -> None:
    """Its end then runs where the garbage is collected."""
    spy = Telemetry()
    watch, elsewhere = Watch((spy.hooks,)), copy_context()

    @coroutine
    def stuck(_: Any) -> Any:
        yield

    start = ModelStart(
        None, Origin("openai", "http://127.0.0.1/v1", "m"), "openai_chat", ModelRequest("m")
    )
    with pytest.raises(StopIteration):
        elsewhere.run(watch.begin(start).send, None)
    sending = watch.send(stuck, HttpRequest("http://127.0.0.1/v1"))
    elsewhere.run(sending.send, None)
    token = ON_RETRY.set(mine := lambda *_: None)  # type: ignore[arg-type]
    sending.close()
    assert ON_RETRY.get() is mine
    ON_RETRY.reset(token)


async def test_retries_and_losses_are_events() -> None:
    spy = Telemetry()
    failed = [ProviderConnectionError("closed"), Exchange(status=503)]
    transport = Retry(
        Player([*failed, answer("openai_chat", "ok")]), sleep=asyncio.sleep, random=lambda: 0.0
    )
    agent = Agent("openai:m", transport=transport, api_key="k", hooks=spy.hooks)
    await agent.send(["look", DataPart(b"\x00\x01", "application/x-strange", "f.bin")])
    chat, run = spy.one("chat"), spy.one("invoke_agent")
    assert [(event.name, dict(event.attributes)) for event in chat.events] == [
        (
            "dragoman.retry",
            {
                "dragoman.retry.attempt": 1,
                "dragoman.retry.wait": 0.0,
                "error.type": "ProviderConnectionError",
            },
        ),
        (
            "dragoman.retry",
            {
                "dragoman.retry.attempt": 2,
                "dragoman.retry.wait": 0.0,
                "http.response.status_code": 503,
            },
        ),
    ]
    [loss] = run.events
    assert (loss.name, loss.attributes["dragoman.loss.what"]) == ("dragoman.loss", "data")


async def test_a_fallback_is_an_event_of_the_run() -> None:
    spy = Telemetry()

    async def again(request: Any, following: Any) -> Any:
        retry = RequestRetry(request.run, "openai", 1, fallback="google:g")
        await call_hooks(request.run.hooks, "retry", retry)
        async for event in following(request):
            yield event

    agent, _ = agent_of(
        "openai_chat", answer("openai_chat", "ok"), middleware=[again], hooks=spy.hooks
    )
    await agent.send("hi")
    assert [
        event.attributes["dragoman.retry.fallback"] for event in spy.one("invoke_agent").events
    ] == ["google:g"]


async def test_a_model_by_itself_and_a_tool_that_asks() -> None:
    spy = Telemetry()
    with add_global_hooks(spy.hooks):
        model = ChatModel(
            get("anthropic"), "m", transport=Player([answer("anthropic", "hi")]), api_key="k"
        )
        assert [event async for event in model.stream(ModelRequest("", (Message.user("hi"),)))]
        assert "gen_ai.request.stream" not in spy.one("chat").attributes
        assert "gen_ai.client.inference.time_to_first_chunk" not in spy.metrics()

        @tool
        def ask(context: ToolContext) -> str:
            """Asks."""
            return context.ask("sure?")

        agent, _ = agent_of("openai_chat", answer("openai_chat", call("ask")), tools=[ask])
        assert (await agent.send("hi")).pending
    spy.check()
    assert spy.one("execute_tool").status.status_code.name == "UNSET"


async def test_tools_that_are_run_by_themselves_stand_side_by_side() -> None:
    spy = Telemetry()
    with add_global_hooks(spy.hooks):
        calls = [call("double", id="a", x=1), call("double", id="b", x=2)]
        await ToolExecutor().execute_batch(calls, {"double": tool(double)})
    spy.check()
    assert [parent(span) for span in spy.named("execute_tool")] == [None, None]


async def test_traceparent_and_baggage() -> None:
    from opentelemetry import baggage, context

    token = context.attach(baggage.set_baggage("user", "secret"))
    try:
        for propagate in (True, False):
            spy = Telemetry(propagate=propagate)
            agent, player = agent_of("openai_chat", answer("openai_chat", "ok"), hooks=spy.hooks)
            await agent.send("hi")
            assert ("traceparent" in player.requests[0].headers) is propagate
            assert "baggage" not in player.requests[0].headers
    finally:
        context.detach(token)


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_over_mcp_takes_the_trace_along(era: str) -> None:
    """By the library's own means: it writes the current context into the request."""
    from dragoman.mcp import mcp, server

    @tool
    def where() -> str:
        """Tells the trace."""
        return f"{trace.get_current_span().get_span_context().trace_id:032x}"

    spy = Telemetry()
    toolset = mcp(server([where]), protocol=era)
    both = (answer("openai_chat", call("where")), answer("openai_chat", "ok"))
    agent, _ = agent_of("openai_chat", *both, tools=[toolset], hooks=spy.hooks)
    result = await agent.send("hi")
    [given] = result.messages[2].tool_results
    assert f"{spy.one('execute_tool').context.trace_id:032x}" in str(given.result)


async def test_an_agent_is_named_only_where_it_was_given_a_name() -> None:
    spy = Telemetry()
    agent, _ = agent_of("openai_chat", answer("openai_chat", "ok"), hooks=spy.hooks)
    await agent.send("hi")
    run = spy.one("invoke_agent")
    assert run.name == "invoke_agent"
    assert "gen_ai.conversation.id" not in run.attributes


async def test_what_no_sampler_wants_costs_no_content(monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    monkeypatch.setattr(content, "dump_conversation", lambda _: pytest.fail("nobody keeps it"))
    hooks = telemetry(TracerProvider(sampler=ALWAYS_OFF), MeterProvider(), content=True)
    agent, player = agent_of("openai_chat", answer("openai_chat", "ok"), hooks=hooks)
    await agent.send("hi")
    assert player.requests[0].headers["traceparent"].endswith(("-00", "-02"))


@pytest.mark.slow
def test_without_the_extra_it_says_so() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import dragoman.telemetry\n"
        "try: dragoman.telemetry.telemetry()\n"
        "except dragoman.errors.SettingsError as error: print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install '.[otel]' in " in run.stdout


def test_hooks_are_all_that_it_is() -> None:
    assert isinstance(telemetry(), Hooks)
