"""Requests of the openai_responses wire: bodies survive, options have the last word (D-136)."""

from __future__ import annotations

import pytest

from dragoman import wires
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.loss import Loss
from dragoman.message import Message
from dragoman.request import ModelRequest
from dragoman.wires import openai_responses as wire
from support.responses import HI, SCHEMA, dump, reads_back


def test_the_plainest_request():
    assert dump() == {"model": "gpt-5", "input": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    "body",
    [
        {"tool_choice": "none"},
        {"tool_choice": {"type": "function", "name": "f"}},
        {"tool_choice": {"type": "web_search"}},
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
        {
            "tool_choice": None,
            "tools": None,
            "temperature": None,
            "stream": None,
            "instructions": None,
        },
        {"tools": [], "instructions": "", "max_output_tokens": "9"},
        {"stream": False},
        {"stream": True},
        {"store": False},
        {"store": False, "include": ["reasoning.encrypted_content"]},
        {
            "store": None,
            "previous_response_id": None,
            "truncation": "auto",
            "metadata": {"a": "b"},
            "background": True,
        },
        {"text": {"verbosity": "low"}},
        {"text": {"format": {"type": "text"}, "verbosity": "low"}},
        {"text": {"format": {"type": "json_object"}}},
        {
            "text": {
                "format": {"type": "json_schema", "name": "n", "schema": SCHEMA},
                "verbosity": "high",
            }
        },
        {
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "n",
                    "schema": SCHEMA,
                    "strict": True,
                    "description": "d",
                }
            }
        },
        {"input": ""},
        {"input": []},
        {"input": None, "prompt": {"id": "p"}},
        {"model": None},
    ],
    ids=repr,
)
def test_fields_survive(body):
    reads_back(**body)


def test_a_request_without_input_goes_on_from_what_it_names():
    body = {"model": "m", "previous_response_id": "resp_1"}
    assert wire.dump_request(wire.load_request(body)) == body
    with pytest.raises(HistoryError):
        wire.load_request({"model": "m"})


def test_options_have_the_last_word_and_are_added_to():
    dumped = dump(
        output_schema=SCHEMA, options={"text": {"verbosity": "low"}, "model": "other", "x": 1}
    )
    assert (
        dumped["text"]["verbosity"] == "low" and dumped["text"]["format"]["type"] == "json_schema"
    )
    assert (dumped["model"], dumped["x"]) == ("other", 1)


def test_encrypted_reasoning_is_asked_for_where_nothing_is_stored():
    assert dump(options={"store": False})["include"] == ["reasoning.encrypted_content"]
    assert "include" not in dump(options={"store": True}) and "include" not in dump()
    assert dump(options={"store": False, "include": []})["include"] == []
    assert "include" not in dump(options={"store": False}, quirks=wire.Quirks(encrypted=False))


def test_the_path_and_d136_nothing_to_send():
    http = wire.dump_http(ModelRequest("m", (HI,), stream=True))
    assert (http.path, http.body["stream"]) == ("/responses", True)
    with pytest.raises(InvalidRequestError, match="No new input provided"):
        wire.dump_http(ModelRequest("m", (Message.system("be"),)))
    assert (
        wire.dump_http(ModelRequest("m", options={"previous_response_id": "resp_1"})).body["input"]
        == []
    )


@pytest.mark.parametrize(
    "fields",
    [{"text": "x"}, {"text": [1]}, {"text": {"format": "x"}}, {"text": {"format": True}}, {"reasoning": 5}, {"tool_choice": [1]}],
)  # fmt: skip
def test_d7_fields_of_another_type_are_written_again(fields):
    body = {"input": "a", **fields}
    request = wire.load_request(body)
    assert wire.dump_request(request) == body or fields == {"text": {"format": "x"}}
    for name in wires.names("model"):
        wires.get(name).dump_request(request)


def test_options_are_those_of_this_wire_and_another_wires_are_not_sent():
    assert wire.load_request({"input": "Hi", "truncation": "auto"}).wire == "openai_responses"
    assert wire.load_request({"input": "Hi"}).wire is None
    request = ModelRequest("gpt-5", (HI,), options={"truncation": "auto"}, wire="openai_responses")
    assert wire.dump_request(request)["truncation"] == "auto"
    foreign = request.replace(options={"keep_alive": 5}, wire="ollama")
    lost = [Loss(None, None, "option", "it is a field of ollama", "keep_alive")]
    for write in (wire.dump_request, wire.dump_http):
        losses: list[Loss] = []
        assert write(foreign, losses=losses) == write(request.replace(options={}))
        assert losses == lost
        assert write(foreign) == write(request.replace(options={}))


def test_where_the_api_has_what():
    assert {(route.method, route.path, route.purpose) for route in wire.routes} == {
        ("POST", "/v1/responses", "chat"),
        ("POST", "/v1/responses/input_tokens", "count_tokens"),
        ("POST", "/v1/embeddings", "embeddings"),
        ("POST", "/v1/images/generations", "images"),
        ("POST", "/v1/images/edits", "images"),
        ("POST", "/v1/audio/speech", "speech"),
        ("POST", "/v1/audio/transcriptions", "transcription"),
        ("GET", "/v1/responses/{id}", "response"),
        ("DELETE", "/v1/responses/{id}", "delete_response"),
        ("POST", "/v1/responses/{id}/cancel", "cancel_response"),
        ("GET", "/v1/responses/{id}/input_items", "input_items"),
        ("GET", "/v1/models", "models"),
        ("GET", "/v1/models/{model}", "model"),
    }
