"""What a request loses on its way to another API: what the other API reads differs from what was
asked in nothing but what a `Loss` names, and nothing is named that arrives as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from history.test_plans_attack import WIRES as MODEL_STRINGS
from history.test_plans_attack import without_placeholders
from hypothesis import given
from hypothesis import strategies as st

from dragoman import formats, wires
from dragoman.codec.json_values import if_object
from dragoman.formats.registry import Format
from dragoman.history import plan
from dragoman.history.plans import write
from dragoman.history.target import find_target
from dragoman.json_bytes import JsonMap
from dragoman.message import (
    Citation,
    DataPart,
    LinkPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.profiles.lower import lower
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from support.facts import unexplained

MODELS = wires.names("model")
NEVER_THINKS = "gpt-4o"
WIRES = {**{name: name for name in MODELS}, **MODEL_STRINGS}
"""Target → its wire: a wire as it is, and each provider's own model."""
TARGETS: dict[str, str | Format] = {
    **{name: formats.get(name) for name in MODELS},
    **{name: name for name in MODEL_STRINGS},
}
CLOSED = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "properties": {"city": {"type": "string"}}}
PNG = b"\x89PNG\r\n\x1a\n0000"
MARK = {"type": "ephemeral"}
INSIDE = ("openai_chat", "mistral", "cohere", "ollama")
"""Wires that have a tool's fields within its `function`."""
OPTIONS: dict[str, dict[str, Any]] = {
    "anthropic": {"metadata": {"user_id": "u"}, "service_tier": "standard_only"},
    "bedrock_converse": {"requestMetadata": {"a": "b"}, "serviceTier": {"type": "flex"}},
    "cohere": {"safety_mode": "STRICT", "raw_prompting": True},
    "google": {"safetySettings": [{"category": "x"}], "generationConfig": {"candidateCount": 2}},
    "google_interactions": {"labels": {"a": "b"}, "service_tier": "flex"},
    "mistral": {"safe_prompt": True, "prompt_mode": "reasoning"},
    "ollama": {"keep_alive": 5, "options": {"num_ctx": 9}},
    "openai_chat": {"logit_bias": {"1": 2}, "verbosity": "low"},
    "openai_responses": {"text": {"verbosity": "low"}, "metadata": {"a": "b"}, "user": "u"},
}
"""Wire → fields of its requests that no other has."""
_PLACE = {"type": "approximate", "city": "Rome", "country": "IT"}
_SERVER: JsonMap = {"server_label": "docs", "server_url": "https://x.example/mcp"}
OWN_TOOLS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["x.example"]},
        {"type": "web_search_20260318", "name": "web_search", "user_location": _PLACE, "blocked_domains": None},
        {"type": "web_fetch_20260318", "name": "web_fetch", "max_content_tokens": 9, "citations": {"enabled": True}},
        {"type": "code_execution_20260521", "name": "code_execution", "cache_control": MARK},
        {"type": "memory_20250818", "name": "memory", "cache_control": MARK},
        {"type": "computer_20251124", "name": "computer", "display_width_px": 9, "display_height_px": 9},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
        {"type": "mcp_toolset", "mcp_server_name": "docs"},
        {"type": "mcp_toolset", "mcp_server_name": "docs", "default_config": {"enabled": False}, "configs": {"a": {"enabled": True}}},
        {"type": "mcp_toolset", "mcp_server_name": "docs", "default_config": {"defer_loading": True}},
    ],
    "google": [
        {"googleSearch": {}},
        {"googleSearch": {"timeRangeFilter": {"startTime": "2026-01-01T00:00:00Z"}}},
        {"urlContext": {}, "codeExecution": {}},
        {"fileSearch": {"fileSearchStoreNames": ["a"], "topK": 3}},
        {"googleMaps": {}},
        {"mcpServers": [{"name": "docs", "streamableHttpTransport": {"url": "https://x.example/mcp", "headers": {"a": "b"}}}]},
    ],
    "google_interactions": [
        {"type": "google_search"},
        {"type": "url_context"},
        {"type": "mcp_server", "name": "docs", "url": "https://x.example/mcp", "allowed_tools": [{"tools": ["a"]}]},
        {"type": "file_search", "file_search_store_names": ["a"]},
    ],
    "openai_responses": [
        {"type": "web_search", "filters": {"allowed_domains": ["x.example"]}, "search_context_size": "low"},
        {"type": "web_search_preview", "user_location": _PLACE},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "code_interpreter", "container": "c_1"},
        {"type": "image_generation", "size": "1024x1024"},
        {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 3},
        {"type": "mcp", **_SERVER, "allowed_tools": ["a"], "require_approval": "never"},
        {"type": "mcp", **_SERVER, "headers": {"a": "b"}},
        {"type": "mcp", **_SERVER, "require_approval": "never", "server_description": "Docs."},
        {"type": "local_shell"},
        {"type": "tool_search"},
    ],
    "openai_chat": [{"type": "openrouter:web_search", "parameters": {"max_results": 1}}],
    "mistral": [{"type": "web_search"}],
    "ollama": [{"type": "own"}],
}  # fmt: skip
"""Wire → tools of its providers, as its requests have them."""
COMMON_TOOLS = (
    ServerTool("web_search", {"allowed_domains": ["x.example"], "user_location": {"city": "Rome"}}),
    ServerTool("web_search", {"blocked_domains": ["x.example"], "max_uses": 2}),
    ServerTool("web_fetch", {"max_tokens": 9}),
    ServerTool("code_execution"),
    ServerTool("image_generation", {"size": "1024x1024"}),
    ServerTool("file_search", {"stores": ["s"], "max_results": 2}),
    ServerTool("mcp", {"name": "docs", "url": "https://x.example/mcp", "allowed_tools": ["a"]}),
    ServerTool("mcp", {"name": "docs", "url": "https://x.example/mcp", "approval": "always"}),
    ServerTool("memory"),
    ServerTool("computer_use", {"display_width": 9, "display_height": 9}),
    ServerTool("tool_search"),
)
SILENT = {"strict": False, "allowed_callers": ["direct"]}

