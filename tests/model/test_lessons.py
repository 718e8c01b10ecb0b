"""A 400 that names a setting is learned once: the request goes again without it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman import Agent, Settings, profiles
from dragoman.errors import InvalidRequestError
from dragoman.transport import Exchange, Player

pytestmark = pytest.mark.anyio

ANSWER = json.dumps(
    {
        "id": "r1",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Yes."},
                "finish_reason": "stop",
            }
        ],
    }
).encode()


@pytest.fixture(autouse=True)
def nothing_is_known() -> Iterator[None]:
    profiles.REGISTRY.forget()
    yield
    profiles.REGISTRY.forget()


def refusal(message: str, status: int = 400, **fields: Any) -> Exchange:
    body = {"error": {"message": message, "type": "invalid_request_error", **fields}}
    return Exchange(
        status=status, headers={"content-type": "application/json"}, body=json.dumps(body).encode()
    )


def agent(player: Player, **options: Any) -> Agent[None]:
    return Agent(
        "openai:somebody-elses-model",
        base_url="https://models.example.org/v1",
        api_key="k",
        transport=player,
        **options,
    )


def bodies(player: Player) -> list[Any]:
    return [
        json.loads(request.body) if isinstance(request.body, bytes) else request.body
        for request in player.requests
    ]


GOOD = Exchange(headers={"content-type": "application/json"}, body=ANSWER)


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("Unsupported parameter", {"param": "temperature", "code": "unsupported_parameter"}),
        ("Unsupported value: 'temperature' does not support 0.2 with this model.", {}),
        ("`temperature` is deprecated for this model.", {}),
        ("temperature is not supported by this model", {}),
        ("temperature: Extra inputs are not permitted", {}),
    ],
)
async def test_a_named_setting_is_left_out_told_and_remembered(
    message: str, fields: dict[str, Any]
) -> None:
    player = Player([refusal(message, **fields), GOOD, GOOD])
    one = agent(player, settings=Settings(temperature=0.2, max_tokens=9))
    result = await one.send("Hello?")
    assert result.output == "Yes."
    assert [loss.which for loss in result.losses] == ["temperature"]
    result = await one.send("Again?")
    assert [loss.which for loss in result.losses] == ["temperature"]
    assert ["temperature" in body for body in bodies(player)] == [True, False, False]


async def test_supported_efforts_are_learned() -> None:
    message = "Unsupported value: 'reasoning_effort' does not support 'high'. Supported values are: 'low' and 'medium'."
    player = Player([refusal(message), GOOD, GOOD])
    one = agent(player, settings=Settings(reasoning="high"))
    await one.send("Hello?")
    await one.send("Again?")
    assert [body.get("reasoning_effort") for body in bodies(player)] == ["high", "medium", "medium"]


@pytest.mark.parametrize(
    ("message", "fields", "options"),
    [
        ("temperature: expected a value of at most 2", {}, {}),
        ("top_k is not supported", {}, {}),
        ("the tool `look` is not supported", {}, {}),
        ("messages.1.content: not allowed", {}, {}),
        ("temperature is not supported", {}, {"on_loss": "error"}),
    ],
    ids=["a range", "not set", "a tool", "content", "losses are refused"],
)
async def test_what_is_no_lesson_is_raised(
    message: str, fields: dict[str, Any], options: dict[str, Any]
) -> None:
    player = Player([refusal(message, **fields), GOOD])
    one = agent(player, settings=Settings(temperature=0.2), **options)
    with pytest.raises(InvalidRequestError):
        await one.send("Hello?")
    assert len(player.requests) == 1


async def test_an_option_of_the_callers_is_never_left_out() -> None:
    player = Player([refusal("temperature is not supported"), GOOD])
    one = agent(player, options={"temperature": 0.2})
    with pytest.raises(InvalidRequestError):
        await one.send("Hello?")


async def test_at_most_two_settings_are_learned_in_one_request() -> None:
    refusals = [refusal(f"{name} is not supported") for name in ("temperature", "top_p", "seed")]
    player = Player([*refusals, GOOD])
    one = agent(player, settings=Settings(temperature=0.2, top_p=0.5, seed=1))
    with pytest.raises(InvalidRequestError):
        await one.send("Hello?")
    assert len(player.requests) == 3
