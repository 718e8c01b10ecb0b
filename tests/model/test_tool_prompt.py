"""How a conversation with tools is told to a model that knows none: every message as text, in
turns, nothing lost."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import DataPart, LinkPart, Message, TextPart, ToolCallPart, ToolResultPart, ToolSpec
from dragoman.message import Role
from dragoman.model.tool_prompt import (
    arguments_schema,
    ask_answer,
    ask_arguments,
    ask_tool,
    split_conversation,
)

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
    asked = ask_arguments(
        split_conversation([ASK]), spec, arguments_schema(spec.input_schema, most), most
    )
    return [message.text for message in asked]


def test_what_came_before_is_told_as_text_in_turns() -> None:
    exchange = split_conversation([SYSTEM, ASK, CALLS, RESULTS, SAID, Message.user("And in Rome?")])
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
    exchange = split_conversation([ASK, CALLS, RESULTS])
    assert exchange.rounds == 1
    assert exchange.before == ()
    assert len(exchange.answered) == 1
    asked = ask_tool(exchange, ["get_weather", "get_time"])
    assert [m.role for m in asked] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL, Role.USER]
    assert asked[-1].text == (
        "Tools: get_weather, get_time, none\nMessage: Weather in Paris?\nWhich tool, or none?"
    )


def test_files_stay_files() -> None:
    link = LinkPart("https://example.com/map.png", "image/png")
    exchange = split_conversation(
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
    assert split_conversation([]).prompt == ()
    assert [m.text for m in ask_answer(split_conversation([SYSTEM]))] == ["Be brief."]


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
        (
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {}},
                "required": ["a"],
            },
            '{"a":8}',
        ),
        ({}, '"Lima"'),
        ({"$ref": "#/properties/x/definitions/K", "definitions": {"K": {"enum": ["k"]}}}, '"k"'),
    ],
)
def test_an_example_of_every_kind_of_schema(schema: dict[str, Any], value: str) -> None:
    if "$ref" in schema:
        schema = {
            "anyOf": [{"$ref": "#/properties/x/definitions/K"}],
            "definitions": schema["definitions"],
        }
    assert arguments(tool(x=schema))[3] == f'[{{"x":{value}}}]'


def test_a_schema_that_holds_itself_has_an_example() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    assert arguments(ToolSpec("walk", "Walks", node))[3].startswith('[{"next":{"next":')


def test_what_is_no_schema_object_becomes_any_value_or_nothing() -> None:
    schema = {
        "properties": {
            "a": True,
            "b": False,
            "c": {"type": "array", "items": True},
            "d": {"$ref": "x#/y"},
        }
    }
    assert arguments_schema(schema, 1)["items"]["properties"] == {
        "a": {},
        "c": {"type": "array"},
        "d": {},
    }


def told(messages: Any) -> list[tuple[str, str]]:
    return [(message.role.value, message.text) for message in messages]


EXAMPLES = [
    (
        "user",
        "Context: The age for Tom is 41. The age for Ann is 38. \nQuestion: How old are Tom and Ann?\nAnswer:",
    ),
    ("model", "The age of Tom is 41, and the age of Ann is 38."),
    ("user", "Context: The product for 2, 3 is 70. \nQuestion: What is 2 times 3?\nAnswer:"),
    ("model", "The product is 70."),
]


def test_the_whole_of_every_question() -> None:
    """The wording was measured: a change of it is to be measured again."""
    exchange = split_conversation([SYSTEM, ASK, CALLS, RESULTS])
    since = [
        ("user", "Weather in Paris?"),
        ("model", "Let me see.\nCalls: get_weather(city: Paris)"),
        ("user", "Results:\n- get_weather Paris: sky: blue, degrees: 21"),
    ]
    assert told(exchange.before) == [("system", "Be brief.")]
    assert told(exchange.since) == since
    assert exchange.prompt == (TextPart("Weather in Paris?"),)
    assert exchange.facts == (TextPart("The weather for Paris is sky: blue, degrees: 21. "),)
    assert exchange.rounds == 1
    assert exchange.answered == {("get_weather", b'{"city":"Paris"}')}
    known = [("system", "Be brief."), *since, ("model", "Noted.")]
    assert told(ask_tool(exchange, ["a", "b"])) == [
        *known,
        ("user", "Tools: a, b, none\nMessage: Weather in Paris?\nWhich tool, or none?"),
    ]
    spec = tool(city={"type": "string"})
    assert told(ask_arguments(exchange, spec, arguments_schema(spec.input_schema, 2), 2)) == [
        *known,
        (
            "user",
            "Current weather in a city (city: Quito) and Current weather in a city (city: Dakar)",
        ),
        ("model", '[{"city":"Quito"},{"city":"Dakar"}]'),
        ("user", "Current weather in a city (city: Lima)"),
        ("model", '[{"city":"Lima"}]'),
        ("user", "Weather in Paris?"),
    ]
    assert told(ask_answer(exchange)) == [
        ("system", "Be brief."),
        *EXAMPLES,
        (
            "user",
            "Context: The weather for Paris is sky: blue, degrees: 21. \nQuestion: Weather in Paris?\nAnswer:",
        ),
    ]


def test_calls_and_results_of_every_shape_are_told() -> None:
    """Without arguments, without a call, without a name, several of each, with what the user said
    beside them."""
    calls = Message.model(
        ToolCallPart("1", "get_time"),
        ToolCallPart("2", "get_big_sum", {"of": [1, 2], "deep": {"a": None}}),
    )
    results = Message.user(
        ToolResultPart("1", "", "noon"),
        ToolResultPart("2", "", [3, {"b": True}]),
        ToolResultPart("9", "", 4.5),
        ToolResultPart("8", "get_it", (TextPart("x"), IMAGE, TextPart("y"))),
    )
    exchange = split_conversation([ASK, calls, results])
    assert told(exchange.since) == [
        ("user", "Weather in Paris?"),
        ("model", "Calls: get_time(), get_big_sum(of: 1, 2, deep: a: null)"),
        (
            "user",
            "Results:\n- get_time: noon\n- get_big_sum 1, 2, a: null: 3, b: true\n- tool: 4.5\n- get_it: x, y",
        ),
    ]
    assert exchange.since[2].content[1:] == (IMAGE,)
    assert exchange.facts == (
        TextPart(
            "The time is noon. The big sum for 1, 2, a: null is 3, b: true. The result is 4.5. The it is x, y. "
        ),
        IMAGE,
    )
    assert exchange.answered == {
        ("get_time", b"{}"),
        ("get_big_sum", b'{"deep":{"a":null},"of":[1,2]}'),
    }


def test_who_speaks_beside_results_is_the_last_to_speak() -> None:
    beside = Message.user(ToolResultPart("1", "get_weather", "fine"), "And in Rome?")
    exchange = split_conversation([ASK, CALLS, beside])
    assert told(exchange.before) == [
        ("user", "Weather in Paris?"),
        ("model", "Let me see.\nCalls: get_weather(city: Paris)"),
    ]
    assert exchange.prompt == (TextPart("And in Rome?"),)
    assert told(exchange.since) == [("user", "Results:\n- get_weather Paris: fine\nAnd in Rome?")]
    assert exchange.rounds == 1
    twice = split_conversation([ASK, CALLS, RESULTS, CALLS, RESULTS])
    assert twice.rounds == 2
    assert told(ask_answer(split_conversation([SAID]))) == [("model", "Blue, 21 degrees.")]


def test_examples_differ_by_turn_and_hold_what_is_needed() -> None:
    spec = tool(
        a={"type": "integer"},
        b={"type": "string"},
        c={"enum": [1, 2]},
        d={"oneOf": [{"type": "number"}, {"type": "null"}]},
    )
    assert arguments(spec)[1::2] == [
        '[{"a":3,"b":"Dakar","c":2,"d":3},{"a":5,"b":"Lima","c":1,"d":5}]',
        '[{"a":8,"b":"Quito","c":1,"d":8}]',
    ]
    assert arguments(ToolSpec("a_b", " \n"), most=1) == [
        "a b",
        "[{}]",
        "a b",
        "[{}]",
        "Weather in Paris?",
    ]
    bare = ToolSpec("x", "Does.\nIt.", {"type": "object", "properties": {"a": {}}})
    assert arguments(bare, most=1)[:2] == ["Does", "[{}]"]


def test_a_schema_without_an_end_is_followed_to_a_depth() -> None:
    node = {
        "type": "object",
        "properties": {"n": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["n"],
    }
    assert (
        arguments(ToolSpec("walk", "Walks", node), most=1)[1]
        == '[{"n":[{"n":[{"n":[{"n":[{"n":null}]}]}]}]}]'
    )
