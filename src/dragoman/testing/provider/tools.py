"""Checks of tool calling with a provider: one call, parallel calls, several rounds, failures, and
what arrives of them."""

from __future__ import annotations

from typing import Any

from dragoman.capability import Capability
from dragoman.event import StepFinished
from dragoman.fold import fold
from dragoman.message import Role
from dragoman.request import Settings, ToolSpec
from dragoman.testing.check import require, require_equal
from dragoman.testing.provider.bench import (
    ProviderBench,
    make_call,
    make_reply,
    make_weather_tool,
    provider_check,
)
from dragoman.testing.samples import SCHEMA, parse_result
from dragoman.tools import Tool

__all__ = [
    "tools_without_arguments_are_called",
    "tool_errors_reach_the_model",
    "odd_tool_names_come_back",
    "same_calls_stay_apart",
    "tool_choices_arrive",
    "tools_are_called",
    "tools_are_called_in_parallel",
    "tools_are_called_round_after_round",
    "calls_of_unknown_tools_fail",
]

_LOOK = "tools, calls and results in the wire"


@provider_check(Capability.tools, look=_LOOK, live=True)
async def tools_are_called(bench: ProviderBench) -> None:
    """A tool arrives with its description and schema and is called with its arguments, and its
    result arrives with the call's id. The model answers from it. The messages are user, model,
    user, model, and the events fold to them."""
    cities: list[str] = []
    answers = (
        make_reply("I look.", make_call("get_weather", city="Åbo")),
        make_reply("Rain in Åbo."),
    )
    prompt = "What is the weather in Åbo right now? Use the tool."
    async with (
        bench.agent(*answers, tools=[make_weather_tool(cities)]) as agent,
        agent.run(prompt) as run,
    ):
        events = [event async for event in run]
        result = await run.result()
    bench.require_of_model(cities, "the tool was not called")
    require_equal(
        [message.role for message in result.messages[:3]],
        [Role.USER, Role.MODEL, Role.USER],
        "the roles of the messages",
    )
    require_equal(tuple(fold(events)), result.messages, "what the events fold to")
    calls = {part.id: part.name for message in result.messages for part in message.tool_calls}
    results = {part.id: part.name for message in result.messages for part in message.tool_results}
    require_equal(results, calls, "the ids and names of the results")
    bench.require_of_model(
        "rain" in result.output.lower(),
        f"the model does not answer from the result: {result.output!r}",
    )
    if bench.scripted:
        require_equal(
            result.usage and result.usage.total_tokens,
            36,
            "the tokens of both model calls together",
        )
        require_equal(cities, ["Åbo"], "the cities that the tool was asked for")
        require_equal(result.messages[1].text, "I look.", "the text beside the call")
        spec = next(tool for tool in bench.get_request(0).tools if isinstance(tool, ToolSpec))
        require_equal(
            (spec.name, spec.description),
            ("get_weather", "Tells the weather of a city right now."),
            "the tool that arrived",
        )
        require_equal(
            spec.input_schema.get("properties"),
            SCHEMA["properties"],
            "the tool's schema that arrived",
        )
        arrived = [part.result for part in bench.get_results()]
        require_equal(arrived, ["rain in Åbo"], "the result that arrived")


@provider_check(Capability.parallel_tools, look=_LOOK, live=True)
async def tools_are_called_in_parallel(bench: ProviderBench) -> None:
    """All calls of one answer run, and their results are sent together, in call order, each with
    its call's id."""
    cities: list[str] = []
    both = make_reply(
        make_call("get_weather", "call_kit_1", city="Oslo"),
        make_call("get_weather", "call_kit_2", city="Bergen"),
    )
    async with bench.agent(
        both, make_reply("Rain in both."), tools=[make_weather_tool(cities)]
    ) as agent:
        result = await agent.send(
            "What is the weather in Oslo, and what is it in Bergen? Ask the tool for both cities at once, in parallel."
        )
    bench.require_of_model(
        sorted(cities) == ["Bergen", "Oslo"], f"the cities that the tool was asked for are {cities}"
    )
    calls = [part for message in result.messages for part in message.tool_calls]
    results = [part for message in result.messages for part in message.tool_results]
    require_equal(
        [part.id for part in results],
        [part.id for part in calls],
        "the ids of the results in call order",
    )
    require(
        len({part.id for part in calls}) == len(calls),
        f"two calls have the same id: {[part.id for part in calls]}",
    )
    if bench.scripted:
        require_equal(len(result.messages), 4, "the number of messages: all results stand in one")
        arrived = bench.get_results()
        require_equal(
            [part.result for part in arrived],
            ["rain in Oslo", "rain in Bergen"],
            "the results that arrived",
        )
        # A wire that links to a stored response sends results without their calls.
        if sent_ids := [part.id for part in bench.get_calls()]:
            require_equal(
                [part.id for part in arrived], sent_ids, "the ids that the results arrived with"
            )


