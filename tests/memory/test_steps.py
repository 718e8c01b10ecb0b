"""How often a run goes to a thread of the database: each way there and back costs as much as the
statements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from dragoman import Agent, Message
from dragoman.errors import HistoryError
from dragoman.memory import Memory
from dragoman.memory.sql_store import SqlStore
from dragoman.sql.work_queue import WorkQueue
from dragoman.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def count_steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Returns how many pieces of work came to databases since it was last asked."""
    posted: list[object] = []
    post = WorkQueue.post

    def count(self: WorkQueue, work: object) -> object:
        posted.append(work)
        return post(self, work)

    monkeypatch.setattr(WorkQueue, "post", count)

    def steps() -> int:
        number = len(posted)
        posted.clear()
        return number

    return steps


@pytest.mark.parametrize("tokens", [None, 10_000])
async def test_a_run_reads_its_thread_in_one_step_and_writes_prompt_and_answer(
    tmp_path: Path, count_steps: Callable[[], int], tokens: int | None
) -> None:
    async with Memory(f"sqlite:///{tmp_path}/chats.db", tokens=tokens) as memory:
        agent = Agent(ScriptedModel(lambda request: f"{len(request.messages)}"), memory=memory)
        for length in (1, 3, 5, 7):
            result = await agent.send("How many?", thread_id="t", resource_id="ann")
            assert result.output == f"{length}"
            assert count_steps() == 3


async def test_a_page_is_read_in_one_step(tmp_path: Path, count_steps: Callable[[], int]) -> None:
    async with Memory(f"sqlite:///{tmp_path}/chats.db") as memory:
        said = [Message.user("Hi."), Message.model("Ho."), Message.user("Well?")]
        saved = await memory.save(said, "t", resource_id="ann")
        assert count_steps() == 1
        page = await memory.recall("t", resource_id="ann", per_page=2, newest_first=True)
        assert ([*page.items], page.has_more) == (saved[:0:-1], True)
        page = await memory.recall("t", page=1, per_page=2)
        assert ([*page.items], page.has_more) == (saved[2:], False)
        assert count_steps() == 2
        assert (await memory.recall("t", per_page=0)).items == ()
        with pytest.raises(HistoryError, match="No thread found"):
            await memory.recall("t", resource_id="bob")


async def test_damage_is_told_to_the_owner_alone(tmp_path: Path) -> None:
    async with Memory(f"sqlite:///{tmp_path}/chats.db") as memory:
        agent = Agent(ScriptedModel(lambda _: "Ho."), memory=memory)
        await agent.send("Hi.", thread_id="t", resource_id="ann")
        store = memory.store
        assert isinstance(store, SqlStore)
        await store.database.write(
            lambda connection: connection.execute(text("UPDATE dragoman_bodies SET body = '{'"))
        )
        with pytest.raises(HistoryError, match="damaged"):
            await agent.send("Hi.", thread_id="t", resource_id="ann")
        with pytest.raises(HistoryError) as refused:
            await agent.send("Hi.", thread_id="t", resource_id="bob")
        assert "damaged" not in str(refused.value)


async def test_a_thread_that_was_cut_is_read_from_the_cut(tmp_path: Path) -> None:
    async with Memory(f"sqlite:///{tmp_path}/chats.db", last_messages=4) as memory:
        for number in range(9):
            said = [Message.user(f"{number}?"), Message.model(f"{number}.")]
            await memory.save(said, "t", resource_id="ann")
        reading = await memory.read_thread("t")
        assert reading.thread is not None
        at_once = await memory.load_newest(reading)
        reading.trim(at_once.messages[0].position)
        rest = (await memory.load_newest(reading)).messages
        assert (
            rest == (await memory.load_newest(await memory.read_thread("t"))).messages[-len(rest) :]
        )
