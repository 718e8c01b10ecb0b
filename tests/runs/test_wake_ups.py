"""How often tasks wake on the way of an event from a run's source to its reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from dragoman.errors import DragomanError
from dragoman.event import Event, PartDelta, RunError, RunFinished, RunStarted
from dragoman.message import Usage
from dragoman.runs import Runs
from dragoman.runs.driver import PutEvents
from dragoman.runs.memory_log import MemoryLog
from dragoman.runs.tail import RunTail

pytestmark = pytest.mark.anyio

END = RunFinished("r", "success", Usage(), ())
MEGABYTE = 1024 * 1024


class Source:
    """Gives what a test gives it."""

    id = "r"

    def __init__(self, read: Callable[[PutEvents], Awaitable[None]]) -> None:
        self._read = read

    async def read(self, put: PutEvents) -> None:
        await self._read(put)

    def cancel(self, driver: Any) -> None:
        driver.end_with(RunError(DragomanError("cancelled"), "r"))

    async def handle_end(self, last: Any) -> None:
        pass


class OtherLog(MemoryLog):
    """A log of somebody else's, which waits before it stores."""

    async def append(self, *what: Any, **how: Any) -> int:
        await asyncio.sleep(0)
        return await super().append(*what, **how)


async def turns_until_read(log: MemoryLog, readers: int) -> list[int]:
    """Turns of the event loop from each of ten events to its last reader, who has read all before
    and waits."""
    given, counts = asyncio.Queue[Event | None](), list[int]()
    seen = [0] * readers

    async def read(put: PutEvents) -> None:
        await put([RunStarted("r")])
        while (event := await given.get()) is not None:
            await put([event])
            spread, turns = min(seen), 0
            while min(seen) == spread:
                turns += 1
                await asyncio.sleep(0)
            counts.append(turns)
        await put([END])

    async def attach(number: int) -> None:
        async with aclosing(runs.pages("r")) as pages:
            async for page in pages:
                seen[number] += len(page)

    async with Runs(log) as runs:
        await runs.record(Source(read))
        tasks = [asyncio.create_task(attach(number)) for number in range(readers)]
        for number in range(10):
            await asyncio.sleep(0.001)
            given.put_nowait(PartDelta("m", 0, str(number)))
        await asyncio.sleep(0.001)
        given.put_nowait(None)
        await asyncio.gather(*tasks)
    assert seen == [12] * readers
    return counts


@pytest.mark.parametrize("readers", [1, 3])
async def test_a_reader_that_waits_is_the_next_to_wake(readers: int) -> None:
    assert await turns_until_read(MemoryLog(), readers) == [1] * 10


async def test_a_log_that_may_wait_is_left_to_the_driver() -> None:
    assert min(await turns_until_read(OtherLog(), 1)) > 1


async def test_events_that_come_together_are_stored_together() -> None:
    async def read(put: PutEvents) -> None:
        await put([RunStarted("r")])
        for number in range(1000):
            await put([PartDelta("m", 0, str(number))])
            if number % 100 == 99:
                await asyncio.sleep(0.001)
        await put([END])

    log = MemoryLog()
    async with Runs(log) as runs:
        await runs.record(Source(read))
        async with aclosing(runs.attach("r")) as events:
            seen = [event async for _, event in events]
        offset, rows = 0, 0
        while page := await log.read("r", offset):
            offset, rows = offset + len(page), rows + 1
    assert [event.delta for event in seen if isinstance(event, PartDelta)] == [
        str(number) for number in range(1000)
    ]
    assert len(seen) == offset == 1002
    assert rows <= 25  # two of each hundred: the first, for which somebody waits, and the others


async def test_what_cannot_be_stored_at_once_ends_the_run_as_ever() -> None:
    async def read(put: PutEvents) -> None:
        await put([RunStarted("r")])
        await asyncio.sleep(0.001)
        await put([PartDelta("m", 0, "said"), PartDelta("m", 0, "more")])
        await asyncio.sleep(0.001)
        await put([PartDelta("m", 0, "last"), PartDelta("m", 0, object())])  # pyright: ignore[reportArgumentType]
        await asyncio.sleep(10)

    async with Runs(MemoryLog()) as runs:
        await runs.record(Source(read))
        async with aclosing(runs.attach("r")) as events:
            seen = [event async for _, event in events]
    assert [event.delta for event in seen if isinstance(event, PartDelta)] == [
        "said",
        "more",
        "last",
    ]
    assert isinstance(seen[-1], RunError)


async def test_one_reader_that_waits_and_one_that_is_far_behind_end_together() -> None:
    async def read(put: PutEvents) -> None:
        await put([RunStarted("r")])
        for _ in range(5):
            await asyncio.sleep(0.001)
            await put([PartDelta("m", 0, "x" * MEGABYTE)])
        await put([END])

    async def count(pages: AsyncGenerator[list[Event], None]) -> int:
        async with aclosing(pages):
            return sum([len(page) async for page in pages])

    async with Runs(MemoryLog()) as runs, asyncio.timeout(5):
        await runs.record(Source(read))
        waits = asyncio.create_task(count(runs.pages("r")))
        slow = runs.pages("r", paces=True)
        read_first = len(await anext(slow))
        await asyncio.sleep(0.1)
        assert not waits.done()  # the run waits for the one that keeps its pace
        assert read_first + await count(slow) == await waits == 7


async def test_a_tail_wakes_each_that_waits_and_none_that_is_gone() -> None:
    tail = RunTail()
    waiting = [asyncio.create_task(tail.wait_for_growth()) for _ in range(3)]
    await asyncio.sleep(0)
    assert tail.is_awaited
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    tail.extend([END])
    assert not tail.is_awaited
    await asyncio.gather(*waiting[1:])
    left = asyncio.create_task(tail.wait_for_growth())
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.wait([left])
    assert not tail.is_awaited
