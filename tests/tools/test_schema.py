"""The schema that a signature gives, and the arguments that it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from dragoman.errors import ToolError
from dragoman.message import ToolCallPart
from dragoman.tools import Tool, ToolContext, tool

if TYPE_CHECKING:
    from somewhere import Unknown  # exists for nobody, as with types imported for checkers only


def run(made: Tool, arguments: Any, deps: Any = None) -> Any:
    return asyncio.run(made.run(ToolCallPart("1", made.name, arguments), ToolContext(deps)))


def google(city: str, unit: Literal["C", "F"] = "C") -> str:
    """Tells the weather.

    Only of today.

    Args:
        city: Where,
            as the locals say.
        unit (str): Of the temperature.

    Returns:
        A sentence.
    """
    return f"{city} {unit}"


def numpy(city: str, unit: Literal["C", "F"] = "C") -> str:
    """Tells the weather.

    Only of today.

    Parameters
    ----------
    city : str
        Where, as the locals say.
    unit : str, optional
        Of the temperature.

    Returns
    -------
    str
        A sentence.
    """
    return f"{city} {unit}"


def rest(city: str, unit: Literal["C", "F"] = "C") -> str:
    """Tells the weather.

    Only of today.

    :param city: Where, as the locals say.
    :param unit: Of the temperature.
    :returns: A sentence.
    """
    return f"{city} {unit}"


@pytest.mark.parametrize("function", [google, numpy, rest])
def test_every_docstring_style_gives_the_same_tool(function: Callable[..., str]) -> None:
    made = tool(function)
    assert (made.name, made.description) == (
        function.__name__,
        "Tells the weather.\n\nOnly of today.",
    )
    assert made.spec.input_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where, as the locals say."},
            "unit": {
                "type": "string",
                "enum": ["C", "F"],
                "default": "C",
                "description": "Of the temperature.",
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert made("Rome") == "Rome C"


def test_numpy_style_may_name_two_parameters_at_once() -> None:
    @tool
    def plot(x: int, y: int) -> None:
        """Plots.

        Parameters
        ----------
        x, y : int
            A coordinate.
        """

    assert [each["description"] for each in plot.input_schema["properties"].values()] == [
        "A coordinate."
    ] * 2


def test_a_docstring_of_parameters_alone_describes_them_and_not_the_tool() -> None:
    @tool
    def plot(x: int, y: int, z: int) -> None:
        """:param x: A coordinate,
            of two lines.
        :param y:
        :param other: Of nobody.
        """

    assert plot.description == ""
    descriptions = [each.get("description") for each in plot.input_schema["properties"].values()]
    assert descriptions == ["A coordinate, of two lines.", None, None]


def test_without_annotation_and_docstring_anything_is_taken() -> None:
    @tool
    def bare(value): ...

    assert bare.description == ""
    assert bare.input_schema["properties"] == {"value": {}}


class Shape(Enum):
    ROUND = "round"
    FLAT = "flat"


class Place(BaseModel):
    """Somewhere."""

    name: str
    title: str = Field("none", description="What it is called.")


@dataclass
class Point:
    x: int
    y: int = 0


class Extra(TypedDict):
    depth: int
    note: NotRequired[str]


NO_JSON = object()


@tool
async def everything(
    place: Place,
    point: Point,
    extra: Extra,
    shape: Shape,
    day: date,
    tags: set[str],
    maybe: Annotated[str, Field(title="Dropped")] | None = None,
    count: Annotated[int, Field(ge=1, description="How many.")] = 3,
    choice: Literal["a", 1] = "a",
    title: str = "t",
    strange: Any = NO_JSON,
) -> list[Any]:
    """Takes everything.

    Args:
        count: loses against the Field's description
        maybe: Or nothing.
    """
    return [place, point, extra, shape, day, tags, maybe, count, choice, title]


def test_nested_types_defaults_and_constraints_are_in_the_schema() -> None:
    schema = everything.spec.input_schema
    properties = schema["properties"]
    assert properties["count"] == {
        "type": "integer",
        "minimum": 1,
        "description": "How many.",
        "default": 3,
    }
    assert properties["maybe"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert properties["maybe"]["default"] is None
    assert properties["maybe"]["description"] == "Or nothing."
    assert properties["choice"] == {"enum": ["a", 1], "default": "a"}
    assert properties["place"] == {"$ref": "#/$defs/Place"}
    assert properties["strange"] == {}  # its default is no JSON
    assert schema["$defs"]["Extra"]["required"] == ["depth"]
    assert schema["$defs"]["Point"]["properties"]["y"] == {"type": "integer", "default": 0}
    assert schema["required"] == ["place", "point", "extra", "shape", "day", "tags"]


def test_titles_are_dropped_but_not_what_is_called_title() -> None:
    schema = everything.spec.input_schema
    assert "title" not in schema
    assert "title" not in schema["$defs"]["Place"]
    assert schema["properties"]["title"] == {"type": "string", "default": "t"}
    assert schema["$defs"]["Place"]["properties"]["title"]["description"] == "What it is called."

    @tool
    def marked(
        x: Annotated[dict[str, str], Field(examples=[{"title": "kept"}])] = {"title": "kept"},
    ) -> None: ...

    assert marked.input_schema["properties"]["x"]["default"] == {"title": "kept"}
    assert marked.input_schema["properties"]["x"]["examples"] == [{"title": "kept"}]


class title(BaseModel):
    """A model of that name."""

    a: int


class default(BaseModel):
    b: int


Odd = Annotated[dict[str, Any], Field(json_schema_extra=lambda schema: schema.update(ODD))]
ODD: dict[str, Any] = {}


def test_titles_are_dropped_wherever_names_stand_and_nowhere_else() -> None:
    """What is under a name is a schema, also where the name is that of a keyword; what is a value
    stays as it is."""

    plain = {"title": "x"}
    extra: dict[str, Any] = {
        **{
            key: {"title": {"type": "null", "title": "gone"}}
            for key in ("patternProperties", "dependentSchemas")
        },
        **dict.fromkeys(("const", "default"), plain),
        **{key: [plain] for key in ("enum", "examples")},
        "oneOf": [{"title": "gone", "type": "null"}],
        "not": {"title": "gone"},
    }

    ODD.update(extra)

    @tool
    def look(one: title, two: default, three: Odd) -> None: ...

    schema = look.input_schema
    objects = {"type": "object"}
    assert schema["$defs"] == {
        "title": {
            **objects,
            "description": "A model of that name.",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
        },
        "default": {**objects, "properties": {"b": {"type": "integer"}}, "required": ["b"]},
    }
    assert schema["properties"]["three"] == {
        **objects,
        "additionalProperties": True,
        **{key: {"title": {"type": "null"}} for key in ("patternProperties", "dependentSchemas")},
        **dict.fromkeys(("const", "default"), plain),
        **{key: [plain] for key in ("enum", "examples")},
        "oneOf": [{"type": "null"}],
        "not": {},
    }


def test_arguments_are_converted_before_the_call() -> None:
    """Decision 6, against D-43."""
    arguments = {
        "place": {"name": "Rome"},
        "point": {"x": "4"},
        "extra": {"depth": 2},
        "shape": "flat",
        "day": "2026-01-02",
        "tags": ["a", "b", "a"],
    }
    assert run(everything, arguments) == [
        Place(name="Rome"),
        Point(4, 0),
        {"depth": 2},
        Shape.FLAT,
        date(2026, 1, 2),
        {"a", "b"},
        None,
        3,
        "a",
        "t",
    ]


def test_arguments_that_do_not_fit_are_explained() -> None:
    """Decision 6: which argument, what was expected, what came."""
    with pytest.raises(ToolError) as caught:
        run(tool(google), {"unit": "K", "town": "Rome"})
    assert str(caught.value) == (
        "invalid arguments: city: is required, but was not given; unit: Input should be 'C' or 'F', got 'K'; "
        "town: is no argument of this tool"
    )


VALUES = {
    "whole": st.integers(-(2**53), 2**53),
    "real": st.floats(allow_nan=False, allow_infinity=False),
    "text": st.text(),
    "flag": st.booleans(),
    "texts": st.lists(st.text()),
    "table": st.dictionaries(st.text(), st.integers()),
    "json": st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5
    ),
}


@tool
def echo(
    whole: int = 0,
    real: float = 0.0,
    text: str = "",
    flag: bool = False,
    texts: list[str] = [],
    table: dict[str, int] = {},
    json: Any = None,
) -> dict[str, Any]:
    return locals()


@given(st.fixed_dictionaries({}, optional=VALUES))
def test_what_is_of_the_right_type_comes_through_unchanged(arguments: dict[str, Any]) -> None:
    assert isinstance(echo.input_schema, object)
    assert echo(**echo.input_schema.convert(arguments)) == {
        **echo(),
        **arguments,
    }  # SignatureSchema


def test_a_handler_cannot_change_the_call() -> None:
    @tool
    def spoil(items: Any) -> None:
        items.clear()

    raw = Tool("spoil", handler=lambda items: items.clear(), input_schema={"type": "object"})
    for made in (spoil, raw):
        call = ToolCallPart("1", "spoil", {"items": [1]})
        asyncio.run(made.run(call, ToolContext(None)))
        assert call.arguments == {"items": [1]}


def test_more_keywords_become_additional_properties() -> None:
    @tool
    def typed(a: int, **more: int) -> dict[str, Any]:
        """Adds.

        Args:
            a: One.
            **more: Others; they have no place of their own in the schema.
        """
        return {"a": a, **more}

    @tool
    def untyped(**more) -> dict[str, Any]:
        return more

    assert typed.input_schema["additionalProperties"] == {"type": "integer"}
    assert untyped.input_schema["additionalProperties"] in (True, {})
    assert run(typed, {"a": 1, "b": "2"}) == {"a": 1, "b": 2}
    assert run(untyped, {"b": "2"}) == {"b": "2"}
    with pytest.raises(ToolError, match="b: Input should be a valid integer"):
        run(typed, {"a": 1, "b": "x"})


def test_a_field_may_stand_as_default() -> None:
    @tool
    def fields(a: int = Field(description="needed"), b: int = Field(default=5, le=9)) -> list[int]:
        return [a, b]

    assert fields.input_schema["required"] == ["a"]
    assert fields.input_schema["properties"]["b"] == {"type": "integer", "default": 5, "maximum": 9}
    assert run(fields, {"a": 1}) == [1, 5]


def test_what_cannot_be_named_is_rejected_when_decorated() -> None:
    def many(*values: int) -> None: ...
    def first(value: int, /) -> None: ...

    for function, parameter in ((many, r"\*values"), (first, "value")):
        with pytest.raises(ToolError, match=f"{function.__name__}: .*{parameter}"):
            tool(function)


class Strange:
    """pydantic knows nothing of it."""


def test_what_has_no_schema_is_named_at_first_use() -> None:
    @tool
    def odd(fine: int, wrong: Strange) -> None: ...

    @tool
    def lost(fine: int, wrong: Unknown) -> None: ...

    @tool
    def called(fine: int, wrong: Callable[[], int]) -> None: ...

    for made in (odd, lost, called):
        with pytest.raises(ToolError, match=rf"{made.name}: .*'wrong'"):
            made.spec  # noqa: B018 - building is the point


def test_a_plain_function_may_have_a_parameter_called_self() -> None:
    @tool
    def weigh(self: float, cls: int) -> float:
        return self * cls

    assert weigh.input_schema["required"] == ["self", "cls"]
    assert run(weigh, {"self": 1.5, "cls": 2}) == 3.0
