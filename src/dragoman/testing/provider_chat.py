"""Checks of a provider's chat: text in and out, streamed and whole, history, settings, usage, thinking."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import anyio

from dragoman.capability import Capability
from dragoman.event import Event, MessageFinished
from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    Role,
    ThinkingPart,
    ToolResultPart,
    Usage,
)
from dragoman.model.middleware import Next
from dragoman.request import ModelRequest, Settings
from dragoman.testing.check import Skipped, demand, same
from dragoman.testing.provider_bench import ProviderBench, call, provider_check, says, weather
from dragoman.testing.samples import PNG, TEXT
from dragoman.testing.wire_bench import json_of, seal_of

__all__ = [
    "answers",
    "answers_side_by_side",
    "answers_without_a_stream",
    "audio_arrives",
    "conversations_go_on",
    "conversations_of_others_go_on",
    "empty_answers_are_answers",
    "files_arrive",
    "images_arrive",
    "long_prompts_arrive",
    "options_arrive",
    "requests_are_append_only",
    "settings_arrive",
    "signatures_go_back_in_a_round",
    "stops_at_the_limit",
    "stops_at_the_word",
    "streams_text",
    "system_prompts_arrive",
    "thinks",
    "undeclared_media_harm_nothing",
    "unicode_arrives",
    "usage_is_told_once",
]

_LOOK = "the wire's request and decoder, and the record's quirks"


@provider_check(Capability.chat, look=_LOOK, live=True)
async def answers(bench: ProviderBench) -> None:
    """A prompt is answered: text, a finish reason, the two messages, and where the answer came from."""
    async with bench.agent(says("Hello there.")) as agent:
        result = await agent.send("Say hello.")
    demand(result.output.strip(), "the answer is empty")
    same(result.finish_reason, FinishReason.stop, "the finish reason")
    same([message.role for message in result.messages], [Role.USER, Role.MODEL], "the roles of the messages")
    origin = result.messages[-1].origin
    demand(origin is not None and origin.provider == bench.name, f"the origin of the answer is {origin}")
    if bench.scripted:
        same(result.output, "Hello there.", "the answer")
        same(bench.asked().model, bench.model, "the model that is asked")
        same(bench.asked().messages[-1].text, "Say hello.", "what arrived")
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
        same(bench.asked().stream, False, "whether a stream was asked for")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def streams_text(bench: ProviderBench) -> None:
    """Text comes in pieces as it is made; joined, they are the answer. The first chunk holds the prompt's message (D-01)."""
    words = "One two three four five six seven eight nine ten. " * 3
    async with bench.agent(says(words)) as agent:
        chunks = [chunk async for chunk in agent.send_stream("Count from one to thirty in words.")]
    output = "".join(chunk.output for chunk in chunks)
    same(chunks[0].messages[0].role, Role.USER, "the role of the first chunk's message")
    demand(sum(bool(chunk.output) for chunk in chunks) > 1, f"the text came in one piece: {output!r}")
    said = [message for chunk in chunks for message in chunk.messages if message.role is Role.MODEL]
    same("".join(message.text for message in said), output, "the text of the messages")
    if bench.scripted:
        same(output, words, "the answer")
        same(bench.asked().stream, True, "whether a stream was asked for")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def unicode_arrives(bench: ProviderBench) -> None:
    """Signs of every script, quotes and line breaks arrive as they are, both ways."""
    async with bench.agent(says(TEXT)) as agent:
        result = await agent.send(f"Repeat the following word for word, and say nothing else:\n{TEXT}")
    if bench.scripted:
        demand(TEXT in bench.asked().messages[-1].text, "the prompt did not arrive as it was")
        same(result.output, TEXT, "the answer")
    else:
        bench.judge(
            any(sign in result.output for sign in "üÅ🌍言"), f"no sign beyond ASCII came back: {result.output!r}"
        )


@provider_check(Capability.chat, look=_LOOK)
async def long_prompts_arrive(bench: ProviderBench) -> None:
    """A prompt and an answer of some hundred thousand signs arrive whole."""
    long = TEXT * 2500
    async with bench.agent(says(TEXT * 40)) as agent:
        result = await agent.send(long)
    same(len(bench.asked().messages[-1].text), len(long), "the length of the prompt that arrived")
    demand(bench.asked().messages[-1].text == long, "the prompt did not arrive as it was")
    same(len(result.output), len(TEXT * 40), "the length of the answer")


