"""Limits of a process: who waits, for how long, in which order, and that what was taken is given
back whatever happens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from dragoman import Agent, Message, MessageFinished, ModelRequest, PartDelta, RunError, Usage
from dragoman.errors import DragomanError, OverloadedError, RateLimitError, SettingsError
from dragoman.event import Event
from dragoman.message import FinishReason, Origin
from dragoman.model import Throttle
from support.model import says
from support.net import FOUR, NAMES, Net, agent, target, used, whole

pytestmark = pytest.mark.anyio


class Bench:
    """A throttle, a time that passes when somebody sleeps, and requests through it that end when
    they are told."""

    def __init__(self, **how: Any) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.began: list[str] = []
        self.ended = asyncio.Event()
        self.tokens: int | None = None
        self.throttle = Throttle(**{"clock": lambda: self.now, "sleep": self.sleep, **how})

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.now += seconds

    def open(
        self, text: str = "x", model: str = "p:m", error: DragomanError | None = None
    ) -> AsyncGenerator[Any, None]:
        async def following(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
            self.began.append(request.messages[0].text)
            yield [PartDelta("m", 0, "a")]
            await self.ended.wait()
            usage = None if self.tokens is None else Usage(total_tokens=self.tokens)
            yield (
                [MessageFinished("m", FinishReason.stop, usage)]
                if error is None
                else [RunError(error)]
            )

        return self.throttle.batches(ModelRequest(model, (Message.user(text),)), following, target)

    async def ask(
        self, text: str = "x", model: str = "p:m", error: DragomanError | None = None
    ) -> list[Event]:
        return [
            event
            for batch in [batch async for batch in self.open(text, model, error)]
            for event in batch
        ]


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_so_many_at_once_and_the_others_in_their_order() -> None:
    bench = Bench(concurrency=2)
    tasks = [asyncio.create_task(bench.ask(str(number))) for number in range(6)]
    await turns()
    assert bench.began == ["0", "1"]
    bench.ended.set()
    await asyncio.gather(*tasks)
    assert bench.began == [str(number) for number in range(6)]


async def test_whoever_gives_up_lets_the_next_one_go() -> None:
    bench = Bench(concurrency=1)
    tasks = [asyncio.create_task(bench.ask(str(number))) for number in range(4)]
    await turns()
    tasks[1].cancel()
    tasks[0].cancel()
    await turns()
    assert bench.began == ["0", "2"]
    bench.ended.set()
    await asyncio.gather(*tasks[2:])
    assert bench.began == ["0", "2", "3"]
    assert all(task.cancelled() for task in tasks[:2])


async def test_a_stream_that_is_left_gives_its_place_back() -> None:
    bench = Bench(concurrency=1)
    async with aclosing(bench.open("0")) as first:
        await anext(first)
        waiting = asyncio.create_task(bench.ask("1"))
        await turns()
        assert bench.began == ["0"]
    bench.ended.set()
    await waiting
    failing = [asyncio.create_task(bench.ask("f", error=OverloadedError("x"))) for _ in range(3)]
    await asyncio.gather(*failing)
    assert bench.throttle._queues[Origin("p", "https://p")].quota.running == 0


async def test_nobody_overtakes_who_was_let_go_and_has_not_gone_yet() -> None:
    bench = Bench(concurrency=1)
    first = bench.open("0")
    await anext(first)
    waiting = asyncio.create_task(bench.ask("1"))
    await turns()
    await first.aclose()
    late = asyncio.create_task(anext(bench.open("2")))
    await turns()
    bench.ended.set()
    await waiting
    await late
    assert bench.began == ["0", "1", "2"]


async def test_so_many_a_minute() -> None:
    bench = Bench(requests_per_minute=2)
    bench.ended.set()
    for number in range(5):
        await bench.ask(str(number))
        bench.now += 1.0
    assert bench.slept == [58.0, 58.0]
    assert len(bench.began) == 5


async def test_tokens_are_estimated_and_then_counted() -> None:
    bench = Bench(tokens_per_minute=100)
    bench.ended.set()
    bench.tokens = 90
    await bench.ask("x" * 350)  # 51
    assert bench.slept == []
    await bench.ask("x" * 350)
    assert bench.slept == [60.0]
    bench.tokens = 10
    bench.now += 60.0
    for _ in range(5):
        await bench.ask("x" * 350)
    assert bench.slept == [60.0]
    bench.tokens = None
    bench.now += 60.0
    await bench.ask("x" * 430)  # 60, which count where nobody says what it was
    await bench.ask("x" * 430)
    assert bench.slept == [60.0, 60.0]


async def test_who_waits_too_long_is_told_how_long_it_would_last() -> None:
    bench = Bench(requests_per_minute=1, max_wait=30)
    bench.ended.set()
    await bench.ask()
    bench.now = 10.0
    [event] = await bench.ask()
    assert isinstance(event, RunError)
    assert isinstance(event.error, RateLimitError)
    assert (event.error.retry_after, event.error.provider) == (50.0, "p")
    assert "within 30 s" in event.error.message
    assert bench.slept == []
    bench.now = 31.0
    await bench.ask()
    assert (bench.slept, len(bench.began)) == ([29.0], 2)


async def test_who_may_not_wait_at_all() -> None:
    bench = Bench(concurrency=1, max_wait=0)
    first = asyncio.create_task(bench.ask("0"))
    await turns()
    [event] = await bench.ask("1")
    assert isinstance(event, RunError)
    assert isinstance(event.error, RateLimitError)
    assert event.error.retry_after is None
    bench.ended.set()
    await first
    await bench.ask("2")
    assert bench.began == ["0", "2"]


async def test_each_endpoint_has_limits_of_its_own_or_each_model() -> None:
    for per, began in (("endpoint", ["p:m", "q:m"]), ("model", ["p:m", "q:m", "p:n"])):
        bench = Bench(concurrency=1, per=per)
        tasks = [asyncio.create_task(bench.ask(model, model)) for model in ("p:m", "q:m", "p:n")]
        await turns()
        assert bench.began == began
        bench.ended.set()
        await asyncio.gather(*tasks)
    bench = Bench(concurrency=1)
    bench.ended.set()
    await asyncio.gather(*[bench.ask("nobody", "") for _ in range(3)])
    assert bench.began == ["nobody"] * 3


def test_across_threads_and_loops_in_the_order_in_which_they_came() -> None:
    throttle = Throttle(concurrency=1)
    running, most, began = 0, 0, list[int]()
    go = threading.Event()

    async def following(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        began.append(int(request.messages[0].text))
        await asyncio.to_thread(go.wait)
        await turns(3)
        running -= 1
        yield [PartDelta("m", 0, "a")]

    def work(number: int) -> None:
        async def main() -> None:
            request = ModelRequest("p:m", (Message.user(str(number)),))
            async with aclosing(throttle.batches(request, following, target)) as batches:
                async for _ in batches:
                    pass

        asyncio.run(main())

    def has_come(number: int) -> bool:
        queue = throttle._queues.get(Origin("p", "https://p"))
        return bool(began) and queue is not None and len(queue.waiting) == number

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for number, thread in enumerate(threads):
        thread.start()
        while not has_come(number):
            threading.Event().wait(0.001)
    go.set()
    for thread in threads:
        thread.join()
    assert most == 1
    assert began == [0, 1, 2, 3, 4, 5]


async def test_a_request_whose_loop_has_ended_holds_nobody_up() -> None:
    bench = Bench(concurrency=1)
    first = asyncio.create_task(bench.ask("0"))
    await turns()
    loop = asyncio.new_event_loop()

    def leave() -> None:
        task = loop.create_task(bench.ask("lost"))
        loop.run_until_complete(turns())
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.close()
        kept.append(task)

    kept: list[Any] = []
    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    second = asyncio.create_task(bench.ask("1"))
    await turns()
    bench.ended.set()
    await asyncio.gather(first, second)
    assert bench.began == ["0", "1"]


@pytest.mark.parametrize("layers", [[], [whole]], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", FOUR)
async def test_agents_share_it_on_each_wire(wire: str, layers: list[Any]) -> None:
    now, slept = 0.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    throttle = Throttle(tokens_per_minute=1000, clock=lambda: now, sleep=sleep)
    net = Net(**{wire: used(says("Hello."), 600)})
    async with agent(net, NAMES[wire], middleware=[throttle, *layers]) as one:
        await one.send("Hi")
        async with agent(net, NAMES[wire], middleware=[throttle, *layers]) as other:
            await other.send("Hi")
            assert slept == []
            await one.send("Hi")
    assert slept == [60.0]
    assert len(net.asked) == 3


async def test_a_run_that_is_left_gives_its_place_back() -> None:
    throttle = Throttle(concurrency=1)
    net = Net(openai_chat=says("word " * 50))
    one: Agent[Any] = agent(net, "openai", middleware=[throttle])
    for _ in range(3):
        async with one.run("Hi") as run:
            async for event in run:
                if isinstance(event, PartDelta) and event.delta == "word ":
                    break
    assert (await one.send("Hi")).output == "word " * 50
    assert net.open == 0


def test_the_prompt_counts_before_the_provider_says_what_it_took() -> None:
    def look(place: str) -> str:
        """Looks."""
        return place

    net = Net(openai_chat=Message.model("b"))
    with agent(net, "openai", tools=[look], middleware=[Throttle(tokens_per_minute=10)]) as one:
        one.send_sync("Hi")
    assert len(net.asked) == 1


def test_wrong_settings() -> None:
    for wrong in ({}, {"concurrency": 0}, {"requests_per_minute": -1}, {"tokens_per_minute": 0}):
        with pytest.raises(SettingsError, match=next(iter(wrong), "no limit")):
            Throttle(**wrong)
    with pytest.raises(SettingsError, match="per"):
        Throttle(concurrency=1, per="key")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="concurrency"):
        Throttle(concurrency=2.5)  # type: ignore[arg-type]
