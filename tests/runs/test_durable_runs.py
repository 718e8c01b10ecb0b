"""Durable runs as their users see them: enqueued anywhere, driven by whoever has the agent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, Limits, Message, RunRequest, ToolContext, tool
from dragoman.errors import (
    InvalidRequestError,
    LeaseLostError,
    LimitReachedError,
    RunLogError,
    SettingsError,
)
from dragoman.event import Event, MessageDropped, RunError, RunFinished, is_calls_begun
from dragoman.runs import Limit, RunLog, Runs, open_log
from dragoman.runs.durable import MOST_LOST, make_request
from dragoman.runs.memory_log import MemoryLog
from dragoman.runs.requests import request_from_json, request_to_json
from support.durable import (
    PLAN,
    RUN,
    Acts,
    Follower,
    begun,
    call,
    check_laws,
    dead_log,
    durable_agent,
    expire,
    outcome_unknown,
)
from support.model import PROVIDER, agent, says
from support.runs import speaker, until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

QUICK: dict[str, Any] = {"lease_seconds": 30.0, "poll_seconds": 0.01}


async def read(runs: Runs, run_id: str = RUN) -> list[Event]:
    return [event async for _, event in runs.attach(run_id)]


async def test_a_run_is_enqueued_once_and_driven_by_a_worker(url: str) -> None:
    acts = Acts()
    async with (
        open_log(url) as log,
        Runs(log, agents={"a": durable_agent(acts)[0]}, **QUICK) as runs,
    ):
        assert await runs.enqueue("a", "Do it.", run_id=RUN, thread_id="t") == RUN
        assert await runs.enqueue("a", "Something else.", run_id=RUN) == RUN
        status = await runs.status(RUN)
        assert (status.state, status.agent, status.queue) == ("queued", "a", "default")
        assert (status.thread_id, status.is_over, status.end) == ("t", False, 0)
        assert [run.run_id for run in await runs.list(state="queued")] == [RUN]
        reader = asyncio.create_task(read(runs))
        worker = asyncio.create_task(runs.work())
        result = await runs.result(RUN, timeout=10)
        assert result.output == "I look and write.\nAnd once more.\nNow all of it is done."
        assert result.messages[0].text == "Do it."
        assert result.usage is not None
        assert (result.usage.total_tokens, len(result.calls), result.calls[0].run_id) == (
            33,
            3,
            RUN,
        )
        events = await reader
        assert [*check_laws(events)] == [*result.messages]
        assert sorted(acts.done) == ["l1", "l2", "w1", "w2", "w3"]
        worker.cancel()
        assert await runs.drive(RUN) is False
        assert await runs.drive("nobody") is False


async def test_a_request_is_stored_whole(url: str) -> None:
    request = RunRequest(
        (Message.user("one"), Message.model("two"), Message.user("three")),
        "t",
        resource_id="u",
        context=({"a": 1},),
        state={"b": [1]},
        metadata={"c": "d"},
    )
    made = make_request(request, None, None, None)
    assert all(message.id for message in made.messages[2:])
    async with open_log(url) as log:
        how: dict[str, Any] = {"thread_id": "t", "queue": "q", "owner": "me", "priority": 3}
        assert await log.enqueue("r1", "a", made, **how) is True
        assert await log.enqueue("r1", "b", made, thread_id="x", queue="p") is False
        assert await log.request("r1") == made
        status = (await log.status(["r1"]))["r1"]
        assert (status.agent, status.queue, status.owner, status.lost) == ("a", "q", None, 0)
        assert (status.caller, status.priority) == ("me", 3)
        assert [run.run_id for run in await log.runs(queue="q")] == ["r1"]
        assert await log.runs(queue="default") == []
        assert [run.run_id for run in await log.runs(agent="a")] == ["r1"]
        assert await log.runs(agent="b") == []
        with pytest.raises(RunLogError, match="has no request"):
            await log.request("r2")
        # An enqueued run is not to be started under its id.
        with pytest.raises(LeaseLostError, match="attach to it"):
            await log.lease("r1", "x", 30, token=0)
        # The process that drives a run does not become whose run it is.
        await log.lease("r1", "worker", 30)
        status = (await log.status(["r1"]))["r1"]
        assert (status.owner, status.caller, status.priority) == ("worker", "me", 3)


async def test_lower_priorities_come_first_in_a_queue(url: str) -> None:
    request = make_request("hi", None, None, None)
    async with open_log(url) as log:
        for number, priority in enumerate((5, 0, -1, 0)):
            await log.enqueue(f"r{number}", "a", request, priority=priority)
            await asyncio.sleep(0.002)
        listed = await log.runs(state="queued", oldest_first=True, most=3)
        assert [run.run_id for run in listed] == ["r2", "r1", "r3"]
        assert [run.run_id for run in await log.runs(most=2)] == ["r3", "r2"]


async def test_the_oldest_run_of_a_queue_is_listed_first(url: str) -> None:
    request = make_request("hi", None, None, None)
    async with open_log(url) as log:
        for number in range(5):
            await log.enqueue(f"r{number}", "a", request)
            await asyncio.sleep(0.002)
        listed = await log.runs(state="queued", driven=False, oldest_first=True, most=3)
        assert [run.run_id for run in listed] == ["r0", "r1", "r2"]
        lease = await log.lease("r0", "me", 30)
        assert (await log.status(["r0"]))["r0"].state == "running"
        assert [run.run_id for run in await log.runs(state="running", driven=False)] == []
        # A lease that is given back counts as no loss, one that expires does.
        await log.lease("r0", "me", 0, token=lease.token)
        assert [run.run_id for run in await log.runs(state="running", driven=False)] == ["r0"]
        lease = await log.lease("r0", "other", 0.01)
        assert (lease.token, (await log.status(["r0"]))["r0"].lost) == (2, 0)
        await asyncio.sleep(0.05)
        await log.lease("r0", "third", 30)
        assert (await log.status(["r0"]))["r0"].lost == 1
        with pytest.raises(LeaseLostError):
            await log.append("r0", 0, [RunFinished("r0")], lease=lease)


def test_a_request_of_a_newer_release_is_refused() -> None:
    text = request_to_json(make_request("hi", "r", None, None))
    assert request_from_json("r", text).run_id == "r"
    for data, words in (
        (text.replace('"version":1', '"version":2'), "newer release"),
        ("{", "cannot be read"),
        ('{"version":1}', "cannot be read"),
    ):
        with pytest.raises(RunLogError, match=words):
            request_from_json("r", data)


async def test_a_run_of_a_newer_release_stays_in_the_queue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with MemoryLog() as log, Runs(log, agents={"a": agent(says("A"))[0]}, **QUICK) as runs:
        await runs.enqueue("a", "hi", run_id=RUN)
        log._requests[RUN] = '{"version":9,"request":{}}'
        assert await runs.drive(RUN) is True
        assert (await runs.status(RUN)).state == "queued"
        assert await runs.drive(RUN) is True
        # It is told once, however often the run is looked at.
        assert caplog.text.count("newer release") == 1


async def test_a_worker_leaves_runs_of_agents_that_it_does_not_have(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with MemoryLog() as log, Runs(log, agents={"a": agent(says("A"))[0]}, **QUICK) as runs:
        for number in range(150):
            await runs.enqueue("b", "hi", run_id=f"b{number}")
        await runs.enqueue("a", "hi", run_id=RUN)
        worker = asyncio.create_task(runs.work())
        assert (await runs.result(RUN, timeout=10)).output == "A"
        assert (await runs.status("b0")).state == "queued"
        assert caplog.text.count("its agent 'b' is not here") == 1
        worker.cancel()
    async with MemoryLog() as log, Runs(log, **QUICK) as runs:
        with pytest.raises(SettingsError, match="a worker needs agents"):
            await runs.work()


def test_a_limit_that_lets_nothing_run_is_refused() -> None:
    for wrong in ({"runs": 0}, {"per_second": 0}, {"per_second": -1.0}):
        with pytest.raises(SettingsError):
            Limit(**wrong)  # type: ignore[arg-type]


async def test_only_one_of_two_processes_drives_a_run(url: str) -> None:
    gate = asyncio.Semaphore(0)
    a, model = speaker(3, gate)
    async with open_log(url) as log:
        async with (
            Runs(log, agents={"a": a}, **QUICK) as one,
            Runs(log, agents={"a": a}, **QUICK) as other,
        ):
            await one.enqueue("a", "hi", run_id=RUN)
            driving = asyncio.create_task(one.drive(RUN))
            await until(lambda: has_events(log, 3))
            assert await other.drive(RUN) is True
            assert await one.drive(RUN) is True
            for _ in range(3):
                gate.release()
            assert await driving is False
            assert (await other.result(RUN)).output == model.text
        assert model.ended == 1


async def has_events(log: RunLog, count: int) -> bool:
    return (await log.status([RUN]))[RUN].end >= count


async def test_a_worker_that_stops_hands_its_runs_over(url: str) -> None:
    gate = asyncio.Semaphore(0)
    a, model = speaker(3, gate)
    async with open_log(url) as log, Runs(log, agents={"a": a}, **QUICK) as readers:
        await readers.enqueue("a", "hi", run_id=RUN)
        async with Runs(log, agents={"a": a}, **QUICK) as first:
            worker = asyncio.create_task(first.work())
            await until(lambda: has_events(log, 8))
            reader = asyncio.create_task(read(readers))
            gate.release()
            await until(lambda: has_events(log, 10))
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker
            status = await first.status(RUN)
            assert (status.state, status.driven) == ("running", False)
        assert model.ended == 1
        async with Runs(log, agents={"a": a}, **QUICK) as second:
            for _ in range(3):
                gate.release()
            assert await second.drive(RUN) is False
        events = await reader
        check_laws(events)
        assert (await readers.status(RUN)).lost == 0
        assert sum(isinstance(event, MessageDropped) for event in events) == 1
        assert isinstance(events[-1], RunFinished)
        assert events[-1].result == model.text


async def test_leaving_runs_hands_durable_runs_over(url: str) -> None:
    a, _ = speaker(3, asyncio.Semaphore(0))
    async with open_log(url) as log:
        async with Runs(log, agents={"a": a}, **QUICK) as runs:
            await runs.enqueue("a", "hi", run_id=RUN)
            driving = asyncio.create_task(runs.drive(RUN))
            await until(lambda: has_events(log, 3))
        assert await driving is True
        status = (await log.status([RUN]))[RUN]
        assert (status.state, status.driven) == ("running", False)


async def test_nobody_but_a_worker_ends_a_durable_run(url: str) -> None:
    async with open_log(url) as log, Runs(log, lease_seconds=0.05, poll_seconds=0.01) as runs:
        await runs.enqueue("a", "hi", run_id=RUN)
        await log.lease(RUN, "dead", 0.01)
        reader = asyncio.create_task(read(runs))
        await asyncio.sleep(0.3)
        assert (await runs.status(RUN)).state == "running"
        assert not reader.done()
        async with Runs(log, agents={"a": agent(says("A"))[0]}, **QUICK) as workers:
            assert await workers.drive(RUN) is False
        assert isinstance((await reader)[-1], RunFinished)


async def test_a_run_that_kills_its_processes_fails() -> None:
    request = make_request("Do it.", RUN, "t", None)
    for lost in (MOST_LOST - 1, MOST_LOST):
        a, model = durable_agent(Acts())
        async with MemoryLog() as log, Runs(log, agents={"a": a}, **QUICK) as runs:
            await dead_log(log, [], request, lost=lost)
            assert await runs.drive(RUN) is False
            status = await runs.status(RUN)
            assert status.lost == lost
            if lost < MOST_LOST:
                assert status.state == "success"
                continue
            assert status.state == "error"
            assert model.asked == 0
            with pytest.raises(RunLogError, match="5 processes ended"):
                await runs.result(RUN)


async def test_a_run_is_cancelled_before_and_after_a_process_has_it(url: str) -> None:
    a, model = speaker(3, asyncio.Semaphore(0))
    async with open_log(url) as log, Runs(log, agents={"a": a}, **QUICK) as runs:
        await runs.enqueue("a", "hi", run_id="q")
        await runs.cancel("q")
        assert (await runs.status("q")).state == "cancelled"
        assert (await runs.result("q")).output == ""
        # Its process died after the cancellation was posted.
        await runs.enqueue("a", "hi", run_id=RUN)
        await log.lease(RUN, "dead", 0.01)
        await runs.cancel(RUN)
        await asyncio.sleep(0.05)
        assert await runs.drive(RUN) is False
        assert (await runs.status(RUN)).state == "cancelled"
        assert model.ended == 0


async def test_limits_hold_over_all_processes() -> None:
    request = make_request("Do it.", RUN, "t", None)
    async with (
        MemoryLog() as log,
        Runs(log, agents={"a": durable_agent(Acts())[0]}, **QUICK) as runs,
    ):
        await runs.enqueue("a", request)
        await runs.drive(RUN)
        before = await read(runs)
    second = next(
        place for place, event in enumerate(before) if getattr(event, "name", "") == "model call 2"
    )
    for limits, words in (
        (Limits(model_calls=2), "2 model calls"),
        (Limits(tool_calls=4), "4 tool calls"),
        (Limits(total_tokens=20), "20 total tokens"),
    ):
        a, _ = durable_agent(Acts(), limits=limits)
        async with MemoryLog() as log, Runs(log, agents={"a": a}, **QUICK) as runs:
            await dead_log(log, before[: second + 4], request)
            await runs.drive(RUN)
            with pytest.raises(LimitReachedError, match=words):
                await runs.result(RUN)


async def test_an_agent_of_another_version_goes_on() -> None:
    """A tool that is gone is an error; a new system text is the agent's."""
    request = make_request("Do it.", RUN, "t", None)
    async with (
        MemoryLog() as log,
        Runs(log, agents={"a": durable_agent(Acts())[0]}, **QUICK) as runs,
    ):
        await runs.enqueue("a", request)
        await runs.drive(RUN)
        before = await read(runs)
    end = next(place for place, event in enumerate(before) if is_calls_begun(event))
    acts = Acts()
    a = Agent(
        PROVIDER,
        middleware=[Follower((*PLAN[:1], ("Enough.",)))],
        tools=[each for each in acts.tools() if each.name == "look"],
        system="Be new.",
    )
    async with MemoryLog() as log, Runs(log, agents={"a": a}, **QUICK) as runs:
        await dead_log(log, before[:end], request)
        await runs.drive(RUN)
        result = await runs.result(RUN)
        check_laws(await read(runs))
    parts = {part.id: part for part in result.messages[2].tool_results}
    assert parts["l1"].result == "did l1"
    assert parts["w1"].is_error
    assert "there is no tool named 'write'" in str(parts["w1"].result)
    assert result.output.endswith("Enough.")


