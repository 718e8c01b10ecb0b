"""The cohere wire: bodies of requests there and back."""

from __future__ import annotations

import pytest
from yarl import URL

from dragoman import errors
from dragoman.codec.serving import Route
from dragoman.loss import Loss, Lost
from dragoman.providers.registry import Registry
from dragoman.wires import cohere as wire


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stream": True},
        {"stream": None},
        {"tool_choice": "NONE"},
        {
            "tool_choice": "ODD",
            "max_tokens": None,
            "stop_sequences": None,
            "temperature": "hot",
            "seed": True,
        },
        {"thinking": {"type": "enabled"}},
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled", "token_budget": 7}},
        {"thinking": {"type": "enabled", "own": 1}},
        {"thinking": {}},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "text"}},
        {"response_format": {"type": "json_object", "schema": {"type": "object"}}},
        {"response_format": {"type": "json_object", "json_schema": {"type": "object"}, "own": 1}},
        {
            "response_format": {
                "type": "json_object",
                "json_schema": {"type": "object", "properties": {}},
            }
        },
        {"tools": []},
        {
            "tools": [
                {"type": "function", "function": {"name": "g", "parameters": {}, "x": 1}, "y": 2}
            ]
        },
        {"tools": [{"type": "function", "function": {"name": "g"}}], "strict_tools": True},
        {"model": None, "documents": ["x"], "citation_options": {"mode": "FAST"}},
    ],
)
def test_odd_bodies_come_back_as_they_were(fields):
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}
    assert wire.dump_request(wire.load_request(body)) == body


def test_routes_are_the_official_apis():
    assert wire.routes == (
        Route("POST", "/v2/chat", "chat"),
        Route("POST", "/v2/embed", "embeddings"),
        Route("GET", "/v1/models", "models"),
        Route("GET", "/v1/models/{model}", "model"),
    )


def test_bodies_of_version_1_are_refused():
    with pytest.raises(errors.HistoryError, match="version 2"):
        wire.load_request({"message": "hi", "chat_history": []})


def test_the_list_of_models_is_that_of_version_1():
    provider = Registry(plug_ins=lambda: ()).get("cohere")
    assert str(URL(f"{provider.base_url}{provider.models_path}")).startswith(
        "https://api.cohere.com/v1/models?"
    )


def test_options_are_written_to_their_own_wire_alone():
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    assert wire.load_request(body).wire is None
    request = wire.load_request({**body, "documents": ["x"]})
    assert request.wire == "cohere"
    assert wire.dump_request(request) == {**body, "documents": ["x"]}
    losses = list[Loss]()
    assert wire.dump_request(request.replace(wire="google"), losses=losses) == body
    assert wire.dump_http(request.replace(wire="google")).body == body
    assert losses == [Loss(None, None, Lost.option, "it is a field of google", "documents")]
