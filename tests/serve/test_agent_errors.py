"""Runs of agents that fail, and clients that answer in part: what every wire's client is told."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart, serve, tool
from dragoman.errors import AuthenticationError, DragomanError, OverloadedError, RateLimitError
from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.limits import Limits
from dragoman.request import ModelRequest, ToolSpec
from dragoman.testing import ScriptedModel
from dragoman.tools import ToolContext, Toolset
from support.asgi import exchange
from support.gateway import MODEL, answered, client_of
from support.serving import ASKS
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio
WIRES = list(PROVIDERS)
deleted: list[str] = []
BOTH = [
    pytest.param(wire, stream, marks=() if (place % 2 == 0) is stream else pytest.mark.slow)
    for place, wire in enumerate(WIRES)
    for stream in (False, True)
]
"""Every wire whole and streamed; quick is one of the two."""


@pytest.fixture(autouse=True)
def nothing_deleted() -> None:
    deleted.clear()


@tool
def own(at: str) -> str:
    """The agent's own."""
    return f"hidden {at}"


@tool(requires_approval=True)
def delete(what: str) -> str:
    """Deletes."""
    deleted.append(what)
    return f"deleted {what}"


def hello(_: ModelRequest) -> str:
    return "Hi."


def app_of(reply: Any, tools: Any = (own, delete), **how: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel.like(PROVIDERS["anthropic"], reply, key_required=False)
    return serve.app({MODEL: Agent(model, tools=tools, **how)}), model


def request(*messages: Message, stream: bool = False, tools: Any = ()) -> ModelRequest:
    return ModelRequest(MODEL, messages or (Message.user("Hi."),), tuple(tools), stream=stream)


@pytest.mark.parametrize(("wire", "stream"), BOTH)
async def test_an_error_after_a_hidden_round_is_that_of_the_upstream_in_public(
    wire: str, stream: bool
) -> None:
    """Nothing was said yet, so that there is a status."""
    for error, status in (
        (RateLimitError("slow down", provider="anthropic", status=429), 429),
        (OverloadedError("busy", provider="anthropic", status=529), 503),
        (AuthenticationError("the key sk-secret is wrong", provider="anthropic", status=401), 500),
    ):

        def reply(asked: ModelRequest, error: DragomanError = error) -> Message:
            if any(message.tool_results for message in asked.messages):
                raise error
            return Message.model(ToolCallPart("c1", "own", {"at": "a"}))

        app, _ = app_of(reply)
        client, transport = client_of(wire, app)
        [event] = await answered(client, request(stream=stream))
        assert isinstance(event, RunError)
        assert transport.statuses[-1] // 100 == status // 100
        assert (transport.statuses[-1] == 429) is (status == 429)
        assert b"sk-secret" not in transport.bodies[-1]
        assert b"hidden" not in transport.bodies[-1]


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_after_the_first_word_comes_as_the_wire_has_it(wire: str) -> None:
    def reply(asked: ModelRequest) -> Message:
        if any(message.tool_results for message in asked.messages):
            raise AuthenticationError(
                "the key sk-secret is wrong", provider="anthropic", status=401
            )
        return Message.model("Let me see.", ToolCallPart("c1", "own", {"at": "a"}))

    app, _ = app_of(reply)
    client, transport = client_of(wire, app)
    events = await answered(client, request(stream=True))
    assert isinstance(events[-1], RunError)
    assert fold(events)[0].text == "Let me see."
    assert transport.statuses[-1] == 200
    assert b"sk-secret" not in transport.bodies[-1]


@pytest.mark.parametrize(("wire", "stream"), BOTH)
async def test_a_limit_of_the_agent_is_no_fault_of_the_client(wire: str, stream: bool) -> None:
    def reply(asked: ModelRequest) -> Message:
        return Message.model(ToolCallPart(f"c{len(asked.messages)}", "own", {"at": "a"}))

    app, model = app_of(reply, limits=Limits(model_calls=3))
    client, transport = client_of(wire, app)
    [event] = await answered(client, request(stream=stream))
    assert isinstance(event, RunError)
    assert transport.statuses[-1] >= 500
    assert len(model.requests) == 3


async def test_what_is_left_of_what_was_asked_is_asked_again() -> None:
    def reply(asked: ModelRequest) -> Message:
        if not any(message.tool_results for message in asked.messages):
            return Message.model(
                *[ToolCallPart(f"c{what}", "delete", {"what": what}) for what in "ab"]
            )
        return Message.model("/".join(str(each.result) for each in asked.messages[-1].tool_results))

    app, model = app_of(reply)
    path, body = ASKS["openai_chat"]
    made = (await exchange(app, "POST", path, {**body, "model": MODEL})).json
    said = made["choices"][0]["message"]
    chat = [*body["messages"], said]
    for n, place in enumerate("ab"):
        asked = said["tool_calls"][0] if n else chat[1]["tool_calls"][0]
        chat.append({"role": "tool", "tool_call_id": asked["id"], "content": "true"})
        made = (await exchange(app, "POST", path, {**body, "model": MODEL, "messages": chat})).json
        said = made["choices"][0]["message"]
        chat.append(said)
        assert deleted == list("ab"[: n + 1]), place
    assert said["content"] == "deleted a/deleted b"
    assert len(model.requests) == 2


@pytest.mark.parametrize("wire", WIRES)
async def test_a_reserved_tool_that_the_client_declares_stays_unknown_to_the_model(
    wire: str,
) -> None:
    app, model = app_of(hello)
    client, _ = client_of(wire, app)
    declared = ToolSpec("request_approval", "Asks.", {"type": "object", "properties": {}})
    await answered(client, request(tools=[declared]))
    assert {each.name for each in model.requests[-1].tools} == {"own", "delete"}


async def test_a_name_that_a_toolset_has_is_taken_too() -> None:
    class Set(Toolset):
        async def list_tools(self, context: ToolContext[Any]) -> Any:
            return [own]

    app, model = app_of(hello, tools=[Set()])
    path, body = ASKS["openai_chat"]
    named: dict[str, Any] = {
        "type": "function",
        "function": {"name": "own", "parameters": {"type": "object", "properties": {}}},
    }
    made = await exchange(app, "POST", path, {**body, "model": MODEL, "tools": [named]})
    assert made.status == 400, made.body
    assert model.requests == []


async def test_words_instead_of_an_answer_leave_the_call_undone() -> None:
    def reply(asked: ModelRequest) -> Message:
        if len(asked.messages) == 1:
            return Message.model(ToolCallPart("c1", "delete", {"what": "all"}))
        return Message.model("As you like.")

    app, model = app_of(reply)
    path, body = ASKS["openai_responses"]
    first = (await exchange(app, "POST", path, {**body, "model": MODEL})).json
    fields = {"model": MODEL, "input": "Forget it.", "previous_response_id": first["id"]}
    last = (await exchange(app, "POST", path, fields)).json
    assert last["output"][0]["content"][0]["text"] == "As you like."
    [result] = [each for message in model.requests[-1].messages for each in message.tool_results]
    assert result.is_error
    assert deleted == []
