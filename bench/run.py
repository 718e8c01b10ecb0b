"""What the layer costs: CPU per streamed chunk, per tool round and per short answer, beside aiohttp and msgspec by hand.

    make bench            both in turn, several rounds, the best of each and their ratio

One server process serves canned answers on a free loopback port. Times on a shared machine vary; compare the ratios.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any

import aiohttp
import msgspec

from dragoman import Agent, tool

CHUNKS, ROUNDS, CALLS = 1000, 7, 3
WORDS = ["The ", "quic", "k br", "own ", "fox ", "jump", "s ov", "er t", "he l", "azy ", "dog."]


# the server


def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice], "usage": None}).encode() + b"\n\n"


def stream(*chunks: bytes) -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in (*chunks, b"data: [DONE]\n\n"))
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        + body
        + b"0\r\n\r\n"
    )


def calls() -> list[bytes]:
    out = []
    for index in range(CALLS):
        name = {
            "index": index,
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": "look", "arguments": ""},
        }
        out.append(chunk({"tool_calls": [name]}))
        text = json.dumps({"place": "somewhere over the rainbow", "number": index})
        for start in range(0, len(text), 3):
            out.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": text[start : start + 3]}}]}))
    return [*out, chunk({}, "tool_calls")]


TEXT = [chunk({"content": WORDS[i % len(WORDS)]}) for i in range(CHUNKS)]
ANSWERS = {
    "/text": stream(*TEXT, chunk({}, "stop")),
    "/tool": stream(*calls()),
    "/done": stream(*TEXT[:50], chunk({}, "stop")),
    "/short": stream(*TEXT[:3], chunk({}, "stop")),
}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode().partition("/v1")[0]
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            body = await reader.readexactly(length)
            writer.write(ANSWERS["/done" if path == "/tool" and b'"role":"tool"' in body else path])
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def serve(pipe: Connection) -> None:
    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


# by hand


class Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str = ""


class Call(msgspec.Struct):
    index: int
    id: str | None = None
    function: Function = Function()


class Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[Call] = []


class Choice(msgspec.Struct):
    delta: Delta


class Chunk(msgspec.Struct):
    choices: list[Choice] = []


decode = msgspec.json.Decoder(Chunk).decode


async def read(session: aiohttp.ClientSession, url: str, messages: list[Any]) -> AsyncIterator[Delta]:
    body = msgspec.json.encode({"model": "m", "messages": messages, "stream": True})
    async with session.post(url + "/v1/chat/completions", data=body) as response:
        rest = b""
        async for data in response.content.iter_any():
            *events, rest = (rest + data).split(b"\n\n")
            for event in events:
                if event != b"data: [DONE]":
                    for choice in decode(event[6:]).choices:
                        yield choice.delta


async def by_hand(session: aiohttp.ClientSession, url: str) -> int:
    messages: list[Any] = [{"role": "user", "content": "Tell me."}]
    while True:
        seen, found = 0, dict[int, list[str]]()
        async for delta in read(session, url, messages):
            seen += bool(delta.content)
            for call in delta.tool_calls:
                found.setdefault(call.index, []).append(call.function.arguments)
        if not found:
            return seen
        made = [
            {"id": str(i), "type": "function", "function": {"name": "look", "arguments": "".join(a)}}
            for i, a in found.items()
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": made})
        values = await asyncio.gather(*[look_(**msgspec.json.decode("".join(a))) for a in found.values()])
        messages += [{"role": "tool", "tool_call_id": str(i), "content": value} for i, value in enumerate(values)]


async def look_(place: str, number: int) -> str:
    return f"{place} {number}"


# through every layer


@tool
async def look(place: str, number: int) -> str:
    """Looks."""
    return f"{place} {number}"


async def through(agents: dict[str, Agent[None]], url: str) -> int:
    if url not in agents:
        agents[url] = Agent(
            "openai:m", base_url=url + "/v1", api_key="k", tools=[look] if url.endswith("/tool") else ()
        )
    seen = 0
    async for one in agents[url].send_stream("Tell me."):
        seen += bool(one.output)
    return seen


async def cpu(work: Callable[[], Awaitable[int]], expected: int, times: int) -> float:
    """Seconds of CPU, user and system, of one call."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(times):
        assert await work() == expected
    after = resource.getrusage(resource.RUSAGE_SELF)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / times


async def main(port: int) -> None:
    base, agents = f"http://127.0.0.1:{port}", dict[str, Agent[None]]()
    print(f"{'':<14}{'by hand':>12}{'dragoman':>12}{'ratio':>8}")
    async with aiohttp.ClientSession() as session:
        for path, expected, times, unit, name in (
            ("/text", CHUNKS, 20, 1e6 / CHUNKS, "µs/chunk"),
            ("/tool", 50, 60, 1e3, "ms/tool round"),
            ("/short", 3, 150, 1e3, "ms/short"),
        ):
            hand, ours = [], []
            for _ in range(ROUNDS):
                hand.append(await cpu(lambda: by_hand(session, base + path), expected, times))  # noqa: B023
                ours.append(await cpu(lambda: through(agents, base + path), expected, times))  # noqa: B023
            print(
                f"{name:<14}{min(hand) * unit:>12.2f}{min(ours) * unit:>12.2f}{min(ours) / min(hand):>8.2f}", flush=True
            )
    for agent in agents.values():
        await agent.close()


if __name__ == "__main__":
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    try:
        asyncio.run(main(ours.recv()))
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        server.terminate()
        server.join()
