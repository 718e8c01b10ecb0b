"""Memos in a thread: models read them, people, search and the window's count do not."""

from __future__ import annotations

import pytest

from dragoman import Chat, Message
from dragoman.codec.memos import RECALLED, WORKING_MEMORY, is_memo
from dragoman.memory import Memory
from support.model import agent, says

pytestmark = pytest.mark.anyio


def memo(number: int, key: str = RECALLED) -> Message:
    return Message.user(f"memo {number} of boilers").replace(id=f"memo{number}", metadata={key: []})


def exchange(number: int, *, with_memo: bool = True) -> list[Message]:
    memos = [memo(number)] if with_memo else []
    question = Message.user(f"question {number}").replace(id=f"q{number}")
    return [*memos, question, Message.model(f"answer {number}").replace(id=f"a{number}")]


async def window(memory: Memory, thread_id: str = "t") -> list[str]:
    reading = await memory.read_thread(thread_id)
    return [stored.message.id or "" for stored in (await memory.load_newest(reading)).messages]


async def test_a_window_does_not_count_memos(url: str) -> None:
    """R-01: as many messages of the conversation as without them, and each memo with its
    prompt."""
    saved: list[str] = []
    lengths: set[int] = set()
    async with Memory(url, last_messages=6) as memory:
        for number in range(12):
            await memory.save(exchange(number), "t")
            saved += [f"memo{number}", f"q{number}", f"a{number}"]
            loaded = await window(memory)
            shown = [name for name in loaded if not name.startswith("memo")]
            assert loaded == saved[-len(loaded) :]
            assert loaded[0].startswith("memo")
            assert min(2 * number + 2, 3) <= len(shown) <= 6
            lengths.add(len(shown))
    assert lengths == {2, 4, 6}


async def test_a_prompt_at_the_windows_start_keeps_its_memo(url: str) -> None:
    async with Memory(url, last_messages=2) as memory:
        await memory.save([*exchange(0), *exchange(1), memo(2)], "t")
        await memory.save(exchange(2), "t")
        assert await window(memory) == ["memo2", "q2", "a2"]


async def test_their_tokens_count_in_the_budget(url: str) -> None:
    async with Memory(url, tokens=200, remove_tokens=0) as memory:
        for number in range(20):
            await memory.save(exchange(number), "t")
            await memory.save(exchange(number, with_memo=False), "bare")
        loaded, bare = await window(memory), await window(memory, "bare")
        assert loaded[0].startswith("memo"), "cut before the memo of the first prompt"
        assert 2 <= len([name for name in loaded if name.startswith("q")]) < len(bare) / 2


@pytest.mark.parametrize("key", [RECALLED, WORKING_MEMORY])
async def test_search_does_not_find_them(url: str, key: str) -> None:
    async with Memory(url) as memory:
        await memory.save([memo(1, key), Message.user("My boiler leaks.").replace(id="u1")], "t")
        assert not (await memory.search("boilers")).items
        assert [found.message.id for found in (await memory.search("boiler")).items] == ["u1"]
        assert (await memory.recall("t")).items[0].text == "memo 1 of boilers"


async def test_a_chat_shows_none_and_its_model_reads_them(memory: Memory) -> None:
    await memory.save(exchange(1), "t")
    told, model = agent(says("Fine."), says("Good."), memory=memory)
    chat = Chat(told, thread_id="t")
    assert [message.id for message in await chat.load()] == ["q1", "a1"]
    await chat.send("And now?")
    assert [message.text for message in model.requests[0].messages] == [
        "memo 1 of boilers",
        "question 1",
        "answer 1",
        "And now?",
    ]
    again = Chat(told, thread_id="t")
    await again.send("And then?")
    assert [message.text for message in again.history][:2] == ["question 1", "answer 1"]
    assert "memo 1 of boilers" in [message.text for message in model.requests[1].messages]


async def test_a_clone_shares_them(memory: Memory) -> None:
    await memory.save(exchange(1), "t")
    await memory.clone_thread("t", new_id="copy")
    copied = (await memory.recall("copy")).items
    assert [message.text for message in copied] == ["memo 1 of boilers", "question 1", "answer 1"]
    assert is_memo(copied[0])
