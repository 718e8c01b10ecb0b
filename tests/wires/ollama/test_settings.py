"""Settings, `think` and the output schema of Ollama's wire."""

from __future__ import annotations

import pytest

from dragoman.message import Message
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.wires import ollama as wire


def test_settings_go_to_options_and_the_rest_of_options_stays():
    settings = Settings(
        temperature=0.5, max_tokens=9, top_k=3, seed=1, stop=("a",), reasoning="off"
    )
    request = ModelRequest(
        "qwen3",
        (Message.user("hi"),),
        settings=settings,
        options={"options": {"num_ctx": 8192}, "keep_alive": "5m"},
    )
    body = wire.dump_request(request)
    assert body == {
        "model": "qwen3",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": False,
        "think": False,
        "options": {
            "temperature": 0.5,
            "num_predict": 9,
            "top_k": 3,
            "seed": 1,
            "stop": ["a"],
            "num_ctx": 8192,
        },
        "keep_alive": "5m",
    }
    assert wire.load_request(body) == request.replace(wire="ollama")
    assert wire.dump_http(request).path == "/api/chat" and wire.dump_http(request).body == body


@pytest.mark.parametrize(
    ("model", "reasoning", "think"),
    [
        ("qwen3:4b", "off", False),
        ("qwen3:4b", "low", True),
        ("qwen3:4b", 100, True),
        ("gpt-oss:20b", "high", "high"),
        ("gpt-oss:20b", 100, "low"),
        ("gpt-oss:20b", 4096, "medium"),
        ("gpt-oss:20b", 50000, "high"),
    ],
)
def test_think_is_a_level_for_the_models_that_have_them(model, reasoning, think):
    assert (
        wire.dump_request(ModelRequest(model, settings=Settings(reasoning=reasoning)))["think"]
        == think
    )


@pytest.mark.parametrize("model", ["qwen3", "gpt-oss"])
@pytest.mark.parametrize("think", [True, False, "low", "medium", "high", "odd", None])
def test_every_think_comes_back_as_it_was(model, think):
    body = {"model": model, "messages": [], "stream": True, "think": think}
    request = wire.load_request(body)
    assert wire.dump_request(request) == body
    assert (request.settings.reasoning is None) == (think in ("odd", None))
    changed = wire.dump_request(request.replace(settings=Settings(reasoning="off")))
    assert think in ("odd", None) or changed["think"] is False


def test_d132_an_output_schema_is_format_with_tools_too():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    request = ModelRequest("m", tools=(ToolSpec("f"),), output_schema=schema)
    body = wire.dump_request(request)
    assert body["format"] == schema
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
        }
    ]
    assert wire.dump_request(request.replace(output_schema={"type": "object"}))["format"] == "json"
