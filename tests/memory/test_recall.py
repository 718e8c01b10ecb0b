"""Messages that are found by their meaning: rules R-08, R-10 and R-11."""

from __future__ import annotations

import pytest

from dragoman import Message
from dragoman.memory import Memory, Recall
from support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

SAID = ["The boiler is a Worcester.", "My cat is called Tom.", "The boiler leaks in winter."]


async def test_smoke(url: str) -> None:
    embedder = WordEmbedder()
    async with Memory(url, recall=Recall(embedder, threshold=0.3)) as memory:
        await memory.save([Message.user(text) for text in SAID], "t", resource_id="ann")
        hits = await memory.similar("boiler", resource_id="ann")
        assert {hit.message.text for hit in hits} == {SAID[0], SAID[2]}
        assert await memory.index() == 0
        await memory.delete_thread("t")
        assert not await memory.similar("boiler")
