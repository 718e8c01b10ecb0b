"""`POST /v1/plan`: what a conversation would lose at a model, as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange

pytestmark = pytest.mark.anyio

KEY = "a secret of many characters"
CHAT = {
    "model": "m",
    "messages": [{"role": "system", "content": "Dig."}, {"role": "user", "content": "Where?"}],
    "temperature": 0.3,
}


def app(**options: Any) -> Any:
    gateway = serve.Gateway({"fast": "anthropic:claude-opus-5-5", "slow": "openai:gpt-4.1"})
    return serve.app(gateway=gateway, **options)


async def post(application: Any, body: Any, key: str = "") -> Exchange:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return await exchange(application, "POST", "/v1/plan", body, headers=headers)


async def test_a_plan_names_settings_window_price_and_retirement() -> None:
    body = {"model": "anthropic:claude-opus-5-5", "format": "openai_chat", "body": CHAT}
    answer = await post(app(), body)
    assert answer.status == 200
    plan = answer.json
    assert plan["target"] == "anthropic:claude-opus-5-5"
    assert [loss["which"] for loss in plan["settings"]] == ["temperature"]
    assert plan["ok"] is False
    assert plan["fits"] is True
    assert plan["window"] == 1_000_000
    assert plan["tokens"] > 0
    assert plan["losses"] == []


async def test_a_name_of_the_gateway_is_the_model_behind_it() -> None:
    answer = await post(app(), {"model": "slow", "format": "openai_chat", "body": CHAT})
    assert answer.json["target"] == "openai:gpt-4.1"
    assert answer.json["settings"] == []


async def test_a_conversation_in_a_format_without_requests() -> None:
    payload = [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "Where?"}]}]
    answer = await post(app(), {"model": "fast", "format": "ai_sdk_ui", "body": payload})
    assert (answer.status, answer.json["ok"]) == (200, True)


async def test_without_a_key_and_with_one_for_another_model() -> None:
    application = app(auth=[serve.Key(KEY, models=["slow"])])
    body = {"model": "fast", "format": "anthropic", "body": CHAT}
    assert (await post(application, body)).status == 401
    answer = await post(application, body, key=KEY)
    assert answer.status == 404
    assert answer.json["error"]["type"] == "not_found_error"
    assert (await post(application, {**body, "model": "slow"}, key=KEY)).status == 200


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"model": 3, "format": "openai_chat", "body": {}},
        {"model": "fast", "format": "carrier pigeon", "body": {}},
        {"model": "fast", "format": "openai_chat", "body": {"messages": "no"}},
        {"model": "fast", "format": "openai_chat", "body": 7},
        {"model": "fast", "format": "ai_sdk_ui", "body": 7},
    ],
)
async def test_what_cannot_be_read_is_an_error_of_the_client(body: Any) -> None:
    answer = await post(app(), body)
    assert answer.status == 400
    assert answer.json["error"]["message"]


@pytest.mark.parametrize("model", ["nobody:model", "anthropic:", "", ":", "x" * 5000])
async def test_a_model_that_is_not_there(model: str) -> None:
    answer = await post(app(), {"model": model, "format": "openai_chat", "body": CHAT})
    assert answer.status in (200, 400, 404)
    assert (answer.status == 200) is (model == "anthropic:")


async def test_a_server_of_agents_plans_for_any_model() -> None:
    application = serve.app(Agent(ScriptedModel(["Yes."])))
    body = {"model": "google:gemini-2.5-pro", "format": "openai_chat", "body": CHAT}
    assert (await post(application, body)).status == 200
