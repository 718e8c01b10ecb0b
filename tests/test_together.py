"""What surrounds a run, all at once: fallback, breaker, throttle, cache, hooks, telemetry,
toolsets, agents in tools, logs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dragoman import (
    Agent,
    ChatResult,
    Message,
    RunRequest,
    ToolContext,
    dump_messages,
    fold,
    load_messages,
    tool,
)
from dragoman.errors import RateLimitError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageStarted,
    RunFinished,
    RunStarted,
    event_from_json,
    event_to_json,
)
from dragoman.hooks import Hooks
from dragoman.model.breaker import Breaker
from dragoman.model.fallbacks import fallback
from dragoman.model.response_cache import cache
from dragoman.model.throttle import Throttle
from dragoman.runs import Runs, open_log, visible
from dragoman.telemetry import telemetry
from dragoman.testing import Answer, ScriptedModel, answer_with, call, format_transcript
from dragoman.tools import Tool, handoff
from dragoman.tools.toolsets import Toolset, toolset
from support.net import FOUR as WIRES

pytestmark = pytest.mark.anyio

EACH = pytest.mark.parametrize(
    ("wire", "stream"), [(wire, stream) for wire in WIRES for stream in (True, False)]
)
CUT = Answer(content="Half an answer, and then the line is dead.", cut=True)
KINDS = ("run", "model", "tool")


class CountedToolset(Toolset):
    """Knows how often it is entered."""

    def __init__(self, *tools: Tool) -> None:
        self.tools, self.entered = tools, 0

    async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:
        await asyncio.sleep(0)
        return self.tools

    async def __aenter__(self) -> Self:
        await asyncio.sleep(0)
        self.entered += 1
        return self

    async def __aexit__(self, *error: object) -> None:
        self.entered -= 1
        await asyncio.sleep(0)


@tool
async def double(context: ToolContext[Any], x: int) -> int:
    """Doubles."""
    await context.progress(1, 2)
    await asyncio.sleep(0)
    return 2 * x


class Everything:
    """An agent with another in its tool, whose first model fails in the middle of each answer."""

    def __init__(self, wire: str, *, stream: bool = True) -> None:
        self.told: Counter[str] = Counter()
        self.tasks: set[Any] = set()
        """Those that there are before it begins."""
        self.spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        names = [f"{kind}_{end}" for kind in KINDS for end in ("start", "end")]
        hooks = [
            Hooks(**{name: self._hook(name) for name in (*names, "retry")}),
            telemetry(provider),
        ]
        self.throttles = [
            Throttle(concurrency=1, max_wait=30),
            Throttle(concurrency=2, tokens_per_minute=10**9, max_wait=30),
        ]
        self.breaker = Breaker(failures=1000)
        self.toolset = CountedToolset(double)
        self.cache = cache()
        self.first = ScriptedModel(
            lambda _: CUT, wire=wire, stream=stream, name="first", chat_model="f-1"
        )
        second = ScriptedModel(_inner, wire=wire, stream=stream, name="second", chat_model="s-1")
        self.inner = Agent(
            fallback(self.first, second, breaker=self.breaker),
            tools=[self.toolset],
            hooks=hooks,
            middleware=[self.throttles[0], self.cache],
        )
        outer = ScriptedModel(_outer, wire=wire, stream=stream, name="outer", chat_model="o-1")
        self.agent = Agent(
            outer,
            tools=[self.inner.as_tool("inner"), self.toolset.prefix("my_")],
            hooks=hooks,
            middleware=[self.cache, self.throttles[1]],
        )

    def _hook(self, name: str) -> Callable[[Any], Any]:
        async def hook(_: Any) -> None:
            self.told[name] += 1
            await asyncio.sleep(0)

        return hook

    def left(self) -> list[str]:
        """What is not as it was before anything began."""
        queues = [queue for throttle in self.throttles for queue in throttle._queues.values()]
        tasks = asyncio.all_tasks() - self.tasks
        found = {
            "a slot of a throttle": any(queue.quota.running or queue.waiting for queue in queues),
            "a trial of a breaker": any(
                circuit.trial for circuit in self.breaker._circuits.values()
            ),
            "a toolset": self.toolset.entered,
            "a task": [
                task for task in tasks if "athrow" not in repr(task)
            ],  # an iterator that was dropped
            **{
                f"an end of {kind}": self.told[f"{kind}_start"] != self.told[f"{kind}_end"]
                for kind in KINDS
            },
        }
        return [what for what, there in found.items() if there]


def _inner(request: Any) -> Any:
    return "Eight." if request.messages[-1].tool_results else ["I double.", call("double", x=4)]


def _outer(request: Any) -> Any:
    if request.messages[-1].tool_results:
        return "Done."
    return [
        "I ask.",
        call("inner", prompt="Twice 4?"),
        call("my_double", x=1),
        call("inner", prompt="And 4?"),
    ]


async def run_of(agent: Agent[Any], prompt: Any, **how: Any) -> tuple[list[Event], ChatResult[Any]]:
    """All events of a run, and its result, which must say the same."""
    async with agent.run(prompt, **how) as run:
        events = [event async for event in run]
        result = await run.result()
    assert fold(events) == list(result.messages)
    (end,) = (
        event for event in events if isinstance(event, RunFinished) and event.run_id == run.id
    )
    assert end.usage == result.usage
    begun = [event.message_id for event in events if isinstance(event, MessageStarted)]
    assert len(set(begun)) == len(begun)
    assert [event_to_json(event_from_json(event_to_json(event))) for event in events] == list(
        map(event_to_json, events)
    )
    return events, result


def models(result: ChatResult[Any]) -> list[tuple[str | None, bool]]:
    """The calls whose answers stand: by which model, and whether from the cache."""
    found = [(each.origin.model if each.origin else None, each.cached) for each in result.calls]
    return [each for each in found if each[0] != "f-1"]


@EACH
async def test_all_of_it_at_once(wire: str, stream: bool) -> None:
    world = Everything(wire, stream=stream)
    world.tasks = asyncio.all_tasks()
    events, result = await run_of(world.agent, "Go.")
    assert result.output == "I ask.\nDone."
    assert not world.left()
    assert Counter(models(result)) == {("o-1", False): 2, ("s-1", False): 4}
    inner = [
        event.run_id for event in events if isinstance(event, RunStarted) and event.parent_run_id
    ]
    assert len(inner) == 2
    for run_id in inner:
        texts = [message.text for message in fold(events, run_id=run_id)]
        assert texts[1:] == ["I double.", "", "Eight."]
    assert any(isinstance(event, MessageDropped) for event in events) is stream
    assert not any(
        isinstance(event, MessageDropped) for event in visible(events, retractable=False)
    )
    assert world.told == {
        **{f"run_{end}": 3 for end in ("start", "end")},
        **{f"model_{end}": 2 + 8 for end in ("start", "end")},
        **{f"tool_{end}": 5 for end in ("start", "end")},
        "retry": 4,
    }
    spans = world.spans.get_finished_spans()
    assert len(spans) == 3 + 10 + 5
    assert len({span.context.trace_id for span in spans if span.context}) == 1
    assert sum(span.parent is None for span in spans) == 1

    _, again = await run_of(world.agent, "Go.")
    assert format_transcript(again) == format_transcript(result)
    assert all(cached for _, cached in models(again))
    assert again.usage is not None
    assert again.usage.total_tokens == 0
    assert not {message.id for message in again.messages} & {
        message.id for message in result.messages
    }


@pytest.mark.parametrize("how", ["task", "run", "leave"])
async def test_wherever_it_is_left_nothing_stays(how: str) -> None:
    step, done = 0, False
    while not done:
        world = Everything("openai_chat")
        world.tasks = asyncio.all_tasks()
        async with world.agent.run("Go.") as run:
            if how == "leave":
                number, done = 0, True
                async for _ in run:
                    number += 1
                    if number > step:
                        done = False
                        break
            else:
                task = asyncio.create_task(run.result())
                for _ in range(step):
                    await asyncio.sleep(0)
                done = task.done()
                task.cancel() if how == "task" else run.cancel()
                await asyncio.gather(task, return_exceptions=True)
        assert not world.left(), step
        assert len(world.spans.get_finished_spans()) == sum(
            world.told[f"{kind}_start"] for kind in KINDS
        ), step
        step += 11
    assert step > 100


async def test_a_log_of_it_is_read_from_any_offset() -> None:
    async with Runs(open_log("memory:")) as runs:
        run_id = await runs.start(Everything("anthropic").agent, RunRequest([Message.user("Go.")]))
        every = [each async for each in runs.attach(run_id)]
        assert fold([event for _, event in every])[-1].text == "Done."
        for offset in range(0, len(every) + 1, 9):
            assert [place async for place, _ in runs.attach(run_id, offset)] == [
                place for place, _ in every[offset:]
            ]


@EACH
@pytest.mark.parametrize("is_there", [True, False], ids=["there", "gone"])
async def test_an_approval_far_down_goes_on_in_another_process(
    wire: str, stream: bool, is_there: bool
) -> None:
    ran: list[int] = []

    @tool(requires_approval=True)
    def risky(x: int) -> int:
        """Does it."""
        ran.append(x)
        return x

    def process(*, first: bool) -> Agent[Any]:
        def tools(_: ToolContext[Any]) -> list[Tool]:
            return [risky] if first or is_there else []

        def model(*answers: Any, name: str) -> ScriptedModel:
            return ScriptedModel(
                answers if first else answers[1:], wire=wire, stream=stream, name=name
            )

        innermost = Agent(
            fallback(
                ScriptedModel(lambda _: CUT, wire=wire, stream=stream, name="first"),
                model(call("risky", x=4), "Innermost.", name="second"),
            ),
            tools=[toolset(tools)],
            middleware=[cache()],
        )
        middle = Agent(
            model(call("transfer_to_last"), name="middle"),
            tools=[handoff(innermost, "last")],
            middleware=[cache()],
        )
        return Agent(
            model(call("middle", prompt="Do it."), "Done.", name="outer"),
            tools=[middle.as_tool("middle")],
            middleware=[cache()],
        )

    _, waits = await run_of(process(first=True), "Go.")
    history = load_messages(dump_messages(waits.messages))
    (interrupt,) = waits.pending
    assert not ran
    _, result = await run_of(
        process(first=False), None, history=history, resume=[interrupt.approve()]
    )
    assert result.output == "Done."
    assert ran == ([4] if is_there else [])


@pytest.mark.parametrize("failure", [RateLimitError("later"), CUT], ids=["refused", "cut"])
@pytest.mark.parametrize("wire", WIRES)
async def test_typed_output_of_whichever_model_answers_is_found_again(
    wire: str, failure: Any
) -> None:
    other = WIRES[WIRES.index(wire) - 1]
    shared = cache()
    second = ScriptedModel([answer_with(7), answer_with(8)], wire=other, name="second")
    agent = Agent(
        fallback(ScriptedModel(lambda _: failure, wire=wire, name="first"), second),
        tools=[double],
        middleware=[shared],
    )
    results = [(await run_of(agent, "How many?", output_type=int))[1] for _ in range(2)]
    assert [result.output for result in results] == [7, 7]
    assert results[1].calls[-1].cached
    assert len(second.requests) == 1


def test_what_is_shared_serves_one_event_loop_after_another(tmp_path: Any) -> None:
    world = Everything("google")
    world.agent = Agent(
        ScriptedModel(_outer),
        tools=[world.inner.as_tool("inner"), world.toolset.prefix("my_")],
        middleware=[cache(f"sqlite:///{tmp_path}/answers.db"), *world.throttles, world.breaker],
    )
    results = [asyncio.run(world.agent.send("Go.")) for _ in range(2)]
    results.append(world.agent.send_sync("Go."))
    world.agent.close_sync()
    assert {result.output for result in results} == {"I ask.\nDone."}
    assert all(cached for _, cached in models(results[2]))
