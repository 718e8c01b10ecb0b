"""Tools for models that have none: three questions by constrained decoding, told as calls and
text."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Agent,
    Capability,
    Message,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    ToolSpec,
    fold,
    tool,
)
from dragoman.errors import ProviderError, StreamCutError
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.loss import Loss
from dragoman.message import FinishReason, Origin, Role, Usage
from dragoman.model.constrained_calls import JsonItems, constrained_tools
from dragoman.model.tool_prompt import (
    arguments_schema,
    ask_answer,
    ask_arguments,
    ask_tool,
    split_conversation,
)
from dragoman.request import ModelRequest, ServerTool, Settings
from support.model import PROVIDER, Script, says

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (ToolSpec("get_weather", "The weather.", SCHEMA), ToolSpec("get_time", "The time.", SCHEMA))
CITIES = '[{"city":"Paris"},{"city":"Rome"}]'


def request(*messages: Message, **changes: Any) -> ModelRequest:
    return ModelRequest(
        "m", messages or (Message.user("What is the weather in Paris and Rome?"),), TOOLS, **changes
    )


async def run(
    script: Script, asked: ModelRequest, **how: Any
) -> tuple[list[Event], Message | None]:
    events = [
        event async for event in constrained_tools(asked, lambda one: script(one, None), **how)
    ]
    messages = fold(events)
    return events, messages[0] if messages else None


async def test_a_tool_is_chosen_and_its_arguments_become_calls() -> None:
    script = Script(says('"get_weather"', usage=1), says(CITIES, usage=2))
    _, message = await run(script, request())
    assert message is not None
    assert [(c.name, c.arguments, c.state) for c in message.tool_calls] == [
        ("get_weather", {"city": "Paris"}, "complete"),
        ("get_weather", {"city": "Rome"}, "complete"),
    ]
    assert len({c.id for c in message.tool_calls}) == 2
    assert message.finish_reason is FinishReason.tool_calls
    assert message.usage is not None
    assert message.usage.total_tokens == 3
    assert [one.output_schema for one in script.requests] == [
        {"enum": ["get_weather", "get_time", "none"]},
        arguments_schema(SCHEMA, 4),
    ]
    assert all(not one.tools and one.settings.temperature == 0 for one in script.requests)


async def test_without_a_tool_the_answer_streams_as_it_comes() -> None:
    script = Script(says('"none"'), says("A long answer in many pieces"))
    events, message = await run(script, request(output_schema={"type": "string"}))
    assert message is not None
    assert message.text == "A long answer in many pieces"
    assert len([event for event in events if isinstance(event, PartDelta)]) > 5
    assert script.requests[1].output_schema == {"type": "string"}


ASKED = Message.user("What is the weather in Paris?")
CALLED = Message.model(ToolCallPart("1", "get_weather", {"city": "Paris"}))
ANSWERED = Message.user(ToolResultPart("1", "get_weather", {"degrees": 17}))


async def test_after_results_the_answer_is_asked_for_with_what_they_say() -> None:
    script = Script(says("17 degrees"))
    _, message = await run(script, request(ASKED, CALLED, ANSWERED))
    assert message is not None
    assert message.text == "17 degrees"
    (sent,) = script.requests
    assert sent.messages[-1].role is Role.USER
    assert "17" in sent.messages[-1].text
    assert "What is the weather in Paris?" in sent.messages[-1].text
    assert not any(m.tool_calls or m.tool_results for m in sent.messages)


async def test_more_rounds_never_make_an_answered_call_again() -> None:
    script = Script(says('"get_weather"'), says('[{"city":"Paris"}]'), says("17"))
    _, message = await run(script, request(ASKED, CALLED, ANSWERED), rounds=2)
    assert message is not None
    assert (message.text, message.tool_calls) == ("17", ())


@pytest.mark.parametrize(
    ("choice", "first"),
    [
        ("none", None),
        ("required", {"enum": ["get_weather", "get_time"]}),
        ("get_time", arguments_schema(SCHEMA, 4)),
    ],
)
async def test_tool_choice_holds(choice: str, first: Any) -> None:
    script = Script(says('"get_time"') if choice == "required" else says(CITIES), says(CITIES))
    await run(script, request(settings=Settings(tool_choice=choice)))
    assert script.requests[0].output_schema == first
    assert all(one.settings.tool_choice is None for one in script.requests)


async def test_one_call_at_a_time_where_that_is_wanted() -> None:
    script = Script(says('"get_time"'), says(CITIES))
    await run(script, request(settings=Settings(parallel_tool_calls=False)))
    assert script.requests[1].output_schema == arguments_schema(SCHEMA, 1)


async def test_arguments_that_are_cut_are_no_complete_call() -> None:
    script = Script(
        says('"get_time"'), says('[{"city":"Paris"},{"city":"Ro', reason=FinishReason.length)
    )
    _, message = await run(script, request())
    assert message is not None
    assert [call.state for call in message.tool_calls] == ["complete", "cut"]
    assert message.finish_reason is FinishReason.length


@pytest.mark.parametrize("step", [0, 1, 2])
async def test_an_error_of_any_step_is_the_calls_error(step: int) -> None:
    answers = [[says('"get_time"'), says(CITIES)], [says('"none"'), says("x")]][step == 2]
    answers[min(step, 1)] = StreamCutError("gone")
    a = Agent(LACKING, middleware=[constrained_tools, Script(*answers)], tools=[get_weather])
    with pytest.raises(ProviderError, match="gone"):
        await a.send("What time is it?")


LACKING = msgspec.structs.replace(
    PROVIDER, capabilities=frozenset({Capability.chat, Capability.tools})
)


@tool
async def get_weather(city: str) -> str:
    """The weather."""
    return f"fine in {city}"


async def test_an_agent_runs_the_tools_and_gets_the_answer() -> None:
    script = Script(says('"get_weather"'), says(CITIES), says("Fine in both."))
    a = Agent(LACKING, middleware=[constrained_tools, script], tools=[get_weather])
    result = await a.send("What is the weather in Paris and in Rome?")
    assert result.output == "Fine in both."
    assert [r.result for r in result.messages[2].tool_results] == ["fine in Paris", "fine in Rome"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    max_leaves=8,
)


@given(st.lists(JSON), st.lists(st.integers(0, 400)), st.sampled_from([None, 1]))
def test_the_elements_of_an_array_come_whole_however_it_is_cut(
    values: list[Any], places: list[int], indent: int | None
) -> None:
    text = json.dumps(values, indent=indent)
    ends = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    items = JsonItems()
    found = [
        item for start, end in itertools.pairwise(ends) for item in items.feed(text[start:end])
    ]
    assert [json.loads(item) for item in found] == values
    assert items.rest == ""


def test_schemas_are_lowered_to_what_constrained_decoding_takes() -> None:
    schema = {
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/Tree"},
            "kind": {"enum": ["a", "b"], "title": "Kind", "default": "a"},
        },
        "required": ["tree"],
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {"left": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]}},
            }
        },
    }
    assert arguments_schema(schema, 2) == {
        "type": "array",
        "minItems": 1,
        "maxItems": 2,
        "items": {
            "additionalProperties": False,
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/d0"}, "kind": {"enum": ["a", "b"]}},
            "required": ["tree"],
        },
        "$defs": {
            "d0": {
                "type": "object",
                "properties": {"left": {"anyOf": [{"$ref": "#/$defs/d0"}, {"type": "null"}]}},
            }
        },
    }


def step(
    text: str, *, id: str = "m", loss: Loss | None = None, usage: int = 1, **end: Any
) -> list[Event]:
    """The events of one answer of the model, in two deltas."""
    return [
        MessageStarted(
            id,
            Role.MODEL,
            0,
            ORIGIN,
            {"begun": id},
            created_at=TIME,
            losses=(loss,) if loss else (),
        ),
        PartStarted(id, 0, OpenText()),
        PartDelta(id, 0, text[:7]),
        PartDelta(id, 0, text[7:]),
        PartFinished(id, 0, TextPart(text)),
        MessageFinished(
            id, end.pop("reason", FinishReason.stop), Usage(output_tokens=usage), **end
        ),
    ]


ORIGIN = Origin("p", "http://e", "m")
SERVED = Origin("p", "http://e", "m", "served")
TIME = datetime(2027, 1, 15, 8, tzinfo=UTC)
LOST, MORE = Loss(0, 0, "file", "first"), Loss(0, 1, "file", "second")


def known(events: list[Event]) -> list[Event]:
    """The same events, ids of calls numbered."""
    numbers: dict[str, str] = {}

    def one(event: Event) -> Event:
        if isinstance(event, (PartStarted, PartFinished)) and isinstance(event.part, ToolCallPart):
            number = numbers.setdefault(event.part.id, f"c{len(numbers) + 1}")
            return msgspec.structs.replace(
                event, part=msgspec.structs.replace(event.part, id=number)
            )
        return event

    return [one(event) for event in events]


async def test_all_events_of_calls_with_what_the_steps_cost_and_left_out() -> None:
    text = '[{"city":"Paris"},{"city":"Paris"},{"city":"Rome"}]'
    calls = step(text, id="b", loss=MORE, usage=3, origin=SERVED, metadata={"a": 1})
    calls.insert(3, calls[2])  # nothing is lost where a delta begins nothing
    calls[2] = PartDelta("b", 0, "")
    script = Script(step('"get_weather"', id="a", loss=LOST, usage=2), calls)
    events, _ = await run(script, request())
    assert known(events) == [
        MessageStarted(
            "b", Role.MODEL, 0, ORIGIN, {"begun": "b"}, created_at=TIME, losses=(LOST, MORE)
        ),
        PartStarted("b", 0, ToolCallPart("c1", "get_weather")),
        PartDelta("b", 0, '{"city":"Paris"}'),
        PartFinished("b", 0, ToolCallPart("c1", "get_weather", {"city": "Paris"})),
        PartStarted("b", 1, ToolCallPart("c2", "get_weather")),
        PartDelta("b", 1, '{"city":"Rome"}'),
        PartFinished("b", 1, ToolCallPart("c2", "get_weather", {"city": "Rome"})),
        MessageFinished("b", FinishReason.tool_calls, Usage(output_tokens=5), SERVED, {"a": 1}),
    ]
    assert len({event.part.id for event in events if isinstance(event, PartStarted)}) == 2  # type: ignore[union-attr]


async def test_all_events_of_an_answer_with_what_the_steps_cost_and_left_out() -> None:
    answer = step("A long answer", id="b", loss=LOST, usage=3, origin=SERVED)
    script = Script(step(" none\n", id="a", loss=LOST, usage=2), answer)
    events, _ = await run(script, request())
    assert events == [
        *answer[:-1],
        MessageFinished("b", FinishReason.stop, Usage(output_tokens=5), SERVED),
    ]
    assert script.closed == 2


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (FinishReason.stop, FinishReason.tool_calls),
        (FinishReason.tool_calls, FinishReason.tool_calls),
        (FinishReason.unspecified, FinishReason.tool_calls),
        (None, FinishReason.tool_calls),
        (FinishReason.length, FinishReason.length),
        (FinishReason.refusal, FinishReason.refusal),
    ],
)
async def test_how_a_list_of_calls_ends(reason: Any, told: FinishReason) -> None:
    script = Script(step('"get_time"'), step('[{"city":"Paris"},{"city":"Ro', reason=reason))
    _, message = await run(script, request())
    assert message is not None
    assert message.finish_reason is told
    assert [call.state for call in message.tool_calls] == [
        "complete",
        "invalid" if told is FinishReason.tool_calls else "cut",
    ]
    assert message.tool_calls[1].raw == '{"city":"Ro'


SAMPLING = Settings(temperature=0.7, max_tokens=9, top_p=0.5, stop=("x",), seed=1, tool_choice="required", parallel_tool_calls=True)  # fmt: skip
NATIVE = {"openai_chat": {"x": 1}}


async def test_what_each_step_asks_is_the_request_with_settings_of_its_own() -> None:
    """A question has no limit and no stop; a list of arguments has the request's limit; an answer
    has all but the tools'."""
    asked = request(
        settings=SAMPLING,
        native=NATIVE,
        options={"o": 1},
        output_schema={"type": "string"},
        stream=True,
    )
    script = Script(step('"get_time"'), step("[]"), step("so"))
    await run(script, asked)
    first, second, third = script.requests
    question = Settings(temperature=0.7, top_p=0.5, seed=1)
    names, schema = {"enum": ["get_weather", "get_time"]}, arguments_schema(SCHEMA, 4)
    same = {"model": "m", "tools": (), "options": {"o": 1}, "stream": True}
    assert [msgspec.structs.asdict(one) | {"messages": ()} for one in script.requests] == [
        msgspec.structs.asdict(
            ModelRequest(
                messages=(), settings=settings, output_schema=wanted, native=native, **same
            )  # type: ignore[arg-type]
        )
        for settings, wanted, native in (
            (question, names, None),
            (msgspec.structs.replace(question, max_tokens=9), schema, None),
            (
                msgspec.structs.replace(SAMPLING, tool_choice=None, parallel_tool_calls=None),
                {"type": "string"},
                NATIVE,
            ),
        )
    ]
    exchange = split_conversation(asked.messages)
    assert first.messages == ask_tool(exchange, ["get_weather", "get_time"])
    assert second.messages == ask_arguments(exchange, TOOLS[1], schema, 4)
    assert third.messages == ask_answer(exchange)


