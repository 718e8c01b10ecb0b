"""The costs for `scale.py`, measured here, and the model held against the log itself.

CPU is that of this process. Times by the clock are fitted to streams at their own pace, few and
many; on a machine that does other work they are longer, in the model and in what it is held against
alike. The points that the model is held against are others.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scale import Costs, Setup, Stored, simulate

from dragoman import Agent, serve
from dragoman.event import Event, PartDelta
from dragoman.memory import Memory
from dragoman.message import Message
from dragoman.runs.log import Lease
from dragoman.runs.sql_log import SqlLog
from dragoman.testing import ScriptedModel

MANY, ROUNDS = 200, 12
EVENT: Event = PartDelta("message-1", 0, "word ")


class TimedLog(SqlLog):
    """A log that notes how many appends each commit had, and how long it took."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.timed: list[tuple[int, float]] = []
        writer: Any = self._database._writer
        commit = writer._carry_out

        def timed_commit(works: Any) -> Any:
            began = time.perf_counter()
            results = commit(works)
            self.timed.append((len(works), time.perf_counter() - began))
            return results

        writer._carry_out = timed_commit

    async def begin(self, count: int) -> list[Lease]:
        """So many new runs."""
        prefix = os.urandom(6).hex()
        return list(
            await asyncio.gather(
                *[self.lease(f"{prefix}-{number}", "bench", 1000) for number in range(count)]
            )
        )


async def flood(log: TimedLog, count: int, events: int, rounds: int = ROUNDS) -> None:
    """Appends of `count` runs at a time."""
    leases = await log.begin(count)
    log.timed.clear()
    for turn in range(rounds):
        await asyncio.gather(
            *[
                log.append(lease.run_id, turn * events, [EVENT] * events, lease=lease)
                for lease in leases
            ]
        )


async def written(log: SqlLog) -> int:
    """Bytes that the database has written so far."""
    if log._database.dialect == "sqlite":
        counters = Path("/proc/self/io").read_text("ascii")  # noqa: ASYNC240 - nothing else runs
        return int(counters.split("wchar: ")[1].split()[0])
    rows = await log._database.read(
        lambda connection: connection.exec_driver_sql(
            "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
        ).all()
    )
    return int(rows[0][0])


async def size(log: SqlLog) -> int:
    """Bytes that the database takes."""
    if log._database.dialect == "sqlite":
        query = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    else:
        query = "SELECT pg_database_size(current_database())"
    rows = await log._database.read(lambda connection: connection.exec_driver_sql(query).all())
    return int(rows[0][0])


async def cpu_of(work: Callable[[], Awaitable[Any]]) -> float:
    """Seconds of CPU that a piece of work takes."""
    began = time.process_time()
    await work()
    return time.process_time() - began


async def measure_log(url: str) -> dict[str, float]:
    """What the log costs."""
    async with TimedLog(url) as log:
        await flood(log, MANY, 1, 2)
        before = await written(log)
        cpu = await cpu_of(lambda: flood(log, MANY, 1))
        append_bytes = (await written(log) - before) / (MANY * ROUNDS)
        before, stood = await written(log), await size(log)
        events = 21
        await flood(log, MANY, events)
        event_bytes = ((await written(log) - before) / (MANY * ROUNDS) - append_bytes) / (
            events - 1
        )
        stored_bytes = (await size(log) - stood) / (MANY * ROUNDS * events)
        ids = [lease.run_id for lease in await log.begin(MANY)]

        async def look(count: int) -> None:
            for _ in range(50):
                await log.status(ids[:count])

        few, more = await cpu_of(lambda: look(1)) / 50, await cpu_of(lambda: look(MANY)) / 50
    return {
        "append_cpu": cpu / (MANY * ROUNDS),
        "append_bytes": append_bytes,
        "event_bytes": max(event_bytes, 0.0),
        "stored_bytes": stored_bytes,
        "poll": few,
        "poll_run": (more - few) / MANY,
    }


async def stream(app: Any, words: int, waiting: asyncio.Event | None = None) -> int:
    """A stream of an agent, as the server writes it. Returns how many pieces it had."""
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"%d"}]}' % words
    pieces = 0
    received = False

    async def receive() -> Any:
        nonlocal received
        if received:
            await asyncio.Event().wait()
        received = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal pieces
        pieces += len(message.get("body", b"")) > 0
        if waiting is not None and pieces:
            await waiting.wait()

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": headers}
    await app(
        {**scope, "query_string": b"", "root_path": "", "scheme": "http", "raw_path": b""},
        receive,
        send,
    )
    return pieces


