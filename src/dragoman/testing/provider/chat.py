"""Checks of a provider's chat: text in and out, streamed and not.

Each function is one check: its docstring is the statement that it verifies, and `provider_check`
registers it with the capability that it needs and the place to look if it fails. `bench.agent`
answers from a script through a server that speaks the provider's wire. Checks marked `live` also
run against the real provider, and then compare only what any model must get right
(`bench.scripted` is False).
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio

from dragoman.capability import Capability
from dragoman.event import Event
from dragoman.message import FinishReason, Message, Role
from dragoman.model.middleware import Next
from dragoman.request import ModelRequest
from dragoman.testing.check import require, require_equal
from dragoman.testing.provider.bench import ProviderBench, make_reply, provider_check
from dragoman.testing.samples import TEXT

__all__ = [
    "answers",
    "answers_concurrently",
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
    """The provider answers a prompt with text, a finish reason, both messages and their origin."""
    async with bench.agent(make_reply("Hello there.")) as agent:
        result = await agent.send("Say hello.")
    require(result.output.strip(), "the answer is empty")
    require_equal(result.finish_reason, FinishReason.stop, "the finish reason")
    require_equal(
        [message.role for message in result.messages],
        [Role.USER, Role.MODEL],
        "the roles of the messages",
    )
    origin = result.messages[-1].origin
    require(
        origin is not None and origin.provider == bench.name,
        f"the origin of the answer is {origin}",
    )
    if bench.scripted:
        require_equal(result.output, "Hello there.", "the answer")
        require_equal(bench.get_request().model, bench.model, "the model that is asked")
        require_equal(bench.get_request().messages[-1].text, "Say hello.", "what arrived")
        require_equal(bench.server.open, 0, "the number of answers left open")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def answers_without_a_stream(bench: ProviderBench) -> None:
    """A request without streaming gives the same events."""

    async def whole(request: ModelRequest, following: Next) -> AsyncIterator[Event]:
        async for event in following(request.replace(stream=False)):
            yield event

    async with bench.agent(make_reply("Hello there."), middleware=[whole]) as agent:
        result = await agent.send("Say hello.")
    require(result.output.strip(), "the answer is empty")
    if bench.scripted:
        require_equal(result.output, "Hello there.", "the answer")
        require_equal(bench.get_request().stream, False, "whether a stream was asked for")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def streams_text(bench: ProviderBench) -> None:
    """Text arrives in several chunks that join to the answer. The first chunk has the prompt's
    message."""
    # Long enough for several chunks of the scripted server, which are 23 bytes.
    text = "One two three four five six seven eight nine ten. " * 3
    async with bench.agent(make_reply(text)) as agent:
        chunks = [chunk async for chunk in agent.send_stream("Count from one to thirty in words.")]
    output = ""
    for chunk in chunks:
        output = chunk.joined(output)
    require_equal(chunks[0].messages[0].role, Role.USER, "the role of the first chunk's message")
    require(
        sum(bool(chunk.output) for chunk in chunks) > 1, f"the text came in one piece: {output!r}"
    )
    spoken = [
        message for chunk in chunks for message in chunk.messages if message.role is Role.MODEL
    ]
    require_equal("".join(message.text for message in spoken), output, "the text of the messages")
    if bench.scripted:
        require_equal(output, text, "the answer")
        require_equal(bench.get_request().stream, True, "whether a stream was asked for")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def unicode_arrives(bench: ProviderBench) -> None:
    """Characters of every script, quotes and line breaks arrive unchanged in both directions."""
    async with bench.agent(make_reply(TEXT)) as agent:
        result = await agent.send(
            f"Repeat the following word for word, and say nothing else:\n{TEXT}"
        )
    if bench.scripted:
        require(
            TEXT in bench.get_request().messages[-1].text, "the prompt did not arrive as it was"
        )
        require_equal(result.output, TEXT, "the answer")
    else:
        bench.require_of_model(
            # A real model may change quotes and white space, but some character must survive.
            any(sign in result.output for sign in "üÅ🌍言"),
            f"no sign beyond ASCII came back: {result.output!r}",
        )


@provider_check(Capability.chat, look=_LOOK)
async def long_prompts_arrive(bench: ProviderBench) -> None:
    """A prompt and an answer of some hundred thousand characters arrive completely."""
    long = TEXT * 2500
    # The text must not repeat one word: providers may cut such answers.
    answer = "".join(f"{number} {TEXT}" for number in range(40))
    async with bench.agent(make_reply(answer)) as agent:
        result = await agent.send(long)
    require_equal(
        len(bench.get_request().messages[-1].text),
        len(long),
        "the length of the prompt that arrived",
    )
    require(bench.get_request().messages[-1].text == long, "the prompt did not arrive as it was")
    require_equal(len(result.output), len(answer), "the length of the answer")


@provider_check(Capability.chat, look="the wire's decoder: an answer without content")
async def empty_answers_are_answers(bench: ProviderBench) -> None:
    """An empty model message is an answer: it raises no error, and the conversation continues after
    it."""
    async with bench.agent(make_reply(), make_reply("Well.")) as agent:
        first = await agent.send("Say nothing.")
        second = await agent.send("And now?", history=first.messages)
    require_equal(
        (first.output, first.finish_reason),
        ("", FinishReason.stop),
        "the output and the finish reason of nothing",
    )
    require_equal(second.output, "Well.", "the next answer")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def system_prompts_arrive(bench: ProviderBench) -> None:
    """The system prompt arrives as a system message and the model follows it. The result's messages
    do not include it."""
    system = "Whatever you are asked, answer with the one word PONG."
    async with bench.agent(make_reply("PONG"), system=system) as agent:
        result = await agent.send("How are you?")
    bench.require_of_model(
        "pong" in result.output.lower(),
        f"the model does not follow the system prompt: {result.output!r}",
    )
    if bench.scripted:
        arrived = [
            message.text for message in bench.get_request().messages if message.role is Role.SYSTEM
        ]
        require_equal(arrived, [system], "the system messages that arrived")


@provider_check(Capability.chat, look="state that requests share")
async def answers_concurrently(bench: ProviderBench) -> None:
    """One agent answers several prompts concurrently, each with its own answer, and leaves no
    response open."""

    def echo(request: ModelRequest) -> Message:
        return make_reply(f"You said {request.messages[-1].text}")

    # The echo tells which request an answer belongs to.
    outputs: dict[int, str] = {}
    async with bench.agent(echo) as agent, anyio.create_task_group() as group:

        async def ask(number: int) -> None:
            outputs[number] = (await agent.send(f"number {number}")).output

        for number in range(8):
            group.start_soon(ask, number)
    require_equal(
        outputs, {number: f"You said number {number}" for number in range(8)}, "the answers"
    )
    require_equal(bench.server.open, 0, "the number of answers left open")
