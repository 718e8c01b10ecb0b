"""Compaction joins deltas and leaves everything else alone."""

from __future__ import annotations

from hypothesis import given

from dragoman.event import Event, MessageStarted, PartDelta, PartStarted, StepStarted
from dragoman.fold import compact, fold
from dragoman.message import DataPart, Message, Role
from support import strategies as some


@given(some.streams())
def test_compaction_keeps_what_fold_gives_and_happens_once(told: tuple[list[Message], list[Event]]):
    messages, events = told
    short = compact(events)
    assert fold(short) == messages
    assert compact(short) == short
    assert compact(iter(events)) == short


@given(some.streams())
def test_compaction_leaves_every_other_event_alone(told: tuple[list[Message], list[Event]]):
    _, events = told
    short = compact(events)
    assert [event for event in short if not isinstance(event, PartDelta)] == [
        event for event in events if not isinstance(event, PartDelta)
    ]


@given(some.streams())
def test_a_part_has_one_delta_between_two_other_events(told: tuple[list[Message], list[Event]]):
    seen: set[tuple[str, int]] = set()
    for event in compact(told[1]):
        if isinstance(event, PartDelta):
            assert (event.message_id, event.index) not in seen
            seen.add((event.message_id, event.index))
        else:
            seen.clear()


@given(some.streams())
def test_a_stream_compacted_in_two_halves_folds_the_same(told: tuple[list[Message], list[Event]]):
    messages, events = told
    for place in range(len(events) + 1):
        assert fold(compact([*compact(events[:place]), *events[place:]])) == messages


def test_deltas_are_joined_until_another_event():
    a, b = PartDelta("m", 0, "a"), PartDelta("m", 1, "b")
    step = StepStarted("s")
    assert compact([a, b, a, a, step, a]) == [PartDelta("m", 0, "aaa"), b, step, a]
    assert compact([]) == []
    assert compact([PartDelta("m", 0, b"\x00"), PartDelta("m", 0, b"\xff")]) == [
        PartDelta("m", 0, b"\x00\xff")
    ]


def test_base64_of_bytes_is_joined_too():
    events = [
        PartDelta("m", 0, "AQ=="),
        PartDelta("m", 0, "AgM="),
        PartDelta("m", 0, "BAUG"),
        PartDelta("m", 0, "Bw=="),
    ]
    start = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, DataPart(b"", "image/png"))]
    expected = bytes(range(1, 8))
    assert fold([*start, *compact(events)])[0].content == (DataPart(expected, "image/png"),)
    assert compact([*events, PartDelta("m", 0, b"\x08")]) == [PartDelta("m", 0, expected + b"\x08")]
