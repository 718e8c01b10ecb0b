"""Checks of conversations that continue: with earlier messages, with messages of other providers,
append-only, and with signatures in place."""

from __future__ import annotations

from itertools import pairwise

from dragoman.capability import Capability
from dragoman.message import Message, Origin, Role, ThinkingPart, ToolResultPart
from dragoman.testing.check import Skipped, require, require_equal
from dragoman.testing.provider.bench import (
    ProviderBench,
    make_call,
    make_reply,
    make_weather_tool,
    provider_check,
)
from dragoman.testing.wire.bench import find_signature, round_trip_json

__all__ = [
    "conversations_continue",
    "conversations_of_other_providers_continue",
    "requests_are_append_only",
    "signatures_go_back_in_a_round",
]

_LOOK = "the wire's request and decoder, and the record's quirks"


@provider_check(Capability.chat, look=_LOOK, live=True)
async def conversations_continue(bench: ProviderBench) -> None:
    """Earlier messages are sent again in order, also after they were stored, and the model knows
    them."""
    async with bench.agent(
        make_reply("Nice to meet you, Ada."), make_reply("Your name is Ada.")
    ) as agent:
        first = await agent.send("My name is Ada. Remember it.")
        history = [Message.from_json(message.to_json()) for message in first.messages]
        second = await agent.send("What is my name? Answer with the name.", history=history)
    bench.require_of_model(
        "ada" in second.output.lower(),
        f"the model does not know what was said before: {second.output!r}",
    )
    if bench.scripted:
        texts = [(message.role.value, message.text) for message in bench.get_request().messages]
        # A wire may link to a stored response and send only what follows.
        if len(texts) > 1:
            require_equal(
                texts[0][1],
                "My name is Ada. Remember it.",
                "the first message of the second request",
            )
            require_equal(
                [role for role, _ in texts],
                ["user", "model", "user"],
                "the roles of the second request",
            )


@provider_check(Capability.chat, look="the wire's dump_messages, with a target", live=True)
async def conversations_of_other_providers_continue(bench: ProviderBench) -> None:
    """A conversation with another provider continues here, with its tool calls, results and
    thinking."""
    elsewhere = Origin("another-provider", "https://another.invalid", "m")
    # A foreign signature, and below an id with characters that few providers accept.
    native = {"another_wire": {"signature": "of-another"}}
    history = [
        Message.user("What is the weather in Oslo?"),
        Message.model(
            ThinkingPart("I look.", native),
            "I look.",
            make_call("get_weather", "id of another/provider: 1", city="Oslo"),
        ).replace(origin=elsewhere),
        Message.user(
            ToolResultPart("id of another/provider: 1", "get_weather", "Rain, 7 degrees.")
        ),
        Message.model("It rains.").replace(origin=elsewhere),
    ]
    tools = [make_weather_tool()] if bench.can(Capability.tools) else []
    async with bench.agent(make_reply("Rain."), tools=tools) as agent:
        result = await agent.send(
            "Say in one word what falls from the sky in Oslo.", history=history
        )
    require(result.messages, "nothing came back")
    if bench.scripted:
        arrived = bench.get_request().messages
        require("of-another" not in str(arrived), "what another provider signed is sent here")
        results = [part for message in arrived for part in message.tool_results]
        if bench.can(Capability.tools):
            calls = [part for message in arrived for part in message.tool_calls]
            require_equal([part.name for part in calls], ["get_weather"], "the calls that arrived")
            require_equal(
                [part.id for part in results],
                [part.id for part in calls],
                "the ids of results and calls",
            )


@provider_check(Capability.chat, look="whatever in a request depends on what follows")
async def requests_are_append_only(bench: ProviderBench) -> None:
    """Each request begins with the conversation of the previous request, also after a round of
    tools and after messages were stored, so that prompt caches and signatures stay valid. A wire
    that links to a stored response sends only the new messages."""
    tools = [make_weather_tool()] if bench.can(Capability.tools) else []
    rounds = (
        [make_reply(make_call("get_weather", city="Oslo")), make_reply("Rain.")]
        if tools
        else [make_reply("Rain.")]
    )
    async with bench.agent(*rounds, system="Be brief.", tools=tools) as agent:
        first = await agent.send("How is it in Oslo?")
        history = [Message.from_json(message.to_json()) for message in first.messages]
        await agent.send("And now?", history=history)
    bodies = [round_trip_json(request.body, "the request") for request in bench.server.sent]
    for before, after in pairwise(bodies):
        for name in before:
            if isinstance(before[name], list) and before[name][:1] == after.get(name, [None])[:1]:
                require_equal(
                    after[name][: len(before[name])],
                    before[name],
                    f"the beginning of `{name}` in the next request",
                )
    if len(bench.get_request().messages) > len(bench.get_request(0).messages):
        require_equal(
            bench.get_request().messages[: len(bench.get_request(0).messages)],
            bench.get_request(0).messages,
            "what the next request begins with",
        )


@provider_check(
    Capability.thinking,
    look="native in the wire's decoder and dump_messages, and `reads` in the record's quirks",
)
async def signatures_go_back_in_a_round(bench: ProviderBench) -> None:
    """Signed thinking is sent back byte for byte with the results of the tools that followed it,
    unless the wire links to the stored response that holds it."""
    seal = find_signature(bench.signed, bench.wire.name)
    rounds = make_reply(bench.signed, make_call("get_weather", city="Oslo")), make_reply("Rain.")
    async with bench.agent(*rounds, tools=[make_weather_tool()]) as agent:
        result = await agent.send("How is it in Oslo?")
    if seal not in str(result.messages[1].content):
        raise Skipped(
            f"the wire {bench.wire.name} holds no thinking signed as the kit's; where yours is, pass signed="
        )
    linked = not any(message.role is Role.MODEL for message in bench.get_request().messages)
    require(
        linked or seal in str(bench.server.sent[-1].body),
        "the signature does not go back with the results",
    )
