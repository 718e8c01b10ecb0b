"""Settings, reasoning and schemas of the openai_responses wire (D-143r, D-145r)."""

from __future__ import annotations

import pytest

from dragoman.codec.schema_dialect import JsonDialect, fit_schema
from dragoman.codec.strict_schema import strict_schema
from dragoman.request import ModelRequest, Settings
from dragoman.wires import openai_responses as wire
from support.responses import SCHEMA, dump, reads_back


def test_settings():
    settings = Settings(
        temperature=0.5, top_p=0.9, max_tokens=9, parallel_tool_calls=False, tool_choice="required"
    )
    dumped = {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 9,
        "parallel_tool_calls": False,
        "tool_choice": "required",
    }
    assert dump(settings=settings) == {**dump(), **dumped}
    assert reads_back(**dumped).settings == settings


def test_settings_that_the_api_does_not_have_are_told():
    losses = []
    settings = Settings(top_k=1, presence_penalty=1, frequency_penalty=1, stop=("x",), seed=1)
    assert dump(settings=settings, losses=losses) == dump()
    names = ["top_k", "presence_penalty", "frequency_penalty", "stop", "seed"]
    assert [(loss.what, loss.which) for loss in losses] == [("setting", name) for name in names]


@pytest.mark.parametrize(
    ("setting", "effort"),
    [
        ("off", "none"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        (1024, "low"),
        (4096, "medium"),
        (9000, "high"),
    ],
)
def test_d143r_reasoning_asks_for_a_detailed_summary(setting, effort):
    summary = {} if effort == "none" else {"summary": "detailed"}
    assert dump(settings=Settings(reasoning=setting))["reasoning"] == {"effort": effort, **summary}
    dumped = dump(settings=Settings(reasoning=setting), quirks=wire.Quirks(summary=None))
    assert dumped["reasoning"] == {"effort": effort}


def test_d143r_a_summary_that_is_set_is_kept():
    dumped = dump(settings=Settings(reasoning="low"), options={"reasoning": {"summary": "concise"}})
    assert dumped["reasoning"] == {"effort": "low", "summary": "concise"}


@pytest.mark.parametrize(
    ("reasoning", "neutral"),
    [
        ({"effort": "low"}, "low"),
        ({"effort": "none"}, "off"),
        ({"effort": "high", "summary": "auto"}, "high"),
        ({"effort": "high", "summary": "detailed"}, "high"),
        ({"effort": "medium", "summary": None, "context": "all_turns"}, "medium"),
        ({"effort": "xhigh"}, "xhigh"),
        ({"effort": None, "summary": "auto"}, None),
        ({"context": "auto"}, None),
        (None, None),
    ],
)
def test_reasoning_is_read_and_written_as_it_was(reasoning, neutral):
    request = reads_back(reasoning=reasoning)
    assert request.settings.reasoning == neutral
    assert not request.options


GOLDEN = [
    (
        {"type": "object", "properties": {"a": {"type": ["string", "null"], "format": "date"}}},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        True,
    ),
    (
        {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"n": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}}}}},
        {
            "type": "object",
            "properties": {"n": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
            "required": ["n"],
            "additionalProperties": False,
            "$defs": {
                "N": {
                    "type": "object",
                    "properties": {"n": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
                    "required": ["n"],
                    "additionalProperties": False,
                }
            },
        },
        True,
    ),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        False,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "sent", "strict"), GOLDEN)
def test_d145r_schemas_are_lowered_to_the_strict_form_where_they_have_one(schema, sent, strict):
    assert dump(output_schema=schema)["text"]["format"] == {
        "type": "json_schema",
        "name": "dartantic_output",
        "schema": sent,
        "strict": strict,
    }


def test_any_object_is_json_mode():
    assert dump(output_schema={"type": "object"})["text"] == {"format": {"type": "json_object"}}
    assert reads_back(text={"format": {"type": "json_object"}}).output_schema == {"type": "object"}


def test_a_schema_that_is_taken_away_leaves_nothing_of_its_format():
    request = reads_back(
        text={"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}, "verbosity": "low"}
    )
    assert wire.dump_request(request.replace(output_schema=None))["text"] == {"verbosity": "low"}


@pytest.mark.parametrize(
    ("settings", "body", "lost"),
    [
        (
            Settings(temperature=0.5, max_tokens=5, top_p=0.4, parallel_tool_calls=False, cache="long", tool_choice="f"),
            {"temperature": 0.5, "top_p": 0.4, "max_output_tokens": 5, "parallel_tool_calls": False, "tool_choice": {"type": "function", "name": "f"}, "prompt_cache_retention": "24h"},
            [],
        ),
        (Settings(reasoning=1024), {"reasoning": {"effort": "low", "summary": "detailed"}}, ["reasoning"]),
        (Settings(reasoning=4096), {"reasoning": {"effort": "medium", "summary": "detailed"}}, ["reasoning"]),
        (Settings(reasoning=65_537), {"reasoning": {"effort": "max", "summary": "detailed"}}, ["reasoning"]),
        (Settings(reasoning="xhigh"), {"reasoning": {"effort": "xhigh", "summary": "detailed"}}, []),
        (Settings(reasoning="high"), {"reasoning": {"effort": "high", "summary": "detailed"}}, []),
        (Settings(reasoning="off"), {"reasoning": {"effort": "none"}}, []),
        (Settings(cache="short", tool_choice="none"), {"tool_choice": "none"}, []),
        (
            Settings(top_k=1, presence_penalty=0.1, frequency_penalty=0.1, stop=("x",), seed=1, tool_choice="required"), {"tool_choice": "required"},
            ["top_k", "presence_penalty", "frequency_penalty", "stop", "seed"],
        ),
    ],
)  # fmt: skip
def test_settings_to_the_last_field(settings, body, lost):
    losses = []
    assert wire.dump_request(ModelRequest("m", settings=settings), losses=losses) == {
        "model": "m",
        "input": [],
        **body,
    }
    assert [(loss.what, loss.which) for loss in losses] == [("setting", name) for name in lost]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"enum": 5}}}, {"type": "object", "properties": {"a": {"anyOf": 5}}},
        {"type": "object", "properties": {"a": {"type": [{}]}}}, {"type": "object", "properties": {"a": {"allOf": [5], "type": 5}}},
        {"type": "object", "properties": {"a": {"format": [1], "type": "string"}}, "$defs": {"b": 5}},
    ],
)  # fmt: skip
def test_schemas_of_another_shape_have_no_strict_form_or_one(schema):
    assert strict_schema(schema) is None or "$defs" not in schema
    fit_schema(
        schema,
        JsonDialect(keywords=frozenset(["enum", "format"]), only={"format": frozenset(["date"])}),
    )
