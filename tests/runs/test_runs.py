"""Runs that go on without their readers: in one process, over every log."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from dragoman import Agent, RunRequest, ToolContext, fold, tool, unfold
from dragoman.errors import (
    DragomanError,
    LeaseLostError,
    OverloadedError,
    RateLimitError,
    RunInterruptedError,
    RunLogError,
)
from dragoman.event import (
    CALLS_BEGUN,
    Custom,
    Event,
    MessageStarted,
    OpenText,
    PartDelta,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    event_to_json,
)
from dragoman.message import Message, Role, ToolResultPart, Usage
from dragoman.request import ModelRequest
from dragoman.runs import RunLog, Runs, RunStatus, memory_log, open_log
from dragoman.runs.closing import closing_events
from dragoman.runs.tail import RunTail
from dragoman.testing import ScriptedModel
from dragoman.tools.context import PROGRESS
from support.model import PROVIDER, agent, call, says
from support.runs import speaker, until

pytestmark = pytest.mark.anyio

QUICK = {"lease_seconds": 30.0, "poll_seconds": 0.01}


async def read(runs: Runs, run_id: str, offset: int = 0) -> list[Event]:
    """All events from there on; their offsets have no gap."""
    events: list[Event] = []
    async with aclosing(runs.attach(run_id, offset)) as attached:
        async for place, event in attached:
            assert place == offset + len(events)
            events.append(event)
    return events


async def over(runs: Runs, run_id: str) -> RunStatus:
    async def is_over() -> bool:
        return (await runs.status(run_id)).is_over

    await until(is_over)
    return await runs.status(run_id)


async def reached(log: RunLog, run_id: str, end: int) -> None:
    """Waits until so many events are stored."""

    async def is_there() -> bool:
        return (await log.status([run_id]))[run_id].end >= end

    await until(is_there)


@tool
def weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


async def test_a_run_is_told_as_it_was(url: str) -> None:
    answers = [says("Let me see.", call("weather", city="Oslo"), usage=3), says("Rain.", usage=4)]
    a, _ = agent(*answers, tools=[weather])
    async with open_log(url) as log, Runs(log) as runs:
        run_id = await runs.start(a, "hi", thread_id="t")
        told = await read(runs, run_id)
        assert told[0] == RunStarted(run_id, "t")
        assert isinstance(told[-1], RunFinished)
        assert await runs.messages(run_id) == tuple(fold(told))
        assert [message.text for message in fold(told)] == ["hi", "Let me see.", "", "Rain."]
        status = await runs.status(run_id)
        assert (status.state, status.end, status.thread_id) == ("success", len(told), "t")
        assert await runs.list(thread_id="t") == [status]
        assert await runs.list(thread_id="u") == []
    async with open_log(url) as log, Runs(log) as runs:
        if not url.startswith("memory:"):
            assert await read(runs, run_id) == told


async def test_a_request_says_all_of_it(url: str) -> None:
    a, script = agent(says("A"))
    async with open_log(url) as log, Runs(log) as runs:
        request = RunRequest((Message.user("hi"),), thread_id="t", run_id="mine")
        assert await runs.start(a, request) == "mine"
        assert (await over(runs, "mine")).thread_id == "t"
    assert [message.text for message in script.requests[0].messages] == ["hi"]


async def test_a_run_goes_on_when_its_readers_leave(url: str) -> None:
    gate = asyncio.Semaphore(0)
    a, model = speaker(20, gate)
    async with open_log(url) as log, Runs(log) as runs:
        run_id = await runs.start(a, "hi")
        gate.release()
        async with aclosing(runs.attach(run_id)) as attached:
            async for _, event in attached:
                if isinstance(event, PartDelta) and event.delta == "0 ":
                    break
        for _ in range(19):
            gate.release()
        assert (await over(runs, run_id)).state == "success"
        assert (await runs.messages(run_id))[-1].text == model.text


async def test_or_ends_with_its_reader_by_policy(url: str) -> None:
    a, model = speaker(20, asyncio.Semaphore(1))
    async with open_log(url) as log, Runs(log) as runs:
        run_id = await runs.start(a, "hi")
        async with aclosing(runs.attach(run_id, cancel_on_leave=True)) as attached:
            async for _, event in attached:
                if isinstance(event, PartDelta) and event.delta == "0 ":
                    break
        assert (await over(runs, run_id)).state == "cancelled"
        assert (await runs.messages(run_id))[-1].text == "0 "
        assert await read(runs, run_id)
    assert model.ended == 1


async def test_what_a_tool_emits_is_read_before_the_tool_goes_on(url: str) -> None:
    """It waits for its reader: were it told when the tools are done, nobody would ever go on."""
    seen = asyncio.Event()

    @tool
    async def work(context: ToolContext[Any]) -> str:
        """Works."""
        await context.progress(1, 2, "half")
        await seen.wait()
        return "whole"

    a, _ = agent(says(call("work")), says("Done."), tools=[work])
    async with open_log(url) as log, Runs(log, **QUICK) as runs:
        run_id = await runs.start(a, "hi")
        async with aclosing(runs.attach(run_id)) as attached:
            events = [
                event
                async for _, event in attached
                if not (isinstance(event, Custom) and event.name == PROGRESS) or not seen.set()
            ]
    results = [part for message in fold(events) for part in message.tool_results]
    assert [part.result for part in results] == ["whole"]
    assert [event.name for event in events if isinstance(event, Custom)] == [CALLS_BEGUN, PROGRESS]


async def test_ten_readers_at_different_offsets_see_the_same(url: str) -> None:
    gate = asyncio.Semaphore(0)
    a, _ = speaker(600, gate)
    async with open_log(url) as log, Runs(log, **QUICK) as runs, Runs(log, **QUICK) as others:
        run_id = await runs.start(a, "hi")
        places = [0, 1, 2, 5, 50, 299, 300, 301, 550, 10_000]
        readers = [
            asyncio.create_task(read(each, run_id, place))
            for place in places
            for each in (runs, others)
        ]
        for _ in range(600):
            gate.release()
            await asyncio.sleep(0)
        told = await asyncio.gather(*readers)
        whole = await read(runs, run_id)
        assert [event.delta for event in whole if isinstance(event, PartDelta)][1:] == [
            f"{n} " for n in range(600)
        ]
        for number, seen in enumerate(told):
            assert seen == whole[places[number // 2] :]


async def test_a_slow_reader_slows_nobody_and_misses_nothing(url: str) -> None:
    a, model = speaker(5000)
    async with open_log(url) as log, Runs(log) as runs:
        run_id = await runs.start(a, "hi")
        async with aclosing(runs.attach(run_id)) as slow:
            seen = [await anext(slow)]
            quick = await read(runs, run_id)
            assert (await over(runs, run_id)).state == "success"
            seen += [each async for each in slow]
        assert [event for _, event in seen] == quick
        assert fold(quick)[-1].text == model.text


async def test_a_tail_holds_so_many_events_and_no_more() -> None:
    tail = RunTail()
    for number in range(100):
        tail.extend([PartDelta("m", 0, f"{number}.{place}") for place in range(100)])
    assert tail.end == 10_000
    assert tail.read_page(0) is None
    assert tail.read_page(10_000) == []
    page = tail.read_page(9_000)
    assert page is not None
    assert page[0] == PartDelta("m", 0, "90.0")
    assert len(page) == 256
    assert sum(tail.read_page(offset) is not None for offset in range(10_000)) < 2_100


async def test_a_step_without_events_ends_nothing() -> None:
    """Most chunks of a model tell nothing; what waits for the next event must not take one for the
    end."""

    class Source:
        id = "r"

        async def read(self, put: Any) -> None:
            for events in ([RunStarted("r")], [], [RunFinished("r", "success", Usage(), [])]):
                await put(events)
                await asyncio.sleep(0.05)  # the log waits for more

        def cancel(self, driver: Any) -> None:
            driver.end_with(RunError(DragomanError("cancelled"), "r"))

        async def handle_end(self, last: Any) -> None:
            pass

    async with open_log("memory:") as log, Runs(log) as runs:
        await runs.record(Source())
        events = [event async for _, event in runs.attach("r")]
    assert [type(event) for event in events] == [RunStarted, RunFinished]


async def test_a_run_is_stopped_here_or_from_elsewhere(url: str) -> None:
    async with open_log(url) as log, Runs(log, **QUICK) as runs, Runs(log, **QUICK) as others:
        for stopper in (runs, others):
            a, model = speaker(20, asyncio.Semaphore(3))
            run_id = await runs.start(a, "hi")
            await reached(log, run_id, 8)
            await stopper.cancel(run_id)
            told = await read(stopper, run_id)
            assert isinstance(told[-1], RunFinished)
            assert told[-1].outcome == "cancelled"
            assert fold(told)[-1].text == "0 1 2 "
            assert model.ended == 1
            assert (await stopper.status(run_id)).state == "cancelled"
            await stopper.cancel(run_id)
            assert (await stopper.status(run_id)).end == len(told)


async def test_there_must_be_such_a_run(url: str) -> None:
    async with open_log(url) as log, Runs(log) as runs:
        for refused in (
            runs.status("x"),
            runs.cancel("x"),
            runs.messages("x"),
            anext(runs.attach("x")),
        ):
            with pytest.raises(RunLogError, match="no run 'x'"):
                await refused
        with pytest.raises(RunLogError, match="no run 'x'"):
            await anext(runs.attach("x", cancel_on_leave=True))
        with pytest.raises(ValueError, match="from_offset must be 0 or more, not -1"):
            await anext(runs.attach("x", -1))


async def test_a_run_is_driven_once(url: str) -> None:
    a, script = agent(says("A"))
    async with open_log(url) as log, Runs(log) as runs, Runs(log) as others:
        await runs.start(a, "hi", run_id="mine")
        with pytest.raises(LeaseLostError, match="there is a run mine already"):
            await others.start(a, "hi", run_id="mine")
        await over(runs, "mine")
        with pytest.raises(RunLogError, match="run mine is over"):
            await runs.start(a, "hi", run_id="mine")
    assert len(script.requests) == 1


async def test_a_failure_is_in_the_log_with_what_there_was(url: str) -> None:
    answers = [
        says("Let me see.", call("weather", city="Oslo")),
        RateLimitError("slow", status=429, retry_after=2.5),
    ]
    a, _ = agent(*answers, tools=[weather])
    async with open_log(url) as log, Runs(log) as runs:
        run_id = await runs.start(a, "hi")
        assert (await over(runs, run_id)).state == "error"
        last = (await read(runs, run_id))[-1]
        assert isinstance(last, RunError)
        assert isinstance(last.error, RateLimitError)
        assert (last.error.retry_after, last.run_id) == (2.5, run_id)
        assert last.error.result is not None
        assert last.error.result.messages == await runs.messages(run_id)


async def test_what_no_log_can_hold_ends_the_run_and_is_told(url: str) -> None:
    class Odd:
        async def __call__(self, request: ModelRequest, _next: Any) -> AsyncIterator[Event]:
            yield MessageStarted("m", Role.MODEL)
            yield PartStarted("m", 0, OpenText())
            yield PartDelta("m", 0, "half")
            yield PartDelta("m", 0, "\ud83d")
            await asyncio.sleep(60)

    async with open_log(url) as log, Runs(log) as runs:
        run_id = await runs.start(Agent(PROVIDER, middleware=[Odd()]), "hi")
        told = await read(runs, run_id)
        assert isinstance(told[-1], RunError)
        assert "an event cannot be stored as JSON" in told[-1].error.message
        assert [message.text for message in fold(told)] == ["hi", "half"]
        assert (await runs.status(run_id)).state == "error"


def count_threads() -> int:
    """Number of threads but those of the event loop's executor, which end with the loop."""
    return sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())


