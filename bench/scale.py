"""What breaks first with a million threads, 10,000 open streams and 1,000 runs a second: a model of
a server over a run log, with the costs that were measured on this machine.

    python bench/scale.py                                  the tables of docs/scale.md
    python bench/scale.py --streams 2000 --runs 200 --events 5
    python bench/scale.py --measure [postgresql://…]       measure the costs, hold the model against
                                                           the real log, then the tables

`simulate` is a simulation by discrete events of the way of events into the log. Each run has one
append on its way, which takes all events that came meanwhile. A process commits what has collected,
at most once in `pause` seconds. In SQLite one process writes at a time; in Postgres each has its own
connection, and all share the cores of the database. `find_needs` adds up what else a load takes.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

MILLION = 1_000_000


class Load(NamedTuple):
    """What clients do."""

    threads: int = MILLION
    """Stored conversations."""
    streams: int = 10_000
    """Open at a time."""
    runs: float = 1000
    """A second."""
    events: float = 20
    """A second of each stream."""

    @property
    def seconds(self) -> float:
        """How long a run takes (Little's law)."""
        return self.streams / self.runs


class Setup(NamedTuple):
    """How it is served."""

    database: str = "sqlite"
    """`sqlite` or `postgresql`."""
    processes: int = 1
    pause: float = 0.02
    """Least seconds from one commit of a process to the next (`sql_log._PAUSE_SECONDS`)."""
    poll: float = 0.2
    """Seconds from one look at the log to the next (`Runs(poll_seconds=)`)."""
    lease: float = 30.0
    """Seconds of a lease (`Runs(lease_seconds=)`), renewed after a third."""
    kept_days: float = 30.0
    """So long the log keeps runs (`ServerLimits(kept_seconds=)`)."""
    database_cores: int = 8
    """Cores of the database's machine, for Postgres."""
    messages: int = 20
    """Messages of a thread."""


class Costs(NamedTuple):
    """What a part of the work takes, see `scale_measured`. Times in seconds."""

    commit: float
    """A commit without its appends, by the clock: the lock of the file, or a round trip."""
    append: float
    """An append of a run in it, by the clock."""
    append_cpu: float
    """CPU of the server's process for an append, with all that waits for it."""
    append_bytes: float
    """Bytes that the database writes for an append, into its log and its files."""
    event_bytes: float
    """Bytes more for each event of it."""
    stored_bytes: float
    """Bytes that an event takes in the log for good."""
    poll: float
    """CPU of a look at the log."""
    poll_run: float
    """CPU for each run in it."""
    event: float
    """CPU of a server for an event of an agent's stream, from the model to the client, no log."""
    run: float
    """CPU for a run without its events: request, agent, answer."""
    stream_bytes: float
    """Memory of an open stream."""
    message_bytes: float
    """Bytes of a stored message with its indexes."""


class Stored(NamedTuple):
    """What came of a simulation, or of a measurement."""

    appends: float
    """A second, over all processes."""
    commits: float
    """A second, over all processes."""
    events: float
    """A second."""
    latency: float
    """Mean seconds from an event to its being stored, when its reader sees it."""
    worst: float
    """The 95th percentile."""
    busy: float
    """Share of the time in which the file is locked, or the database's cores work."""


def simulate(
    streams: int,
    rate: float,
    setup: Setup,
    commit: float,
    append: float,
    *,
    spread: Sequence[float] = (1.0,),
    seconds: float = 3.0,
    seed: int = 1,
) -> Stored:
    """Simulates streams of `rate` events a second each, half a second to warm up and then
    `seconds`. `commit`, `append`: seconds that a commit takes, and each append in it; each commit
    takes one of the factors `spread` times as long."""
    warm, interval = 0.5, 1 / rate
    end = warm + seconds
    chance = random.Random(seed)
    phases = [chance.random() * interval for _ in range(streams)]
    stored = [0] * streams
    """Events of each run that are in an append or stored."""
    queues: list[list[tuple[int, float]]] = [[] for _ in range(setup.processes)]
    """The appends that wait in a process: run, and when it came."""
    is_due = [False] * setup.processes
    started = [-setup.pause] * setup.processes
    free = [0.0] * (1 if setup.database == "sqlite" else setup.database_cores)
    """When the lock, or each core, is free again."""
    appends = commits = events = 0
    work = 0.0
    latencies: list[tuple[float, int]] = []
    # Kinds: 0 a run has an event, 1 a process begins a commit, 2 it has ended.
    agenda: list[tuple[float, int, int, list[tuple[int, float]]]] = [
        (phase, 0, run, []) for run, phase in enumerate(phases)
    ]
    heapq.heapify(agenda)
    while agenda and agenda[0][0] < end:
        time, kind, subject, batch = heapq.heappop(agenda)
        if kind == 0:
            process = subject % setup.processes
            queues[process].append((subject, time))
            if not is_due[process]:
                is_due[process] = True
                begin = max(time, started[process] + setup.pause)
                heapq.heappush(agenda, (begin, 1, process, []))
        elif kind == 1:
            batch, queues[subject] = queues[subject], []
            started[subject] = time
            server = min(range(len(free)), key=free.__getitem__)
            began = max(time, free[server])
            took = (commit + append * len(batch)) * chance.choice(spread)
            free[server] = began + took
            if began >= warm:
                work += took
            # All that came until the transaction was begun is in it; later events wait.
            heapq.heappush(agenda, (began + took, 2, subject, batch))
        else:
            is_counted = time >= warm
            commits += is_counted
            for run, came in batch:
                first = phases[run] + stored[run] * interval
                count = max(1, math.floor((came - first) / interval + 1e-9) + 1)
                stored[run] += count
                if is_counted:
                    appends += 1
                    events += count
                    latencies.append((time - first - (count - 1) * interval / 2, count))
                # Events that came during the commit go into the next append at once.
                following = max(time, phases[run] + stored[run] * interval)
                heapq.heappush(agenda, (following, 0, run, []))
            is_due[subject] = bool(queues[subject])
            if is_due[subject]:
                begin = max(time, started[subject] + setup.pause)
                heapq.heappush(agenda, (begin, 1, subject, []))
    latencies.sort()
    total = sum(count for _, count in latencies) or 1
    worst = latencies[int(0.95 * (len(latencies) - 1))][0] if latencies else 0.0
    return Stored(
        appends / seconds,
        commits / seconds,
        events / seconds,
        sum(latency * count for latency, count in latencies) / total,
        worst,
        work / seconds / len(free),
    )


class Need(NamedTuple):
    """What a load needs of a resource."""

    resource: str
    amount: float
    limit: float
    """What there is of it."""
    unit: str
    knob: str
    """What moves it."""

    @property
    def ratio(self) -> float:
        """1: just enough."""
        return self.amount / self.limit


WRITE_BYTES = 200 * MILLION
"""Bytes a second that a database's disk is taken to write for hours."""
DISK_BYTES = 2e12
"""Bytes that a database's disk is taken to hold."""
MEMORY_BYTES = 16e9
"""Memory of the machine with the processes."""
MOST_CONNECTIONS = 100
"""Postgres' default `max_connections`."""
CONNECTIONS_EACH = 9
"""Of a process: one that writes and two that read, for answers, run log and memory."""
MOST_DELAY = 0.5
"""Seconds by which an event may be late for its reader."""
DAY = 86_400


def find_needs(load: Load, setup: Setup, costs: Costs, stored: Stored) -> list[Need]:
    """Returns what a load needs, the scarcest first. Each process has one core."""
    events, processes = load.streams * load.events, setup.processes
    writers = 1 if setup.database == "sqlite" else setup.database_cores
    more, postgres = "--processes", "Postgres; a database for each part of the threads"
    pause = "the pause between commits"
    cpu = {
        "CPU for events": (events * costs.event, f"{more}; longer deltas"),
        "CPU for runs": (load.runs * costs.run, more),
        "CPU for appends": (stored.appends * costs.append_cpu, f"{pause}; {more}"),
        "CPU for polls": (
            # Each process looks at the runs that it drives or reads.
            (processes * costs.poll + load.streams * costs.poll_run) / setup.poll,
            "poll_seconds",
        ),
    }
    renewals = load.streams / (setup.lease / 3)
    needs = [
        Need(
            "CPU of the processes",
            sum(cores for cores, _ in cpu.values()),
            processes,
            "cores",
            more,
        ),
        *[Need(name, cores, processes, "cores", knob) for name, (cores, knob) in cpu.items()],
        Need("lease renewals", renewals * costs.append, writers, "writers", "lease_seconds"),
        Need("writer of the database", stored.busy, 1, "of its time", postgres),
        Need("delay of an event", stored.latency, MOST_DELAY, "s", postgres),
        Need(
            "bytes written",
            stored.appends * costs.append_bytes + events * costs.event_bytes,
            WRITE_BYTES,
            "bytes/s",
            f"{pause}; a faster disk",
        ),
        Need(
            "run log on disk",
            events * DAY * setup.kept_days * costs.stored_bytes,
            DISK_BYTES,
            "bytes",
            "ServerLimits(kept_seconds=)",
        ),
        Need(
            "threads on disk",
            load.threads * setup.messages * costs.message_bytes,
            DISK_BYTES,
            "bytes",
            "delete old threads",
        ),
        Need(
            "memory of streams",
            load.streams * costs.stream_bytes,
            MEMORY_BYTES,
            "bytes",
            "more machines",
        ),
    ]
    if setup.database != "sqlite":
        connections = processes * CONNECTIONS_EACH
        needs.append(
            Need("connections", connections, MOST_CONNECTIONS, "connections", "max_connections")
        )
    return sorted(needs, key=lambda need: -need.ratio)


def assess(load: Load, setup: Setup, costs: Costs) -> list[Need]:
    """Simulates a load and returns what it needs, the scarcest first."""
    # Long enough for some commits of all runs, where they are slow.
    seconds = max(0.3, 3 * (setup.pause + costs.commit + costs.append * load.streams))
    stored = simulate(load.streams, load.events, setup, costs.commit, costs.append, seconds=seconds)
    return find_needs(load, setup, costs, stored)


def find_share(load: Load, setup: Setup, costs: Costs) -> float:
    """Returns the share of the streams and runs that fits: 0.25 is a quarter. What is a matter of
    days or of the setup alone is left out."""
    low, high = 0.0, 1.0
    for _ in range(7):
        share = (low + high) / 2
        part = load._replace(streams=max(1, int(load.streams * share)), runs=load.runs * share)
        needs = assess(part, setup, costs)
        if all(need.ratio <= 1 for need in needs if need.resource not in OF_TIME_AND_SETUP):
            low = share
        else:
            high = share
    return low


OF_TIME_AND_SETUP = ("run log on disk", "threads on disk", "connections")

MEASURED = {
    "sqlite": Costs(
        commit=0.000464,
        append=7.2e-05,
        append_cpu=5.5e-05,
        append_bytes=632,
        event_bytes=154,
        stored_bytes=100,
        poll=0.000413,
        poll_run=1.14e-05,
        event=0.000254,
        run=0.0027,
        stream_bytes=49_200,
        message_bytes=1530,
    ),
    "postgresql": Costs(
        commit=0.00114,
        append=0.000227,
        append_cpu=0.000117,
        append_bytes=630,
        event_bytes=72.3,
        stored_bytes=85,
        poll=0.000597,
        poll_run=1.82e-05,
        event=0.000254,
        run=0.0027,
        stream_bytes=49_200,
        message_bytes=1530,
    ),
}
"""What `--measure` found on two shared cores with other work, by database."""

KNOBS: dict[str, Setup] = {
    "SQLite, 1 process": Setup(),
    "SQLite, 8 processes": Setup(processes=8),
    "SQLite, 8 processes, a commit in 200 ms": Setup(processes=8, pause=0.2),
    "Postgres, 8 processes": Setup("postgresql", processes=8),
    "Postgres, 32 processes": Setup("postgresql", processes=32),
    "Postgres, 64 processes": Setup("postgresql", processes=64),
    "64, a commit in 200 ms": Setup("postgresql", processes=64, pause=0.2),
    "64, 200 ms, a database of 32 cores": Setup(
        "postgresql", processes=64, pause=0.2, database_cores=32
    ),
    "64, 200 ms, a log of 1 day": Setup("postgresql", processes=64, pause=0.2, kept_days=1),
    "64, 200 ms, 1 day, a look each second": Setup(
        "postgresql", processes=64, pause=0.2, kept_days=1, poll=1.0
    ),
}
"""Setups by what was changed."""


def show(load: Load) -> None:
    """Shows what the load needs of SQLite and Postgres, then what each knob moves."""
    print(
        f"{load.threads:,} threads, {load.streams:,} open streams of {load.events:g} events a second,"
        f" {load.runs:g} runs a second of {load.seconds:g} s"
    )
    for setup in (Setup(), Setup("postgresql", processes=64)):
        print(
            f"\n{setup.database}, {setup.processes} processes: needed / there, the scarcest first"
        )
        for need in assess(load, setup, MEASURED[setup.database]):
            print(
                f"  {need.resource:24} {need.amount:10.3g} of {need.limit:8.3g} {need.unit:12}"
                f" {need.ratio:8.2f}   {need.knob}"
            )
    print("\nwhat fits of the streams and runs, and what the whole load takes too much of (times)")
    for name, setup in KNOBS.items():
        costs = MEASURED[setup.database]
        broken = [
            f"{need.resource} {need.ratio:.1f}"
            for need in assess(load, setup, costs)
            if need.ratio > 1 and not need.resource.startswith("CPU for")
        ]
        print(f"  {name:40} {find_share(load, setup, costs):6.1%}   {', '.join(broken)}")


def main() -> None:
    """Measures if it is to, and shows the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("postgres", nargs="?", help="the URL of an empty database")
    for name, default in Load()._asdict().items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    given = parser.parse_args()
    if given.measure:
        from scale_measured import measure_and_compare

        MEASURED.update(measure_and_compare(given.postgres))
        print()
    show(Load(given.threads, given.streams, given.runs, given.events))


if __name__ == "__main__":
    main()
