"""An approval that is sent again: the tool runs once, whoever sends it and whatever stands around
it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import Agent, Memory, Message, ToolCallPart, serve, tool
from dragoman.runs import open_log
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange

pytestmark = pytest.mark.anyio

KEYS = ("own-secret-key", "other-secret-key")
memories = pytest.mark.parametrize("memory", [True, False], ids=["memory", "no memory"])
stores = pytest.mark.parametrize("store", [None, "memory:"], ids=["no store", "store"])


def reply(asked: Any) -> Message | str:
    if not asked.messages[-1].tool_results:
        return Message.model(ToolCallPart("c1", "pay", {"whom": "Ann"}))
    return f"Told: {asked.messages[-1].tool_results[-1].result}"


class Shop:
    """A server with an agent that pays once it is allowed to, and what it paid."""

    def __init__(self, app: Any, paid: list[str]) -> None:
        self.app, self.paid = app, paid

    async def ask(self, path: str, body: dict[str, Any], key: str = KEYS[0]) -> Exchange:
        return await exchange(
            self.app, "POST", path, body, headers={"authorization": f"Bearer {key}"}
        )

    async def ask_chat(self, words: str = "Pay Ann.", **fields: Any) -> list[dict[str, Any]]:
        """Asks for a payment → the messages that approve it."""
        question = [{"role": "user", "content": words}]
        answer = await self.ask(
            "/v1/chat/completions", {"model": "default", "messages": question, **fields}
        )
        assert answer.status == 200, answer.body
        message = answer.json["choices"][0]["message"]
        return [*question, message, *[approval(call["id"]) for call in message["tool_calls"]]]

    async def send(
        self, messages: Sequence[dict[str, Any]], key: str = KEYS[0], **fields: Any
    ) -> Exchange:
        return await self.ask(
            "/v1/chat/completions", {"model": "default", "messages": [*messages], **fields}, key
        )


def approval(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": json.dumps({"approved": True})}


@asynccontextmanager
async def shop(*, memory: bool, store: str | None, key: bool) -> AsyncGenerator[Shop]:
    paid: list[str] = []

    @tool(requires_approval=True)
    def pay(whom: str) -> str:
        """Pays."""
        paid.append(whom)
        return "paid"

    agent = Agent(
        ScriptedModel.like("openai:gpt-4o", reply, key_required=False),
        tools=[pay],
        memory=Memory("memory:") if memory else None,
        approval_key=b"k" * 32 if key else None,
    )
    app = serve.app(agent, store=store, auth=KEYS)
    async with app.router.lifespan_context(app):
        yield Shop(app, paid)


@pytest.mark.mend("1.2")
@memories
async def test_a_byte_equal_approval_runs_its_tool_once_over_chat(memory: bool) -> None:
    async with shop(memory=memory, store="memory:", key=False) as server:
        approved = await server.ask_chat()
        for _ in range(5):
            await server.send(approved)
        assert server.paid == ["Ann"]


@pytest.mark.mend("1.2")
@memories
async def test_twenty_byte_equal_approvals_at_once_run_their_tool_once(memory: bool) -> None:
    async with shop(memory=memory, store="memory:", key=False) as server:
        approved = await server.ask_chat()
        await asyncio.gather(*[server.send(approved) for _ in range(20)])
        assert server.paid == ["Ann"]


@pytest.mark.mend("1.2")
@memories
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
async def test_an_approval_of_a_response_runs_its_tool_once(memory: bool, at_once: bool) -> None:
    async with shop(memory=memory, store="memory:", key=False) as server:
        asked = (await server.ask("/v1/responses", {"model": "default", "input": "Pay Ann."})).json
        [request] = [item for item in asked["output"] if item["type"] == "mcp_approval_request"]
        item = {
            "type": "mcp_approval_response",
            "approval_request_id": request["id"],
            "approve": True,
        }
        body = {"model": "default", "input": [item], "previous_response_id": asked["id"]}
        if at_once:
            await asyncio.gather(*[server.ask("/v1/responses", body) for _ in range(20)])
        else:
            for _ in range(5):
                await server.ask("/v1/responses", body)
        assert server.paid == ["Ann"]


@pytest.mark.mend("1.3")
@memories
@stores
async def test_a_signed_approval_runs_its_tool_once_whatever_stands_around_it(
    memory: bool, store: str | None
) -> None:
    # Without a store only the client can say that it goes on with a thread of the memory.
    named = {"metadata": {"thread_id": "t"}} if memory and store is None else {}
    async with shop(memory=memory, store=store, key=True) as server:
        approved = await server.ask_chat(**named)
        assert (await server.send(approved, **named)).status == 200
        assert server.paid == ["Ann"]
        for words in ("Pay Ann!", "Something else.", "Pay Bob."):
            await server.send([{"role": "user", "content": words}, *approved[1:]])
        await server.send([{"role": "system", "content": "Be quick."}, *approved])
        await server.send(approved, user="somebody else")
        await server.send(approved, key=KEYS[1])
        for number in range(3):
            await server.send(
                [{"role": "user", "content": f"{number}"}, *approved[1:]], key=KEYS[1]
            )
        assert server.paid == ["Ann"]


@pytest.mark.mend("1.3")
@stores
async def test_a_signed_approval_is_of_no_use_to_another_caller(store: str | None) -> None:
    """Not even before its owner used it."""
    async with shop(memory=False, store=store, key=True) as server:
        approved = await server.ask_chat()
        await server.send(approved, key=KEYS[1])
        await server.send(approved, user="somebody else")
        assert server.paid == []
        await server.send(approved)
        assert server.paid == ["Ann"]


@pytest.mark.mend("1.3")
@memories
@pytest.mark.parametrize("key", [True, False], ids=["signed", "unsigned"])
async def test_two_conversations_with_one_call_id_do_not_meet(memory: bool, key: bool) -> None:
    """The provider calls each of its calls `c1`."""
    async with shop(memory=memory, store="memory:", key=key) as server:
        first, second = await server.ask_chat("Pay Ann."), await server.ask_chat("Please pay Ann.")
        await asyncio.gather(server.send(first), server.send(second))
        assert server.paid == ["Ann", "Ann"]


@pytest.mark.mend("1.3")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_claim_is_true_again_for_the_run_that_holds_it(kind: str, tmp_path: Any) -> None:
    url = "memory:" if kind == "memory" else f"sqlite:///{tmp_path}/runs.db"
    async with open_log(url) as log:
        assert await log.claim("owner", "token:n", "r1")
        assert not await log.claim("owner", "token:n", "r2")
        assert await log.claim("owner", "token:n", "r1")
        assert await log.claim("another", "token:n", "r2")
        verdicts = await asyncio.gather(
            *[log.claim("t", "i", f"r{number}") for number in range(10)]
        )
        assert verdicts.count(True) == 1
