"""The extension points of seed 003, used as its text shows them, against a provider that streams
over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from dragoman import (
    Agent,
    Message,
    ModelRequest,
    Provider,
    TextPart,
    ToolCallPart,
    ToolContext,
    Usage,
    fold,
    tool,
)
from dragoman.message import Role
from dragoman.model import ChatModel
from dragoman.orchestration import (
    DefaultStreamingOrchestrator,
    MessageAccumulator,
    StreamingIterationResult,
    StreamingState,
)
from dragoman.tools import ToolExecutionResult, ToolExecutor
from support.llm_server import Llm, serving
from support.model import PROVIDER, agent, call, says

pytestmark = pytest.mark.anyio

USAGE = Usage(input_tokens=1, output_tokens=1, total_tokens=2)


def reply(request: ModelRequest) -> Message:
    """Calls two tools and then says what they gave."""
    last = request.messages[-1]
    if last.tool_results:
        return says(f"They gave {[result.result for result in last.tool_results]}.").replace(
            usage=USAGE
        )
    if request.tools:
        return says("Let me see.", call("add", id="c1", x=1), call("add", id="c2", x=2)).replace(
            usage=USAGE
        )
    return says("Nothing to call.").replace(usage=USAGE)


@pytest.fixture
def llm() -> Iterator[Llm]:
    with serving(reply) as server:
        yield server


@tool
async def add(ctx: ToolContext[int], x: int) -> int:
    """Adds."""
    return x + (ctx.deps or 0)


def record(llm: Llm, **fields: Any) -> Provider:
    return msgspec.structs.replace(PROVIDER, base_url=llm.url, **fields)


SAID = "Let me see.\nThey gave ['11', '12']."


async def check(a: Agent[Any], expected: str = SAID) -> None:
    """One run: its stream, its result and its events tell the same."""
    joined, chunks = "", []
    async for chunk in a.send_stream("go", deps=10):
        joined = chunk.joined(joined)
        chunks.append(chunk)
    assert joined == expected
    assert len([chunk for chunk in chunks if chunk.output]) > 3
    async with a.run("go", deps=10) as run:
        events = [event async for event in run]
        result = await run.result()
    assert result.output == expected
    assert tuple(fold(events)) == result.messages
    assert [message.role for message in result.messages] == [
        Role.USER,
        Role.MODEL,
        Role.USER,
        Role.MODEL,
    ]
    assert result.usage == Usage(input_tokens=2, output_tokens=2, total_tokens=4)


class Loop:
    """The block under DefaultStreamingOrchestrator, line by line, with its helpers of "UX State
    Management"."""

    provider_hint = "003"

    async def initialize(self, state: StreamingState) -> None:
        pass

    async def process_iteration(
        self,
        model: ChatModel,
        state: StreamingState,
        output_schema: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[StreamingIterationResult]:
        state.reset_for_new_message()
        async for result in model.send_stream(state.conversation_history):
            state.last_result = result
            # Stream text chunks immediately
            text_output = result.output.text
            if text_output:
                prefix = "\n" if self.should_prefix_newline(state) else ""
                yield StreamingIterationResult(output=prefix + text_output, should_continue=True)
                self.update_streaming_state(state, text_output)
            # Accumulate complete message
            state.accumulated_message = state.accumulator.accumulate(
                state.accumulated_message, result.output
            )

        # Process consolidated message
        consolidated_message = state.accumulator.consolidate(state.accumulated_message)
        tool_calls = [part for part in consolidated_message.parts if isinstance(part, ToolCallPart)]
        state.add_to_history(consolidated_message)
        yield StreamingIterationResult(
            messages=[consolidated_message],
            should_continue=bool(tool_calls),
            finish_reason=state.last_result.finish_reason,
            usage=state.last_result.usage,
        )
        if tool_calls:
            # Execute tools and continue streaming
            results = await state.executor.execute_batch(tool_calls, state.tool_map)
            answer = Message.user(*[result.part for result in results])
            state.add_to_history(answer)
            self.set_tool_execution_flags(state)
            yield StreamingIterationResult(messages=[answer], should_continue=True)

    async def finalize(self, state: StreamingState) -> None:
        pass

    def should_prefix_newline(self, state: StreamingState) -> bool:
        return state.should_prefix_next_message and state.is_first_chunk_of_message

    def update_streaming_state(self, state: StreamingState, text_output: str) -> None:
        if text_output:
            state.is_first_chunk_of_message = False

    def set_tool_execution_flags(self, state: StreamingState) -> None:
        state.should_prefix_next_message = True  # Next AI message needs newline prefix


async def test_the_loop_of_003(llm: Llm) -> None:
    await check(Agent(record(llm), tools=[add], orchestrator=Loop))
    assert [spec.name for spec in llm.requests[0].tools] == ["add"]


class CustomStreamingOrchestrator:
    """ "Adding New Orchestrators": from the protocol alone, with the model's events."""

    provider_hint = "custom"

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def initialize(self, state: StreamingState) -> None:
        self.seen.append("initialize")

    async def process_iteration(
        self,
        model: ChatModel,
        state: StreamingState,
        output_schema: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[StreamingIterationResult]:
        accumulator = MessageAccumulator()
        async for event in model.stream(
            state.request.replace(
                messages=state.conversation_history, tools=state.specs, output_schema=output_schema
            )
        ):
            accumulator.add(event)
            yield StreamingIterationResult(events=[event])
        message = accumulator.message()
        state.add_to_history(message)
        yield StreamingIterationResult(
            messages=(message,),
            should_continue=bool(message.tool_calls),
            usage=message.usage,
            finish_reason=message.finish_reason,
        )
        if message.tool_calls:
            results = await state.executor.execute_batch(message.tool_calls, state.tool_map)
            answer = Message.user(*[result.part for result in results])
            state.add_to_history(answer)
            yield StreamingIterationResult(messages=(answer,))

    async def finalize(self, state: StreamingState) -> None:
        self.seen.append("finalize")


async def test_a_new_orchestrator_from_the_protocol_alone_streams_text(llm: Llm) -> None:
    made: list[CustomStreamingOrchestrator] = []

    def make() -> CustomStreamingOrchestrator:
        made.append(CustomStreamingOrchestrator())
        return made[-1]

    await check(Agent(record(llm), tools=[add], orchestrator=make))
    assert [each.seen for each in made] == [["initialize", "finalize"]] * 2


class ParallelToolExecutor(ToolExecutor):
    """ "Extending Tool Execution", with the seed's two arguments."""

    async def execute_batch(
        self, tool_calls: Sequence[ToolCallPart], tool_map: Mapping[str, Any]
    ) -> list[ToolExecutionResult]:
        # Execute tools in parallel using gather
        futures = [self.execute_single(call, tool_map) for call in tool_calls]
        return await asyncio.gather(*futures)


async def test_an_executor_with_the_seeds_two_arguments(llm: Llm) -> None:
    await check(Agent(record(llm), tools=[add], executor=ParallelToolExecutor()))


async def test_an_executor_that_runs_one_call_its_own_way_knows_its_context() -> None:
    seen: list[Any] = []

    class Noting(ToolExecutor):
        async def execute_single(
            self, tool_call: ToolCallPart, tool_map: Mapping[str, Any]
        ) -> ToolExecutionResult:
            seen.append((tool_call.id, self.context.deps))
            return await super().execute_single(tool_call, tool_map)

    a, _ = agent(says(call("add", x=1)), says("done"), tools=[add], executor=Noting())
    result = await a.send("hi", deps=5)
    assert seen == [("c1", 5)]
    assert result.messages[2].tool_results[0].result == 6


class OptimizedMessageAccumulator(MessageAccumulator):
    """ "Custom Message Accumulators"."""

    provider_hint = "optimized"

    def accumulate(self, existing: Message | None, new_chunk: Message) -> Message:
        CHUNKS.append(new_chunk)
        return super().accumulate(existing, new_chunk)

    def consolidate(self, accumulated: Message) -> Message:
        message = super().consolidate(accumulated)
        loud = [
            TextPart(part.text.upper()) if isinstance(part, TextPart) else part
            for part in message.content
        ]
        return message.replace(content=tuple(loud))


CHUNKS: list[Message] = []


async def test_a_custom_accumulators_accumulate_and_consolidate_count(llm: Llm) -> None:
    CHUNKS.clear()
    await check(
        Agent(record(llm), tools=[add], accumulator=OptimizedMessageAccumulator), SAID.upper()
    )
    assert "".join(chunk.text for chunk in CHUNKS) == SAID.replace("\n", "") * 2
    assert len([chunk for chunk in CHUNKS if chunk.text]) > 6
    assert llm.requests[1].messages[1].text == "LET ME SEE."


async def test_an_accumulator_that_changes_nothing_loses_nothing() -> None:
    class Counting(MessageAccumulator):
        def accumulate(self, existing: Message | None, chunk: Message) -> Message:
            return super().accumulate(existing, chunk)

    signed = TextPart("b", {"google": {"thoughtSignature": "x"}})
    answer = says("a", signed, call("t"), call("t"))
    a, _ = agent(answer, says("done"), accumulator=Counting)
    result = await a.send("hi")
    assert result.messages[1].content == answer.content


async def test_the_loop_of_003_takes_a_custom_accumulator_too(llm: Llm) -> None:
    a = Agent(record(llm), tools=[add], orchestrator=Loop, accumulator=OptimizedMessageAccumulator)
    async with a.run("go", deps=10) as run:
        events = [event async for event in run]
        result = await run.result()
    assert [
        message.text for message in result.messages if message.role is Role.MODEL
    ] == SAID.upper().split("\n")
    assert tuple(fold(events)) == result.messages


async def test_a_providers_record_may_name_its_orchestrator_and_its_accumulator(llm: Llm) -> None:
    class Own(DefaultStreamingOrchestrator):
        provider_hint = "own"
        runs = 0

        async def initialize(self, state: StreamingState) -> None:
            Own.runs += 1

    CHUNKS.clear()
    provider = record(llm, orchestrator=Own, accumulator=OptimizedMessageAccumulator)
    await check(Agent(provider, tools=[add]), SAID.upper())
    assert Own.runs == 2
    await check(
        Agent(provider, tools=[add], orchestrator=Loop, accumulator=MessageAccumulator)
    )  # the agent's go before
    assert Own.runs == 2


async def test_an_error_in_a_models_chunks_is_raised_and_ends_the_run_with_what_was_shown() -> None:
    from dragoman.errors import ProviderError
    from dragoman.event import MessageStarted, OpenText, PartDelta, PartStarted, RunError

    half = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "half"),
    ]
    for orchestrator in (Loop, CustomStreamingOrchestrator):
        a, _ = agent([*half, RunError(ProviderError("gone"))], orchestrator=orchestrator)
        async with a.run("hi") as run:
            events = [event async for event in run]
        assert run.so_far().output == "half"
        assert run.so_far().messages == tuple(fold(events))
        assert isinstance(events[-1], RunError)
