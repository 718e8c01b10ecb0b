"""Requests of Google's wire: bodies and paths (D-123, D-127)."""

from __future__ import annotations

import pytest

from dragoman import providers, wires
from dragoman.codec.serving import Route
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import RunError
from dragoman.loss import Loss, Lost
from dragoman.message import Message
from dragoman.providers.keys import request_headers
from dragoman.request import ModelRequest
from dragoman.wires import google as wire
from dragoman.wires.google import embeddings
from support.google import CONTENTS, HI, NESTED, NEWER, content, dump, same_request


def test_the_smallest_request():
    assert dump() == {"contents": CONTENTS}


@pytest.mark.parametrize(
    "body",
    [None, [], {}, {"contents": "hi"}, {"contents": None}, {"contents": CONTENTS, "tools": [1]}],
)
def test_what_is_no_request_is_refused(body):
    with pytest.raises(HistoryError):
        wire.load_request(body)


def test_a_request_to_count_tokens_may_hold_a_whole_one():
    body = {
        "generateContentRequest": {
            "model": "models/gemini-x",
            "contents": CONTENTS,
            "system_instruction": {"parts": [{"text": "a"}]},
        }
    }
    request = wire.load_request(body)
    assert (request.model, request.messages[0].text) == ("gemini-x", "a")
    assert wire.dump_request(request) == body


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        ("/v1beta/models/gemini-x:generateContent", "gemini-x", False),
        (
            "https://h/v1beta/models/gemini-x:streamGenerateContent?alt=sse&key=a:b",
            "gemini-x",
            True,
        ),
        ("/v1beta/tunedModels/mine:generateContent", "tunedModels/mine", False),
        (
            "https://h/v1/projects/p/locations/l/publishers/google/models/gemini-x:streamGenerateContent",
            "gemini-x",
            True,
        ),
        ("/v1/publishers/google/models/gemini-x:generateContent", "gemini-x", False),
        (
            "/v1/projects/p/locations/l/publishers/acme/models/y:generateContent",
            "publishers/acme/models/y",
            False,
        ),
        ("/v1/projects/p/locations/l/endpoints/12:generateContent", "endpoints/12", False),
        ("/somewhere/else", "", False),
        ("", "", False),
    ],
)
def test_model_and_stream_stand_in_the_path(path, model, stream):
    request = wire.load_request({"contents": CONTENTS}, path=path)
    assert (request.model, request.stream) == (model, stream)


def test_a_model_in_the_body_stays_there():
    assert same_request({"model": "models/gemini-x"}).model == "gemini-x"
    request = same_request({"model": "gemini-x"}, path="/models/gemini-x:generateContent")
    assert wire.dump_request(request.replace(model="other"))["model"] == "other"


def test_d127_a_name_with_a_slash_stays_and_others_get_a_place():
    def path(model, *, stream=False, quirks=None):
        return wire.dump_http(ModelRequest(model, (HI,), stream=stream), quirks=quirks).path

    vertex = providers.get("vertex").quirks
    assert path("gemini-x") == "/models/gemini-x:generateContent"
    assert path("gemini-x", stream=True) == "/models/gemini-x:streamGenerateContent?alt=sse"
    assert path("tunedModels/mine") == "/tunedModels/mine:generateContent"
    assert path("gemini-x", quirks=vertex) == "/publishers/google/models/gemini-x:generateContent"
    assert (
        path("publishers/acme/models/y", quirks=vertex)
        == "/publishers/acme/models/y:generateContent"
    )


def test_d123_nothing_to_send_is_an_error():
    for messages in ((), (Message.system("be brief"),), (Message.model(),)):
        with pytest.raises(HistoryError, match="nothing to send"):
            wire.dump_http(ModelRequest(NEWER, messages))


def test_the_records():
    google = providers.get("gemini")
    assert google is providers.get("googleai") is providers.get("google-gla")
    assert request_headers(google, system={"GEMINI_API_KEY": "k"}) == {"x-goog-api-key": "k"}
    assert request_headers(google, system={"GOOGLE_API_KEY": "k"}) == {"x-goog-api-key": "k"}


def test_vertex_takes_a_key_or_a_token():
    vertex = providers.get("vertex")
    assert request_headers(vertex, api_key="AQ.key", system={}) == {"x-goog-api-key": "AQ.key"}
    assert request_headers(vertex, api_key="ya29.token", system={}) == {
        "authorization": "Bearer ya29.token"
    }
    assert request_headers(vertex, headers={"Authorization": "Bearer t"}, system={}) == {
        "authorization": "Bearer t"
    }
    assert request_headers(vertex, headers={"x-goog-api-key": "k"}, system={}) == {
        "x-goog-api-key": "k"
    }