@provider_check(Capability.chat, look="the wire's decoder: an answer without content")
async def empty_answers_are_answers(bench: ProviderBench) -> None:
    """A model that says nothing has answered: there is no error, and the conversation goes on after it."""
    async with bench.agent(says(), says("Well.")) as agent:
        first = await agent.send("Say nothing.")
        second = await agent.send("And now?", history=first.messages)
    same((first.output, first.finish_reason), ("", FinishReason.stop), "the output and the finish reason of nothing")
    same(second.output, "Well.", "the next answer")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def system_prompts_arrive(bench: ProviderBench) -> None:
    """The system prompt arrives as such, and the model follows it; it is none of the messages of the result."""
    system = "Whatever you are asked, answer with the one word PONG."
    async with bench.agent(says("PONG"), system=system) as agent:
        result = await agent.send("How are you?")
    bench.judge("pong" in result.output.lower(), f"the model does not follow the system prompt: {result.output!r}")
    if bench.scripted:
        found = [message.text for message in bench.asked().messages if message.role is Role.SYSTEM]
        same(found, [system], "the system messages that arrived")


@provider_check(Capability.chat, look=_LOOK, live=True)
async def conversations_go_on(bench: ProviderBench) -> None:
    """What was said before is sent again, in order, also after it was stored; and the model knows of it."""
    async with bench.agent(says("Nice to meet you, Ada."), says("Your name is Ada.")) as agent:
        first = await agent.send("My name is Ada. Remember it.")
        history = [Message.from_json(message.to_json()) for message in first.messages]
        second = await agent.send("What is my name? Answer with the name.", history=history)
    bench.judge("ada" in second.output.lower(), f"the model does not know what was said before: {second.output!r}")
    if bench.scripted:
        told = [(message.role.value, message.text) for message in bench.asked().messages]
        if len(told) > 1:  # a wire may link to a response that is stored, and send only what follows
            same(told[0][1], "My name is Ada. Remember it.", "the first message of the second request")
            same([role for role, _ in told], ["user", "model", "user"], "the roles of the second request")


@provider_check(Capability.chat, look="whatever in a request depends on what follows")
async def requests_are_append_only(bench: ProviderBench) -> None:
    """What one request holds of the conversation, the next begins with, also after a round of tools and after the messages were
    stored (rule 6): caches and signatures depend on it. A wire that links to a stored response sends what follows alone."""
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
                same(after[name][: len(before[name])], before[name], f"the beginning of `{name}` in the next request")
    if len(bench.asked().messages) > len(bench.asked(0).messages):
        same(
            bench.asked().messages[: len(bench.asked(0).messages)],
            bench.asked(0).messages,
            "what the next request begins with",
        )


@provider_check(
    Capability.thinking, look="native in the wire's decoder and dump_messages, and `reads` in the record's quirks"
)
async def signatures_go_back_in_a_round(bench: ProviderBench) -> None:
    """What the provider signed of its thinking goes back with the results of the tools that followed it, byte for byte, unless
    the wire links to the stored response that holds it."""
    seal = seal_of(bench.signed, bench.wire.name)
    rounds = says(bench.signed, call("get_weather", city="Oslo")), says("Rain.")
    async with bench.agent(*rounds, tools=[weather()]) as agent:
        result = await agent.send("How is it in Oslo?")
    if seal not in str(result.messages[1].content):
        raise Skipped(f"the wire {bench.wire.name} holds no thinking signed as the kit's; where yours is, pass signed=")
    linked = not any(message.role is Role.MODEL for message in bench.asked().messages)
    demand(linked or seal in str(bench.server.sent[-1].body), "the signature does not go back with the results")