@provider_check(
    Capability.tools, look=f"{_LOOK}: ids that repeat from one answer to the next", live=True
)
async def tools_are_called_round_after_round(bench: ProviderBench) -> None:
    """Results may lead to more calls, also with earlier ids and arguments. Each round has its own
    results."""
    # The codes cannot be guessed, so the model must wait for each result.
    codes = iter(("one", "two", "three"))

    async def next_code() -> str:
        return next(codes, "end")

    tool = Tool(
        "next_code", "Gives the next code word of a list, and `end` after the last.", next_code
    )
    rounds = [
        make_reply(make_call("next_code")),
        make_reply(make_call("next_code")),
        make_reply(make_call("next_code")),
        make_reply("one, two, three"),
    ]
    async with bench.agent(*rounds, tools=[tool]) as agent:
        result = await agent.send(
            "Call the tool next_code, one call after the other, until you have three code words. Then write all of them."
        )
    results = [part.result for message in result.messages for part in message.tool_results]
    bench.require_of_model(
        results[:3] == ["one", "two", "three"], f"the results of the rounds are {results}"
    )
    bench.require_of_model(
        all(word in result.output.lower() for word in ("one", "two", "three")),
        f"the answer is {result.output!r}",
    )
    if bench.scripted:
        require_equal(len(bench.server.requests), 4, "the number of requests")
        arrived = [part.result for part in bench.get_results()]
        require_equal(arrived[-1:], ["three"], "the newest result that arrived")


@provider_check(Capability.tools, look=_LOOK, live=True)
async def tool_errors_reach_the_model(bench: ProviderBench) -> None:
    """An exception in a tool reaches the model as the call's result, and the model continues."""

    async def break_down(city: str) -> str:
        raise RuntimeError(f"the station of {city} is down")

    tool = Tool("get_weather", "Tells the weather of a city right now.", break_down, SCHEMA)
    async with bench.agent(
        make_reply(make_call("get_weather", city="Oslo")), make_reply("It is down."), tools=[tool]
    ) as agent:
        result = await agent.send(
            "What is the weather in Oslo? Use the tool once; if it fails, say so."
        )
    results = [part for message in result.messages for part in message.tool_results]
    bench.require_of_model(results, "the tool was not called")
    require(results[0].is_error, "the tool's failure is not told as an error")
    require(result.output.strip(), "the model does not go on")
    if bench.scripted:
        arrived = bench.get_results()
        require(
            arrived and "station of Oslo is down" in str(arrived[0].result),
            f"what arrived of the failure: {arrived}",
        )


@provider_check(Capability.tools, look=_LOOK)
async def calls_of_unknown_tools_fail(bench: ProviderBench) -> None:
    """A call of an unknown tool gets an error as its result, and the run continues."""
    async with bench.agent(
        make_reply(make_call("nonsense")), make_reply("Sorry."), tools=[make_weather_tool()]
    ) as agent:
        result = await agent.send("Hi.")
    results = [part for message in result.messages for part in message.tool_results]
    require_equal([part.is_error for part in results], [True], "whether the result is an error")
    require_equal(result.output.strip(), "Sorry.", "the answer")


