"""The anthropic wire's requests: rules D-109 and D-114, settings, tools, schemas, headers."""

from __future__ import annotations

import pytest

from dragoman.errors import HistoryError
from dragoman.message import DataPart, FilePart, Message
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import anthropic as wire

ASKED = [{"role": "user", "content": "Hi"}]
HI = (Message.user("Hi"),)
TOOL = ToolSpec("get_weather", "Weather.", {"type": "object", "properties": {"city": {"type": "string"}}})


def dump(**fields):
    quirks = fields.pop("quirks", None)
    return wire.dump_request(ModelRequest(fields.pop("model", "claude-sonnet-4-0"), HI, **fields), quirks=quirks)


def load(**fields):
    """A body with these fields, read after it was seen to be written back as it came."""
    body = {"model": "claude-sonnet-4-0", "max_tokens": 99, "messages": ASKED, **fields}
    request = wire.load_request(body)
    assert wire.dump_request(request) == body
    return request


def test_the_plainest_request():
    assert dump() == {"model": "claude-sonnet-4-0", "max_tokens": 4096, "messages": ASKED}


def test_d109_defaults():
    assert dump()["max_tokens"] == 4096
    thinking = dump(settings=Settings(reasoning="medium"))
    assert (thinking["max_tokens"], thinking["thinking"]) == (8192, {"type": "enabled", "budget_tokens": 4096})
    assert dump(tools=[TOOL])["tool_choice"] == {"type": "auto"}
    assert "tool_choice" not in dump()


@pytest.mark.parametrize(
    ("reasoning", "thinking", "max_tokens"),
    [
        ("off", {"type": "disabled"}, 4096),
        ("low", {"type": "enabled", "budget_tokens": 1024}, 8192),
        ("high", {"type": "enabled", "budget_tokens": 16384}, 20480),
        (2000, {"type": "enabled", "budget_tokens": 2000}, 8192),
        (60000, {"type": "enabled", "budget_tokens": 60000}, 64096),
    ],
)
def test_reasoning_is_a_budget_below_max_tokens(reasoning, thinking, max_tokens):
    body = dump(settings=Settings(reasoning=reasoning))
    assert (body["thinking"], body["max_tokens"]) == (thinking, max_tokens)


def test_an_effort_fits_into_max_tokens():
    assert dump(settings=Settings(reasoning="high", max_tokens=3000))["thinking"]["budget_tokens"] == 2999
    assert dump(settings=Settings(reasoning="high", max_tokens=10))["thinking"]["budget_tokens"] == 1024


def test_newer_models_take_an_effort():
    body = dump(model="claude-opus-4-7-20260101", settings=Settings(reasoning="low"))
    assert (body["thinking"], body["output_config"]) == ({"type": "adaptive"}, {"effort": "low"})
    body = dump(model="vendor", settings=Settings(reasoning="low"), quirks=wire.Quirks(budgets={"low": 7}))
    assert body["thinking"]["budget_tokens"] == 7


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, 2048),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"}}, 2048),
        ({"thinking": {"type": "disabled"}}, "off"),
        ({"thinking": {"type": "adaptive"}}, "high"),
        ({"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}}, "high"),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low", "task_budget": {"total": 1}}}, "low"),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}, "high"),
        ({"output_config": {"effort": "medium"}}, "medium"),
        ({"output_config": {"effort": "max"}}, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}, "output_config": {"effort": "high"}}, 2048),
        ({"thinking": {"type": "between_tools"}}, None),
        ({"thinking": None, "output_config": None}, None),
    ],
)
def test_thinking_of_every_spelling_survives(fields, reasoning):
    assert load(**fields).settings.reasoning == reasoning


def test_an_edited_effort_is_written_as_edited():
    request = load(thinking={"type": "adaptive"})
    assert wire.dump_request(request.replace(settings=Settings(reasoning="low")))["output_config"] == {"effort": "low"}
    request = load(thinking={"type": "adaptive", "display": "omitted"})
    edited = wire.dump_request(request.replace(settings=Settings(reasoning=1500)))
    assert edited["thinking"] == {"type": "enabled", "budget_tokens": 1500, "display": "omitted"}