@provider_check(Capability.chat, look="the wire's dump_messages, with a target", live=True)
async def conversations_of_others_go_on(bench: ProviderBench) -> None:
    """A conversation that began with another provider goes on here, with its calls, results and thinking."""
    elsewhere = Origin("another-provider", "https://another.invalid", "m")
    native = {"another_wire": {"signature": "of-another"}}
    history = [
        Message.user("What is the weather in Oslo?"),
        Message.model(
            ThinkingPart("I look.", native), "I look.", call("get_weather", "id of another/provider: 1", city="Oslo")
        ).replace(origin=elsewhere),
        Message.user(ToolResultPart("id of another/provider: 1", "get_weather", "Rain, 7 degrees.")),
        Message.model("It rains.").replace(origin=elsewhere),
    ]
    tools = [weather()] if bench.can(Capability.tools) else []
    async with bench.agent(says("Rain."), tools=tools) as agent:
        result = await agent.send("Say in one word what falls from the sky in Oslo.", history=history)
    demand(result.messages, "nothing came back")
    if bench.scripted:
        arrived = bench.asked().messages
        demand("of-another" not in str(arrived), "what another provider signed is sent here")
        results = [part for message in arrived for part in message.tool_results]
        if bench.can(Capability.tools):
            calls = [part for message in arrived for part in message.tool_calls]
            same([part.name for part in calls], ["get_weather"], "the calls that arrived")
            same([part.id for part in results], [part.id for part in calls], "the ids of results and calls")


@provider_check(Capability.chat, look=_LOOK)
async def settings_arrive(bench: ProviderBench) -> None:
    """Settings arrive: the agent's, and before them those of the call."""
    async with bench.agent(says("Hello."), settings=Settings(max_tokens=9000, temperature=0.5)) as agent:
        await agent.send("Hi.", settings=Settings(max_tokens=77))
    same(bench.asked().settings.max_tokens, 77, "the token limit that arrived")
    demand(
        bench.asked().settings.temperature in (0.5, None), f"the temperature is {bench.asked().settings.temperature}"
    )


@provider_check(Capability.chat, look="the wire's dump_request: options")
async def options_arrive(bench: ProviderBench) -> None:
    """A field of the body that has no neutral name arrives as it is."""
    async with bench.agent(says("Hello."), options={"kit_option": {"a": [1, None]}}) as agent:
        await agent.send("Hi.")
    same(bench.asked().options.get("kit_option"), {"a": [1, None]}, "the option that arrived")


@provider_check(Capability.chat, look="the wire's decoder: usage", live=True)
async def usage_is_told_once(bench: ProviderBench) -> None:
    """The tokens of a model call are told, once, on the message that ends it; the result has them (decision 3)."""
    usage = Usage(input_tokens=12, output_tokens=5, total_tokens=17)
    async with bench.agent(says("Hello.", usage=usage)) as agent, agent.run("Say hello.") as run:
        events = [event async for event in run]
        result = await run.result()
    told = [event.usage for event in events if isinstance(event, MessageFinished) and event.usage is not None]
    same(len(told), 1, "how often the usage is told")
    demand(result.usage and result.usage.input_tokens and result.usage.output_tokens, f"the usage is {result.usage}")
    same(result.usage, told[0], "the result's usage")
    if bench.scripted:
        found = (told[0].input_tokens, told[0].output_tokens, told[0].total_tokens)
        same(found, (12, 5, 17), "the tokens of prompt, answer and both")


@provider_check(Capability.chat, look="the wire's finish reasons, and max_tokens in its request", live=True)
async def stops_at_the_limit(bench: ProviderBench) -> None:
    """An answer that the token limit ends has the finish reason `length`, and what there is of it."""
    async with bench.agent(says("Once upon a", reason=FinishReason.length)) as agent:
        prompt = "Write down all numbers from 1 to 500, one after the other, and leave none out."
        result = await agent.send(prompt, settings=Settings(max_tokens=16))
    spent = result.usage.output_tokens if result.usage else None
    bench.judge(spent is None or bench.scripted or spent >= 16, f"the model said no more than {spent} tokens")
    same(result.finish_reason, FinishReason.length, "the finish reason")
    if bench.scripted:
        same(bench.asked().settings.max_tokens, 16, "the token limit that arrived")
        same(result.output, "Once upon a", "the answer")


@provider_check(Capability.chat, look="stop in the wire's request", live=True)
async def stops_at_the_word(bench: ProviderBench) -> None:
    """Stop sequences arrive, or are told as a loss; an answer that met one has ended as it should."""
    async with bench.agent(says("A B C ")) as agent:
        result = await agent.send("Write the letters A B C D E F, on one line.", settings=Settings(stop=("D",)))
    same(result.finish_reason, FinishReason.stop, "the finish reason")
    if bench.scripted:
        losses: list[Any] = []
        asked = ModelRequest(bench.model, (Message.user("Hi."),), settings=Settings(stop=("D",)))
        bench.wire.dump_request(asked, losses=losses, quirks=bench.provider.quirks)
        demand(bench.asked().settings.stop == ("D",) or losses, "the stop sequence is lost, and no loss tells")


