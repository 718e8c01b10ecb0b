"""1,000 slow streams at once for `bench/goals.py`: what one holds, and how late the loop is.

python bench/peers/slow_streams.py by_hand|ours BASE_URL

The server sends 200 pieces of each stream, one in 20 ms.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import measure

STREAMS, PIECES = 1000, 200
Streams = Callable[[], AsyncIterator[str]]


def resident() -> float:
    """Returns the kB of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4.096


async def by_hand(base: str, stack: AsyncExitStack) -> Streams:
    import aiohttp

    sys.path.insert(0, str(Path(__file__).parents[1]))
    import by_hand as floor

    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    session = aiohttp.ClientSession(connector=connector, timeout=timeout)
    await stack.enter_async_context(session)
    return lambda: floor.stream(session, "openai_chat", f"{base}/openai_chat/slow")


async def ours(base: str, stack: AsyncExitStack) -> Streams:
    from dragoman import Agent

    agent = Agent("openai:m", base_url=f"{base}/openai_chat/slow", api_key="k")
    stack.push_async_callback(agent.close)

    async def texts() -> AsyncIterator[str]:
        async for chunk in agent.send_stream(measure.PROMPT):
            if chunk.output:
                yield chunk.output

    return texts


async def main(name: str, base: str) -> None:
    async with AsyncExitStack() as stack:
        stream = await {"by_hand": by_hand, "ours": ours}[name](base, stack)

        async def count() -> int:
            return len([text async for text in stream()])

        assert await count() == PIECES
        gc.collect()
        before, peak, worst = resident(), 0.0, 0.0
        began = measure.spent()
        running = asyncio.gather(*[count() for _ in range(STREAMS)])
        looks = 0
        while not running.done():
            asleep = time.perf_counter()
            await asyncio.sleep(0.01)
            worst = max(worst, time.perf_counter() - asleep - 0.01)
            looks += 1
            if looks % 10 == 0:
                peak = max(peak, resident())
        assert set(running.result()) == {PIECES}
        measure.tell("streams kB", (peak - before) / STREAMS)
        measure.tell("streams lag", worst * 1e3)
        measure.tell("streams CPU", (measure.spent() - began) / STREAMS / PIECES * 1e6)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
