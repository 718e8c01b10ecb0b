"""Typed output as events while it is written, and over AG-UI and the AI SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from dragoman import Agent, Custom, Message, ModelRetry, RunFinished, serve
from dragoman.serve import AgentPolicy
from dragoman.testing import ScriptedModel, answer_with
from support.protocols import posted

pytestmark = pytest.mark.anyio


class Dish(BaseModel):
    name: str
    steps: list[str]


DISH = Dish(name="Pancakes", steps=[f"step {step}" for step in range(200)])


def values(events: list[Any]) -> list[Any]:
    return [event.value for event in events if isinstance(event, Custom) and event.name == "output"]


@pytest.mark.parametrize("name", ["openai:gpt-4o", "anthropic:claude-3-haiku-20240307"])
async def test_a_run_tells_its_output_while_it_grows(name: str) -> None:
    answers = [answer_with({"name": "Pan"}), answer_with(DISH)]
    agent = Agent(ScriptedModel.like(name, answers))
    async with agent.run("A dish", output_type=Dish, output_events=True) as run:
        events = [event async for event in run]
        assert (await run.result()).output == DISH
    told = values(events)
    assert told[-1] == DISH.model_dump() and isinstance(events[-1], RunFinished)
    start = told.index(None)
    assert start and all("Pan".startswith(value["name"]) for value in told[:start])
    sizes = [len(json.dumps(value)) for value in told[start + 1 :]]
    assert len(sizes) > 10 and sizes == sorted(sizes)
    assert sum(sizes) < 10 * sizes[-1]


async def test_what_is_wrapped_is_told_without_its_wrapping() -> None:
    agent = Agent(ScriptedModel(answer_with([1, 22, 333])))
    async with agent.run("Numbers", output_type=list[int], output_events=True) as run:
        assert values([event async for event in run])[-1] == [1, 22, 333]


async def test_a_text_has_no_such_events() -> None:
    async with Agent(ScriptedModel("Hello")).run("Hi", output_events=True) as run:
        assert not values([event async for event in run])


@pytest.mark.parametrize(
    ("wire", "mark"), [("ag_ui", '"name":"output"'), ("ai_sdk", '"type":"data-output"')]
)
async def test_clients_of_agent_protocols_see_the_value_grow(wire: str, mark: str) -> None:
    def check(_: Any, text: str) -> str:
        if "Pancakes" not in text:
            raise ModelRetry("Make pancakes.")
        return text

    answers = [answer_with({"name": "Waffles", "steps": []}), answer_with(DISH)]
    agent = Agent(ScriptedModel(answers), output_checks=[check])
    policy = AgentPolicy(output_schema=Dish.model_json_schema())
    app = serve.app(agent, policy=policy)
    async with app.router.lifespan_context(app):
        question = Message.user("A dish").replace(id="u1")
        answer = await posted(app, wire, "t", [question])
    lines = [line for line in answer.body.decode().splitlines() if mark in line]
    told = [json.loads(line.partition("data: ")[2]) for line in lines]
    shown = [chunk.get("value", chunk.get("data")) for chunk in told]
    assert shown[-1] == DISH.model_dump() and len(shown) > 10
    assert any(value and value.get("name") == "Waffles" for value in shown) and None in shown
