"""How a conversation with tools is told to a model that knows none: every message as text, in turns, nothing lost."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import DataPart, LinkPart, Message, TextPart, ToolCallPart, ToolResultPart, ToolSpec
from dragoman.message import Role
from dragoman.model.lowering import arguments_schema
from dragoman.model.tool_prompt import ask_answer, ask_arguments, ask_tool, split

SYSTEM = Message.system("Be brief.")
ASK = Message.user("Weather in Paris?")
CALLS = Message.model("Let me see.", ToolCallPart("1", "get_weather", {"city": "Paris"}))
RESULTS = Message.user(ToolResultPart("1", "get_weather", {"sky": "blue", "degrees": 21}))
SAID = Message.model("Blue, 21 degrees.")
IMAGE = DataPart(b"\x89PNG", "image/png")


def tool(**properties: Any) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return ToolSpec("get_weather", "Current weather in a city.\nMore words.", schema)


def arguments(spec: ToolSpec, most: int = 4) -> list[str]:
    asked = ask_arguments(split([ASK]), spec, arguments_schema(spec.input_schema, most), most)
    return [message.text for message in asked]


def test_what_came_before_is_told_as_text_in_turns() -> None:
    exchange = split([SYSTEM, ASK, CALLS, RESULTS, SAID, Message.user("And in Rome?")])
    assert [(m.role, m.text) for m in exchange.before] == [
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "Weather in Paris?"),
        (Role.MODEL, "Let me see.\nCalls: get_weather(city: Paris)"),
        (Role.USER, "Results:\n- get_weather Paris: sky: blue, degrees: 21"),
        (Role.MODEL, "Blue, 21 degrees."),
    ]
    assert ask_answer(exchange)[-1].text == "And in Rome?"
    assert not any(message.tool_calls or message.tool_results for message in exchange.before)


def test_calls_and_results_since_the_user_spoke_are_known() -> None:
    exchange = split([ASK, CALLS, RESULTS])
    assert exchange.rounds == 1
    assert exchange.before == ()
    assert len(exchange.answered) == 1
    asked = ask_tool(exchange, ["get_weather", "get_time"])
    assert [m.role for m in asked] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL, Role.USER]
    assert asked[-1].text == ("Tools: get_weather, get_time, none\nMessage: Weather in Paris?\nWhich tool, or none?")


def test_files_stay_files() -> None:
    link = LinkPart("https://example.com/map.png", "image/png")
    exchange = split(
        [
            Message.user("Where is this?", IMAGE),
            CALLS,
            Message.user(ToolResultPart("1", "get_weather", (TextPart("see"), link))),
        ]
    )
    assert ask_tool(exchange, ["a"])[-1].content[1] == IMAGE
    answer = ask_answer(exchange)[-1]
    assert IMAGE in answer.content
    assert link in answer.content
    assert "is see" in answer.text


def test_a_history_that_nobody_spoke_in_is_told_too() -> None:
    assert split([]).prompt == ()
    assert [m.text for m in ask_answer(split([SYSTEM]))] == ["Be brief."]


def test_the_examples_are_made_from_the_tools_own_schema() -> None:
    assert arguments(tool(city={"type": "string"})) == [
        "Current weather in a city (city: Quito) and Current weather in a city (city: Dakar)",
        '[{"city":"Quito"},{"city":"Dakar"}]',
        "Current weather in a city (city: Lima)",
        '[{"city":"Lima"}]',
        "Weather in Paris?",
    ]
    assert arguments(tool(city={"type": "string"}), most=1)[1] == '[{"city":"Quito"}]'
    assert arguments(ToolSpec("roll_die"))[0] == "roll die and roll die"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"enum": ["C", "F"]}, '"C"'),
        ({"const": 7}, "7"),
        ({"type": "integer"}, "8"),
        ({"type": ["number", "null"]}, "8"),
        ({"type": "boolean"}, "true"),
        ({"type": "null"}, "null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, '"Lima"'),
        ({"oneOf": [{"type": "integer"}]}, "8"),
        ({"type": "array", "items": {"type": "integer"}}, "[8]"),
        ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}, '{"a":8}'),
        ({}, '"Lima"'),
        ({"$ref": "#/properties/x/definitions/K", "definitions": {"K": {"enum": ["k"]}}}, '"k"'),
    ],
)
def test_an_example_of_every_kind_of_schema(schema: dict[str, Any], value: str) -> None:
    if "$ref" in schema:
        schema = {"anyOf": [{"$ref": "#/properties/x/definitions/K"}], "definitions": schema["definitions"]}
    assert arguments(tool(x=schema))[3] == f'[{{"x":{value}}}]'


def test_a_schema_that_holds_itself_has_an_example() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    assert arguments(ToolSpec("walk", "Walks", node))[3].startswith('[{"next":{"next":')


def test_what_is_no_schema_object_becomes_any_value_or_nothing() -> None:
    schema = {"properties": {"a": True, "b": False, "c": {"type": "array", "items": True}, "d": {"$ref": "x#/y"}}}
    assert arguments_schema(schema, 1)["items"]["properties"] == {"a": {}, "c": {"type": "array"}, "d": {}}
