"""Requests on the mistral wire: settings, tools, output schemas, options, and how each was
spelled."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import mistral

BASE: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "a"}]}


def load(**fields: Any) -> ModelRequest:
    """Loads a body with these fields, which must survive."""
    body = {**BASE, **fields}
    request = mistral.load_request(body)
    stored = msgspec.json.decode(msgspec.json.encode(request), type=ModelRequest)
    assert mistral.dump_request(stored) == body
    return request


def dump(**fields: Any) -> dict[str, Any]:
    """What a request with these fields adds to the plainest body."""
    body = mistral.dump_request(ModelRequest("m", (Message.user("a"),), **fields))
    return {name: value for name, value in body.items() if name not in BASE}


def test_every_setting_has_its_field_both_ways() -> None:
    settings = Settings(
        temperature=0.5,
        max_tokens=9,
        top_p=0.9,
        top_k=4,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        stop=("x",),
        seed=7,
        tool_choice="required",
        parallel_tool_calls=False,
        reasoning="high",
    )
    fields = {
        "temperature": 0.5,
        "max_tokens": 9,
        "top_p": 0.9,
        "top_k": 4,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "stop": ["x"],
        "random_seed": 7,
        "tool_choice": "any",
        "parallel_tool_calls": False,
        "reasoning_effort": "high",
    }
    assert dump(settings=settings) == fields
    request = load(**fields)
    assert (request.settings, request.options, request.native) == (settings, {}, None)


@pytest.mark.parametrize(
    ("field", "value", "setting"),
    [
        ("stop", "x", {"stop": ("x",)}),
        ("stop", ["x", "y"], {"stop": ("x", "y")}),
        ("tool_choice", "required", {"tool_choice": "required"}),
        ("tool_choice", "auto", {"tool_choice": "auto"}),
        ("tool_choice", "none", {"tool_choice": "none"}),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}, {"tool_choice": "f"}),
        ("reasoning_effort", "none", {"reasoning": "off"}),
        ("reasoning_effort", "medium", {"reasoning": "medium"}),
    ],
)
def test_every_spelling_is_read_and_kept(field: str, value: Any, setting: dict[str, Any]) -> None:
    assert load(**{field: value}).settings == Settings(**setting)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", None),
        ("max_tokens", True),
        ("top_k", 1.5),
        ("parallel_tool_calls", 1),
        ("stop", None),
        ("stop", [1]),
        ("tool_choice", {"function": {"name": "f"}}),
        ("tool_choice", {"type": "function", "function": {"name": "auto"}}),
        ("tool_choice", "never"),
        ("reasoning_effort", "default"),
        ("reasoning_effort", None),
        ("random_seed", None),
        ("tools", []),
        ("tools", None),
        ("tools", [{"function": {}}]),
        ("response_format", {"type": "text"}),
        ("response_format", {"type": "json_schema", "json_schema": None}),
        ("stream", False),
        ("stream", None),
        ("model", None),
    ],
)
def test_what_has_no_neutral_meaning_is_kept_and_is_no_option(field: str, value: Any) -> None:
    request = load(**{field: value})
    assert request.options == {}
    assert request.settings == Settings()
    assert not request.stream


def test_fields_of_its_own_are_options() -> None:
    own = {
        "safe_prompt": True,
        "prompt_mode": "reasoning",
        "guardrails": [{"block_on_error": True}],
        "n": 2,
        "prompt_cache_key": "k",
        "prediction": {"type": "content", "content": "x"},
        "metadata": {"a": 1},
        "service_tier": "priority",
        "min_tokens": 1,
        "logprobs": True,
    }
    assert load(**own).options == own
    assert dump(options=own) == own
    assert dump(settings=Settings(temperature=1), options={"temperature": 0})["temperature"] == 0


@pytest.mark.parametrize(
    ("reasoning", "effort"),
    [("off", "none"), ("low", "low"), ("high", "high"), (1, "low"), (1024, "low"), (1025, "medium"), (4096, "medium"), (4097, "high"), (65_536, "max")],
)  # fmt: skip
def test_how_much_to_think(reasoning: Any, effort: str) -> None:
    assert dump(settings=Settings(reasoning=reasoning)) == {"reasoning_effort": effort}


def test_a_stream_is_asked_for() -> None:
    assert load(stream=True).stream
    assert dump(stream=True) == {"stream": True}


def function(**fields: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, **fields},
    }


@pytest.mark.parametrize(
    "tool",
    [
        function(),
        function(strict=True),
        function(description=""),
        function(parameters={}),
        function(parameters=None),
        function(name="a b"),
        {**function(), "x": 1},
        {"function": {"name": "f"}},
        {"type": "web_search"},
        {"type": "document_library", "library_ids": ["a"]},
        {"type": "function", "function": {}},
    ],
)
def test_d131_decision_11_every_tool_is_kept_as_it_is(tool: dict[str, Any]) -> None:
    [loaded] = load(tools=[tool]).tools
    named = tool.get("function", {}).get("name")
    assert loaded.name == (named or tool["type"])
    assert isinstance(loaded, ToolSpec if named else ServerTool)


def test_tools_are_sent_with_their_schema() -> None:
    spec = ToolSpec("f", "d", {"type": "object", "properties": {"a": {"type": "integer"}}})
    assert dump(tools=(spec, ToolSpec("g"), ServerTool("web_search", {"x": 1})))["tools"] == [
        function(parameters=spec.input_schema),
        {
            "type": "function",
            "function": {"name": "g", "parameters": {"type": "object", "properties": {}}},
        },
        {"type": "web_search", "x": 1},
    ]


def test_a_tool_and_who_chooses_it_have_one_name() -> None:
    body = dump(tools=(ToolSpec("get weather!"),), settings=Settings(tool_choice="get weather!"))
    name = body["tools"][0]["function"]["name"]
    assert name == body["tool_choice"]["function"]["name"] != "get weather!"


SCHEMA = {
    "type": "object",
    "title": "City",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "near": {"anyOf": [{"$ref": "#/$defs/City"}, {"type": "null"}], "default": None},
        "kind": {"enum": ["a", "b"]},
        "size": {"type": ["integer", "null"]},
        "tags": {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "integer"}]}},
    },
    "$defs": {
        "City": {"type": "object", "properties": {"near": {"$ref": "#/$defs/City"}}, "required": []}
    },
}
STRICT = {
    "type": "object",
    "title": "City",
    "properties": {
        "name": {"type": "string"},
        "near": {"anyOf": [{"$ref": "#/$defs/City"}, {"type": "null"}]},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "size": {"type": "integer"},
        "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
    },
    "required": ["name", "near", "kind", "size", "tags"],
    "additionalProperties": False,
    "$defs": {
        "City": {
            "type": "object",
            "properties": {"near": {"$ref": "#/$defs/City"}},
            "required": ["near"],
            "additionalProperties": False,
        }
    },
}


def test_d131_decision_11_an_output_schema_is_sent_in_its_strict_form() -> None:
    """The golden form: references, recursion, unions, null, closed objects."""
    sent = {"name": "output_schema", "schema": STRICT, "strict": True}
    assert dump(output_schema=SCHEMA) == {
        "response_format": {"type": "json_schema", "json_schema": sent}
    }
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    loose = {"name": "output_schema", "schema": free, "strict": False}
    assert dump(output_schema=free) == {
        "response_format": {"type": "json_schema", "json_schema": loose}
    }
    assert dump(output_schema={"type": "object"}) == {"response_format": {"type": "json_object"}}


def test_a_loaded_schema_goes_back_as_it_came() -> None:
    named = {"name": "x", "description": "", "schema": SCHEMA, "strict": True}
    request = load(response_format={"type": "json_schema", "json_schema": named, "y": 1})
    assert request.output_schema == SCHEMA
    assert load(response_format={"type": "json_object"}).output_schema == {"type": "object"}


def test_the_path_and_what_is_lost() -> None:
    lost: list[Loss] = []
    request = ModelRequest("m", (Message.system("a"), Message.user("b"), Message.system("c")))
    mistral.dump_request(request, losses=lost)
    assert [loss.what for loss in lost] == ["system message"]
    http = mistral.dump_http(request, target=Origin("mistral"))
    assert (http.path, http.method) == ("/chat/completions", "POST")
    assert http.body == mistral.dump_request(request)
    assert "model" not in mistral.dump_request(ModelRequest("", (Message.user("a"),)))


@pytest.mark.parametrize("body", [{}, {"messages": None}, {"messages": {}}, {"messages": ["x"]}])
def test_what_is_no_request_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(HistoryError):
        mistral.load_request(body)
