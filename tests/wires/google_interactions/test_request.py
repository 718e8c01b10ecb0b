"""The Interactions wire: bodies of requests, settings, tools and schemas, there and back, and as a
model's provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Agent, providers, testing, wires
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.loss import Loss, Lost
from dragoman.message import Message, ToolCallPart
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import google_interactions as wire

SAID = [{"type": "user_input", "content": [{"type": "text", "text": "Hi."}]}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TYPED = {"type": "text", "mime_type": "application/json", "schema": SCHEMA}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stream": True},
        {"stream": None},
        {"stream": False, "store": False, "background": True, "labels": {"a": "b"}},
        {"previous_interaction_id": "v1_a", "service_tier": "flex", "response_modalities": ["text"]},
        {"generation_config": {}},
        {"generation_config": None},
        {"generation_config": "hot"},
        {"generation_config": {"temperature": 0.5, "top_p": 1, "seed": 3, "max_output_tokens": 9, "stop_sequences": ["a"]}},
        {"generation_config": {"temperature": "hot", "seed": True, "stop_sequences": None, "tool_choice": "odd", "new": 1}},
        {"generation_config": {"tool_choice": "any"}},
        {"generation_config": {"tool_choice": "validated"}},
        {"generation_config": {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["f"]}}}},
        {"generation_config": {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["f", "g"]}}}},
        {"generation_config": {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["none"]}}}},
        {"generation_config": {"thinking_level": "high"}},
        {"generation_config": {"thinking_level": "high", "thinking_summaries": "auto"}},
        {"generation_config": {"thinking_level": "low", "thinking_summaries": "none"}},
        {"generation_config": {"thinking_level": "odd", "thinking_summaries": "auto"}},
        {"response_format": TYPED},
        {"response_format": [TYPED]},
        {"response_format": {"type": "text", "schema": SCHEMA, "x": 1}},
        {"response_format": [TYPED, {"type": "image"}]},
        {"response_format": SCHEMA, "response_mime_type": "application/json"},
        {"tools": []},
        {"tools": [{"type": "function", "name": "f"}, {"type": "google_search", "search_types": ["web_search"]}]},
        {"tools": [{"type": "function", "name": "f", "description": "", "parameters": {}, "short_description": "s"}]},
        {"tools": [{"new": 1}, {"type": "mcp_server", "name": "s", "url": "https://a.test"}]},
        {"system_instruction": "Be brief.", "agent": "deep-research"},
        {"system_instruction": ""},
    ],
)  # fmt: skip
def test_a_body_comes_back_as_it_was(fields: dict[str, Any]):
    losses: list[Loss] = []
    body = {"model": "m", "input": SAID, **fields}
    assert wire.dump_request(wire.load_request(body), losses=losses) == body
    assert not losses


def test_a_body_may_go_on_without_an_input():
    body = {"model": "m", "previous_interaction_id": "v1_a", "stream": False}
    assert wire.dump_request(wire.load_request(body)) == body
    assert wire.dump_http(wire.load_request({**body, "input": []})).body == {**body, "input": []}
    with pytest.raises(HistoryError, match="input"):
        wire.load_request({"model": "m"})
    with pytest.raises(InvalidRequestError, match="no input"):
        wire.dump_http(ModelRequest("m", ()))
    for tools in ([5], [{"type": "function"}]):
        with pytest.raises(HistoryError, match="must"):
            wire.load_request({"model": "m", "input": "Hi.", "tools": tools})


@pytest.mark.parametrize(
    ("settings", "config", "lost"),
    [
        (Settings(reasoning="medium"), {"thinking_level": "medium", "thinking_summaries": "auto"}, []),
        (Settings(reasoning="off"), {"thinking_level": "minimal", "thinking_summaries": "auto"}, ["reasoning"]),
        (Settings(reasoning="max"), {"thinking_level": "high", "thinking_summaries": "auto"}, ["reasoning"]),
        (Settings(reasoning=4096), {"thinking_level": "medium", "thinking_summaries": "auto"}, ["reasoning"]),
        (Settings(tool_choice="required"), {"tool_choice": "any"}, []),
        (Settings(tool_choice="f"), {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["f"]}}}, []),
        (Settings(top_k=5, parallel_tool_calls=True), None, ["top_k", "parallel_tool_calls"]),
        (Settings(presence_penalty=1.0, max_tokens=5), {"max_output_tokens": 5}, ["presence_penalty"]),
        (Settings(cache="short"), None, []),
    ],
)  # fmt: skip
def test_settings_are_written_or_told(settings: Settings, config: Any, lost: list[str]):
    losses: list[Loss] = []
    body = wire.dump_request(ModelRequest("m", (Message.user("?"),), (), settings), losses=losses)
    assert body.get("generation_config") == config
    assert [(loss.what, loss.which) for loss in losses] == [(Lost.setting, name) for name in lost]


def test_tools_go_by_the_apis_names():
    tools = (ToolSpec("f", "Does.", {}), ServerTool("web_search"), ServerTool("code_execution"))
    request = ModelRequest("m", (Message.user("?"),), tools, output_schema=SCHEMA)
    body = wire.dump_request(request)
    assert [tool["type"] for tool in body["tools"]] == [
        "function",
        "google_search",
        "code_execution",
    ]
    assert body["tools"][0]["parameters"] == {"type": "object", "properties": {}}
    assert body["response_format"]["schema"] == SCHEMA
    assert wire.load_request(body).output_schema == SCHEMA


def test_the_provider_answers_an_agent_whole_streamed_and_with_tools():
    record = providers.get("google-interactions")
    assert record is providers.get("gemini-interactions")
    replies = iter([Message.model(ToolCallPart("c", "double", {"n": 4})), Message.model("Eight.")])
    server = testing.ScriptedServer(
        wires.get(record.wire), lambda _: next(replies), base_url=str(record.base_url)
    )

    def double(n: int) -> int:
        """Doubles a number."""
        return 2 * n

    agent = Agent(
        "google-interactions:gemini-3.5-flash", tools=[double], transport=server, api_key="k"
    )
    result = agent.send_sync("Twice four?")
    assert result.output == "Eight."
    first, second = [
        json.loads(sent.body) if isinstance(sent.body, bytes) else sent.body for sent in server.sent
    ]
    assert first["model"] == "gemini-3.5-flash" and first["input"][0]["type"] == "user_input"
    kinds = [step["type"] for step in second["input"]]
    assert kinds == ["user_input", "function_call", "function_result"]
    assert second["input"][2]["result"] == "8"
    assert {sent.path for sent in server.sent} == {f"{record.base_url}/interactions"}
    assert result.messages[-1].origin.provider == "google-interactions"
