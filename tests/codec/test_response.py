"""What of a run's events a response tells, on every wire: one message of the model's."""

from __future__ import annotations

import pytest

from dragoman import wires
from dragoman.codec.response_state import (
    ResponseState,
    join_messages,
    list_further_candidates,
    name_model,
)
from dragoman.errors import DragomanError, OverloadedError
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    RunError,
    RunFinished,
)
from dragoman.fold import fold, unfold
from dragoman.message import FinishReason, Message, Origin, Role, TextPart, ToolResultPart, Usage

WIRES = wires.names("model")


def used(read, written):
    return Usage(input_tokens=read, output_tokens=written, total_tokens=read + written)


FIRST = Message(
    Role.MODEL,
    (TextPart("One. "),),
    id="a",
    finish_reason=FinishReason.tool_calls,
    usage=used(3, 1),
)
RESULT = Message(Role.USER, (ToolResultPart("c", "f", 1),), id="r")
LAST = Message(
    Role.MODEL,
    (TextPart("Two."),),
    id="b",
    finish_reason=FinishReason.length,
    usage=used(5, 2),
    origin=Origin("p"),
)


def started(message_id="a", **how):
    return MessageStarted(message_id, Role.MODEL, **how)


def test_messages_of_the_model_are_one_answer_with_the_last_end_and_all_usage():
    answer = join_messages(unfold([FIRST, RESULT, LAST]))
    assert isinstance(answer, Message)
    assert [piece.text for piece in answer.content] == ["One. ", "Two."]
    assert (answer.id, answer.finish_reason, answer.usage) == ("a", FinishReason.length, used(8, 3))
    assert answer.origin == Origin("p")


def test_decision_25_choices_beyond_the_first_are_losses_of_the_answer():
    events = [started(), started("b", candidate=1), started("c", candidate=2), RunFinished("r")]
    assert [loss.which for loss in list_further_candidates(events)] == [
        "candidate 1",
        "candidate 2",
    ]
    assert list_further_candidates(unfold([FIRST, RESULT, LAST])) == []


def test_a_stream_knows_the_same_of_it():
    answer = ResponseState(lambda _: {})
    taken = [event for event in unfold([FIRST, RESULT, LAST]) if answer.accepts(event)]
    assert {event.message_id for event in taken} == {"a", "b"}
    assert (answer.id, answer.reason, answer.usage) == ("a", FinishReason.length, used(8, 3))


def test_what_nobody_counted_has_no_usage():
    said = join_messages(unfold([Message.model("x")]))
    assert isinstance(said, Message) and said.usage is None


@pytest.mark.parametrize(
    ("origin", "model"),
    [
        (None, ""),
        (Origin("p"), ""),
        (Origin("p", model="asked"), "asked"),
        (Origin("p", served_model="served"), "served"),
        (Origin("p", model="asked", served_model="served"), "served"),
    ],
)
def test_who_answers(origin, model):
    assert name_model(origin) == model


def test_no_message_is_an_empty_answer():
    said = join_messages([])
    assert isinstance(said, Message) and said.content == ()


def test_other_candidates_other_speakers_and_unknown_messages_are_passed_over():
    answer = ResponseState(lambda _: {})
    others = (
        started(candidate=1),
        MessageStarted("a", Role.USER),
        PartDelta("a", 0, "x"),
        MessageFinished("a"),
    )
    assert {answer.accepts(event) for event in others} == {False}
    assert not answer.started


def test_nothing_more_is_told_of_a_message_that_was_dropped():
    answer = ResponseState(lambda _: {})
    assert answer.id == ""
    assert answer.accepts(started()) and answer.accepts(MessageDropped("a", "no"))
    assert not answer.accepts(PartDelta("a", 0, "x"))
    assert not answer.accepts(MessageDropped("a", "again"))


def test_fields_around_a_message_come_from_its_start_and_its_end():
    answer = ResponseState(lambda native: (native or {}).get("w", {}))
    for event in (
        started(native={"w": {"a": 1, "b": 1}}),
        MessageFinished("a", native={"w": {"b": 2}}),
    ):
        assert answer.accepts(event)
    assert answer.envelope == {"a": 1, "b": 2}


def test_an_error_is_the_answer():
    error = OverloadedError("later")
    assert join_messages([started(), RunError(error)]) is error
    assert ResponseState(lambda _: {}).accepts(RunError(error)) and ResponseState(
        lambda _: {}
    ).accepts(RunFinished("r"))


@pytest.mark.parametrize("name", WIRES)
def test_every_wire_tells_a_run_as_one_message(name):
    wire = wires.get(name)
    events = unfold([FIRST, RESULT, LAST])
    encoder = wire.encoder()
    streamed = b"".join(map(encoder.feed, events)) + encoder.close()
    decoder = wire.decoder()
    for read in (
        [*decoder.feed(streamed), *decoder.close()],
        wire.load_response(wire.dump_response(events)),
    ):
        (message,) = fold(read)
        assert message.text == "One. Two."
        assert message.finish_reason is FinishReason.length
        assert message.usage is not None and message.usage.output_tokens == 3


@pytest.mark.parametrize("name", WIRES)
def test_every_wire_goes_on_after_a_message_that_was_dropped(name):
    wire = wires.get(name)
    encoder = wire.encoder()
    events = [started("x"), MessageDropped("x", "retried"), *unfold([LAST])]
    data = b"".join(map(encoder.feed, events)) + encoder.close()
    decoder = wire.decoder()
    read = [*decoder.feed(data), *decoder.close()]
    assert not [
        event.error
        for event in read
        if isinstance(event, RunError) and isinstance(event.error, DragomanError)
    ]
    assert "".join(message.text for message in fold(read)) == "Two."


@pytest.mark.parametrize("wire", wires.names("model"))
def test_decision_25_each_wire_names_the_choices_that_its_response_leaves_out(wire):
    events = [
        started(),
        started("b", candidate=1),
        MessageFinished("a"),
        MessageFinished("b"),
        RunFinished("r"),
    ]
    losses = []
    assert wires.get(wire).dump_response(events, losses=losses, id="r1") == wires.get(
        wire
    ).dump_response(events, id="r1")
    assert [loss.which for loss in losses] == ["candidate 1"]
