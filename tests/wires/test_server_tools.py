"""Tools that a provider runs: common names and options, each API's own words, and what it lacks."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import json_bytes, wires
from dragoman.codec.dump_cache import DumpedRequest, History
from dragoman.codec.server_tools import COMMON
from dragoman.formats.conversion import convert
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Origin, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import anthropic
from dragoman.wires.serving import get_serving
from support.profiles import quirks_of

RUNNING = ("anthropic", "openai_responses", "google", "google_interactions")
"""Wires whose providers run tools."""
MCP = {"name": "docs", "url": "https://x.example/mcp"}
ASKED = (Message.user("hi"),)


def written(wire: str, *tools: ServerTool, **settings: Any) -> tuple[Any, list[str]]:
    losses: list[Loss] = []
    request = ModelRequest("m", ASKED, tools, Settings(**settings))
    body = wires.get(wire).dump_request(request, losses=losses)
    return body.get("tools"), [f"{loss.what} {loss.which}" for loss in losses]


@pytest.mark.parametrize("wire", RUNNING)
def test_every_common_tool_is_written_and_read_again_or_named(wire: str) -> None:
    for name in COMMON:
        needed = {"file_search": {"stores": ["s"]}, "mcp": MCP}
        tools, lost = written(wire, ServerTool(name, needed.get(name, {})))
        if lost:
            assert lost == [f"tool {name}"] and not tools
            continue
        body = wires.get(wire).dump_request(
            ModelRequest("m", ASKED, (ServerTool(name, needed.get(name, {})),))
        )
        [back] = wires.get(wire).load_request(body, path="/models/m:generateContent").tools
        assert back.name == name


def test_options_are_in_the_words_of_each_api() -> None:
    search = ServerTool(
        "web_search", {"allowed_domains": ["a.example"], "user_location": {"city": "Rome"}}
    )
    place = {"type": "approximate", "city": "Rome"}
    assert written("openai_responses", search) == (
        [
            {
                "type": "web_search",
                "filters": {"allowed_domains": ["a.example"]},
                "user_location": place,
            }
        ],
        [],
    )
    assert written("anthropic", search)[0] == [
        {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.example"], "user_location": place}
    ]  # fmt: skip
    assert written("google", search) == (
        [{"googleSearch": {}}],
        ["option tools.web_search.allowed_domains", "option tools.web_search.user_location"],
    )
    files = ServerTool("file_search", {"stores": ["s"], "max_results": 3, "x": 1})
    assert written("openai_responses", files)[0] == [
        {"type": "file_search", "vector_store_ids": ["s"], "max_num_results": 3, "x": 1}
    ]
    assert written("google", files)[0] == [
        {"fileSearch": {"fileSearchStoreNames": ["s"], "topK": 3, "x": 1}}
    ]


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-sonnet-4-5", "code_execution_20260120"),
        ("claude-opus-4-8", "code_execution_20260521"),
    ],
)
def test_a_model_is_asked_for_its_newest_version(model: str, version: str) -> None:
    request = ModelRequest(model, ASKED, (ServerTool("code_execution"),))
    body = anthropic.dump_request(request, quirks=quirks_of("anthropic", model))
    assert body["tools"] == [{"type": version, "name": "code_execution"}]


def test_an_mcp_server_never_gets_more_than_it_was_allowed() -> None:
    some = ServerTool("mcp", {**MCP, "allowed_tools": ["a"]})
    asks = ServerTool("mcp", {**MCP, "approval": "always"})
    assert written("google", some) == (None, ["tool mcp"])
    assert written("google_interactions", some)[0] == [
        {"type": "mcp_server", **MCP, "allowed_tools": [{"tools": ["a"]}]}
    ]
    for wire in ("google", "google_interactions", "anthropic"):
        assert written(wire, asks) == (None, ["tool mcp"])
    assert written("openai_responses", asks)[0][0]["require_approval"] == "always"
    # Without a word of it OpenAI asks before each call.
    client: dict[str, Any] = {"type": "mcp", "server_label": "docs", "server_url": MCP["url"]}
    for to, moved in (("anthropic", False), ("google", False)):
        for approval, goes in (({}, moved), ({"require_approval": "never"}, True)):
            body = {"model": "m", "input": "hi", "tools": [{**client, **approval}]}
            converted = convert(body, to, whole=True)
            assert bool(converted.payload.get("tools")) is goes
            assert any(loss.what is Lost.tool for loss in converted.losses) is not goes
            assert convert(body, "openai_responses", whole=True).payload == body


def test_anthropics_mcp_servers_are_one_tool() -> None:
    toolset = {
        "type": "mcp_toolset",
        "mcp_server_name": "docs",
        "default_config": {"enabled": False},
        "configs": {"a": {"enabled": True}},
    }
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "mcp_servers": [{"type": "url", **MCP, "authorization_token": "t"}],
        "tools": [toolset],
    }
    converted = convert(body, "openai_responses", whole=True)
    assert converted.payload["tools"] == [
        {
            "type": "mcp",
            "server_label": "docs",
            "server_url": MCP["url"],
            "authorization": "t",
            "allowed_tools": ["a"],
            "require_approval": "never",
        }
    ]
    back = convert(converted.payload, "anthropic", whole=True).payload
    assert {name: back[name] for name in ("tools", "mcp_servers")} == {
        name: body[name] for name in ("tools", "mcp_servers")
    }
    # What is more than that stays as it came, and is another's.
    odd = {**body, "mcp_servers": [{"type": "url", **MCP, "x": 1}]}
    assert convert(odd, "anthropic", whole=True).payload == odd
    lost = {loss.which for loss in convert(odd, "openai_responses", whole=True).losses}
    assert {"mcp_servers", "mcp_toolset"} <= lost
    headers = anthropic.dump_http(anthropic.load_request(body)).headers
    assert "mcp-client" in headers["anthropic-beta"]


@pytest.mark.parametrize("to", [name for name in wires.names("model") if name != "anthropic"])
def test_memory_is_a_function_elsewhere(to: str) -> None:
    request = ModelRequest("m", ASKED, (ServerTool("memory"), ToolSpec("f")))
    losses: list[Loss] = []
    body = wires.get(to).dump_request(request, losses=losses)
    tools = wires.get(to).load_request(body, path="/models/m:generateContent").tools
    assert [(type(tool), tool.name) for tool in tools] == [(ToolSpec, "memory"), (ToolSpec, "f")]
    assert not losses
    own = request.replace(tools=(ServerTool("memory"), ToolSpec("memory", "Mine.")))
    body = wires.get(to).dump_request(own)
    [tool] = wires.get(to).load_request(body, path="/models/m:generateContent").tools
    assert isinstance(tool, ToolSpec) and tool.description == "Mine."


def test_what_stays_with_its_provider_is_named_and_its_calls_are_readable() -> None:
    source = wires.get("openai_responses")
    body = {
        "model": "m",
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "file_search_call", "id": "fs_1", "queries": ["x"], "results": [], "status": "completed"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Found."}]},
            {"role": "user", "content": "go on"},
        ],
        "tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}],
        "tool_choice": "required",
    }  # fmt: skip
    request = source.load_request(body)
    assert any(isinstance(piece, ToolCallPart) for m in request.messages for piece in m.content)
    converted = convert(body, "google", whole=True)
    assert "tools" not in converted.payload and "toolConfig" not in converted.payload
    named = {(loss.what, loss.which) for loss in converted.losses}
    assert {(Lost.tool, "file_search"), (Lost.setting, "tool_choice")} <= named
    assert "Found." in str(converted.payload["contents"])


@pytest.mark.parametrize("choice", ["web_search", "googleSearch"])
def test_the_choice_of_anothers_tool_is_named(choice: str) -> None:
    body: dict[str, Any] = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"googleSearch": {}}],
    }
    request = wires.get("google").load_request(body, path="/models/m:generateContent")
    request = request.replace(settings=Settings(tool_choice=choice))
    losses: list[Loss] = []
    written = wires.get("openai_responses").dump_request(request, losses=losses)
    assert written["tools"] == [{"type": "web_search"}] and "tool_choice" not in written
    assert [loss.which for loss in losses] == ["tool_choice"]


def test_results_of_the_callers_own_are_no_matter_of_tools() -> None:
    said = (
        *ASKED,
        Message.model(ToolCallPart("a", "f")),
        Message.user(ToolResultPart("a", "f", 1)),
    )
    request = ModelRequest("m", said, (ServerTool("web_search"),))
    for wire in wires.names("model"):
        assert wires.get(wire).dump_request(request)


BARE: dict[str, dict[str, Any]] = {
    "openai_responses": {"model": "m", "input": "hi"},
    "google_interactions": {"model": "m", "input": "hi"},
    "google": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "anthropic": {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "mcp_servers": [{"type": "url", **MCP}],
    },
}
"""Wire → a body without tools."""
_SEARCH: dict[str, Any] = {"type": "web_search"}
_HOSTED: dict[str, Any] = {
    "type": "mcp", "server_label": "docs", "server_url": MCP["url"], "require_approval": "never"
}  # fmt: skip
_SERVED: dict[str, Any] = {"type": "mcp_server", **MCP}
_SET: dict[str, Any] = {"type": "mcp_toolset", "mcp_server_name": "docs"}
RESTRICTED: list[tuple[str, dict[str, Any]]] = [
    *[
        ("openai_responses", {**_HOSTED, "allowed_tools": allowed})
        for allowed in (5, [5, {}], {"tool_names": ["a"]}, {"read_only": True})
    ],
    *[
        ("google_interactions", {**_SERVED, "allowed_tools": allowed})
        for allowed in (5, [{"tools": ["a"], "mode": "auto"}], [{"tools": ["a"]}, {"tools": ["b"]}])
    ],
    ("anthropic", {**_SET, "default_config": {"enabled": False}}),
    ("anthropic", {**_SET, "configs": {"a": {"enabled": False}}}),
    ("anthropic", {**_SET, "default_config": {"enabled": False, "defer_loading": True}}),
    ("anthropic", {**_SET, "allowed_tools": 5}),
]
"""MCP servers, each with a bound that other APIs cannot be told."""
ODD: list[tuple[str, dict[str, Any]]] = [
    *RESTRICTED,
    ("openai_responses", {**_HOSTED, "allowed_tools": None}),
    ("openai_responses", {**_HOSTED, "allowed_tools": []}),
    ("openai_responses", {**_SEARCH, "user_location": {"city": "Rome"}}),
    ("openai_responses", {**_SEARCH, "user_location": None, "filters": None}),
    ("openai_responses", {**_SEARCH, "filters": {"allowed_domains": [], "x": 1}}),
    ("openai_responses", {**_SEARCH, "filters": 5, "allowed_domains": ["a"]}),
    ("google", {"mcpServers": {"name": "docs"}}),
    ("google", {"mcpServers": [5, {"name": "docs"}]}),
    ("google", {"mcpServers": [{"name": "docs", "streamableHttpTransport": 5}]}),
    ("google", {"fileSearch": {"fileSearchStoreNames": 5}}),
    ("anthropic", {**_SET, "name": "x"}),
    ("anthropic", {**_SET, "mcp_server_name": {}}),
]
"""Tools whose fields are not as an API's types have them, or say nothing."""


