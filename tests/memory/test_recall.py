"""Messages that are found by their meaning: rules R-08, R-10 and R-11."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent, Message
from dragoman.errors import HistoryError, SettingsError, ThreadNotFoundError
from dragoman.memory import Memory, Recall
from dragoman.memory.indexing import split_text
from dragoman.memory.memory_store import MemoryStore
from dragoman.memory.sql_store import SqlStore
from dragoman.tools import ToolContext
from support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

SAID = ["My boiler is a Worcester", "Tom likes fish", "Every boiler leaks sometimes"]


def opened(url: str, embedder: WordEmbedder | None = None, **how: Any) -> Memory:
    return Memory(url, recall=Recall(embedder or WordEmbedder(), **how))


async def say(memory: Memory, thread_id: str, *texts: str, owner: str | None = "ann") -> None:
    messages = [Message.user(text).replace(id=text[:100]) for text in texts]
    await memory.save(messages, thread_id, resource_id=owner)


async def found(memory: Memory, text: str, **scope: Any) -> list[str]:
    return [hit.message.text for hit in await memory.similar(text, **scope)]


async def test_r08_the_nearest_in_meaning_come_first(url: str) -> None:
    """R-08: at most `limit`, none below the threshold, best first, with their thread and score."""
    async with opened(url) as memory:
        await say(memory, "t", *SAID)
        hits = await memory.similar("Worcester boiler", resource_id="ann")
        assert [hit.message.text for hit in hits] == [SAID[0], SAID[2]]
        assert hits[0].thread_id == "t"
        assert 1 >= hits[0].score > hits[1].score >= 0.3
        assert await found(memory, "boiler", limit=1) in ([SAID[0]], [SAID[2]])
        assert await found(memory, "train") == []
        assert await found(memory, "   ") == []
    async with opened(url, threshold=0.99) as memory:
        await say(memory, "t", *SAID)
        assert await found(memory, SAID[1]) == [SAID[1]]
        assert await found(memory, "Tom") == []


async def test_owners_find_their_own(url: str) -> None:
    """Equal texts are embedded once, and each owner finds only its own messages."""
    embedder = WordEmbedder()
    async with opened(url, embedder) as memory:
        await say(memory, "t", "the password is hunter2", SAID[0], owner="bob")
        await say(memory, "u", SAID[0])
        await say(memory, "nobodys", SAID[0], owner=None)
        hits = await memory.similar("boiler password Worcester", resource_id="ann")
        assert [hit.thread_id for hit in hits] == ["u"]
        assert sorted(embedder.texts[1:]) == sorted(["the password is hunter2", SAID[0]])
        assert await found(memory, "boiler Worcester", thread_id="nobodys") == [SAID[0]]
        for thread_id in ("t", "nobodys", "missing"):
            asked = len(embedder.requests)
            with pytest.raises(ThreadNotFoundError):
                await memory.similar("password", resource_id="ann", thread_id=thread_id)
            assert len(embedder.requests) == asked, "nothing is embedded for a foreign thread"


async def test_edits_branches_and_clones(url: str) -> None:
    async with opened(url) as memory:
        await say(memory, "t", "My code is 4711", SAID[1])
        assert await found(memory, "code 4711") == ["My code is 4711"]
        edited = Message.user("My code is 9999").replace(id="My code is 4711")
        await memory.update_messages([edited], "t", resource_id="ann")
        assert await found(memory, "code 4711") == ["My code is 9999"]
        await memory.save([Message.user(SAID[0])], "t", resource_id="ann", after=edited.id)
        assert await found(memory, "Tom fish") == [], "a branch that is not visible"
        await memory.show_branch("t", 0, resource_id="ann")
        assert await found(memory, "Tom fish") == [SAID[1]]
        await memory.clone_thread("t", new_id="copy")
        assert await found(memory, "Tom fish") == [SAID[1]], "each text once"
        assert await found(memory, "Tom fish", thread_id="copy") == [SAID[1]]
        await memory.delete_messages([SAID[1]], "t")
        assert await found(memory, "Tom fish") == [SAID[1]], "the clone's"
        await memory.delete_thread("copy")
        assert await found(memory, "Tom fish") == []


async def test_r11_texts_of_users_and_models_are_embedded_once(url: str) -> None:
    """R-11: not system messages, memos, calls or empty ones; a query and the texts in one request
    where the model knows no difference."""
    embedder = WordEmbedder()
    memo = Message.user("recalled boiler").replace(metadata={"recalled": []})
    async with opened(url, embedder) as memory:
        await memory.save(
            [Message.system("be a boiler"), memo, Message.user(SAID[0]), Message.model(SAID[1])],
            "t",
        )
        await memory.save([Message.model("  ")], "t")
        assert await found(memory, "boiler") == [SAID[0]]
        assert [sorted(request) for request in embedder.requests] == [
            sorted(["boiler", SAID[0], SAID[1]])
        ]
        await found(memory, "boiler")
        assert embedder.requests[1:] == [["boiler"]]
        assert await memory.index() == 0


async def test_queries_and_documents_are_embedded_for_their_purpose(url: str) -> None:
    embedder = WordEmbedder(by_purpose=True)
    async with opened(url, embedder) as memory:
        await say(memory, "t", *SAID)
        assert SAID[0] in await found(memory, "boiler")
        assert embedder.queries == ["boiler"]
        assert sorted(embedder.texts) == sorted(SAID)


@pytest.mark.parametrize(
    ("model", "differs"),
    [("cohere", True), ("google", True), ("openai", False), ("mistral", False), ("local", False)],
)
def test_an_agent_knows_whether_its_provider_tells_purposes_apart(
    model: str, differs: bool
) -> None:
    assert Agent(model, api_key="k").embeds_by_purpose is differs


async def test_r11_long_texts_are_cut_and_halved(url: str) -> None:
    """R-11, otherwise than written: pieces of 1,200 characters at white space, halved where the
    model takes less; the end of a long text is found, too."""
    embedder = WordEmbedder(most=400)
    text = "water " * 500 + "the boiler leaks"
    async with opened(url, embedder) as memory:
        await say(memory, "t", text, SAID[1])
        assert await found(memory, "leaks boiler") == [text]
        assert max(map(len, embedder.texts)) <= 1200
        assert await memory.index() == 0, "nothing is left"
        assert await found(memory, "Tom fish") == [SAID[1]]


@given(st.text(alphabet="ab \n\t", max_size=200), st.integers(1, 20))
def test_r11_pieces_are_cut_at_white_space(text: str, size: int) -> None:
    """R-11: no piece is empty or longer than the size, nothing but white space is lost, and only
    a word that is too long is cut."""
    pieces = split_text(text, size)
    assert all(piece.strip() and len(piece) <= size for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    words = {word for word in text.split() if len(word) <= size}
    assert words <= {word for piece in pieces for word in piece.split()}


async def test_a_refused_text_is_asked_once(url: str) -> None:
    """The other texts get their vectors. Where a model refuses everything, no text is to blame."""
    embedder = WordEmbedder(refuses="Tom")
    async with opened(url, embedder) as memory:
        await say(memory, "t", *SAID)
        assert SAID[0] in await found(memory, "boiler")
        asked = len(embedder.requests)
        assert await memory.index() == 0
        assert len(embedder.requests) == asked
        embedder.refuses = ""
        await say(memory, "t", "a new boiler")
        with pytest.raises(Exception, match="refused"):
            await memory.index()
        embedder.refuses = None
        assert await memory.index() == 1


async def test_another_model_embeds_anew(url: str) -> None:
    """Vectors of two models are never compared, also of other dimensions."""
    async with opened(url) as memory:
        await say(memory, "t", *SAID)
        assert await memory.index() == 3
        second = WordEmbedder("scripted?embeddings=other", dimensions=64)
        if url != "memory:":
            async with opened(url, second) as other:
                assert await other.index(limit=2) == 2
                assert await other.index() == 1
                assert SAID[1] in await found(other, "Tom fish")
            assert await memory.index() == 3
        assert SAID[1] in await found(memory, "Tom fish")


async def test_an_index_has_a_limit_and_begins_with_the_newest(url: str) -> None:
    embedder = WordEmbedder()
    async with opened(url, embedder) as memory:
        for number in range(5):
            await say(memory, "t", f"text {number}")
        assert await memory.index(2) == 2
        assert embedder.texts == ["text 4", "text 3"]
        with pytest.raises(HistoryError):
            await memory.index(-1)
    async with Memory(url, recall=Recall(WordEmbedder()), read_only=True) as memory:
        with pytest.raises(SettingsError, match="read-only"):
            await memory.index()


async def test_a_recall_embeds_a_bounded_backlog(url: str) -> None:
    """64 texts at most before a search; the rest comes with the next ones."""
    embedder = WordEmbedder()
    async with opened(url, embedder) as memory:
        for number in range(4):
            await say(memory, f"t{number}", *[f"text {number} {index}" for index in range(50)])
        await memory.similar("text")
        assert len(embedder.texts) == 64 + 1
        await memory.similar("text")
        assert len(embedder.texts) == 2 * (64 + 1)


async def test_a_search_reads_few_vectors(url: str) -> None:
    """Of all vectors in scope the sign codes alone are read, and 256 vectors."""
    store = MemoryStore() if url == "memory:" else SqlStore(url)
    recall = Recall(WordEmbedder(dimensions=32), threshold=-1)
    async with Memory(store, recall=recall) as memory:
        for number in range(10):
            await say(memory, f"t{number}", *[f"boiler {number} {index}" for index in range(100)])
        assert await memory.index() == 1000
        assert await found(memory, "boiler 3 77", limit=1) == ["boiler 3 77"]
        assert store.vectors.vectors_read == 256
        await found(memory, "boiler 3 77", thread_id="t3")
        assert store.vectors.vectors_read == 256 + 100


async def test_a_text_that_was_said_often_hides_no_other(url: str) -> None:
    async with opened(url) as memory:
        ok = [Message.user("ok boiler").replace(id=f"ok{number}") for number in range(600)]
        await memory.save(ok, "t", resource_id="ann")
        await say(memory, "t", SAID[0])
        assert sorted(await found(memory, "boiler ok")) == sorted(["ok boiler", SAID[0]])


async def test_without_recall_nothing_is_found_by_meaning(memory: Memory) -> None:
    for work in (memory.similar("x"), memory.index()):
        with pytest.raises(SettingsError, match="recall"):
            await work


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"top": 0}, "top"),
        ({"top": 1.5}, "top"),
        ({"top": True}, "top"),
        ({"around": -1}, "around"),
        ({"tokens": 0}, "tokens"),
        ({"threshold": 2}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("inf")}, "timeout"),
        ({"scope": "everywhere"}, "scope"),
        ({"vectors": object()}, "VectorStore"),
        ({"embedder": None}, "embeddings"),
        ({"embedder": "local"}, "embeddings"),
        ({"embedder": Agent("anthropic", api_key="k")}, "embeddings"),
    ],
)
def test_r10_bad_settings_are_refused_at_once(how: dict[str, Any], words: str) -> None:
    """R-10: a missing embedder or vector store is an error at construction; so are numbers out of
    range."""
    with pytest.raises(SettingsError, match=words):
        Recall(**{"embedder": WordEmbedder(), **how})


def test_r10_a_store_without_vectors_needs_a_vector_store() -> None:
    """R-10."""
    store: Any = MemoryStore()
    vectors = store.vectors
    store.vectors = None
    with pytest.raises(SettingsError, match="VectorStore"):
        Memory(store, recall=Recall(WordEmbedder()))
    Memory(store, recall=Recall(WordEmbedder(), vectors=vectors))
    with pytest.raises(TypeError, match="recall"):
        Memory(recall=WordEmbedder())  # pyright: ignore[reportArgumentType]


async def test_the_search_tool_finds_what_its_run_may_see(url: str) -> None:
    async def run(memory: Memory, query: str, **scope: Any) -> Any:
        return await memory.search_tool().handler(query=query, context=ToolContext(None, **scope))  # type: ignore[misc]

    ann = {"thread_id": "t", "resource_id": "ann"}
    async with opened(url) as memory:
        await say(memory, "t", SAID[0])
        await say(memory, "u", SAID[2])
        await say(memory, "v", "boiler of bob", owner="bob")
        assert memory.search_tool().name == "search_memory"
        assert [each["text"] for each in await run(memory, "boiler", **ann)] == [SAID[0]]
        seen = Message.user(SAID[0]).replace(id=SAID[0])
        assert await run(memory, "boiler", messages=(seen,), **ann) == []
    async with opened(url, scope="resource") as memory:
        await say(memory, "t", SAID[0])
        await say(memory, "u", SAID[2])
        await say(memory, "v", "boiler of bob", owner="bob")
        results = {each["text"]: each for each in await run(memory, "boiler", **ann)}
        assert results.keys() == {SAID[0], SAID[2]}
        assert results[SAID[2]]["from"] == "another conversation"
        assert results[SAID[2]]["by"] == "user"
        nobody = await run(memory, "boiler", thread_id="t", resource_id=None)
        assert [each["text"] for each in nobody] == [SAID[0]], "its thread alone"
    async with Memory(url) as memory:
        await say(memory, "t", SAID[0])
        assert [each["text"] for each in await run(memory, "boiler worcester", **ann)] == [SAID[0]]


async def test_processes_may_embed_at_once(shared_url: str) -> None:
    async with opened(shared_url) as one, opened(shared_url) as other:
        await say(one, "t", *[f"text {number}" for number in range(100)])
        await asyncio.gather(*[memory.index() for memory in (one, other, one, other)])
        assert await one.index() == 0
        assert len(await one.similar("text", limit=100)) == 100
