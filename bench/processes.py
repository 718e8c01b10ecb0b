"""What several processes behind one port gain and cost: shares, CPU for a request and throughput
of `dragoman serve --processes N` beside one process, with the same load, in turn.

python bench/processes.py [--processes 2] [--requests 2000] [--store none] [--rounds 3]

The agent answers from memory, so the CPU is the server's own. That of the supervising process is in
it. The client runs on the same machine: with as few cores as processes it takes part of them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
SERVED = """
import os
from dragoman import Agent
from dragoman.testing import ScriptedModel

agent = Agent(ScriptedModel(lambda _: f"process {os.getpid()}"))
"""
BODY = b'{"model":"m","messages":[{"role":"user","content":"Who are you?"}]}'
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(BODY), BODY)
)
AT_A_TIME = 32


class Cost(NamedTuple):
    """What a load took."""

    cpu_us: float
    """CPU of the server for a request, in µs."""
    rate: float
    """Requests a second."""
    shares: list[float]
    """Of the requests, what each process answered, in percent."""


def cpu(processes: list[int]) -> float:
    """Seconds of CPU that processes took."""
    fields = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in processes]
    return sum(int(value) for values in fields for value in values[11:13]) / TICKS


def children(process: int) -> list[int]:
    """Its child processes."""
    return [
        int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


async def ask(port: int, requests: int, seen: Counter[str]) -> None:
    """So many requests in one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(requests):
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None and b" 200 " in head, head
        answer = await reader.readexactly(int(length[1]))
        process = re.search(rb"process (\d+)", answer)
        assert process is not None, answer
        seen[process[1].decode()] += 1
    writer.close()
    await writer.wait_closed()


async def load(port: int, processes: list[int], requests: int, each: int) -> Cost:
    """Asks in connections of `each` requests, some at a time."""
    seen: Counter[str] = Counter()
    connections = iter(range(requests // each))

    async def ask_on() -> None:
        for _ in connections:
            await ask(port, each, seen)

    used, began = cpu(processes), time.perf_counter()
    await asyncio.gather(*[ask_on() for _ in range(AT_A_TIME)])
    seconds = time.perf_counter() - began
    count = seen.total()
    return Cost(
        (cpu(processes) - used) / count * 1e6,
        count / seconds,
        sorted(100 * share / count for share in seen.values()),
    )


def serve(folder: str, count: int, store: str) -> tuple[subprocess.Popen[str], int]:
    """A server, once it serves, and its port."""
    command = [sys.executable, "-m", "dragoman", "serve", "served:agent", "--port", "0"]
    server = subprocess.Popen(
        [*command, "--store", store, "--processes", str(count), "-C", folder],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    for line in server.stdout:
        if found := re.search(r"serving .* at http://127\.0\.0\.1:(\d+)", line):
            return server, int(found[1])
    raise SystemExit("the server did not start")


def main() -> None:
    """Measures, and shows it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", default="none")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "served.py").write_text(SERVED)
        servers = [serve(folder, count, given.store) for count in (1, given.processes)]
        try:
            for each in (1, 50):
                costs: list[list[Cost]] = [[], []]
                for _ in range(given.rounds + 1):
                    for (server, port), rounds in zip(servers, costs, strict=True):
                        processes = [server.pid, *children(server.pid)]
                        rounds.append(asyncio.run(load(port, processes, given.requests, each)))
                print(f"{given.requests} requests, {each} in a connection, {AT_A_TIME} at a time")
                medians: list[tuple[float, float]] = []
                for count, rounds in zip((1, given.processes), costs, strict=True):
                    # The first round warms up.
                    warm = rounds[1:]
                    medians.append(
                        (
                            statistics.median(cost.cpu_us for cost in warm),
                            statistics.median(cost.rate for cost in warm),
                        )
                    )
                    shares = ", ".join(f"{share:.0f} %" for share in warm[-1].shares)
                    print(
                        f"  {count} processes: {medians[-1][0]:6.0f} µs a request, {medians[-1][1]:6.0f} a second, shares {shares}"
                    )
                (one_cpu, one_rate), (all_cpu, all_rate) = medians
                print(
                    f"  CPU for a request {all_cpu / one_cpu:.2f} times that of one process, throughput {all_rate / one_rate:.2f} times"
                    f" ({os.cpu_count()} cores, the client on the same)"
                )
        finally:
            for server, _ in servers:
                server.send_signal(signal.SIGTERM)
            for server, _ in servers:
                server.wait(20)


if __name__ == "__main__":
    main()
