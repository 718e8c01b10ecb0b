"""Checks of tool calling with a provider: one, several at once, several rounds, failing ones, and
what arrives of them."""

from __future__ import annotations

from typing import Any

from dragoman.capability import Capability
from dragoman.event import StepFinished
from dragoman.fold import fold
from dragoman.message import Role
from dragoman.request import Settings, ToolSpec
from dragoman.testing.check import demand, same
from dragoman.testing.provider.bench import ProviderBench, call, provider_check, says, weather
from dragoman.testing.samples import SCHEMA, plain
from dragoman.tools import Tool

__all__ = [
    "argumentless_tools_are_called",
    "failing_tools_are_told",
    "odd_tool_names_come_back",
    "same_calls_stay_apart",
    "tool_choices_arrive",
    "tools_are_called",
    "tools_are_called_in_parallel",
    "tools_are_called_round_after_round",
    "unknown_tools_are_told",
]

_LOOK = "tools, calls and results in the wire"


@provider_check(Capability.tools, look=_LOOK, live=True)
async def tools_are_called(bench: ProviderBench) -> None:
    """A tool arrives with its description and schema, is called with its arguments, and its result
    arrives with the call's id; the model answers from it. The messages are user, model, user,
    model, and the events fold to them."""
    cities: list[str] = []
    answers = says("I look.", call("get_weather", city="Åbo")), says("Rain in Åbo.")
    prompt = "What is the weather in Åbo right now? Use the tool."
    async with bench.agent(*answers, tools=[weather(cities)]) as agent, agent.run(prompt) as run:
        events = [event async for event in run]
        result = await run.result()
    bench.judge(cities, "the tool was not called")
    same(
        [message.role for message in result.messages[:3]],
        [Role.USER, Role.MODEL, Role.USER],
        "the roles of the messages",
    )
    same(tuple(fold(events)), result.messages, "what the events fold to")
    calls = {part.id: part.name for message in result.messages for part in message.tool_calls}
    results = {part.id: part.name for message in result.messages for part in message.tool_results}
    same(results, calls, "the ids and names of the results")
    bench.judge(
        "rain" in result.output.lower(),
        f"the model does not answer from the result: {result.output!r}",
    )
    if bench.scripted:
        same(
            result.usage and result.usage.total_tokens,
            36,
            "the tokens of both model calls together",
        )
        same(cities, ["Åbo"], "the cities that the tool was asked for")
        same(result.messages[1].text, "I look.", "the text beside the call")
        spec = next(tool for tool in bench.received(0).tools if isinstance(tool, ToolSpec))
        same(
            (spec.name, spec.description),
            ("get_weather", "Tells the weather of a city right now."),
            "the tool that arrived",
        )
        same(
            spec.input_schema.get("properties"),
            SCHEMA["properties"],
            "the tool's schema that arrived",
        )
        arrived = [part.result for part in bench.arrived_results()]
        same(arrived, ["rain in Åbo"], "the result that arrived")


@provider_check(Capability.parallel_tools, look=_LOOK, live=True)
async def tools_are_called_in_parallel(bench: ProviderBench) -> None:
    """Several calls of one answer are all run; their results go back together, in call order, each
    to its own call."""
    cities: list[str] = []
    both = says(
        call("get_weather", "call_kit_1", city="Oslo"),
        call("get_weather", "call_kit_2", city="Bergen"),
    )
    async with bench.agent(both, says("Rain in both."), tools=[weather(cities)]) as agent:
        result = await agent.send(
            "What is the weather in Oslo, and what is it in Bergen? Ask the tool for both cities at once, in parallel."
        )
    bench.judge(
        sorted(cities) == ["Bergen", "Oslo"], f"the cities that the tool was asked for are {cities}"
    )
    calls = [part for message in result.messages for part in message.tool_calls]
    results = [part for message in result.messages for part in message.tool_results]
    same(
        [part.id for part in results],
        [part.id for part in calls],
        "the ids of the results in call order",
    )
    demand(
        len({part.id for part in calls}) == len(calls),
        f"two calls have the same id: {[part.id for part in calls]}",
    )
    if bench.scripted:
        same(len(result.messages), 4, "the number of messages: all results stand in one")
        arrived = bench.arrived_results()
        same(
            [part.result for part in arrived],
            ["rain in Oslo", "rain in Bergen"],
            "the results that arrived",
        )
        if sent_ids := [part.id for part in bench.arrived_calls()]:
            same([part.id for part in arrived], sent_ids, "the ids that the results arrived with")