_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "strict": st.just(True),
        "defer_loading": st.just(True),
        "allowed_callers": st.just(["code_execution_20260120"]),
        "input_examples": st.just([{"city": "Rome"}]),
        "cache_control": st.just(MARK),
    },
)
_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.sampled_from([0.0, 0.5, 1.0]),
        "max_tokens": st.sampled_from([64, 9000]),
        "top_p": st.sampled_from([0.5, 1.0]),
        "top_k": st.just(4),
        "presence_penalty": st.just(0.5),
        "frequency_penalty": st.just(0.25),
        "stop": st.sampled_from([("END",), ("a", "b"), ("a", "b", "c", "d", "e", "f")]),
        "seed": st.just(7),
        "tool_choice": st.sampled_from(["auto", "none", "required", "f"]),
        "parallel_tool_calls": st.booleans(),
        "reasoning": st.sampled_from(["off", "minimal", "low", "medium", "high", "xhigh", "max", 2048]),
        "cache": st.sampled_from(["short", "long"]),
    },
)  # fmt: skip
_CITATION = Citation(url="https://x.example/a", title="A", quote="Rome is old", start=0, end=4)
_QUESTIONS = st.sampled_from(
    [
        (TextPart("Look."),),
        (TextPart("Look.", {"anthropic": {"cache_control": MARK}}),),
        (TextPart("Look."), DataPart(PNG, "image/png")),
        (TextPart("Look."), DataPart(b"%PDF-1.4 x", "application/pdf", "a.pdf")),
        (TextPart("Look."), LinkPart("https://x.example/a.png", "image/png")),
        (DataPart(b"RIFF0000WAVE", "audio/wav"), TextPart("Listen.")),
    ]
)
_ANSWERS = st.sampled_from(
    [
        (),
        (Message.model("Rome."), Message.user("And?")),
        (Message.model(TextPart("Rome.", citations=(_CITATION,))), Message.user("And?")),
        (Message.model(ThinkingPart("Hm."), TextPart("Rome.")), Message.user("And?")),
        (
            Message.model(ToolCallPart("c1", "f", {"city": "Rome"})),
            Message.user(ToolResultPart("c1", "f", {"t": 1})),
        ),
        (
            Message.model(ToolCallPart("c1", "f", {"city": "Rome"})),
            Message.user(ToolResultPart("c1", "f", "no", is_error=True)),
        ),
        (
            Message.model(ToolCallPart("c1", "f", {"city": "Rome"})),
            Message.user(
                ToolResultPart("c1", "f", (TextPart("see"), DataPart(PNG, "image/png"))),
                TextPart("So?"),
            ),
        ),
    ]
)