@pytest.mark.parametrize(
    ("given_", "steps", "plain"), [(None, 0.0, None), (0.0, 0.0, 0.0), (0.7, 0.7, 0.7)]
)
async def test_the_temperature_is_the_requests_else_0_where_it_must_be_steady(
    given_: Any, steps: float, plain: Any
) -> None:
    script = Script(step("none"), step("so"))
    await run(script, request(settings=Settings(temperature=given_)))
    assert [one.settings.temperature for one in script.requests] == [steps, plain]
    script = Script(step("so"))
    await run(script, request(ASKED, CALLED, ANSWERED, settings=Settings(temperature=given_)))
    assert [one.settings.temperature for one in script.requests] == [steps]


async def test_one_tool_that_is_required_is_not_asked_for() -> None:
    script = Script(step('[{"city":"Oslo"}]'))
    one = request(settings=Settings(tool_choice="required")).replace(tools=TOOLS[:1])
    _, message = await run(script, one)
    assert message is not None
    assert [call.name for call in message.tool_calls] == ["get_weather"]
    script = Script(step('"no such tool"'), step("so"))
    _, message = await run(script, one.replace(settings=Settings()))
    assert script.requests[0].output_schema == {"enum": ["get_weather", "none"]}
    assert message is not None
    assert message.text == "so"
    script = Script(step("so"))
    await run(script, request(settings=Settings(tool_choice="auto")).replace(tools=()))
    assert len(script.requests) == 1