@provider_check(
    Capability.tools, look=f"{_LOOK}: ids that repeat from one answer to the next", live=True
)
async def tools_are_called_round_after_round(bench: ProviderBench) -> None:
    """Results may lead to more calls, also to ones with the ids and arguments of before; each round
    has its own results."""
    codes = iter(("one", "two", "three"))

    async def next_code() -> str:
        return next(codes, "end")

    tool = Tool(
        "next_code", "Gives the next code word of a list, and `end` after the last.", next_code
    )
    rounds = [
        says(call("next_code")),
        says(call("next_code")),
        says(call("next_code")),
        says("one, two, three"),
    ]
    async with bench.agent(*rounds, tools=[tool]) as agent:
        result = await agent.send(
            "Call the tool next_code, one call after the other, until you have three code words. Then write all of them."
        )
    results = [part.result for message in result.messages for part in message.tool_results]
    bench.judge(results[:3] == ["one", "two", "three"], f"the results of the rounds are {results}")
    bench.judge(
        all(word in result.output.lower() for word in ("one", "two", "three")),
        f"the answer is {result.output!r}",
    )
    if bench.scripted:
        same(len(bench.server.requests), 4, "the number of requests")
        arrived = [part.result for part in bench.arrived_results()]
        same(arrived[-1:], ["three"], "the newest result that arrived")


@provider_check(Capability.tools, look=_LOOK, live=True)
async def failing_tools_are_told(bench: ProviderBench) -> None:
    """What a tool raises is told to the model as its result, and the model goes on."""

    async def break_down(city: str) -> str:
        raise RuntimeError(f"the station of {city} is down")

    tool = Tool("get_weather", "Tells the weather of a city right now.", break_down, SCHEMA)
    async with bench.agent(
        says(call("get_weather", city="Oslo")), says("It is down."), tools=[tool]
    ) as agent:
        result = await agent.send(
            "What is the weather in Oslo? Use the tool once; if it fails, say so."
        )
    results = [part for message in result.messages for part in message.tool_results]
    bench.judge(results, "the tool was not called")
    demand(results[0].is_error, "the tool's failure is not told as an error")
    demand(result.output.strip(), "the model does not go on")
    if bench.scripted:
        arrived = bench.arrived_results()
        demand(
            arrived and "station of Oslo is down" in str(arrived[0].result),
            f"what arrived of the failure: {arrived}",
        )


@provider_check(Capability.tools, look=_LOOK)
async def unknown_tools_are_told(bench: ProviderBench) -> None:
    """A call of a tool that there is not is answered with an error, and the run goes on."""
    async with bench.agent(says(call("nonsense")), says("Sorry."), tools=[weather()]) as agent:
        result = await agent.send("Hi.")
    results = [part for message in result.messages for part in message.tool_results]
    same([part.is_error for part in results], [True], "whether the result is an error")
    same(result.output.strip(), "Sorry.", "the answer")


