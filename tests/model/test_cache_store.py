"""Where answers are kept: in memory, and in a file of SQLite that processes share."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent
from dragoman.errors import SettingsError
from dragoman.model import CacheStore, cache
from dragoman.model.cache_store import MemoryCacheStore, open_store
from support.model import PROVIDER, Script, says

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/answers.db"


async def test_what_was_put_is_there(where: str) -> None:
    store = open_store(where, 10)
    assert isinstance(store, CacheStore)
    assert await store.get("a") is None
    await store.put("a", b"\x00one")
    await store.put("b", b"two")
    await store.put("a", b"three")
    assert [await store.get(key) for key in "abc"] == [b"three", b"two", None]
    await store.close()


async def test_the_least_recently_used_is_forgotten(where: str) -> None:
    store = open_store(where, 3)
    for key in "abc":
        await store.put(key, key.encode())
    await store.get("a")
    await store.put("d", b"d")
    assert [await store.get(key) for key in "abcd"] == [b"a", None, b"c", b"d"]
    await store.close()


async def test_many_at_once(where: str) -> None:
    store = open_store(where, 100)
    await asyncio.gather(*[store.put(str(number % 10), b"%d" % number) for number in range(60)])
    assert all([await store.get(str(number)) for number in range(10)])
    await store.close()


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


async def test_a_file_is_its_owner_s_alone_and_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    first, second = open_store(f"sqlite:///{path}", 10), open_store(f"sqlite:///{path}", 10)
    await first.put("a", b"one")
    assert modes(tmp_path) == {0o600}
    assert await second.get("a") == b"one"
    await first.close()
    await second.close()
    assert await first.get("a") == b"one"  # opened again
    await first.close()


async def test_an_agent_answers_from_a_file(tmp_path: Path) -> None:
    scripts = []
    for _ in range(2):
        async with cache(f"sqlite:///{tmp_path}/answers.db") as layer:
            scripts.append(Script(says("Yes.", usage=3)))
            agent = Agent(PROVIDER, middleware=[layer, scripts[-1]], api_key="k")
            assert (await agent.send("hi")).output == "Yes."
    assert [len(script.requests) for script in scripts] == [1, 0]


async def test_from_several_event_loops(tmp_path: Path) -> None:
    layer = cache(f"sqlite:///{tmp_path}/answers.db")
    agent = Agent(PROVIDER, middleware=[layer, script := Script(says("Yes."))], api_key="k")
    for _ in range(3):
        assert await asyncio.to_thread(lambda: asyncio.run(agent.send("hi")).output) == "Yes."
    assert len(script.requests) == 1
    await layer.close()


async def test_what_is_no_database_is_a_miss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "answers.db").write_bytes(b"this is a letter, and no database" * 100)
    agent = Agent(
        PROVIDER,
        middleware=[cache(f"sqlite:///{tmp_path}/answers.db"), script := Script(says("Yes."))],
    )
    assert [(await agent.send("hi")).output for _ in range(2)] == ["Yes.", "Yes."]
    assert len(script.requests) == 2
    assert len([record for record in caplog.records if "cache" in record.name]) == 1


async def test_rows_that_are_damaged_are_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    layer = cache(f"sqlite:///{path}")
    agent = Agent(PROVIDER, middleware=[layer, script := Script(says("Yes."))])
    await agent.send("hi")
    await layer.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE dragoman_answers_1 SET value = substr(value, 1, 40)")
    for _ in range(2):
        assert (await agent.send("hi")).output == "Yes."
    assert len(script.requests) == 2
    await layer.close()


def test_without_the_extra_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(SettingsError, match=r"pip install '\.\[sql\]' in "):
        open_store(f"sqlite:///{tmp_path}/answers.db", 10)
    assert isinstance(open_store("memory:", 10), MemoryCacheStore)


def test_making_one_opens_nothing(tmp_path: Path) -> None:
    store: Any = cache(f"sqlite:///{tmp_path}/answers.db").store
    assert isinstance(store, CacheStore)
    assert list(tmp_path.iterdir()) == []


PROCESS = """
import asyncio, sys
from dragoman.model.cache_store import open_store

async def main() -> None:
    store = open_store(sys.argv[1], 40)
    for number in range(60):
        await store.put(f"{sys.argv[2]} {number}", b"x" * 1000)
        await store.get("shared")
        await store.put("shared", sys.argv[2].encode())
    await store.close()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_processes_share_a_file(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path}/answers.db"
    command = [sys.executable, "-c", PROCESS, where]
    running = [await asyncio.create_subprocess_exec(*command, name) for name in ("a", "b", "c")]
    assert [await process.wait() for process in running] == [0, 0, 0]
    store = open_store(where, 40)
    assert await store.get("shared") in (b"a", b"b", b"c")
    await store.close()
    with sqlite3.connect(tmp_path / "answers.db") as connection:
        assert connection.execute("SELECT count(*) FROM dragoman_answers_1").fetchone() == (40,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
