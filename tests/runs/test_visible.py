"""What the client of an agent sees of a run, and reads of it on every wire."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import (
    Message,
    ThinkingPart,
    Tool,
    ToolCallPart,
    ToolResultPart,
    fold,
    tool,
    unfold,
    wires,
)
from dragoman.errors import ProviderError, StreamCutError
from dragoman.event import (
    Custom,
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
    StepStarted,
)
from dragoman.message import FinishReason, Role, TextPart, Usage
from dragoman.repair import repair
from dragoman.runs import Visible, visible
from dragoman.testing.samples import simplify_messages
from dragoman.testing.wire.bench import find_fault
from support.model import FORCING, agent, call, says, waiting
from support.traffic import WIRES, decode, exchanges

SCHEMA = {"type": "object", "properties": {"z": {"type": "integer"}}, "required": ["z"]}
TYPED = {"output_schema": SCHEMA}
HALF = [MessageStarted("h", Role.MODEL), PartStarted("h", 0, OpenText()), PartDelta("h", 0, "half")]
THOUGHT = [
    MessageStarted("h", Role.MODEL),
    PartStarted("h", 0, ThinkingPart()),
    PartDelta("h", 0, "hm"),
]
AGAIN = MessageDropped("h", "the connection broke")


@tool
def t(x: int = 0) -> int:
    return x


def run(
    *answers: Any,
    tools: Sequence[Tool[Any]] = (t, Tool("ask")),
    how: dict[str, Any] | None = None,
    **made: Any,
) -> Any:
    """The events of a run whose model answers so, and its result, or what it failed with."""

    async def events() -> Any:
        a, _ = agent(*answers, tools=tools, **made)
        async with a.run("hi", **(how or {})) as run:
            return [event async for event in run], run.so_far()

    return asyncio.run(events())


def answer(events: Iterable[Event]) -> Message:
    """The one message of the model's."""
    (message,) = [message for message in fold(events) if message.role is Role.MODEL]
    return message.replace(turn=None)


def streamed(name: str, events: Iterable[Event]) -> Message:
    wire = wires.get(name)
    encoder = wire.encoder(id="r1", model="m")
    found = decode(wire, b"".join([*map(encoder.feed, events), encoder.close()]))
    assert find_fault(found) is None
    return answer(found)


def whole(name: str, events: Iterable[Event]) -> Message:
    wire = wires.get(name)
    return answer(wire.load_response(wire.dump_response(events, id="r1", model="m")))


def agents_parts(events: Iterable[Event]) -> list[Any]:
    """What no client may be sent."""
    parts = [event.part for event in events if isinstance(event, PartStarted | PartFinished)]
    return [
        part
        for part in parts
        if isinstance(part, ToolCallPart | ToolResultPart) and part.run_by == "agent"
    ]


# what is seen


def test_a_run_with_tools_is_one_answer_without_what_the_agent_ran() -> None:
    events, result = run(
        says(ThinkingPart("hm"), "Let me look.", call("t", x=1), usage=1),
        says(call("t", id="c2")),
        says("Found.", call("ask", id="c3", q=1), call("t", id="c4"), usage=2),
    )
    seen = [*visible(events)]
    expected = Message.model(
        ThinkingPart("hm"),
        "Let me look.",
        "\nFound.",
        msgspec.structs.replace(waiting(id="c3"), arguments={"q": 1}),
    ).replace(id="m1", finish_reason=FinishReason.tool_calls, usage=result.usage)
    assert answer(seen) == expected
    assert expected.text == result.output
    assert agents_parts(seen) == []
    assert [type(event) for event in seen[-2:]] == [MessageFinished, RunFinished]
    assert [message.text for message in fold(seen) if message.role is Role.USER] == ["hi"]


def test_clients_that_can_take_back_see_each_message() -> None:
    events, _ = run(
        says("A", call("t"), usage=1), [*HALF, AGAIN, *unfold([says("B").replace(id="b")])]
    )
    seen = [*visible(events, retractable=True)]
    assert AGAIN in seen
    assert [(message.id, message.content, message.finish_reason) for message in fold(seen)[1:]] == [
        ("m1", (TextPart("A"),), FinishReason.stop),
        ("b", (TextPart("B"),), FinishReason.stop),
    ]
    assert agents_parts(seen) == []


