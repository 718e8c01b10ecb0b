"""System texts of a conversation that goes on by an id: items of the input stay with it,
instructions are for one answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.message import Role
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel
from support.asgi import exchange

pytestmark = pytest.mark.anyio
FRENCH = {"role": "developer", "content": "Speak French."}


class Seen:
    """An application, and what its model was asked."""

    def __init__(self, behind: str, store: str, policy: serve.AgentPolicy | None = None) -> None:
        self.requests: list[ModelRequest] = []
        model = ScriptedModel(self._reply)
        if behind == "agent":
            self.app: Any = serve.app(Agent(model), store=store, policy=policy)
        else:
            self.app = serve.app(gateway=serve.Gateway({"m": model}), store=store)

    def _reply(self, request: ModelRequest) -> str:
        self.requests.append(request)
        return f"answer {len(self.requests)}"

    @property
    def texts(self) -> list[str]:
        """The latest request's messages."""
        return [message.text for message in self.requests[-1].messages]

    async def asked(self, *items: Any, **fields: Any) -> str:
        """Asks → the id of the response."""
        body = json.dumps({"model": "m", "input": list(items), **fields}).encode()
        return (await self.json_of("POST", "/v1/responses", body))["id"]

    async def json_of(self, method: str, path: str, body: bytes = b"") -> Any:
        """What a request is answered."""
        answer = await exchange(
            self.app, method, path, body, headers={"content-type": "application/json"}
        )
        assert answer.status == 200, answer.body
        return json.loads(answer.body)


@pytest.fixture(params=["agent", "gateway"])
def behind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/answers.db"


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def test_a_developers_item_stays_and_instructions_do_not(behind: str, store: str) -> None:
    seen = Seen(behind, store)
    first = await seen.asked(FRENCH, user("Hi."), instructions="Be brief.")
    assert seen.texts == ["Be brief.", "Speak French.", "Hi."]
    second = await seen.asked(user("More."), previous_response_id=first)
    assert seen.texts == ["Speak French.", "Hi.", "answer 1", "More."]
    late = {"role": "system", "content": "Rhyme."}
    await seen.asked(user("Last."), late, previous_response_id=second, instructions="Be long.")
    assert seen.texts[:2] == ["Be long.", "Speak French."]
    assert sorted(seen.texts[2:]) == sorted(
        ["Hi.", "answer 1", "More.", "answer 2", "Last.", "Rhyme."]
    )


async def test_it_stays_with_a_conversation_that_has_a_name(behind: str, store: str) -> None:
    seen = Seen(behind, store)
    for text in ("Hi.", "More.", "Last."):
        await seen.asked(*([FRENCH] if text == "Hi." else []), user(text), conversation="conv_1")
    assert seen.texts == ["Speak French.", "Hi.", "answer 1", "More.", "answer 2", "Last."]


async def test_what_is_sent_with_every_request_is_there_once(behind: str, store: str) -> None:
    seen = Seen(behind, store)
    response = None
    for text in ("Hi.", "More.", "Last."):
        response = await seen.asked(FRENCH, user(text), previous_response_id=response)
    assert seen.texts.count("Speak French.") == 1
    assert seen.texts[0] == "Speak French."


async def test_it_is_listed_among_the_items(behind: str, store: str) -> None:
    seen = Seen(behind, store)
    first = await seen.asked(FRENCH, user("Hi."), instructions="Be brief.")
    second = await seen.asked(user("More."), previous_response_id=first)
    for response, rest in ((first, ["Hi."]), (second, ["Hi.", "answer 1", "More."])):
        page = await seen.json_of("GET", f"/v1/responses/{response}/input_items?order=asc")
        texts = [part["text"] for item in page["data"] for part in item["content"]]
        assert texts == ["Speak French.", *rest]
        assert page["data"][0]["role"] == "developer"


async def test_an_agent_that_takes_no_system_texts_takes_none_that_lasted(store: str) -> None:
    seen = Seen("agent", store, serve.AgentPolicy(system="drop"))
    first = await seen.asked(FRENCH, user("Hi."))
    await seen.asked(user("More."), previous_response_id=first)
    assert not [
        message
        for request in seen.requests
        for message in request.messages
        if message.role is Role.SYSTEM
    ]
    assert seen.texts == ["Hi.", "answer 1", "More."]