@pytest.mark.slow
async def test_leaving_the_block_ends_what_it_began_and_leaves_nothing(url: str) -> None:
    gc.collect()
    before = (len(asyncio.all_tasks()), count_threads())
    a, model = speaker(20, asyncio.Semaphore(3))
    async with open_log(url) as log:
        async with Runs(log) as runs:
            ids = [await runs.start(a, "hi") for _ in range(3)]
            for run_id in ids:
                await reached(log, run_id, 6)
        assert [status.state for status in (await log.status(ids)).values()] == ["cancelled"] * 3
        with pytest.raises(RunLogError, match="Runs is not open"):
            await runs.start(a, "hi")
    await asyncio.sleep(0.05)
    assert model.ended == 3
    assert (len(asyncio.all_tasks()), count_threads()) == before
    if not url.startswith("memory:"):
        with pytest.raises(RunLogError, match="log is closed"):
            await log.lease("r", "me", 1)
        with pytest.raises(RunLogError, match="log is closed"):
            await log.read("r")


async def left(log: RunLog, run_id: str) -> list[Event]:
    """A run whose process is gone, in the middle of a message behind a call."""
    asked = Message.user("hi").replace(id="u")
    calls = says("Let me see.", call("weather", city="Oslo")).replace(id="m1")
    events: list[Event] = [
        RunStarted(run_id),
        *unfold([asked, calls]),
        StepStarted("model call 2"),
        MessageStarted("empty", Role.MODEL),
        MessageStarted("m2", Role.MODEL),
        PartStarted("m2", 0, OpenText()),
        PartDelta("m2", 0, "It is "),
    ]
    lease = await log.lease(run_id, "gone", 1000)
    await log.append(run_id, 0, events, lease=lease)
    await log.lease(run_id, "gone", 0, token=lease.token)
    return events


