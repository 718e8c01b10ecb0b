"""The runs of a queue, as an engine that calls its workers has them driven."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.runs import Limit
from dragoman.runs.called_queue import CalledQueue
from support.until import until

pytestmark = pytest.mark.anyio


class Drives:
    """Drives runs for a time, and counts."""

    def __init__(self, seconds: float = 0.0, again: frozenset[str] = frozenset()) -> None:
        self.seconds, self.again = seconds, again
        self.running = self.peak = 0
        self.begun: list[str] = []
        self.handed_over: list[str] = []

    async def __call__(self, run_id: str) -> bool:
        self.begun.append(run_id)
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.handed_over.append(run_id)
            raise
        finally:
            self.running -= 1
        return run_id in self.again


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=12),
    st.integers(1, 3),
)
def test_a_limit_holds_whatever_calls_come(calls: list[tuple[str, bool]], most: int) -> None:
    async def main() -> None:
        drives = Drives(0.001)
        queue = CalledQueue(drives, Limit(runs=most), 10)
        tasks = [asyncio.create_task(queue.call(run_id)) for run_id, _ in calls]
        for task, (_, is_cut) in zip(tasks, calls, strict=True):
            # A caller that goes away takes no run with it.
            if is_cut:
                task.cancel()
        await asyncio.wait(tasks)
        await until(lambda: not drives.running)
        assert [task.result() for task in tasks if not task.cancelled()] == [False] * sum(
            not task.cancelled() for task in tasks
        )
        assert drives.peak <= most
        assert len(drives.begun) == len({*drives.begun})

    asyncio.run(main())


async def test_a_run_goes_on_between_calls() -> None:
    drives = Drives(0.1)
    queue = CalledQueue(drives, Limit(), 0.03)
    answers = [await queue.call("r") for _ in range(3)]
    assert answers[:2] == [True, True]
    await asyncio.sleep(0.1)
    assert drives.begun == ["r"]
    assert await queue.call("r") is True  # it is over here: the engine asks once more
    assert drives.begun == ["r", "r"]
    await queue.stop()


async def test_a_call_that_finds_no_place_leaves_the_run_to_others() -> None:
    drives = Drives(10)
    queue = CalledQueue(drives, Limit(runs=1), 0.02)
    assert [await queue.call(run_id) for run_id in "abc"] == [True] * 3
    assert drives.begun == ["a"]
    await queue.stop()
    assert (drives.begun, drives.handed_over) == (["a"], ["a"])


async def test_what_waits_is_answered_when_the_worker_stops() -> None:
    drives = Drives(10)
    queue = CalledQueue(drives, Limit(runs=2, per_second=1000), 10)
    calls = [asyncio.create_task(queue.call(run_id)) for run_id in "abcd"]
    await until(lambda: drives.running == 2)
    await queue.stop()
    assert await asyncio.gather(*calls) == [True] * 4
    assert await queue.call("e") is True
    assert sorted(drives.handed_over) == sorted(drives.begun) == ["a", "b"]


async def test_a_rate_counts_what_was_driven() -> None:
    drives = Drives(again=frozenset({"a", "b", "c"}))
    queue = CalledQueue(drives, Limit(per_second=20), 10)
    started = monotonic()
    # Another worker drives these: the rate is not used up by looking at them.
    assert [await queue.call(run_id) for run_id in "abc"] == [True] * 3
    assert monotonic() - started < 0.04
    assert [await queue.call(run_id) for run_id in "defg"] == [False] * 4
    assert monotonic() - started > 0.14


async def test_an_error_reaches_the_engine() -> None:
    async def drive(_run_id: str) -> bool:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        await CalledQueue(drive, Limit(), 10).call("r")
