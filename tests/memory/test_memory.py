"""Threads and messages through `Memory`: rules R-01, R-15 to R-18."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoman.errors import HistoryError, SettingsError, StoreError
from dragoman.memory import Memory, Neighbours
from dragoman.message import DataPart, Message

pytestmark = pytest.mark.anyio

START = datetime(2026, 1, 1, tzinfo=UTC)


def numbered(*numbers: int) -> list[Message]:
    return [
        Message.user(f"m{number}").replace(
            id=f"m{number}", created_at=START + timedelta(minutes=number)
        )
        for number in numbers
    ]


def texts(page: Any) -> list[str]:
    return [message.text for message in page.items]


@pytest.mark.parametrize("value", [-1, 1.5, float("nan"), float("inf"), "10", True])
@pytest.mark.parametrize("name", ["last_messages", "tokens", "remove_tokens"])
def test_r01_a_number_that_is_none_is_refused(name: str, value: Any) -> None:
    """R-01"""
    how: dict[str, Any] = {"tokens": 100} if name == "remove_tokens" else {}
    with pytest.raises(SettingsError, match="finite non-negative integer"):
        Memory(**{**how, name: value})


def test_r01_the_window_is_ten_messages_or_a_budget() -> None:
    """R-01: by default 10; 0 and False: none; a budget has no count, and frees a quarter."""
    assert Memory().window.messages == 10
    assert Memory(last_messages=0).window == Memory(last_messages=False).window
    assert Memory(last_messages=0).window.messages == 0
    budget = Memory(tokens=400).window
    assert (budget.messages, budget.tokens, budget.remove) == (None, 400, 100)
    assert Memory(tokens=400, last_messages=3, remove_tokens=0).window.messages == 3
    with pytest.raises(SettingsError, match="must not be more than tokens"):
        Memory(tokens=10, remove_tokens=11)
    with pytest.raises(SettingsError, match="give tokens"):
        Memory(remove_tokens=11)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mysql://u:secret@h/d",
        "sqlite://",
        "sqlite:///",
        "chats.db",
        "memory",
        "sqlite:////nowhere/at/all/x.db",
    ],
)
def test_a_store_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Memory(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("store", [None, 7, Memory, object()])
def test_what_is_no_store_is_named(store: Any) -> None:
    with pytest.raises(TypeError, match="store must be a URL"):
        Memory(store)


async def test_r15_a_thread_that_is_not_there_or_anothers_is_named(memory: Memory) -> None:
    """R-15, but that the error names no owner (issue J, 1.13)."""
    with pytest.raises(HistoryError, match=r"^No thread found with id t$"):
        await memory.recall("t")
    await memory.save(numbered(1), "t", resource_id="ann")
    wanted = r"^No thread found with id t$"
    with pytest.raises(HistoryError, match=wanted):
        await memory.recall("t", resource_id="bob")
    with pytest.raises(HistoryError, match=wanted):
        await memory.save(numbered(2), "t", resource_id="bob")
    assert texts(await memory.recall("t", resource_id="ann")) == ["m1"]


async def test_r16_messages_come_in_pages(memory: Memory) -> None:
    """R-16: 40 a page, from 0 on, oldest first; 0 is empty; negative is refused; all is page 0."""
    await memory.save(numbered(*range(90)), "t")
    first, last = await memory.recall("t"), await memory.recall("t", page=2)
    assert texts(first) == [f"m{n}" for n in range(40)]
    assert (first.page, first.per_page, first.has_more) == (0, 40, True)
    assert (texts(last), last.has_more) == ([f"m{n}" for n in range(80, 90)], False)
    assert texts(await memory.recall("t", per_page=3, page=1, newest_first=True)) == [
        "m86",
        "m85",
        "m84",
    ]
    everything = await memory.recall("t", per_page=None)
    assert (len(everything.items), everything.has_more) == (90, False)
    assert (await memory.recall("t", per_page=0)).items == ()
    assert not (await memory.recall("t", per_page=90)).has_more
    for wrong in (
        {"page": -1},
        {"per_page": -1},
        {"per_page": None, "page": 1},
        {"page": 1.0},
        {"per_page": True},
    ):
        with pytest.raises(HistoryError, match="page"):
            await memory.recall("t", **wrong)  # type: ignore[arg-type]


async def test_r16_dates_and_neighbours(memory: Memory) -> None:
    """R-16: a range of dates; `include` adds neighbours, none twice."""
    await memory.save(numbered(*range(20)), "t")
    page = await memory.recall(
        "t", since=START + timedelta(minutes=3), until=START + timedelta(minutes=6)
    )
    assert texts(page) == ["m3", "m4", "m5"]
    include = [
        Neighbours("m9", before=2, after=1),
        Neighbours("m2", after=1),
        Neighbours("nowhere", 1, 1),
    ]
    page = await memory.recall("t", per_page=3, include=include)
    assert texts(page) == ["m0", "m1", "m2", "m3", "m7", "m8", "m9", "m10"]
    page = await memory.recall("t", per_page=0, include=include[:1], newest_first=True)
    assert texts(page) == ["m10", "m9", "m8", "m7"]


async def test_r16_threads_come_in_pages_and_by_their_metadata(memory: Memory) -> None:
    """R-16: 100 a page; all fields must be there."""
    for number in range(101):
        await memory.save_thread(
            f"t{number}", resource_id="ann", metadata={"even": number % 2 == 0, "n": number}
        )
    page = await memory.threads(resource_id="ann")
    assert (len(page.items), page.has_more, page.items[0].id) == (100, True, "t100")
    assert [each.id for each in (await memory.threads(page=1)).items] == ["t0"]
    found = await memory.threads(metadata={"even": True, "n": 4})
    assert [each.id for each in found.items] == ["t4"]
    with pytest.raises(HistoryError, match=r"metadata\['n'\]"):
        await memory.threads(metadata={"n": [1]})  # type: ignore[dict-item]


async def test_r17_threads_and_messages_are_changed(memory: Memory) -> None:
    """R-17: metadata is merged; deleting a thread deletes its messages; deleting messages moves the
    thread's time; saving an id again replaces."""
    made = await memory.save_thread("t", title="one", metadata={"a": 1, "b": 1})
    thread = await memory.update_thread("t", metadata={"b": 2})
    assert (thread.title, thread.metadata) == ("one", {"a": 1, "b": 2})
    saved = await memory.save(numbered(1, 2, 3), "t")
    assert await memory.delete_messages(["m2"], "t") == 1
    after = await memory.thread("t")
    assert after is not None
    assert after.updated_at > thread.updated_at > made.updated_at
    await memory.save([saved[2].replace(content=Message.user("other").content)], "t")
    assert texts(await memory.recall("t")) == ["m1", "other"]
    with pytest.raises(HistoryError, match="nowhere"):
        await memory.update_messages([Message.user("x").replace(id="nowhere")], "t")
    await memory.update_messages([Message.user("x").replace(id="m1")], "t")
    assert texts(await memory.recall("t")) == ["x", "other"]
    assert await memory.delete_thread("t")
    assert await memory.thread("t") is None
    with pytest.raises(HistoryError, match="No thread found"):
        await memory.update_thread("t", title="x")
    await memory.save_thread("t")
    assert texts(await memory.recall("t")) == []


