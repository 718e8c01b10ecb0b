"""What an MCP server of a provider's may do only once somebody approves it: clients of an agent are
asked as for the agent's own tools, clients of a gateway as the provider asks (R, section 1)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman import Agent, ServerTool, serve
from dragoman.transport import Exchange, Player
from support.asgi import exchange
from support.responses import HEAD, message_item

pytestmark = pytest.mark.anyio

ASKED = {
    "type": "mcp_approval_request",
    "server_label": "zip",
    "id": "mcpr_1",
    "name": "shorten",
    "arguments": '{"url":"x"}',
}
SAID = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
MCP = {"type": "mcp", "server_label": "zip", "server_url": "https://zip"}
HI = {"role": "user", "content": "Hi."}


def playing() -> Player:
    bodies = [
        {**HEAD, "id": id_, "status": "completed", "output": [item]}
        for id_, item in (("resp_1", ASKED), ("resp_2", message_item("Done.")))
    ]
    return Player([Exchange(body=json.dumps(body).encode()) for body in bodies])


def sent(player: Player) -> tuple[Any, list[Any]]:
    body = player.requests[-1].body
    fields = msgspec.json.decode(body if isinstance(body, bytes) else msgspec.json.encode(body))
    return fields.get("previous_response_id"), fields["input"]


def agent_app(**how: Any) -> tuple[Player, Any]:
    player = playing()
    agent = Agent(
        "openai-responses:gpt-5",
        transport=player,
        api_key="x",
        server_tools=[ServerTool("mcp", {**MCP, "require_approval": "always"})],
        approval_key=how.pop("key", None),
    )
    return player, serve.app({"m": agent}, **{"store": "memory:", **how})


@pytest.mark.parametrize("key", [None, b"k" * 32])
@pytest.mark.parametrize("by_id", [True, False])
async def test_a_client_of_the_responses_api_is_asked_once_and_by_the_agent(
    by_id: bool, key: bytes | None
) -> None:
    player, app = agent_app(key=key)
    first = await exchange(app, "POST", "/v1/responses", {"model": "m", "input": "Hi."})
    [asked] = first.json["output"]
    assert (asked["type"], asked["server_label"], asked["name"]) == (ASKED["type"], "dragoman", "shorten")  # fmt: skip
    said = {**SAID, "approval_request_id": asked["id"]}
    rest = {"previous_response_id": first.json["id"], "input": [said]} if by_id else {"input": [HI, asked, said]}  # fmt: skip
    last = await exchange(app, "POST", "/v1/responses", {"model": "m", **rest})
    assert last.status == 200, last.body
    assert sent(player) == ("resp_1", [SAID])


async def test_a_client_may_not_answer_by_the_providers_own_id() -> None:
    """It would go round what the server signs."""
    player, app = agent_app(key=b"k" * 32)
    first = await exchange(app, "POST", "/v1/responses", {"model": "m", "input": "Hi."})
    body = {"model": "m", "previous_response_id": first.json["id"], "input": [SAID]}
    assert (await exchange(app, "POST", "/v1/responses", body)).status == 400
    assert len(player.requests) == 1


async def test_without_a_store_an_approval_of_a_providers_cannot_come_back() -> None:
    player, app = agent_app(store=None)
    first = await exchange(app, "POST", "/v1/responses", {"model": "m", "input": "Hi."})
    said = {**SAID, "approval_request_id": first.json["output"][0]["id"]}
    body = {"model": "m", "input": [HI, *first.json["output"], said]}
    assert (await exchange(app, "POST", "/v1/responses", body)).status == 400
    assert len(player.requests) == 1


async def test_a_client_of_chat_completions_has_one_call_to_answer() -> None:
    player, app = agent_app()
    asked = [{"role": "user", "content": "Hi."}]
    first = await exchange(app, "POST", "/v1/chat/completions", {"model": "m", "messages": asked})
    said = first.json["choices"][0]["message"]
    [call] = said["tool_calls"]
    assert call["function"]["name"] == "request_approval"
    result = {"role": "tool", "tool_call_id": call["id"], "content": '{"approved": true}'}
    body = {"model": "m", "messages": [*asked, said, result]}
    assert (await exchange(app, "POST", "/v1/chat/completions", body)).status == 200
    assert sent(player) == ("resp_1", [SAID])


async def test_a_client_of_ag_ui_is_asked_by_an_interrupt() -> None:
    player, app = agent_app()
    body: dict[str, Any] = {"threadId": "t", "runId": "r", "protocolVersion": "1.0", "tools": []}
    async with app.router.lifespan_context(app):
        question = [{"id": "u1", "role": "user", "content": "Hi."}]
        first = await exchange(app, "POST", "/ag-ui", {**body, "messages": question})
        last = [json.loads(line[5:]) for line in first.body.decode().splitlines() if line[:5] == "data:"][-1]  # fmt: skip
        [interrupt] = last["outcome"]["interrupts"]
        assert interrupt["toolCallId"] == "mcpr_1"
        resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]  # fmt: skip
        again = {**body, "runId": "r2", "messages": [], "resume": resume}
        assert (await exchange(app, "POST", "/ag-ui", again)).status == 200
    assert sent(player) == ("resp_1", [SAID])


def gateway_app(**how: Any) -> tuple[Player, Any]:
    player = playing()
    gateway = serve.Gateway({"m": "openai-responses:gpt-5"}, transport=player, keys={"openai-responses": "x"}, references=True)  # fmt: skip
    return player, serve.app(gateway=gateway, **how)


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("store", ["memory:", None])
async def test_a_client_of_a_gateway_sees_and_answers_the_providers_item(
    store: str | None, by_id: bool
) -> None:
    player, app = gateway_app(store=store)
    asked = {"model": "m", "tools": [MCP]}
    first = await exchange(app, "POST", "/v1/responses", {**asked, "input": "Hi."})
    assert first.json["output"] == [ASKED]
    by_link = {"previous_response_id": first.json["id"], "input": [SAID]}
    rest = by_link if by_id else {"input": [HI, ASKED, SAID]}
    last = await exchange(app, "POST", "/v1/responses", {**asked, **rest})
    if by_id and store is None:
        assert last.status == 400
        return
    assert "dragoman-loss" not in last.headers
    assert sent(player) == (("resp_1", [SAID]) if by_id else (None, [HI, ASKED, SAID]))


@pytest.mark.parametrize(("content", "approved"), [('{"approved": true}', True), ("yes", False)])
async def test_a_client_of_another_api_behind_a_gateway_approves_by_json_alone(
    content: str, approved: bool
) -> None:
    player, app = gateway_app(store="memory:")
    asked = [{"role": "user", "content": "Hi."}]
    first = await exchange(app, "POST", "/v1/chat/completions", {"model": "m", "messages": asked})
    said = first.json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": "mcpr_1", "content": content}
    body = {"model": "m", "messages": [*asked, said, result]}
    assert (await exchange(app, "POST", "/v1/chat/completions", body)).status == 200
    assert sent(player)[1][-1] == {**SAID, "approve": approved}


async def test_an_approval_is_passed_on_once() -> None:
    player = playing()
    player._left.append(player._left[-1])  # pyright: ignore[reportPrivateUsage]
    agent = Agent("openai-responses:gpt-5", transport=player, api_key="x", approval_key=b"k" * 32)
    app = serve.app({"m": agent}, store="memory:")
    first = await exchange(app, "POST", "/v1/responses", {"model": "m", "input": "Hi."})
    said = {**SAID, "approval_request_id": first.json["output"][0]["id"]}
    answers = [
        await exchange(app, "POST", "/v1/responses", {"model": "m", "previous_response_id": first.json["id"], "input": [said], "instructions": words})
        for words in ("One.", "Two.")
    ]  # fmt: skip
    assert [answer.status for answer in answers] == [200, 200]
    approved = [
        msgspec.json.decode(msgspec.json.encode(request.body))["input"][-1]["approve"]
        for request in player.requests[1:]
    ]
    assert approved == [True, False]
