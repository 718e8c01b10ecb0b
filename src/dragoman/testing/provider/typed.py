"""Checks of typed output with a provider: native, by a tool, or in two phases, as its capabilities
say."""

from __future__ import annotations

from typing import Literal

import msgspec
from pydantic import BaseModel

from dragoman.capability import Capability
from dragoman.errors import TypedOutputError
from dragoman.json_bytes import Json
from dragoman.message import Role, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.testing.check import Skipped, require, require_equal
from dragoman.testing.provider.bench import (
    ProviderBench,
    make_call,
    make_weather_tool,
    provider_check,
    reply_with_value,
)
from dragoman.testing.samples import SCHEMA

__all__ = [
    "lists_and_numbers_are_typed",
    "nested_types_are_filled",
    "recursive_types_are_filled",
    "typed_output_comes_after_tools",
    "typed_output_is_repaired_once",
    "typed_output_is_streamed",
    "types_are_filled",
]

_LOOK = "the output schema in the wire's request, tool_choice, and typed_output in the record"

_WITH_TOOLS = (Capability.typed_output, Capability.typed_output_with_tools)


class _City(BaseModel):
    name: str
    country: str


class _Stop(BaseModel):
    city: _City
    by: Literal["bus", "train"]
    nights: int | None


class _Tree(BaseModel):
    name: str
    children: list[_Tree]


class _Trip(BaseModel):
    stops: list[_Stop]
    price: float
    paid: bool


@provider_check(Capability.chat, shows=(Capability.typed_output,), look=_LOOK, live=True)
async def types_are_filled(bench: ProviderBench) -> None:
    """`send_for` returns a value of the type. The schema arrives natively or as that of a tool."""
    _skip_without_types(bench)
    async with bench.agent(reply_with_value({"name": "Åbo", "country": "Finland"})) as agent:
        result = await agent.send_for("Åbo is a city in Finland. Give it as a value.", _City)
    require(type(result.output) is _City, f"the output is {result.output!r}")
    bench.require_of_model(
        result.output.country == "Finland", f"the country is {result.output.country!r}"
    )
    if bench.scripted:
        require_equal(result.output, _City(name="Åbo", country="Finland"), "the output")
        request = bench.get_request()
        schemas = [
            request.output_schema,
            *[getattr(tool, "input_schema", None) for tool in request.tools],
        ]
        names = [sorted(schema.get("properties", {})) for schema in schemas if schema]
        require(["country", "name"] in names, f"the schema did not arrive: {schemas}")


@provider_check(Capability.chat, shows=(Capability.typed_output,), look=_LOOK, live=True)
async def nested_types_are_filled(bench: ProviderBench) -> None:
    """Nested types, lists, choices, numbers, booleans and nulls are filled."""
    _skip_without_types(bench)
    stop = {"city": {"name": "Oslo", "country": "Norway"}, "by": "train", "nights": None}
    async with bench.agent(
        reply_with_value({"stops": [stop], "price": 99.5, "paid": False})
    ) as agent:
        result = await agent.send_for(
            "A trip by train to Oslo in Norway; how many nights is not known; it costs 99.50 and is not paid. Give it as a value.",
            _Trip,
        )
    wanted = _Trip(stops=[_Stop.model_validate(stop)], price=99.5, paid=False)
    bench.require_of_model(result.output == wanted, f"the output is {result.output!r}")


@provider_check(Capability.chat, shows=(Capability.typed_output,), look=_LOOK)
async def recursive_types_are_filled(bench: ProviderBench) -> None:
    """A recursive type is filled. Its schema is sent as it is, or loosened if the provider accepts
    no recursion."""
    _skip_without_types(bench)
    # Two levels, so that an inlined schema without recursion would fail.
    value: Json = {
        "name": "a",
        "children": [
            {"name": "b", "children": []},
            {"name": "c", "children": [{"name": "d", "children": []}]},
        ],
    }
    async with bench.agent(reply_with_value(value)) as agent:
        result = await agent.send_for("A tree.", _Tree)
    require_equal(result.output, _Tree.model_validate(value), "the output")