@pytest.mark.parametrize(("wire", "tool"), ODD)
def test_a_tool_goes_back_to_its_own_api_to_the_letter(wire: str, tool: dict[str, Any]) -> None:
    body = {**BARE[wire], "tools": [tool]}
    request = wires.get(wire).load_request(body, path="/models/m:generateContent")
    assert wires.get(wire).dump_request(request) == body
    for other in wires.names("model"):
        assert convert(body, other, format=wire, whole=True).payload


@pytest.mark.parametrize(("wire", "tool"), RESTRICTED)
def test_a_bound_that_another_api_cannot_be_told_keeps_the_server_away(
    wire: str, tool: dict[str, Any]
) -> None:
    body = {**BARE[wire], "tools": [tool]}
    for other in wires.names("model"):
        if other == wire:
            continue
        converted = convert(body, other, format=wire, whole=True)
        assert not {"tools", "toolConfig", "mcp_servers"} & converted.payload.keys()
        assert any(loss.what is Lost.tool for loss in converted.losses)


@pytest.mark.parametrize(
    "given", [[], [{"type": "url", "name": "own", "url": "https://y.example"}]]
)
def test_a_model_that_remembers_its_tools_names_the_servers_each_time(given: list[Any]) -> None:
    target = Origin("anthropic", model="m")
    options: dict[str, Any] = {"mcp_servers": given} if given else {}
    request = ModelRequest("m", ASKED, (ServerTool("mcp", MCP),), options=options)
    plain = anthropic.dump_request(request, target=target)
    assert plain["mcp_servers"] == [*given, {"type": "url", **MCP}]
    history = History()
    for _ in range(2):
        turn = DumpedRequest(history, request.messages, target, "anthropic")
        body = anthropic.dump_http(request, target=target, history=turn).body
        assert json_bytes.decode(json_bytes.encode(body)) == plain


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("us.amazon.nova-2-lite-v1:0", [{"systemTool": {"name": "nova_grounding"}}]),
        ("us.anthropic.claude-sonnet-4-6", None),
    ],
)
def test_amazon_runs_tools_for_its_own_models_alone(model: str, sent: Any) -> None:
    bedrock = wires.get("bedrock_converse")
    search = ServerTool("web_search", {"max_uses": 2})
    losses: list[Loss] = []
    body = bedrock.dump_request(ModelRequest(model, ASKED, (search,)), losses=losses)
    assert body.get("toolConfig", {}).get("tools") == sent
    lost = "option tools.web_search.max_uses" if sent else "tool web_search"
    assert [f"{loss.what} {loss.which}" for loss in losses] == [lost]
    own = {**body, "toolConfig": {"tools": [{"systemTool": {"name": "nova_code_interpreter"}}]}}
    request = bedrock.load_request(own, path=f"/model/{model}/converse")
    assert [tool.name for tool in request.tools] == ["code_execution"]
    assert bedrock.dump_request(request) == own
    converted = convert(own, "google", format="bedrock_converse", whole=True)
    assert converted.payload["tools"] == [{"codeExecution": {}}]


