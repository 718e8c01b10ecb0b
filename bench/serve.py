"""What a gateway costs beside litellm's proxy: CPU per event, latency that it adds, and many
streams at once.

    python bench/serve.py                                 ours alone
    python bench/serve.py --litellm PATH/bin/litellm      beside litellm's proxy, in the same run

Three processes: a provider that streams canned chunks of Chat Completions at a rate, the gateway
before it, and this one, which reads all streams and checks that each is whole and in order. CPU is
that of the gateway's process and its children, from /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class Load(NamedTuple):
    """What the provider sends."""

    streams: int
    """At a time."""
    events: int
    """Of each stream."""
    rate: float
    """Events a second of each; 0: as fast as it can."""


class Cost(NamedTuple):
    """What came of it."""

    cpu_us: float
    """CPU of the gateway for an event, in µs."""
    first_ms: float
    """Median time to the first event."""
    kilobytes: float
    """By which the gateway grew, for a stream."""
    whole: int
    """Streams that came whole and in order."""


def chunk(number: int) -> bytes:
    """A chunk of Chat Completions, whose text says its number."""
    return (
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
        b'{"role":"assistant","content":" %d"},"finish_reason":null}]}\n\n' % number
    )


WHOLE = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"Paris is the capital."},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}}'
)
WHOLE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(WHOLE)
)
END = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},'
    b'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


LITELLM_SETTINGS = """
model_list:
  - model_name: m
    litellm_params:
      model: openai/m
      api_base: http://127.0.0.1:{upstream}/v1
      api_key: none
litellm_settings:
  telemetry: false
general_settings:
  dangerously_permit_weak_or_unset_master_key: true
"""


async def provide(port: int) -> None:
    """The provider: `max_tokens` says how many events, `seed` how many a second."""
    import json

    async def asked_for(reader: asyncio.StreamReader) -> Any:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        lengths = [int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")]
        return json.loads(await reader.readexactly(lengths[0])) if lengths else None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await asked_for(reader)) is not None and not asked.get("stream"):
                writer.write(WHOLE_HEAD + WHOLE)
            if asked is None:  # somebody looks whether it is there
                return
            events, rate = asked.get("max_tokens", 10), asked.get("seed", 0)
            writer.write(HEAD)
            begun = time.monotonic()
            for number in range(events):
                writer.write(chunk(number))
                if rate:
                    await asyncio.sleep(max(0.0, begun + (number + 1) / rate - time.monotonic()))
                elif number % 64 == 0:
                    await writer.drain()
            writer.write(END)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port, backlog=4096) as server:
        await server.serve_forever()


def gate(port: int, upstream: int) -> None:
    """Our gateway."""
    import uvicorn

    from dragoman import serve

    gateway = serve.Gateway(
        {"m": "openai-compatible:m"},
        base_urls={"openai-compatible": f"http://127.0.0.1:{upstream}/v1"},
        keys={"openai-compatible": "none"},
    )
    uvicorn.run(
        serve.app(gateway=gateway), port=port, log_level="warning", access_log=False, backlog=4096
    )


async def read(port: int, load: Load, path: str) -> tuple[float, bool]:
    """One stream → seconds to its first event, and whether it came whole and in order."""
    body = (
        b'{"model":"m","stream":true,"max_tokens":%d,"seed":%d,"messages":[{"role":"user","content":"Count."}]}'
        % (
            load.events,
            load.rate,
        )
    )
    begun = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer sk-bench-key\r\nanthropic-version: 2023-06-01\r\n"
    writer.write(
        f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        + body
    )
    first, seen = 0.0, 0
    rest = b""
    while True:
        data = await reader.read(65536)
        if not data:
            break
        rest += data
        lines = rest.split(b"\n")
        rest = lines.pop()
        for line in lines:
            at = line.find(b'" %d"' % seen)
            if at > 0 and line.startswith(b"data:"):
                first = first or time.perf_counter() - begun
                seen += 1
            elif line.strip() == b"data: [DONE]" or b"message_stop" in line:
                writer.close()
                return first, seen == load.events
    writer.close()
    return first, False


def cpu(process: int) -> float:
    """Seconds of CPU that a process and its children took."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def kilobytes(process: int) -> int:
    """Memory of a process now."""
    return next(
        int(line.split()[1])
        for line in Path(f"/proc/{process}/status").read_text().splitlines()
        if "VmRSS" in line
    )