@provider_check(Capability.tools, look=f"{_LOOK}: empty arguments", live=True)
async def tools_without_arguments_are_called(bench: ProviderBench) -> None:
    """A tool without parameters is called with `{}`. Results that are null, empty or nested
    arrive."""
    results: list[Any] = [None, "", {"a": [1, {"b": None}]}]
    returned: list[Any] = []

    async def ring() -> Any:
        returned.append(results[len(returned) % 3])
        return returned[-1]

    rounds = [
        make_reply(make_call("ring_bell")),
        make_reply(make_call("ring_bell")),
        make_reply(make_call("ring_bell")),
        make_reply("Done."),
    ]
    async with bench.agent(*rounds, tools=[Tool("ring_bell", "Rings the bell.", ring)]) as agent:
        result = await agent.send("Ring the bell with the tool ring_bell, once. Then say: done.")
    calls = [part for message in result.messages for part in message.tool_calls]
    bench.require_of_model(all(part.arguments == {} for part in calls), f"the calls are {calls}")
    bench.require_of_model(returned, "the tool was not called")
    if bench.scripted:
        arrived = [
            part for request in bench.server.requests for part in request.messages[-1].tool_results
        ]
        require_equal(
            [parse_result(part.result) or None for part in arrived],
            [None, None, results[2]],
            "the results that arrived",
        )


@provider_check(Capability.tools, look=f"{_LOOK}: ids")
async def same_calls_stay_apart(bench: ProviderBench) -> None:
    """Two calls of the same tool with the same arguments in one answer have different ids and their
    own results."""
    # Different results show whether they were mixed up.
    rolled = iter(("six", "two"))

    async def roll() -> str:
        return next(rolled)

    twice = make_reply(make_call("roll_die", "call_kit_1"), make_call("roll_die", "call_kit_2"))
    async with bench.agent(
        twice, make_reply("Eight."), tools=[Tool("roll_die", "Rolls.", roll, sequential=True)]
    ) as agent:
        result = await agent.send("Roll twice.")
    calls = [part.id for message in result.messages for part in message.tool_calls]
    require(len(set(calls)) == 2 and all(calls), f"the ids of two calls are {calls}")
    arrived = bench.get_results()
    require_equal([part.result for part in arrived], ["six", "two"], "the results that arrived")
    require(
        len({part.id for part in arrived}) == 2,
        f"the results arrived with the ids {[part.id for part in arrived]}",
    )


@provider_check(Capability.tools, look="names in the wire's quirks, `ids.fit_names`")
async def odd_tool_names_come_back(bench: ProviderBench) -> None:
    """A tool with a name that the provider may not accept (dots, slashes, spaces, length) is called
    by its own name all the same."""
    # Most providers allow letters, digits, `_` and `-`, and 64 characters.
    name = "see.the/plåce " + "x" * 80
    seen: list[str] = []

    async def look(city: str) -> str:
        seen.append(city)
        return "seen"

    def calling(request: Any) -> Any:
        sent_name = next(tool.name for tool in request.tools if isinstance(tool, ToolSpec))
        done = any(message.tool_results for message in request.messages)
        return make_reply("Done.") if done else make_reply(make_call(sent_name, city="Oslo"))

    async with bench.agent(calling, tools=[Tool(name, "Looks.", look, SCHEMA)]) as agent:
        result = await agent.send("Look.")
    require_equal(seen, ["Oslo"], "the cities that the tool was asked for")
    names = [part.name for message in result.messages for part in message.tool_calls]
    require_equal(names, [name], "the name of the call in the messages")


@provider_check(Capability.forced_tools, look="tool_choice in the wire's request", live=True)
async def tool_choices_arrive(bench: ProviderBench) -> None:
    """`tool_choice` forces a call of any tool, or of a named one."""
    for choice in ("required", "get_weather"):
        cities: list[str] = []
        answers = make_reply(make_call("get_weather", city="Oslo")), make_reply("Hello.")
        settings = Settings(tool_choice=choice)
        tools = [make_weather_tool(cities)]
        async with (
            bench.agent(*answers, tools=tools, settings=settings) as agent,
            agent.run("Hello, Oslo.") as run,
        ):
            # A model that is forced to call would call again in every step, so the run is left
            # early.
            async for event in run:
                if cities and isinstance(event, StepFinished):
                    break
        require(cities, f"with tool_choice={choice!r} no tool was called")
        if bench.scripted:
            arrived = bench.get_request(0).settings.tool_choice
            require(
                arrived in (choice, "required"),
                f"the tool choice {choice!r} arrived as {arrived!r}",
            )