async def test_a_tool_of_the_providers_is_a_loss_or_refused() -> None:
    asked = request().replace(tools=(*TOOLS, ServerTool("web_search")))
    script = Script(step("none"), step("so"))
    events, _ = await run(script, asked)
    lost = Loss(None, None, "tool", "the model has no tools that its provider runs", "web_search")
    assert isinstance(events[0], MessageStarted)
    assert events[0].losses == (lost,)
    script = Script(step("none"))
    [refused] = (await run(script, asked.replace(on_loss="error")))[0]
    assert isinstance(refused, RunError)
    assert str(lost) in refused.error.message
    assert script.requests == []
    events, _ = await run(Script(step("none"), step("so")), request(on_loss="error"))
    assert isinstance(events[0], MessageStarted)


async def test_errors_hold_what_was_told_of_the_calls_and_nothing_of_the_steps() -> None:
    failed = RunError(StreamCutError("gone", partial=Message.model("none of it")))
    events, _ = await run(Script([*step('"get_time"')[:3], failed]), request())
    assert events == [failed]
    assert failed.error.partial is None
    for text, parts in (("[", None), ('[{"city":"Paris"},{"ci', [{"city": "Paris"}])):
        failed = RunError(StreamCutError("gone", partial=Message.model("none of it")))
        events, _ = await run(Script(step('"get_time"'), [*step(text)[:4], failed]), request())
        assert events[-1] is failed
        partial = failed.error.partial
        assert (partial and [call.arguments for call in partial.tool_calls]) == parts
        assert (partial and (partial.id, partial.origin, partial.created_at)) == (
            parts and ("m", ORIGIN, TIME)
        )
        assert len([event for event in events if isinstance(event, MessageStarted)]) == len(
            parts or ()
        )


