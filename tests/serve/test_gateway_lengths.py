"""A gateway bounds how long an answer may be, whatever a request says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman import Message, serve
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.gateway import MODEL, answered, gated
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio

HI = {"role": "user", "content": "Hi."}
UNBOUNDED: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "a negative number": (
        "openai_chat",
        "/v1/chat/completions",
        {"messages": [HI], "max_tokens": -1},
    ),
    "nothing": (
        "openai_chat",
        "/v1/chat/completions",
        {"messages": [HI], "max_completion_tokens": 0},
    ),
    "half a number": (
        "openai_chat",
        "/v1/chat/completions",
        {"messages": [HI], "max_tokens": 99.0},
    ),
    "two numbers": (
        "openai_chat",
        "/v1/chat/completions",
        {"messages": [HI], "max_tokens": 99.0, "max_completion_tokens": 99},
    ),
    "no limit": (
        "ollama",
        "/api/chat",
        {"messages": [HI], "stream": False, "options": {"num_predict": -1}},
    ),
    "two spellings": (
        "google",
        f"/v1beta/models/{MODEL}:generateContent",
        {
            "contents": [{"parts": [{"text": "Hi."}]}],
            "generationConfig": {"maxOutputTokens": 99, "max_output_tokens": 98},
        },
    ),
    "twice": (
        "google",
        f"/v1beta/models/{MODEL}:generateContent",
        {
            "contents": [{"parts": [{"text": "Hi."}]}],
            "generationConfig": {"maxOutputTokens": 10},
            "generation_config": {"max_output_tokens": 98},
        },
    ),
}


@pytest.mark.parametrize("case", UNBOUNDED)
async def test_no_form_of_the_field_leads_past_the_limit(case: str) -> None:
    """Ollama and llama.cpp take -1 for no limit."""
    wire, path, body = UNBOUNDED[case]
    model = ScriptedModel.like(PROVIDERS[wire], "Hello.", key_required=False)
    app = serve.app(gateway=serve.Gateway({MODEL: model}, max_tokens=10), store=None)
    assert (await exchange(app, "POST", path, {"model": MODEL, **body})).status == 200
    numbers = re.findall(r'_?(?:[tT]okens|predict)": ?(-?[0-9.]+)', json.dumps(model.bodies[0]))
    assert numbers == ["10"]


async def test_no_limit_is_none_for_a_provider_of_another_wire() -> None:
    there = gated("ollama", "openai_chat", "Hello.")
    await answered(
        there.client,
        ModelRequest(
            MODEL, (Message.user("Hi."),), options={"options": {"num_predict": -1}}, wire="ollama"
        ),
    )
    assert not {"max_tokens", "max_completion_tokens"} & there.upstream.bodies[0].keys()
    assert "dragoman-loss" not in there.transport.headers[0]