async def test_a_run_whose_process_is_gone_is_ended_once_and_can_be_gone_on_from(url: str) -> None:
    async with open_log(url) as log:
        events = await left(log, "r")
        async with Runs(log, **QUICK) as one, Runs(log, **QUICK) as two:
            seen = await asyncio.gather(read(one, "r"), read(two, "r"))
            assert [*map(event_to_json, seen[0])] == [*map(event_to_json, seen[1])]
            told = seen[0]
            assert told[: len(events)] == events
            assert [type(event).__name__ for event in told[len(events) :]] == [
                "MessageDropped", "PartFinished", "MessageFinished", "StepFinished", "RunError",
            ]  # fmt: skip
            assert isinstance(told[-1], RunError)
            assert isinstance(told[-1].error, RunInterruptedError)
            assert "(gone)" in told[-1].error.message
            assert (await two.status("r")).state == "interrupted"
            messages = await one.messages("r")
            assert [message.text for message in messages] == ["hi", "Let me see.", "", "It is "]
            (result,) = messages[2].content
            assert isinstance(result, ToolResultPart)
            assert result.is_error
            a, script = agent(says("Rain."))
            again = await one.start(a, "go on", history=messages)
            assert (await over(one, again)).state == "success"
            assert [m.text for m in script.requests[0].messages] == [
                *[m.text for m in messages],
                "go on",
            ]