@st.composite
def asked(draw: Any, source: str) -> ModelRequest:
    """A request as the wire `source` reads it from a client of its API."""
    fields = draw(_FIELDS)
    native = {source: {"function": fields} if source in INSIDE else fields} if fields else None
    schema = draw(st.sampled_from([OPEN, CLOSED]))
    tools = (ToolSpec("f", "Does f.", schema, native),) if draw(st.booleans()) else ()
    settings = draw(_SETTINGS)
    if not tools:
        settings = {key: settings[key] for key in settings if "tool" not in key}
    system = (Message.system("Be brief."),) if draw(st.booleans()) else ()
    messages = (*system, Message.user(*draw(_QUESTIONS)), *draw(_ANSWERS))
    request = ModelRequest(
        "m",
        messages,
        tools,
        Settings(**settings),
        draw(st.sampled_from([None, None, CLOSED])),
        draw(st.booleans()),
    )
    http = wires.get(source).dump_http(request)
    body = json.loads(json.dumps(http.body))
    if draw(st.booleans()):
        body |= {
            name: _join(value, body.get(name)) for name, value in OPTIONS.get(source, {}).items()
        }
    if draw(st.booleans()) and source in OWN_TOOLS:
        tool = draw(st.sampled_from(OWN_TOOLS[source]))
        body["tools"] = [*body.get("tools", []), tool]
        if "mcp_server_name" in tool:
            body["mcp_servers"] = [{"type": "url", "name": "docs", "url": "https://x.example/mcp"}]
    request = wires.get(source).load_request(body, path=http.path, headers=http.headers)
    if draw(st.integers(0, 3)) == 0:
        tool = draw(st.sampled_from(COMMON_TOOLS))
        if tool.name not in {each.name for each in request.tools}:
            request = request.replace(tools=(*request.tools, tool))
    return request


def _join(field: Any, beside: Any) -> Any:
    return {**if_object(field), **if_object(beside)} if isinstance(field, dict) else field


def differences(request: ModelRequest, back: ModelRequest) -> set[str]:
    """What another API reads otherwise than it was asked, by the words of losses."""
    found = {f"setting {name}" for name in _changed_settings(request.settings, back.settings)}
    if _plain(request.output_schema) != _plain(back.output_schema):
        found.add("output_schema ")
    for tool in request.tools:
        found |= _changed_tool(tool, back.tools)
    return found | {
        f"option {name}"
        for name, value in own_fields(request).items()
        if own_fields(back).get(name) != value
    }


def _changed_tool(
    tool: ToolSpec | ServerTool, arrived: Sequence[ToolSpec | ServerTool]
) -> set[str]:
    """What of a tool is another among those that arrived."""
    named = [each for each in arrived if each.name == tool.name]
    spelled = read_spelled(tool)
    if not named:
        return {f"tool {spelled}"}
    was = _fields(tool)
    if isinstance(tool, ToolSpec):
        [there] = [each for each in named if isinstance(each, ToolSpec)]
        assert (there.description, _plain(there.input_schema)) == (
            tool.description,
            _plain(tool.input_schema),
        )
        return {f"field tools.{name}" for name in was if was[name] != _fields(there).get(name)}
    if tool.name == "memory" and not any(isinstance(each, ServerTool) for each in named):
        return {f"field tools.{name}" for name in was.keys() - {"type"}}
    same = {"container": {"type": "auto"}, "approval": "never", **was}
    options = [each.options for each in named if isinstance(each, ServerTool)]
    return {
        f"option tools.{spelled}.{name}"
        for name, asked in tool.options.items()
        if asked
        and asked != same.get(name)
        and not any(_holds(there.get(name), asked) for there in options)
    } | {f"field tools.{name}" for name in was if name not in ("type", *_common_fields(named))}


def _holds(there: Any, asked: Any) -> bool:
    if isinstance(asked, dict) and isinstance(there, dict):
        return asked.items() <= there.items()
    return there == asked


def _common_fields(named: Sequence[ToolSpec | ServerTool]) -> set[str]:
    return {name for each in named for name in _fields(each)}


