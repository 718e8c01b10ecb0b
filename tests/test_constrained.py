"""Tools for models that have none: three questions by constrained decoding, told as calls and text."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent, Capability, Message, ToolCallPart, ToolResultPart, ToolSpec, fold, tool
from dragoman.errors import ProviderError, StreamCutError
from dragoman.event import Event, PartDelta
from dragoman.message import FinishReason, Role
from dragoman.model.constrained import constrained_tools
from dragoman.model.json_items import JsonItems
from dragoman.model.lowering import arguments_schema
from dragoman.request import ModelRequest, Settings
from support import PROVIDER, Script, says

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (ToolSpec("get_weather", "The weather.", SCHEMA), ToolSpec("get_time", "The time.", SCHEMA))
CITIES = '[{"city":"Paris"},{"city":"Rome"}]'


def request(*messages: Message, **changes: Any) -> ModelRequest:
    return ModelRequest("m", messages or (Message.user("What is the weather in Paris and Rome?"),), TOOLS, **changes)


async def run(script: Script, asked: ModelRequest, **how: Any) -> tuple[list[Event], Message | None]:
    events = [event async for event in constrained_tools(asked, lambda one: script(one, None), **how)]
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
    [("none", None), ("required", {"enum": ["get_weather", "get_time"]}), ("get_time", arguments_schema(SCHEMA, 4))],
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
    script = Script(says('"get_time"'), says('[{"city":"Paris"},{"city":"Ro', reason=FinishReason.length))
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


LACKING = msgspec.structs.replace(PROVIDER, capabilities=frozenset({Capability.chat, Capability.tools}))


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
    found = [item for start, end in itertools.pairwise(ends) for item in items.feed(text[start:end])]
    assert [json.loads(item) for item in found] == values
    assert items.rest == ""


def test_schemas_are_lowered_to_what_constrained_decoding_takes() -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "kind": {"enum": ["a", "b"], "title": "Kind", "default": "a"}},
        "required": ["tree"],
        "$defs": {
            "Tree": {"type": "object", "properties": {"left": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]}}}
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
            "d0": {"type": "object", "properties": {"left": {"anyOf": [{"$ref": "#/$defs/d0"}, {"type": "null"}]}}}
        },
    }