def test_what_comes_asynchronously_is_seen_as_it_comes() -> None:
    """The first text of a run is on the wire while its tool still waits for the reader to see
    it."""

    async def read() -> str:
        was_read = asyncio.Event()

        @tool
        async def waits() -> int:
            await was_read.wait()
            return 1

        a, _ = agent(says("Let me look.", call("waits")), says("Found."), tools=[waits])
        wire = wires.get("openai_chat")
        view, encoder, decoder, text = (
            Visible(),
            wire.encoder(id="r", model="m"),
            wire.decoder(),
            "",
        )
        async with a.run("hi") as run:
            async for event in run:
                read = decoder.feed(b"".join(map(encoder.feed, view.feed(event))))
                text += "".join(each.delta for each in read if isinstance(each, PartDelta))
                if text == "Let me look.":
                    was_read.set()
        return text

    assert asyncio.run(asyncio.wait_for(read(), 30)) == "Let me look.\nFound."


def test_each_delta_is_seen_when_it_comes() -> None:
    events, _ = run(says("abcdef", call("t")), says("ghi", call("ask", id="c2", q=1)))
    view = Visible()
    seen = [
        (event, [each.delta for each in view.feed(event) if isinstance(each, PartDelta)])
        for event in events
    ]
    assert [(event.delta, now) for event, now in seen if isinstance(event, PartDelta)] == [
        *[(piece, [piece]) for piece in ("hi", "abc", "def")],
        ("{}", []),
        ("ghi", ["\nghi"]),
        *[(piece, [piece]) for piece in ('{"q', '":1', "}")],
    ]


def test_events_of_other_kinds_stay_as_they_are() -> None:
    others = [Custom("progress", 1), StepStarted("s"), Custom("progress", 2)]
    assert [*visible(others)] == others


def test_other_candidates_and_what_the_run_tells_its_model_are_not_seen() -> None:
    events = [
        StepStarted("s"),
        *unfold([Message.user("Answer again.").replace(id="u")]),
        msgspec.structs.replace(HALF[0], candidate=1),
        *HALF[1:],
    ]
    assert [*visible(events)] == events[:1]


def test_a_message_in_which_nothing_is_said_is_an_answer() -> None:
    events, _ = run(says(usage=3))
    assert answer(visible(events)) == says(usage=3).replace(id="m1")
    assert answer(visible(events, retractable=True)) == says(usage=3).replace(id="m1")


def test_events_of_two_runs_are_two_answers() -> None:
    events, _ = run(says("A"))
    other = [
        msgspec.structs.replace(
            each, **({"message_id": "x"} if hasattr(each, "message_id") else {})
        )
        for each in events
    ]
    assert [
        message.text for message in fold(visible([*events, *other])) if message.role is Role.MODEL
    ] == ["A", "A"]


# why it ended


def test_the_finish_reason_is_that_of_what_is_seen() -> None:
    assert (
        answer(
            visible(run(says("A", call("t")), says("B", reason=FinishReason.length))[0])
        ).finish_reason
        == "length"
    )
    cut = unfold([says("A", call("t")).replace(id="a")])
    reasons = {
        RunFinished("r", "cancelled"): FinishReason.cancelled,
        RunFinished("r"): FinishReason.stop,
        RunError(ProviderError("gone")): FinishReason.error,
    }
    for end, reason in reasons.items():
        seen = [*visible([*cut, end])]
        assert answer(seen).finish_reason is reason
        assert type(seen[-1]) is type(end)
    assert answer(visible(cut)).finish_reason is FinishReason.stop


def test_an_error_says_nothing_of_what_the_client_did_not_see() -> None:
    events, _ = run(says("A", call("t")), ProviderError("gone", status=500))
    assert events[-1].error.result is not None
    last = [*visible(events)][-1]
    assert (type(last.error), last.error.message, last.error.status) == (ProviderError, "gone", 500)
    assert (last.error.result, last.error.partial) == (None, None)
    assert events[-1].error.result is not None


def test_a_run_that_is_cut_or_cancelled_has_nothing_open() -> None:
    events, _ = run([*HALF, RunError(ProviderError("gone"))])
    assert find_fault(visible(events)) is None
    assert answer(visible(events)).text == "half"
    assert find_fault(visible([RunStarted("r"), *HALF, RunFinished("r", "cancelled")])) is None


# retraction


@pytest.mark.parametrize("name", wires.names("model"))
def test_thinking_is_not_taken_back_and_a_retry_goes_on_with_the_same_answer(name: str) -> None:
    events, _ = run([*THOUGHT, AGAIN, *unfold([says("whole", usage=1).replace(id="b")])])
    seen = [*visible(events)]
    assert find_fault(seen) is None
    assert answer(seen).content == (ThinkingPart("hm"), TextPart("whole"))
    for read in (streamed, whole):
        message = read(name, visible(events))
        assert (message.thinking, message.text, message.finish_reason) == (
            "hm",
            "whole",
            FinishReason.stop,
        )


