"""A bad request is answered with the name of the field at fault, where each wire's clients look for
it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman import Agent, serve, wires
from dragoman.errors import InvalidRequestError, OverloadedError, public
from dragoman.serve.core.request_fields import check_types
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.switching import FOLDERS, PROVIDERS
from support.traffic import FOLDER, exchanges

pytestmark = pytest.mark.anyio
HI = [{"role": "user", "content": "Hi"}]
PICK = {"type": "function", "function": {"name": "absent"}}
CHAT, RESPONSES, GEMINI = (
    "/v1/chat/completions",
    "/v1/responses",
    "/v1beta/models/a:generateContent",
)
BATCH = "/v1/embeddings"
PARAM: Mapping[str, tuple[str, dict[str, Any], int, str]] = {
    "chat no messages": (CHAT, {"model": "a"}, 400, "messages"),
    "chat a message": (CHAT, {"model": "a", "messages": [*HI, 5]}, 400, "messages[1]"),
    "chat a role": (
        CHAT,
        {"model": "a", "messages": [*HI, {"role": "x", "content": "y"}]},
        400,
        "messages[1].role",
    ),
    "chat a content": (
        CHAT,
        {"model": "a", "messages": [{"role": "user", "content": 5}]},
        400,
        "messages[0].content",
    ),
    "chat a choice": (
        CHAT,
        {"model": "a", "messages": HI, "tool_choice": PICK},
        400,
        "tool_choice",
    ),
    "chat a model": (CHAT, {"model": "b", "messages": HI}, 404, "model"),
    "responses input": (RESPONSES, {"model": "a", "input": 5}, 400, "input"),
    "responses an item": (RESPONSES, {"model": "a", "input": [{"type": 5}]}, 400, "input[0].type"),
    "responses the answer before": (
        RESPONSES,
        {"model": "a", "input": "Hi", "previous_response_id": "resp_x"},
        400,
        "previous_response_id",
    ),
    "responses a tool": (RESPONSES, {"model": "a", "input": "Hi", "tools": [5]}, 400, "tools"),
    "chat a setting": (
        CHAT,
        {"model": "a", "messages": HI, "temperature": "hot"},
        400,
        "temperature",
    ),
    "chat half a token": (
        CHAT,
        {"model": "a", "messages": HI, "max_tokens": 1.5},
        400,
        "max_tokens",
    ),
    "chat no tools": (CHAT, {"model": "a", "messages": HI, "tools": "x"}, 400, "tools"),
    "chat true as a number": (CHAT, {"model": "a", "messages": HI, "top_p": True}, 400, "top_p"),
    "chat a format": (
        CHAT,
        {"model": "a", "messages": HI, "response_format": 5},
        400,
        "response_format",
    ),
    "chat a stream": (CHAT, {"model": "a", "messages": HI, "stream": "yes"}, 400, "stream"),
    "responses a setting": (
        RESPONSES,
        {"model": "a", "input": "Hi", "max_output_tokens": "x"},
        400,
        "max_output_tokens",
    ),
    "responses a reasoning": (
        RESPONSES,
        {"model": "a", "input": "Hi", "reasoning": "high"},
        400,
        "reasoning",
    ),
    "embeddings": (BATCH, {"model": "a", "input": {}}, 400, "input"),
}
SETTINGS: Mapping[str, tuple[str, dict[str, Any], str]] = {
    "anthropic": ("/v1/messages", {"model": "a", "messages": HI, "max_tokens": "x"}, "max_tokens"),
    "anthropic tools": (
        "/v1/messages",
        {"model": "a", "messages": HI, "max_tokens": 9, "tools": {}},
        "tools",
    ),
    "google": (
        GEMINI,
        {"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": 5},
        "generationConfig",
    ),
    "google inner": (
        GEMINI,
        {"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": {"temperature": []}},
        "generationConfig.temperature",
    ),
    "google in snake_case": (
        GEMINI,
        {"contents": [{"parts": [{"text": "Hi"}]}], "generation_config": {"max_output_tokens": []}},
        "generation_config.max_output_tokens",
    ),
    "google a text": (
        GEMINI,
        {"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": {"topK": "many"}},
        "generationConfig.topK",
    ),
    "ollama": (
        "/api/chat",
        {"model": "a", "messages": HI, "options": {"num_predict": "x"}},
        "options.num_predict",
    ),
    "cohere": ("/v2/chat", {"model": "a", "messages": HI, "k": "x"}, "k"),
    "interactions": (
        "/v1beta/interactions",
        {"model": "a", "input": "Hi.", "generation_config": {"seed": "x"}},
        "generation_config.seed",
    ),
    "bedrock": (
        "/model/a/converse",
        {
            "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
            "inferenceConfig": {"maxTokens": "x"},
        },
        "inferenceConfig.maxTokens",
    ),
    "mistral": (
        "/mistral/v1/chat/completions",
        {"model": "a", "messages": HI, "random_seed": {}},
        "random_seed",
    ),
}
WORDS: Mapping[str, tuple[str, dict[str, Any], str]] = {
    "anthropic": ("/v1/messages", {"model": "a", "messages": [{"role": "x"}]}, "messages[0].role"),
    "google": (GEMINI, {"contents": [{"role": "x", "parts": []}]}, "contents[0].role"),
    "ollama": ("/api/chat", {"model": "a", "messages": [{"role": "x"}]}, "messages[0].role"),
    "cohere": ("/v2/chat", {"model": "a", "messages": [{"role": "x"}]}, "messages[0].role"),
    "interactions": (
        "/v1beta/interactions",
        {"model": "a", "input": [{"role": "x"}]},
        "input[0].type",
    ),
    "bedrock": ("/model/a/converse", {"messages": [{"role": "x"}]}, "messages[0].role"),
    "mistral": (
        "/mistral/v1/chat/completions",
        {"model": "a", "messages": [{"role": "x"}]},
        "messages[0].role",
    ),
}


async def refused(path: str, body: Mapping[str, Any], status: int = 400) -> dict[str, Any]:
    model = ScriptedModel.like(PROVIDERS["anthropic"], lambda _: "Hi.", key_required=False)
    answer = await exchange(serve.app({"a": Agent(model)}, store=None), "POST", path, body)
    assert answer.status == status, answer.body
    return answer.json


@pytest.mark.parametrize("case", PARAM)
async def test_openais_clients_read_the_field_in_param(case: str) -> None:
    """Issue H: a bad request is a 4xx in its wire's shape with the field's name."""
    path, body, status, field = PARAM[case]
    error = (await refused(path, body, status))["error"]
    assert error["param"] == field
    assert field in error["message"] or field.partition("[")[0] in error["message"]


@pytest.mark.parametrize("case", WORDS)
async def test_others_read_it_in_the_message(case: str) -> None:
    path, body, field = WORDS[case]
    answer = await refused(path, body)
    inner = answer.get("error", answer)
    message = inner if isinstance(inner, str) else inner["message"]
    assert field in message or f'"{field.rpartition(".")[0]}"' in message


async def test_geminis_clients_read_it_as_a_violation_too() -> None:
    path, body, field = WORDS["google"]
    details = (await refused(path, body))["error"]["details"]
    assert [each["fieldViolations"][0]["field"] for each in details] == [field]


async def test_a_request_without_one_field_at_fault_names_none() -> None:
    error = (await refused(CHAT, {"model": "a", "messages": []}))["error"]
    assert error["param"] is None


def test_the_public_error_names_its_field_once() -> None:
    shown = public(InvalidRequestError("must be a number").at(field="limit"))
    again = public(shown)
    assert (shown.message, shown.field) == ("limit: must be a number", "limit")
    assert (again.message, again.field) == ("limit: must be a number", "limit")


def test_an_upstreams_lack_of_room_names_no_field() -> None:
    """Neutral words stay neutral: what the server itself sent upstream is not the client's
    field."""
    shown = public(OverloadedError("full", provider="x", status=503).at(field="messages[0]"))
    assert shown.field is None and "messages" not in shown.message


LONG = "z" * 1_000_000
ECHOES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "chat role": (CHAT, {"model": "a", "messages": [{"role": LONG, "content": "x"}]}),
    "chat content": (CHAT, {"model": "a", "messages": [{"role": "user", "content": {"a": LONG}}]}),
    "responses type": (RESPONSES, {"model": "a", "input": [{"type": [LONG]}]}),
    "responses tool": (RESPONSES, {"model": "a", "input": "Hi", "tools": [LONG]}),
    "anthropic tool": ("/v1/messages", {"model": "a", "messages": HI, "tools": [LONG]}),
    "google role": (GEMINI, {"contents": [{"role": LONG, "parts": []}]}),
    "google tool": (
        GEMINI,
        {"contents": [{"role": "user", "parts": [{"text": "x"}]}], "tools": [LONG]},
    ),
    "ollama role": ("/api/chat", {"model": "a", "messages": [{"role": LONG}]}),
    "ollama content": (
        "/api/chat",
        {"model": "a", "messages": [{"role": "user", "content": [LONG]}]},
    ),
    "cohere role": ("/v2/chat", {"model": "a", "messages": [{"role": LONG}]}),
}


@pytest.mark.parametrize("case", ECHOES)
async def test_a_refusal_does_not_send_a_long_value_back(case: str) -> None:
    path, body = ECHOES[case]
    assert len(str(await refused(path, body))) < 2_000


@pytest.mark.parametrize("case", SETTINGS)
async def test_a_setting_of_another_type_is_refused_by_its_name(case: str) -> None:
    path, body, field = SETTINGS[case]
    assert f"{field} must be " in str(await refused(path, body))


@pytest.mark.parametrize("config", [{"topK": 40.0}, {"topK": "40"}, {"top_k": "40"}])
async def test_numbers_are_read_in_each_form_that_gemini_takes(config: dict[str, Any]) -> None:
    """Its official Python library sends `topK` as `40.0`."""
    model = ScriptedModel.like(PROVIDERS["anthropic"], "Hi.", key_required=False)
    app = serve.app(gateway=serve.Gateway({"a": model}), store=None)
    body = {"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": config}
    answer = await exchange(app, "POST", GEMINI, body)
    assert answer.status == 200 and "dragoman-loss" not in answer.headers
    assert model.bodies[0]["top_k"] == 40


@pytest.mark.parametrize("wire", [name for name in wires.names("model") if FOLDERS[name]])
def test_bodies_that_were_recorded_are_of_those_types(wire: str) -> None:
    """Of each wire, as far as its provider took them."""
    if not FOLDER.is_dir():
        pytest.skip("the recorded traffic does not stand beside the project (../shared/traffic)")
    seen = 0
    for each in exchanges(*FOLDERS[wire]):
        if each.status == 200 and isinstance(body := each.request, dict):
            check_types(body, wire)
            seen += 1
    assert seen > (10 if wire == "google_interactions" else 20)
