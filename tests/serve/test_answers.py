"""Where answers are kept: one behaviour of all stores."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from operator import is_
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import Message, ToolCallPart
from dragoman.errors import ContextLengthError, SettingsError
from dragoman.message import ThinkingPart, ToolResultPart
from dragoman.request import ModelRequest, ToolSpec
from dragoman.serve.store import sql_answers, stored_answer
from dragoman.serve.store.answer_store import AnswerStore
from dragoman.serve.store.memory_answers import MemoryAnswers, open_answers
from dragoman.serve.store.stored_answer import (
    Answered,
    DecodedAnswers,
    conversation_key,
    latest_keys,
)
from support import postgres

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def answered(
    id: str, owner: str = "me", parent: str | None = None, text: str = "Hello."
) -> Answered:
    signed = ThinkingPart("Hm.", native={"anthropic": {"signature": "c2ln"}})
    request = ModelRequest(
        "m", (Message.user("Hi."),), (ToolSpec("t", "T.", {"type": "object"}),), options={"a": 1}
    )
    return Answered(
        id=id,
        owner=owner,
        wire="anthropic",
        created_at=NOW,
        request=request,
        output=(Message.model(signed, text, ToolCallPart("c1", "t", {})),),
        parent=parent,
    )


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[str]:
    if postgres.programs() is None:
        pytest.skip("Postgres is not installed: apt-get install postgresql")
    with postgres.postgres() as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.service)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AnswerStore]:
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/answers.db"
    if request.param == "postgres":
        url = postgres.new_database(request.getfixturevalue("postgres_server"))
    made = open_answers(url)
    yield made
    await made.close()


async def test_what_is_kept_comes_back_as_it_was(store: AnswerStore) -> None:
    await store.save(answered("a"))
    assert await store.get("me", "a") == answered("a")
    assert await store.get("me", "b") is None


async def test_nobody_sees_another_ones(store: AnswerStore) -> None:
    await store.save(answered("a"), ["k"])
    assert await store.get("you", "a") is None
    assert await store.find("you", ["k"]) is None
    assert await store.chain("you", "a") == []
    assert not await store.delete("you", "a")
    await store.save(answered("a", "you", text="Yours."), ["k"])
    mine, yours = await store.get("me", "a"), await store.find("you", ["k"])
    assert mine is not None
    assert yours is not None
    assert (mine.output[0].text, yours.output[0].text) == ("Hello.", "Yours.")


async def test_the_first_key_that_is_known_counts_and_of_it_the_latest(store: AnswerStore) -> None:
    await store.save(answered("a"), ["k", "only a"])
    await store.save(answered("b"), ["k"])
    for keys, expected in (
        (["k"], "b"),
        (["none", "only a", "k"], "a"),
        (["none"], None),
        ([], None),
    ):
        found = await store.find("me", keys)
        assert (found and found.id) == expected


@pytest.mark.parametrize("id", ["", "\0", "a\0b", "\ud800", "a" * 100_000, "' OR 1=1 --", "%"])
async def test_an_id_that_somebody_makes_up_is_of_no_answer(store: AnswerStore, id: str) -> None:
    await store.save(answered("a"), ["k"])
    assert await store.get("me", id) is None
    assert await store.chain("me", id) == []
    assert await store.find("me", [id]) is None
    assert not await store.delete("me", id)


async def test_an_answer_is_replaced_and_found_under_all_its_keys(store: AnswerStore) -> None:
    await store.save(answered("a"), ["k"])
    await store.save(msgspec.structs.replace(answered("a"), state="failed"), ["l"])
    for key in ("k", "l"):
        found = await store.find("me", [key])
        assert found is not None
        assert found.state == "failed"


async def test_a_chain_is_told_from_its_beginning_and_ends_where_one_is_gone(
    store: AnswerStore,
) -> None:
    for at in range(4):
        await store.save(answered(f"a{at}", parent=f"a{at - 1}" if at else None))
    assert [one.id for one in await store.chain("me", "a3")] == ["a0", "a1", "a2", "a3"]
    assert [one.id for one in await store.chain("me", "a1")] == ["a0", "a1"]
    assert await store.delete("me", "a1")
    assert [one.id for one in await store.chain("me", "a3")] == ["a2", "a3"]
    assert not await store.delete("me", "a1")


async def test_a_chain_that_bites_its_tail_ends(store: AnswerStore) -> None:
    await store.save(answered("a", parent="b"))
    await store.save(answered("b", parent="a"))
    assert [one.id for one in await store.chain("me", "a")] == ["b", "a"]


async def test_a_long_key_is_a_key(store: AnswerStore) -> None:
    """A client's name in letters of four bytes is twelve characters for each of its own in a
    thread's id."""
    long = "thread:" + "".join([f"{hash((at, 1)):x}" for at in range(600)])
    await store.save(answered("a"), [long, "run:1"])
    found = await store.find("me", [long])
    assert found is not None
    assert found.id == "a"
    assert await store.find("me", [long[:-1]]) is None