async def test_r18_a_thread_is_cloned(memory: Memory) -> None:
    """R-18"""
    with pytest.raises(HistoryError, match=r"^Source thread with id t not found$"):
        await memory.clone_thread("t")
    turn = [
        Message.model("a").replace(id="a", turn="a"),
        Message.model("b").replace(id="b", turn="a"),
    ]
    await memory.save([*numbered(1, 2), *turn], "t", resource_id="ann")
    copy = await memory.clone_thread("t")
    assert (copy.title, copy.resource_id) == ("", "ann")
    assert {*copy.metadata["clone"]} == {"sourceThreadId", "clonedAt", "lastMessageId"}
    assert (copy.metadata["clone"]["sourceThreadId"], copy.metadata["clone"]["lastMessageId"]) == (
        "t",
        "b",
    )
    messages = (await memory.recall(copy.id)).items
    assert [each.text for each in messages] == ["m1", "m2", "a", "b"]
    assert not {each.id for each in messages} & {"m1", "m2", "a", "b"}
    assert messages[2].turn == messages[3].turn == messages[2].id
    assert messages[0].created_at == START + timedelta(minutes=1)
    await memory.update_thread("t", title="Chat")
    assert (await memory.clone_thread("t")).title == "Clone of Chat"
    named = await memory.clone_thread(
        "t", new_id="mine", title="Mine", last_messages=2, metadata={"x": 1}
    )
    assert (named.id, named.title, named.metadata["x"]) == ("mine", "Mine", 1)
    assert texts(await memory.recall("mine")) == ["a", "b"]
    with pytest.raises(HistoryError, match="mine is there already"):
        await memory.clone_thread("t", new_id="mine")
    picked = await memory.clone_thread("t", ids=["m2", "a"])
    assert texts(await memory.recall(picked.id)) == ["m2", "a"]
    dated = await memory.clone_thread("t", since=START, until=START + timedelta(minutes=2))
    assert texts(await memory.recall(dated.id)) == ["m1"]


