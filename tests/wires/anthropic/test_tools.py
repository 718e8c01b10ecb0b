"""The anthropic wire: tools, the choice of one, calls and results (D-92, D-114, decision 22)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from dragoman.message import (
    DataPart,
    LinkPart,
    Message,
    ProviderPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ServerTool, Settings, ToolSpec
from dragoman.wires import anthropic as wire
from support.anthropic import (
    dump,
    dump_request,
    load_request,
    losses,
    payload_of,
    read_back,
    there_and_back,
)


def result(id_, value="ok", **more):
    return ToolResultPart(id_, "f", value, **more)


PNG = base64.b64encode(b"\x89PNG").decode()


CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"content": "text"}, "text"),
        ({"content": ""}, ""),
        ({}, None),
        ({"content": None}, None),
        ({"content": []}, []),
        ({"content": [{"type": "text", "text": "x"}]}, (TextPart("x"),)),
        ({"content": [{"type": "text", "text": "x", "citations": None}], "is_error": False}, None),
        ({"content": "x", "is_error": True, "cache_control": {"type": "ephemeral"}}, "x"),
        (
            {"content": [{"type": "tool_reference", "tool_name": "g"}]},
            [{"type": "tool_reference", "tool_name": "g"}],
        ),
        ({"content": [{"type": "text", "text": ""}]}, [{"type": "text", "text": ""}]),
        (
            {
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                    }
                ]
            },
            (DataPart(b"\x89PNG", "image/png"),),
        ),
    ],
)
def test_results_of_every_spelling_survive(fields, value):
    entry = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", **fields}]}
    (result,) = there_and_back(CALL, entry)[1].content
    assert (result.id, result.name, result.is_error) == ("a", "f", fields.get("is_error", False))
    if value is not None:
        assert result.result == value


def test_nothing_is_noted_of_what_is_spelled_as_usual():
    entry = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}],
    }
    for message in there_and_back(
        {"role": "user", "content": "x"}, CALL, entry, {"role": "user", "content": "y"}, system="s"
    ):
        assert message.native is None
        assert all(piece.native is None for piece in message.content)


def test_an_edited_result_is_written_as_edited():
    entry = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "a", "content": [], "is_error": False}],
    }
    (old,) = there_and_back(CALL, entry)[1].content
    new = ToolResultPart(old.id, old.name, "changed", is_error=True, native=old.native)
    written = dump(*wire.load_messages({"messages": [CALL]}), Message.user(new))[1]["content"]
    assert written == [
        {"type": "tool_result", "tool_use_id": "a", "content": "changed", "is_error": True}
    ]


@pytest.mark.parametrize(
    ("value", "text"), [("s", "s"), ({"a": [1]}, '{"a":[1]}'), (None, "null"), (3, "3"), ([], "[]")]
)
def test_d92_results_are_text_or_json(value, text):
    written = dump(Message.model(ToolCallPart("a", "f")), Message.user(result("a", value)))[1][
        "content"
    ][0]
    assert written == {"type": "tool_result", "tool_use_id": "a", "content": text}


def test_a_result_of_no_known_shape_is_kept_whole():
    entry = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "a", "content": {"x": 1}}],
    }
    assert isinstance(there_and_back(CALL, entry)[1].content[0], ProviderPart)


def test_results_with_media_and_errors():
    parts = (TextPart("x"), DataPart(b"\x89PNG", "image/png"), LinkPart("https://x/a.mp3"))
    talk = [Message.model(ToolCallPart("a", "f")), Message.user(result("a", parts, is_error=True))]
    written = dump(*talk)[1]["content"][0]
    assert [b["type"] for b in written["content"]] == ["text", "image", "text"]
    assert written["is_error"] is True
    assert [loss[:2] for loss in losses(*talk)] == [(1, 0)]


def test_decision_22_what_the_provider_ran_is_its_own_and_survives():
    pieces = read_back(
        "assistant",
        {
            "type": "server_tool_use",
            "id": "s",
            "name": "web_search",
            "input": {"query": "x"},
            "caller": {"type": "direct"},
        },
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s",
            "content": [{"type": "web_search_result", "url": "u"}],
        },
        {"type": "mcp_tool_use", "id": "m", "name": "echo", "server_name": "e", "input": {}},
        {
            "type": "mcp_tool_result",
            "tool_use_id": "m",
            "is_error": True,
            "content": [{"type": "text", "text": "x"}],
        },
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": "x"},
        {"type": "compaction", "content": "c"},
    )
    message = Message.model(*pieces)
    assert [getattr(piece, "run_by", None) for piece in pieces] == ["provider"] * 5 + [None]
    assert (pieces[1].name, pieces[3].name, pieces[3].is_error) == ("web_search", "echo", True)
    assert message.parts == message.tool_calls == message.tool_results == ()


def test_decision_22_what_another_provider_ran_is_not_written():
    foreign = ToolCallPart("ws_1", "web_search", run_by="provider", native={"openai_responses": {}})
    talk = [Message.user("Hi"), Message.model("Yes", foreign, ProviderPart("item", {"google": {}}))]
    assert dump(*talk)[1] == {"role": "assistant", "content": "Yes"}
    assert [loss[:2] for loss in losses(*talk)] == [(1, 1), (1, 2)]


@pytest.mark.parametrize("state", ["cut", "invalid"])
def test_broken_calls_are_sent_without_arguments(state):
    call = ToolCallPart("a", "f", raw='{"x": ', state=state)
    assert dump(Message.user("x"), Message.model(call))[1]["content"][0]["input"] == {}


def test_a_recorded_call_whose_input_is_no_object_survives():
    (piece,) = read_back("assistant", {"type": "tool_use", "id": "a", "name": "f", "input": [1]})
    assert (piece.state, piece.raw, piece.arguments) == ("invalid", "[1]", {})


def test_calls_of_the_user_and_results_of_the_model_are_left_out_and_said():
    talk = [Message.user("x", ToolCallPart("a", "f")), Message.model("y", result("a"))]
    assert dump(*talk) == [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    assert losses(*talk) == [(0, 1, "tool call"), (1, 1, "tool result")]


TOOL = ToolSpec(
    "get_weather", "Weather.", {"type": "object", "properties": {"city": {"type": "string"}}}
)


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
    settings = load_request(
        tool_choice=choice, tools=[{"name": "get_weather", "input_schema": {"type": "object"}}]
    ).settings
    assert (settings.tool_choice, settings.parallel_tool_calls) == (neutral, parallel)


def test_parallel_calls_can_be_forbidden_without_a_choice():
    choice = dump_request(tools=[TOOL], settings=Settings(parallel_tool_calls=False))["tool_choice"]
    assert choice == {"type": "auto", "disable_parallel_tool_use": True}
    assert "tool_choice" not in dump_request(settings=Settings(parallel_tool_calls=False))


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
    (spec,) = load_request(tools=[tool], tool_choice={"type": "auto"}).tools
    assert isinstance(spec, ToolSpec)
    assert (spec.name, spec.description) == (tool["name"], tool.get("description", ""))


@pytest.mark.parametrize(
    ("tool", "name", "options"),
    [
        (
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
            "web_search",
            {"max_uses": 3},
        ),
        (
            {
                "type": "web_search_20250305",
                "name": "web_search",
                "cache_control": {"type": "ephemeral"},
            },
            "web_search",
            {},
        ),
        ({"type": "mcp_toolset", "mcp_server_name": "x"}, "mcp_toolset", {"mcp_server_name": "x"}),
        (
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
            "str_replace_based_edit_tool",
            {},
        ),
    ],
)
def test_tools_of_the_provider_survive(tool, name, options):
    (spec,) = load_request(tools=[tool]).tools
    assert isinstance(spec, ServerTool)
    assert (spec.name, spec.options) == (name, options)


def test_tools_by_hand():
    tools = dump_request(
        tools=[TOOL, ToolSpec("now"), ToolSpec("my tool")], settings=Settings(tool_choice="my tool")
    )
    weather, now, mine = tools["tools"]
    assert weather == {
        "name": "get_weather",
        "description": "Weather.",
        "input_schema": TOOL.input_schema,
    }
    assert now == {"name": "now", "input_schema": {"type": "object", "properties": {}}}
    assert tools["tool_choice"] == {"type": "tool", "name": mine["name"]}
    assert mine["name"] != "my tool"
    load_request(tools=[])
    assert wire.dump_request(load_request().replace(tools=[TOOL]))["tool_choice"] == {
        "type": "auto"
    }


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("web_search", {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}),
        (
            "code_execution",
            {"type": "code_execution_20250825", "name": "code_execution", "max_uses": 2},
        ),
        ("web_fetch_20260209", {"type": "web_fetch_20260209", "name": "web_fetch", "max_uses": 2}),
        ("new_tool", {"type": "new_tool", "name": "new_tool", "max_uses": 2}),
    ],
)
def test_d114_tools_of_the_provider_by_hand(name, written):
    assert dump_request(tools=[ServerTool(name, {"max_uses": 2})])["tools"] == [written]


@pytest.mark.parametrize(
    ("role", "block"),
    [
        ("user", {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}, 1]}),
        (
            "assistant",
            {
                "type": "tool_use",
                "id": "a",
                "name": "f",
                "input": "\ud800",
                "spelling": "x",
                "response": 1,
            },
        ),
    ],
)
def test_decision_27_odd_calls_and_results_come_back_as_they_were(role: str, block: dict[str, Any]):
    payload = payload_of(block, role=role)
    assert wire.dump_messages(wire.load_messages(payload)) == payload