def test_a_model_named_by_path_and_body_is_the_paths():
    for named, before in (
        ("models/m", "models/"),
        ("m", ""),
        ("publishers/google/models/m", "publishers/google/models/"),
    ):
        for load, write, rest in (
            (wire.load_request, wire.dump_request, {"contents": []}),
            (embeddings.load_request, embeddings.dump_request, content("a")),
        ):
            request = load({"model": named, **rest}, path="/models/m:embedContent")
            assert (request.model, request.native["google:notes"]["spelling"]["model"]) == (
                "m",
                before,
            )
            assert write(request) == {"model": named, **rest}
            assert load({"model": named, **rest}).model == named.removeprefix("models/")


@pytest.mark.parametrize(
    "payload", [{"contents": NESTED}, {"contents": CONTENTS, "systemInstruction": NESTED}]
)
def test_what_nests_too_deep_is_refused(payload):
    for load in (wire.load_messages, wire.load_request, embeddings.load_request):
        with pytest.raises(HistoryError, match="deeper"):
            load(payload)
    (event,) = wire.load_response(payload)
    assert isinstance(event, RunError)
    assert isinstance(event.error, DecodeError)
    assert "deeper" in event.error.message


@pytest.mark.parametrize(
    "fields",
    [
        {"toolConfig": "x"}, {"toolConfig": 1e308}, {"generationConfig": "x"}, {"generationConfig": [1]},
        {"toolConfig": {"functionCallingConfig": {"mode": [1]}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [{}]}}},
        {"generationConfig": {"stopSequences": [1, {}]}}, {"generationConfig": {"temperature": True}},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": True}}},
        {"generationConfig": {"responseSchema": {"items": 5, "type": {"a": 1}}}},
        {"generationConfig": {"responseSchema": {"anyOf": ["x"], "properties": {"a": 1.5}, "enum": 5}}},
        {"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"properties": {"a": [1]}, "required": 5}}]}]},
    ],
)  # fmt: skip
def test_fields_of_another_type_come_back_as_they_were(fields):
    body = {"contents": CONTENTS, **fields}
    request = wire.load_request(body)
    assert wire.dump_request(request) == body
    for name in wires.names("model"):
        wires.get(name).dump_request(request)


def test_other_enums_by_number_are_read_and_written_again():
    schema = {
        "type": 6,
        "properties": {"a": {"type": 1, "nullable": True}, "b": {"type": 5, "items": {"type": 3}}},
    }
    body = {
        "contents": CONTENTS,
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}],
        "toolConfig": {"functionCallingConfig": {"mode": 2}},
    }
    request = wire.load_request(body)
    assert wire.dump_request(request) == body
    assert request.settings.tool_choice == "required"
    assert request.tools[0].input_schema["properties"]["a"] == {"type": ["string", "null"]}
    ran = wire.load_messages(
        {"contents": [{"role": "model", "parts": [{"codeExecutionResult": {"outcome": 1}}]}]}
    )
    assert not ran[0].content[0].is_error


def test_the_routes_are_those_whose_paths_are_read():
    read = {}
    for route in wire.routes:
        path = route.path.replace("{model}", "gemini-x")
        if route.purpose == "chat":
            request = wire.load_request({"contents": CONTENTS}, path=path)
            read[path] = request.model, request.stream
        elif route.purpose == "embeddings":
            read[path] = embeddings.load_request(content("a"), path=path).model
    assert read == {
        f"/{version}/models/gemini-x:{action}": expected
        for version in ("v1beta", "v1")
        for action, expected in {
            "generateContent": ("gemini-x", False),
            "streamGenerateContent": ("gemini-x", True),
            "embedContent": "gemini-x",
            "batchEmbedContents": "gemini-x",
        }.items()
    }
    assert Route("POST", "/v1beta/models/{model}:countTokens", "count_tokens") in wire.routes
    assert Route("GET", "/v1beta/models", "models") in wire.routes


def test_options_are_written_to_their_own_wire_alone():
    body = {"contents": CONTENTS}
    assert wire.load_request(body).wire is None
    request = wire.load_request({**body, "cachedContent": 1})
    assert request.wire == "google"
    assert wire.dump_request(request) == {**body, "cachedContent": 1}
    losses = list[Loss]()
    assert wire.dump_request(request.replace(wire="cohere"), losses=losses) == body
    assert wire.dump_http(request.replace(wire="cohere", model="m")).body == body
    assert losses == [Loss(None, None, Lost.option, "it is a field of cohere", "cachedContent")]