async def test_what_is_wrong_with_a_request_ends_the_run() -> None:
    a, _ = agent(says("A"))

    async def broken(request: RunRequest) -> str:
        raise OSError("no database")

    async with MemoryLog() as log:
        async with Runs(log, agents={"a": a}, **QUICK) as runs:
            with pytest.raises(InvalidRequestError):
                await runs.enqueue("a", "")
            await runs.enqueue("a", RunRequest(), run_id="empty")
            assert await runs.drive("empty") is False
            with pytest.raises(InvalidRequestError, match="nothing to send"):
                await runs.result("empty")
        async with Runs(log, agents={"a": a}, deps=broken, **QUICK) as runs:
            await runs.enqueue("a", "hi", run_id=RUN)
            assert await runs.drive(RUN) is False
            assert isinstance((await read(runs))[-1], RunError)


async def test_deps_are_made_by_the_process_that_drives() -> None:
    @tool
    async def who(context: ToolContext[str]) -> str:
        """Tells who asks."""
        return context.deps

    async def deps(request: RunRequest) -> str:
        return f"deps of {request.resource_id}"

    a, _ = durable_agent(Acts(), ((call("who", "c"),), ("Done.",)), tools=[who])
    async with MemoryLog() as log, Runs(log, agents={"a": a}, deps=deps, **QUICK) as runs:
        await runs.enqueue("a", "hi", run_id=RUN, resource_id="u1")
        await runs.drive(RUN)
        result = await runs.result(RUN)
    assert result.messages[2].tool_results[0].result == "deps of u1"


async def test_a_process_that_lost_its_lease_begins_no_more_tools() -> None:
    """It stood still in the middle of a model call; meanwhile another has ended the run."""
    gate = asyncio.Semaphore(0)
    acts = Acts()
    held = asyncio.Event()

    async def hold(request: Any, next_: Any) -> Any:
        held.set()
        await gate.acquire()
        async for event in next_(request):
            yield event

    slow = Agent(PROVIDER, middleware=[hold, Follower(PLAN)], tools=acts.tools())
    others = Acts()
    async with (
        MemoryLog() as log,
        Runs(log, agents={"a": slow}, **QUICK) as zombie,
        Runs(log, agents={"a": durable_agent(others)[0]}, **QUICK) as successor,
    ):
        await zombie.enqueue("a", "Do it.", run_id=RUN)
        driving = asyncio.create_task(zombie.drive(RUN))
        await held.wait()
        expire(log)
        assert await successor.drive(RUN) is False
        events = await read(successor)
        for _ in range(10):
            gate.release()
        assert await driving is True
        assert await read(successor) == events
    assert acts.done == []
    assert outcome_unknown(check_laws(events)) == []
    assert sorted(others.done) == sorted(begun(events))
