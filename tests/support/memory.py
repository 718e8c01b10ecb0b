"""Whole processes, for the tests of stores that outlive one."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dragoman.memory import Memory, Recall, WorkingMemory
from dragoman.message import DataPart, Message
from support.embedder import WordEmbedder


def message(name: str, number: int) -> Message:
    """A message that tells of itself what it must be."""
    data = DataPart(f"{name}{number % 7}".encode() * 50, "image/png")
    return Message.user(f"{name} {number} " + "words " * (number % 50), data).replace(
        id=f"{name}-{number}"
    )


def write(url: str, place: str, name: str, thread_id: str, saves: int) -> None:
    """Saves messages, two at once, and notes after each save how many are acknowledged."""
    asyncio.run(_write(url, Path(place), name, thread_id, saves))


async def _write(url: str, place: Path, name: str, thread_id: str, saves: int) -> None:
    async with Memory(url) as memory:
        with place.open("a", buffering=1) as noted:
            for number in range(0, 2 * saves, 2):
                await memory.save(
                    [message(name, number), message(name, number + 1)], thread_id, resource_id="ann"
                )
                noted.write(f"{number + 2}\n")


def acknowledged(place: Path) -> int:
    """How many messages are acknowledged by now."""
    if not place.exists():
        return 0
    lines = place.read_text().split("\n")[
        :-1
    ]  # behind the last line break stands a line that is not whole
    return int(lines[-1]) if lines else 0


def merge(url: str, name: str, count: int) -> None:
    """Merges fields into one working memory, one after the other."""
    asyncio.run(_merge(url, name, count))


async def _merge(url: str, name: str, count: int) -> None:
    async with Memory(url, working=WorkingMemory(schema={"type": "object"})) as memory:
        for number in range(count):
            await memory.merge_working({f"{name}{number}": number}, resource_id="ann")


def write_and_index(url: str, place: str, name: str, saves: int) -> None:
    """Saves messages and embeds what has no vector, at once, and notes after each save how many
    are acknowledged."""
    asyncio.run(_write_and_index(url, Path(place), name, saves))


async def _write_and_index(url: str, place: Path, name: str, saves: int) -> None:
    memory = Memory(url, recall=Recall(WordEmbedder(dimensions=32)))

    async def index() -> None:
        while True:
            await memory.index(5)
            await asyncio.sleep(0)

    async with memory:
        indexing = asyncio.create_task(index())
        with place.open("a", buffering=1) as noted:
            for number in range(0, 2 * saves, 2):
                new = [message(name, number), message(name, number + 1)]
                await memory.save(new, name, resource_id="ann")
                noted.write(f"{number + 2}\n")
        indexing.cancel()
