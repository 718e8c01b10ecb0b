"""Typed output of a model that takes neither a schema nor tools: JSON in its text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from dragoman import Agent
from dragoman.errors import TypedOutputError
from dragoman.transport import Exchange, Player

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str
    people: int


def answer(text: str) -> Exchange:
    message = {"role": "assistant", "content": text}
    body = {
        "id": "r",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    return Exchange(headers={"content-type": "application/json"}, body=json.dumps(body).encode())


def agent(player: Player) -> Agent[None]:
    return Agent("groq:groq/compound", api_key="k", transport=player)


def body(player: Player, number: int) -> Any:
    sent = player.requests[number].body
    return json.loads(sent) if isinstance(sent, bytes) else sent


async def test_the_schema_stands_in_the_prompt_and_the_text_is_the_value() -> None:
    player = Player([answer('{"name": "Oslo", "people": 700000}')])
    result = await agent(player).send_for("Which city?", City)
    assert result.output == City(name="Oslo", people=700_000)
    sent = body(player, 0)
    assert sent["messages"][0]["role"] == "system"
    assert '"people"' in sent["messages"][0]["content"]
    assert "tools" not in sent
    assert "json_schema" not in json.dumps(sent.get("response_format", {}))


async def test_an_answer_that_is_not_valid_gets_a_second_try() -> None:
    player = Player([answer("It is Oslo."), answer('{"name": "Oslo", "people": 700000}')])
    result = await agent(player).send_for("Which city?", City)
    assert result.output.name == "Oslo"
    first, second = body(player, 0)["messages"], body(player, 1)["messages"]
    assert second[: len(first)] == first


async def test_two_answers_that_are_not_valid_are_an_error() -> None:
    player = Player([answer("Oslo."), answer("Still Oslo.")])
    with pytest.raises(TypedOutputError):
        await agent(player).send_for("Which city?", City)
