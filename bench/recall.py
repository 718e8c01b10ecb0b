"""What a search by meaning costs, without the embedding: vectors in SQLite, all of one owner, beside
an exact comparison of all of them.

    python bench/recall.py                10,000 and 100,000 messages, some four minutes
    python bench/recall.py 10000 postgresql://…

Texts have vectors of 384 numbers around some thousand directions, so that each query has near ones.
The bounds are 15 ms for 10,000 and 120 ms for 100,000 messages at p95, and 98 of 100 of the four
nearest. Times are of the CPU, since those of a shared machine vary; `vectors` is how many are read
and compared exactly.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from heapq import nlargest
from operator import mul
from random import Random

from dragoman.memory import Embedded, Memory, VectorQuery
from dragoman.memory.sql_store import SqlStore
from dragoman.memory.store import Batch, ThreadChange
from dragoman.message import Message

DIMENSIONS, DIRECTIONS, QUERIES, TOP = 384, 1000, 40, 4
BOUNDS = {10_000: 15.0, 100_000: 120.0}
"""Messages → milliseconds at p95."""


class Texts:
    """Messages with vectors, and the nearest of them by comparing all."""

    def __init__(self, count: int) -> None:
        self.random = Random(7)
        self.count = count
        self.directions = [
            [self.random.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(DIRECTIONS)
        ]
        self.vectors: dict[str, array[float]] = {}

    def near(self) -> list[float]:
        """Returns a vector near one of the directions: cosines of some 0.8."""
        direction = self.random.choice(self.directions)
        numbers = [number + self.random.gauss(0, 0.5) for number in direction]
        length = sum(map(mul, numbers, numbers)) ** 0.5
        return [number / length for number in numbers]

    async def write(self, store: SqlStore) -> None:
        """Saves the messages in threads of a hundred, and their vectors."""
        now, change = datetime.now(UTC), ThreadChange(resource_id="ann")
        for thread in range(self.count // 100):
            messages = [
                Message.user(f"text {number}").replace(id=f"text {number}")
                for number in range(100 * thread, 100 * thread + 100)
            ]
            batch = Batch(thread_id=f"t{thread}", messages=tuple(messages), at=now, change=change)
            await store.save(batch)
        while bodies := await store.vectors.missing("bench", limit=2000):
            vectors = [self.near() for _ in bodies]
            await store.vectors.upsert(
                "bench",
                [
                    Embedded(body.key, [vector])
                    for body, vector in zip(bodies, vectors, strict=True)
                ],
            )
            for body, vector in zip(bodies, vectors, strict=True):
                self.vectors[body.text] = array("f", vector)

    def nearest(self, wanted: Sequence[float]) -> set[str]:
        """Returns the ids of the nearest messages, exactly."""
        scores = {name: sum(map(mul, wanted, vector)) for name, vector in self.vectors.items()}
        return {*nlargest(TOP, scores, key=scores.__getitem__)}


async def measure(url: str, count: int) -> None:
    texts = Texts(count)
    async with Memory(url) as memory:
        store = memory.store
        assert isinstance(store, SqlStore)
        await texts.write(store)
        seconds: list[float] = []
        matched = 0
        for _ in range(QUERIES):
            wanted = texts.near()
            query = VectorQuery(model="bench", vector=wanted, resource_id="ann", limit=TOP)
            began = time.process_time()
            matches = await store.vectors.query(query)
            seconds.append(1000 * (time.process_time() - began))
            matched += len(texts.nearest(wanted) & {match.message_id for match in matches})
        read = store.vectors.vectors_read // QUERIES
    seconds.sort()
    middle, high = seconds[QUERIES // 2], seconds[QUERIES * 95 // 100]
    bound = BOUNDS.get(count)
    print(
        f"{count:>8} messages  p50 {middle:6.1f} ms  p95 {high:6.1f} ms"
        f"{f' (bound {bound:.0f})' if bound else ''}  recall@{TOP} {matched / (TOP * QUERIES):.3f}"
        f"  vectors {read}",
        flush=True,
    )


def table(counts: Sequence[int] = (10_000,)) -> None:
    """Prints a row for each number of messages."""
    print("\nms a search by meaning, in SQLite")
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(f"sqlite:///{folder}/bench.db", count))


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdecimal()]
    urls = [argument for argument in sys.argv[1:] if "://" in argument]
    if urls:
        for number in numbers or [10_000]:
            asyncio.run(measure(urls[0], number))
    else:
        table(numbers or [*BOUNDS])
