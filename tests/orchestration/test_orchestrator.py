"""The loop's step: rules D-21…D-32, and the limits and paused turns of the decisions."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import (
    Agent,
    Custom,
    DataPart,
    Limits,
    Message,
    Origin,
    ServerTool,
    ToolCallPart,
    ToolResultPart,
    fold,
    tool,
)
from dragoman.errors import LimitReachedError, ProviderError
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.message import FinishReason, ProviderPart, Role, TextPart, ThinkingPart, Usage
from dragoman.orchestration import DefaultStreamingOrchestrator
from support.model import PROVIDER, Script, agent, call, says

pytestmark = pytest.mark.anyio


@tool
async def t(x: int = 0) -> int:
    """Adds one."""
    return x + 1


async def chunks(a: Agent[Any], **how: Any) -> list[Any]:
    return [chunk async for chunk in a.send_stream("hi", **how)]


async def test_d21_each_model_call_sees_the_history_so_far() -> None:
    a, script = agent(says("A", call("t", x=1)), says("B"), tools=[t])
    await a.send("hi")
    assert [m.role for m in script.requests[1].messages] == [Role.USER, Role.MODEL, Role.USER]
    assert script.requests[1].messages[2].tool_results[0].result == 2


async def test_d22_an_event_without_text_gives_no_output_but_is_part_of_the_message() -> None:
    a, _ = agent(says(ProviderPart("mark", {"openai_chat": {"a": 1}}), "B"))
    got = await chunks(a)
    assert "".join(c.output for c in got) == "B"
    assert got[-1].messages[0].content[0] == ProviderPart("mark", {"openai_chat": {"a": 1}})


async def test_d23_streamed_chunks_carry_no_usage() -> None:
    a, _ = agent(says("A text", usage=3))
    assert all(c.usage is None for c in await chunks(a) if c.output)


async def test_d24_one_newline_before_the_first_text_of_each_message_after_tools_never_in_the_message() -> (
    None
):
    a, _ = agent(says("A", call("t")), says("B1B2", call("t", id="c2")), says("C"), tools=[t])
    got = await chunks(a)
    assert "".join(c.output for c in got) == "A\nB1B2\nC"
    assert [m.text for c in got for m in c.messages if m.role is Role.MODEL] == ["A", "B1B2", "C"]


async def test_d24_no_newline_without_tools_and_none_when_nothing_is_said() -> None:
    a, _ = agent(says("A"))
    assert (await a.send("hi", history=[Message.user(ToolResultPart("1", "t", 1))])).output == "A"
    a, _ = agent(says(call("t")), says(call("t", id="c2")), says("C"), tools=[t])
    assert (await a.send("hi")).output == "C"  # decision 24


async def test_d26_d147_metadata_is_told_once_and_not_in_the_message() -> None:
    message = says("A").replace(
        native={"openai_chat:notes": {"response": {"system_fingerprint": "fp"}}},
        origin=Origin("scripted", served_model="m-1", response_id="r1"),
    )
    a, _ = agent(message)
    got = await chunks(a)
    told = [c.metadata for c in got if c.metadata]
    assert told == [{"system_fingerprint": "fp", "model": "m-1", "response_id": "r1"}]
    assert got[-1].messages[0].metadata == {}


async def test_d27_without_calls_the_last_chunk_holds_usage_and_finish_reason() -> None:
    a, _ = agent(says("A", reason=FinishReason.length, usage=5))
    last = (await chunks(a))[-1]
    assert (last.finish_reason, last.usage.total_tokens) == (FinishReason.length, 5)


async def test_d28_one_user_message_with_all_results_in_call_order() -> None:
    def boom() -> None:
        raise ValueError("no luck")

    a, _ = agent(
        says(call("t", id="1", x=1), call("nobody", id="2"), call("boom", id="3")),
        says("done"),
        tools=[t, boom],
    )
    result = await a.send("hi")
    assert [m.role for m in result.messages] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    results = result.messages[2].tool_results
    assert [r.id for r in results] == ["1", "2", "3"]
    assert [r.is_error for r in results] == [False, True, True]
    assert "nobody" in results[1].result["error"]
    assert results[2].result == {"error": "no luck"}


async def test_d29_empty_after_tools_is_asked_again_once_for_each_round() -> None:
    a, script = agent(says(call("t")), says(), tools=[t])
    result = await a.send("hi")
    assert len(script.requests) == 3
    assert result.messages[-1].role is Role.MODEL
    assert result.messages[-1].content == ()
    assert len(result.messages) == 4
    a, script = agent(
        says(call("t")), says(), says(call("t", id="2")), says(), says("end"), tools=[t]
    )
    assert (await a.send("hi")).output == "end"
    assert len(script.requests) == 5


async def test_d29_an_empty_message_leaves_no_trace_in_the_stream_but_its_usage_counts() -> None:
    a, _ = agent(says(call("t"), usage=1), says(usage=2), says("end", usage=4), tools=[t])
    async with a.run("hi") as run:
        events = [event async for event in run]
        assert (await run.result()).usage == Usage(input_tokens=0, output_tokens=7, total_tokens=7)
    assert len(fold(events)) == 4


@pytest.mark.parametrize(
    "reason", [FinishReason.stop, FinishReason.length, FinishReason.content_filter]
)
async def test_d30_an_empty_message_otherwise_ends_the_run(reason: FinishReason) -> None:
    a, script = agent(says(reason=reason))
    result = await a.send("hi")
    assert len(script.requests) == 1
    assert [m.role for m in result.messages] == [Role.USER, Role.MODEL]
    assert result.finish_reason is reason


async def test_d31_a_repeated_id_does_not_stop_the_tools() -> None:
    a, _ = agent(says(call("t", id="", x=1), call("t", id="", x=2)), says("done"), tools=[t])
    assert [r.result for r in (await a.send("hi")).messages[2].tool_results] == [2, 3]


async def test_d32_a_failing_call_adds_nothing_and_its_error_comes_unwrapped() -> None:
    error = ProviderError("gone")
    events = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "half"),
    ]
    from dragoman.event import RunError

    a, _ = agent([*events, RunError(error)])
    got: list[Any] = []
    with pytest.raises(ProviderError) as caught:
        async for chunk in a.send_stream("hi"):
            got.append(chunk)
    assert caught.value is error
    assert "".join(c.output for c in got) == "half"
    assert [m.role for c in got for m in c.messages] == [Role.USER]
    async with a.run("hi") as run:
        seen = [event async for event in run]
    assert fold(seen)[-1].text == "half"
    assert fold(seen)[-1].finish_reason is FinishReason.error


async def test_decision_8_limits_name_themselves_and_carry_the_result_so_far() -> None:
    a, script = agent(says("A", call("t"), usage=30), tools=[t], limits=Limits(model_calls=3))
    with pytest.raises(LimitReachedError, match="model calls") as caught:
        await a.send("hi")
    assert len(script.requests) == 3
    assert caught.value.result.output == "A\nA\nA"
    a, script = agent(says("A", call("t"), usage=30), tools=[t], limits=Limits(total_tokens=50))
    with pytest.raises(LimitReachedError, match="tokens"):
        await a.send("hi")
    assert len(script.requests) == 2
    a, _ = agent(says(call("t", id="1"), call("t", id="2")), tools=[t], limits=Limits(tool_calls=1))
    with pytest.raises(LimitReachedError, match="tool calls"):
        await a.send("hi")


async def test_decision_8_fifty_model_calls_by_default() -> None:
    a, script = agent(says(call("t")), tools=[t])
    with pytest.raises(LimitReachedError):
        await a.send("hi")
    assert len(script.requests) == 50


async def test_decision_21_a_paused_turn_goes_on_in_the_same_message() -> None:
    a, script = agent(
        says("Searching", reason=FinishReason.pause, usage=1).replace(
            origin=Origin("scripted", prefix="p")
        ),
        says(ThinkingPart("so"), " found", reason=FinishReason.pause, usage=2),
        says("!", usage=4).replace(origin=Origin("scripted", prefix="q")),
    )
    async with a.run("hi") as run:
        events = [event async for event in run]
        result = await run.result()
    assert tuple(fold(events)) == result.messages
    assert len(result.messages) == 2
    message = result.messages[1]
    assert message.content == (
        TextPart("Searching"),
        ThinkingPart("so"),
        TextPart(" found"),
        TextPart("!"),
    )
    assert message.usage is not None
    assert message.usage.total_tokens == 7
    assert message.finish_reason is FinishReason.stop
    assert message.origin is not None
    assert message.origin.prefix == "p"
    assert [len(r.messages) for r in script.requests] == [1, 2, 2]
    assert script.requests[2].messages[-1].text == "Searching found"


async def test_a_provider_that_pauses_without_an_end_is_left_with_what_it_said() -> None:
    pauses = [says("a", reason=FinishReason.pause) for _ in range(30)]
    a, script = agent(*pauses, limits=Limits(model_calls=None))
    result = await a.send("hi")
    assert len(script.requests) == 21
    assert result.output == "a" * 21


async def test_a_provider_that_pauses_twice_and_says_nothing_is_not_asked_again() -> None:
    summary = ProviderPart("compaction", {"anthropic": {"content": "It was long."}})
    pauses = [says(summary, reason=FinishReason.pause) for _ in range(9)]
    a, script = agent(*pauses)
    await a.send("hi")
    assert len(script.requests) == 2
    a, script = agent(says(summary, reason=FinishReason.pause), says("Done."))
    assert (await a.send("hi")).output == "Done."
    # Asked to sum up and no more, it has done so.
    a, script = agent(*pauses, options={"compaction": {"type": "summarize"}})
    await a.send("hi")
    assert len(script.requests) == 1


async def test_other_candidates_are_left_out() -> None:
    events: list[Any] = []
    for candidate, text in enumerate(["one", "two"]):
        m = f"m{candidate}"
        events += [
            MessageStarted(m, Role.MODEL, candidate),
            PartStarted(m, 0, OpenText()),
            PartDelta(m, 0, text),
            PartFinished(m, 0, TextPart(text)),
        ]
    events += [MessageFinished("m0", FinishReason.stop), MessageFinished("m1", FinishReason.length)]
    a, _ = agent(events)
    result = await a.send("hi")
    assert (result.output, result.finish_reason) == ("one", FinishReason.stop)


async def test_a_dropped_message_leaves_only_what_came_after_it() -> None:
    def told(m: str, text: str) -> list[Any]:
        return [MessageStarted(m, Role.MODEL), PartStarted(m, 0, OpenText()), PartDelta(m, 0, text)]

    a, _ = agent(
        [
            *told("a", "bad"),
            MessageDropped("a", "fallback"),
            *told("b", "good"),
            PartFinished("b", 0, TextPart("good")),
            MessageFinished("b", FinishReason.stop),
        ]
    )
    async with a.run("hi") as run:
        events = [event async for event in run]
        result = await run.result()
    assert result.output == "good"
    assert [m.text for m in fold(events)] == ["hi", "good"]


async def test_d114_d148_what_the_provider_ran_is_metadata_and_never_executed() -> None:
    part = ToolCallPart("s1", "web_search", {"q": "x"}, run_by="provider")
    a, script = agent(
        says(part, ToolResultPart("s1", "web_search", "found", run_by="provider"), "It is."),
        tools=[t],
        server_tools=[ServerTool("web_search")],
    )
    got = await chunks(a)
    assert [list(c.metadata) for c in got if c.metadata] == [["web_search"], ["web_search"]]
    assert len(script.requests) == 1
    assert got[-1].messages[0].parts == (TextPart("It is."),)
    assert [tool.name for tool in script.requests[0].tools] == ["t", "web_search"]


async def test_custom_events_of_a_middleware_reach_the_reader() -> None:
    a, _ = agent(
        [
            MessageStarted("m", Role.MODEL),
            Custom("progress", 1),
            MessageFinished("m", FinishReason.stop),
        ]
    )
    assert Custom("progress", 1) in [event async for event in a.send_events("hi")]


async def test_initialize_and_finalize_are_called_once_also_on_error() -> None:
    from dragoman.orchestration import DefaultStreamingOrchestrator

    seen: list[str] = []

    class Mine(DefaultStreamingOrchestrator):
        async def initialize(self, state: Any) -> None:
            seen.append("initialize")

        async def finalize(self, state: Any) -> None:
            seen.append("finalize")

    a = Agent(
        PROVIDER,
        middleware=[Script(says(call("t")), ProviderError("x"))],
        tools=[t],
        orchestrator=Mine,
    )
    with pytest.raises(ProviderError):
        await a.send("hi")
    assert seen == ["initialize", "finalize"]
    seen.clear()
    async with a.run("hi") as run:
        async for event in run:
            if isinstance(event, PartStarted) and isinstance(event.part, ToolCallPart):
                break
    assert seen == ["initialize", "finalize"]


async def test_d33_d36_a_custom_accumulator_is_used() -> None:
    from dragoman.orchestration import MessageAccumulator

    class Shouting(MessageAccumulator):
        def message(self) -> Message:
            return super().message().replace(metadata={"shouted": True})

    a, _ = agent(says("A"), accumulator=Shouting)
    assert (await a.send("hi")).messages[1].metadata == {"shouted": True}


async def test_an_orchestrator_may_show_every_part() -> None:
    class Everything(DefaultStreamingOrchestrator):
        def shows(self, part: PartStarted) -> bool:
            return True

    answer = says(ThinkingPart("hm"), ": ", DataPart(b"i", "image/png"), "A")
    a, _ = agent(answer, orchestrator=Everything)
    chunks = [chunk async for chunk in a.send_stream("hi")]
    assert [chunk.retracted for chunk in chunks if chunk.retracted] == []
    assert "".join(chunk.output for chunk in chunks) == "hm: A"
    assert (await a.send("hi")).output == "hm: A"


async def test_decision_8_of_a_round_with_too_many_calls_none_is_run() -> None:
    ran: list[int] = []

    @tool
    def note(x: int) -> None:
        """Notes."""
        ran.append(x)

    one, two = call("note", id="1", x=1), call("note", id="2", x=2)
    a, script = agent(says(one), says(one, two), tools=[note], limits=Limits(tool_calls=2))
    with pytest.raises(LimitReachedError, match="2 tool calls"):
        await a.send("hi")
    assert (ran, len(script.requests)) == ([1], 2)


async def test_what_was_shown_of_a_text_that_ends_as_something_else_is_taken_back() -> None:
    started, finish = MessageStarted("m", Role.MODEL), MessageFinished("m", FinishReason.stop)
    parts = [
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "half"),
        PartFinished("m", 0, DataPart(b"i", "a/b")),
    ]
    a, _ = agent([started, *parts, finish])
    chunks = [chunk async for chunk in a.send_stream("hi")]
    assert [
        (chunk.output, chunk.retracted) for chunk in chunks if chunk.output or chunk.retracted
    ] == [
        ("half", ""),
        ("", "half"),
    ]
    assert (await a.send("hi")).output == ""
