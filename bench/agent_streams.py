"""Many runs of an agent at once, over sockets, in each agent protocol: CPU per event, latency,
memory, and whether all came whole and in order.

    python bench/agent_streams.py [--streams 1000] [--events 250] [--rate 50] [--json]

Two processes: a server with an agent whose model says numbers at a rate, and this one, which reads
all streams. CPU and memory are the server's, from /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from serve import cpu, free, kilobytes, wait


def serve_agent(port: int, events: int, rate: float) -> None:
    """The server."""
    from dragoman import Agent, serve
    from dragoman.event import (
        MessageFinished,
        MessageStarted,
        OpenText,
        PartDelta,
        PartFinished,
        PartStarted,
    )
    from dragoman.message import FinishReason, Role, TextPart
    from dragoman.testing import ScriptedModel

    text = TextPart("".join([f"<{number}>" for number in range(events)]))

    async def numbers(request: Any, following: Any) -> AsyncIterator[Any]:
        begun = time.monotonic()
        yield MessageStarted("m", Role.MODEL)
        yield PartStarted("m", 0, OpenText())
        for number in range(events):
            yield PartDelta("m", 0, f"<{number}>")
            if rate:
                await asyncio.sleep(max(0.0, begun + (number + 1) / rate - time.monotonic()))
        yield PartFinished("m", 0, text)
        yield MessageFinished("m", FinishReason.stop)

    app = serve.app(Agent(ScriptedModel([]), middleware=[numbers]))
    asyncio.run(serve.serve_http(app, port=port))


def body(protocol: str, number: int) -> tuple[str, dict[str, Any]]:
    """Where a protocol's run is asked for, and with what."""
    if protocol == "AG-UI":
        asked = {"id": "u", "role": "user", "content": "Count."}
        return "/ag-ui", {"threadId": f"a{number}", "runId": f"r{number}", "messages": [asked]}
    if protocol == "AI SDK":
        asked = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Count."}]}
        return "/ai-sdk", {"id": f"s{number}", "messages": [asked], "trigger": "submit-message"}
    message = {
        "messageId": "u",
        "role": "ROLE_USER",
        "contextId": f"c{number}",
        "parts": [{"text": "Count."}],
    }
    return "/a2a", {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendStreamingMessage",
        "params": {"message": message},
    }


async def read(port: int, protocol: str, number: int, events: int) -> tuple[float, bool]:
    """One stream → seconds to its first event, and whether it came whole and in order."""
    path, asked = body(protocol, number)
    data = json.dumps(asked).encode()
    begun = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
    first, seen, rest = 0.0, 0, b""
    while piece := await reader.read(65536):
        rest += piece
        lines = rest.split(b"\n")
        rest = lines.pop()
        for line in lines:
            if seen < events and line.startswith(b"data:") and b"<%d>" % seen in line:
                first = first or time.perf_counter() - begun
                seen += 1
    writer.close()
    return first, seen == events


async def measured(
    port: int, process: int, protocol: str, streams: int, events: int
) -> dict[str, float]:
    """What the streams of one protocol cost the server."""
    await asyncio.gather(*[read(port, protocol, -at - 1, events) for at in range(3)])
    before, memory, peak = cpu(process), kilobytes(process), [0]

    async def watch() -> None:
        while True:
            peak[0] = max(peak[0], kilobytes(process))
            await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    found = await asyncio.gather(*[read(port, protocol, at, events) for at in range(streams)])
    watching.cancel()
    firsts = sorted(first for first, _ in found)
    return {
        "cpu_us": (cpu(process) - before) / (streams * events) * 1e6,
        "first_ms": firsts[streams // 2] * 1000,
        "kilobytes": max(0, peak[0] - memory) / streams,
        "whole": sum(whole for _, whole in found),
    }


def main() -> None:
    """Measures, and shows it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--events", type=int, default=250)
    parser.add_argument(
        "--rate",
        type=float,
        default=50,
        help="events a second of each; 0: as fast as they can be made",
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve_agent(given.serve, given.events, given.rate)
        return
    port = free()
    load = ["--events", str(given.events), "--rate", str(given.rate)]
    server = subprocess.Popen([sys.executable, __file__, "--serve", str(port), *load])
    try:
        wait(port, server)
        for protocol in ("AG-UI", "AI SDK", "A2A"):
            cost = asyncio.run(measured(port, server.pid, protocol, given.streams, given.events))
            if given.json:
                print(
                    json.dumps({"protocol": protocol, "streams": given.streams, **cost}), flush=True
                )
                continue
            print(
                f"{protocol:8} {cost['cpu_us']:6.1f} µs an event   first {cost['first_ms']:8.1f} ms"
                f"   {cost['kilobytes']:6.1f} kB a stream   {cost['whole']:.0f} of {given.streams} whole",
                flush=True,
            )
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


if __name__ == "__main__":
    main()