@provider_check(Capability.tools, look=f"{_LOOK}: empty arguments", live=True)
async def argumentless_tools_are_called(bench: ProviderBench) -> None:
    """A tool without arguments, whose result is null, is called with `{}`; a result that is null,
    empty or nested arrives."""
    results: list[Any] = [None, "", {"a": [1, {"b": None}]}]
    returned: list[Any] = []

    async def ring() -> Any:
        returned.append(results[len(returned) % 3])
        return returned[-1]

    rounds = [
        says(call("ring_bell")),
        says(call("ring_bell")),
        says(call("ring_bell")),
        says("Done."),
    ]
    async with bench.agent(*rounds, tools=[Tool("ring_bell", "Rings the bell.", ring)]) as agent:
        result = await agent.send("Ring the bell with the tool ring_bell, once. Then say: done.")
    calls = [part for message in result.messages for part in message.tool_calls]
    bench.judge(all(part.arguments == {} for part in calls), f"the calls are {calls}")
    bench.judge(returned, "the tool was not called")
    if bench.scripted:
        arrived = [
            part for request in bench.server.requests for part in request.messages[-1].tool_results
        ]
        same(
            [plain(part.result) or None for part in arrived],
            [None, None, results[2]],
            "the results that arrived",
        )


@provider_check(Capability.tools, look=f"{_LOOK}: ids")
async def same_calls_stay_apart(bench: ProviderBench) -> None:
    """Two calls of the same tool with the same arguments in one answer have ids of their own, and
    results of their own."""
    rolled = iter(("six", "two"))

    async def roll() -> str:
        return next(rolled)

    twice = says(call("roll_die", "call_kit_1"), call("roll_die", "call_kit_2"))
    async with bench.agent(
        twice, says("Eight."), tools=[Tool("roll_die", "Rolls.", roll, sequential=True)]
    ) as agent:
        result = await agent.send("Roll twice.")
    calls = [part.id for message in result.messages for part in message.tool_calls]
    demand(len(set(calls)) == 2 and all(calls), f"the ids of two calls are {calls}")
    arrived = bench.arrived_results()
    same([part.result for part in arrived], ["six", "two"], "the results that arrived")
    demand(
        len({part.id for part in arrived}) == 2,
        f"the results arrived with the ids {[part.id for part in arrived]}",
    )


@provider_check(Capability.tools, look="names in the wire's quirks, `ids.fit_names`")
async def odd_tool_names_come_back(bench: ProviderBench) -> None:
    """A tool whose name the provider may not take (points, slashes, signs, length) is called by its
    own name all the same."""
    name = "see.the/plåce " + "x" * 80
    seen: list[str] = []

    async def look(city: str) -> str:
        seen.append(city)
        return "seen"

    def calling(request: Any) -> Any:
        sent_name = next(tool.name for tool in request.tools if isinstance(tool, ToolSpec))
        done = any(message.tool_results for message in request.messages)
        return says("Done.") if done else says(call(sent_name, city="Oslo"))

    async with bench.agent(calling, tools=[Tool(name, "Looks.", look, SCHEMA)]) as agent:
        result = await agent.send("Look.")
    same(seen, ["Oslo"], "the cities that the tool was asked for")
    names = [part.name for message in result.messages for part in message.tool_calls]
    same(names, [name], "the name of the call in the messages")


@provider_check(Capability.forced_tools, look="tool_choice in the wire's request", live=True)
async def tool_choices_arrive(bench: ProviderBench) -> None:
    """A call can be forced, of any tool or of one by its name."""
    for choice in ("required", "get_weather"):
        cities: list[str] = []
        answers = says(call("get_weather", city="Oslo")), says("Hello.")
        settings = Settings(tool_choice=choice)
        tools = [weather(cities)]
        async with (
            bench.agent(*answers, tools=tools, settings=settings) as agent,
            agent.run("Hello, Oslo.") as run,
        ):
            async for event in run:
                if cities and isinstance(event, StepFinished):
                    break
        demand(cities, f"with tool_choice={choice!r} no tool was called")
        if bench.scripted:
            arrived = bench.received(0).settings.tool_choice
            demand(
                arrived in (choice, "required"),
                f"the tool choice {choice!r} arrived as {arrived!r}",
            )
