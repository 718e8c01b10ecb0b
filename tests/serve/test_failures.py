"""A server that fails says why, to whoever runs it: the client's error is in neutral words, the log
has the cause and no keys."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.errors import AuthenticationError, ProviderConnectionError, StoreError
from dragoman.request import ModelRequest
from dragoman.serve import Gateway
from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.protocols import STREAMED

pytestmark = [pytest.mark.anyio, pytest.mark.mend("2.9")]

CAUSE = "the upstream acme is down, Bearer abcdef and sk-secret-123 at postgresql://me:pass@host/x\nreally"
ASKS: dict[str, tuple[str, dict[str, Any]]] = {
    **STREAMED,
    "chat whole": (
        "/v1/chat/completions",
        {"model": "m", "messages": [{"role": "user", "content": "Hi."}]},
    ),
    "anthropic": (
        "/v1/messages",
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]},
    ),
}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage() for record in caplog.records if "failed with 5" in record.getMessage()
    ]


@pytest.mark.parametrize("spoken", [False, True])
@pytest.mark.parametrize("name", list(ASKS))
async def test_the_cause_of_a_failure_is_logged_once(
    name: str, spoken: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def reply(request: ModelRequest) -> AsyncGenerator[str]:
        yield "Some words "
        raise ProviderConnectionError(CAUSE).at(provider="acme")

    script: Any = reply if spoken else [ProviderConnectionError(CAUSE).at(provider="acme")] * 9
    app = serve.app(Agent(ScriptedModel(script)))
    path, body = ASKS[name]
    async with app.router.lifespan_context(app):
        answer = await exchange(app, "POST", path, body, headers={"a2a-version": "1.0"})
    [line] = lines(caplog)
    assert any(
        kind in line
        for kind in ("ProviderConnectionError from acme", "StreamCutError from scripted")
    )
    assert spoken or "the upstream acme is down" in line
    assert dict(answer.headers)["x-request-id"] in line
    for secret in ("abcdef", "sk-secret", "pass@", "\n"):
        assert secret not in line
    assert b"upstream acme" not in answer.body


async def test_a_fault_of_the_client_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    app = serve.app(Agent(ScriptedModel(["Hi."])))
    async with app.router.lifespan_context(app):
        answer = await exchange(app, "POST", "/v1/chat/completions", {"model": "m", "messages": 5})
    assert answer.status == 400
    assert not lines(caplog)


async def test_a_store_that_fails_is_named(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryAnswers):
        async def get(self, owner: str, id: str) -> Any:
            raise StoreError("the disk is full")

    app = serve.app(Agent(ScriptedModel(["Hi."])), store=Broken())
    async with app.router.lifespan_context(app):
        answer = await exchange(app, "GET", "/v1/responses/resp_1")
    assert answer.status >= 500
    [line] = lines(caplog)
    assert "StoreError: the disk is full" in line


async def test_models_without_a_key_are_warned_of_at_the_start(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    gateway = Gateway(
        {"fast": "openai:gpt-4o", "good": "anthropic:claude-sonnet-4-6", "x-*": "openai:x-*"},
        keys={"anthropic": "sk-a"},
    )
    app = serve.app(
        {"one": Agent("openai:gpt-4o-mini"), "two": Agent(ScriptedModel(["Hi."]))}, gateway=gateway
    )
    with caplog.at_level(logging.WARNING, "dragoman"):
        async with app.router.lifespan_context(app):
            pass
    warned = [
        record.getMessage() for record in caplog.records if "cannot be asked" in record.getMessage()
    ]
    assert [line.split(" ")[0] for line in warned] == [
        "openai:gpt-4o",
        "openai:x-*",
        "openai:gpt-4o-mini",
    ]
    assert all("OPENAI_API_KEY" in line for line in warned)


async def test_a_missing_key_is_logged_for_the_call(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    app = serve.app(gateway=Gateway({"fast": "openai:gpt-4o"}))
    async with app.router.lifespan_context(app):
        body = {"model": "fast", "messages": [{"role": "user", "content": "Hi."}]}
        answer = await exchange(app, "POST", "/v1/chat/completions", body)
    assert answer.status >= 500
    assert "OPENAI_API_KEY" not in json.dumps(answer.body.decode())
    [line] = lines(caplog)
    assert AuthenticationError.__name__ in line
    assert "OPENAI_API_KEY is required" in line
