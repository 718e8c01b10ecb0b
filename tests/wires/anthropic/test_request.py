"""The anthropic wire: bodies, headers and path of requests (D-114)."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codec.serving import Route
from dragoman.errors import HistoryError
from dragoman.loss import Loss, Lost
from dragoman.message import DataPart, FilePart, Message
from dragoman.request import ModelRequest, ServerTool
from dragoman.wires import anthropic as wire
from support.anthropic import ASKED, HI, dump_request, load_request, payload_of


def test_the_plainest_request():
    assert dump_request() == {"model": "claude-sonnet-4-0", "max_tokens": 32_768, "messages": ASKED}


def test_what_has_no_neutral_name_is_passed_on():
    fields = {
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "container": "c",
        "context_management": {"edits": []},
    }
    assert load_request(**fields).options == fields
    assert load_request(max_tokens="many").options == {"max_tokens": "many"}


def test_explicit_nulls_survive_and_are_no_options():
    load_request(
        max_tokens=None, tool_choice=None, tools=[{"name": "f", "input_schema": {"type": "object"}}]
    )
    request = load_request(
        temperature=None, system=None, tools=None, tool_choice=None, stream=None, extra=None
    )
    assert request.options == {"extra": None}


@pytest.mark.parametrize("system", ["", [], "x", [{"type": "text", "text": "x"}]])
def test_system_of_every_spelling_survives(system):
    load_request(system=system)


def test_a_body_for_counting_tokens_survives():
    body = {
        "model": "m",
        "messages": ASKED,
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    }
    assert wire.dump_request(wire.load_request(body, path="/v1/messages/count_tokens")) == body


def test_routes_are_the_official_apis():
    assert wire.routes == (
        Route("POST", "/v1/messages", "chat"),
        Route("POST", "/v1/messages/count_tokens", "count_tokens"),
        Route("GET", "/v1/models", "models", "anthropic-version"),
        Route("GET", "/v1/models/{model}", "model", "anthropic-version"),
    )


def http(**fields):
    return wire.dump_http(ModelRequest("m", fields.pop("messages", HI), **fields))


def test_dump_http():
    sent = http(stream=True)
    assert (sent.path, sent.method, sent.headers) == (
        "/messages",
        "POST",
        {"anthropic-version": "2023-06-01"},
    )
    assert sent.body == {"model": "m", "max_tokens": 32_768, "messages": ASKED, "stream": True}


@pytest.mark.parametrize(
    ("fields", "beta"),
    [
        ({"tools": [ServerTool("code_execution")]}, "code-execution-2025-08-25"),
        ({"tools": [ServerTool("web_fetch")]}, "web-fetch-2025-09-10"),
        ({"tools": [ServerTool("web_search")]}, None),
        (
            {"tools": [ServerTool("code_execution"), ServerTool("web_fetch")]},
            "code-execution-2025-08-25,web-fetch-2025-09-10",
        ),
        (
            {"messages": (Message.user(FilePart("f")), Message.user(FilePart("g")))},
            "files-api-2025-04-14",
        ),
        ({"messages": (Message.user(DataPart(b"x", "text/plain")),)}, None),
        ({"options": {"mcp_servers": []}}, "mcp-client-2025-04-04"),
        (
            {"options": {"context_management": {"edits": [{"type": "compact_20260112"}]}}},
            "compact-2026-01-12",
        ),
        ({"options": {"output_config": {"task_budget": {"total": 1}}}}, "task-budgets-2026-03-13"),
    ],
)
def test_d114_beta_headers_follow_from_the_content(fields, beta):
    assert http(**fields).headers.get("anthropic-beta") == beta


def test_beta_headers_of_a_request_are_kept_once():
    body = {
        "model": "m",
        "messages": ASKED,
        "tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}],
    }
    request = wire.load_request(body, headers={"Anthropic-Beta": "my-beta, web-fetch-2025-09-10"})
    assert wire.dump_http(request).headers["anthropic-beta"] == "my-beta,web-fetch-2025-09-10"
    assert wire.dump_http(request, quirks=wire.Quirks(betas={})).body == body


@pytest.mark.parametrize(
    "body",
    [{}, {"messages": "x"}, {"messages": [], "tools": ["x"]}, {"messages": [], "tools": [{}]}],
)
def test_what_is_no_request_is_refused(body):
    with pytest.raises(HistoryError):
        wire.load_request(body)


@pytest.mark.parametrize(
    "odd",
    [
        {"model": {"a": 1}},
        {"output_config": "x"},
        {"output_config": "x", "thinking": {"type": "adaptive"}},
        {"context_management": [1]},
        {"context_management": {"edits": "x"}},
        {"max_tokens": True},
        {"stop_sequences": [0]},
        {"thinking": {"type": "enabled", "budget_tokens": True}},
        {"tool_choice": {"type": ["tool"]}},
        {"cache_control": [1]},
        {"tools": [{"name": "f", "input_schema": {"type": ["x"]}, "spelling": "x"}]},
    ],
)
def test_odd_fields_of_a_request_come_back_as_they_were(odd: dict[str, Any]):
    body = {
        "model": "claude-opus-4-6",
        "max_tokens": 5,
        **payload_of({"type": "text", "text": "a"}),
        **odd,
    }
    body["messages"] = [{"role": "user", "content": "a"}]
    request = wire.load_request(body)
    assert wire.dump_request(request) | {"tool_choice": 0} == body | {"tool_choice": 0}
    assert wire.dump_http(request).body["model" if "model" not in odd else "max_tokens"]


def test_options_are_written_to_their_own_wire_alone():
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
    assert wire.load_request(body).wire is None
    request = wire.load_request({**body, "metadata": {"user_id": "u"}})
    assert request.wire == "anthropic"
    assert wire.dump_request(request) == {**body, "metadata": {"user_id": "u"}}
    losses = list[Loss]()
    assert wire.dump_request(request.replace(wire="google"), losses=losses) == body
    assert wire.dump_http(request.replace(wire="google")).body == body
    assert losses == [Loss(None, None, Lost.option, "it is a field of google", "metadata")]
