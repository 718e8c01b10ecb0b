"""Checks of settings, limits, thinking and usage of a provider's model.

The scripted server keeps each request as the wire reads it back, so a check compares what was
asked with what arrived (`bench.get_request`). A setting that does not arrive must be reported as a
loss instead (`bench.find_losses`). Against a real model the checks look at the effect alone: where
the answer stops, and whether it thinks.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.capability import Capability
from dragoman.codec.json_values import if_object
from dragoman.event import MessageFinished
from dragoman.message import NOTES, FinishReason, Message, ProviderPart, Role, ThinkingPart, Usage
from dragoman.request import Settings
from dragoman.testing.check import require, require_equal
from dragoman.testing.provider.bench import ProviderBench, make_reply, provider_check

__all__ = [
    "options_arrive",
    "settings_arrive",
    "stops_at_the_limit",
    "stops_at_stop_sequences",
    "thinks",
    "usage_is_reported_once",
]

_LOOK = "the wire's request and decoder, and the record's quirks"


@provider_check(Capability.chat, look=_LOOK)
async def settings_arrive(bench: ProviderBench) -> None:
    """Settings of the agent and of the call arrive. The call's settings win."""
    async with bench.agent(
        make_reply("Hello."), settings=Settings(max_tokens=9000, temperature=0.5)
    ) as agent:
        await agent.send("Hi.", settings=Settings(max_tokens=77))
    require_equal(bench.get_request().settings.max_tokens, 77, "the token limit that arrived")
    require(
        bench.get_request().settings.temperature in (0.5, None),
        f"the temperature is {bench.get_request().settings.temperature}",
    )


@provider_check(Capability.chat, look="the wire's dump_request: options")
async def options_arrive(bench: ProviderBench) -> None:
    """A body field without a neutral name arrives unchanged."""
    async with bench.agent(make_reply("Hello."), options={"kit_option": {"a": [1, None]}}) as agent:
        await agent.send("Hi.")
    require_equal(
        bench.get_request().options.get("kit_option"), {"a": [1, None]}, "the option that arrived"
    )


@provider_check(
    Capability.chat, look="the wire's finish reasons, and max_tokens in its request", live=True
)
async def stops_at_the_limit(bench: ProviderBench) -> None:
    """An answer that reaches the token limit has the finish reason `length` and the text until
    then."""
    async with bench.agent(make_reply("Once upon a", reason=FinishReason.length)) as agent:
        prompt = "Write down all numbers from 1 to 500, one after the other, and leave none out."
        result = await agent.send(prompt, settings=Settings(max_tokens=16))
    # Some models stop by themselves before the limit: then there is nothing to judge.
    spent = result.usage.output_tokens if result.usage else None
    bench.require_of_model(
        spent is None or bench.scripted or spent >= 16,
        f"the model said no more than {spent} tokens",
    )
    require_equal(result.finish_reason, FinishReason.length, "the finish reason")
    if bench.scripted:
        require_equal(bench.get_request().settings.max_tokens, 16, "the token limit that arrived")
        require_equal(result.output, "Once upon a", "the answer")


@provider_check(Capability.chat, look="stop in the wire's request", live=True)
async def stops_at_stop_sequences(bench: ProviderBench) -> None:
    """Stop sequences arrive or are reported as a loss. An answer that meets one has the finish
    reason `stop`."""
    async with bench.agent(make_reply("A B C ")) as agent:
        result = await agent.send(
            "Write the letters A B C D E F, on one line.", settings=Settings(stop=("D",))
        )
    require_equal(result.finish_reason, FinishReason.stop, "the finish reason")
    if bench.scripted:
        require(
            bench.get_request().settings.stop == ("D",) or bench.find_losses(Settings(stop=("D",))),
            "the stop sequence is lost, and no loss reports it",
        )


@provider_check(Capability.thinking, look="thinking in the wire's decoder and request", live=True)
async def thinks(bench: ProviderBench) -> None:
    """Thinking is streamed in `thinking` and never in the output. The reasoning setting arrives or
    is reported as a loss."""
    async with bench.agent(make_reply(ThinkingPart("Nine times seven: 63."), "It is 63.")) as agent:
        settings = Settings(reasoning="low", max_tokens=4000)
        chunks = [
            chunk async for chunk in agent.send_stream("What is 9 times 7?", settings=settings)
        ]
    output = ""
    for chunk in chunks:
        output = chunk.joined(output)
    thinking = "".join(chunk.thinking or "" for chunk in chunks)
    messages = [
        message for chunk in chunks for message in chunk.messages if message.role is Role.MODEL
    ]
    unread = (
        f"; fields that the wire did not read: {', '.join(names)}"
        if (names := _list_unread_fields(messages))
        else ""
    )
    bench.require_of_model(thinking, f"no thinking is read; the output is {output!r}{unread}")
    bench.require_of_model(output.strip(), "the answer is empty")
    if bench.scripted:
        require(
            bench.get_request().settings.reasoning or bench.find_losses(settings),
            "how much to think does not arrive, and no loss reports it",
        )
        require_equal(output, "It is 63.", "the output")
        require_equal(thinking, "Nine times seven: 63.", "the thinking")
        require_equal(messages[0].thinking, "Nine times seven: 63.", "the message's thinking")


@provider_check(Capability.chat, look="the wire's decoder: usage", live=True)
async def usage_is_reported_once(bench: ProviderBench) -> None:
    """The token counts of a model call are reported once, on the event that finishes its message,
    and the result has them."""
    usage = Usage(input_tokens=12, output_tokens=5, total_tokens=17)
    async with (
        bench.agent(make_reply("Hello.", usage=usage)) as agent,
        agent.run("Say hello.") as run,
    ):
        events = [event async for event in run]
        result = await run.result()
    usages = [
        event.usage
        for event in events
        if isinstance(event, MessageFinished) and event.usage is not None
    ]
    require_equal(len(usages), 1, "how often the usage is reported")
    require(
        result.usage and result.usage.input_tokens and result.usage.output_tokens,
        f"the usage is {result.usage}",
    )
    require_equal(result.usage, usages[0], "the result's usage")
    if bench.scripted:
        tokens = (usages[0].input_tokens, usages[0].output_tokens, usages[0].total_tokens)
        require_equal(tokens, (12, 5, 17), "the tokens of prompt, answer and both")


def _list_unread_fields(messages: Sequence[Message]) -> list[str]:
    """Returns the names of response fields that the wire keeps in `native` without a neutral place,
    and the types of its `ProviderPart`s."""
    names: list[str] = []
    for holder in (*messages, *(part for message in messages for part in message.content)):
        if isinstance(holder, ProviderPart):
            names.append(holder.kind)
        for key, value in (holder.native or {}).items():
            fields = if_object(value)
            # Notes hold the fields of the response around a message; native itself those of a part.
            if key.endswith(NOTES):
                names += [*if_object(fields.get("message")), *if_object(fields.get("response"))]
            else:
                names += fields
    return [*dict.fromkeys(names)]
