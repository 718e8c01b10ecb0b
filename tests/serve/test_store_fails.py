"""A store of answers that fails, hangs or is locked: what its clients notice of it."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection

from dragoman import Agent, Message, serve
from dragoman.errors import StoreError
from dragoman.request import ModelRequest
from dragoman.runtime import now
from dragoman.serve import ServerLimits
from dragoman.serve.store import sql_answers
from dragoman.serve.store.answer_store import AnswerStore
from dragoman.serve.store.memory_answers import MemoryAnswers, open_answers
from dragoman.serve.store.stored_answer import Answered
from dragoman.sql import engine
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange
from support.kept_answers import kept_under
from support.protocols import BODIES

pytestmark = pytest.mark.anyio

QUESTION = [{"role": "user", "content": "Hi."}]
COPY = [*QUESTION, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "More."}]


class Failing(MemoryAnswers):
    """Fails in some of its methods, or hangs in them."""

    def __init__(self, *methods: str, hangs: bool = False) -> None:
        super().__init__()
        self.methods, self._hangs = methods, hangs

    def __getattribute__(self, name: str) -> Any:
        return (
            self._fail
            if name != "methods" and name in self.methods
            else super().__getattribute__(name)
        )

    async def _fail(self, *_args: Any, **_how: Any) -> Any:
        if self._hangs:
            await asyncio.Event().wait()
        raise KeyError("no such table")


def app_of(store: AnswerStore, **limits: Any) -> Any:
    agent = Agent(
        ScriptedModel(lambda request: f"Seen {len(request.messages)}.", key_required=False)
    )
    return serve.app({"m": agent}, store=store, limits=ServerLimits(keep_seconds=0.01, **limits))


async def respond(app: Any, **fields: Any) -> Exchange:
    return await exchange(app, "POST", "/v1/responses", {"model": "m", "input": "Hi.", **fields})


@pytest.mark.parametrize("hangs", [False, True])
@pytest.mark.parametrize("method", ["find", "chain"])
async def test_a_client_with_a_copy_of_its_own_needs_no_store(method: str, hangs: bool) -> None:
    store = Failing(hangs=hangs)
    made = app_of(store)
    await exchange(made, "POST", "/v1/chat/completions", {"model": "m", "messages": QUESTION})
    store.methods = (method,)
    answer = await exchange(made, "POST", "/v1/chat/completions", {"model": "m", "messages": COPY})
    assert (answer.status, b"Seen 3." in answer.body) == (200, True)


async def test_a_client_that_names_an_answer_is_not_answered_without_it() -> None:
    answer = await respond(app_of(Failing("chain")), previous_response_id="resp_1")
    assert answer.status >= 500
    assert "no such table" not in answer.body.decode()


@pytest.mark.parametrize("hangs", [False, True])
async def test_an_answer_in_the_background_that_nobody_could_ask_for_is_not_begun(
    hangs: bool,
) -> None:
    made = app_of(Failing("save", hangs=hangs))
    async with made.router.lifespan_context(made):
        assert (await respond(made, background=True)).status >= 500
        assert not made.state.service.runs.driven


async def test_an_answer_that_is_refused_leaves_nothing_behind() -> None:
    store = MemoryAnswers()
    assert (
        await respond(app_of(store), background=True)
    ).status == 503  # the application was not started
    assert await store.prune(now() + timedelta(days=1)) == 0


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses"])
async def test_a_conversation_larger_than_may_be_is_refused(wire: str) -> None:
    made = app_of(MemoryAnswers(), conversation_bytes=300)
    if wire == "openai_chat":
        await exchange(made, "POST", "/v1/chat/completions", {"model": "m", "messages": QUESTION})
        copy = [
            *QUESTION,
            {"role": "assistant", "content": "Seen 1."},
            {"role": "user", "content": "More."},
        ]
        answer = await exchange(
            made, "POST", "/v1/chat/completions", {"model": "m", "messages": copy}
        )
    else:
        first = (await respond(made)).json["id"]
        answer = await respond(made, previous_response_id=first)
    assert (answer.status, "more than 300 bytes" in answer.body.decode()) == (400, True)


@pytest.mark.parametrize("store", [True, False])
async def test_what_nobody_can_ask_for_is_not_kept(store: bool) -> None:
    kept = MemoryAnswers()
    made = app_of(kept)
    await respond(made, input="Ho.", store=store, instructions="Be brief.", metadata={"a": "b"})
    system = {"role": "system", "content": "Be brief."}
    await exchange(
        made,
        "POST",
        "/v1/chat/completions",
        {"model": "m", "messages": [system, *QUESTION], "seed": 1},
    )
    of_chat, of_responses = await kept_under(kept, "anonymous", "conversation:")
    assert [message.text for message in of_chat.request.messages] == ["Hi."]
    assert len(of_responses.request.messages) == 1 + store
    assert bool(of_responses.request.options) is store
    assert not of_chat.request.options


async def test_what_cannot_be_closed_keeps_nothing_else_open() -> None:
    made = app_of(Failing("close"))
    backend, closed = made.state.service.backends[0], asyncio.Event()

    async def close() -> None:
        closed.set()
        raise RuntimeError("the socket is gone")

    backend.close = close
    async with made.router.lifespan_context(made):
        pass
    assert closed.is_set()


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(engine, "_LOCK_SECONDS", 0.02)
    return tmp_path / "answers.db"


async def test_all_that_waits_for_a_locked_file_waits_once(
    locked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a hundred answers that came while it was locked wait a hundred times, and those behind
    them."""
    tries: list[Connection] = []

    def begin(connection: Connection) -> None:
        tries.append(connection)
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    monkeypatch.setattr(engine, "_begin_immediate", begin)
    store = open_answers(f"sqlite:///{locked}")
    await store.save(_answered("first"))
    tries.clear()
    other = sqlite3.connect(locked, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    failures = await asyncio.gather(
        *[store.save(_answered(f"a{at}")) for at in range(20)], return_exceptions=True
    )
    assert [type(each) for each in failures] == [StoreError] * 20
    assert "locked" in str(failures[0])
    assert len(tries) <= 2  # the first alone, and what came meanwhile
    other.execute("ROLLBACK")
    other.close()
    await store.save(_answered("later"))
    assert await store.get("me", "later") is not None
    await store.close()


async def test_what_waits_for_a_locked_file_is_bounded(
    locked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who gave up waiting has not taken its answer out of the memory."""
    monkeypatch.setattr(engine, "_LOCK_SECONDS", 30)  # until it is not locked any more
    store, before = open_answers(f"sqlite:///{locked}"), asyncio.all_tasks()
    await store.save(_answered("first"))
    monkeypatch.setattr(
        sql_answers, "_MOST_QUEUED_BYTES", 5 * len(msgspec.json.encode(_answered("a00")))
    )
    other = sqlite3.connect(locked, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    left = [asyncio.create_task(store.save(_answered(f"a{at:02}"))) for at in range(20)]
    await asyncio.sleep(0)
    for each in left:
        each.cancel()
    ended = await asyncio.gather(*left, return_exceptions=True)
    assert [type(each) for each in ended] == [asyncio.CancelledError] * 5 + [StoreError] * 15
    with pytest.raises(StoreError, match="as much to write as it may"):
        await store.save(_answered("later"))
    other.execute("ROLLBACK")
    other.close()
    while asyncio.all_tasks() - before:  # noqa: ASYNC110 - it is another thread that writes
        await asyncio.sleep(0.001)
    await store.save(_answered("later"))
    assert [await store.get("me", name) is not None for name in ("a00", "a04", "a05", "later")] == [
        True,
        True,
        False,
        True,
    ]
    await store.close()


@pytest.mark.mend("1.8")
@pytest.mark.parametrize("wire", ["ag_ui", "ai_sdk", "a2a"])
@pytest.mark.parametrize("fault", ["locked", "no database"])
async def test_a_run_over_an_agent_protocol_is_refused_in_time_where_the_database_fails(
    wire: str, fault: str, tmp_path: Path
) -> None:
    """They waited 90 seconds for a file that could not be opened."""
    path = tmp_path / "server.db"
    if fault == "no database":
        path.write_bytes(b"this is not the head of a database" * 40)
    limits = ServerLimits(keep_seconds=0.3)
    app = serve.app(Agent(ScriptedModel("Hello.")), store=f"sqlite:///{path}", limits=limits)
    async with app.router.lifespan_context(app):
        if fault == "locked":
            assert (await ask_over(app, wire, "first")).status == 200
        other = sqlite3.connect(path, isolation_level=None)
        if fault == "locked":
            other.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(5):
            answer = await ask_over(app, wire, "second")
        if fault == "locked":
            other.execute("ROLLBACK")
        other.close()
    assert answer.status >= 500 or (wire == "a2a" and "error" in answer.json), answer.body
    assert b"database" not in answer.body  # its path is for the log


async def ask_over(app: Any, wire: str, thread: str) -> Exchange:
    if wire == "a2a":
        message = {
            "messageId": thread,
            "contextId": thread,
            "role": "ROLE_USER",
            "parts": [{"text": "Hi."}],
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        return await exchange(app, "POST", "/a2a", body)
    path, body_of = BODIES[wire]
    return await exchange(
        app, "POST", path, body_of(thread, [Message.user("Hi.").replace(id="u1")])
    )


def _answered(id: str) -> Answered:
    return Answered(
        id=id, owner="me", wire="openai_chat", created_at=now(), request=ModelRequest("m", ())
    )
