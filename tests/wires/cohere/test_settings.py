"""The cohere wire: settings, reasoning and output schemas."""

from __future__ import annotations

import pytest

from dragoman.message import Message
from dragoman.request import ModelRequest, Settings
from dragoman.wires import cohere as wire


def test_settings_have_coheres_names():
    settings = Settings(
        temperature=0.5,
        max_tokens=9,
        top_p=0.9,
        top_k=3,
        seed=1,
        stop=("a",),
        tool_choice="required",
        reasoning=100,
    )
    request = ModelRequest(
        "m",
        (Message.user("hi"),),
        settings=settings,
        stream=True,
        options={"documents": [{"text": "x"}]},
    )
    body = wire.dump_request(request)
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "temperature": 0.5,
        "max_tokens": 9,
        "p": 0.9,
        "k": 3,
        "seed": 1,
        "stop_sequences": ["a"],
        "tool_choice": "REQUIRED",
        "thinking": {"type": "enabled", "token_budget": 100},
        "documents": [{"text": "x"}],
    }
    assert wire.load_request(body) == request.replace(wire="cohere")
    assert (wire.dump_http(request).path, wire.dump_http(request).body) == ("/chat", body)


@pytest.mark.parametrize(
    ("reasoning", "thinking"),
    [
        ("off", {"type": "disabled"}),
        ("low", {"type": "enabled", "token_budget": 1024}),
        ("medium", {"type": "enabled", "token_budget": 4096}),
        ("high", {"type": "enabled"}),
    ],
)
def test_an_effort_is_a_budget(reasoning, thinking):
    assert (
        wire.dump_request(ModelRequest("m", settings=Settings(reasoning=reasoning)))["thinking"]
        == thinking
    )


def test_an_output_schema_is_a_response_format():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    request = ModelRequest("m", output_schema=schema)
    assert wire.dump_request(request)["response_format"] == {
        "type": "json_object",
        "json_schema": schema,
    }
    assert wire.dump_request(request.replace(output_schema={"type": "object"}))[
        "response_format"
    ] == {"type": "json_object"}
