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
    """What a part of the work takes. Times in seconds of CPU; see `measure` in scale_measured.py."""

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
    seconds: float = 3.0,
    seed: int = 1,
) -> Stored:
    """Simulates streams of `rate` events a second each, half a second to warm up and then
    `seconds`. `commit`, `append`: seconds that a commit takes, and each append in it."""
    warm, interval = 0.5, 1 / rate
    end = warm + seconds
    chance = random.Random(seed)  # noqa: S311 - no secret
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
            began, took = max(time, free[server]), commit + append * len(batch)
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
    unit: str
    limit: float
    """Of one process, file or machine; see `find_needs`."""
    knob: str

    @property
    def ratio(self) -> float:
        """1: just enough."""
        return self.amount / self.limit


DISK_BYTES = 200 * MILLION
"""Bytes a second that a database's disk is taken to write, over hours."""
DISK = 2e12
"""Bytes of a database's disk."""
CONNECTIONS = 100
"""Postgres' default `max_connections`."""
CONNECTIONS_EACH = 9
"""Of a process: one that writes and two that read, for answers, run log and memory."""
MEMORY = 16e9
LATENCY = 0.25
"""Seconds by which an event may be late for its reader."""


def find_needs(load: Load, setup: Setup, costs: Costs, stored: Stored) -> list[Need]:
    """Returns what a load needs, the scarcest first. CPU is that of one core for each process."""
    events, processes = load.streams * load.events, setup.processes
    # A process looks at the runs that it drives, and reads the log for its streams.
    looks = processes / setup.poll
    needs = [
        Need(
            "CPU for events",
            events * costs.event,
            "cores",
            processes,
            "--processes; fewer, longer deltas",
        ),
        Need("CPU for runs", load.runs * costs.run, "cores", processes, "--processes"),
        Need(
            "CPU for appends",
            stored.appends * costs.append_cpu,
            "cores",
            processes,
            "the pause between commits; --processes",
        ),
        Need(
            "CPU for polls",
            looks * (costs.poll + costs.poll_run * load.streams / processes),
            "cores",
            processes,
            "poll_seconds",
        ),
        Need(
            "lease renewals",
            load.streams / (setup.lease / 3) * costs.append,
            "of the writer",
            1.0 if setup.database == "sqlite" else setup.database_cores,
            "lease_seconds",
        ),
        Need("writer of the database", stored.busy, "of its time", 1.0, "Postgres; more databases"),
        Need("delay of an event", stored.latency, "s", LATENCY, "Postgres; more databases"),
        Need(
            "bytes written",
            stored.appends * costs.append_bytes + events * costs.event_bytes,
            "bytes/s",
            DISK_BYTES,
            "the pause between commits; a faster disk",
        ),
        Need(
            "log on disk",
            load.runs
            * 86400
            * setup.kept_days
            * (events / load.runs)
            * (costs.event_bytes + costs.append_bytes * stored.appends / max(events, 1) / 4),
            "bytes",
            DISK,
            "ServerLimits(kept_seconds=)",
        ),
        Need(
            "threads on disk",
            load.threads * setup.messages * costs.message_bytes,
            "bytes",
            DISK,
            "delete old threads",
        ),
        Need(
            "memory of streams",
            load.streams * costs.stream_bytes / processes,
            "bytes",
            MEMORY / processes,
            "open_calls",
        ),
    ]
    if setup.database != "sqlite":
        amount = processes * CONNECTIONS_EACH
        needs.append(
            Need(
                "connections", amount, "connections", CONNECTIONS, "max_connections; fewer processes"
            )
        )
    return sorted(needs, key=lambda need: -need.ratio)