def read_spelled(tool: ToolSpec | ServerTool) -> str:
    """The name that a tool had where it was read."""
    for key, fields in (tool.native or {}).items():
        if key.endswith(":notes"):
            return if_object(if_object(fields).get("spelling")).get("tool", tool.name)
    return tool.name


def own_fields(request: ModelRequest) -> dict[str, Any]:
    """The fields of a request that its wire alone has, beside how it calls an output schema."""
    own = [if_object(fields) for wire, fields in (request.native or {}).items() if ":" not in wire]
    found = {name: value for fields in (*own, request.options) for name, value in fields.items()}
    found.pop("response_format", None)
    found["text"] = {key: value for key, value in found.get("text", {}).items() if key != "format"}
    return {name: value for name, value in found.items() if value}


def _changed_settings(asked: Settings, arrived: Settings) -> Iterator[str]:
    for name in Settings.__struct_fields__:
        was, is_ = getattr(asked, name), getattr(arrived, name)
        if was is None or was == is_:
            continue
        # Most providers cache by themselves, so no field says it to them.
        if name != "cache":
            yield name


def is_usual(request: ModelRequest, back: ModelRequest, name: str) -> bool:
    """Whether a setting says the same in another form, or what everyone does without it."""
    was, is_ = getattr(request.settings, name), getattr(back.settings, name)
    if name == "reasoning":
        if is_ is None:
            return was == "off" and request.model == NEVER_THINKS
        return (was == "off") == (is_ == "off")
    return is_ is None and was in ("auto", True)


def _fields(tool: ToolSpec | ServerTool) -> dict[str, Any]:
    """The fields of a tool that say something, wherever its wire has them."""
    own = {key: if_object(value) for key, value in (tool.native or {}).items() if ":" not in key}
    found = {name: value for fields in own.values() for name, value in fields.items()}
    found |= if_object(found.pop("function", None))
    return {name: value for name, value in found.items() if value and value != SILENT.get(name)}


def _plain(schema: Any) -> Any:
    return schema if schema is None else {key: schema[key] for key in ("type", "properties")}


def read_there(request: ModelRequest, target: str) -> ModelRequest:
    """What the API of a target reads of a request that is written for it."""
    model = find_target(TARGETS[target], request)
    around = request.replace(model=model.model, messages=())
    if model.wire:
        around = lower(around, model.profile, wire=model.wire)[0]
    written = write(request.messages, find_target(TARGETS[target], around), fields=False)
    body = without_placeholders(json.loads(json.dumps(written.payload)))
    path = f"/models/m:{'streamGenerateContent?alt=sse' if request.stream else 'generateContent'}"
    if WIRES[target] == "bedrock_converse":
        path = f"/model/m/{'converse-stream' if request.stream else 'converse'}"
    return wires.get(WIRES[target]).load_request(body, path=path)


def find_faults(request: ModelRequest, target: str) -> list[str]:
    """Where the plan of a request is not exact."""
    back = read_there(request, target)
    found = plan(request.messages, TARGETS[target], request=request)
    of_conversation = [*found.losses, *found.repairs]
    changed = differences(request, back)
    named = {f"{loss.what} {loss.which}" for loss in found.settings}
    usual = {
        f"setting {name}"
        for name in Settings.__struct_fields__
        if is_usual(request.replace(model=target.rpartition(":")[2]), back, name)
    }
    faults = [f"{name} is told by no loss" for name in changed - named - usual]
    faults += [f"{name} is told, and is as it was" for name in named - changed]
    faults += unexplained(request.messages, back.messages, of_conversation)
    told = any(loss.which == "citations" for loss in of_conversation)
    if (_is_cited(request) and not _is_cited(back)) != told:
        faults.append(f"citations are {'' if told else 'not '}told: {of_conversation}")
    if back.stream != request.stream:
        faults.append("whether it is streamed has changed")
    return faults


def _is_cited(request: ModelRequest) -> bool:
    pieces = [piece for message in request.messages for piece in message.content]
    return any(isinstance(piece, TextPart) and piece.citations for piece in pieces)


@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
def test_a_request_differs_only_in_what_was_named(target: str, data: Any) -> None:
    request = data.draw(st.sampled_from(MODELS).flatmap(asked))
    assert find_faults(request, target) == []