class Decoding:
    """Counts what is decoded."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._decoder = msgspec.json.Decoder(Answered)

    def decode(self, data: bytes) -> Answered:
        self.sizes.append(len(data))
        return self._decoder.decode(data)


async def test_a_conversation_that_goes_on_is_decoded_once(
    store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its life costs the square of its length."""
    decoding = Decoding()
    monkeypatch.setattr(stored_answer, "_ANSWERED", decoding)
    for at in range(30):
        await store.save(answered(f"a{at}", parent=f"a{at - 1}" if at else None), [f"k{at}"])
        assert (await store.find("me", [f"k{at}"])) is not None
        assert len(await store.chain("me", f"a{at}")) == at + 1
    assert len(decoding.sizes) == 30
    await store.save(answered("a3", parent="a2", text="Another."))  # what another process may do
    changed = (await store.chain("me", "a29"))[3]
    assert changed.output[0].text == "Another."


def test_of_what_was_decoded_the_least_used_goes() -> None:
    one, two = [msgspec.json.encode(answered(name)) for name in ("a", "b")]
    known = DecodedAnswers(most_bytes=len(one) + len(two))
    for number in (1, 2, 1, 3):
        assert known.decode(number, one).id == "a"
    assert [known.get(number) is not None for number in (1, 2, 3)] == [True, False, True]
    small = DecodedAnswers(most_bytes=10)
    assert small.decode(1, one).id == "a"
    assert small.get(1) is None


async def test_what_a_conversation_goes_on_from_is_what_was_saved(store: AnswerStore) -> None:
    """The very same messages: of those much is known."""
    saved = msgspec.structs.replace(answered("a0"), key="conversation:1")
    await store.save(saved, [saved.key])
    [found] = await store.chain("me", "a0")
    assert all(map(is_, found.messages, saved.messages))
    # As it is read by another process.
    read = msgspec.json.decode(msgspec.json.encode(saved), type=Answered)
    assert read == found
    await store.save(msgspec.structs.replace(saved, state="failed"), [saved.key])
    [found] = await store.chain("me", "a0")
    assert found.state == "failed"


