"""What the layer costs on every wire, beside a loop by hand and the provider's own client.

    make bench                        all wires, some two minutes
    make bench ARGS="cohere google"   some of them

Canned answers come from a server process on a free loopback port. All columns are taken in turn,
several rounds, and the best of each is shown: times on a shared machine vary, so compare the
ratios. The numbers stay in `numbers.json`, and the charts of `docs/performance.md` are drawn from
them.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import aiohttp
import by_hand
import canned
import charts
import convert
import official
import recall
import turns
from server import serving

from dragoman import Agent, tool, wires
from dragoman.event import PartDelta

ROUNDS, SAMPLE_SECONDS = 7, 0.06
READ_BYTES = 65536
PROVIDERS = {"openai_chat": "openai", "openai_responses": "openai-responses"}
"""Wire → its provider, where that has another name."""
PROMPT = "Tell me."

Work = Callable[[], Awaitable[int]]


@tool
async def look(place: str, number: int) -> str:
    """Looks."""
    return f"{place} {number}"


async def split_by_hand(wire: str, reads: list[bytes]) -> int:
    """Bytes in memory → texts, by hand."""
    reader, rest, seen = by_hand.READERS[wire], b"", 0
    for data in reads:
        *complete, rest = (rest + data).split(reader.separator)
        seen += len(list(reader.texts(complete)))
    return seen


async def decoded(wire: str, reads: list[bytes]) -> int:
    """Bytes in memory → events."""
    decoder, seen = wires.get(wire).decoder(), 0
    for data in reads:
        seen += list(map(type, decoder.feed(data))).count(PartDelta)
    return seen


async def count(stream: Callable[[], AsyncIterator[str]]) -> int:
    """How many texts a stream gives."""
    return sum([1 async for text in stream() if text])


async def through(agent: Agent[None]) -> int:
    """How many texts an agent's stream gives."""
    return sum([1 async for chunk in agent.send_stream(PROMPT) if chunk.output])


def spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def cpu(work: Work, expected: int) -> float:
    """Seconds of CPU, user and system, of one call."""
    times, began = 0, spent()
    while spent() - began < SAMPLE_SECONDS:
        if (seen := await work()) != expected:
            sys.exit(f"saw {seen} chunks instead of {expected}")
        times += 1
    return (spent() - began) / times


async def show(
    name: str, expected: int, unit: float, hand: Work, ours: Work, *theirs: Work, table: str
) -> None:
    """A row: the best of several rounds, in which the columns take turns. It is kept for the
    charts."""
    columns = (hand, ours, *theirs)
    for work in columns:
        await work()  # warms up
    gc.collect()
    rounds = [[await cpu(work, expected) for work in columns] for _ in range(ROUNDS)]
    floor, layer, *clients = (min(column) * unit for column in zip(*rounds, strict=True))
    numbers = {"by hand": floor, "dragoman": layer}
    charts.keep(table, name, numbers | ({"client": clients[0]} if clients else {}))
    row = f"{name:<24}{floor:>10.2f}{layer:>10.2f}{layer / floor:>8.2f} ×"
    print(
        row + "".join(f"{client:>10.1f}{client / layer:>8.1f} ×" for client in clients), flush=True
    )


def title(text: str) -> str:
    print(f"\n{text:<24}{'by hand':>10}{'dragoman':>10}{'':>10}{'client':>10}")
    return text


async def main(base: str, chosen: list[str]) -> None:
    chunks, agents = len(canned.TEXT), list[Agent[None]]()

    def agent(wire: str, kind: str, **how: Any) -> Agent[None]:
        agents.append(
            Agent(
                f"{PROVIDERS.get(wire, wire)}:m",
                base_url=f"{base}/{wire}/{kind}",
                api_key="k",
                **how,
            )
        )
        return agents[-1]

    table = title("µs a chunk, in memory")
    for wire in chosen:
        body = b"".join(canned.WIRES[wire](canned.TEXT))
        reads = [body[start : start + READ_BYTES] for start in range(0, len(body), READ_BYTES)]
        columns = (partial(split_by_hand, wire, reads), partial(decoded, wire, reads))
        await show(wire, chunks, 1e6 / chunks, *columns, table=table)
    async with aiohttp.ClientSession() as session:

        def by_loop(wire: str, kind: str) -> Work:
            return partial(count, partial(by_hand.stream, session, wire, f"{base}/{wire}/{kind}"))

        table = title("µs a chunk, over HTTP")
        for wire in chosen:
            client = partial(count, partial(official.STREAMS[wire], f"{base}/{wire}/text"))
            await show(
                wire,
                chunks,
                1e6 / chunks,
                by_loop(wire, "text"),
                partial(through, agent(wire, "text")),
                client,
                table=table,
            )
        table = title("ms an answer of 3 chunks")
        for wire in chosen:
            client = partial(count, partial(official.STREAMS[wire], f"{base}/{wire}/short"))
            await show(
                wire,
                3,
                1e3,
                by_loop(wire, "short"),
                partial(through, agent(wire, "short")),
                client,
                table=table,
            )
        if "openai_chat" in chosen:
            table = title("ms a tool round")
            hand = partial(by_hand.tool_round, session, f"{base}/openai_chat/tool")
            await show(
                "openai_chat",
                50,
                1e3,
                hand,
                partial(through, agent("openai_chat", "tool", tools=[look])),
                table=table,
            )
    for used in agents:
        await used.close()


if __name__ == "__main__":
    wires_chosen = sys.argv[1:] or list(canned.WIRES)
    with serving() as base_url:
        asyncio.run(main(base_url, wires_chosen))
    charts.write_all()
    convert.table(wires_chosen)
    convert.plain_table(wires_chosen)
    turns.table(wires_chosen, PROVIDERS)
    recall.table()
