"""What holds for any interleaving of writers, and for many runs at once."""

from __future__ import annotations

import asyncio
import base64
import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import RunLogError
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    RunError,
    RunFinished,
    event_from_json,
    event_to_json,
)
from dragoman.fold import fold, part_events, unfold
from dragoman.message import DataPart, Message, Role
from dragoman.runs import Lease, RunLog, Runs, memory_log, open_log
from dragoman.runs.batch import pack_events, unpack_events
from dragoman.runs.closing import closing_events
from support import strategies as some
from support.runs import speaker

pytestmark = pytest.mark.anyio

OWNERS = ("a", "b", "c")
MOVES = st.one_of(
    st.tuples(st.just("take"), st.sampled_from(OWNERS), st.sampled_from([0, 5, 50])),
    st.tuples(st.just("prolong"), st.sampled_from(OWNERS), st.sampled_from([0, 5, 50])),
    st.tuples(st.just("append"), st.sampled_from(OWNERS), st.integers(0, 3)),
    st.tuples(st.just("stale"), st.sampled_from(OWNERS), st.integers(-3, 3)),
    st.tuples(st.just("wait"), st.just("a"), st.sampled_from([1, 10, 100])),
)


class Model:
    """What a log must do, as plainly as it can be said: who may write, and what was written."""

    def __init__(self) -> None:
        self.written: list[Event] = []
        self.holder: Lease | None = None
        self.until = 0.0
        self.leases: dict[str, Lease] = {}
        self.tokens: set[int] = set()

    def holds(self, owner: str, now: float) -> bool:
        return (
            self.holder is not None and self.leases.get(owner) == self.holder and self.until > now
        )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    time = [0.0]
    monkeypatch.setattr(memory_log, "monotonic", lambda: time[0])
    return time


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, max_size=40))
def test_who_holds_the_lease_writes_and_nobody_else(
    moves: list[tuple[str, str, int]], clock: list[float]
) -> None:
    clock[0] = 1.0
    asyncio.run(play(moves, clock))


async def play(moves: list[tuple[str, str, int]], clock: list[float]) -> None:
    log, model = open_log("memory:"), Model()
    for number, (move, owner, amount) in enumerate(moves):
        now, held = clock[0], model.holds(owner, clock[0])
        if move == "wait":
            clock[0] += amount
        elif move == "take":
            free = model.holder is None or model.until <= now
            lease = await attempt(log.lease("r", owner, amount))
            assert (lease is not None) == free
            if lease is not None:
                assert lease.token not in model.tokens
                model.tokens.add(lease.token)
                model.holder = model.leases[owner] = lease
                model.until = now + amount
        elif owner in model.leases and move == "prolong":
            lease = model.leases[owner]
            assert (
                await attempt(log.lease("r", owner, amount, token=lease.token)) is not None
            ) == held
            if held:
                model.until = now + amount
        elif owner in model.leases:
            offset = len(model.written) + (amount if move == "stale" else 0)
            events: list[Event] = [
                PartDelta("m", 0, f"{number}.{place}")
                for place in range(amount if move == "append" else 1)
            ]
            stored = await attempt(log.append("r", offset, events, lease=model.leases[owner]))
            assert (stored is not None) == (held and offset == len(model.written))
            if stored is not None:
                model.written += events
                assert stored == len(model.written)
    assert await everything(log) == model.written


async def attempt(work: object) -> object:
    try:
        return await work  # type: ignore[misc]
    except RunLogError:
        return None


async def everything(log: RunLog, run_id: str = "r") -> list[Event]:
    events: list[Event] = []
    while page := await log.read(run_id, len(events)):
        events += page
    return events


async def test_writers_at_once_leave_one_order_without_gaps(shared_url: str) -> None:
    """Twenty writers of one lease race for each offset: each is written once, by one of them."""
    async with open_log(shared_url) as log:
        lease = await log.lease("r", "me", 1000)
        won: list[Event] = []
        for offset in range(20):
            told: list[Event] = [PartDelta("m", 0, f"{offset}.{writer}") for writer in range(20)]
            ends = await asyncio.gather(
                *[attempt(log.append("r", offset, [each], lease=lease)) for each in told]
            )
            assert sorted(end is not None for end in ends) == [False] * 19 + [True]
            won.append(next(each for each, end in zip(told, ends, strict=True) if end is not None))
        assert await everything(log) == won


