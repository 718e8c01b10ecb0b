"""Checks of a provider's chat: text in and out, streamed and whole."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio

from dragoman.capability import Capability
from dragoman.event import Event
from dragoman.message import (
    FinishReason,
    Message,
    Role,
)
from dragoman.model.middleware import Next
from dragoman.request import ModelRequest
from dragoman.testing.check import demand, same
from dragoman.testing.provider.bench import ProviderBench, provider_check, says
from dragoman.testing.samples import TEXT

__all__ = [
    "answers",
    "answers_side_by_side",
    "answers_without_a_stream",
    "empty_answers_are_answers",
    "long_prompts_arrive",
    "streams_text",
    "system_prompts_arrive",
    "unicode_arrives",
]

_LOOK = "the wire's request and decoder, and the record's quirks"


@provider_check(Capability.chat, look=_LOOK, live=True)
async def answers(bench: ProviderBench) -> None:
    """A prompt is answered: text, a finish reason, the two messages, and where the answer came
    from."""
    async with bench.agent(says("Hello there.")) as agent:
        result = await agent.send("Say hello.")
    demand(result.output.strip(), "the answer is empty")
    same(result.finish_reason, FinishReason.stop, "the finish reason")
    same(
        [message.role for message in result.messages],
        [Role.USER, Role.MODEL],
        "the roles of the messages",
    )
    origin = result.messages[-1].origin
    demand(
        origin is not None and origin.provider == bench.name,
        f"the origin of the answer is {origin}",
    )
    if bench.scripted:
        same(result.output, "Hello there.", "the answer")
        same(bench.received().model, bench.model, "the model that is asked")
        same(bench.received().messages[-1].text, "Say hello.", "what arrived")
        same(bench.server.open, 0, "the number of answers left open")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def answers_without_a_stream(bench: ProviderBench) -> None:
    """A request that is not to be streamed is answered by the same events."""

    async def whole(request: ModelRequest, following: Next) -> AsyncIterator[Event]:
        async for event in following(request.replace(stream=False)):
            yield event

    async with bench.agent(says("Hello there."), middleware=[whole]) as agent:
        result = await agent.send("Say hello.")
    demand(result.output.strip(), "the answer is empty")
    if bench.scripted:
        same(result.output, "Hello there.", "the answer")
        same(bench.received().stream, False, "whether a stream was asked for")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def streams_text(bench: ProviderBench) -> None:
    """Text comes in pieces as it is made; joined, they are the answer. The first chunk holds the
    prompt's message."""
    text = "One two three four five six seven eight nine ten. " * 3
    async with bench.agent(says(text)) as agent:
        chunks = [chunk async for chunk in agent.send_stream("Count from one to thirty in words.")]
    output = ""
    for chunk in chunks:
        output = chunk.joined(output)
    same(chunks[0].messages[0].role, Role.USER, "the role of the first chunk's message")
    demand(
        sum(bool(chunk.output) for chunk in chunks) > 1, f"the text came in one piece: {output!r}"
    )
    spoken = [
        message for chunk in chunks for message in chunk.messages if message.role is Role.MODEL
    ]
    same("".join(message.text for message in spoken), output, "the text of the messages")
    if bench.scripted:
        same(output, text, "the answer")
        same(bench.received().stream, True, "whether a stream was asked for")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def unicode_arrives(bench: ProviderBench) -> None:
    """Signs of every script, quotes and line breaks arrive as they are, both ways."""
    async with bench.agent(says(TEXT)) as agent:
        result = await agent.send(
            f"Repeat the following word for word, and say nothing else:\n{TEXT}"
        )
    if bench.scripted:
        demand(TEXT in bench.received().messages[-1].text, "the prompt did not arrive as it was")
        same(result.output, TEXT, "the answer")
    else:
        bench.judge(
            any(sign in result.output for sign in "üÅ🌍言"),
            f"no sign beyond ASCII came back: {result.output!r}",
        )


@provider_check(Capability.chat, look=_LOOK)
async def long_prompts_arrive(bench: ProviderBench) -> None:
    """A prompt and an answer of some hundred thousand signs arrive whole."""
    long = TEXT * 2500
    # The text must not repeat one word: providers may cut such answers.
    answer = "".join(f"{number} {TEXT}" for number in range(40))
    async with bench.agent(says(answer)) as agent:
        result = await agent.send(long)
    same(
        len(bench.received().messages[-1].text), len(long), "the length of the prompt that arrived"
    )
    demand(bench.received().messages[-1].text == long, "the prompt did not arrive as it was")
    same(len(result.output), len(answer), "the length of the answer")


@provider_check(Capability.chat, look="the wire's decoder: an answer without content")
async def empty_answers_are_answers(bench: ProviderBench) -> None:
    """A model that says nothing has answered: there is no error, and the conversation goes on after
    it."""
    async with bench.agent(says(), says("Well.")) as agent:
        first = await agent.send("Say nothing.")
        second = await agent.send("And now?", history=first.messages)
    same(
        (first.output, first.finish_reason),
        ("", FinishReason.stop),
        "the output and the finish reason of nothing",
    )
    same(second.output, "Well.", "the next answer")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def system_prompts_arrive(bench: ProviderBench) -> None:
    """The system prompt arrives as such, and the model follows it; it is none of the messages of
    the result."""
    system = "Whatever you are asked, answer with the one word PONG."
    async with bench.agent(says("PONG"), system=system) as agent:
        result = await agent.send("How are you?")
    bench.judge(
        "pong" in result.output.lower(),
        f"the model does not follow the system prompt: {result.output!r}",
    )
    if bench.scripted:
        arrived = [
            message.text for message in bench.received().messages if message.role is Role.SYSTEM
        ]
        same(arrived, [system], "the system messages that arrived")


@provider_check(Capability.chat, look="state that requests share")
async def answers_side_by_side(bench: ProviderBench) -> None:
    """One agent answers several prompts at once, each with its own answer, and leaves nothing
    open."""

    def echo(request: ModelRequest) -> Message:
        return says(f"You said {request.messages[-1].text}")

    outputs: dict[int, str] = {}
    async with bench.agent(echo) as agent, anyio.create_task_group() as group:

        async def ask(number: int) -> None:
            outputs[number] = (await agent.send(f"number {number}")).output

        for number in range(8):
            group.start_soon(ask, number)
    same(outputs, {number: f"You said number {number}" for number in range(8)}, "the answers")
    same(bench.server.open, 0, "the number of answers left open")
