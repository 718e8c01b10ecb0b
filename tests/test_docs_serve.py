"""The documents on servers name what there is to set and to see: all of it, with what holds without
a setting."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.model import fetch_files
from dragoman.testing import ScriptedModel
from support.asgi import exchange

GUIDES = Path(__file__).parents[1] / "docs" / "guides"
UNITS = {"MiB": 2**20, "GiB": 2**30, "days": 24 * 3600, "levels": 1, "commas": 1}


def read(guide: str) -> str:
    return (GUIDES / guide).read_text("utf-8")


def rows(guide: str, heading: str) -> list[list[str]]:
    """The cells of the table whose first cell is this one."""
    table = read(guide).partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [re.split(r" \| ", line.strip("| ")) for line in table.splitlines()[2:]]


def amounts(words: str) -> list[float | None]:
    """`32 MiB; none` → the numbers."""
    found = re.findall(r"none|([\d,.]+)(?: (\w+))?", words)
    return [
        float(number.replace(",", "")) * UNITS.get(unit, 1) if number else None
        for number, unit in found
    ]


def test_every_limit_of_a_server_is_told_with_its_default() -> None:
    told: dict[str, float | None] = {}
    for names, default, *_ in rows("server-security.md", "limit"):
        told.update(zip(re.findall(r"`(\w+)`", names), amounts(default), strict=False))
    limits = serve.ServerLimits()
    assert told == {name: getattr(limits, name) for name in limits.__struct_fields__}


def test_every_field_of_a_policy_is_told_with_its_values() -> None:
    told = {cells[0].strip("`"): cells for cells in rows("agent-endpoint.md", "`AgentPolicy`")}
    assert set(told) == set(serve.AgentPolicy.__struct_fields__)
    policy = serve.AgentPolicy()
    defaults = {name: str(getattr(policy, name)) for name in told}
    assert {name: cells[2].strip("`") for name, cells in told.items()} == {
        **defaults,
        "settings": "all",
    }


def test_every_argument_of_an_application_stands_in_a_guide() -> None:
    text = "\n".join(path.read_text("utf-8") for path in GUIDES.glob("*.md"))
    for function, left_out in (
        (serve.app, {"agents"}),
        (serve.Gateway.__init__, {"self", "models", "environment"}),
    ):
        for name in set(inspect.signature(function).parameters) - left_out:
            assert re.search(rf"\b{name}\b ?=", text), (function, name)


def test_every_bound_of_fetching_is_told_with_its_default() -> None:
    told = {
        name.strip("`"): amounts(default)[0]
        for name, _, default in rows("files-by-url.md", "bound")
    }
    defaults = {
        name: each.default for name, each in inspect.signature(fetch_files).parameters.items()
    }
    assert told == {name: defaults[name] for name in told}
    assert len(told) == 5


@pytest.mark.anyio
async def test_every_metric_is_told() -> None:
    app = serve.app(Agent(ScriptedModel("x")))
    body: Any = (await exchange(app, "GET", "/metrics")).body
    there = set(
        re.findall(rb"^# TYPE (\w+?)(?:_total)? (?:counter|histogram|gauge)$", body, re.MULTILINE)
    )
    told = re.findall(r"`(dragoman_\w+?)(?:_total)?(?:\{[^`]*)?`", read("running-a-server.md"))
    assert {name.decode() for name in there if not name.endswith(b"_created")} == set(told)