def memory_bytes() -> int:
    """Memory of this process now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def measure_server(folder: str) -> dict[str, float]:
    """What a server and its threads cost, without a log."""
    model = ScriptedModel(lambda request: "word " * int(request.messages[-1].text), chunks=5)
    app = serve.app(Agent(model), store=None)
    few, many = 5, 505
    await stream(app, few)

    async def repeat(words: int) -> None:
        for _ in range(20):
            await stream(app, words)

    short = min([await cpu_of(lambda: repeat(few)) for _ in range(3)]) / 20
    long = min([await cpu_of(lambda: repeat(many)) for _ in range(3)]) / 20
    event = (long - short) / (many - few)
    waiting, before = asyncio.Event(), memory_bytes()
    streams = [asyncio.create_task(stream(app, few, waiting)) for _ in range(500)]
    await asyncio.sleep(2)
    stream_bytes = (memory_bytes() - before) / len(streams)
    waiting.set()
    await asyncio.gather(*streams)
    count = 400
    async with Memory(f"sqlite:///{folder}/threads.db") as memory:
        for number in range(count // 20):
            messages = [Message.user(f"{number} {index} " + "word " * 60) for index in range(20)]
            await memory.save(messages, thread_id=f"t{number}", resource_id="r")
    stored = Path(folder, "threads.db").stat().st_size  # noqa: ASYNC240 - nothing else runs
    return {
        "event": event,
        "run": short - few * event,
        "stream_bytes": stream_bytes,
        "message_bytes": stored / count,
    }


class Paced(NamedTuple):
    """What came of a load at its own pace."""

    stored: Stored
    timed: list[tuple[int, float]]
    """The appends of each commit, and the seconds that it took."""


async def pace(url: str, streams: int, rate: float, logs: int, seconds: float = 3.0) -> Paced:
    """Streams of `rate` events a second each into the log, as a driver of runs stores them."""
    opened = [TimedLog(url) for _ in range(logs)]
    latencies: list[float] = []
    appends = 0
    interval, chance = 1 / rate, random.Random(2)
    leases = [await log.begin(share_of(streams, logs, index)) for index, log in enumerate(opened)]
    began = time.perf_counter() + 0.2
    counted, end = began + 0.5, began + 0.5 + seconds

    async def run(log: TimedLog, lease: Lease, phase: float) -> None:
        nonlocal appends
        stored = 0
        while (due := began + phase + stored * interval) < end:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            count = max(1, int((time.perf_counter() - began - phase) / interval) + 1 - stored)
            await log.append(lease.run_id, stored, [EVENT] * count, lease=lease)
            done = time.perf_counter()
            if counted <= done < end:
                appends += 1
                latencies.extend(
                    done - (began + phase + (stored + index) * interval) for index in range(count)
                )
            stored += count

    runs = [
        run(log, lease, chance.random() * interval)
        for log, of_log in zip(opened, leases, strict=True)
        for lease in of_log
    ]
    commits_before = sum(log.commits for log in opened)
    for log in opened:
        log.timed.clear()
    await asyncio.gather(*runs)
    elapsed = time.perf_counter() - began
    commits = (sum(log.commits for log in opened) - commits_before) / elapsed
    timed = [entry for log in opened for entry in log.timed]
    busy = sum(took for _, took in timed) / elapsed / count_servers(opened[0])
    for log in opened:
        await log.close()
    latencies.sort()
    return Paced(
        Stored(
            appends / seconds,
            commits,
            len(latencies) / seconds,
            statistics.fmean(latencies),
            latencies[int(0.95 * (len(latencies) - 1))],
            busy,
        ),
        timed,
    )


def count_servers(log: SqlLog) -> int:
    """How many commits the database can do at a time: see `Setup.database_cores`."""
    return 1 if log._database.dialect == "sqlite" else os.cpu_count() or 1


async def fit(url: str) -> tuple[float, float, list[float]]:
    """What a commit takes by the clock, what each append in it, and by which factors commits
    differ from that: from few streams and from many."""
    few, many = (await pace(url, 5, 10.0, 1)).timed, (await pace(url, 200, 10.0, 1)).timed
    (few_appends, few_took), (appends, took) = (
        [statistics.fmean(values) for values in zip(*timed, strict=True)] for timed in (few, many)
    )
    append = max((took - few_took) / (appends - few_appends), 1e-6)
    commit = max(few_took - append * few_appends, 1e-4)
    return commit, append, [took / (commit + append * count) for count, took in many]


def share_of(streams: int, logs: int, index: int) -> int:
    """How many of the streams a log has."""
    return len(range(index, streams, logs))


POINTS = ((20, 10.0, 1), (100, 10.0, 1), (300, 10.0, 1), (100, 20.0, 2))
"""Streams, events a second of each, and logs of one database that share them."""


async def compare(url: str, database: str, costs: Costs, spread: Sequence[float]) -> None:
    """Shows the model beside the log itself."""
    print(f"{database}: {'streams':>8} {'logs':>5}   model / measured")
    for streams, rate, logs in POINTS:
        setup = Setup(database, processes=logs, database_cores=os.cpu_count() or 1)
        model = simulate(streams, rate, setup, costs.commit, costs.append, spread=spread)
        real = (await pace(url, streams, rate, logs)).stored
        print(
            f"{'':10} {streams:8} {logs:5}   appends {model.appends:6.0f} / {real.appends:6.0f} a second"
            f"   commits {model.commits:5.1f} / {real.commits:5.1f}   delay {model.latency * 1e3:6.1f} /"
            f" {real.latency * 1e3:6.1f} ms   95 % {model.worst * 1e3:6.1f} / {real.worst * 1e3:6.1f} ms"
            f"   writing {model.busy:4.0%} / {real.busy:4.0%}",
            flush=True,
        )


async def measure_all(folder: str, postgres: str | None) -> dict[str, Costs]:
    server = await measure_server(folder)
    urls = {"sqlite": f"sqlite:///{folder}/runs.db"}
    if postgres:
        urls["postgresql"] = postgres
    measured: dict[str, Costs] = {}
    for database, url in urls.items():
        log = await measure_log(url)
        commit, append, spread = await fit(url)
        costs = Costs(commit=commit, append=append, **log, **server)
        measured[database] = costs
        print(
            f'"{database}": Costs(',
            *[f"    {name}={value:.3g}," for name, value in costs._asdict().items()],
            "),",
            sep="\n",
        )
        await compare(url, database, costs, spread)
    return measured


def measure_and_compare(postgres: str | None) -> dict[str, Costs]:
    """Measures the costs, and shows the model beside the log itself. Returns the costs by
    database."""
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(measure_all(folder, postgres))