def test_settings_there_and_back():
    settings = load(temperature=0.5, top_p=0.9, top_k=4, stop_sequences=["a", "b"], stream=True).settings
    assert settings == Settings(max_tokens=99, temperature=0.5, top_p=0.9, top_k=4, stop=("a", "b"))
    assert load(stream=True).stream is True
    assert load(stream=False).stream is False
    assert load(stop_sequences=[]).settings.stop == ()


def test_what_has_no_neutral_name_is_passed_on():
    fields = {
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "container": "c",
        "context_management": {"edits": []},
    }
    assert load(**fields).options == fields
    assert load(max_tokens="many").options == {"max_tokens": "many"}


def test_explicit_nulls_survive_and_are_no_options():
    load(max_tokens=None, tool_choice=None, tools=[{"name": "f", "input_schema": {"type": "object"}}])
    request = load(temperature=None, system=None, tools=None, tool_choice=None, stream=None, extra=None)
    assert request.options == {"extra": None}


@pytest.mark.parametrize("system", ["", [], "x", [{"type": "text", "text": "x"}]])
def test_system_of_every_spelling_survives(system):
    load(system=system)


def test_a_body_for_counting_tokens_survives():
    body = {"model": "m", "messages": ASKED, "tools": [{"name": "f", "input_schema": {"type": "object"}}]}
    assert wire.dump_request(wire.load_request(body, path="/v1/messages/count_tokens")) == body


def test_settings_that_the_api_does_not_know_are_told_as_losses():
    losses = []
    request = ModelRequest("m", HI, settings=Settings(seed=1, presence_penalty=0.5, frequency_penalty=0.5, top_k=3))
    body = wire.dump_request(request, losses=losses)
    assert {loss.what for loss in losses} == {"seed", "presence_penalty", "frequency_penalty"}
    assert all(loss.message is None for loss in losses)
    assert body["top_k"] == 3


@pytest.mark.parametrize(
    ("choice", "neutral", "parallel"),
    [
        ({"type": "auto"}, "auto", None),
        ({"type": "any"}, "required", None),
        ({"type": "none"}, "none", None),
        ({"type": "tool", "name": "get_weather"}, "get_weather", None),
        ({"type": "auto", "disable_parallel_tool_use": True}, "auto", False),
        ({"type": "any", "disable_parallel_tool_use": False}, "required", True),
        ({"type": "auto", "new_field": 1}, "auto", None),
        ({"type": "tool", "name": "none"}, None, None),
        ({"type": "new_kind"}, None, None),
    ],
)
def test_tool_choice(choice, neutral, parallel):
    settings = load(tool_choice=choice, tools=[{"name": "get_weather", "input_schema": {"type": "object"}}]).settings
    assert (settings.tool_choice, settings.parallel_tool_calls) == (neutral, parallel)


def test_parallel_calls_can_be_forbidden_without_a_choice():
    choice = dump(tools=[TOOL], settings=Settings(parallel_tool_calls=False))["tool_choice"]
    assert choice == {"type": "auto", "disable_parallel_tool_use": True}
    assert "tool_choice" not in dump(settings=Settings(parallel_tool_calls=False))


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "f", "input_schema": {"type": "object"}},
        {"name": "f", "description": "", "input_schema": {}},
        {"name": "f", "description": "d", "input_schema": True},
        {
            "name": "f",
            "type": "custom",
            "strict": True,
            "defer_loading": True,
            "input_schema": {"type": "object", "$defs": {}},
        },
        {
            "name": "f",
            "type": None,
            "input_schema": {"type": "object"},
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
        },
        {"name": "my tool", "input_schema": {"type": "object"}},
    ],
)
def test_own_tools_of_every_spelling_survive(tool):
    (spec,) = load(tools=[tool], tool_choice={"type": "auto"}).tools
    assert isinstance(spec, ToolSpec)
    assert (spec.name, spec.description) == (tool["name"], tool.get("description", ""))


@pytest.mark.parametrize(
    ("tool", "name", "options"),
    [
        ({"type": "web_search_20250305", "name": "web_search", "max_uses": 3}, "web_search", {"max_uses": 3}),
        (
            {"type": "web_search_20250305", "name": "web_search", "cache_control": {"type": "ephemeral"}},
            "web_search",
            {},
        ),
        ({"type": "mcp_toolset", "mcp_server_name": "x"}, "mcp_toolset", {"mcp_server_name": "x"}),
        ({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}, "str_replace_based_edit_tool", {}),
    ],
)
def test_tools_of_the_provider_survive(tool, name, options):
    (spec,) = load(tools=[tool]).tools
    assert isinstance(spec, ServerTool)
    assert (spec.name, spec.options) == (name, options)


