"""What clients of each API get when a budget is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Settings, wires
from dragoman.errors import BudgetError, RateLimitError, public
from dragoman.event import RunError, event_from_json, event_to_json
from support.asgi import Exchange, exchange
from support.budgets import CI, Clock, chat, metered_app, model
from support.serving import asking

pytestmark = pytest.mark.anyio
WORDS = "budget of key ci: 1,000 tokens per day is spent; it resets at 2026-11-27T00:00:00Z"
SECONDS = 12 * 3600
MODEL_APIS = ["openai_chat", "openai_responses", "anthropic", "google", "mistral", "ollama", "cohere"]  # fmt: skip


@pytest.fixture
async def spent(tmp_path: Path) -> Any:
    """An application whose caller has spent all."""
    app = metered_app(f"sqlite:///{tmp_path}/a.db", "1000-tokens/day", clock=Clock())
    async with app.router.lifespan_context(app):
        assert (await chat(app)).status == 200
        yield app


async def ask(app: Any, wire: str, *, stream: bool) -> Exchange:
    path, body = asking(wire, stream=stream)
    path = path.replace("/m:", "/small:") if wire == "google" else path
    keys = {"anthropic": "x-api-key", "google": "x-goog-api-key"}
    name = keys.get(wire)
    headers = {name: CI} if name else {"authorization": f"Bearer {CI}"}
    body = {**body, "model": "small"} if "model" in body else body
    path = path if path.startswith(f"/{wire}/") else f"/{wire}{path}"
    return await exchange(app, "POST", path, body, headers=headers)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", MODEL_APIS)
async def test_each_api_refuses_in_its_own_shape(spent: Any, wire: str, stream: bool) -> None:
    got = await ask(spent, wire, stream=stream)
    assert got.status == 429, got.body
    assert WORDS in got.body.decode()
    assert got.headers["retry-after"] == str(SECONDS)
    assert got.headers["x-should-retry"] == "false"
    loaded = wires.get(wire).load_error(429, got.headers, got.body)
    assert isinstance(loaded, RateLimitError)
    assert loaded.retry_after == SECONDS
    error = got.json.get("error") if isinstance(got.json, dict) else None
    if wire in ("openai_chat", "openai_responses"):
        assert error == {"message": WORDS, "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}  # fmt: skip
        limits = {name: got.headers[f"x-ratelimit-{name}-tokens"] for name in ("limit", "remaining", "reset")}  # fmt: skip
        assert limits == {"limit": "1000", "remaining": "0", "reset": f"{SECONDS}s"}
    elif wire == "anthropic":
        assert got.json["type"] == "error"
        assert error == {"type": "rate_limit_error", "message": WORDS}
        limits = {name: got.headers[f"anthropic-ratelimit-tokens-{name}"] for name in ("limit", "remaining", "reset")}  # fmt: skip
        assert limits == {"limit": "1000", "remaining": "0", "reset": "2026-11-27T00:00:00Z"}
    elif wire == "google":
        assert error["status"] == "RESOURCE_EXHAUSTED"
        assert error["details"] == [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{SECONDS}s"}]  # fmt: skip
    elif wire == "mistral":
        assert (got.json["type"], got.json["code"]) == ("rate_limited", "1300")


async def test_a_month_is_a_number_of_seconds_and_no_power_of_ten(tmp_path: Path) -> None:
    app = metered_app(f"sqlite:///{tmp_path}/a.db", "1000-tokens/month", clock=Clock("2026-12-01T00:00:00"))  # fmt: skip
    async with app.router.lifespan_context(app):
        assert (await chat(app)).status == 200
        got = await ask(app, "google", stream=False)
        assert got.json["error"]["details"][0]["retryDelay"] == f"{31 * 86400}s"
        assert got.headers["retry-after"] == str(31 * 86400)


@pytest.mark.parametrize("wire", ["ag_ui", "ai_sdk", "a2a"])
async def test_agent_protocols_tell_it_as_the_error_of_the_run(tmp_path: Path, wire: str) -> None:
    app = metered_app(
        f"sqlite:///{tmp_path}/a.db", "1000-tokens/day", clock=Clock(), gateway=None, agents=Agent(model(), settings=Settings(max_tokens=50))
    )  # fmt: skip
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hi."}]}
    asked: dict[str, tuple[str, Any]] = {
        "ag_ui": ("/ag-ui", {"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "Hi."}], "tools": [], "context": [], "state": {}, "forwardedProps": {}}),
        "ai_sdk": ("/ai-sdk", {"id": "t", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "Hi."}]}]}),
        "a2a": ("/a2a", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}),
    }  # fmt: skip
    path, body = asked[wire]
    headers = {"authorization": f"Bearer {CI}", "a2a-version": "1.0"}
    async with app.router.lifespan_context(app):
        first = await exchange(app, "POST", path, body, headers=headers)
        assert b"budget of key" not in first.body
        got = await exchange(app, "POST", path, body, headers=headers)
        assert WORDS in got.body.decode()
        if wire == "ag_ui":
            assert b'"code":"budget"' in got.body
        if wire == "a2a":
            assert got.json["result"]["task"]["status"]["state"] == "TASK_STATE_FAILED"


def test_the_error_keeps_what_a_client_may_know() -> None:
    error = BudgetError(WORDS, retry_after=5.0, resets_at="2026-11-27T00:00:00Z").at(provider="openai")  # fmt: skip
    error.tokens = (1000, 0)
    told = public(error)
    assert type(told) is BudgetError
    assert (told.message, told.retry_after, told.resets_at, told.tokens) == (WORDS, 5.0, "2026-11-27T00:00:00Z", (1000, 0))  # fmt: skip
    (again,) = [event_from_json(event_to_json(RunError(error)))]
    assert isinstance(again, RunError)
    assert isinstance(again.error, BudgetError)
    assert (again.error.resets_at, again.error.retry_after) == ("2026-11-27T00:00:00Z", 5.0)
    assert msgspec.json.decode(event_to_json(RunError(error)))["error"]["type"] == "BudgetError"
