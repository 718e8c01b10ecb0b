"""Requests of the Converse wire, both ways, held against the types of AWS's SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.loss import Loss, Lost
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.model_profile import ModelProfile
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import bedrock_converse as wire
from support.rules import problems

HERE = Origin("bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com", "m")
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "amazon.nova-pro-v1:0"
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PNG = "iVBORw0KGgo="
HI = (Message.user("Hi."),)
FULL: dict[str, Any] = {
    "system": [{"text": "Be brief."}, {"guardContent": {"text": {"text": "x"}}}, {"cachePoint": {"type": "default"}}],
    "messages": [
        {"role": "user", "content": [
            {"text": "See"},
            {"image": {"format": "png", "source": {"bytes": PNG}}},
            {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a"}}}},
            {"document": {"format": "pdf", "name": "a report", "source": {"bytes": PNG}, "citations": {"enabled": True}}},
            {"document": {"format": "txt", "name": "odd_name.txt", "source": {"bytes": PNG}}},
            {"document": {"name": "n", "source": {"text": "so"}}},
            {"video": {"format": "mp4", "source": {"bytes": PNG}}},
            {"audio": {"format": "mp3", "source": {"bytes": PNG}}},
            {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}},
        ]},
        {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sign"}}},
            {"reasoningContent": {"redactedContent": "eA=="}},
            {"text": "I look."},
            {"toolUse": {"toolUseId": "t:1", "name": "look", "input": {"at": "home"}}},
            {"toolUse": {"toolUseId": "t.2", "name": "look", "input": {}}},
            {"toolUse": {"toolUseId": "t_3", "name": "look", "input": {}}},
        ]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "t:1", "content": [{"text": "a cat"}], "status": "success"}},
            {"toolResult": {"toolUseId": "t.2", "content": [{"json": {"x": 1}}], "status": "error"}},
            {"toolResult": {"toolUseId": "t_3", "content": [{"json": {"x": 1}}, {"searchResult": {"source": "s", "title": "t", "content": []}}]}},
        ]},
        {"role": "system", "content": [{"toolRemoval": {"tool": {"name": "look"}}}]},
        {"role": "assistant", "content": [{"citationsContent": {"content": [{"text": "A "}, {"text": "cat."}], "citations": [{"title": "t", "source": "d"}]}}]},
        {"role": "user", "content": [{"text": "So?"}, {"cachePoint": {"type": "default", "ttl": "1h"}}]},
    ],
    "toolConfig": {
        "tools": [
            {"toolSpec": {"name": "look", "description": "Looks.", "inputSchema": {"json": WEATHER}, "strict": True}},
            {"cachePoint": {"type": "default"}},
            {"systemTool": {"name": "nova_grounding"}},
        ],
        "toolChoice": {"tool": {"name": "look"}},
    },
    "inferenceConfig": {"maxTokens": 5000, "temperature": 0.5, "topP": 0.9, "stopSequences": ["."]},
    "additionalModelRequestFields": {"top_k": 5, "thinking": {"type": "enabled", "budget_tokens": 2000}, "x": 1},
    "outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": json.dumps(WEATHER), "name": "w", "description": "d"}}}},
    "guardrailConfig": {"guardrailIdentifier": "g1", "guardrailVersion": "1"},
    "requestMetadata": {"a": "b"},
    "performanceConfig": {"latency": "optimized"},
    "serviceTier": {"type": "flex"},
    "additionalModelResponseFieldPaths": ["/stop_sequence"],
}  # fmt: skip


def written(
    request: ModelRequest, target: Origin | None = HERE
) -> tuple[dict[str, Any], list[Loss]]:
    losses: list[Loss] = []
    body = json.loads(json.dumps(wire.dump_request(request, target=target, losses=losses)))
    return body, losses


def valid(request: ModelRequest) -> tuple[dict[str, Any], list[Loss]]:
    body, losses = written(request)
    assert problems("bedrock_converse", body) == []
    return body, losses


def test_a_body_goes_back_as_it_came() -> None:
    request = wire.load_request(FULL, path="/model/a%2Fb%3A0/converse-stream")
    assert (request.model, request.stream) == ("a/b:0", True)
    assert wire.dump_request(request) == FULL
    http = wire.dump_http(request)
    assert http.path == "/model/a%2Fb:0/converse-stream"
    assert request.settings == Settings(
        max_tokens=5000, temperature=0.5, top_p=0.9, top_k=5, stop=(".",), tool_choice="look", reasoning=2000
    )  # fmt: skip
    assert request.output_schema == WEATHER
    spec, server = request.tools
    assert isinstance(spec, ToolSpec) and spec.native is not None
    assert spec.native["bedrock_converse"] == {"strict": True, "cachePoint": {"type": "default"}}
    assert isinstance(server, ServerTool) and (server.name, server.options) == ("web_search", {})
    assert {*request.options} == {
        "guardrailConfig", "requestMetadata", "performanceConfig", "serviceTier",
        "additionalModelResponseFieldPaths", "additionalModelRequestFields",
    }  # fmt: skip
    kinds = [type(piece) for piece in request.messages[1].content]
    assert kinds == [TextPart, DataPart, ProviderPart, DataPart, DataPart, ProviderPart, DataPart, DataPart, ProviderPart]  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"system": []},
        {"inferenceConfig": {}},
        {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}},
        {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}, "outputConfig": {"effort": "high"}},
        {"additionalModelRequestFields": {"thinking": {"type": "adaptive", "display": "summarized"}}},
        {"outputConfig": {"effort": "xhigh"}},
        {"outputConfig": {"effort": "odd"}},
        {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{"}}}}},
        {"toolConfig": {"tools": [], "toolChoice": {"auto": {}}}},
        {"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}], "toolChoice": {"any": {}}}},
        {"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}], "toolChoice": {"odd": {"x": 1}}}},
        {"inferenceConfig": {"maxTokens": "many", "temperature": True, "x": 1}},
        {"messages": [{"role": "assistant", "content": []}, {"role": "assistant", "content": [{"text": ""}]}]},
        {"messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": []}}, {"toolResult": {"toolUseId": "t"}}]}]},
        {"messages": [{"role": "user", "content": [{"odd": 1}, {}, {"text": "a", "x": 1}]}]},
    ],
)  # fmt: skip
def test_odd_forms_go_back_as_they_came(fields: dict[str, Any]) -> None:
    body = {"messages": [{"role": "user", "content": [{"text": "Hi."}]}], **fields}
    assert wire.dump_request(wire.load_request(body)) == body


def test_a_request_is_what_the_sdk_takes() -> None:
    talk = (
        Message.system("Be brief."),
        Message.user("Look.", DataPart(b"%PDF", "application/pdf", "my_report.v2.pdf")),
        Message.model("I look.", ToolCallPart("c 1", "look at", {"at": "home"})).replace(
            origin=HERE
        ),
        Message.user(ToolResultPart("c 1", "look at", {"x": 1})),
        Message.user("And again?", DataPart(b"%PDF", "application/pdf", "my_report.v2.pdf")),
    )
    request = ModelRequest(
        CLAUDE, talk, (ToolSpec("look at", "Looks.", WEATHER),),
        Settings(max_tokens=9000, reasoning=2000, cache="long", stop=("x",)), WEATHER, stream=True,
    )  # fmt: skip
    body, losses = valid(request)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["additionalModelRequestFields"] == {
        "thinking": {"type": "enabled", "budget_tokens": 2000}
    }
    mark = {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert (
        body["toolConfig"]["tools"][-1]
        == body["system"][-1]
        == body["messages"][-1]["content"][-1]
        == mark
    )
    assert {loss.what for loss in losses} == {Lost.file_name}
    assert json.loads(body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"])[
        "required"
    ] == ["city"]
    http = wire.dump_http(request, target=HERE)
    assert http.path == f"/model/{CLAUDE}/converse-stream"
    assert http.names == {body["toolConfig"]["tools"][0]["toolSpec"]["name"]: "look at"}
    count = wire.dump_count(http, None)
    assert count.path.endswith("/count-tokens")
    assert isinstance(count.body, dict)
    assert {*count.body["input"]["converse"]} == {
        "messages",
        "system",
        "toolConfig",
        "additionalModelRequestFields",
    }
    counted = wire.load_request(count.body, path=count.path)
    assert (counted.model, counted.stream, len(counted.messages)) == (CLAUDE, False, 4)


def test_the_sides_take_turns() -> None:
    talk = (
        Message.model("Hello."),
        Message.model("Again."),
        Message.user("a"),
        Message.user("b"),
        Message.user(" "),
    )
    body, losses = valid(ModelRequest(NOVA, talk))
    assert body["messages"] == [
        {"role": "user", "content": [{"text": "."}]},
        {"role": "assistant", "content": [{"text": "Hello."}, {"text": "Again."}]},
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
    ]
    assert [(loss.message, loss.what) for loss in losses] == [
        (4, Lost.text), (4, Lost.message), (0, Lost.beginning),
    ]  # fmt: skip


def test_calls_without_tools_are_declared() -> None:
    talk = (
        Message.user("?"),
        Message.model(ToolCallPart("c", "look", {})),
        Message.user(ToolResultPart("c", "look", "")),
    )
    body, losses = written(ModelRequest(NOVA, talk))
    assert [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]] == ["look"]
    assert losses == []


def test_a_document_stands_beside_a_text() -> None:
    body, losses = valid(ModelRequest(NOVA, (Message.user(DataPart(b"%PDF", "application/pdf")),)))
    assert body["messages"][0]["content"][1] == {"text": "."}
    assert [loss.what for loss in losses] == [Lost.beginning]


def test_what_cannot_be_sent_is_named() -> None:
    talk = (
        Message.user(
            LinkPart("https://a.test/x.png"), FilePart("file-1", "image/png"), DataPart(b"x", "image/tiff"),
            DataPart(b"so", "text/x-python", "a.py"), DataPart(b"\0", "image/png", "a.png"),
        ),
        Message.model(ThinkingPart("Hm."), DataPart(b"\0", "image/png"), ToolCallPart("c", "f", raw="{", state="cut")).replace(origin=HERE),
        Message.user(ToolResultPart("c", "f", (DataPart(b"\0", "audio/wav"), TextPart("a")))),
        Message.system("Now."),
        Message.user("?"),
    )  # fmt: skip
    body, losses = valid(ModelRequest(NOVA, talk, (ToolSpec("f"),)))
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [
        (0, 0, Lost.link), (0, 1, Lost.file), (0, 2, Lost.data), (0, 4, Lost.file_name),
        (1, 0, Lost.thinking), (1, 1, Lost.data), (1, 2, Lost.arguments),
        (2, 0, Lost.data), (3, None, Lost.system_message),
    ]  # fmt: skip
    assert body["messages"][2]["content"][1]["text"] == "<system>\nNow.\n</system>"


@pytest.mark.parametrize(
    ("model", "settings", "lost"),
    [
        (CLAUDE, {"seed": 1, "presence_penalty": 1.0, "frequency_penalty": 1.0}, {"seed", "presence_penalty", "frequency_penalty"}),
        (CLAUDE, {"top_k": 4}, set()),
        (NOVA, {"top_k": 4, "seed": 1}, {"top_k", "seed"}),
        (CLAUDE, {"parallel_tool_calls": False}, {"parallel_tool_calls"}),
        (NOVA, {"parallel_tool_calls": False}, {"parallel_tool_calls"}),
        (CLAUDE, {"reasoning": 2000, "temperature": 0.5, "max_tokens": 5000}, {"temperature"}),
        (CLAUDE, {"reasoning": 9000, "max_tokens": 5000}, {"reasoning"}),
        (NOVA, {"reasoning": "off"}, {"reasoning"}),
        (NOVA, {"reasoning": "minimal"}, {"reasoning"}),
        (NOVA, {"reasoning": "high"}, set()),
        (NOVA, {"reasoning": 2000}, {"reasoning"}),
    ],
)  # fmt: skip
def test_settings_that_are_not_there_are_told(
    model: str, settings: dict[str, Any], lost: set[str]
) -> None:
    _, losses = valid(ModelRequest(model, HI, settings=Settings(**settings)))
    assert {loss.which for loss in losses} == lost
    assert {loss.what for loss in losses} <= {Lost.setting}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("auto", {"auto": {}}), ("required", {"any": {}}), ("look", {"tool": {"name": "look"}}), ("none", None)],
)  # fmt: skip
def test_the_choice_of_a_tool(choice: str, sent: Any) -> None:
    body, losses = valid(ModelRequest(NOVA, HI, (ToolSpec("look"),), Settings(tool_choice=choice)))
    assert body["toolConfig"].get("toolChoice") == sent
    assert len(losses) == (choice == "none")


def test_a_profile_says_how_claude_thinks() -> None:
    request = ModelRequest(CLAUDE, HI, settings=Settings(reasoning="high"))
    quirks = wire.Quirks(profile=ModelProfile(ways=("adaptive",), efforts=("low", "high")))
    body = wire.dump_request(request, target=HERE, quirks=quirks)
    assert body["additionalModelRequestFields"] == {"thinking": {"type": "adaptive"}}
    assert body["outputConfig"] == {"effort": "high"}
    plain = wire.dump_request(request, target=HERE)
    assert plain["additionalModelRequestFields"]["thinking"]["type"] == "enabled"
    assert plain["inferenceConfig"]["maxTokens"] > plain["additionalModelRequestFields"]["thinking"]["budget_tokens"]  # fmt: skip


def test_options_stand_beside_settings() -> None:
    options = {"inferenceConfig": {"x": 1}, "serviceTier": {"type": "flex"}}
    request = ModelRequest(NOVA, HI, settings=Settings(max_tokens=5), options=options)
    body, _ = written(request)
    assert body["inferenceConfig"] == {"maxTokens": 5, "x": 1}
    assert body["serviceTier"] == {"type": "flex"}


def test_thinking_goes_back_to_its_own_provider_alone() -> None:
    thought = ThinkingPart("Hm.", {"bedrock_converse": {"signature": "seal"}})
    said = Message.model(thought, "So.").replace(origin=HERE)
    body, losses = valid(ModelRequest(CLAUDE, (*HI, said, Message.user("?"))))
    assert "seal" in json.dumps(body) and losses == []
    other = said.replace(origin=Origin("other"))
    body, losses = valid(ModelRequest(CLAUDE, (*HI, other, Message.user("?"))))
    assert "seal" not in json.dumps(body)
    assert [loss.what for loss in losses] == [Lost.thinking]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": [5]}, None),
        ({"messages": [{"role": "tool", "content": []}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": "x"}]}, "messages[0].content"),
        ({"messages": [], "system": "x"}, "system"),
        ({"messages": [], "toolConfig": {"tools": [{"odd": {}}]}}, "toolConfig.tools"),
        ({"messages": [], "toolConfig": {"tools": [{"toolSpec": {}}]}}, "toolConfig.tools"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(body: dict[str, Any], field: str | None) -> None:
    with pytest.raises(HistoryError) as raised:
        wire.load_request(body)
    if field is not None:
        assert raised.value.field == field


def test_a_request_says_something() -> None:
    with pytest.raises(InvalidRequestError, match="there is no message"):
        wire.dump_http(ModelRequest("m"))


NAMES = st.text(st.sampled_from("ab_. -(%ü"), max_size=8) | st.text("a", min_size=199, max_size=205)


@given(st.lists(st.tuples(NAMES, st.booleans()), min_size=1, max_size=4))
def test_documents_have_names_that_the_api_takes(names: list[tuple[str, bool]]) -> None:
    """None comes twice, and each that is not its own is told."""
    parts = [
        Message.user("x", DataPart(b"%PDF", "application/pdf", name or None)) for name, _ in names
    ]
    body, losses = valid(ModelRequest(NOVA, tuple(parts)))
    blocks = [block for message in body["messages"] for block in message["content"]]
    documents = [block["document"]["name"] for block in blocks if "document" in block]
    kept = sum(name in ("", sent) for sent, (name, _) in zip(documents, names, strict=True))
    assert kept + len(losses) == len(names)
    assert {loss.what for loss in losses} <= {Lost.file_name}