async def test_an_edit_is_a_branch_and_nothing_is_deleted(memory: Memory) -> None:
    saved = await memory.save(numbered(1, 2, 3), "t")
    await memory.save([saved[1].replace(content=Message.user("edited").content)], "t", after="m1")
    assert texts(await memory.recall("t")) == ["m1", "edited"]
    assert texts(await memory.recall("t", branch=0)) == ["m1", "m2", "m3"]
    (branch,) = await memory.branches("t")
    await memory.show_branch("t", 0)
    assert texts(await memory.recall("t")) == ["m1", "m2", "m3"]
    assert texts(await memory.recall("t", branch=branch.number)) == ["m1", "edited"]
    assert [each.message.text for each in (await memory.search("m2")).items] == ["m2"]


async def test_search_gives_pages_newest_first(memory: Memory) -> None:
    for number, thread in enumerate(["t1", "t2", "t1"]):
        await memory.save(
            [*numbered(number)[:1], Message.user(f"River {number}")], thread, resource_id=thread
        )
    page = await memory.search("river", per_page=2)
    assert [(each.thread_id, each.message.text) for each in page.items] == [
        ("t1", "River 2"),
        ("t2", "River 1"),
    ]
    assert page.has_more
    assert [
        each.message.text for each in (await memory.search("river", resource_id="t2")).items
    ] == ["River 1"]
    assert [
        each.message.text
        for each in (await memory.search("river", thread_id="t1", page=1, per_page=1)).items
    ] == ["River 0"]


async def test_what_has_no_id_or_time_gets_one(memory: Memory) -> None:
    (message,) = await memory.save([Message.user("x")], "t")
    assert message.id
    assert message.created_at is not None
    assert (await memory.recall("t")).items == (message,)


@pytest.mark.parametrize(
    ("work", "kind", "words"),
    [
        (lambda m: m.save([Message.user("x")], ""), HistoryError, "thread_id is empty"),
        (lambda m: m.save([Message.user("x")], 7), TypeError, "thread_id must be a string"),
        (lambda m: m.save([Message.user("x")], "a\x00b"), HistoryError, r"U\+0000"),
        (lambda m: m.save([Message.user("x")], "x" * 1001), HistoryError, "1000 are the most"),
        (lambda m: m.save([Message.user("x")], "\ud800"), HistoryError, "half a character"),
        (lambda m: m.save([Message.user("\ud800")], "t"), HistoryError, "stored as JSON"),
        (lambda m: m.save([Message.user("x").replace(id="\x00")], "t"), HistoryError, r"U\+0000"),
        (lambda m: m.save(["x"], "t"), TypeError, r"messages\[0\]"),
        (lambda m: m.save(Message.user("x"), "t"), TypeError, "messages"),
        (lambda m: m.save_thread("t", metadata={"a": object()}), HistoryError, "metadata cannot be stored"),
        (lambda m: m.save_thread("t", metadata={"a": "\x00"}), HistoryError, r"U\+0000"),
        (lambda m: m.save_thread("t", metadata=[1]), TypeError, "metadata"),
        (lambda m: m.save_thread("t", title="\x00"), HistoryError, "title"),
        (lambda m: m.recall("t", include=["m1"]), TypeError, "include"),
        (lambda m: m.search(None), TypeError, "text"),
        (lambda m: m.delete_messages("abc", "t"), TypeError, "ids"),
    ],
)  # fmt: skip
async def test_bad_input_is_named_and_nothing_is_written(
    memory: Memory, work: Any, kind: type[Exception], words: str
) -> None:
    await memory.save_thread("t")
    with pytest.raises(kind, match=words):
        await work(memory)
    assert texts(await memory.recall("t")) == []


async def test_a_read_only_memory_writes_nothing() -> None:
    memory = Memory(read_only=True)
    for work in (
        memory.save(numbered(1), "t"), memory.save_thread("t"), memory.delete_thread("t"), memory.delete_messages(["a"], "t"),
        memory.update_thread("t", title="x"), memory.clone_thread("t"), memory.show_branch("t", 0),
    ):  # fmt: skip
        with pytest.raises(SettingsError, match="read-only"):
            await work


async def test_a_closed_store_says_so(shared_url: str) -> None:
    memory = Memory(shared_url)
    await memory.save(numbered(1), "t")
    await memory.close()
    await memory.close()
    for work in (memory.save(numbered(2), "t"), memory.recall("t")):
        with pytest.raises(StoreError, match="is closed"):
            await work


async def test_words_of_a_huge_message_are_found_as_far_as_it_says(memory: Memory) -> None:
    words = " ".join(f"w{number}" for number in range(300_000))
    await memory.save(
        [Message.user(words, DataPart(bytes(1000), "image/png")).replace(id="m")], "t"
    )
    assert len((await memory.search("w0 w9999")).items) == 1
    assert (await memory.search("w299999")).items == ()
    assert (await memory.recall("t")).items[0].text == words