def test_tools_by_hand():
    tools = dump(tools=[TOOL, ToolSpec("now"), ToolSpec("my tool")], settings=Settings(tool_choice="my tool"))
    weather, now, mine = tools["tools"]
    assert weather == {"name": "get_weather", "description": "Weather.", "input_schema": TOOL.input_schema}
    assert now == {"name": "now", "input_schema": {"type": "object", "properties": {}}}
    assert tools["tool_choice"] == {"type": "tool", "name": mine["name"]}
    assert mine["name"] != "my tool"
    load(tools=[])
    assert wire.dump_request(load().replace(tools=[TOOL]))["tool_choice"] == {"type": "auto"}


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("web_search", {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}),
        ("code_execution", {"type": "code_execution_20250825", "name": "code_execution", "max_uses": 2}),
        ("web_fetch_20260209", {"type": "web_fetch_20260209", "name": "web_fetch", "max_uses": 2}),
        ("new_tool", {"type": "new_tool", "name": "new_tool", "max_uses": 2}),
    ],
)
def test_d114_tools_of_the_provider_by_hand(name, written):
    assert dump(tools=[ServerTool(name, {"max_uses": 2})])["tools"] == [written]


SCHEMA = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}


def test_output_schemas_of_every_spelling_survive():
    assert load(output_config={"format": {"type": "json_schema", "schema": SCHEMA}}).output_schema == SCHEMA
    assert (
        load(output_config={"format": {"type": "json_schema", "schema": SCHEMA, "x": 1}, "effort": "low"}).output_schema
        == SCHEMA
    )
    assert load(output_format={"type": "json_schema", "schema": SCHEMA, "name": "n"}).output_schema == SCHEMA
    assert load(output_format={"type": "text"}, output_config={}).output_schema is None


def test_an_output_schema_by_hand():
    body = dump(output_schema=SCHEMA, options={"output_config": {"task_budget": {"total": 1}}})
    sent = {**SCHEMA, "additionalProperties": False}
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": sent}, "task_budget": {"total": 1}}


def http(**fields):
    return wire.dump_http(ModelRequest("m", fields.pop("messages", HI), **fields))


def test_dump_http():
    sent = http(stream=True)
    assert (sent.path, sent.method, sent.headers) == ("/messages", "POST", {"anthropic-version": "2023-06-01"})
    assert sent.body == {"model": "m", "max_tokens": 4096, "messages": ASKED, "stream": True}


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
        ({"messages": (Message.user(FilePart("f")), Message.user(FilePart("g")))}, "files-api-2025-04-14"),
        ({"messages": (Message.user(DataPart(b"x", "text/plain")),)}, None),
        ({"options": {"mcp_servers": []}}, "mcp-client-2025-04-04"),
        ({"options": {"context_management": {"edits": [{"type": "compact_20260112"}]}}}, "compact-2026-01-12"),
        ({"options": {"output_config": {"task_budget": {"total": 1}}}}, "task-budgets-2026-03-13"),
    ],
)
def test_d114_beta_headers_follow_from_the_content(fields, beta):
    assert http(**fields).headers.get("anthropic-beta") == beta


def test_beta_headers_of_a_request_are_kept_once():
    body = {"model": "m", "messages": ASKED, "tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}
    request = wire.load_request(body, headers={"Anthropic-Beta": "my-beta, web-fetch-2025-09-10"})
    assert wire.dump_http(request).headers["anthropic-beta"] == "my-beta,web-fetch-2025-09-10"
    assert wire.dump_http(request, quirks=wire.Quirks(betas={})).body == body


@pytest.mark.parametrize(
    "body", [{}, {"messages": "x"}, {"messages": [], "tools": ["x"]}, {"messages": [], "tools": [{}]}]
)
def test_what_is_no_request_is_refused(body):
    with pytest.raises(HistoryError):
        wire.load_request(body)
