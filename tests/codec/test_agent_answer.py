"""A run of an agent as one message, and back: laws over any events, and what is rare."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, Role, fold, unfold, wires
from dragoman.codec.agent_answer import AgentAnswer
from dragoman.codec.agent_conversation import agent_turns
from dragoman.codec.native import WireNative
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
)
from dragoman.interrupt import Interrupt
from dragoman.message import FinishReason, Origin, TextPart, ToolCallPart, ToolResultPart, Usage
from dragoman.testing.mutation import mutate_bytes
from dragoman.wires import a2a, ag_ui
from support import strategies

OWN = WireNative("x")
ORIGIN = Origin("there", "https://there.example", "https://there.example")


def answer(events: list[Event], **how: Any) -> list[Event]:
    made = AgentAnswer(
        OWN, origin=ORIGIN, new_id=iter([f"a{at}" for at in range(99)]).__next__, **how
    )
    return [told for event in events for told in made.feed([event])]


def run(*messages: Message, **end: Any) -> list[Event]:
    return [RunStarted("r", "t"), *unfold(messages), RunFinished("r", **end)]


@given(strategies.streams())
def test_whatever_a_run_tells_is_one_whole_message(
    stream: tuple[list[Message], list[Event]],
) -> None:
    events = answer([RunStarted("run", "t"), *stream[1], RunFinished("run")])
    told = [event for event in events if hasattr(event, "message_id")]
    assert isinstance(told[0], MessageStarted) and isinstance(told[-1], MessageFinished)
    assert {event.message_id for event in told} == {"a0"}
    started = [event.index for event in told if isinstance(event, PartStarted)]
    finished = [event.index for event in told if isinstance(event, PartFinished)]
    assert len(set(started)) == len(started)
    assert set(finished) == set(started)
    [message] = fold(events)
    models = [each for each in stream[0] if each.role is Role.MODEL]
    assert sorted(message.text) == sorted("".join(each.text for each in models))
    assert not [call for call in message.tool_calls if call.run_by == "agent"]


pieces = st.one_of(strategies.texts, st.builds(TextPart, st.text("ab", min_size=1)))
turns = st.lists(
    st.tuples(st.lists(pieces, min_size=1, max_size=3), st.integers(0, 3)), min_size=1, max_size=4
)


@given(turns)
def test_an_agent_hears_its_own_messages_again_as_it_told_them(
    told: list[tuple[list[Any], int]],
) -> None:
    messages: list[Message] = []
    for at, (texts, calls) in enumerate(told):
        made = [ToolCallPart(f"c{at}-{number}", "look", {}) for number in range(calls)]
        messages.append(Message.model(*texts, *made).replace(id=f"m{at}"))
        if calls:
            messages.append(
                Message.user(*[ToolResultPart(c.id, "look", 1) for c in made]).replace(id=f"u{at}")
            )
    [one] = fold(answer(run(*messages)))
    heard = agent_turns([Message.user("Hi"), one, Message.user("More")], OWN, ORIGIN)
    assert heard.messages[1:-1] == tuple(messages)
    assert (heard.known_messages, heard.thread_id, heard.waits, heard.resume) == (
        len(messages) + 1,
        "t",
        None,
        (),
    )
    assert agent_turns([one], OWN, Origin("there", None, "another")).messages == (one,)


def test_a_call_of_the_agent_is_settled_by_its_result() -> None:
    call = ToolCallPart("c1", "look", {})
    events = answer(
        run(
            Message.model(call).replace(id="m"),
            Message.user(ToolResultPart("c1", "look", 4)).replace(id="u"),
        )
    )
    [message] = fold(events)
    assert [(type(part), part.run_by) for part in message.content] == [
        (ToolCallPart, "provider"),
        (ToolResultPart, "provider"),
    ]
    assert message.finish_reason is FinishReason.stop


def test_calls_of_this_sides_tools_are_for_them() -> None:
    [message] = fold(
        answer(run(Message.model(ToolCallPart("c1", "look", {})).replace(id="m")), tools=["look"])
    )
    assert [call.run_by for call in message.tool_calls] == ["agent"]
    assert message.finish_reason is FinishReason.tool_calls


def test_what_waits_is_told_once_also_without_a_call() -> None:
    call = ToolCallPart("c1", "pay", {"sum": 3})
    pending = (
        Interrupt("c1", "approval", call),
        Interrupt("q", "input", message="Which?"),
        Interrupt("s", "auth"),
    )
    [message] = fold(
        answer(run(Message.model(call).replace(id="m"), pending=pending, outcome="pending"))
    )
    assert [(c.id, c.name, c.run_by, c.arguments) for c in message.tool_calls] == [
        ("c1", "pay", "client", {"sum": 3}),
        ("q", "ask_user", "client", {"message": "Which?"}),
        ("s", "sign_in", "client", {}),
    ]
    heard = agent_turns([message], OWN, ORIGIN)
    assert heard.waits == "r"
    assert [piece for m in heard.messages for piece in m.content] == [call]


def test_what_is_taken_back_is_void_and_the_rest_is_told_again() -> None:
    kept, void = Message.model("Kept.").replace(id="m1"), Message.model("Void.").replace(id="m2")
    events = answer(
        [
            RunStarted("r"),
            *unfold([kept, void]),
            MessageDropped("m2"),
            MessageDropped("unknown"),
            *unfold([void]),
            RunFinished("r"),
        ]
    )
    [message] = fold(events)
    assert message.text == "Kept.Void."
    assert [event.message_id for event in events if isinstance(event, MessageDropped)] == ["a0"]


def test_an_agent_within_the_agent_says_nothing() -> None:
    inner = [
        RunStarted("i", parent_run_id="r"),
        *unfold([Message.model("Inner.").replace(id="i1")]),
        RunFinished("i"),
    ]
    inner = [
        e if not isinstance(e, MessageStarted) else MessageStarted("i1", Role.MODEL, run_id="i")
        for e in inner
    ]
    events = [
        RunStarted("r"),
        *inner,
        *unfold([Message.model("Outer.").replace(id="o1")]),
        RunFinished("r"),
    ]
    assert fold(answer(events))[0].text == "Outer."


def test_an_error_carries_what_there_was_and_nothing_follows() -> None:
    open_ = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "Hal"),
    ]
    events = answer(
        [
            RunStarted("r"),
            *open_,
            RunError(ProviderError("broken")),
            *unfold([Message.model("x").replace(id="y")]),
        ]
    )
    assert isinstance(last := events[-1], RunError)
    assert last.error.partial is not None
    assert last.error.partial.text == "Hal"


def test_an_empty_run_is_an_empty_message_and_tokens_are_counted() -> None:
    [empty] = fold(answer(run(usage=Usage(input_tokens=3))))
    assert (empty.content, empty.usage) == ((), Usage(input_tokens=3))
    two = [Message.model(text).replace(id=text, usage=Usage(output_tokens=2)) for text in "ab"]
    assert fold(answer(run(*two)))[0].usage == Usage(output_tokens=4)


def _streams(wire: Any) -> list[bytes]:
    call = ToolCallPart("c1", "pay", {"sum": 3})
    messages = [
        Message.model("Let me.", ToolCallPart("c0", "look", {"at": [1]})).replace(id="m"),
        Message.user(ToolResultPart("c0", "look", {"x": 4})).replace(id="u"),
        Message.model("Look.", call).replace(id="n"),
    ]
    events = run(*messages, pending=(Interrupt("c1", "approval", call),), outcome="pending")
    own, plain = wire.encoder(), wire.encoder(**({} if wire.name == "ag_ui" else {"extras": False}))
    return [b"".join(e.feed(event) for event in events) + e.close() for e in (own, plain)]


def _fed(wire: Any, data: bytes, size: int) -> list[Event]:
    decoder = wires.client(wire.name).decoder(origin=ORIGIN, tools=["pay"])  # pyright: ignore[reportOptionalMemberAccess]
    events = [
        event for at in range(0, len(data), size) for event in decoder.feed(data[at : at + size])
    ]
    return [*events, *decoder.close()]


def _check(cases: int) -> None:
    for wire in (ag_ui, a2a):
        seeds = _streams(wire)
        for case in range(cases):
            chance = Random(case)
            data = mutate_bytes(chance, chance.choice(seeds))
            events = _fed(wire, data, chance.choice([1, 50, 10**6]))
            assert isinstance(events[-1], MessageFinished | RunError), (wire.name, case)
            fold(events)
            assert sum(isinstance(event, MessageFinished | RunError) for event in events) <= 3, (
                wire.name,
                case,
            )


def test_bytes_as_nobody_means_them_are_an_answer_or_an_error() -> None:
    _check(150)


@pytest.mark.slow
def test_the_same_of_many_bytes() -> None:
    _check(5_000)


@pytest.mark.parametrize("wire", [ag_ui, a2a], ids=["ag_ui", "a2a"])
def test_however_the_bytes_are_cut_the_answer_is_the_same(wire: Any) -> None:
    for data in _streams(wire):
        whole = fold(_fed(wire, data, 10**6))
        assert whole[0].text == "Let me.Look."
        for size in (1, 3, 64):
            assert [m.to_json() for m in fold(_fed(wire, data, size))] == [
                m.to_json() for m in whole
            ]
