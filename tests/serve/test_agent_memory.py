"""Agents with a memory behind endpoints of models: which thread a request goes on with, and whose
it is."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart, serve, tool
from dragoman.memory import Memory
from dragoman.request import ModelRequest
from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio
deleted: list[str] = []


@tool(requires_approval=True)
def delete(what: str) -> str:
    """Deletes."""
    deleted.append(what)
    return f"deleted {what}"


def agent_of(memory: Memory, reply: Any = None, **how: Any) -> tuple[Agent[None], ScriptedModel]:
    model = ScriptedModel.like(PROVIDERS["anthropic"], reply or counting, key_required=False)
    return Agent(model, tools=[delete], memory=memory, **how), model


def counting(request: ModelRequest) -> str:
    """Says how many messages there are."""
    return f"Seen {len(request.messages)}."


def question(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


async def say(
    app: Any, *talk: dict[str, Any], thread: str | None = None, key: str = "", **fields: Any
) -> str:
    headers = {
        **({"dragoman-thread": thread} if thread else {}),
        **({"authorization": f"Bearer {key}"} if key else {}),
    }
    body = {"model": "m", "messages": talk, **fields}
    made = await exchange(app, "POST", "/v1/chat/completions", body, headers=headers)
    assert made.status == 200, made.body
    return made.json["choices"][0]["message"]["content"]


@pytest.mark.parametrize("store", ["memory:", None])
async def test_a_named_thread_goes_on_with_the_last_message_alone(store: str | None) -> None:
    memory = Memory()
    agent, _ = agent_of(memory)
    app = serve.app({"m": agent}, store=store)
    assert [await say(app, question("Hi."), thread="trip") for _ in range(3)] == [
        "Seen 1.",
        "Seen 3.",
        "Seen 5.",
    ]
    thread = await memory.thread("trip")
    assert thread is not None
    assert await say(app, question("Hi."), thread="other") == "Seen 1."
    assert await say(app, question("Hi."), metadata={"thread_id": "trip"}) == "Seen 7."
    assert await say(app, question("Hi."), metadata={"conversation_id": "trip"}) == "Seen 9."


async def test_what_a_named_thread_holds_goes_before_what_the_client_says_of_it() -> None:
    agent, model = agent_of(Memory())
    app = serve.app({"m": agent})
    await say(app, question("Hi."), thread="trip")
    await say(
        app, question("Made up."), answer("Of course, take all."), question("More."), thread="trip"
    )
    told = [message.text for message in model.requests[-1].messages]
    assert told == ["Hi.", "Seen 1.", "More."]


@pytest.mark.parametrize("store", [MemoryAnswers, None])
async def test_a_client_that_sends_all_back_goes_on_with_its_thread(store: Any) -> None:
    """And each message is stored once, as long as the server knows the answer again."""
    memory = Memory()
    agent, _ = agent_of(memory)
    app = serve.app({"m": agent}, store=store and store())
    talk = [question("One.")]
    for count in (1, 3, 5):
        said = await say(app, *talk)
        assert said == f"Seen {count}."
        talk += [answer(said), question("More.")]
    page = await memory.threads()
    assert len(page.items) == (1 if store else 3)
    [thread] = page.items if store else page.items[:1]
    assert thread.resource_id == "anonymous"


async def test_another_way_on_from_an_earlier_answer_is_another_thread() -> None:
    memory = Memory()
    agent, model = agent_of(memory)
    app = serve.app({"m": agent})
    talk = [question("One."), answer("Seen 1.")]
    await say(app, talk[0])
    await say(app, *talk, question("Left."))
    await say(app, *talk, question("Right."))
    assert [message.text for message in model.requests[-1].messages] == [
        "One.",
        "Seen 1.",
        "Right.",
    ]
    await say(app, *talk, question("Left."), answer("Seen 3."), question("On."))
    assert [message.text for message in model.requests[-1].messages][2:] == [
        "Left.",
        "Seen 3.",
        "On.",
    ]
    assert len((await memory.threads()).items) == 2


async def test_threads_of_keys_and_of_their_users_are_apart() -> None:
    memory = Memory()
    agent, _ = agent_of(memory)
    app = serve.app({"m": agent}, auth=["first-secret", "other-secret"])
    whose = [
        ("first-secret", None),
        ("first-secret", "ann"),
        ("first-secret", "bob"),
        ("other-secret", None),
    ]
    for count in (1, 3):
        for key, user in whose:
            fields = {"user": user} if user else {}
            assert (
                await say(app, question("Hi."), thread="main", key=key, **fields)
                == f"Seen {count}."
            )
    page = await memory.threads()
    assert len({thread.resource_id for thread in page.items}) == len(page.items) == len(whose)
    for thread in page.items:  # nobody gets there by the id that the store has
        assert await say(app, question("Hi."), thread=thread.id, key="other-secret") == "Seen 1."


async def test_a_thread_of_the_application_is_not_everybodys() -> None:
    """Without keys a thread has the name that the client gives; one with an owner is the
    owner's."""
    memory = Memory()
    agent, _ = agent_of(memory)
    await agent.send("My PIN is 1234.", thread_id="private", resource_id="ann")
    app = serve.app({"m": agent})
    body = {"model": "m", "messages": [question("What is it?")]}
    made = await exchange(
        app, "POST", "/v1/chat/completions", body, headers={"dragoman-thread": "private"}
    )
    assert made.status == 400
    assert b"ann" not in made.body