@provider_check(Capability.thinking, look="thinking in the wire's decoder and request", live=True)
async def thinks(bench: ProviderBench) -> None:
    """Thinking is streamed and kept apart from what is said (D-146): in `thinking`, never in the output; the setting arrives."""
    async with bench.agent(says(ThinkingPart("Nine times seven: 63."), "It is 63.")) as agent:
        settings = Settings(reasoning="low", max_tokens=4000)
        chunks = [chunk async for chunk in agent.send_stream("What is 9 times 7?", settings=settings)]
    output = "".join(chunk.output for chunk in chunks)
    thinking = "".join(chunk.thinking or "" for chunk in chunks)
    bench.judge("63" in output, f"the answer is {output!r}")
    if bench.scripted:
        same(output, "It is 63.", "the output")
        same(thinking, "Nine times seven: 63.", "the thinking")
        message = next(message for chunk in chunks for message in chunk.messages if message.role is Role.MODEL)
        same(message.thinking, "Nine times seven: 63.", "the message's thinking")


@provider_check(Capability.vision, look="the wire's images, and vision in the record", live=True)
async def images_arrive(bench: ProviderBench) -> None:
    """An image arrives in its place beside the text, and the model sees it."""
    found = await _seen(bench, DataPart(PNG, "image/png", "red.png"), "What colour is the image? One word.", "Red.")
    bench.judge("red" in found.lower(), f"the model does not see that the image is red: {found!r}")


@provider_check(Capability.audio, look="the wire's audio, and audio in the record")
async def audio_arrives(bench: ProviderBench) -> None:
    """Audio arrives in its place beside the text."""
    await _seen(bench, DataPart(b"RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wav"), "What do you hear?", "Silence.")


@provider_check(Capability.files, look="the wire's documents, and files in the record")
async def files_arrive(bench: ProviderBench) -> None:
    """A document arrives in its place beside the text."""
    await _seen(bench, DataPart(b"%PDF-1.4\n%%EOF", "application/pdf", "a.pdf"), "What does it say?", "Nothing.")


@provider_check(Capability.chat, look="the wire's dump_messages")
async def undeclared_media_harm_nothing(bench: ProviderBench) -> None:
    """What the provider does not declare (images, audio, files, links) is sent, replaced by a text that says so, or left out;
    the text beside it arrives, and nothing breaks."""
    parts = (
        DataPart(PNG, "image/png"),
        DataPart(b"ID3\x03", "audio/mpeg"),
        DataPart(b"\x00\x01", "application/octet-stream"),
        LinkPart("https://files.conformance.invalid/a.mp4", "video/mp4"),
        FilePart("file-kit"),
    )
    async with bench.agent(says("Seen.")) as agent:
        for part in parts:
            result = await agent.send("Look at this.", attachments=[part])
            same(result.output, "Seen.", f"the answer to a {type(part).__name__}")
            demand(
                "Look at this." in bench.asked().messages[-1].text, f"the text beside a {type(part).__name__} is lost"
            )


@provider_check(Capability.chat, look="state that requests share")
async def answers_side_by_side(bench: ProviderBench) -> None:
    """One agent answers several prompts at once, each with its own answer, and leaves nothing open."""

    def echo(request: ModelRequest) -> Message:
        return says(f"You said {request.messages[-1].text}")

    found: dict[int, str] = {}
    async with bench.agent(echo) as agent, anyio.create_task_group() as group:

        async def ask(number: int) -> None:
            found[number] = (await agent.send(f"number {number}")).output

        for number in range(8):
            group.start_soon(ask, number)
    same(found, {number: f"You said number {number}" for number in range(8)}, "the answers")
    same(bench.server.open, 0, "the number of answers left open")


async def _seen(bench: ProviderBench, part: DataPart, prompt: str, answer: str) -> str:
    async with bench.agent(says(answer)) as agent:
        result = await agent.send(prompt, attachments=[part])
    if bench.scripted:
        arrived = [piece for piece in bench.asked().messages[-1].content if isinstance(piece, DataPart)]
        same(
            [(piece.data, piece.mime_type) for piece in arrived],
            [(part.data, part.mime_type)],
            "the media that arrived",
        )
        same(bench.asked().messages[-1].text, prompt, "the text beside it")
    return result.output