@settings(max_examples=40)
@given(some.streams(), st.data())
@pytest.mark.slow
def test_a_run_cut_anywhere_ends_with_what_it_had_told(
    told: tuple[list[Message], list[Event]], data: st.DataObject
) -> None:
    cut = told[1][: data.draw(st.integers(0, len(told[1])))]
    whole = [*cut, *closing_events(cut, RunError(RunLogError("gone"), "r"))]
    assert closing_events(whole[:-1], RunError(RunLogError("gone"), "r"))[:-1] == []
    said = [
        [message.content for message in fold(events) if message.content] for events in (cut, whole)
    ]
    assert said[0] == said[1]


@given(some.histories)
def test_rows_hold_events_as_they_were(history: list[Message]) -> None:
    events = unfold(history)
    rows = pack_events(events)
    assert [event for _, data in rows for event in unpack_events(data)] == events
    assert sum(count for count, _ in rows) == len(events)
    assert [event_from_json(event_to_json(event)) for event in events] == events


async def test_a_row_has_the_bytes_of_a_file_once(shared_url: str) -> None:
    image = DataPart(bytes(range(256)) * 1024, "image/png")
    events = [MessageStarted("m", Role.MODEL), *part_events("m", 0, image)]
    end = events[-1]
    assert isinstance(end, PartFinished)
    # What is no repetition stays as it is.
    other = msgspec.structs.replace(end, index=1)
    changed = msgspec.structs.replace(end, part=DataPart(b"other", "image/png"))
    events += [end, other, *part_events("m", 2, image)[:-1], changed, MessageFinished("m")]
    rows = pack_events(events)
    assert [event for _, data in rows for event in unpack_events(data)] == events
    once = len(base64.b64encode(image.data))
    assert sum(len(data) for _, data in rows) < 4 * once + 4096
    assert sum(len(data) for _, data in pack_events(part_events("m", 0, image))) < once + 1024
    async with open_log(shared_url) as log:
        lease = await log.lease("r", "me", 1000)
        await log.append("r", 0, events, lease=lease)
        for offset in range(len(events)):
            page = await log.read("r", offset)
            assert page == events[offset : offset + len(page)]
            assert page


async def test_many_runs_are_one_commit_at_a_time(tmp_path: Path) -> None:
    """However many runs there are, a process commits once an interval: far fewer commits than
    appends."""
    from dragoman.runs.sql_log import SqlLog

    log = SqlLog(f"sqlite:///{tmp_path}/runs.db")
    async with log:
        leases = await asyncio.gather(
            *[log.lease(f"r{number}", "me", 1000) for number in range(100)]
        )
        before = log.commits
        for offset in range(3):
            told: list[Event] = [PartDelta("m", 0, str(offset))]
            await asyncio.gather(
                *[log.append(lease.run_id, offset, told, lease=lease) for lease in leases]
            )
        assert log.commits - before <= 9


RUNS, READERS, WORDS = 200, 5, 50


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_two_hundred_runs_with_five_readers_each(
    shared_url: str, record_property: object
) -> None:
    gate = asyncio.Semaphore(0)
    a, _ = speaker(WORDS, gate)
    async with open_log(shared_url) as log, Runs(log) as runs:
        ids = await asyncio.gather(*[runs.start(a, "hi") for _ in range(RUNS)])

        async def read(run_id: str, offset: int) -> list[str]:
            words: list[str] = []
            place = offset
            async with aclosing(runs.attach(run_id, offset)) as events:
                async for number, event in events:
                    assert number == place
                    place += 1
                    if isinstance(event, PartDelta):
                        words.append(str(event.delta))
                    last = event
            assert isinstance(last, RunFinished)
            return words

        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        readers = [
            asyncio.create_task(read(run_id, offset))
            for run_id in ids
            for offset in (0, 0, 0, 0, 6)
        ]
        await asyncio.sleep(0.5)
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / len(readers)
        tracemalloc.stop()
        for _ in range(WORDS):
            for _ in range(RUNS):
                gate.release()
            await asyncio.sleep(0.005)
        for number, words in enumerate(await asyncio.gather(*readers)):
            assert words[number % READERS != 4 :] == [f"{word} " for word in range(WORDS)]
        record_property("bytes_per_reader", each)  # type: ignore[operator]
        print(f"bytes per reader: {each:.0f}")
        assert each < 20_000
