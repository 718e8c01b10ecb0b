"""What becomes of a model's events in a run: whole lists, of other candidates, of paused turns, of
what is dropped or rewritten."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import Any

import msgspec
import pytest

from dragoman import Custom, Message, Usage, fold, tool, unfold
from dragoman.errors import ProviderError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from dragoman.loss import Loss
from dragoman.message import (
    FinishReason,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration import (
    DefaultStreamingOrchestrator,
    MessageAccumulator,
    StreamingIterationResult,
    StreamingState,
)
from dragoman.result import ChatResult
from support.model import agent, call, says

pytestmark = pytest.mark.anyio


@tool
async def t(x: int = 0) -> int:
    """Adds one."""
    return x + 1


async def step(*answers: Any, **how: Any) -> tuple[list[Event], ChatResult[str] | None]:
    """The events of a run after its prompt and before its end, and its result."""
    a, script = agent(*answers, **how)
    script.piece = 1000
    async with a.run("hi") as run:
        events = [event async for event in run]
        result = None if run.error else await run.result()
    assert tuple(fold(events)) == run.so_far().messages
    assert isinstance(events[0], RunStarted)
    assert events[-1] == (
        RunError(run.error, run.id)
        if run.error
        else RunFinished(run.id, usage=result.usage, result=result.output or None)
    )
    return events[6:-1], result


def start(m: str, **more: Any) -> Event:
    return MessageStarted(m, Role.MODEL, **{"turn": m, **more})


def words(m: str, index: int, *pieces: str) -> list[Event]:
    deltas = [PartDelta(m, index, piece) for piece in pieces]
    return [
        PartStarted(m, index, OpenText()),
        *deltas,
        PartFinished(m, index, TextPart("".join(pieces))),
    ]


def end(
    m: str, reason: FinishReason = FinishReason.stop, usage: int | None = None, **more: Any
) -> Event:
    return MessageFinished(
        m, reason, None if usage is None else Usage(input_tokens=0, output_tokens=usage), **more
    )


def stepped(*inside: Event, losses: tuple[Loss, ...] = ()) -> list[Event]:
    return [StepStarted("model call 1"), *inside, StepFinished("model call 1", losses)]


async def test_of_several_candidates_the_first_is_told_and_of_the_others_nothing() -> None:
    events, result = await step(
        [
            *[start("a"), start("b", candidate=1), start("c", candidate=2)],
            *[
                PartStarted("b", 0, OpenText()),
                PartStarted("a", 0, OpenText()),
                PartDelta("b", 0, "B"),
            ],
            *[
                PartDelta("a", 0, "A"),
                PartFinished("b", 0, TextPart("B")),
                MessageFinished("b", FinishReason.length),
            ],
            *[
                Custom("x"),
                PartFinished("a", 0, TextPart("A")),
                end("a", usage=1),
                MessageDropped("c", "no"),
            ],
        ]
    )
    a = words("a", 0, "A")
    assert events == stepped(start("a"), *a[:2], Custom("x"), a[2], end("a", usage=1))
    assert (result.output, result.finish_reason, len(result.messages)) == (
        "A",
        FinishReason.stop,
        2,
    )


async def test_the_start_of_a_message_is_told_with_what_stands_in_it_first() -> None:
    events, _ = await step([Custom("before"), start("a"), end("a")])
    assert events == stepped(Custom("before"), start("a"), end("a"))
    events, _ = await step([start("a"), Custom("x"), end("a")])
    assert events == stepped(start("a"), Custom("x"), end("a"))


async def test_what_is_dropped_before_it_was_told_leaves_nothing_else_a_mark() -> None:
    untold, told = [start("a"), MessageDropped("a", "first")], [start("b"), *words("b", 0, "B")]
    last = [start("c"), *words("c", 0, "C"), end("c")]
    events, result = await step([*untold, *told, MessageDropped("b", "second"), *last])
    assert events == stepped(*told, MessageDropped("b", "second"), *last)
    assert (result.output, result.id) == ("C", "c")


LOSSES = tuple(Loss(None, number, f"what {number}", "why") for number in range(3))


async def test_each_loss_is_named_once_at_the_end_of_the_step_in_which_it_happened() -> None:
    calls = unfold([says(call("t")).replace(id="a")])
    first = [start("a", losses=(LOSSES[0], LOSSES[1], LOSSES[0])), *calls[1:]]
    second = [start("b", losses=(LOSSES[1], LOSSES[2])), *words("b", 0, "B"), end("b")]
    third = [start("c", losses=LOSSES), *words("c", 0, "C"), end("c")]
    a, _ = agent(
        first, [*second[:-1], *unfold([says(call("t")).replace(id="b")])[1:]], third, tools=[t]
    )
    async with a.run("hi") as run:
        events = [event async for event in run]
        result = await run.result()
    assert [event.losses for event in events if isinstance(event, StepFinished)] == [
        LOSSES[:2],
        LOSSES[2:],
        (),
    ]
    assert result.losses == LOSSES
    a, _ = agent(second)
    chunks = [chunk async for chunk in a.send_stream("hi")]
    assert [(chunk.losses, chunk.id) for chunk in chunks if chunk.losses] == [(LOSSES[1:], "b")]


async def test_a_failing_step_names_its_losses_too() -> None:
    events, _ = await step(
        [start("a", losses=LOSSES), *words("a", 0, "A"), RunError(ProviderError("gone"))]
    )
    assert events == stepped(
        start("a", losses=LOSSES), *words("a", 0, "A"), end("a", FinishReason.error), losses=LOSSES
    )


PAUSE = FinishReason.pause


async def test_decision_21_a_turn_that_pauses_twice_is_one_message() -> None:
    """Indexes go on, other candidates stay out, and what belongs to no message passes as it is."""
    first = [
        start("a", native={"w": {"a": 1}}),
        *words("a", 0, "A"),
        end("a", PAUSE, 1, origin=Origin("p", prefix="x")),
    ]
    second = [
        *[
            start("b"),
            start("o", candidate=1),
            *words("o", 0, "O"),
            Custom("c"),
            *words("b", 0, "B"),
            *words("b", 1, "C"),
        ],
        end("b", PAUSE, origin=Origin("q", prefix="y")),
    ]
    third = [
        start("c"),
        *words("c", 0, "D"),
        end("c", FinishReason.length, 4, origin=Origin("r", prefix="z")),
    ]
    events, result = await step(first, second, third)
    last = end("a", FinishReason.length, 5, origin=Origin("r", prefix="x"))
    assert events == stepped(
        *[
            first[0],
            *words("a", 0, "A"),
            Custom("c"),
            *words("a", 1, "B"),
            *words("a", 2, "C"),
            *words("a", 3, "D"),
            last,
        ]
    )
    assert (result.output, result.id, result.usage) == ("ABCD", "a", last.usage)


@pytest.mark.parametrize(
    ("before", "after", "prefix"),
    [(None, Origin("q", prefix="y"), "y"), (Origin("p", prefix="x"), None, None)],
)
async def test_a_paused_turn_of_which_one_call_names_no_origin(
    before: Any, after: Any, prefix: str | None
) -> None:
    first = [start("a"), *words("a", 0, "A"), end("a", PAUSE, origin=before)]
    events, result = await step(
        first, [start("b"), *words("b", 0, "B"), end("b", usage=2, origin=after)]
    )
    assert (events[-2].origin.prefix if after else events[-2].origin) == prefix
    assert result.usage == Usage(input_tokens=0, output_tokens=2)


async def test_a_paused_turn_that_fails_keeps_what_had_come_and_its_usage() -> None:
    origin = Origin("p", prefix="x")
    first = [start("a"), *words("a", 0, "A"), end("a", PAUSE, 3, origin=origin)]
    failed = end("a", FinishReason.error, 3, origin=origin)
    error = ProviderError("gone")
    half = [PartStarted("a", 1, OpenText()), PartDelta("a", 1, "B")]
    events, _ = await step(
        first,
        [start("b"), PartStarted("b", 0, OpenText()), PartDelta("b", 0, "B"), RunError(error)],
    )
    assert events == stepped(*first[:-1], *half, PartFinished("a", 1, TextPart("B")), failed)
    assert error.result.usage == Usage(input_tokens=0, output_tokens=3)
    assert (error.result.output, error.result.finish_reason) == ("AB", FinishReason.error)
    events, _ = await step(first, ProviderError("at once"))
    assert events == stepped(*first[:-1], failed)


async def test_a_paused_turn_that_is_dropped_begins_again() -> None:
    first = [start("a"), *words("a", 0, "A"), end("a", PAUSE, 3)]
    second = [
        start("b"),
        *words("b", 0, "B"),
        MessageDropped("b", "again"),
        start("c"),
        *words("c", 0, "C"),
        end("c"),
    ]
    events, result = await step(first, second)
    assert events == stepped(
        *first[:-1], *words("a", 1, "B"), MessageDropped("a", "again"), *second[-5:]
    )
    assert (result.output, [message.id for message in result.messages[1:]]) == ("C", ["c"])


async def test_an_empty_message_that_pauses_goes_on() -> None:
    events, result = await step(
        [start("a"), end("a", PAUSE)], [start("b"), *words("b", 0, "B"), end("b")]
    )
    assert events == stepped(
        start("a"), *words("a", 0, "B"), MessageFinished("a", FinishReason.stop, Usage())
    )
    assert result.output == "B"


async def test_a_message_that_ended_before_the_failure_keeps_its_end() -> None:
    error = ProviderError("gone")
    whole = [start("a"), *words("a", 0, "A"), end("a", FinishReason.length, 2)]
    events, _ = await step([*whole, RunError(error)])
    assert events == stepped(*whole)
    assert error.result.messages[1].finish_reason is FinishReason.length
    assert error.result.usage == Usage(input_tokens=0, output_tokens=2)


async def test_a_failure_before_anything_stood_in_the_message_leaves_no_message() -> None:
    error = ProviderError("gone")
    events, _ = await step([start("a"), RunError(error)])
    assert events == stepped()
    assert [message.role for message in error.result.messages] == [Role.USER]


async def test_all_parts_that_are_open_at_a_failure_are_closed_as_cut() -> None:
    opened = [
        start("a"),
        PartStarted("a", 0, ThinkingPart()),
        PartStarted("a", 1, ToolCallPart("1", "f")),
    ]
    deltas = [PartDelta("a", 0, "hm"), PartDelta("a", 1, '{"x"')]
    events, _ = await step([*opened, *deltas, RunError(ProviderError("gone"))])
    cut = ToolCallPart("1", "f", raw='{"x"', state="cut")
    closed = [PartFinished("a", 0, ThinkingPart("hm")), PartFinished("a", 1, cut)]
    assert events == stepped(*opened, *deltas, *closed, end("a", FinishReason.error))


class Loud(MessageAccumulator):
    """Says all texts loud."""

    def message(self) -> Message:
        message = super().message()
        texts = [
            TextPart(part.text.upper()) if isinstance(part, TextPart) else part
            for part in message.content
        ]
        return message.replace(
            content=tuple(texts), metadata={"loud": True} if texts else {}, finish_reason=None
        )


async def test_a_message_that_a_custom_accumulator_rewrote_is_told_anew_with_the_providers_fields() -> (
    None
):
    whole = [start("a", origin=Origin("p")), *words("a", 0, "x", "y"), end("a", usage=2)]
    events, result = await step([*whole], accumulator=Loud)
    loud = Message.model("XY").replace(
        id="a",
        turn="a",
        origin=Origin("p"),
        metadata={"loud": True},
        finish_reason=FinishReason.stop,
        usage=result.usage,
    )
    assert events == stepped(*whole[:-1], MessageDropped("a", "rewritten"), *unfold([loud]))
    assert result.messages[1:] == (loud,)
    assert result.output == "XY"


async def test_a_message_that_a_custom_accumulator_leaves_as_it_is_is_told_once() -> None:
    class Same(MessageAccumulator):
        pass

    whole = [start("a"), *words("a", 0, "x", "y"), end("a", usage=2)]
    events, _ = await step(whole, accumulator=Same)
    assert events == stepped(*whole)


async def test_a_message_that_a_custom_accumulator_made_of_nothing_is_told_whole() -> None:
    class Filling(MessageAccumulator):
        def message(self) -> Message:
            return super().message().replace(content=(TextPart("filled"),))

    events, result = await step([start("a"), end("a")], accumulator=Filling)
    filled = Message.model("filled").replace(id="a", turn="a", finish_reason=FinishReason.stop)
    assert events == stepped(*unfold([filled]))
    assert result.messages[1:] == (filled,)


async def test_a_message_that_is_cut_while_a_custom_accumulator_builds_it() -> None:
    half = [start("a"), PartStarted("a", 0, OpenText()), PartDelta("a", 0, "half")]
    error = ProviderError("gone")
    events, _ = await step([*half, RunError(error)], accumulator=Loud)
    kept = Message.model("HALF").replace(
        id="a", turn="a", metadata={"loud": True}, finish_reason=FinishReason.error
    )
    closed = PartFinished("a", 0, TextPart("half"))
    assert events == stepped(*half, closed, MessageDropped("a", "rewritten"), *unfold([kept]))
    assert error.result.messages[1:] == (kept,)
    assert error.result.output == "HALF"


async def test_results_of_tools_follow_the_message_that_asked_for_them() -> None:
    """D-29 counts each round of tools anew, and looks no further back than the last two
    messages."""
    history = [
        Message.user("0"),
        says(call("t")),
        Message.user(ToolResultPart("c1", "t", 1)),
        says("done"),
    ]
    a, script = agent(says())
    await a.send("hi", history=history)
    assert len(script.requests) == 1
    a, script = agent(says())
    await a.send(None, history=history[:3])
    assert len(script.requests) == 2
    a, script = agent(says())
    await a.send("hi", history=history[:3])
    assert len(script.requests) == 2


class Passing:
    """An orchestrator that passes the model's events on as they come in each read, and tells its
    message after them."""

    provider_hint = "passing"

    async def initialize(self, state: StreamingState) -> None:
        pass

    async def process_iteration(
        self, model: ChatModel, state: StreamingState, output_schema: Any = None
    ) -> Any:
        events = [
            event
            async for event in model.stream(
                state.request.replace(messages=state.conversation_history)
            )
        ]
        state.reset_for_new_message()
        yield StreamingIterationResult(events=events[:1])
        assert state.is_first_chunk_of_message
        yield StreamingIterationResult(events=events[1:])
        assert not state.is_first_chunk_of_message
        message = fold(events)[0]
        yield StreamingIterationResult(
            messages=(message,), usage=message.usage, should_continue=False
        )

    async def finalize(self, state: StreamingState) -> None:
        state.deps.append("finalized")


async def test_an_orchestrators_events_that_end_in_an_error_are_told_up_to_it() -> None:
    error = ProviderError("gone")
    half = [start("a"), PartStarted("a", 0, OpenText()), PartDelta("a", 0, "half")]
    deps: list[str] = []
    a, _ = agent([*half, RunError(error)], orchestrator=Passing)
    async with a.run("hi", deps=deps) as run:
        events = [event async for event in run]
    assert events[6:] == [
        *stepped(*half, MessageDropped("a", "told whole"), *unfold(run.error.result.messages[1:])),
        RunError(error, run.id),
    ]
    assert run.error.result.messages[1:] == (
        Message.model("half").replace(id="a", finish_reason=FinishReason.error),
    )
    assert deps == ["finalized"]


async def test_an_orchestrators_events_are_told_once_though_its_message_follows_them() -> None:
    whole = [start("a"), *words("a", 0, "A"), end("a", usage=2)]
    deps: list[str] = []
    a, _ = agent(whole, orchestrator=Passing)
    async with a.run("hi", deps=deps) as run:
        events = [event async for event in run]
        result = await run.result()
    assert events[6:] == [
        *stepped(*whole),
        RunFinished(run.id, usage=result.usage, result=result.output or None),
    ]
    assert (result.output, result.usage, deps) == (
        "A",
        Usage(input_tokens=0, output_tokens=2),
        ["finalized"],
    )
    assert result.messages == tuple(fold(events))


class Giving:
    """An orchestrator that gives output and messages, and no events."""

    provider_hint = "giving"

    async def initialize(self, state: StreamingState) -> None:
        self.calls = 0

    async def process_iteration(
        self, model: ChatModel, state: StreamingState, output_schema: Any = None
    ) -> Any:
        self.calls += 1
        state.reset_for_new_message()
        assert state.is_first_chunk_of_message
        for piece in ("o", "ut"):
            yield StreamingIterationResult(output=piece)
            assert not state.is_first_chunk_of_message
        if self.calls > 1:
            raise ProviderError("gone")
        message = Message.model(f"message {self.calls}").replace(id=f"m{self.calls}")
        yield StreamingIterationResult(messages=(message,), finish_reason=FinishReason.stop)

    async def finalize(self, state: StreamingState) -> None:
        pass


async def test_output_that_an_orchestrator_gives_is_shown_in_place_of_its_messages_text() -> None:
    a, _ = agent(says(), orchestrator=Giving)
    chunks: list[ChatResult[str]] = []
    with pytest.raises(ProviderError) as caught:
        async for chunk in a.send_stream("hi"):
            chunks.append(chunk)
    first = Message.model("message 1").replace(id="m1")
    assert chunks[1:] == [
        *[ChatResult("o"), ChatResult("ut"), ChatResult("", (first,), FinishReason.stop, id="m1")],
        *[ChatResult("o", id="m1"), ChatResult("ut", id="m1")],
    ]
    result = caught.value.result
    run_id = result.messages[2].id
    assert run_id.endswith("-2")
    assert result.messages[1:] == (
        first,
        Message.model("out").replace(id=run_id, finish_reason=FinishReason.error),
    )
    assert (result.output, result.finish_reason, result.id) == (
        "outout",
        FinishReason.error,
        run_id,
    )


async def test_decision_24_no_newline_stands_between_two_messages_without_tools_between_them() -> (
    None
):
    class Twice(DefaultStreamingOrchestrator):
        def correction(self, state: StreamingState, message: Message) -> Message | None:
            return Message.user("again") if message.text == "A" else None

    a, _ = agent(says("A"), says("B"), orchestrator=Twice)
    assert "".join([chunk.output async for chunk in a.send_stream("hi")]) == "AB"
    a, _ = agent(says("A"), says("B"), orchestrator=Twice)
    assert (await a.send("hi")).output == "AB"
    theirs = [
        each("s", "search", run_by="provider")
        for each in (ToolCallPart, partial(ToolResultPart, result="x"))
    ]
    a, _ = agent(says(*theirs, "A"), says("B"), orchestrator=Twice)
    assert (await a.send("hi")).output == "AB"


def test_what_an_orchestrator_finds_in_a_fresh_state_and_in_one_that_begins_a_message() -> None:
    def flags(state: StreamingState) -> tuple[Any, ...]:
        return (
            *(state.done, state.should_prefix_next_message, state.empty_after_tools_continuations),
            *(
                state.account.tool_calls,
                state.losses,
                state.output,
                state.suppressed_text,
                state.set_aside,
            ),
            *(
                state.failure,
                state.is_first_chunk_of_message,
                state.last_result,
                state.output_retries,
            ),
        )

    fresh = (False, False, 0, 0, {}, None, "", None, None, True, None, 1)
    state = StreamingState([Message.user("hi")], [t])
    assert flags(state) == fresh
    assert (state.intake, state.accumulated_message, state.run_id, state.deps) == (
        None,
        Message.model(),
        "",
        None,
    )
    assert (state.conversation_history, state.specs) == ((Message.user("hi"),), (t.spec,))
    assert (state.tool_map, state.validate, state.new_id) == ({"t": t}, None, None)
    state.accumulated_message = Message.model("set")
    state.last_result, state.is_first_chunk_of_message = ChatResult(Message.model("x")), False
    accumulator = state.accumulator
    assert state.accumulated_message == Message.model("set")
    intake = state.reset_for_new_message()
    assert flags(state) == fresh
    assert state.accumulated_message == Message.model()
    assert state.accumulator is not accumulator
    assert state.intake is intake
    intake.feed([start("a"), PartStarted("a", 0, OpenText()), PartDelta("a", 0, "half")])
    assert state.accumulated_message == Message.model("half").replace(id="a", turn="a")
    state.accumulated_message = Message.model("set")
    assert state.accumulated_message == Message.model("set")
    state.request_next_message_prefix()
    state.complete()
    assert flags(state) == (True, True, *fresh[2:])


@pytest.mark.parametrize(
    ("history", "recent"),
    [
        ([], False),
        ([Message.user("a")], False),
        ([Message.user(ToolResultPart("1", "t", 1))], True),
        ([Message.user(ToolResultPart("1", "t", 1)), Message.user("a")], True),
        ([Message.user(ToolResultPart("1", "t", 1)), Message.user("a"), Message.user("b")], False),
        ([Message.model(ToolResultPart("1", "t", 1))], False),
    ],
)
def test_d29_tools_ran_recently_where_a_result_stands_among_the_last_two_messages(
    history: Any, recent: bool
) -> None:
    assert StreamingState(history).has_recent_tool_execution is recent


class AtOnce(DefaultStreamingOrchestrator):
    """Tells all events of a model call in one step."""

    async def process_iteration(
        self, model: ChatModel, state: StreamingState, output_schema: Any = None
    ) -> Any:
        events: list[Event] = []
        async with aclosing(super().process_iteration(model, state, output_schema)) as results:
            async for result in results:
                if result.messages:
                    yield msgspec.structs.replace(result, events=[*events, *result.events])
                    events = []
                else:
                    events += result.events


def opened(m: str, index: int, *pieces: str) -> list[Event]:
    return words(m, index, *pieces)[:-1]


def closed(m: str, index: int, text: str) -> Event:
    return PartFinished(m, index, TextPart(text))


ODD: dict[str, tuple[list[Event], str]] = {
    "one part": ([*words("a", 0, "x", "", "y")], "xy"),
    "no deltas": ([PartStarted("a", 0, OpenText()), closed("a", 0, "xy")], "xy"),
    "the end says more": ([*opened("a", 0, "x"), closed("a", 0, "xy")], "xy"),
    "the end says less": ([*opened("a", 0, "xy"), closed("a", 0, "x")], "x"),
    "the end says other": ([*opened("a", 0, "xy"), closed("a", 0, "xz")], "xz"),
    "the end of an earlier part says more": (
        [*opened("a", 0, "x"), *opened("a", 1, "y"), closed("a", 0, "xx"), closed("a", 1, "y")],
        "xxy",
    ),
    "the end of the later part says more": (
        [*opened("a", 0, "x"), *opened("a", 1, "y"), closed("a", 1, "yy"), closed("a", 0, "x")],
        "xyy",
    ),
    "parts that take turns": (
        [*opened("a", 0, "x"), *opened("a", 1, "y"), PartDelta("a", 0, "X"), closed("a", 0, "xX"), closed("a", 1, "y")],
        "xXy",
    ),
    "a dropped message": (
        [*opened("a", 0, "abc"), MessageDropped("a"), start("b"), *words("b", 0, "ab", "d")],
        "abd",
    ),
    "a dropped message, and nothing in its place": ([*opened("a", 0, "abc"), MessageDropped("a"), start("b")], ""),
    "strangers": (
        [*opened("a", 0, "x"), PartDelta("n", 0, "no"), PartDelta("a", 5, "no"), Custom("c"), closed("a", 0, "x")],
        "x",
    ),
    "thinking between": (
        [PartStarted("a", 0, ThinkingPart()), PartDelta("a", 0, "hm"), *words("a", 1, "x"), PartFinished("a", 0, ThinkingPart("hm"))],
        "x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("orchestrator", [DefaultStreamingOrchestrator, AtOnce])
@pytest.mark.parametrize("odd", ODD)
async def test_d08_what_is_streamed_joins_to_what_the_message_says_in_whatever_order_it_came(
    odd: str, orchestrator: Any
) -> None:
    """Also behind a round of tools, where a newline stands before it, once."""
    events, expected = ODD[odd]
    last = "b" if any(isinstance(event, MessageDropped) for event in events) else "a"
    answer = [start("a"), *events, end(last)]
    for before, how in (([], {}), ([says("first", call("t"))], {"tools": [t]})):
        wanted = ("first\n" if expected else "first") + expected if before else expected
        a, _ = agent(*before, answer, orchestrator=orchestrator, **how)
        joined = ""
        async for chunk in a.send_stream("hi"):
            assert not (chunk.output and chunk.retracted)
            assert joined.endswith(chunk.retracted)
            joined = chunk.joined(joined)
        a, _ = agent(*before, answer, orchestrator=orchestrator, **how)
        result = await a.send("hi")
        assert (joined, result.output) == (wanted, wanted)
        assert result.thinking == ("hm" if "thinking" in odd else None)
