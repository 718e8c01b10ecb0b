"""One thread of one caller over every protocol: each goes on where another stopped, with the same
messages under the same ids."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import anyio
import pytest

from dragoman import Agent, Message, ToolCallPart, fold, serve
from dragoman.memory import Memory
from dragoman.memory.conversation import load_thread
from dragoman.testing import ScriptedModel
from support import postgres
from support.asgi import exchange
from support.protocols import PAID, events_of, pay, posted, reply, roll, served_agent

pytestmark = pytest.mark.anyio
WAYS = ["ag_ui", "ai_sdk", "a2a", "openai_responses"]


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[str]:
    if postgres.programs() is None:
        pytest.skip("Postgres is not installed: apt-get install postgresql")
    with postgres.postgres() as server:
        yield server


@pytest.fixture(
    params=[
        "memory",
        pytest.param("sqlite", marks=pytest.mark.slow),
        pytest.param("postgres", marks=pytest.mark.service),
    ]
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return postgres.new_database(request.getfixturevalue("postgres_server"))
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/server.db"


async def asked(app: Any, way: str, text: str, id: str) -> str:
    """A question over one of the protocols → the words of the answer. Only the new message is
    sent."""
    if way == "openai_responses":
        answer = await exchange(
            app, "POST", "/v1/responses", {"model": "m", "input": text, "conversation": "trip"}
        )
        assert answer.status == 200, answer.body
        said = [item for item in answer.json["output"] if item["type"] == "message"]
        return "".join(part["text"] for item in said for part in item["content"])
    if way == "a2a":
        sent = {
            "messageId": id,
            "role": "ROLE_USER",
            "parts": [{"text": text}],
            "contextId": "trip",
        }
        answer = await exchange(app, "POST", "/a2a/message:send", {"message": sent})
        assert answer.status == 200, answer.body
        task = answer.json["task"]
        assert task["contextId"] == "trip"
        parts = [part for artifact in task.get("artifacts", []) for part in artifact["parts"]]
        return "".join(part.get("text", "") for part in parts) + task["status"]["state"]
    return "".join(
        m.text
        for m in fold(
            events_of(way, await posted(app, way, "trip", [Message.user(text).replace(id=id)]))
        )
    )


async def conversation(app: Any) -> list[Message]:
    """What the server keeps of the thread."""
    answers = app.state.service.answers
    last = await answers.find("anonymous", ["thread:trip"])
    return [
        message for one in await answers.chain("anonymous", last.id) for message in one.messages
    ]


@pytest.mark.parametrize("ways", list(permutations(WAYS))[::5], ids="-".join)
async def test_each_goes_on_where_another_stopped(ways: tuple[str, ...]) -> None:
    async with served_agent() as app:
        ids: list[str | None] = []
        for at, way in enumerate(ways):
            said = await asked(app, way, f"Question {at}.", f"u{at}")
            assert f"Seen {2 * at + 1}." in said, (way, said)
            kept = await conversation(app)
            assert [message.id for message in kept][: len(ids)] == ids
            ids = [message.id for message in kept]
            assert len(set(ids)) == len(ids) == 2 * (at + 1)
            assert None not in ids
        named = [one for one in ids if one in {f"u{at}" for at in range(4)}]
        assert named == [f"u{at}" for at, way in enumerate(ways) if way != "openai_responses"]


@pytest.mark.parametrize("last", ["ag_ui", "ai_sdk"])
async def test_an_approval_waits_across_protocols_and_counts_once(last: str, store: str) -> None:
    """Asked over A2A, with an agent's own tool before it; answered over another, which never saw
    the question."""
    async with served_agent(store=store) as app:
        assert "Seen" in await asked(app, "ag_ui", "Please roll.", "u1")
        assert "TASK_STATE_INPUT_REQUIRED" in await asked(app, "a2a", "Now pay.", "u2")
        before = await conversation(app)
        [waiting] = (await app.state.service.answers.find("anonymous", ["thread:trip"])).pending
        resume = [{"interruptId": waiting.id, "status": "resolved", "payload": {"approved": True}}]
        answer = events_of(last, await posted(app, last, "trip", [], resume=resume))
        assert PAID == [3]
        assert "Seen" in fold(answer)[-1].text
        assert (await posted(app, last, "trip", [], resume=resume)).status == 400
        assert PAID == [3]
        after = await conversation(app)
        assert [message.id for message in after][: len(before)] == [
            message.id for message in before
        ]
        assert f"Seen {len(after) + 1}." in await asked(app, "openai_responses", "And?", "")


@pytest.mark.parametrize("way", ["ag_ui", "a2a", "openai_responses"])
async def test_a_task_goes_on_when_its_question_is_answered_elsewhere(way: str) -> None:
    async with served_agent() as app:
        sent = {
            "messageId": "u1",
            "role": "ROLE_USER",
            "parts": [{"text": "Now pay."}],
            "contextId": "trip",
        }
        task = (await exchange(app, "POST", "/a2a/message:send", {"message": sent})).json["task"]
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        [waiting] = (await app.state.service.answers.find("anonymous", ["thread:trip"])).pending
        if way == "ag_ui":
            resume = [
                {"interruptId": waiting.id, "status": "resolved", "payload": {"approved": True}}
            ]
            assert (
                "Seen"
                in fold(events_of(way, await posted(app, way, "trip", [], resume=resume)))[-1].text
            )
        elif way == "openai_responses":
            item = {
                "type": "mcp_approval_response",
                "approval_request_id": f"mcpr_{waiting.id}",
                "approve": True,
            }
            said = await exchange(
                app,
                "POST",
                "/v1/responses",
                {"model": "m", "input": [item], "conversation": "trip"},
            )
            assert b"Seen" in said.body, said.body
        else:  # which names the conversation alone
            words = {
                "messageId": "u2",
                "role": "ROLE_USER",
                "parts": [{"text": "yes"}],
                "contextId": "trip",
            }
            again = (await exchange(app, "POST", "/a2a/message:send", {"message": words})).json[
                "task"
            ]
            assert again["id"] == task["id"]
        assert PAID == [3]
        now = (await exchange(app, "GET", f"/a2a/tasks/{task['id']}")).json
        assert now["status"]["state"] == "TASK_STATE_COMPLETED"
        assert [one["id"] for one in (await exchange(app, "GET", "/a2a/tasks")).json["tasks"]] == [
            task["id"]
        ]


def paying_twice(request: Any) -> Message:
    calls = [call for message in request.messages for call in message.tool_calls]
    return (
        Message.model(ToolCallPart(f"pay_{len(calls)}", "pay", {"sum": 3}))
        if len(calls) < 2
        else reply(request)
    )


@pytest.mark.parametrize(
    ("script", "state"), [(reply, "COMPLETED"), (paying_twice, "INPUT_REQUIRED")]
)
async def test_who_waits_for_a_task_hears_what_came_of_an_answer_over_responses(
    script: Any, state: str
) -> None:
    """Also where it waits again."""
    async with served_agent(script) as app:
        sent = {
            "messageId": "u1",
            "role": "ROLE_USER",
            "parts": [{"text": "Now pay."}],
            "contextId": "trip",
        }
        task = (await exchange(app, "POST", "/a2a/message:send", {"message": sent})).json["task"]
        client = asyncio.create_task(exchange(app, "GET", f"/a2a/tasks/{task['id']}:subscribe"))
        while not len(app.state.service.waiting):  # noqa: ASYNC110 what is waited for sets no event
            await asyncio.sleep(0)
        [waiting] = (await app.state.service.answers.find("anonymous", ["thread:trip"])).pending
        item = {
            "type": "mcp_approval_response",
            "approval_request_id": f"mcpr_{waiting.id}",
            "approve": True,
        }
        said = await exchange(
            app, "POST", "/v1/responses", {"model": "m", "input": [item], "conversation": "trip"}
        )
        assert (said.status, PAID) == (200, [3]), said.body
        with anyio.fail_after(10):
            heard = await client
        assert f"TASK_STATE_{state}".encode() in heard.body.split(b"\n\n")[-2]
        now = (await exchange(app, "GET", f"/a2a/tasks/{task['id']}")).json
        assert now["status"]["state"] == f"TASK_STATE_{state}"
        assert len(app.state.service.waiting) == 0


@pytest.mark.parametrize("answer", ["data", "words"])
async def test_an_approval_asked_over_responses_is_given_over_a2a_and_the_chat_goes_on(
    answer: str, store: str
) -> None:
    """AG-UI → Responses → A2A → useChat, the approval pending across the second hop."""
    async with served_agent(store=store) as app:
        assert "Seen" in await asked(app, "ag_ui", "Please roll.", "u1")
        sent = {"model": "m", "input": "Now pay.", "conversation": "trip"}
        asking = await exchange(app, "POST", "/v1/responses", sent)
        [question] = [
            item for item in asking.json["output"] if item["type"] == "mcp_approval_request"
        ]
        assert (question["name"], PAID) == ("pay", [])
        [waiting] = (await app.state.service.answers.find("anonymous", ["thread:trip"])).pending
        resume = {"type": "resume", "interruptId": waiting.id, "payload": {"approved": True}}
        parts = [{"data": resume}] if answer == "data" else [{"text": "yes"}]
        message = {"messageId": "u3", "role": "ROLE_USER", "contextId": "trip", "parts": parts}
        given = await exchange(app, "POST", "/a2a/message:send", {"message": message})
        assert given.status == 200, given.body
        assert given.json["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert PAID == [3]
        before = [message.id for message in await conversation(app)]
        assert "Seen" in await asked(app, "ai_sdk", "And now?", "u4")
        after = [message.id for message in await conversation(app)]
        assert after[: len(before)] == before
        assert len(set(after)) == len(after)


@pytest.mark.parametrize("ways", [WAYS, WAYS[::-1]], ids="-".join)
async def test_an_agent_with_a_memory_has_one_thread_of_all(ways: list[str]) -> None:
    memory = Memory()
    app = serve.app(Agent(ScriptedModel(reply), tools=[roll, pay], memory=memory))
    async with app.router.lifespan_context(app):
        for at, way in enumerate(ways):
            said = await asked(app, way, f"Question {at}.", f"u{at}")
            assert f"Seen {2 * at + 1}." in said, (way, said)
        held = await load_thread(memory, "trip", "anonymous")
        assert [message.text for message in held if message.role == "user"] == [
            f"Question {at}." for at in range(4)
        ]
        assert len({message.id for message in held}) == len(held) == 8
