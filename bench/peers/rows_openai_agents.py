"""The row of `bench/goals.py` that OpenAI's agents SDK has: a turn of its session on SQLite.

PYTHON bench/peers/rows_openai_agents.py      PYTHON: one that has openai-agents
"""

from __future__ import annotations

import asyncio
import tempfile
from typing import Any

import measure
from agents import SQLiteSession


async def main(folder: str) -> None:
    session = SQLiteSession("t", f"{folder}/theirs.db")
    history: list[Any] = measure.chat_history()
    await session.add_items(history)

    async def turn() -> None:
        assert len(await session.get_items(limit=10)) == 10
        question, answer = measure.ADDED
        added: list[Any] = [
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
        ]
        await session.add_items(added)

    measure.tell("memory turn", await measure.best_async(turn))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(main(place))
