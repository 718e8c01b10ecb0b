"""What a request loses on its way to another API: what the other API reads differs from what was
asked in nothing but what a `Loss` names, and nothing is named that arrives as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
    "cohere": {"safety_mode": "STRICT", "raw_prompting": True},
    "google": {"safetySettings": [{"category": "x"}], "generationConfig": {"candidateCount": 2}},
    "google_interactions": {"labels": {"a": "b"}, "service_tier": "flex"},
    "mistral": {"safe_prompt": True, "prompt_mode": "reasoning"},
    "ollama": {"keep_alive": 5, "options": {"num_ctx": 9}},
    "openai_chat": {"logit_bias": {"1": 2}, "verbosity": "low"},
    "openai_responses": {"text": {"verbosity": "low"}, "metadata": {"a": "b"}, "user": "u"},
}
"""Wire → fields of its requests that no other has."""
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
_CITATION = Citation("https://x.example/a", "A", "Rome is old", 0, 4)
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
        for name, value in OPTIONS[source].items():
            body[name] = (
                {**value, **if_object(body.get(name))} if isinstance(value, dict) else value
            )
    return wires.get(source).load_request(body, path=http.path, headers=http.headers)


def differences(request: ModelRequest, back: ModelRequest) -> set[str]:
    """What another API reads otherwise than it was asked, by the words of losses."""
    found = {f"setting {name}" for name in _changed_settings(request.settings, back.settings)}
    if _plain(request.output_schema) != _plain(back.output_schema):
        found.add("output_schema ")
    tools = {tool.name: tool for tool in back.tools}
    for tool in request.tools:
        if tool.name not in tools:
            found.add(f"tool {tool.name}")
        elif isinstance(tool, ToolSpec):
            arrived = tools[tool.name]
            assert isinstance(arrived, ToolSpec)
            assert (arrived.description, _plain(arrived.input_schema)) == (
                tool.description,
                _plain(tool.input_schema),
            )
            was, is_ = _fields(tool), _fields(arrived)
            found |= {f"field tools.{name}" for name in was if was[name] != is_.get(name)}
    return found | {
        f"option {name}"
        for name, value in own_fields(request).items()
        if own_fields(back).get(name) != value
    }


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