async def test_one_that_lost_its_lease_writes_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a SIGSTOP: the clock has gone on, the process has not."""
    clock = [0.0]
    monkeypatch.setattr(memory_log, "monotonic", lambda: clock[0])
    gate = asyncio.Semaphore(2)
    a, model = speaker(20, gate)
    async with open_log("memory:") as log:
        async with Runs(log, lease_seconds=100) as runs:
            run_id = await runs.start(a, "hi")
            await reached(log, run_id, 7)
            end = (await log.status([run_id]))[run_id].end
            clock[0] = 101.0
            gate.release()
            await until(lambda: asyncio.sleep(0, bool(model.ended)))
            status = (await log.status([run_id]))[run_id]
            assert (status.end, status.state, status.driven) == (end, "running", False)
        async with Runs(log, **QUICK) as others:
            assert (await over(others, run_id)).state == "interrupted"
            assert (await others.messages(run_id))[-1].text == "0 1 "


async def test_a_reader_hears_of_a_run_that_was_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(memory_log, "monotonic", lambda: clock[0])
    gate = asyncio.Semaphore(2)
    a, _ = speaker(20, gate)
    async with open_log("memory:") as log, Runs(log, lease_seconds=100, poll_seconds=0.01) as runs:
        run_id = await runs.start(a, "hi")
        reader = asyncio.create_task(read(runs, run_id))
        await reached(log, run_id, 7)
        clock[0] = 101.0
        gate.release()
        told = await reader
        assert isinstance(told[-1], RunError)
        assert isinstance(told[-1].error, RunInterruptedError)


async def test_who_reads_elsewhere_is_told_when_the_block_is_left(url: str) -> None:
    a, _ = speaker(20, asyncio.Semaphore(3))
    async with open_log(url) as log, Runs(log, **QUICK) as runs:
        run_id = await runs.start(a, "hi")
        async with Runs(log, **QUICK) as others:
            reader = asyncio.create_task(read(others, run_id))
            await reached(log, run_id, 8)
            for _ in range(5):
                await asyncio.sleep(0.01)
        with pytest.raises(RunLogError, match="Runs is not open"):
            await reader
        with pytest.raises(RunLogError, match="not open"):
            await read(Runs(log), run_id)
        await runs.cancel(run_id)
        await over(runs, run_id)
        assert await read(Runs(log), run_id) == await read(runs, run_id)


async def test_a_log_that_fails_for_a_while_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    a, _ = speaker(3, gate := asyncio.Semaphore(0))
    async with open_log("memory:") as log, Runs(log, **QUICK) as runs, Runs(log, **QUICK) as others:
        run_id = await runs.start(a, "hi")
        reader = asyncio.create_task(read(others, run_id))
        await reached(log, run_id, 6)
        asked, status = [0], log.status

        async def failing(run_ids: Any) -> Any:
            asked[0] += 1
            if asked[0] < 5:
                raise RunLogError("not now")
            return await status(run_ids)

        # All that comes before the gate is stored, and the reader waits for more.
        await asyncio.sleep(0.2)
        await until(lambda: asyncio.sleep(0, bool(others._keeper._waiting)))
        monkeypatch.setattr(log, "status", failing)
        await until(lambda: asyncio.sleep(0, asked[0] > 6))
        for _ in range(3):
            gate.release()
        assert isinstance((await reader)[-1], RunFinished)


async def test_code_of_others_that_fails_ends_the_run(url: str) -> None:
    def broken() -> Any:
        raise KeyError("no")

    a, _ = agent(says("A"), orchestrator=broken)
    b = Agent(PROVIDER, middleware=[lambda request, _next: None])  # type: ignore[arg-type, return-value]
    async with open_log(url) as log, Runs(log) as runs:
        with pytest.raises(KeyError):
            await runs.start(a, "hi")
        assert await runs.list() == []
        run_id = await runs.start(b, "hi")
        last = (await read(runs, run_id))[-1]
        assert isinstance(last, RunError)
        assert type(last.error) is DragomanError


async def test_custom_events_of_any_kind_pass(url: str) -> None:
    class Telling:
        async def __call__(self, request: ModelRequest, _next: Any) -> AsyncIterator[Event]:
            yield Custom("progress", {"done": 1})
            async for event in _next(request):
                yield event

    _, script = agent(says("A"))
    both = Agent(PROVIDER, middleware=[Telling(), script])
    async with open_log(url) as log, Runs(log) as runs:
        run_id = await runs.start(both, "hi")
        assert Custom("progress", {"done": 1}) in await read(runs, run_id)


async def test_an_answer_that_is_sent_twice_runs_nothing_twice() -> None:
    ran: list[str] = []

    @tool(requires_approval=True)
    def pay() -> str:
        ran.append("paid")
        return "paid"

    a, _ = agent(says(call("pay")), says("Done."), tools=[pay])
    async with Runs(open_log("memory:"), **QUICK) as runs:
        first = await a.send("Pay.", thread_id="t")
        answers = [each.approve() for each in first.pending]
        for _ in range(2):
            run_id = await runs.start(
                a, None, history=first.messages, resume=answers, thread_id="t"
            )
            last = fold(await read(runs, run_id))
        request = RunRequest(first.messages, thread_id="t", resume=tuple(answers))
        assert "outcome unknown" in str(fold(await read(runs, await runs.start(a, request)))[-2])
    assert ran == ["paid"]
    assert "outcome unknown" in last[0].tool_results[0].result["error"]


async def test_runs_of_agents_in_tools_are_in_the_log_and_read_from_any_offset(url: str) -> None:
    inner, _ = agent(says("Inside."), ids="inner-")

    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        return (await ctx.send(inner, "Say it.", run_id="inside")).output

    a, _ = agent(says(call("ask")), says("Outside."), tools=[ask])
    async with open_log(url) as log, Runs(log) as runs:
        run_id = await runs.start(a, "hi")
        told = await read(runs, run_id)
        assert [event.run_id for event in told if isinstance(event, RunFinished)] == [
            "inside",
            run_id,
        ]
        assert [message.text for message in fold(told, run_id="inside")] == ["Say it.", "Inside."]
        assert (await runs.messages(run_id))[-1].text == "Outside."
        for offset in range(len(told)):
            assert await read(runs, run_id, offset) == told[offset:]


def test_the_end_of_a_run_that_was_left_ends_the_runs_in_its_tools_first() -> None:
    inner = [RunStarted("inner", parent_run_id="outer"), StepStarted("one", run_id="inner")]
    innermost = [
        RunStarted("innermost", parent_run_id="inner"),
        StepStarted("one", run_id="innermost"),
    ]
    begun = [
        RunStarted("outer"),
        StepStarted("one"),
        *inner,
        RunStarted("over", parent_run_id="outer"),
    ]
    events: list[Event] = [*begun, RunFinished("over"), *innermost]
    closing = closing_events(events, RunError(RunInterruptedError("it is gone"), "outer"))
    steps = [event.run_id for event in closing if isinstance(event, StepFinished)]
    assert steps == ["innermost", "inner", None]
    assert [event.run_id for event in closing if isinstance(event, RunError)] == [
        "innermost",
        "inner",
        "outer",
    ]


async def test_the_messages_of_a_run_that_goes_on_hold_the_results_that_it_began_with(
    url: str,
) -> None:
    """They answer calls of the history before the run: without them these would be run again."""
    ran: list[str] = []

    @tool(requires_approval=True)
    def pay() -> str:
        ran.append("paid")
        return "paid"

    a, script = agent(says(call("pay")), says("Done."), tools=[pay])
    first = await a.send("Pay.")
    async with open_log(url) as log, Runs(log) as runs:
        run_id = await runs.start(
            a, None, history=first.messages, resume=[first.pending[0].approve()]
        )
        told = await read(runs, run_id)
        messages = await runs.messages(run_id)
    assert list(messages) == fold(told)
    assert messages[0].tool_results[0].result == "paid"
    result = await a.send("Thanks.", history=[*first.messages, *messages])
    assert not result.pending
    assert script.requests[-1].messages[2].tool_results[0].result == "paid"
    assert ran == ["paid"]


@pytest.mark.parametrize("ticks", range(6))
async def test_a_run_that_is_interrupted_and_stopped_at_once_leaves_nobody_waiting(
    ticks: int,
) -> None:
    """Whatever comes first: the end that is given it, or its being stopped."""

    async def slowly(request: Any, following: Any) -> AsyncIterator[Event]:
        async for event in following(request):
            yield event
            if isinstance(event, PartDelta):
                await asyncio.sleep(0.01)

    agent = Agent(ScriptedModel(lambda _: "word " * 5000), middleware=[slowly])
    async with asyncio.timeout(20), open_log("memory:") as log:
        async with Runs(log) as runs:
            run_id = await runs.start(agent, "Go on.")
            async with aclosing(runs.attach(run_id)) as attached:
                async for offset, _ in attached:
                    if offset > 20:
                        break
            runs.interrupt(OverloadedError("the server ends"))
            for _ in range(ticks):
                await asyncio.sleep(0)
        told: list[Event] = []
        while more := await log.read(run_id, len(told)):
            told += more
    assert isinstance(last := told[-1], RunError)
    assert last.error.message == "the server ends"
