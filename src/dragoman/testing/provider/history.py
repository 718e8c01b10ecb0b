"""Checks of conversations that go on: with what was said before, with what others said,
append-only, signatures in place."""

from __future__ import annotations

from itertools import pairwise

from dragoman.capability import Capability
from dragoman.message import (
    Message,
    Origin,
    Role,
    ThinkingPart,
    ToolResultPart,
)
from dragoman.testing.check import Skipped, demand, same
from dragoman.testing.provider.bench import ProviderBench, call, provider_check, says, weather
from dragoman.testing.wire.bench import json_of, seal_of

__all__ = [
    "conversations_go_on",
    "conversations_of_others_go_on",
    "requests_are_append_only",
    "signatures_go_back_in_a_round",
]

_LOOK = "the wire's request and decoder, and the record's quirks"


@provider_check(Capability.chat, look=_LOOK, live=True)
async def conversations_go_on(bench: ProviderBench) -> None:
    """What was said before is sent again, in order, also after it was stored; and the model knows
    of it."""
    async with bench.agent(says("Nice to meet you, Ada."), says("Your name is Ada.")) as agent:
        first = await agent.send("My name is Ada. Remember it.")
        history = [Message.from_json(message.to_json()) for message in first.messages]
        second = await agent.send("What is my name? Answer with the name.", history=history)
    bench.judge(
        "ada" in second.output.lower(),
        f"the model does not know what was said before: {second.output!r}",
    )
    if bench.scripted:
        texts = [(message.role.value, message.text) for message in bench.received().messages]
        # A wire may link to a stored response and send only what follows.
        if len(texts) > 1:
            same(
                texts[0][1],
                "My name is Ada. Remember it.",
                "the first message of the second request",
            )
            same(
                [role for role, _ in texts],
                ["user", "model", "user"],
                "the roles of the second request",
            )


@provider_check(Capability.chat, look="the wire's dump_messages, with a target", live=True)
async def conversations_of_others_go_on(bench: ProviderBench) -> None:
    """A conversation that began with another provider goes on here, with its calls, results and
    thinking."""
    elsewhere = Origin("another-provider", "https://another.invalid", "m")
    native = {"another_wire": {"signature": "of-another"}}
    history = [
        Message.user("What is the weather in Oslo?"),
        Message.model(
            ThinkingPart("I look.", native),
            "I look.",
            call("get_weather", "id of another/provider: 1", city="Oslo"),
        ).replace(origin=elsewhere),
        Message.user(
            ToolResultPart("id of another/provider: 1", "get_weather", "Rain, 7 degrees.")
        ),
        Message.model("It rains.").replace(origin=elsewhere),
    ]
    tools = [weather()] if bench.can(Capability.tools) else []
    async with bench.agent(says("Rain."), tools=tools) as agent:
        result = await agent.send(
            "Say in one word what falls from the sky in Oslo.", history=history
        )
    demand(result.messages, "nothing came back")
    if bench.scripted:
        arrived = bench.received().messages
        demand("of-another" not in str(arrived), "what another provider signed is sent here")
        results = [part for message in arrived for part in message.tool_results]
        if bench.can(Capability.tools):
            calls = [part for message in arrived for part in message.tool_calls]
            same([part.name for part in calls], ["get_weather"], "the calls that arrived")
            same(
                [part.id for part in results],
                [part.id for part in calls],
                "the ids of results and calls",
            )


@provider_check(Capability.chat, look="whatever in a request depends on what follows")
async def requests_are_append_only(bench: ProviderBench) -> None:
    """What one request holds of the conversation, the next begins with, also after a round of tools
    and after the messages were stored: caches and signatures depend on it. A wire that links to a
    stored response sends what follows alone."""
    tools = [weather()] if bench.can(Capability.tools) else []
    rounds = [says(call("get_weather", city="Oslo")), says("Rain.")] if tools else [says("Rain.")]
    async with bench.agent(*rounds, system="Be brief.", tools=tools) as agent:
        first = await agent.send("How is it in Oslo?")
        history = [Message.from_json(message.to_json()) for message in first.messages]
        await agent.send("And now?", history=history)
    bodies = [json_of(request.body, "the request") for request in bench.server.sent]
    for before, after in pairwise(bodies):
        for name in before:
            if isinstance(before[name], list) and before[name][:1] == after.get(name, [None])[:1]:
                same(
                    after[name][: len(before[name])],
                    before[name],
                    f"the beginning of `{name}` in the next request",
                )
    if len(bench.received().messages) > len(bench.received(0).messages):
        same(
            bench.received().messages[: len(bench.received(0).messages)],
            bench.received(0).messages,
            "what the next request begins with",
        )


@provider_check(
    Capability.thinking,
    look="native in the wire's decoder and dump_messages, and `reads` in the record's quirks",
)
async def signatures_go_back_in_a_round(bench: ProviderBench) -> None:
    """What the provider signed of its thinking goes back with the results of the tools that
    followed it, byte for byte, unless the wire links to the stored response that holds it."""
    seal = seal_of(bench.signed, bench.wire.name)
    rounds = says(bench.signed, call("get_weather", city="Oslo")), says("Rain.")
    async with bench.agent(*rounds, tools=[weather()]) as agent:
        result = await agent.send("How is it in Oslo?")
    if seal not in str(result.messages[1].content):
        raise Skipped(
            f"the wire {bench.wire.name} holds no thinking signed as the kit's; where yours is, pass signed="
        )
    linked = not any(message.role is Role.MODEL for message in bench.received().messages)
    demand(
        linked or seal in str(bench.server.sent[-1].body),
        "the signature does not go back with the results",
    )
