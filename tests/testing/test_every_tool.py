"""A model that does what it is asked for: every tool is called with what fits, every schema
filled."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter

from dragoman import Agent, wires
from dragoman.testing import ScriptedModel, call_every_tool
from dragoman.testing.every_tool import make_value

pytestmark = pytest.mark.anyio


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Node(BaseModel):
    name: Annotated[str, Field(min_length=6, max_length=9)]
    colour: Colour
    below: list[Node]
    size: Annotated[float, Field(gt=3, le=4)]


@dataclass
class Point:
    x: int
    y: int = 7


KINDS: list[Any] = [
    int,
    str,
    bool,
    None,
    list[int],
    tuple[int, str],
    dict[str, int],
    Point,
    Node,
    Literal["a", "b"],
    Node | Point,
    dt.date,
    AwareDatetime,
    uuid.UUID,
    Annotated[int, Field(ge=10, multiple_of=5)],
    Annotated[int, Field(ge=7, multiple_of=5)],
    Annotated[float, Field(gt=3, lt=3.5)],
    Annotated[int, Field(le=-3)],
    Annotated[int, Field(lt=-3)],
    Annotated[list[Colour], Field(min_length=3)],
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_value_fits_its_schema_and_its_type(kind: Any) -> None:
    adapter = TypeAdapter(kind)
    value = make_value(adapter.json_schema())
    assert not list(Draft202012Validator(adapter.json_schema()).iter_errors(value))
    adapter.validate_python(value)


@pytest.mark.parametrize(
    "schema",
    [
        {
            "allOf": [{"$ref": "#/$defs/a"}, {"required": ["x"]}],
            "$defs": {"a": {"properties": {"x": {"type": "integer"}}}},
        },
        {"type": ["null", "string"]},
        {"oneOf": [{"const": 3}, {"type": "string"}]},
        {"type": "string", "default": "here"},
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}],
            "items": {"type": "string"},
            "minItems": 3,
        },
        True,
        {},
    ],
    ids=str,
)
def test_a_value_fits_a_schema_that_pydantic_does_not_write(schema: Any) -> None:
    assert not list(Draft202012Validator(schema).iter_errors(make_value(schema)))


def test_a_schema_that_holds_itself_has_an_end() -> None:
    assert make_value(
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    )["next"]["next"]


@pytest.mark.parametrize("wire", wires.names("model"))
async def test_every_tool_of_an_agent_is_run_and_its_output_filled(wire: str) -> None:
    ran: list[str] = []

    def find(node: Node, colours: list[Colour]) -> str:
        """Finds."""
        ran.append(node.name)
        return "found"

    def store(point: Point, when: dt.date) -> None:
        """Stores."""
        ran.append(str(point.x))

    model = ScriptedModel(call_every_tool, wire=wire)
    result = await Agent(model, tools=[find, store]).send_for("Do it.", Point)
    assert (sorted(ran), result.output.x) == (["1", "textxx"], 1)
    assert (await Agent(model).send("Hi")).output == "Done."
