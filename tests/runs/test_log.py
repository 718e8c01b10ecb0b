"""What every log of runs does, over memory, SQLite and Postgres."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from dragoman.errors import (
    HistoryError,
    LeaseLostError,
    RateLimitError,
    RunInterruptedError,
    RunLogError,
    SettingsError,
)
from dragoman.event import (
    Custom,
    Event,
    MessageFinished,
    MessageStarted,
    PartDelta,
    RunError,
    RunFinished,
    RunStarted,
)
from dragoman.message import Origin, Role, Usage
from dragoman.request import RunRequest
from dragoman.runs import RunLog, open_log
from dragoman.runs.batch import ROW_BYTES
from dragoman.runs.memory_log import MemoryLog

pytestmark = pytest.mark.anyio

LONG = 1000.0


def deltas(first: int, last: int) -> list[Event]:
    return [PartDelta("m", 0, str(number)) for number in range(first, last)]


async def everything(log: RunLog, run_id: str, offset: int = 0) -> list[Event]:
    events: list[Event] = []
    while page := await log.read(run_id, offset + len(events)):
        events += page
    return events


async def test_what_was_appended_is_read_from_any_offset(url: str) -> None:
    async with open_log(url) as log:
        lease = await log.lease("r", "me", LONG, token=0)
        assert (lease.run_id, lease.owner, lease.token) == ("r", "me", 1)
        assert await log.read("r") == []
        assert await log.append("r", 0, deltas(0, 3), lease=lease) == 3
        assert await log.append("r", 3, deltas(3, 10), lease=lease) == 10
        assert await log.append("r", 10, [], lease=lease) == 10
        for offset in range(12):
            assert await everything(log, "r", offset) == deltas(offset, 10)
        assert await log.read("other") == []


async def test_events_come_back_as_they_were(url: str) -> None:
    told: list[Event] = [
        PartDelta("m", 0, b"\0\xff"),
        Custom("\n", {"line\n": "\u2028"}),
        PartDelta("m", 0, "\0"),
    ]
    async with open_log(url) as log:
        await log.append("r", 0, told, lease=await log.lease("r", "me", LONG))
        assert await log.read("r") == told


async def test_rows_are_bounded_and_what_is_larger_has_one_of_its_own(url: str) -> None:
    told = [
        PartDelta("m", 0, "x" * size)
        for size in (10, ROW_BYTES // 2, ROW_BYTES // 2, 3 * ROW_BYTES, 1, 2) * 6
    ]
    async with open_log(url) as log:
        await log.append("r", 0, told, lease=await log.lease("r", "me", LONG))
        assert len(await log.read("r")) < len(told)
        assert await everything(log, "r") == told
        assert await everything(log, "r", 7) == told[7:]


async def test_an_append_elsewhere_than_at_the_end_is_refused_whole(url: str) -> None:
    async with open_log(url) as log:
        lease = await log.lease("r", "me", LONG)
        await log.append("r", 0, deltas(0, 2), lease=lease)
        for offset in (0, 1, 3):
            with pytest.raises(RunLogError, match=f"ends at 2, not at {offset}"):
                await log.append("r", offset, deltas(7, 9), lease=lease)
        assert await everything(log, "r") == deltas(0, 2)


async def test_what_json_cannot_hold_is_refused_whole(url: str) -> None:
    async with open_log(url) as log:
        lease = await log.lease("r", "me", LONG)
        with pytest.raises(HistoryError, match="cannot be stored"):
            await log.append("r", 0, [*deltas(0, 2), Custom("\ud83d")], lease=lease)
        assert await log.read("r") == []


async def test_one_has_a_run_at_a_time(url: str) -> None:
    async with open_log(url) as log:
        mine = await log.lease("r", "me", LONG, token=0)
        for how in ({}, {"token": 0}, {"token": 7}):
            with pytest.raises(LeaseLostError):
                await log.lease("r", "you", LONG, **how)
        assert await log.lease("r", "me", LONG, token=mine.token) == mine
        await log.lease("r", "me", 0, token=mine.token)
        assert not (await log.status(["r"]))["r"].driven
        theirs = await log.lease("r", "you", LONG)
        assert (theirs.owner, theirs.token) == ("you", 2)
        with pytest.raises(LeaseLostError, match="now belongs to you"):
            await log.append("r", 0, deltas(0, 1), lease=mine)
        with pytest.raises(LeaseLostError, match="now belongs to you"):
            await log.lease("r", "me", LONG, token=mine.token)
        await log.append("r", 0, deltas(0, 1), lease=theirs)


async def test_a_lease_that_is_over_writes_nothing_though_nobody_else_came(url: str) -> None:
    async with open_log(url) as log:
        lease = await log.lease("r", "me", 0)
        with pytest.raises(LeaseLostError, match="has expired: it was not renewed in time"):
            await log.append("r", 0, deltas(0, 1), lease=lease)
        with pytest.raises(LeaseLostError, match="has expired"):
            await log.lease("r", "me", LONG, token=lease.token)
        with pytest.raises(LeaseLostError, match="there is a run r already"):
            await log.lease("r", "me", LONG, token=0)


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (RunFinished("r"), "success"),
        (RunFinished("r", "pending"), "pending"),
        (RunFinished("r", "cancelled"), "cancelled"),
        (RunError(RateLimitError("slow"), "r"), "error"),
        (RunError(RunInterruptedError("gone"), "r"), "interrupted"),
    ],
)
async def test_a_run_that_is_over_takes_nothing_more(url: str, end: Event, state: str) -> None:
    inner: list[Event] = [
        RunFinished("inner"),
        RunError(RateLimitError("slow")),
        RunError(RateLimitError("slow"), "inner"),
    ]
    async with open_log(url) as log:
        lease = await log.lease("r", "me", LONG, thread_id="t")
        await log.append("r", 0, inner, lease=lease)
        assert (await log.status(["r"]))["r"].state == "running"
        await log.append("r", 3, [end], lease=lease)
        status = (await log.status(["r", "other"]))["r"]
        assert (status.state, status.end, status.is_over, status.driven) == (state, 4, True, False)
        with pytest.raises(RunLogError, match=f"is over \\({state}\\)"):
            await log.append("r", 4, deltas(0, 1), lease=lease)
        with pytest.raises(RunLogError, match="is over"):
            await log.lease("r", "me", LONG)
        assert await log.post("r", "late") == 1


async def test_messages_reach_whoever_drives_the_run_in_order(url: str) -> None:
    async with open_log(url) as log:
        await log.lease("r", "me", LONG)
        numbers = await asyncio.gather(*[log.post("r", {"n": number}) for number in range(5)])
        assert numbers == [1, 2, 3, 4, 5]
        assert (await log.status(["r"]))["r"].posts == 5
        assert [posted.message["n"] for posted in await log.read_posts("r")] == [0, 1, 2, 3, 4]
        assert [(posted.run_id, posted.number) for posted in await log.read_posts("r", 3)] == [
            ("r", 4),
            ("r", 5),
        ]
        assert await log.read_posts("other") == []


async def test_there_must_be_a_run(url: str) -> None:
    async with open_log(url) as log:
        lease = await log.lease("r", "me", LONG)
        for refused in (
            log.post("other", 1),
            log.append("other", 0, deltas(0, 1), lease=lease),
            log.lease("other", "me", LONG, token=3),
        ):
            with pytest.raises(RunLogError, match="the log has no run 'other'"):
                await refused
        assert await log.status(["other"]) == {}


async def test_an_interrupt_is_claimed_once(url: str) -> None:
    async with open_log(url) as log:
        claims = await asyncio.gather(*[log.claim("t", "i", f"r{number}") for number in range(5)])
        assert sorted(claims) == [False] * 4 + [True]
        assert not await log.claim("t", "i", "r9")
        assert await log.claim("t", "j", "r1")
        assert await log.claim("u", "i", "r1")


async def test_runs_are_listed_the_latest_first(url: str) -> None:
    async with open_log(url) as log:
        for number in range(4):
            lease = await log.lease(f"r{number}", "me", LONG, thread_id="ab"[number % 2])
            await log.append(f"r{number}", 0, [RunStarted("x")], lease=lease)
            if number > 2:
                await log.append(f"r{number}", 1, [RunFinished(f"r{number}")], lease=lease)
            await asyncio.sleep(0.002)
        await log.lease("r0", "me", 0, token=1)

        async def listed(**how: object) -> list[str]:
            return [status.run_id for status in await log.runs(**how)]  # type: ignore[arg-type]

        assert await listed() == ["r3", "r2", "r1", "r0"]
        assert await listed(most=2) == ["r3", "r2"]
        assert await listed(thread_id="a") == ["r2", "r0"]
        assert await listed(state="success") == ["r3"]
        assert await listed(state="running", driven=False) == ["r0"]
        assert await listed(state="running", driven=True) == ["r2", "r1"]
        (status,) = await log.runs(thread_id="b", state="success")
        assert (status.thread_id, status.owner, status.end) == ("b", "me", 2)
        assert status.started_at > 1.6e9


async def test_runs_of_callers_are_listed_page_by_page(url: str) -> None:
    async with open_log(url) as log:
        for number, caller in enumerate(["ann", "bob", None, "ann", "ann"]):
            lease = await log.lease(f"r{number}", "me", LONG, token=0, caller=caller)
            assert await log.lease(f"r{number}", "me", LONG, token=lease.token) == lease
            await asyncio.sleep(0.002)
        await log.enqueue("r5", "a", RunRequest(), owner="ann")
        # Another caller takes a run over: it stays whose it was.
        await log.lease("r0", "me", 0, token=1)
        await log.lease("r0", "you", LONG, caller="bob")

        async def listed(*callers: str | None, **how: int) -> list[str]:
            return [status.run_id for status in await log.runs(callers=callers, **how)]

        assert await listed("ann") == ["r5", "r4", "r3", "r0"]
        assert [await listed("ann", most=2, skip=skip) for skip in (0, 2, 3, 4)] == [
            ["r5", "r4"], ["r3", "r0"], ["r0"], []
        ]  # fmt: skip
        assert await listed("bob", None) == ["r2", "r1"]
        assert await listed(None) == ["r2"]
        assert await listed("nobody") == []
        assert len(await log.runs(skip=4)) == 2


ORIGIN = Origin("anthropic", model="claude-sonnet-4-6")


def _usage(sent: int, got: int) -> Usage:
    return Usage(input_tokens=sent, output_tokens=got)


async def test_a_run_says_what_its_model_calls_took(url: str) -> None:
    usage, free = _usage(1000, 500), _usage(7, 3)
    first = [MessageStarted("m1", Role.MODEL, origin=ORIGIN), PartDelta("m1", 0, "x")]
    async with open_log(url) as log:
        lease = await log.lease("r", "me", LONG, token=0)

        async def append(*events: Event) -> tuple[int | None, int | None, Decimal | None]:
            end = (await log.status(["r"]))["r"].end
            await log.append("r", end, events, lease=lease)
            status = (await log.status(["r"]))["r"]
            (listed,) = await log.runs()
            assert (listed.calls, listed.tokens, listed.cost) == (
                status.calls, status.tokens, status.cost
            )  # fmt: skip
            return status.calls, status.tokens, status.cost

        assert await append(*first) == (0, 0, 0)
        # The model is named at the start of the message alone, in an earlier append.
        assert await append(MessageFinished("m1", usage=usage)) == (1, 1500, Decimal("0.0105"))
        # Answers from a cache, those of people, and those that say no tokens do not count.
        quiet = [
            MessageFinished("m2", usage=usage, origin=ORIGIN, cached=True),
            MessageFinished("m3"),
            MessageFinished("m4", origin=ORIGIN),
        ]
        assert await append(*quiet) == (1, 1500, Decimal("0.0105"))
        both = [MessageFinished(name, usage=usage, origin=ORIGIN) for name in ("m5", "m6")]
        assert await append(*both) == (3, 4500, Decimal("0.0315"))
        unknown = MessageFinished("m7", usage=free, origin=Origin("x", model="nobody-knows"))
        assert await append(unknown) == (4, 4510, None)
        assert await append(*both, RunFinished("r")) == (6, 7510, None)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:secret@h/d",
        "sqlite://",
        "sqlite:///",
        "postgresql://",
        "runs.db",
        "",
        "memory",
        "redis:x",
    ],
)
async def test_what_is_no_log_is_refused_in_words(url: str) -> None:
    with pytest.raises(SettingsError, match='give "memory:"') as refused:
        open_log(url)
    assert "secret" not in str(refused.value)


async def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.sql import address as module

    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "psycopg" else name)
    with pytest.raises(SettingsError, match=r"needs psycopg: pip install '\.\[postgres\]' in "):
        open_log("postgresql://u@127.0.0.1:9/d")
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(
        SettingsError, match=r"needs sqlalchemy, alembic: pip install '\.\[sql\]' in "
    ):
        open_log("sqlite:///x.db")


async def ended(log: RunLog, run_id: str, *events: Event) -> None:
    lease = await log.lease(run_id, "me", LONG, token=0)
    await log.append(run_id, 0, [*events, RunFinished(run_id)], lease=lease)


async def test_what_is_old_and_over_is_forgotten_and_what_was_allowed_is_not(url: str) -> None:
    async with open_log(url) as opened:
        log: Any = opened
        for number in range(3):
            await ended(log, f"over{number}", *deltas(0, 2))
        await log.post("over0", "hi")
        await log.lease("running", "me", LONG, token=0)
        assert await log.claim("t", "i", "over0")
        assert await log.prune(datetime.now(UTC) - timedelta(hours=1)) == 0
        assert await log.prune(datetime.now(UTC) + timedelta(hours=1)) == 3
        assert [run.run_id for run in await log.runs()] == ["running"]
        assert (await log.read("over0"), await log.read_posts("over0")) == ([], [])
        assert not await log.claim("t", "i", "again")
        await ended(log, "over0")


async def test_a_log_in_memory_forgets_what_ended_first() -> None:
    log = MemoryLog(most=2)
    held = await log.lease("running", "me", LONG, token=0)
    for number in range(4):
        await ended(log, f"over{number}")
    assert [run.run_id for run in await log.runs()] == ["over3", "over2", "running"]
    log = MemoryLog(most_bytes=1000)
    held = await log.lease("running", "me", LONG, token=0)
    await log.append("running", 0, deltas(0, 50), lease=held)
    await ended(log, "small")
    assert [run.run_id for run in await log.runs()] == ["running"]
    assert len(await everything(log, "running")) == 50
