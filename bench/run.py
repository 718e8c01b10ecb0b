"""What the layer costs on every wire: CPU per streamed chunk, beside a loop by hand and the provider's own client.

    make bench                        all wires
    make bench ARGS="cohere google"   some of them

Canned answers come from a server process on a free loopback port. All columns are taken in turn, several rounds, and the
best of each is shown: times on a shared machine vary, so compare the ratios.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import aiohttp
import by_hand
import canned
import official
from server import serving

from dragoman import Agent, tool, wires

ROUNDS, SAMPLE_SECONDS = 7, 0.06
READ_BYTES = 65536
PROVIDERS = {"openai_chat": "openai", "openai_responses": "openai-responses"}
"""Wire → its provider, where that has another name."""

Work = Callable[[], Awaitable[int]]


@tool
async def look(place: str, number: int) -> str:
    """Looks."""
    return f"{place} {number}"


async def decoded_by_hand(wire: str, reads: list[bytes]) -> int:
    reader, rest, seen = by_hand.READERS[wire], b"", 0
    for data in reads:
        *complete, rest = (rest + data).split(reader.separator)
        for _ in reader.texts(complete):
            seen += 1
    return seen


async def decoded(wire: str, reads: list[bytes]) -> int:
    decoder, seen = wires.get(wire).decoder(), 0
    for data in reads:
        seen += len(decoder.feed(data))
    return seen - len(decoder.feed(b"")) and canned_count(seen)


def canned_count(seen: int) -> int:
    """Events are a few more than texts: starts and ends."""
    return len(canned.TEXT) if len(canned.TEXT) <= seen <= len(canned.TEXT) + 6 else seen


async def count(texts: AsyncIterator[str]) -> int:
    return sum([1 async for text in texts if text])


async def through(agent: Agent[None]) -> int:
    return sum([1 async for chunk in agent.send_stream("Tell me.") if chunk.output])


async def cpu(work: Work, expected: int) -> float:
    """Seconds of CPU, user and system, of one call."""
    times, before, spent = 0, _spent(), 0.0
    while spent < SAMPLE_SECONDS:
        if (seen := await work()) != expected:
            sys.exit(f"saw {seen} chunks of {expected}")
        times, spent = times + 1, _spent() - before
    return spent / times


def _spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def best(columns: Mapping[str, Work], expected: int) -> dict[str, float]:
    """The best of several rounds, in which the columns take turns."""
    for work in columns.values():
        await work()  # warms up
    gc.collect()
    rounds = [{name: await cpu(work, expected) for name, work in columns.items()} for _ in range(ROUNDS)]
    return {name: min(one[name] for one in rounds) for name in columns}


def show(name: str, seconds: Mapping[str, float], unit: float) -> None:
    hand, ours, *others = (value * unit for value in seconds.values())
    shown = f"{name:<18}{hand:>10.2f}{ours:>10.2f}{ours / hand:>8.2f} ×"
    for other in others:
        shown += f"{other:>10.1f}{other / ours:>8.1f} ×"
    print(shown, flush=True)


async def main(base: str, chosen: list[str]) -> None:
    chunk, agents = 1e6 / len(canned.TEXT), list[Agent[None]]()

    def agent(wire: str, kind: str, **how: object) -> Agent[None]:
        model = f"{PROVIDERS.get(wire, wire)}:m"
        agents.append(Agent(model, base_url=f"{base}/{wire}/{kind}", api_key="k", **how))  # pyright: ignore
        return agents[-1]

    print(f"{'bytes in memory':<18}{'by hand':>10}{'dragoman':>10}")
    for wire in chosen:
        body = b"".join(canned.WIRES[wire](canned.TEXT))
        reads = [body[start : start + READ_BYTES] for start in range(0, len(body), READ_BYTES)]
        columns: dict[str, Work] = {
            "hand": lambda: decoded_by_hand(wire, reads),  # noqa: B023
            "ours": lambda: decoded(wire, reads),  # noqa: B023
        }
        show(wire, await best(columns, len(canned.TEXT)), chunk)
    print(f"\n{'µs a chunk':<18}{'by hand':>10}{'dragoman':>10}{'':>10}{'client':>10}")
    async with aiohttp.ClientSession() as session:
        for wire in chosen:
            one, url = agent(wire, "text"), f"{base}/{wire}/text"
            columns = {
                "hand": lambda: count(by_hand.stream(session, wire, url)),  # noqa: B023
                "ours": lambda: through(one),  # noqa: B023
                "client": lambda: count(official.STREAMS[wire](url)),  # noqa: B023
            }
            show(wire, await best(columns, len(canned.TEXT)), chunk)
        print(f"\n{'ms':<18}{'by hand':>10}{'dragoman':>10}")
        if "openai_chat" in chosen:
            one, url = agent("openai_chat", "tool", tools=[look]), f"{base}/openai_chat/tool"
            columns = {"hand": lambda: by_hand.tool_round(session, url), "ours": lambda: through(one)}
            show("tool round", await best(columns, 50), 1e3)
        for wire in chosen:
            one, url = agent(wire, "short"), f"{base}/{wire}/short"
            columns = {
                "hand": lambda: count(by_hand.stream(session, wire, url)),  # noqa: B023
                "ours": lambda: through(one),  # noqa: B023
            }
            show(f"short {wire}"[:18], await best(columns, 3), 1e3)
    for used in agents:
        await used.close()


if __name__ == "__main__":
    with serving() as base_url:
        asyncio.run(main(base_url, sys.argv[1:] or list(canned.WIRES)))