async def test_elements_that_are_no_arguments_are_told_each_once() -> None:
    script = Script(step('"get_time"'), step('[{"a":oops},{"b":oops},{"a":oops},3]'))
    _, message = await run(script, request())
    assert message is not None
    assert [(call.raw, call.state) for call in message.tool_calls] == [
        ('{"a":oops}', "invalid"),
        ('{"b":oops}', "invalid"),
        ("3", "invalid"),
    ]


async def test_without_any_usage_there_is_none() -> None:
    bare = [msgspec.structs.replace(event, usage=None) if isinstance(event, MessageFinished) else event for event in step("none")]  # fmt: skip
    events, _ = await run(Script(bare), request())
    assert isinstance(events[-1], MessageFinished)
    assert events[-1].usage is None
    events, _ = await run(Script(bare, step("so", usage=4)), request())
    assert isinstance(events[-1], MessageFinished)
    assert events[-1].usage == Usage(output_tokens=4)


@pytest.mark.parametrize(
    ("pieces", "found", "rest"),
    [
        (["[1, 2"], [["1"]], "2"),
        (["[1, 2", "]"], [["1"], ["2"]], ""),
        (['["a\\', '",b"]'], [[], ['"a\\",b"']], ""),
        (['["\\\\"', ",3]"], [[], ['"\\\\"', "3"]], ""),
        (['[{"a":[1,2]},', "[]]"], [['{"a":[1,2]}'], ["[]"]], ""),
        (["[]"], [[]], ""),
        ([" [ ]"], [[]], ""),
        (["[,]"], [[]], ""),
        (["plain"], [[]], "plain"),
        (["[1] 2"], [["1"]], "2"),
        (['"[1,2]"'], [[]], '"[1,2]"'),
    ],
)
def test_elements_come_as_soon_as_they_are_whole(
    pieces: list[str], found: list[list[str]], rest: str
) -> None:
    items = JsonItems()
    assert [items.feed(piece) for piece in pieces] == found
    assert items.rest == rest


