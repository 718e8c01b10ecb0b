"""Processes that are killed while they save and embed."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from dragoman.memory import Memory, Recall
from dragoman.memory.sql_store import SqlStore
from support.embedder import WordEmbedder
from support.memory import acknowledged, write_and_index

KILLS = int(os.environ.get("DRAGOMAN_KILLS", "10"))
"""How often a process is killed."""
TORN = {
    "orphans": "SELECT count(*) FROM dragoman_vectors v "
    "WHERE NOT EXISTS (SELECT 1 FROM dragoman_bodies b WHERE b.body_id = v.body_id)",
    "torn": "SELECT count(*) FROM dragoman_bodies b WHERE (embedded = 1) <> "
    "EXISTS (SELECT 1 FROM dragoman_vectors v WHERE v.body_id = b.body_id)",
    "doubles": "SELECT count(*) FROM (SELECT body_id FROM dragoman_vectors "
    "GROUP BY body_id, chunk HAVING count(*) > 1) AS d",
    "waiting": "SELECT count(*) FROM dragoman_bodies WHERE embedded = 0",
}

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900)]


async def count_faults(memory: Memory) -> dict[str, int]:
    def read(connection: Connection) -> dict[str, int]:
        return {
            name: connection.execute(text(statement)).scalar_one()
            for name, statement in TORN.items()
        }

    assert isinstance(memory.store, SqlStore)
    return await memory.store.database.read(read)


@pytest.mark.service
async def test_no_vector_is_lost_torn_or_orphaned_by_kill_9(
    shared_url: str, tmp_path: Path
) -> None:
    """Two processes save, embed and are killed at random, while a third deletes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.memory", "dragoman.memory.sql_store"])
    recall = Recall(WordEmbedder(dimensions=32))
    async with Memory(shared_url, recall=recall) as memory:
        await memory.save_thread("there")

        async def kill_once(seed: int) -> None:
            place, name = tmp_path / f"acknowledged-{seed}", f"w{seed}"
            writer = context.Process(
                target=write_and_index, args=(shared_url, str(place), name, 100_000), daemon=True
            )
            writer.start()
            while not acknowledged(place):
                assert writer.is_alive()
                await asyncio.sleep(0.002)
            await asyncio.sleep(random.Random(seed).uniform(0, 0.4))
            writer.kill()
            await asyncio.to_thread(writer.join)
            messages = (await memory.recall(name, per_page=None)).items
            assert len(messages) >= acknowledged(place)
            faults = await count_faults(memory)
            assert {**faults, "waiting": 0} == dict.fromkeys(TORN, 0)
            if seed % 2:
                await memory.delete_messages([message.id or "" for message in messages[::2]], name)

        for seed in range(0, KILLS, 2):
            await asyncio.gather(kill_once(seed), kill_once(seed + 1))
        await memory.index()
        assert await count_faults(memory) == dict.fromkeys(TORN, 0)
