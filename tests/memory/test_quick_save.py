"""What is written without SQLAlchemy is what the store writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dragoman import DataPart, Message, TextPart, ToolCallPart, ToolResultPart
from dragoman.errors import StoreError
from dragoman.memory import Batch, Memory, ThreadChange
from dragoman.memory.quick_save import save_quickly
from dragoman.message import Role

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
FILE = DataPart(b"\x89PNG", "image/png")


def batch(thread: str, *messages: Message, at: datetime = AT) -> Batch:
    change = ThreadChange(title_if_empty="Hello", metadata={"unnamed": True})
    return Batch(thread_id=thread, messages=messages, at=at, change=change)


BATCHES = [
    batch(
        "a",
        Message(Role.USER, (TextPart("hi"), FILE), id="1", created_at=AT),
        Message(Role.MODEL, (ToolCallPart("c", "look", {"x": 1}),), id="2", turn="2"),
        Message(Role.USER, (ToolResultPart("c", "look", "é \x00"),), id="3"),
        Message(Role.MODEL, (TextPart("yes"),), id="4", created_at=AT),
    ),
    batch("b", Message(Role.USER, (TextPart("hi"), FILE), id="1")),
    batch("a", Message(Role.USER, (TextPart("  "),), id="5", turn="t"), at=AT.replace(hour=4)),
    batch("a", Message(Role.MODEL, (TextPart("yes"),), id="6")),
]


async def make_file(path: Path, *batches: Batch) -> None:
    async with Memory(f"sqlite:///{path}") as memory:
        await memory.thread("none")
        for each in batches:
            await memory.store.save(each)


def dump(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for (name,) in names
        }


@pytest.mark.anyio
async def test_the_rows_are_those_of_the_store(tmp_path: Path) -> None:
    slow, quick = tmp_path / "slow.db", tmp_path / "quick.db"
    await make_file(slow, *BATCHES)
    await make_file(quick)
    assert all(save_quickly(quick, each) for each in BATCHES)
    tables = dump(slow)
    assert dump(quick) == tables
    assert len(tables["dragoman_messages"]) == 7
    async with Memory(f"sqlite:///{quick}") as memory:
        page = await memory.recall("a")
        assert page.items[0].content[1] == FILE
        assert [found.message.id for found in (await memory.search("YES")).items] == ["6", "4"]


@pytest.mark.anyio
async def test_what_is_not_simple_is_left_to_the_store(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    assert not save_quickly(path, BATCHES[0])
    path.touch()
    assert not save_quickly(path, BATCHES[0])
    path.unlink()
    await make_file(path, BATCHES[0])
    async with Memory(f"sqlite:///{path}") as memory:
        await memory.save([Message.user("else")], "a", after="1")
    before = dump(path)
    assert not save_quickly(path, BATCHES[2])
    assert dump(path) == before
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE dragoman_memory_version SET version_num = '9999'")
    assert not save_quickly(path, BATCHES[1])


@pytest.mark.anyio
async def test_a_file_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"
    await make_file(path)
    monkeypatch.setattr("dragoman.memory.quick_save._SECONDS", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            save_quickly(path, BATCHES[0])
    path.write_bytes(b"no database at all" * 1000)
    with pytest.raises(StoreError, match="not a database"):
        save_quickly(path, BATCHES[0])
