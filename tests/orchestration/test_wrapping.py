"""Orchestrators that wrap a built-in one: they read its output, and what they make of it counts
everywhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec
import pytest

from dragoman import Agent, ChatResult, Message, ModelRequest, ToolContext, tool
from dragoman.fold import fold
from dragoman.message import TextPart, ToolCallPart
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration import (
    DefaultStreamingOrchestrator,
    StreamingIterationResult,
    StreamingState,
)
from dragoman.testing import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.mend("3.7")]


@tool
def look(city: str) -> str:
    """Looks."""
    return f"rain in {city}"


CALL = ToolCallPart("c", "look", {"city": "Rome"})


class Loud(DefaultStreamingOrchestrator):
    """The seeds' main extension point: process_iteration wrapped, its text changed."""

    async def process_iteration(
        self,
        model: ChatModel,
        state: StreamingState,
        output_schema: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[StreamingIterationResult, None]:
        async for result in super().process_iteration(model, state, output_schema):
            yield msgspec.structs.replace(result, output=result.output.upper())


class Whole(DefaultStreamingOrchestrator):
    """Keeps text back until the message is whole, and then shows it without a secret."""

    async def process_iteration(
        self,
        model: ChatModel,
        state: StreamingState,
        output_schema: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[StreamingIterationResult, None]:
        text = ""
        async for result in super().process_iteration(model, state, output_schema):
            text += result.output
            output, text = (text.replace("1234", "****"), "") if result.messages else ("", text)
            yield msgspec.structs.replace(result, output=output)


class Silent(DefaultStreamingOrchestrator):
    """Passes on events and messages alone, as wrappers did before steps had an output."""

    async def process_iteration(
        self,
        model: ChatModel,
        state: StreamingState,
        output_schema: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[StreamingIterationResult, None]:
        async for result in super().process_iteration(model, state, output_schema):
            yield StreamingIterationResult(
                events=result.events,
                messages=result.messages,
                should_continue=result.should_continue,
                finish_reason=result.finish_reason,
                usage=result.usage,
            )


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if message.role == "model"]


async def test_a_changed_output_counts_in_result_messages_and_stream() -> None:
    model = ScriptedModel([["let me look", CALL], "it rains"])
    agent = Agent(model, tools=[look], orchestrator=Loud)

    result = await agent.send("Rome?")

    assert result.output == "LET ME LOOK\nIT RAINS"
    assert texts(result.messages) == ["LET ME LOOK", "IT RAINS"]
    assert result.messages[1].tool_calls == (CALL,)


async def test_the_next_request_has_the_changed_text() -> None:
    requests: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Any:
        requests.append(request)
        return ["let me look", CALL] if len(requests) == 1 else "it rains"

    await Agent(ScriptedModel(answer), tools=[look], orchestrator=Loud).send("Rome?")

    assert texts(tuple(requests[1].messages)) == ["LET ME LOOK"]


async def test_chunks_and_events_say_the_same() -> None:
    agent = Agent(ScriptedModel(["it rains all day"]), orchestrator=Loud)
    text, chunks = "", list[ChatResult[str]]()
    async for chunk in agent.send_stream("Rome?"):
        chunks.append(chunk)
        text = chunk.joined(text)
    assert text == "IT RAINS ALL DAY"
    assert not [chunk for chunk in chunks if chunk.retracted]

    agent = Agent(ScriptedModel(["it rains all day"]), orchestrator=Loud)
    events = [event async for event in agent.send_events("Rome?")]
    assert texts(tuple(fold(events))) == ["IT RAINS ALL DAY"]


async def test_text_that_is_held_back_is_shown_by_nothing() -> None:
    agent = Agent(ScriptedModel(["the code is 1234, really"]), orchestrator=Whole)
    events = [event async for event in agent.send_events("Code?")]

    assert "1234" not in repr(events)
    assert texts(tuple(fold(events))) == ["the code is ****, really"]
    result = await Agent(ScriptedModel(["the code is 1234"]), orchestrator=Whole).send("Code?")
    assert (result.output, texts(result.messages)) == ("the code is ****", ["the code is ****"])


async def test_a_typed_output_is_read_from_the_changed_text() -> None:
    class Doubling(DefaultStreamingOrchestrator):
        async def process_iteration(
            self,
            model: ChatModel,
            state: StreamingState,
            output_schema: Mapping[str, Any] | None = None,
        ) -> AsyncGenerator[StreamingIterationResult, None]:
            async for result in super().process_iteration(model, state, output_schema):
                yield msgspec.structs.replace(result, output=result.output.replace("4", "8"))

    agent = Agent(ScriptedModel(['{"result": 4}', '{"result": 4}']), orchestrator=Doubling)

    assert (await agent.send_for("2+2?", dict[str, int])).output in (
        {"result": 8},
        {"result": {"result": 8}},
    )


async def test_a_wrapper_that_gives_events_alone_changes_nothing() -> None:
    agent = Agent(
        ScriptedModel([["let me look", CALL], "it rains"]), tools=[look], orchestrator=Silent
    )

    result = await agent.send("Rome?")

    assert result.output == "let me look\nit rains"
    assert texts(result.messages) == ["let me look", "it rains"]


async def test_a_signature_over_changed_text_is_left_out() -> None:
    signed = TextPart("it rains", native={"anthropic": {"signature": "s"}})

    result = await Agent(ScriptedModel([[signed]]), orchestrator=Loud).send("Rome?")

    assert result.messages[-1].content == (TextPart("IT RAINS"),)


async def test_an_orchestrator_may_be_an_instance_with_plain_hooks() -> None:
    seen: list[str] = []

    class Plain(DefaultStreamingOrchestrator):
        def initialize(self, state: StreamingState) -> None:  # pyright: ignore
            seen.append("initialize")

        def finalize(self, state: StreamingState) -> None:  # pyright: ignore
            seen.append("finalize")

    result = await Agent(ScriptedModel(["hello"]), orchestrator=Plain()).send("Hi.")

    assert (result.output, seen) == ("hello", ["initialize", "finalize"])


async def test_a_loop_by_hand_has_the_text_of_each_step() -> None:
    """D-24: the second message's first output begins with a newline, where no run puts it there."""
    agent = Agent(ScriptedModel([["A", CALL], "B"]), tools=[look])
    model = agent._models.chat(None)  # the manual loop of the seed
    state = StreamingState([Message.user("Rome?")], {"look": look})
    orchestrator = DefaultStreamingOrchestrator()
    outputs: list[str] = []
    goes_on = True
    while goes_on:
        async for step in orchestrator.process_iteration(model, state):
            outputs.append(step.output)
            goes_on = step.should_continue

    assert "".join(outputs) == "A\nB"


async def test_a_tool_is_invoked_by_its_arguments() -> None:
    @tool
    async def greet(context: ToolContext[str], name: str) -> str:
        return f"{context.deps}, {name}"

    assert await look.invoke({"city": "Rome"}) == "rain in Rome"
    assert await greet.invoke({"name": "Ada"}, ToolContext("Hello")) == "Hello, Ada"


async def test_a_run_that_is_left_keeps_the_changed_text() -> None:
    agent = Agent(ScriptedModel(["the code is 1234 " * 40]), orchestrator=Loud)
    async with agent.run("Code?") as run:
        async for step in run.steps():
            if "CODE" in step.output or any("CODE" in chunk.output for chunk in step.chunks()):
                break
        partial = run.so_far()
    assert "CODE" in partial.output
    assert "code" not in repr(partial.messages[1:])

    hidden = Agent(ScriptedModel(["the code is 1234 " * 40]), orchestrator=Whole)
    async with hidden.run("Code?") as run:
        steps = run.steps()
        for _ in range(8):
            await anext(steps)
        await steps.aclose()
        run.cancel()
        events = await run.leave()
    assert "1234" not in repr((events, run.so_far()))
