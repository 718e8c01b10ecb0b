"""Runs of an agent whose memory recalls: rules R-02, R-07, R-08 and R-09."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from dragoman import Agent, Chat, Message, MessageList
from dragoman.codec.memos import RECALLED, is_memo
from dragoman.errors import OverloadedError, StoreError, ThreadNotFoundError
from dragoman.memory import Memory, Recall, VectorQuery, WorkingMemory
from dragoman.memory.memory_store import MemoryStore
from dragoman.memory.window import count_tokens
from support.embedder import WordEmbedder
from support.model import PROVIDER, Script, agent, says

pytestmark = pytest.mark.anyio

ANN: Any = {"resource_id": "ann"}
START = datetime(2026, 1, 2, tzinfo=UTC)


def opened(url: str = "memory:", *, last: int = 2, **how: Any) -> Memory:
    embedder = how.pop("embedder", None) or WordEmbedder()
    return Memory(url, last_messages=last, recall=Recall(embedder, **how))


async def say(memory: Memory, thread_id: str, *texts: str, **how: Any) -> None:
    """Saves a question and an answer for each text, hours apart."""
    number = len(await memory.store.messages(every(thread_id)))
    messages: list[Message] = []
    for text in texts:
        time = START + timedelta(hours=number)
        question, _, answer = text.partition(" / ")
        messages.append(Message.user(question).replace(id=question, created_at=time))
        if answer:
            messages.append(Message.model(answer).replace(id=answer, created_at=time))
        number += 2
    await memory.save(messages, thread_id, **{**ANN, **how})


def every(thread_id: str) -> Any:
    from dragoman.memory import MessageQuery

    return MessageQuery(thread_id=thread_id)


def lines_of(memo: Message) -> list[dict[str, Any]]:
    return [json.loads(line) for line in memo.text.splitlines() if line.startswith("{")]


def quoted(script: Script, number: int = -1) -> list[str]:
    """The texts that the memos of a request quote, in order."""
    memos = [message for message in script.requests[number].messages if is_memo(message)]
    return [line["text"] for memo in memos for line in lines_of(memo)]


FILLED = [
    "My boiler is a Worcester / Noted the Worcester",
    "Tom likes fish / Cats do",
    "We moved house / Where to",
    "Nothing new / Fine",
]


async def test_r07_r08_r09_what_is_near_stands_before_the_prompt(url: str) -> None:
    """R-07: the text of the last user message is the query. R-08: each hit comes with its
    neighbours. R-09, otherwise than written (decision 41): a memo that is stored before the prompt,
    once, sorted by time, in place of messages among the history and of a system message."""
    async with opened(url) as memory:
        await say(memory, "t", *FILLED)
        asking, model = agent(says("A Worcester."), memory=memory)
        await asking.send("Which Worcester boiler?", thread_id="t", **ANN)
        sent = model.requests[0].messages
        assert [message.text for message in sent[:2]] == ["Nothing new", "Fine"]
        assert is_memo(sent[2])
        assert lines_of(sent[2]) == [
            {"at": "2026-01-02T00:00Z", "by": "user", "text": "My boiler is a Worcester"},
            {"at": "2026-01-02T00:00Z", "by": "assistant", "text": "Noted the Worcester"},
            {"at": "2026-01-02T02:00Z", "by": "user", "text": "Tom likes fish"},
        ]
        assert sent[3].text == "Which Worcester boiler?"
        stored = (await memory.recall("t", per_page=None)).items
        assert stored[8].text == sent[2].text
        assert [message.text for message in stored[9:]] == [
            "Which Worcester boiler?",
            "A Worcester.",
        ]
        assert stored[8].metadata[RECALLED] == [
            "My boiler is a Worcester",
            "Noted the Worcester",
            "Tom likes fish",
        ]
        await asking.send("And Tom?", thread_id="t", **ANN)
        assert (await memory.recall("t", per_page=None)).items[8] == stored[8]


async def test_r02_the_order_before_a_prompt() -> None:
    """R-02: incoming, working memory, window, recall, prompt."""
    memory = Memory(
        last_messages=2, recall=Recall(WordEmbedder(), around=0), working=WorkingMemory()
    )
    await memory.set_working("# Ann", version=0, **ANN)
    await say(memory, "t", *FILLED)
    asking, model = agent(says("Yes."), memory=memory, system="Be brief.")
    history = [Message.user("Hm"), Message.model("Yes?").replace(id="yes")]
    await asking.send("Which Worcester boiler?", history=history, thread_id="t", **ANN)
    kinds = [
        "recalled" if RECALLED in message.metadata else "memo" if is_memo(message) else message.text
        for message in model.requests[0].messages
    ]
    assert kinds[-3:] == ["memo", "recalled", "Which Worcester boiler?"]
    assert "Nothing new" in kinds


async def test_nothing_is_said_twice() -> None:
    """Neither what stands in the window, nor what a memo there quotes, nor equal texts, such as
    those of a clone."""
    memory = opened(last=4, scope="resource", around=0)
    await say(memory, "t", *FILLED)
    await memory.clone_thread("t", new_id="copy")
    asking, model = agent(says("Yes."), memory=memory)
    await asking.send("Which Worcester boiler?", thread_id="u", **ANN)
    assert sorted(quoted(model)) == ["My boiler is a Worcester", "Noted the Worcester"]
    before = len(model.requests[0].messages)
    await asking.send("Worcester boiler, again?", thread_id="u", **ANN)
    assert len([each for each in model.requests[1].messages if is_memo(each)]) == 1
    assert len(model.requests[1].messages) == before + 2
    await asking.send("Nothing?", thread_id="copy", **ANN)
    assert quoted(model) == [], "it stands in the window"


async def test_the_same_memory_writes_the_same_memo(url: str) -> None:
    """Byte for byte: sorted by time, thread and position, never by score."""
    texts: set[str] = set()
    async with opened(url, scope="resource", around=0, top=9, threshold=0) as memory:
        for name in ("b", "a"):
            await say(memory, name, "boiler one / boiler two", "boiler three")
        for number, prompt in enumerate(["boiler two", "three boiler", "one two three boiler"]):
            asking, model = agent(says("Yes."), memory=memory)
            await asking.send(prompt, thread_id=f"new{number}", **ANN)
            [memo] = [each for each in model.requests[0].messages if is_memo(each)]
            told = [(line["at"], line["conversation"]) for line in lines_of(memo)]
            assert told == sorted(told)
            texts.add(memo.text)
            await memory.delete_thread(f"new{number}")
    assert len(texts) <= 2, "the prompt itself is left out"


async def test_other_conversations_of_the_owner_alone() -> None:
    memory = opened(scope="resource", around=0)
    await say(memory, "t", "the boiler of ann")
    await say(memory, "b", "the boiler password hunter2 of bob", resource_id="bob")
    await say(memory, "n", "the boiler of nobody", resource_id=None)
    asking, model = agent(says("Yes."), memory=memory)
    await asking.send("boiler password?", thread_id="new", **ANN)
    assert quoted(model) == ["the boiler of ann"]
    assert lines_of(model.requests[0].messages[0])[0]["conversation"] == 1
    await asking.send("boiler password?", thread_id="mine")
    assert quoted(model) == [], "a thread that is nobody's recalls its own messages"
    with pytest.raises(ThreadNotFoundError):
        await asking.send("boiler password?", thread_id="b", **ANN)


async def test_r07_nothing_to_ask_recalls_nothing() -> None:
    """R-07: without a text, a thread or a result; then the store is not asked for messages."""
    embedder = WordEmbedder()
    memory = opened(embedder=embedder)
    await say(memory, "t", *FILLED)
    asking, model = agent(says("Yes."), memory=memory)
    await asking.send("boiler")
    await asking.send("boiler", thread_id="new", **ANN)
    assert embedder.requests == []
    await asking.send("xylophone", thread_id="t", **ANN)
    assert quoted(model) == []
    assert not any(map(is_memo, (await memory.recall("t", per_page=None)).items))
    switched_off = Memory(memory.store, recall=Recall(embedder, automatic=False))
    asking, model = agent(says("Yes."), memory=switched_off)
    asked = len(embedder.requests)
    await asking.send("Worcester boiler", thread_id="t", **ANN)
    assert (quoted(model), len(embedder.requests)) == ([], asked)


async def test_a_budget_of_tokens_and_the_window(url: str) -> None:
    """Whole lines until the budget, best first; what the memo takes the window loses."""
    texts = [f"boiler {'word ' * 60} {number} / answer {number}" for number in range(8)]
    async with opened(url, last=0, top=8, around=0, tokens=300) as memory:
        await say(memory, "t", *texts)
        asking, model = agent(says("Yes."), memory=memory)
        await asking.send("boiler word", thread_id="t", **ANN)
        [memo] = [each for each in model.requests[0].messages if is_memo(each)]
        assert 1 <= len(lines_of(memo)) < 8
        assert count_tokens(memo) <= 300
    recall = Recall(WordEmbedder(), scope="resource", tokens=300)
    async with Memory(url, tokens=700, remove_tokens=0, recall=recall) as memory:
        await say(memory, "other", *texts)
        await say(memory, "u", *[f"talk {'word ' * 30} {number} / yes" for number in range(9)])
        asking, model = agent(says("Yes."), memory=memory)
        await asking.send("boiler word", thread_id="u", **ANN)
        sent = model.requests[0].messages
        assert any(map(is_memo, sent))
        assert count_tokens(*sent) <= 700


async def test_an_embedder_that_fails_leaves_the_memo_out(caplog: pytest.LogCaptureFixture) -> None:
    """R-07: logged; the conversation is unchanged, and the run goes on."""
    caplog.set_level(logging.WARNING)
    for embedder, words in (
        (WordEmbedder(error=OverloadedError("busy")), "busy"),
        (WordEmbedder(error=ValueError("a bug")), "a bug"),
        (WordEmbedder(seconds=60), "0.05 seconds"),
    ):
        memory = opened(embedder=embedder, timeout=0.05)
        await say(memory, "t", *FILLED)
        asking, model = agent(says("Yes."), memory=memory)
        result = await asking.send("Worcester boiler", thread_id="t", **ANN)
        assert result.output == "Yes."
        assert not any(map(is_memo, model.requests[0].messages))
        assert words in caplog.messages[-1]
        assert len((await memory.recall("t", per_page=None)).items) == 10


class Broken:
    """A vector store that fails, or never answers."""

    def __init__(self, seconds: float = 0) -> None:
        self.seconds = seconds

    async def missing(self, model: str, *, limit: int) -> list[Any]:
        return []

    async def upsert(self, model: str, embedded: Any) -> None:
        return None

    async def query(self, query: VectorQuery) -> list[Any]:
        await asyncio.sleep(self.seconds)
        raise StoreError("the index is on fire")

    async def delete(self, model: str) -> int:
        return 0

    async def close(self) -> None:
        return None


@pytest.mark.parametrize("seconds", [0, 60])
async def test_a_vector_store_that_fails_leaves_the_memo_out(seconds: float) -> None:
    memory = opened(vectors=Broken(seconds), timeout=0.05)
    await say(memory, "t", *FILLED)
    asking, model = agent(says("Yes."), memory=memory)
    assert (await asking.send("Worcester boiler", thread_id="t", **ANN)).output == "Yes."
    assert not any(map(is_memo, model.requests[0].messages))
    with pytest.raises(ThreadNotFoundError):
        await asking.send("Worcester boiler", thread_id="t", resource_id="bob")


class Lagging(Broken):
    """A vector store that lags behind, or lies."""

    def __init__(self, *matches: Any) -> None:
        super().__init__()
        self.matches = matches

    async def query(self, query: VectorQuery) -> list[Any]:
        return [*self.matches]


async def test_an_index_is_no_authority() -> None:
    """What it names is read again, for the owner and in the visible branch."""
    from dragoman.memory import VectorMatch

    named = [("t", "My boiler is a Worcester"), ("b", "secret"), ("t", "gone"), ("x", "y")]
    vectors = Lagging(*[VectorMatch(thread, name, 0.9) for thread, name in named])
    memory = opened(vectors=vectors, scope="resource", around=0)
    await say(memory, "t", *FILLED)
    await say(memory, "b", "secret", resource_id="bob")
    hits = await memory.similar("boiler", **ANN)
    assert [hit.message.text for hit in hits] == ["My boiler is a Worcester"]
    asking, model = agent(says("Yes."), memory=memory)
    await asking.send("boiler", thread_id="new", **ANN)
    assert quoted(model) == ["My boiler is a Worcester"]


async def test_a_cancelled_run_ends_at_once() -> None:
    memory = opened(embedder=WordEmbedder(seconds=60), timeout=60)
    await say(memory, "t", *FILLED)
    asking, _ = agent(says("Yes."), memory=memory)
    with anyio.move_on_after(0.1) as scope:
        await asking.send("Worcester boiler", thread_id="t", **ANN)
    assert scope.cancelled_caught


async def test_a_slow_embedder_gets_on_with_each_turn() -> None:
    """What was embedded before the time was over is stored, so that a backlog ends."""
    embedder = WordEmbedder(seconds=0.002)
    memory = opened(embedder=embedder, timeout=0.3)
    await say(memory, "t", *[f"text {number}" for number in range(300)])
    asking, model = agent(says("Yes."), memory=memory)
    turns = 0
    while await memory._find_recaller()._vectors.missing("scripted:words", limit=1):
        await asking.send("text 1", thread_id="t", **ANN)
        turns += 1
        assert turns < 30
    assert quoted(model)


async def test_what_is_deleted_leaves_the_memos(url: str) -> None:
    """Also in other threads, and in clones; the run goes on."""
    async with opened(url, scope="resource", around=0) as memory:
        await say(memory, "t", "my code is 4711 / the code is 4711 indeed")
        asking, model = agent(says("Yes."), memory=memory)
        await asking.send("which code?", thread_id="u", **ANN)
        assert sorted(quoted(model)) == ["my code is 4711", "the code is 4711 indeed"]
        await memory.clone_thread("u", new_id="copy")
        await memory.delete_messages(["my code is 4711"], "t", **ANN)
        for thread_id in ("u", "copy"):
            memo = (await memory.recall(thread_id)).items[0]
            assert [line["text"] for line in lines_of(memo)] == ["the code is 4711 indeed"]
            assert memo.metadata[RECALLED] == ["the code is 4711 indeed"]
        await asking.send("and now?", thread_id="u", **ANN)
        assert "my code" not in str(model.requests[-1].messages)
        await memory.delete_thread("t")
        for thread_id in ("u", "copy"):
            texts = [message.text for message in (await memory.recall(thread_id)).items]
            assert "4711" not in str(texts)
            assert texts[:2] == ["which code?", "Yes."]


async def test_what_is_deleted_while_a_run_begins_is_not_stored(url: str) -> None:
    async with opened(url, scope="resource", around=0) as memory:
        await say(memory, "t", "my code is 4711 / the code of ann")

        async def forget(request: Any, call: Any) -> AsyncIterator[Any]:
            await memory.delete_messages(["my code is 4711"], "t", **ANN)
            async for event in call(request):
                yield event

        asking = Agent(PROVIDER, middleware=[forget, Script(says("Yes."))], memory=memory)
        await asking.send("which code?", thread_id="u", **ANN)
        stored = (await memory.recall("u")).items
        assert "4711" not in str(stored)
        assert [line["text"] for line in lines_of(stored[0])] == ["the code of ann"]


async def test_a_memo_counts_in_no_window_and_is_never_recalled() -> None:
    memory = opened(last=4, around=3, threshold=0, scope="resource")
    asking, model = agent(says("Yes boiler."), memory=memory)
    await say(memory, "t", *FILLED)
    for number in range(12):
        await asking.send(f"Worcester boiler {number}?", thread_id="u", **ANN)
        talk = [each for each in model.requests[-1].messages if not is_memo(each)]
        assert len(talk) >= min(2 * number + 1, 3)
    texts = [text for number in range(12) for text in quoted(model, number)]
    assert "<recalled>" not in str(texts)
    assert not (await memory.search("recalled")).items


async def test_people_do_not_see_it() -> None:
    memory = opened(around=0)
    await say(memory, "t", *FILLED)
    asking, model = agent(says("A Worcester."), memory=memory)
    chat = Chat(asking, thread_id="t", resource_id="ann")
    await chat.send("Which Worcester boiler?")
    assert quoted(model)
    assert not any(map(is_memo, chat.history))
    conversation = MessageList(thread_id="t", resource_id="ann")
    result = await asking.send("And Tom?", history=conversation, thread_id="t", **ANN)
    assert not any(map(is_memo, result.messages))
    assert "recalled" not in json.dumps(conversation.to_ui_messages())
    events = [event async for event in asking.send_events("Tom?", thread_id="t", **ANN)]
    assert "recalled" not in str(events)


async def test_a_read_only_memory_recalls_and_stores_nothing() -> None:
    store = MemoryStore()
    embedder = WordEmbedder()
    await say(Memory(store), "t", *FILLED)
    await Memory(store, recall=Recall(embedder)).index()
    memory = Memory(store, last_messages=2, recall=Recall(embedder), read_only=True)
    asking, model = agent(says("Yes."), memory=memory)
    await asking.send("Worcester boiler", thread_id="t", **ANN)
    assert quoted(model)
    assert len((await memory.recall("t", per_page=None)).items) == 8


async def test_a_model_may_search_itself() -> None:
    from support.model import call

    memory = Memory(last_messages=2, recall=Recall(WordEmbedder(), around=0, automatic=False))
    await say(memory, "t", *FILLED)
    asking, model = agent(
        says(call("search_memory", query="Worcester boiler")),
        says("A Worcester."),
        memory=memory,
        tools=[memory.search_tool()],
    )
    result = await asking.send("Which boiler?", thread_id="t", **ANN)
    assert result.output == "A Worcester."
    [found] = model.requests[1].messages[-1].tool_results
    assert [each["text"] for each in found.result] == [
        "My boiler is a Worcester",
        "Noted the Worcester",
    ]
    assert isinstance(asking, Agent)
