"""`Tool` and `@tool`: the context, methods, options, laziness."""

from __future__ import annotations

import asyncio
import copy
import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest

from dragoman.errors import ToolError
from dragoman.limits import Limits, Spent
from dragoman.message import ToolCallPart, ToolResultPart
from dragoman.orchestration import StreamingIterationResult
from dragoman.tools import Tool, ToolContext, ToolExecutionResult, tool, tool_map

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


@dataclass
class Deps:
    name: str


Alias = ToolContext[Deps]


def in_full(ctx: ToolContext[Deps], n: int) -> str:
    return ctx.deps.name * n


def bare_context(n: int, context: ToolContext) -> str:
    return context.deps.name * n


def by_alias(n: int, *, where: Alias) -> str:
    return where.deps.name * n


def for_checkers_only(ctx: ToolContext[Unknown], n: int) -> str:
    return ctx.deps.name * n


def optional(n: int, ctx: ToolContext[Deps] | None = None) -> str:
    return ctx.deps.name * n if ctx else ""


def evaluated(ctx, n): ...


evaluated.__annotations__ = {"ctx": ToolContext[Deps], "n": int}


@pytest.mark.parametrize(
    "function",
    [in_full, bare_context, by_alias, for_checkers_only, optional, evaluated],
    ids=lambda f: f.__name__,
)
def test_the_context_is_no_argument_of_the_model(function: Callable[..., str]) -> None:
    made = tool(function)
    assert list(made.spec.input_schema["properties"]) == ["n"]
    if function is not evaluated:
        assert run(made, {"n": 2}, Deps("ab")) == "abab"
    with pytest.raises(ToolError, match="is no argument of this tool"):
        run(made, {"n": 2, "ctx": {}, "context": {}, "where": {}}, Deps("ab"))


def test_a_raw_schema_takes_the_context_too_and_the_model_cannot_forge_it() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert (
        run(Tool("raw", handler=in_full, input_schema=schema), {"n": 2, "ctx": "forged"}, Deps("a"))
        == "aa"
    )


class Service:
    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    async def hello(self, times: int) -> str:
        """Greets."""
        return self.name * times

    @tool(sequential=True)
    def plain(self, ctx: ToolContext[int], times: int) -> str:
        return self.name * times * ctx.deps

    @staticmethod
    @tool
    def outside(times: int) -> str:
        return "s" * times

    @tool
    @staticmethod
    def inside(times: int) -> str:
        return "i" * times


def test_methods_are_tools_of_their_instance() -> None:
    one, two = Service("a"), Service("b")
    assert (one.hello.name, one.hello.description) == ("hello", "Greets.")
    assert list(one.hello.input_schema["properties"]) == ["times"]
    assert one.plain.sequential
    assert run(one.hello, {"times": "2"}) == "aa"
    assert run(two.hello, {"times": 1}) == "b"
    assert run(two.plain, {"times": 1}, 3) == "bbb"
    assert run(one.outside, {"times": 1}) == run(Service.outside, {"times": 1}) == "s"
    assert run(one.inside, {"times": 1}) == run(Service.inside, {"times": 1}) == "i"
    assert asyncio.run(one.hello(2)) == "aa"


def test_a_method_without_its_instance_is_explained() -> None:
    with pytest.raises(
        ToolError, match=r"Service.hello is a method; take the tool from an instance"
    ):
        Service.hello.spec  # noqa: B018 - building is the point


def test_options_and_overrides() -> None:
    made = tool(
        name="other",
        description="Said.",
        sequential=True,
        timeout=1.5,
        requires_approval=True,
        native={"w": {"k": 1}},
    )(google)
    assert (made.sequential, made.timeout, made.requires_approval) == (True, 1.5, True)
    assert (made.spec.name, made.spec.description, made.spec.native) == (
        "other",
        "Said.",
        {"w": {"k": 1}},
    )
    assert tool(description="")(google).description == ""


def test_callables_that_are_no_functions() -> None:
    class Adder:
        """Adds."""

        async def __call__(self, a: int, b: Literal[1] = 1) -> int:
            return a + b

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    assert run(tool(name="add")(Adder()), {"a": "1"}) == 2
    assert run(tool(name="half")(functools.partial(google, unit="F")), {"city": "Rome"}) == "Rome F"
    assert run(tool(wrapped(google)), {"city": "Rome"}) == "Rome C"
    assert (
        run(tool(wrapped(Service("x").hello.handler)), {"times": 2}) == "xx"
    )  # a plain function that gives a coroutine
    with pytest.raises(ToolError, match="has no name"):
        tool(lambda: None)


def test_a_tool_without_handler_has_an_empty_object_as_schema() -> None:
    assert Tool("ask", "Asks the user.").input_schema == {"type": "object", "properties": {}}
    with pytest.raises(ToolError, match="run by the client"):
        run(Tool("ask"), {})


def test_the_schema_of_a_plain_tool_comes_from_its_handler() -> None:
    made = Tool("weather", handler=google)
    assert made.input_schema == tool(google).input_schema
    assert len(made.input_schema) == 4
    assert repr(made.input_schema) == "<schema of google>"


def test_d12_decision_32_two_tools_of_one_name_are_an_error() -> None:
    first, second, other = Tool("a", "1"), Tool("a", "2"), Tool("b")
    with pytest.raises(ToolError, match="two tools are named 'a'"):
        tool_map([first, other, second])
    assert tool_map([first, other, first]) == {"a": first, "b": other}


def test_pydantic_is_imported_when_a_schema_is_first_read() -> None:
    code = """
import sys, dragoman.tools
@dragoman.tools.tool
def undocumented(x: int): ...
assert "docstring_parser" not in sys.modules
@dragoman.tools.tool
def f(x: int):
    "Does."
assert "pydantic" not in sys.modules
repr(f), bool(f.input_schema)
assert "pydantic" not in sys.modules
f.spec
assert "pydantic" in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()


def test_a_function_may_be_given_together_with_options() -> None:
    made = tool(google, name="other", timeout=1.5)
    assert (made.name, made.timeout, made.handler) == ("other", 1.5, google)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: ToolContext("d"), "deps"),
        (lambda: Tool("t"), "name"),
        (lambda: tool(google), "timeout"),
        (lambda: Limits(), "seconds"),
        (lambda: Spent(), "seconds"),
        (lambda: StreamingIterationResult(), "output"),
        (lambda: ToolExecutionResult(ToolCallPart("1", "t"), ToolResultPart("1", "t", 1)), "part"),
    ],
    ids=range(7),
)
def test_what_is_made_once_stays_as_it_is(make: Callable[[], Any], field: str) -> None:
    value = make()
    with pytest.raises(AttributeError):
        setattr(value, field, None)
    assert (value == copy.copy(value)) is not isinstance(value, Tool)


def test_a_method_keeps_the_schema_that_it_was_given() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 3}}}

    class Box:
        @tool(input_schema=schema)  # type: ignore[call-overload]
        def take(self, n: int) -> int:
            return n

    assert Box().take.input_schema == Box.take.input_schema == schema
    assert run(Box().take, {"n": 3}) == 3


def test_a_tool_of_what_is_no_method_is_the_same_one_wherever_it_is_taken_from() -> None:
    class Box:
        take = tool(name="take")(functools.partial(google, city="Oslo"))

    assert Box.take is Box().take is tool_map([Box.take, Box().take])["take"]
