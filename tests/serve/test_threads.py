"""Conversations of one key stay apart, however much they are alike."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart, ToolResultPart, serve, tool
from dragoman.fold import fold
from dragoman.request import ModelRequest, ToolSpec
from dragoman.serve.core.threads import is_thread_of, thread_id
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.gateway import MODEL, answered, client_of

pytestmark = pytest.mark.anyio
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})


@tool
def secret(of: str) -> str:
    """What somebody keeps to himself."""
    return f"secret of {of}"


def agent_of(reply: Any) -> tuple[Agent[None], ScriptedModel]:
    model = ScriptedModel(reply, wire="anthropic")
    return Agent(model, tools=[secret], transport=model.transport, api_key="k"), model


def yes(_: ModelRequest) -> str:
    return "Yes."


def sent(model: ScriptedModel) -> str:
    """All that the model was sent last."""
    return repr(model.requests[-1].messages)


async def test_users_of_one_key_that_say_the_same_do_not_get_what_tools_said_to_another() -> None:
    """What an agent's own tool said is not seen by its client, so that the client's copies are
    equal."""
    count = 0

    def reply(request: ModelRequest) -> Message | str:
        nonlocal count
        if request.messages[-1].tool_results or len(request.messages) > 1:
            return "Done."
        count += 1
        return Message.model(ToolCallPart("call_0", "secret", {"of": f"user {count}"}))

    agent, model = agent_of(reply)
    app = serve.app(agent)
    for name in ("ann", "bob"):
        talk = [{"role": "user", "content": "Look it up."}]
        made = await exchange(
            app, "POST", "/v1/chat/completions", {"model": MODEL, "user": name, "messages": talk}
        )
        assert made.json["choices"][0]["message"]["content"] == "Done."
    talk += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "What was it?"}]
    for name, own in (("ann", "user 1"), ("bob", "user 2"), ("eve", None)):
        await exchange(
            app, "POST", "/v1/chat/completions", {"model": MODEL, "user": name, "messages": talk}
        )
        assert [each for each in ("user 1", "user 2") if each in sent(model)] == (
            [own] if own else []
        )


async def test_a_short_answer_late_in_one_conversation_is_not_the_beginning_of_another() -> None:
    agent, model = agent_of(yes)
    app = serve.app(agent)
    first = await exchange(
        app, "POST", "/v1/responses", {"model": MODEL, "input": "My PIN is 1234."}
    )
    await exchange(
        app,
        "POST",
        "/v1/responses",
        {"model": MODEL, "input": "Sure?", "previous_response_id": first.json["id"]},
    )
    assert "1234" in sent(model)
    client, _ = client_of("openai_responses", app)
    talk = [Message.user("Sure?"), Message.model("Yes."), Message.user("Why?")]
    await answered(client, ModelRequest(MODEL, tuple(talk), stream=False))
    assert "1234" not in sent(model)


@pytest.mark.parametrize("wire", ["openai_chat", "ollama", "anthropic", "google"])
async def test_calls_of_the_same_id_are_calls_of_two_conversations(wire: str) -> None:
    """Many providers number the calls of a conversation."""

    def reply(request: ModelRequest) -> Message | str:
        if request.messages[-1].tool_results:
            return "Done."
        return Message.model(ToolCallPart("call_0", "look", {"at": "it"}))

    agent, model = agent_of(reply)
    app = serve.app(agent)
    client, _ = client_of(wire, app)
    for question in ("My PIN is 1234.", "Look."):
        talk = [Message.user(question)]
        [message] = fold(
            await answered(client, ModelRequest(MODEL, tuple(talk), (LOOK,), stream=False))
        )
    results = Message.user(ToolResultPart(message.tool_calls[0].id, "look", "there"))
    edited = [Message.user("Look here."), message.replace(content=(*message.content,)), results]
    await answered(client, ModelRequest(MODEL, tuple(edited), (LOOK,), stream=False))
    assert "1234" not in sent(model)
    assert "there" in sent(model)


async def test_a_named_conversation_is_found_by_its_name_alone() -> None:
    def reply(request: ModelRequest) -> Message | str:
        if len(request.messages) > 1:
            return "Yes."
        return Message.model(ToolCallPart("call_0", "secret", {"of": "mine"}))

    agent, model = agent_of(reply)
    app = serve.app(agent)
    talk = [{"role": "user", "content": "Hi."}]
    for name in (None, "yours", "mine"):
        headers = {"dragoman-thread": "mine"}
        await exchange(
            app,
            "POST",
            "/v1/chat/completions",
            {"model": MODEL, "messages": talk[:1]},
            headers=headers,
        )
        talk = [
            *talk[:1],
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "And?"},
        ]
        headers = {"dragoman-thread": name} if name else {}
        await exchange(
            app, "POST", "/v1/chat/completions", {"model": MODEL, "messages": talk}, headers=headers
        )
        assert ("secret of mine" in sent(model)) is (name == "mine")


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("key", "main"),
        ("key", "a/b"),
        ("key/ann", "main"),
        ("anonymous", "main"),
        ("anonymous/ann", "main"),
    ],
)
def test_an_id_belongs_to_whom_it_was_made_for(resource: str, name: str) -> None:
    made = thread_id(resource, name)
    with_keys, without = (
        ["key", "key/ann", "key/a", "other"],
        ["anonymous", "anonymous/ann", "anonymous/a"],
    )
    everybody = with_keys if resource in with_keys else without
    assert [each for each in everybody if is_thread_of(made, each)] == [resource]
