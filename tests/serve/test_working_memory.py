"""An agent with a working memory behind every protocol: no client sees how the model changes it, and
the conversation goes on with what is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Agent, Message, ThinkingPart, ToolCallPart, fold, serve
from dragoman.codec.memos import is_memo
from dragoman.memory import Memory, WorkingMemory
from dragoman.message import Role
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange
from support.protocols import BODIES, events_of, posted

pytestmark = pytest.mark.anyio

SECRET = "# Ann likes rivers"
TURNS = 3
APIS: dict[str, tuple[str, Any]] = {
    "chat": ("/v1/chat/completions", lambda text: {"messages": [{"role": "user", "content": text}]}),
    "responses": ("/v1/responses", lambda text: {"input": text}),
    "anthropic": ("/v1/messages", lambda text: {"max_tokens": 99, "messages": [{"role": "user", "content": text}]}),
    "ollama": ("/api/chat", lambda text: {"messages": [{"role": "user", "content": text}]}),
}  # fmt: skip


def reply(request: ModelRequest) -> Message:
    """Changes the working memory in each turn, and then answers."""
    signed = ThinkingPart("Hm.", {"anthropic": {"signature": "c2lnbmVk"}})
    last = request.messages[-1]
    number = len(request.messages)
    if last.role is Role.USER and last.text:
        call = ToolCallPart(f"w{number}", "updateWorkingMemory", {"memory": f"{SECRET} {number}"})
        return Message.model(signed, call)
    return Message.model(signed, f"Seen {number}.")


def tell(request: ModelRequest) -> Message:
    number = len(request.messages)
    return Message.model(f"Seen {number}.<working_memory>{SECRET} {number}</working_memory>")


def served(extract: bool) -> tuple[Any, Memory, ScriptedModel]:
    memory = Memory(working=WorkingMemory(extract=extract), last_messages=100)
    model = ScriptedModel(tell if extract else reply, wire="anthropic")
    return serve.app({"m": Agent(model, memory=memory)}, store="memory:"), memory, model


def check_hidden(answer: Exchange) -> None:
    assert answer.status == 200, answer.body
    seen = answer.body.decode()
    for word in ("updateWorkingMemory", "rivers", "working_memory", '"version"'):
        assert word not in seen, seen
    assert "Seen" in seen


async def check_stored(memory: Memory, model: ScriptedModel) -> None:
    """One memo, each turn whole and in order, and each request begins with the one before."""
    (thread,) = (await memory.threads()).items
    assert thread.branch == 0
    messages = (await memory.recall(thread.id, per_page=None)).items
    asked = [message.text for message in messages if message.role is Role.USER and message.text]
    assert [is_memo(message) for message in messages].count(True) == 1
    assert asked[1:] == [f"q{turn}" for turn in range(TURNS)]
    working = await memory.working(resource_id=thread.resource_id or "")
    assert working.version == TURNS
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages


@pytest.mark.parametrize("extract", [False, True], ids=["tool", "tags"])
@pytest.mark.parametrize("wire", list(BODIES))
async def test_clients_of_agent_protocols(wire: str, extract: bool) -> None:
    """Each sends its copy of the conversation, in which nothing of it is."""
    app, memory, model = served(extract)
    async with app.router.lifespan_context(app):
        copy: list[Message] = []
        for turn in range(TURNS):
            copy.append(Message.user(f"q{turn}").replace(id=f"u{turn}"))
            answer = await posted(app, wire, "t", copy)
            check_hidden(answer)
            copy += fold(events_of(wire, answer))
    await check_stored(memory, model)


@pytest.mark.parametrize("extract", [False, True], ids=["tool", "tags"])
async def test_a_client_of_a2a(extract: bool) -> None:
    app, memory, model = served(extract)
    async with app.router.lifespan_context(app):
        for turn, method in enumerate(
            ["SendStreamingMessage", "SendMessage", "SendStreamingMessage"]
        ):
            part = {"text": f"q{turn}"}
            message = {
                "messageId": f"m{turn}",
                "role": "ROLE_USER",
                "contextId": "t",
                "parts": [part],
            }
            body = {"jsonrpc": "2.0", "id": turn, "method": method, "params": {"message": message}}
            check_hidden(await exchange(app, "POST", "/a2a", body))
        body = {"jsonrpc": "2.0", "id": 9, "method": "ListTasks", "params": {"includeArtifacts": True, "historyLength": 99}}  # fmt: skip
        check_hidden(await exchange(app, "POST", "/a2a", body))
    await check_stored(memory, model)


@pytest.mark.parametrize("extract", [False, True], ids=["tool", "tags"])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", list(APIS))
async def test_clients_of_model_apis(api: str, is_streamed: bool, extract: bool) -> None:
    app, memory, model = served(extract)
    path, body = APIS[api]
    async with app.router.lifespan_context(app):
        for turn in range(TURNS):
            request = {"model": "m", "stream": is_streamed, **body(f"q{turn}")}
            check_hidden(
                await exchange(app, "POST", path, request, headers={"dragoman-thread": "t"})
            )
    await check_stored(memory, model)


@pytest.mark.parametrize("extract", [False, True], ids=["tool", "tags"])
async def test_a_client_that_resends_its_copy_goes_on_with_the_thread(extract: bool) -> None:
    """It names no thread: its copy is known by what it was shown."""
    app, memory, model = served(extract)
    async with app.router.lifespan_context(app):
        talk: list[dict[str, str]] = []
        for turn in range(TURNS):
            talk.append({"role": "user", "content": f"q{turn}"})
            answer = await exchange(
                app, "POST", "/v1/chat/completions", {"model": "m", "messages": talk}
            )
            check_hidden(answer)
            talk.append(
                {"role": "assistant", "content": answer.json["choices"][0]["message"]["content"]}
            )
    await check_stored(memory, model)


async def test_what_a_client_was_shown_can_be_read_again() -> None:
    """The events of a run from its log, for a client that comes later."""
    app, _, _ = served(extract=False)
    async with app.router.lifespan_context(app):
        prompt = [Message.user("q0").replace(id="u0")]
        answer = await posted(app, "ag_ui", "t", prompt)
        run_id = next(
            json.loads(line[6:])["runId"]
            for line in answer.body.decode().splitlines()
            if line.startswith("data: ")
        )
        again = await exchange(app, "GET", f"/ag-ui/{run_id}/stream")
        if again.status == 404:
            pytest.skip("there is no such route")
        check_hidden(again)


async def test_a_tool_of_the_clients_with_that_name_is_refused() -> None:
    app, _, _ = served(extract=False)
    tool = {"name": "updateWorkingMemory", "description": "", "parameters": {"type": "object"}}
    async with app.router.lifespan_context(app):
        answer = await posted(
            app, "ag_ui", "t", [Message.user("q0").replace(id="u0")], tools=[tool]
        )
    assert answer.status == 400 or b"RUN_ERROR" in answer.body
    assert answer.status < 500