@pytest.mark.parametrize("name", wires.names("model"))
def test_after_text_or_a_call_the_error_is_told(name: str) -> None:
    called = [HALF[0], PartStarted("h", 0, waiting()), PartDelta("h", 0, '{"a')]
    for begun in (HALF, called):
        events, _ = run([*begun, AGAIN, *unfold([says("whole").replace(id="b")])])
        seen = [*visible(events)]
        assert find_fault(seen) is None
        assert isinstance(seen[-1].error, StreamCutError) and "the connection broke" in str(
            seen[-1].error
        )
        assert seen[-1].run_id == events[0].run_id
        assert answer(seen).finish_reason is FinishReason.error
        encoder = wires.get(name).encoder(id="r", model="m")
        found = decode(wires.get(name), b"".join([*map(encoder.feed, seen), encoder.close()]))
        assert isinstance(found[-1], RunError)
        assert "whole" not in str(fold(found))


def test_a_dropped_message_of_which_nothing_was_seen_leaves_nothing() -> None:
    start = MessageStarted("h", Role.MODEL)
    for begun in ([start], [start, *unfold([Message.model(call("t")).replace(id="h")])[1:-1]]):
        for retractable in (False, True):
            seen = [
                *visible([*begun, AGAIN, *unfold([says("whole").replace(id="b")])], retractable)
            ]
            assert seen == [*visible(unfold([says("whole").replace(id="b")]), retractable)]


# typed output


@pytest.mark.parametrize(
    ("answers", "made"),
    [
        ([says('{"z":"x"}'), says('{"z":1}')], {}),
        ([says("Let me look.", call("t")), says('{"z":1}')], {}),
        ([says("I think so."), says("So:", ToolCallPart("r", "return_result", {"z": 1}))], {"provider": FORCING}),
        ([says("So:", ToolCallPart("r", "return_result", {"z": "x"})), says(ToolCallPart("r", "return_result", {"z": 1}))], {"provider": FORCING}),
    ],
)  # fmt: skip
def test_a_typed_answer_comes_once_it_is_valid_and_nothing_else_does(
    answers: Any, made: Any
) -> None:
    events, result = run(*answers, how=TYPED, **made)
    for retractable in (False, True):
        seen = [*visible(events, retractable)]
        assert find_fault(event for event in seen if not isinstance(event, MessageDropped)) is None
        said = [message.text for message in fold(seen) if message.role is Role.MODEL]
        assert said == [result.output] == ['{"z":1}']
        assert agents_parts(seen) == []
        assert answer(seen).finish_reason is FinishReason.stop
    assert "look" not in str(visible(events)) and "So:" not in str([*visible(events)])


def test_a_typed_answer_that_never_becomes_valid_is_not_told() -> None:
    for how, made in ((says("no"), {}), (says("no"), {"provider": FORCING})):
        seen = [*visible(run(how, how=TYPED, **made)[0])]
        assert isinstance(seen[-1], RunError)
        assert "text='no'" not in str([each for each in seen if isinstance(each, PartFinished)])


def test_a_typed_run_that_waits_tells_its_calls_alone() -> None:
    seen = [*visible(run(says("Hm.", call("ask")), how=TYPED)[0])]
    assert answer(seen).content == (waiting(),)


def test_a_typed_answer_streams_where_it_can_be_taken_back() -> None:
    events, _ = run(says('{"z":"x"}'), says('{"z":1}'), how=TYPED)
    seen = [*visible(events, retractable=True)]
    assert [event.delta for event in seen if isinstance(event, PartDelta)] == [
        *("hi", '{"z', '":"', 'x"}'),
        *('{"z', '":1', "}"),
    ]
    assert [event.message_id for event in seen if isinstance(event, MessageDropped)] == ["m1"]


# every wire

texts = st.text("abc \n", min_size=1, max_size=6).filter(str.strip)
said = texts.map(TextPart)
thought = texts.map(ThinkingPart)
arguments = st.fixed_dictionaries({}, optional={"x": st.integers(0, 9)})
own_call = st.builds(ToolCallPart, st.just(""), st.just("t"), arguments)
clients_call = st.builds(ToolCallPart, st.just(""), st.just("ask"), arguments)


def message(
    parts: st.SearchStrategy[Any], last: st.SearchStrategy[Any] | None = None
) -> st.SearchStrategy[Message]:
    lists = st.tuples(
        st.lists(thought, max_size=1),
        st.lists(parts, max_size=3),
        st.lists(last, min_size=1) if last is not None else st.just([]),
    )
    return lists.map(lambda each: says(*each[0], *each[1], *each[2][:1], usage=1))


@st.composite
def answers(draw: Any) -> list[Message]:
    """What the model answers in a run: calls of the agent's tools, and at last an answer or calls
    that wait."""
    rounds = draw(st.lists(message(said | own_call, own_call), max_size=3))
    last = draw(message(said, said) | message(said | own_call, clients_call))
    ids = iter(f"c{number}" for number in range(99))

    def named(part: Any) -> Any:
        return (
            msgspec.structs.replace(part, id=next(ids)) if isinstance(part, ToolCallPart) else part
        )

    return [each.replace(content=tuple(map(named, each.content))) for each in [*rounds, last]]


