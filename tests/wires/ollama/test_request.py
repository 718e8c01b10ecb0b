"""Requests of Ollama's wire."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codec.serving import Route
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import RunError
from dragoman.loss import Loss, Lost
from dragoman.message import Message
from dragoman.request import EmbeddingsRequest, ModelRequest, ServerTool, Settings
from dragoman.wires import ollama as wire
from dragoman.wires.ollama import embeddings


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stream": True},
        {"stream": False, "format": "json"},
        {"format": {"type": "object"}},
        {"format": ""},
        {"options": {}},
        {"options": {"temperature": None, "num_ctx": 1, "stop": "x", "seed": True}},
        {"tools": []},
        {
            "tools": [
                {"function": {"name": "f"}},
                {"type": "function", "function": {"name": "g", "parameters": {}, "x": 1}},
            ]
        },
        {"tools": [{"type": "own", "a": 1}, {"type": "bare"}]},
        {"model": None, "keep_alive": 0, "truncate": False, "stream": None},
    ],
)
def test_odd_bodies_come_back_as_they_were(fields):
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}
    assert wire.dump_request(wire.load_request(body)) == body


def test_the_api_streams_where_it_is_not_told():
    assert wire.load_request({"model": "m", "messages": []}).stream
    assert wire.dump_request(ModelRequest("m"))["stream"] is False


def test_settings_and_tools_that_the_api_does_not_know_are_losses():
    losses = []
    settings = Settings(tool_choice="required", parallel_tool_calls=True)
    body = wire.dump_request(
        ModelRequest("m", tools=(ServerTool("web_search"),), settings=settings), losses=losses
    )
    assert body == {"model": "m", "messages": [], "stream": False}
    assert [(loss.what, loss.which) for loss in losses] == [
        ("tool", "web_search"),
        ("setting", "tool_choice"),
        ("setting", "parallel_tool_calls"),
    ]
    assert str(losses[1]) == "tool_choice: the API has no such setting"


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def decode_lines(*lines: bytes) -> list[Any]:
    decoder = wire.decoder()
    return [*decoder.feed(b"".join(line + b"\n" for line in lines)), *decoder.close()]


def test_depth_is_bounded_at_every_door():
    nested = b'{"message":{"content":"a"},"a":' + b"[" * 2000 + b"]" * 2000 + b"}"
    for lines in ([nested], [b'{"message":{"content":"a"}}', nested], [b"{", nested, b"}"]):
        events = decode_lines(*lines)
        assert isinstance(events[-1], RunError) and isinstance(events[-1].error, DecodeError)
    (event,) = wire.load_response({"message": {"content": "a"}, "done": True, "a": deep(2000)})
    assert (
        isinstance(event, RunError)
        and isinstance(event.error, DecodeError)
        and "deep" in event.error.message
    )
    for load, given in (
        (wire.load_messages, [{"role": "user", "content": "a", "b": deep(2000)}]),
        (wire.load_request, {"messages": [], "b": deep(2000)}),
        (wire.load_request, {"prompt": "a", "context": deep(2000)}),
    ):
        with pytest.raises(HistoryError, match="deep"):
            load(given)


@pytest.mark.parametrize(
    "odd",
    [
        {"tools": [{"type": 5, "function": {}}]},
        {"tools": [{"type": "", "a": 1}]},
        {"options": {"stop": [0], "temperature": True}},
        {"think": {}},
        {"format": ["json"]},
        {"stream": "x"},
        {"model": 5},
    ],
)
def test_odd_fields_of_a_request_come_back_as_they_were(odd: dict[str, Any]):
    body = {"model": "m", "messages": [{"role": "user", "content": "a"}], **odd}
    assert wire.dump_request(wire.load_request(body)) == body


def test_the_routes_are_those_to_which_requests_go():
    prompt = wire.load_request({"model": "m", "prompt": "x"})
    older = embeddings.load_request({"model": "m", "prompt": "x"})
    sent = [
        wire.dump_http(ModelRequest("m", (Message.user("x"),))),
        wire.dump_http(prompt),
        embeddings.dump_http(EmbeddingsRequest("m", ("x",))),
        embeddings.dump_http(older),
    ]
    purposes = ["chat", "chat", "embeddings", "embeddings"]
    assert [*wire.routes] == [
        *[Route("POST", each.path, purpose) for each, purpose in zip(sent, purposes, strict=True)],
        Route("GET", "/api/tags", "models"),
        Route("GET", "/api/ps", "running"),
        Route("POST", "/api/show", "model"),
        Route("GET", "/api/version", "version"),
        Route("GET", "/", "alive"),
        Route("HEAD", "/", "alive"),
    ]


def test_options_are_written_to_their_own_wire_alone():
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": False}
    assert wire.load_request(body).wire is None
    request = wire.load_request({**body, "keep_alive": 1})
    assert request.wire == "ollama"
    assert wire.dump_request(request) == {**body, "keep_alive": 1}
    losses = list[Loss]()
    assert wire.dump_request(request.replace(wire="cohere"), losses=losses) == body
    assert wire.dump_http(request.replace(wire="cohere", model="m")).body == body
    assert losses == [Loss(None, None, Lost.option, "it is a field of cohere", "keep_alive")]