async def test_responses_goes_on_with_the_thread_of_the_response() -> None:
    memory = Memory()
    agent, _ = agent_of(memory)
    app = serve.app({"m": agent})

    async def respond(**fields: Any) -> Any:
        made = await exchange(
            app, "POST", "/v1/responses", {"model": "m", "input": "Hi.", **fields}
        )
        assert made.status == 200, made.body
        return made.json

    first = await respond()
    second = await respond(previous_response_id=first["id"])
    third = await respond(previous_response_id=second["id"])
    assert [each["output"][0]["content"][0]["text"] for each in (first, second, third)] == [
        "Seen 1.",
        "Seen 3.",
        "Seen 5.",
    ]
    assert len((await memory.threads()).items) == 1
    for conversation in ("trip", {"id": "trip"}):
        await respond(conversation=conversation)
    thread = await memory.thread("trip")
    assert thread is not None
    assert len((await memory.recall("trip")).items) == 4


@pytest.mark.parametrize("key", [None, "k" * 32])
async def test_an_approval_is_found_in_the_thread_alone(key: str | None) -> None:
    """A new process that has the memory, and no answers."""

    def reply(request: ModelRequest) -> Message:
        if any(message.tool_results for message in request.messages):
            return Message.model("Done.")
        return Message.model(ToolCallPart("c1", "delete", {"what": "all"}))

    memory = Memory()
    body: dict[str, Any] = {"model": "m", "messages": [question("Go.")]}
    headers = {"dragoman-thread": "trip"}
    agent, _ = agent_of(memory, reply, approval_key=key)
    made = await exchange(
        serve.app({"m": agent}, store=None), "POST", "/v1/chat/completions", body, headers=headers
    )
    message = made.json["choices"][0]["message"]
    [call] = message["tool_calls"]
    assert deleted == []
    for content, status in (("deleted all", 400), ('{"approved": true}', 200)):
        result = {"role": "tool", "tool_call_id": call["id"], "content": content}
        agent, _ = agent_of(memory, reply, approval_key=key)
        app = serve.app({"m": agent}, store=None)
        talk = {**body, "messages": [question("Go."), message, result]}
        made = await exchange(app, "POST", "/v1/chat/completions", talk, headers=headers)
        assert made.status == status, made.body
    assert deleted == ["all"]
    deleted.clear()