def seen_of(messages: Sequence[Message], usage: Usage | None) -> Message:
    """What a client sees of a run's messages, reckoned from the messages alone."""
    content: list[Any] = []
    for one in messages:
        is_first = any(isinstance(part, TextPart) for part in content)
        for part in one.content:
            if isinstance(part, TextPart) and is_first:
                part, is_first = TextPart("\n" + part.text), False
            if not isinstance(part, ToolCallPart) or part.run_by == "client":
                content.append(part)
    waits = any(isinstance(part, ToolCallPart) for part in content)
    reason = FinishReason.tool_calls if waits else FinishReason.stop
    return Message.model(*content).replace(id="m1", finish_reason=reason, usage=usage)


@settings(max_examples=30)
@given(answers())
@pytest.mark.slow
def test_what_every_wire_sends_of_a_run_is_what_is_visible(model_says: list[Message]) -> None:
    events, result = run(*model_says)
    expected = seen_of(
        [message for message in result.messages if message.role is Role.MODEL], result.usage
    )
    seen = [*visible(events)]
    assert find_fault(seen) is None
    assert answer(seen).replace(id="m1") == expected
    assert expected.text == result.output
    assert agents_parts(seen) == agents_parts(visible(events, retractable=True)) == []
    view = Visible()
    assert [each for event in events for each in view.feed(event)] + view.close() == seen
    for name in wires.names("model"):
        for read in (streamed, whole):
            found, wanted = read(name, iter(seen)), read(name, unfold([expected]))
            assert simplify_messages([found]) == simplify_messages([wanted])
            assert (found.finish_reason, found.usage) == (wanted.finish_reason, wanted.usage)


@settings(max_examples=50)
@given(answers(), st.data())
@pytest.mark.slow
def test_a_run_that_ends_anywhere_is_seen_in_order(model_says: list[Message], data: Any) -> None:
    events, _ = run(*model_says)
    end = data.draw(st.integers(0, len(events)))
    last = data.draw(
        st.sampled_from([[], [RunError(ProviderError("gone"))], [RunFinished("r", "cancelled")]])
    )
    seen = [*visible([*events[:end], *last])]
    model = {
        event.message_id
        for event in seen
        if isinstance(event, MessageStarted) and event.role is Role.MODEL
    }
    of_model = [event for event in seen if getattr(event, "message_id", None) in model]
    assert find_fault(of_model) is None
    assert len(model) <= 1
    assert agents_parts(seen) == []


@pytest.mark.parametrize("name", wires.names("model"))
def test_a_call_of_the_clients_goes_to_a_model_as_any_call(name: str) -> None:
    """Answered, and where nobody answered it."""

    def sent(by: Any) -> Any:
        asked, again = (ToolCallPart(number, "ask", {"q": 1}, run_by=by) for number in ("c1", "c2"))
        answered = Message.user(ToolResultPart("c1", "ask", "x", run_by=by))
        history = repair(
            [
                Message.user("q"),
                Message.model(asked),
                answered,
                Message.model(again),
                Message.user("next"),
            ]
        )
        assert len(history[4].tool_results) == 1
        return wires.get(name).dump_messages(history)

    assert sent("client") == sent("agent")


# recorded streams


@pytest.mark.parametrize(
    "folder", sorted({wire: folder for folder, wire in reversed(WIRES.items())}.values())
)
def test_recorded_calls_of_the_agents_tools_are_not_sent(folder: str) -> None:
    name, count = WIRES[folder], 0
    for exchange in exchanges(folder):
        if exchange.status != 200 or not exchange.body.startswith(
            (b"data:", b"event:", b'{"model"')
        ):
            continue
        recorded = decode(wires.get(name), exchange.body)
        calls = [
            call for one in fold(recorded) for call in one.tool_calls if call.state == "complete"
        ]
        if not calls or isinstance(recorded[-1], RunError):
            continue
        count += 1
        for handler, mine in ((t.handler, True), (None, False)):
            tools = [Tool(each, handler=handler) for each in {call.name for call in calls}]
            events, result = run(recorded, says("Done."), tools=tools)
            for read in (streamed, whole):
                message = read(name, visible(events))
                assert [each.name for each in message.tool_calls] == (
                    [] if mine else [each.name for each in calls]
                )
                assert message.text.replace("\n", "") == result.output.replace("\n", "")
                assert (message.finish_reason is FinishReason.tool_calls) is not mine
        if count == 12:
            break
    assert count
