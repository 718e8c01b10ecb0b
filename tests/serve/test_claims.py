"""An approval that comes in twice at once: what it allows is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart, ToolResultPart, serve, tool
from dragoman.fold import fold
from dragoman.request import ModelRequest
from dragoman.runs import RunLog, open_log
from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.testing import ScriptedModel
from support import postgres
from support.gateway import MODEL, answered, client_of
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[str]:
    if postgres.programs() is None:
        pytest.skip("Postgres is not installed: apt-get install postgresql")
    with postgres.postgres() as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.service)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return postgres.new_database(request.getfixturevalue("postgres_server"))
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/answers.db"


def reply(asked: Any) -> Message | str:
    results = [part for message in asked.messages for part in message.tool_results]
    if not results:
        return Message.model(ToolCallPart("c1", "pay", {"whom": "Ann"}))
    return f"Told: {results[-1].result}"


def approval(message: Message) -> Message:
    return Message.user(
        *[ToolResultPart(call.id, call.name, '{"approved": true}') for call in message.tool_calls]
    )


def meeting(log: RunLog, barrier: asyncio.Barrier) -> RunLog:
    """A log whose claims are made when all have come."""
    claim = log.claim

    async def met(thread_id: str, interrupt_id: str, run_id: str) -> bool:
        await barrier.wait()
        return await claim(thread_id, interrupt_id, run_id)

    log.claim = met
    return log


@pytest.mark.parametrize(
    ("wire", "kept"), [("openai_chat", True), ("openai_chat", False), ("openai_responses", True)]
)
async def test_what_is_approved_twice_at_once_is_done_once(wire: str, kept: bool, url: str) -> None:
    """Two applications over one store, as two processes have it. Not kept: the client's copy says
    all, signed."""
    paid: list[str] = []

    @tool(requires_approval=True)
    def pay(whom: str) -> str:
        """Pays."""
        paid.append(whom)
        return "paid"

    barrier = asyncio.Barrier(2)
    store: Any = (MemoryAnswers() if url == "memory:" else url) if kept else None
    shared = open_log("memory:") if url == "memory:" else None
    apps: list[Any] = []
    for _ in range(2):
        agent = Agent(
            ScriptedModel.like(PROVIDERS["openai_chat"], reply, key_required=False),
            tools=[pay],
            approval_key=b"k" * 32,
        )
        apps.append(serve.app({MODEL: agent}, store=store, log=shared or open_log(url)))
    async with AsyncExitStack() as stack:
        for app in apps:
            await stack.enter_async_context(app.router.lifespan_context(app))
        first, _ = client_of(wire, apps[0])
        hello = Message.user("Hi.")
        [asked] = await said(first, hello)
        for log in {id(app.state.service.log): app.state.service.log for app in apps}.values():
            meeting(log, barrier)
        talk = [hello, asked, approval(asked)]
        answers = await asyncio.gather(*[said(client_of(wire, app)[0], *talk) for app in apps])
        assert paid == ["Ann"]
        texts = sorted(message.text for [message] in answers)
        assert [text.startswith("Told: paid") for text in texts] in ([True, False], [False, True])


async def said(model: Any, *messages: Message) -> list[Message]:
    return fold(await answered(model, ModelRequest(MODEL, messages, (), stream=False)))
