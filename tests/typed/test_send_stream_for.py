"""`send_stream_for`: values while they are being written, by each way of typed output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Len
from pydantic import BaseModel
from pydantic_core import to_json

from dragoman import Agent, Chat, ChatResult, Limits, Partial, RunFinished, ToolSpec, tool
from dragoman.errors import ProviderConnectionError, StreamCutError, TypedOutputError
from dragoman.message import ThinkingPart
from dragoman.model.fallbacks import fallback
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel, answer_with, call
from dragoman.testing.scripted_answer import Answer

pytestmark = pytest.mark.anyio


class Recipe(BaseModel):
    title: str
    steps: list[str]
    level: Literal["easy", "hard"] = "easy"


PANCAKES = Recipe(title="Pancakes", steps=["mix", "fry"], level="hard")
WAFFLES = Recipe(title="Waffles", steps=["heat"])
BAD = {"title": "Pan", "steps": "mix"}


@tool
def look_up(name: str) -> str:
    """Look a dish up."""
    return name


WAYS: dict[str, tuple[str, list[Any], list[Any]]] = {
    "schema": ("openai:gpt-4o", [], []),
    "schema beside tools": ("openai:gpt-4o", [look_up], [call("look_up", name="p")]),
    "return_result": ("anthropic:claude-3-haiku-20240307", [], []),
    "return_result beside tools": (
        "anthropic:claude-3-haiku-20240307",
        [look_up],
        [call("look_up", name="p")],
    ),
    "two phases": ("google:gemini-2.0-flash", [look_up], [call("look_up", name="p"), "I know."]),
    "json in text": ("groq:groq/compound", [], []),
}
each_way = pytest.mark.parametrize("way", WAYS)


def agent_of(way: str, *answers: Any, **arguments: Any) -> Agent[Any]:
    name, tools, before = WAYS[way]
    return Agent(ScriptedModel.like(name, [*before, *answers]), tools=tools, **arguments)


def written(value: Any, size: int = 3) -> Callable[[ModelRequest], Iterator[str]]:
    """An answer by a schema whose text comes in small pieces."""
    text = to_json(value).decode()

    def pieces(_: ModelRequest) -> Iterator[str]:
        for start in range(0, len(text), size):
            yield text[start : start + size]

    return pieces


def answer(way: str, value: Any) -> Any:
    """A list as the way writes it: `answer_with` reads the schema, which stands in a text here."""
    return written({"result": value}) if way == "json in text" else answer_with(value)


async def read(chunks: Any) -> list[ChatResult[Any]]:
    return [chunk async for chunk in chunks]


@each_way
async def test_the_last_chunk_is_the_result_and_those_before_grow(way):
    expected = await agent_of(way, answer_with(PANCAKES)).send_for("A dish", Recipe)
    chunks = await read(agent_of(way, answer_with(PANCAKES)).send_stream_for("A dish", Recipe))
    assert [chunk.final for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    last = chunks[-1]
    assert last.output == expected.output == PANCAKES
    assert [message.text for message in last.messages] == [
        message.text for message in expected.messages
    ]
    assert last.usage == expected.usage and len(last.calls) == len(expected.calls)
    before = 0
    for chunk in chunks[:-1]:
        assert isinstance(chunk.output, Partial) and not chunk.messages and chunk.usage is None
        assert chunk.output.title in (None, "Pancakes")
        assert chunk.output.level in (None, "hard")
        assert ["mix", "fry"][: len(chunk.output.steps or [])] == (chunk.output.steps or [])
        assert len(str(chunk.output)) >= before or not chunk.output
        before = len(str(chunk.output))
    assert chunks[-2].output == PANCAKES.model_dump()


@each_way
async def test_an_answer_that_is_not_valid_is_retracted_and_starts_again(way):
    agent = agent_of(way, answer_with(BAD), answer_with(PANCAKES))
    chunks = await read(agent.send_stream_for("A dish", Recipe))
    [void] = [chunk for chunk in chunks if chunk.retracted]
    index = chunks.index(void)
    assert not void.output and not void.final and "Pan" in void.retracted
    assert any(chunk.output.steps == "mix" for chunk in chunks[:index])
    assert all(chunk.output.title in (None, "Pancakes") for chunk in chunks[index:])
    assert chunks[-1].output == PANCAKES and chunks[-1].final


@each_way
async def test_an_answer_that_stays_wrong_is_an_error(way):
    shown: list[ChatResult[Any]] = []
    with pytest.raises(TypedOutputError) as caught:
        async for chunk in agent_of(way, answer_with(BAD), answer_with(BAD)).send_stream_for(
            "A dish", Recipe
        ):
            shown.append(chunk)
    assert not any(chunk.final for chunk in shown)
    assert caught.value.output and caught.value.result.messages
    assert sum(1 for chunk in shown if chunk.retracted) == 1


@each_way
@pytest.mark.parametrize("output_type", [list[Recipe], Annotated[list[Recipe], Len(2)], set[int]])
async def test_elements_come_once_whole_and_validated(way, output_type):
    value: list[Any] = [1, 22, 333] if output_type == set[int] else [PANCAKES, WAFFLES]
    agent = agent_of(way, answer(way, value))
    chunks = await read(agent.send_stream_for("Dishes", output_type, elements=True))
    assert [chunk.output for chunk in chunks[:-1]] == value
    assert [type(chunk.output) for chunk in chunks[:-1]] == [type(element) for element in value]
    assert chunks[-1].final and chunks[-1].output == (
        set(value) if output_type == set[int] else value
    )


@each_way
async def test_elements_of_a_wrong_answer_are_retracted(way):
    wrong, right = [PANCAKES, BAD, PANCAKES], [WAFFLES, PANCAKES]
    agent = agent_of(way, answer(way, wrong), answer(way, right))
    chunks = await read(agent.send_stream_for("Dishes", list[Recipe], elements=True))
    outputs = [None if chunk.retracted else chunk.output for chunk in chunks]
    assert outputs == [PANCAKES, None, WAFFLES, PANCAKES, [WAFFLES, PANCAKES]]


async def test_an_element_comes_as_soon_as_it_is_whole():
    agent = agent_of("schema", written({"result": [1, 22, 333]}, 1))
    seen: list[int] = []
    async with aclosing(agent.send_stream_for("Numbers", list[int], elements=True)) as chunks:
        async for chunk in chunks:
            seen.append(chunk.output)
            if len(seen) == 2:
                break
    # The third is not written yet, and the run is over.
    assert seen == [1, 22]


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_a_text_that_is_being_written_shows_on_demand(size):
    dish = Recipe(title="Crêpe \\ “fine” 🥞", steps=["a\nb"])
    agent = agent_of("schema", written(dish, size), written(dish, size))
    chunks = await read(agent.send_stream_for("A dish", Recipe))
    assert {chunk.output.title for chunk in chunks} == {None, dish.title} - (
        {None} if size == 1000 else set()
    )
    chunks = await read(agent.send_stream_for("A dish", Recipe, growing_text=True))
    titles = [chunk.output.title or "" for chunk in chunks]
    assert all(dish.title.startswith(title) for title in titles)
    assert titles == sorted(titles, key=len)
    assert len(set(titles)) > 5 or size > 1
    assert chunks[-1].output == dish


async def test_thinking_and_what_tools_emit_come_along():
    agent = agent_of("schema", [ThinkingPart("Hm."), PANCAKES.model_dump_json()])
    chunks = await read(agent.send_stream_for("A dish", Recipe))
    assert "".join(chunk.thinking or "" for chunk in chunks if not chunk.final) == "Hm."
    assert chunks[-1].thinking == "Hm."


@pytest.mark.parametrize("output_type", [int, int | str, Literal["a", "b"], Recipe | None])
async def test_what_is_no_object_and_no_list_is_certain_at_the_end(output_type):
    value = {int: 12, Literal["a", "b"]: "b"}.get(output_type, PANCAKES)
    if output_type == int | str:
        value = "twelve"
    agent = agent_of("schema", answer_with(value))
    chunks = await read(agent.send_stream_for("A value", output_type))
    assert chunks[-1].output == value and chunks[-1].final
    assert all(isinstance(chunk.output, Partial) for chunk in chunks[:-1])
    if output_type == Recipe | None:
        assert chunks[-2].output.title == "Pancakes"
    else:
        assert not any(chunk.output for chunk in chunks[:-1])


@pytest.mark.parametrize(
    ("output_type", "options", "words"),
    [
        (str, {}, "gives text"),
        (str, {"elements": True}, "no list"),
        (Recipe, {"elements": True}, "no list"),
        (dict[str, int], {"elements": True}, "no list"),
        (tuple[int, str], {"elements": True}, "no list"),
        ({"type": "object"}, {}, "output_schema="),
        (Recipe, {"output_typ": 1}, "output_typ"),
    ],
)
async def test_a_wrong_argument_is_named_and_nothing_sent(output_type, options, words):
    model = ScriptedModel([])
    with pytest.raises(TypeError, match=words):
        await read(Agent(model).send_stream_for("A dish", output_type, **options))
    assert not model.requests


@pytest.mark.parametrize("output_type", [tuple[int, ...], frozenset[int], list])
async def test_lists_of_other_names_have_elements(output_type):
    agent = agent_of("schema", answer_with([1, 2]))
    chunks = await read(agent.send_stream_for("Numbers", output_type, elements=True))
    assert [chunk.output for chunk in chunks[:-1]] == [1, 2]


def test_the_synchronous_form():
    agent = agent_of("schema", answer_with(PANCAKES), answer_with([1, 2]))
    *partials, last = agent.send_stream_for_sync("A dish", Recipe)
    assert last.final and last.output == PANCAKES and partials[-1].output.title == "Pancakes"
    assert [
        chunk.output for chunk in agent.send_stream_for_sync("A dish", list[int], elements=True)
    ]
    agent.close_sync()


async def test_a_chat_keeps_what_was_said():
    chat = Chat(agent_of("schema", answer_with(PANCAKES), answer_with(WAFFLES)))
    await read(chat.send_stream_for("A dish", Recipe))
    async with aclosing(chat.send_stream_for("Another", Recipe)) as chunks:
        async for chunk in chunks:
            if chunk.output.title:
                break
    assert [message.text for message in chat.history[:3]] == [
        "A dish",
        PANCAKES.model_dump_json(),
        "Another",
    ]
    assert chat.history[3].text.startswith('{"title":"Waffles"')
    *_, last = Chat(agent_of("schema", answer_with(WAFFLES))).send_stream_for_sync("A dish", Recipe)
    assert last.output == WAFFLES


async def test_a_run_has_partials_also_by_a_schema_alone():
    schema = {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}
    agent = agent_of("schema", '{"a": [1, 2]}')
    async with agent.run("Numbers", output_schema=schema) as run:
        chunks = await read(run.partials())
    assert chunks[-1].output == '{"a": [1, 2]}' and chunks[-1].final
    assert chunks[-2].output.a == [1, 2]


async def test_a_run_that_waits_has_no_final_chunk():
    agent = agent_of("schema", call("pick", name="x"))
    tools = [ToolSpec("pick", "Picks.", {"type": "object"})]
    chunks = await read(agent.send_stream_for("A dish", Recipe, tools=tools))
    assert not any(chunk.final for chunk in chunks)
    assert chunks[-1].pending and isinstance(chunks[-1].output, Partial)


async def test_a_stream_that_breaks_raises_what_broke_it():
    answer = Answer(content=PANCAKES.model_dump_json(), cut=True)
    with pytest.raises((StreamCutError, ProviderConnectionError)) as caught:
        await read(agent_of("schema", answer).send_stream_for("A dish", Recipe))
    assert caught.value.result is not None


async def test_a_fallback_begins_again():
    broken = ScriptedModel.like(
        "openai:gpt-4o", [Answer(content=PANCAKES.model_dump_json(), cut=True, share=0.8)]
    )
    good = ScriptedModel.like("openai:gpt-4o-mini", [answer_with(WAFFLES)])
    agent = Agent(fallback(broken, good))
    chunks = await read(agent.send_stream_for("A dish", Recipe))
    assert any(chunk.output.title == "Pancakes" for chunk in chunks[:-1])
    index = max(index for index, chunk in enumerate(chunks) if chunk.retracted)
    assert all(chunk.output.title != "Pancakes" for chunk in chunks[index:])
    assert chunks[-1].output == WAFFLES


async def test_leaving_early_ends_the_run():
    ended: list[str] = []
    model = ScriptedModel.like("openai:gpt-4o", [written(PANCAKES, 1)])
    agent = Agent(model)
    async with agent.run("A dish", output_type=Recipe) as run:
        async with aclosing(run.partials()) as chunks:
            async for chunk in chunks:
                if chunk.output.title:
                    break
        ended += [event.outcome for event in await run.leave() if isinstance(event, RunFinished)]
    assert ended == ["cancelled"]
    with pytest.raises(Exception, match="limit"):
        await read(
            Agent(ScriptedModel([answer_with(PANCAKES)])).send_stream_for(
                "A dish", Recipe, limits=Limits(model_calls=0)
            )
        )


async def test_a_value_of_100_kb_costs_linear_work():
    """Counts calls of Python functions in the whole way from the model's bytes to the chunks."""

    async def count(rows: int) -> tuple[int, int]:
        value = {"result": [{"title": f"dish {row}", "steps": ["a" * 30]} for row in range(rows)]}
        agent, calls, chunks = agent_of("schema", written(value, 40)), 0, 0

        def profile(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            async for _ in agent.send_stream_for("Dishes", list[Recipe]):
                chunks += 1
        finally:
            sys.setprofile(None)
        return calls, chunks

    await count(1)
    (few, few_chunks), (many, many_chunks) = await count(400), await count(1600)
    assert many_chunks > 3.5 * few_chunks and 1600 * 65 > 100_000
    assert many < 4.6 * few
