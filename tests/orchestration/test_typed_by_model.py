"""Typed output where models of one provider differ: natively by those that take a schema, else by
`return_result`."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest

from dragoman import Agent, Role, profiles, wires
from dragoman.capability import Capability
from dragoman.loss import Lost
from dragoman.message import Message
from dragoman.model.fallbacks import fallback
from dragoman.providers.anthropic import PROVIDER
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel, answer_with, call
from dragoman.tools import tool
from support.traffic import exchanges


class Town(pydantic.BaseModel):
    name: str


class Tree(pydantic.BaseModel):
    name: str
    children: list[Tree] = []


@tool
def look_up(name: str) -> str:
    """Look a town up."""
    return name


pytestmark = pytest.mark.anyio

NEW = (
    "claude-opus-4-1",
    "claude-opus-4-1-20250805",
    "claude-sonnet-4-5",
    "claude-sonnet-4-5-20250929",
    "claude-haiku-4-5-20251001",
    "claude-sonnet-4-6",
    "claude-opus-5-5",
    "claude-of-the-future",
)
OLD = (
    "claude-2.1",
    "claude-3-haiku-20240307",
    "claude-3-7-sonnet-latest",
    "claude-opus-4-20250514",
    "claude-sonnet-4-0",
    "claude-sonnet-4",
)


def model(name: str, answers: Any) -> ScriptedModel:
    return ScriptedModel.like(f"anthropic:{name}", answers)


@pytest.mark.mend("3.8")
@pytest.mark.parametrize("name", NEW)
async def test_decision_11_models_with_schemas_answer_by_them(name: str) -> None:
    script = model(name, [call("look_up", name="Oslo"), answer_with({"name": "Oslo"})])
    result = await Agent(script, tools=[look_up]).send_for("which town?", Town)
    assert result.output == Town(name="Oslo")
    assert [message.role for message in result.messages] == [
        Role.USER,
        Role.MODEL,
        Role.USER,
        Role.MODEL,
    ]
    for body in script.bodies:
        assert body["output_config"]["format"]["schema"]["properties"] == {
            "name": {"title": "Name", "type": "string"}
        }
        assert [offered["name"] for offered in body["tools"]] == ["look_up"]


@pytest.mark.mend("3.8")
@pytest.mark.parametrize("name", OLD)
async def test_older_models_answer_by_a_tool(name: str) -> None:
    script = model(name, [answer_with({"name": "Oslo"})])
    assert (await Agent(script).send_for("which town?", Town)).output == Town(name="Oslo")
    assert "output_config" not in script.bodies[0]
    assert script.bodies[0]["tools"][-1]["name"] == "return_result"


@pytest.mark.mend("3.8")
async def test_a_schema_that_the_wire_cannot_say_goes_by_the_tool() -> None:
    value: dict[str, Any] = {"name": "a", "children": [{"name": "b", "children": []}]}
    script = model("claude-sonnet-4-6", [answer_with(value)])
    result = await Agent(script).send_for("a tree", Tree)
    assert result.output == Tree.model_validate(value)
    assert not result.losses
    assert script.bodies[0]["tools"][-1]["name"] == "return_result"


@pytest.mark.mend("3.8")
async def test_a_fallback_to_an_older_model_takes_the_means_of_both() -> None:
    old = model("claude-3-haiku", [])
    new = model("claude-sonnet-4-6", [answer_with({"name": "Oslo"})])
    assert (
        await Agent(new, middleware=[fallback(old)]).send_for("which town?", Town)
    ).output.name == "Oslo"
    assert new.bodies[0]["tools"][-1]["name"] == "return_result"


@pytest.mark.mend("3.8")
def test_an_older_model_is_sent_no_schema() -> None:
    wire = wires.get("anthropic")
    for name in OLD:
        request = ModelRequest(name, (Message.user("hi"),), output_schema=Town.model_json_schema())
        profile = profiles.get(f"anthropic:{name}")
        request, losses = profiles.lower(request, profile, wire="anthropic")
        assert "output_config" not in wire.dump_request(request)
        assert [loss.what for loss in losses] == [Lost.output_schema]


@pytest.mark.mend("3.8")
@pytest.mark.slow
def test_each_model_that_was_recorded_with_a_schema_has_the_capability() -> None:
    names: list[str] = []
    for exchange in exchanges("anthropic"):
        request: dict[str, Any] = exchange.request or {}
        body: dict[str, Any] = (
            request if "model" in request else json.loads(request.get("body") or "{}")
        )
        config: dict[str, Any] = body.get("output_config") or {}
        if exchange.status != 200 or not (body.get("output_format") or config.get("format")):
            continue
        names.append(body["model"])
        assert Capability.typed_output_with_tools in PROVIDER.for_model(body["model"]).capabilities
    assert len(names) >= 39