@provider_check(Capability.chat, shows=(Capability.typed_output,), look=_LOOK, live=True)
async def lists_and_numbers_are_typed(bench: ProviderBench) -> None:
    """A type that is not an object, such as a list of numbers, is wrapped for the model and
    returned unwrapped."""
    _skip_without_types(bench)
    async with bench.agent(reply_with_value([1, 2, 3])) as agent:
        result = await agent.send_for("The list of the numbers one, two and three.", list[int])
    require(
        all(type(number) is int for number in result.output), f"the output is {result.output!r}"
    )
    bench.require_of_model(result.output == [1, 2, 3], f"the output is {result.output!r}")


@provider_check(Capability.tools, shows=_WITH_TOOLS, look=_LOOK, live=True)
async def typed_output_comes_after_tools(bench: ProviderBench) -> None:
    """With tools, the model calls them first and then gives the value: in one phase if it can do
    both, else in two."""
    _skip_without_types(bench)
    cities: list[str] = []
    model = reply_with_value(
        {"name": "Oslo", "country": "Norway"}, [make_call("get_weather", city="Oslo")]
    )
    async with bench.agent(model, tools=[make_weather_tool(cities)]) as agent:
        result = await agent.send_for(
            "Ask the tool for the weather in Oslo. When you have it, give the city, which is in Norway, as a value.",
            _City,
        )
    bench.require_of_model(
        cities == ["Oslo"], f"the cities that the tool was asked for are {cities}"
    )
    bench.require_of_model(
        result.output == _City(name="Oslo", country="Norway"), f"the output is {result.output!r}"
    )
    require_equal(result.messages[0].role, Role.USER, "the role of the first message")


@provider_check(Capability.chat, shows=(Capability.typed_output,), look=_LOOK, live=True)
async def typed_output_is_streamed(bench: ProviderBench) -> None:
    """With an output schema, the stream's output is JSON and nothing else, in pieces."""
    _skip_without_types(bench)
    async with bench.agent(
        reply_with_value({"city": "Grüße 🌍 from a city with a long name"})
    ) as agent:
        text = ""
        async for chunk in agent.send_stream("Name a city in Norway.", output_schema=SCHEMA):
            text = chunk.joined(text)
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        value = None
    require(
        isinstance(value, dict) and "city" in value,
        f"the output is no JSON of the schema: {text!r}",
    )


@provider_check(Capability.chat, shows=(Capability.typed_output,), look=_LOOK)
async def typed_output_is_repaired_once(bench: ProviderBench) -> None:
    """A value that does not match the type is returned to the model once with the reason. A second
    one raises `TypedOutputError`."""
    _skip_without_types(bench)
    wrong, right = (
        reply_with_value({"name": "Oslo"}),
        reply_with_value({"name": "Oslo", "country": "Norway"}),
    )
    async with bench.agent(wrong, right) as agent:
        result = await agent.send_for("Oslo?", _City)
    require_equal(
        result.output, _City(name="Oslo", country="Norway"), "the output after one mistake"
    )
    require_equal(len(bench.server.requests), 2, "the number of requests")
    require("country" in _join_parts(bench.get_request()), "the model is not told what was wrong")
    async with bench.agent(wrong) as agent:
        try:
            await agent.send_for("Oslo?", _City)
        except TypedOutputError:
            return
    require(False, "a value that is never of the type is not refused")


def _skip_without_types(bench: ProviderBench) -> None:
    """Skips the check if the provider has neither typed output nor tools."""
    if not (bench.can(Capability.typed_output) or bench.can(Capability.tools)):
        raise Skipped(f"{bench.provider.display_name} declares neither typed_output nor tools")


def _join_parts(request: ModelRequest) -> str:
    """Returns all texts and results of a request as one string."""
    parts = [
        part
        for message in request.messages
        for part in message.content
        if not isinstance(part, ToolCallPart)
    ]
    return str(parts)
