"""What a client chooses is bounded: schemas, patterns and patches take no other client's time."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.testing import ScriptedModel
from support.asgi import exchange

pytestmark = pytest.mark.anyio


@pytest.mark.mend("1.4")
@pytest.mark.parametrize("store", [None, "memory:"])
@pytest.mark.parametrize("key", [None, b"k" * 32], ids=["unsigned", "signed"])
async def test_a_schema_that_a_client_made_up_is_not_evaluated(
    store: str | None, key: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It brought the question, its schema and the answer: 102 kB stopped the server for 52
    seconds."""
    evaluated: list[Any] = []
    monkeypatch.setattr(
        "dragoman.orchestration.resume.find_faults", lambda *check: evaluated.append(check) or []
    )
    count = 4000
    schema = {"type": "array", "items": {"anyOf": [{"const": number} for number in range(count)]}}
    arguments = {"tool": "pay", "message": "Which?", "schema": schema}
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "request_answer", "arguments": json.dumps(arguments)},
    }
    messages = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps(list(range(count)))},
    ]
    app = serve.app(Agent(ScriptedModel("Hello."), approval_key=key), store=store)
    async with app.router.lifespan_context(app):
        started = time.monotonic()
        bomb = exchange(app, "POST", "/v1/chat/completions", {"model": "m", "messages": messages})
        hello = exchange(
            app, "POST", "/v1/chat/completions", {"model": "m", "messages": messages[:1]}
        )
        bombed, answered = await asyncio.gather(bomb, hello)
        seconds = time.monotonic() - started
    assert bombed.status < 500
    assert answered.status == 200
    assert evaluated == []
    assert seconds < 10