async def test_a_conversation_that_is_too_large_is_not_read(
    store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 0
    for at in range(3):
        one = answered(f"a{at}", parent=f"a{at - 1}" if at else None)
        await store.save(one)
        size += len(msgspec.json.encode(one))
    decoding = Decoding()
    monkeypatch.setattr(stored_answer, "_ANSWERED", decoding)
    with pytest.raises(ContextLengthError, match="begin a new one"):
        await store.chain("me", "a2", most_bytes=size - 1)
    assert decoding.sizes == []
    assert len(await store.chain("me", "a2", most_bytes=size)) == 3


async def test_memory_is_bounded_by_number_and_by_bytes() -> None:
    store = MemoryAnswers(most=2)
    for at in range(3):
        await store.save(answered(f"a{at}"), ["k"])
    assert await store.get("me", "a0") is None
    found = await store.find("me", ["k"])
    assert found is not None
    size = len(msgspec.json.encode(answered("a0")))
    store = MemoryAnswers(most_bytes=2 * size + 1)
    for at in range(3):
        await store.save(answered(f"a{at}"), [f"k{at}"])
    assert await store.get("me", "a0") is None
    assert await store.find("me", ["k0"]) is None
    assert await store.get("me", "a2") is not None


async def test_nobody_drives_out_what_is_anothers() -> None:
    size = len(msgspec.json.encode(answered("a0")))
    for store in (MemoryAnswers(most=4), MemoryAnswers(most_bytes=4 * size + 20)):
        await store.save(answered("mine"), ["k"])
        for at in range(20):
            await store.save(answered(f"a{at}", owner="greedy"), ["k"])
        assert await store.find("me", ["k"]) == answered("mine")
        assert await store.get("greedy", "a19") is not None
        assert await store.get("greedy", "a0") is None


async def test_what_is_old_is_forgotten_unless_a_later_answer_goes_on_from_it(
    store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_answers, "_PRUNED_AT_ONCE", 2)
    later = NOW + timedelta(days=1)
    for at in range(5):
        await store.save(answered(f"old{at}", parent=f"old{at - 1}" if at else None), ["k"])
    await store.save(answered("kept0"))
    await store.save(answered("kept1", parent="kept0"))
    await store.save(
        msgspec.structs.replace(answered("new", parent="kept1"), created_at=later), ["n"]
    )
    await store.save(msgspec.structs.replace(answered("old0", owner="you"), created_at=later))
    assert await store.prune(NOW) == 0
    assert await store.prune(later) == 5
    assert await store.find("me", ["k"]) is None
    assert [one.id for one in await store.chain("me", "new")] == ["kept0", "kept1", "new"]
    assert await store.get("you", "old0") is not None
    assert await store.prune(later + timedelta(days=1)) == 4


async def test_a_long_conversation_is_forgotten_in_few_steps(
    store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in as many as it has answers, each of which looks for all that is old."""
    steps: list[int] = []
    step: Any = getattr(sql_answers, "_prune")  # noqa: B009 - it is the module's own

    def counted(*given: Any) -> int:
        steps.append(1)
        return step(*given)

    monkeypatch.setattr(sql_answers, "_PRUNED_AT_ONCE", 10)
    monkeypatch.setattr(sql_answers, "_prune", counted)
    for at in range(20):
        await store.save(answered(f"a{at}", parent=f"a{at - 1}" if at else None))
    assert await store.prune(NOW + timedelta(days=1)) == 20
    assert len(steps) <= 3


async def test_a_key_that_no_database_takes_costs_no_answer(store: AnswerStore) -> None:
    await store.save(answered("a"), ["run:\0", "run:\ud83d", "thread:1"])
    assert await store.get("me", "a") is not None
    assert await store.find("me", ["thread:1"]) is not None


def test_a_store_of_another_kind_is_refused() -> None:
    with pytest.raises(SettingsError, match="no store of answers"):
        open_answers("redis://localhost")


def test_the_key_of_a_conversation_is_what_its_client_has() -> None:
    """Thinking, system texts and ids do not count; texts, calls and results do."""
    talk = [
        Message.system("Be brief."),
        Message.user("Hi."),
        Message.model(ThinkingPart("Hm."), "Hello."),
    ]
    assert conversation_key(talk, "me") == conversation_key(
        [talk[1], Message.model("Hello.").replace(id="x")], "me"
    )
    assert conversation_key(talk, "me") != conversation_key(
        [talk[1], Message.model("Hello!")], "me"
    )
    results = [Message.user(ToolResultPart("c", "t", result)) for result in ("1", "2")]
    assert conversation_key(results[:1], "me") != conversation_key(results[1:], "me")
    assert latest_keys([talk[1]], "me") == []
    assert latest_keys([*talk, Message.user("So?")], "me")[0] == conversation_key(talk, "me")