def test_many_unknown_options_are_named_up_to_a_bound() -> None:
    tool = {"type": "web_search", **{f"x{number}": 1 for number in range(5000)}}
    body = {**BARE["openai_responses"], "tools": [tool]}
    losses = convert(body, "google", format="openai_responses", whole=True).losses
    assert 100 <= len(losses) < 150


def test_a_provider_is_sent_its_own_words_to_the_letter() -> None:
    for wire, tool, sent in (
        ("openai_responses", ServerTool("code_interpreter", {"container": {"type": "auto"}}), {"type": "code_interpreter", "container": {"type": "auto"}}),
        ("openai_responses", ServerTool("web_search", {"filters": {"allowed_domains": ["a"]}}), {"type": "web_search", "filters": {"allowed_domains": ["a"]}}),
        ("openai_responses", ServerTool("mcp", {"server_label": "d", "server_url": "u"}), {"type": "mcp", "server_label": "d", "server_url": "u"}),
        ("openai_responses", ServerTool("computer_use_preview", {"display_width": 1}), {"type": "computer_use_preview", "display_width": 1}),
        ("anthropic", ServerTool("web_search_20250305", {"max_uses": 2}), {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}),
        ("anthropic", ServerTool("mcp_toolset", {"mcp_server_name": "d"}), {"type": "mcp_toolset", "mcp_server_name": "d"}),
        ("google", ServerTool("googleSearch", {"timeRangeFilter": {}}), {"googleSearch": {"timeRangeFilter": {}}}),
        ("google_interactions", ServerTool("mcp_server", {"name": "d"}), {"type": "mcp_server", "name": "d"}),
        ("openai_chat", ServerTool("web_search", {"allowed_domains": ["a"]}), {"type": "web_search", "allowed_domains": ["a"]}),
    ):  # fmt: skip
        assert written(wire, tool) == ([sent], [])


def test_a_tool_of_the_provider_in_a_group_has_its_common_name() -> None:
    inner = [{"type": "code_interpreter", "container": {"type": "auto"}}]
    body = {
        **BARE["openai_responses"],
        "tools": [{"type": "namespace", "name": "g", "tools": inner}],
    }
    responses = wires.get("openai_responses")
    groups = get_serving(responses).request_fields.groups
    assert groups is not None
    request = groups.ungroup(responses.load_request(body))
    assert [tool.name for tool in request.tools] == ["code_execution"]
    losses: list[Loss] = []
    written_there = wires.get("google").dump_request(request, losses=losses)
    assert written_there["tools"] == [{"codeExecution": {}}] and not losses
    assert responses.dump_request(request)["tools"] == inner