LOWERED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 1, "maxLength": 2, "pattern": "x", "format": "date", "title": "T"}}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 1, "maxLength": 2, "pattern": "x", "format": "date"}}, "additionalProperties": False},
    ),
    (
        {"properties": {"n": {"minimum": 1, "maximum": 2, "exclusiveMinimum": 0, "exclusiveMaximum": 3, "multipleOf": 1, "const": 1, "enum": [1]}}},
        {"type": "object", "properties": {"n": {"minimum": 1, "maximum": 2, "exclusiveMinimum": 0, "exclusiveMaximum": 3, "const": 1, "enum": [1]}}, "additionalProperties": False},
    ),
    (
        {"type": "object", "additionalProperties": {"type": "integer", "title": "T"}},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}},
    ),
    ({"type": "object", "additionalProperties": True}, {"type": "object", "properties": {}, "additionalProperties": True}),
    ({}, {"type": "object", "properties": {}, "additionalProperties": False}),
    (
        {"type": "object", "properties": {"a": {"type": "array", "items": {"title": "T"}, "minItems": 1, "maxItems": 2, "prefixItems": [{"title": "T"}, 1]}, "b": False}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "array", "items": {}, "minItems": 1, "maxItems": 2, "prefixItems": [{}, {}]}}, "required": ["a"], "additionalProperties": False},
    ),
    ({"type": "array", "items": {"title": "T"}}, {"type": "array", "items": {}}),
    *(({"type": "object", many: [{"title": "T"}], "not": {}}, {"type": "object", many: [{}]}) for many in ("anyOf", "oneOf", "allOf", "prefixItems")),
    *(({many: "odd"}, {"type": "object", "properties": {}, "additionalProperties": False}) for many in ("anyOf", "items", "properties")),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "item"), LOWERED)
def test_what_is_kept_of_a_schema(schema: dict[str, Any], item: dict[str, Any]) -> None:
    assert arguments_schema(schema, 3) == {
        "type": "array",
        "minItems": 1,
        "maxItems": 3,
        "items": item,
    }


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#/$defs/A", {"type": "string"}),
        ("#/$defs/a~1b~0c", {"type": "null"}),
        ("#/properties/x/items", {"type": "integer"}),
    ],
)
def test_references_within_a_schema_are_followed_once(
    reference: str, target: dict[str, Any]
) -> None:
    schema = {
        "$defs": {"A": {"type": "string", "title": "T"}, "a/b~c": {"type": "null"}},
        "properties": {"x": {"items": {"type": "integer"}}, "y": {"$ref": reference, "title": "T"}, "z": {"$ref": reference}},
    }  # fmt: skip
    lowered = arguments_schema(schema, 1)
    assert lowered["$defs"] == {"d0": target}
    assert (
        lowered["items"]["properties"]["y"]
        == lowered["items"]["properties"]["z"]
        == {"$ref": "#/$defs/d0"}
    )
    schema["properties"]["y"] = {"$ref": "#/$defs/A"}
    schema["properties"]["z"] = {"$ref": "#/$defs/a~1b~0c"}
    both = arguments_schema(schema, 1)
    assert both["$defs"] == {"d0": {"type": "string"}, "d1": {"type": "null"}}
    assert both["items"]["properties"]["z"] == {"$ref": "#/$defs/d1"}


def test_a_schema_that_is_a_reference_is_one_still() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}
    assert arguments_schema(schema, 1)["items"] == {"$ref": "#/$defs/d0"}
    for nowhere in ("#/$defs/B", "x#/$defs/A", "#/$defs/A/type/x", "https://e"):
        assert arguments_schema({"properties": {"a": {"$ref": nowhere}}}, 1)["items"][
            "properties"
        ] == {"a": {}}
    itself = arguments_schema({"type": "object", "properties": {"a": {"$ref": "#"}}}, 1)
    assert itself["$defs"] == {
        "d0": {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}}
    }