async def measured(port: int, process: int, load: Load, path: str) -> Cost:
    """What a load costs the gateway."""
    await asyncio.gather(*[read(port, Load(1, 5, 0), path) for _ in range(3)])
    before, memory, peak = cpu(process), kilobytes(process), [0]

    async def watch() -> None:
        while True:
            peak[0] = max(peak[0], kilobytes(process))
            await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    found = await asyncio.gather(*[read(port, load, path) for _ in range(load.streams)])
    watching.cancel()
    used = cpu(process) - before
    firsts = sorted(first for first, _ in found)
    return Cost(
        used / (load.streams * load.events) * 1e6,
        firsts[len(firsts) // 2] * 1000,
        max(0, peak[0] - memory) / load.streams,
        sum(whole for _, whole in found),
    )


def free() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def is_there(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Whether somebody listens there, who is waited for."""
    for _ in range(1200):
        if process.poll() is not None:
            return False
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.1)
    return False


def wait(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until somebody listens there."""
    if not is_there(port, process):
        raise SystemExit("a server does not answer")


def main() -> None:
    """Measures, and shows it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--litellm", help="the command of litellm's proxy")
    parser.add_argument("--role", choices=["provide", "gate"])
    parser.add_argument("--ports", type=int, nargs="*", default=[])
    parser.add_argument("--streams", type=int, default=1000)
    given = parser.parse_args()
    if given.role == "provide":
        asyncio.run(provide(given.ports[0]))
        return
    if given.role == "gate":
        gate(*given.ports)
        return
    upstream, ours, theirs = free(), free(), free()
    own = [sys.executable, __file__, "--role"]
    started = [subprocess.Popen([*own, "provide", "--ports", str(upstream)])]
    wait(upstream, started[-1])
    started.append(subprocess.Popen([*own, "gate", "--ports", str(ours), str(upstream)]))
    wait(ours, started[-1])
    rows = [
        ("dragoman, Chat", ours, started[-1].pid, "/v1/chat/completions"),
        ("dragoman, Anthropic before Chat", ours, started[-1].pid, "/v1/messages"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        if given.litellm:
            settings = Path(folder) / "litellm.yaml"
            settings.write_text(LITELLM_SETTINGS.format(upstream=upstream))
            started.append(
                subprocess.Popen(
                    [
                        given.litellm,
                        "--config",
                        str(settings),
                        "--port",
                        str(theirs),
                        "--host",
                        "127.0.0.1",
                    ],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            wait(theirs, started[-1])
            rows.append(("litellm, Chat", theirs, started[-1].pid, "/v1/chat/completions"))
        try:
            direct = asyncio.run(
                measured(upstream, started[0].pid, Load(20, 50, 50), "/v1/chat/completions")
            )
            print(f"the provider itself: first event after {direct.first_ms:.1f} ms")
            for load in (Load(1, 5000, 0), Load(50, 500, 50), Load(given.streams, 250, 50)):
                print(
                    f"\n{load.streams} streams of {load.events} events, {load.rate or 'as many as come'} a second"
                )
                for name, port, process, path in rows:
                    cost = asyncio.run(measured(port, process, load, path))
                    print(
                        f"  {name:34} {cost.cpu_us:8.1f} µs an event   first {cost.first_ms:8.1f} ms"
                        f"   {cost.kilobytes:7.1f} kB a stream   {cost.whole} of {load.streams} whole",
                        flush=True,
                    )
        finally:
            for each in started:
                each.send_signal(signal.SIGTERM)
            for each in started:
                each.wait(20)


if __name__ == "__main__":
    main()
