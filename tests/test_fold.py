"""The bridge: fold, unfold, and the parts' own rules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    RunStarted,
)
from dragoman.fold import (
    MessageBuilder,
    arguments_text,
    close_part,
    compact,
    fold,
    parse_call,
    unfold,
)
from dragoman.message import (
    DataPart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from support import strategies as some

START = MessageStarted("m", Role.MODEL)
CALL = ToolCallPart("1", "f")


@given(some.histories)
def test_unfolding_and_folding_give_every_history_back(history: list[Message]):
    assert fold(unfold(history)) == history


@given(some.streams())
def test_folding_is_the_same_for_every_split_and_order_of_parts(
    told: tuple[list[Message], list[Event]],
):
    messages, events = told
    assert fold(events) == messages
    assert fold(iter(events)) == messages


@given(some.histories)
def test_every_part_is_opened_without_what_its_deltas_bring(history: list[Message]):
    """Deltas alone tell a complete part: the finished part repeats them."""
    for event in unfold(history):
        if isinstance(event, PartStarted):
            opened, deltas = event.part, []
        elif isinstance(event, PartDelta):
            deltas.append(event.delta)
        elif (
            isinstance(event, PartFinished)
            and getattr(event.part, "state", "complete") == "complete"
        ):
            closed = close_part(opened, deltas)
            if isinstance(event.part, ToolCallPart) and closed != event.part:
                assert msgspec.structs.replace(closed, raw=None) == msgspec.structs.replace(
                    event.part, raw=None
                )
                assert event.part.raw == "" or arguments_text(closed) == arguments_text(event.part)
            else:
                assert closed == event.part


@given(some.streams())
def test_a_builder_makes_of_one_stream_what_fold_makes(told: tuple[list[Message], list[Event]]):
    messages, events = told
    builder = MessageBuilder()
    for event in events:
        builder.add(event)
    if messages and sum(message.id == messages[0].id for message in messages) == 1:
        assert builder.message() == messages[0]
    elif not messages:
        assert builder.message() == Message(Role.MODEL)


def test_a_message_is_unfolded_part_by_part_without_what_deltas_tell():
    cut, data = ToolCallPart("1", "f", raw='{"a"', state="cut"), DataPart(b"x", "image/png", "n")
    call = ToolCallPart("2", "g", {"a": 1}, run_by="client", native={"w": {}})
    empty = ToolCallPart("3", "h", state="cut")
    message = Message.model(
        "t", cut, LinkPart("u"), call, data, empty, ThinkingPart("", {"w": {}})
    ).replace(id="m")
    assert unfold([message]) == [
        START,
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "t"),
        PartFinished("m", 0, TextPart("t")),
        PartStarted("m", 1, CALL),
        PartDelta("m", 1, '{"a"'),
        PartFinished("m", 1, cut),
        PartStarted("m", 2, LinkPart("u")),
        PartFinished("m", 2, LinkPart("u")),
        PartStarted("m", 3, ToolCallPart("2", "g", run_by="client", native={"w": {}})),
        PartDelta("m", 3, '{"a":1}'),
        PartFinished("m", 3, call),
        PartStarted("m", 4, DataPart(b"", "image/png", "n")),
        PartDelta("m", 4, b"x"),
        PartFinished("m", 4, data),
        PartStarted("m", 5, ToolCallPart("3", "h")),
        PartFinished("m", 5, empty),
        PartStarted("m", 6, ThinkingPart("", {"w": {}})),
        PartFinished("m", 6, ThinkingPart("", {"w": {}})),
        MessageFinished("m"),
    ]


def test_messages_without_ids_stay_without():
    history = [
        Message.user("a"),
        Message.model("b").replace(id="#0"),
        Message.user().replace(id="#0'"),
        Message.user("c"),
    ]
    events = unfold(history)
    assert [event.message_id for event in events if isinstance(event, MessageStarted)] == [
        "#0''",
        "#0",
        "#0'",
        "#3",
    ]
    assert fold(events) == history


def test_two_messages_of_one_id_stay_two():
    history = [Message.model("a").replace(id="m"), Message.model("b").replace(id="m")]
    assert fold(unfold(history)) == history


def work(function: Callable[[], Any]) -> int:
    """Calls made, of Python and of C, while the function runs."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


class Piece(str):
    """Text that counts how much of it is copied by adding."""

    __slots__ = ()
    copied = 0

    def __add__(self, other: str) -> Piece:
        Piece.copied += len(self) + len(other)
        return Piece(str(self) + other)

    __radd__ = __add__


@pytest.mark.parametrize(
    "opened",
    [OpenText(), ThinkingPart(), CALL, DataPart(b"", "image/png")],
    ids=lambda p: type(p).__name__,
)
@pytest.mark.parametrize("ended", [True, False])
def test_folding_is_linear(opened: Any, ended: bool):
    """Ten times the deltas cost at most ten times the work: calls made, and text that is copied by
    adding."""
    piece = b"x" if isinstance(opened, DataPart) else Piece("x")

    def stream(deltas: int) -> list[Event]:
        events: list[Event] = [
            START,
            PartStarted("m", 0, opened),
            *[PartDelta("m", 0, piece)] * deltas,
        ]
        return (
            [*events, PartFinished("m", 0, LinkPart("u")), MessageFinished("m")]
            if ended
            else events
        )

    Piece.copied = 0
    small, large = stream(1_000), stream(10_000)
    for function in (fold, compact):
        few, many = work(lambda f=function: f(small)), work(lambda f=function: f(large))
        assert few > 1_000
        assert many <= 10 * few
    huge = stream(100_000)
    (message,) = fold(huge)
    assert fold(compact(huge)) == [message]
    assert len(compact(huge)) == len(stream(1))
    assert Piece.copied == 0, "nothing is added up delta by delta"
    part = message.content[0]
    if not ended:
        said = (
            getattr(part, "text", None) or getattr(part, "raw", None) or getattr(part, "data", None)
        )
        assert len(said or "") == 100_000


def test_folding_many_dropped_messages_is_linear():
    def stream(messages: int) -> list[Event]:
        ids = [f"m{number}" for number in range(messages)]
        return [MessageStarted(i, Role.MODEL) for i in ids] + [
            MessageDropped(i) for i in reversed(ids)
        ]

    small, large = stream(500), stream(5000)
    assert work(lambda: fold(large)) <= 10 * work(lambda: fold(small))
    assert fold(large) == []


def test_a_dropped_message_is_gone_with_all_that_follows_it():
    dropped = [
        START,
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "no"),
        MessageDropped("m", "retry"),
    ]
    late = [
        PartDelta("m", 0, "late"),
        PartFinished("m", 0, TextPart("late")),
        MessageFinished("m"),
        MessageDropped("m"),
    ]
    other = unfold([Message.user("yes").replace(id="u")])
    assert fold([*dropped, *late, *other]) == [Message.user("yes").replace(id="u")]
    again = unfold([Message.model("yes").replace(id="m")])
    assert fold([*dropped, *again]) == [Message.model("yes").replace(id="m")]
    assert fold([MessageDropped("unknown"), *again]) == [Message.model("yes").replace(id="m")]
    twice = [*again, *again, MessageDropped("m")]
    assert fold(twice) == [Message.model("yes").replace(id="m")], (
        "only the latest of that id is dropped"
    )


def test_a_builder_begins_again_when_its_message_is_dropped():
    builder = MessageBuilder()
    builder.add(RunStarted("r"))
    for event in (START, PartStarted("m", 0, OpenText()), PartDelta("m", 0, "no")):
        builder.add(event)
    assert builder.message() == Message.model("no").replace(id="m")
    builder.add(MessageDropped("other"))
    builder.add(Custom("x"))
    assert builder.message().text == "no"
    builder.add(MessageDropped("m"))
    assert builder.message() == Message(Role.MODEL)
    assert builder.start is None
    second = Message.model("yes").replace(id="n", finish_reason=FinishReason.stop)
    for event in unfold([second, Message.model("not mine").replace(id="o")]):
        builder.add(event)
    assert builder.message() == second
    for event in unfold([second]):
        builder.add(event)
    assert builder.message() == second, "its message begins only once"


def test_a_builder_takes_its_own_events_only():
    builder = MessageBuilder(START)
    other = unfold(
        [Message.model(LinkPart("u"), "theirs").replace(id="n", finish_reason=FinishReason.stop)]
    )
    for event in (
        PartStarted("m", 1, OpenText()),
        PartDelta("m", 1, "mi"),
        *other,
        PartDelta("m", 1, "ne"),
    ):
        builder.add(event)
    builder.add(PartDelta("n", 1, "theirs"))
    assert builder.message() == Message.model("mine").replace(id="m")


def test_deltas_that_come_together_are_those_that_come_one_by_one():
    """Whatever happens between two reads of nothing else, and whenever the message is looked at."""
    text, call = PartStarted("m", 0, OpenText()), PartStarted("m", 1, CALL)
    some_of_each = [
        PartDelta("m", 0, "a"),
        PartDelta("m", 1, "{"),
        PartDelta("n", 0, "x"),
        PartDelta("m", 7, "y"),
    ]
    told: list[Event | list[PartDelta]] = [
        *[
            [PartDelta("m", 0, "early")],
            START,
            text,
            some_of_each,
            PartDelta("m", 0, "b"),
            call,
            some_of_each,
        ],
        *[
            PartDelta("m", 1, '"k"'),
            some_of_each,
            [PartDelta("m", 1, ":1")],
            PartFinished("m", 0, TextPart("A")),
        ],
        *[
            some_of_each,
            text,
            [PartDelta("m", 0, "again")],
            PartFinished("m", 1, CALL),
            some_of_each,
            call,
            some_of_each,
        ],
        *[
            PartFinished("m", 0, TextPart("B")),
            PartFinished("m", 1, CALL),
            some_of_each,
            text,
            some_of_each,
        ],
        *[MessageDropped("m"), some_of_each, START, text, some_of_each],
    ]
    for looks in (True, False):
        together, apart = MessageBuilder(), MessageBuilder()
        for each in told:
            if isinstance(each, list):
                together.add_deltas(each)
            else:
                together.add(each)
            for event in each if isinstance(each, list) else [each]:
                apart.add(event)
            if looks:
                assert together.message() == apart.message()
        assert together.content() == apart.content() == (TextPart("a"),)
        assert together.cut() == apart.cut() == [PartFinished("m", 0, TextPart("a"))]
        assert together.message() == apart.message()
    fresh = MessageBuilder(START)
    for event in (text, call):
        fresh.add(event)
    fresh.add_deltas(some_of_each)
    cut = [
        PartFinished("m", 0, TextPart("a")),
        PartFinished("m", 1, ToolCallPart("1", "f", raw="{", state="cut")),
    ]
    assert fresh.cut() == cut


def test_what_is_open_can_be_closed_as_cut():
    builder = MessageBuilder()
    assert builder.cut() == []
    for event in (
        START,
        PartStarted("m", 0, OpenText()),
        PartStarted("m", 1, CALL),
        PartDelta("m", 1, "{}"),
    ):
        builder.add(event)
    before = builder.message()
    closed = PartFinished("m", 1, ToolCallPart("1", "f", raw="{}", state="cut"))
    assert builder.cut() == [closed], "a text that never came is no part"
    assert builder.message() == before
    assert builder.cut() == []
    builder.add(PartDelta("m", 1, "late"))
    assert builder.message() == before


def test_only_candidate_0_is_folded():
    other = [
        MessageStarted("n", Role.MODEL, candidate=1),
        PartStarted("n", 0, OpenText()),
        PartDelta("n", 0, "b"),
    ]
    mine = [START, PartStarted("m", 0, OpenText()), PartDelta("m", 0, "a")]
    for events in ([*other, *mine], [*mine, *other], [*mine, *other, MessageDropped("n")]):
        assert fold(events) == [Message.model("a").replace(id="m")]
    builder = MessageBuilder()
    for event in [*other, *mine]:
        builder.add(event)
    assert builder.message().text == "a"
    alone = MessageBuilder(MessageStarted("n", Role.MODEL, candidate=1))
    for event in other[1:]:
        alone.add(event)
    assert alone.message().text == "b"


def test_deltas_of_parts_that_are_not_open_are_ignored():
    """Decision 13."""
    part = [
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "a"),
        PartFinished("m", 0, TextPart("a")),
    ]
    stray = [PartDelta("m", 0, "x"), PartDelta("m", 7, "x"), PartDelta("other", 0, "x")]
    assert fold([*stray, START, *stray[1:], *part, *stray, MessageFinished("m"), *stray]) == [
        Message.model("a").replace(id="m")
    ]


def test_parts_stand_in_the_order_of_their_index():
    events = [START]
    for index in (10, 2, 0):
        events += [PartStarted("m", index, OpenText()), PartDelta("m", index, str(index))]
    events.append(PartFinished("m", 2, TextPart("two")))
    assert fold(events)[0].content == (TextPart("0"), TextPart("two"), TextPart("10"))


def test_a_finished_part_is_the_authority_and_a_reopened_one_begins_anew():
    events = [
        START,
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "draft"),
        PartFinished("m", 0, TextPart("final")),
    ]
    assert fold(events)[0].text == "final"
    assert (
        fold([*events, PartStarted("m", 0, OpenText()), PartDelta("m", 0, "new")])[0].text == "new"
    )
    assert fold([START, PartFinished("m", 0, TextPart("unannounced"))])[0].text == "unannounced"


def test_what_is_still_open_is_cut():
    """Rule 8 of the design: a cut call keeps its text and its state."""
    events = [
        START,
        PartStarted("m", 0, ThinkingPart("th", {"anthropic": {"signature": "s"}})),
        PartDelta("m", 0, "ink"),
        PartStarted("m", 1, OpenText()),
        PartStarted("m", 2, CALL),
        PartDelta("m", 2, '{"a": '),
        PartDelta("m", 2, "1}"),
        PartStarted("m", 3, ToolCallPart("2", "g", {"b": 2})),
        PartStarted("m", 4, ToolCallPart("3", "h")),
        PartStarted("m", 5, ToolCallPart("4", "i", raw='{"c"')),
        PartDelta("m", 5, ":"),
        PartStarted("m", 6, LinkPart("u")),
    ]
    assert fold(events)[0].content == (
        ThinkingPart("think", {"anthropic": {"signature": "s"}}),
        ToolCallPart("1", "f", raw='{"a": 1}', state="cut"),
        ToolCallPart("2", "g", raw='{"b":2}', state="cut"),
        ToolCallPart("3", "h", raw="", state="cut"),
        ToolCallPart("4", "i", raw='{"c":', state="cut"),
        LinkPart("u"),
    )


def test_the_end_adds_to_the_start():
    start = MessageStarted(
        "m",
        Role.MODEL,
        0,
        Origin("a"),
        {"x": 1, "y": 1},
        {"a": {"x": 1, "y": 1}, "b": 1, "d": {}, "e": {}},
    )
    usage = Usage(input_tokens=1)
    finish = MessageFinished(
        "m",
        FinishReason.stop,
        usage,
        Origin("b"),
        {"y": 2},
        {"a": {"y": 2}, "b": {"z": 1}, "c": 3, "e": 5},
    )
    assert fold([start, finish]) == [
        Message(
            Role.MODEL,
            id="m",
            origin=Origin("b"),
            metadata={"x": 1, "y": 2},
            finish_reason=FinishReason.stop,
            usage=usage,
            native={"a": {"x": 1, "y": 2}, "b": {"z": 1}, "c": 3, "d": {}, "e": 5},
        )
    ]
    (message,) = fold([start, MessageFinished("m")])
    assert (message.origin, message.metadata, message.native) == (
        Origin("a"),
        start.metadata,
        start.native,
    )
    assert fold([START, MessageFinished("m", native={"a": {"z": 1}})])[0].native == {"a": {"z": 1}}
    assert start.native == {"a": {"x": 1, "y": 1}, "b": 1, "d": {}, "e": {}}, (
        "the event is as it was"
    )


def test_a_call_may_begin_with_some_of_its_arguments():
    begun = ToolCallPart("1", "f", raw='{"a":')
    assert close_part(begun, ["1}"]) == ToolCallPart("1", "f", {"a": 1})
    assert close_part(ToolCallPart("1", "f", raw='{"a":1}'), []) == ToolCallPart("1", "f", {"a": 1})
    told = ToolCallPart("1", "f", {"b": 2})
    assert close_part(told, []) == told
    assert close_part(told, ['{"b"'], cut=True) == ToolCallPart("1", "f", raw='{"b"', state="cut")
    assert close_part(told, ['{"c":3}']) == ToolCallPart("1", "f", {"c": 3}), (
        "deltas tell all of them"
    )


def test_native_is_added_when_a_part_is_closed():
    native = {"anthropic": {"signature": "s"}}
    for part in (ThinkingPart("x"), LinkPart("u"), CALL):
        assert close_part(part, [], native=native) == msgspec.structs.replace(part, native=native)
    assert close_part(OpenText(), ["a", "b"], native=native) == TextPart("ab", native)
    assert close_part(OpenText(native=native), ["a"]) == TextPart("a", native)
    assert type(close_part(OpenText(), ["a"])) is TextPart
    assert close_part(OpenText(), [], native=native) is None
    assert close_part(OpenText("a"), ["b"]) == TextPart("ab")


def test_deltas_of_data_are_bytes_or_base64():
    part = DataPart(b"\x00", "image/png")
    assert close_part(part, [b"\x01", b"\xff"]) == DataPart(b"\x00\x01\xff", "image/png")
    assert close_part(part, ["AQ==", b"\xfe", "/w==", ""]) == DataPart(
        b"\x00\x01\xfe\xff", "image/png"
    )
    assert close_part(part, []) == part
    assert close_part(OpenText(), [b"\xc3\xa4", b"\xff"]) == TextPart("ä\ufffd"), (
        "bytes of a text are its UTF-8"
    )


@given(some.streams(st.lists(some.plain(some.data | some.texts), max_size=3)))
def test_a_stream_that_went_through_json_folds_to_the_same(told: tuple[list[Message], list[Event]]):
    messages, events = told
    stored = [
        msgspec.json.decode(msgspec.json.encode(event), type=Event)
        for event in compact_some(events)
    ]
    assert fold(stored) == messages
    without_ends = [event for event in stored if not isinstance(event, PartFinished)]
    assert [message.content for message in fold(without_ends)] == [
        message.content for message in messages
    ]
    assert fold(compact(without_ends)) == fold(without_ends)


def compact_some(events: list[Event]) -> list[Event]:
    half = len(events) // 2
    return [*compact(events[:half]), *events[half:]]


ARGUMENTS = [
    ("", {}, "complete", ""),
    (" ", {}, "complete", " "),
    ("null", {}, "complete", "null"),
    ("{}", {}, "complete", None),
    ("{ }", {}, "complete", "{ }"),
    ('{"a":1}', {"a": 1}, "complete", None),
    (' {"a": 1}\n', {"a": 1}, "complete", ' {"a": 1}\n'),
    ('{"a":1.0,"b":"ä"}', {"a": 1.0, "b": "ä"}, "complete", None),
    ('{"a":"\\u00e4"}', {"a": "ä"}, "complete", '{"a":"\\u00e4"}'),
    ('{"a":1,"a":2}', {"a": 2}, "complete", '{"a":1,"a":2}'),
    (
        '{"n":123456789012345678901234567890}',
        {"n": 123456789012345678901234567890},
        "complete",
        None,
    ),
    ('{"a": ', {}, "invalid", '{"a": '),
    ("{}{}", {}, "invalid", "{}{}"),
    ("[1]", {}, "invalid", "[1]"),
    ("1", {}, "invalid", "1"),
    ('"{}"', {}, "invalid", '"{}"'),
    ("nulll", {}, "invalid", "nulll"),
    ('{"a":1e999}', {}, "invalid", '{"a":1e999}'),
    ('{"a":"\ud800"}', {}, "invalid", '{"a":"\ud800"}'),
    ('{"a":' * 100_000, {}, "invalid", '{"a":' * 100_000),
]


@pytest.mark.parametrize(
    ("text", "arguments", "state", "raw"), ARGUMENTS, ids=range(len(ARGUMENTS))
)
def test_arguments_are_text_until_they_parse(
    text: str, arguments: Any, state: Any, raw: str | None
):
    """D-96: empty and `null` are `{}`. What is no JSON object is invalid and keeps its text."""
    before = ToolCallPart("1", "f", {"old": 1}, raw="old", state="cut", native={"x": {}})
    assert parse_call(before, text) == ToolCallPart(
        "1", "f", arguments, raw, state, native={"x": {}}
    )


@given(some.calls)
def test_arguments_text_says_the_arguments(call: ToolCallPart):
    text = arguments_text(call)
    again = parse_call(msgspec.structs.replace(call, arguments={}), text)
    assert again.arguments == call.arguments
    assert again.state == "complete"
    if call.state == "complete":
        assert text == (call.raw if call.raw is not None else text)
    else:
        assert text == "{}"


def test_arguments_that_were_edited_are_written_anew():
    call = parse_call(CALL, '{"a": 1}')
    assert arguments_text(call) == '{"a": 1}'
    assert arguments_text(msgspec.structs.replace(call, arguments={"a": 2})) == '{"a":2}'
    assert arguments_text(msgspec.structs.replace(call, arguments={"a": True})) == '{"a":true}'
    for raw in ("", "{ }", '{"a"'):
        assert arguments_text(ToolCallPart("1", "f", {}, raw=raw, state="cut")) == "{}"
    assert arguments_text(ToolCallPart("1", "f", {}, raw='{"a"')) == "{}"
    edited = Message.model(msgspec.structs.replace(call, arguments={"a": 2}))
    assert [event.delta for event in unfold([edited]) if isinstance(event, PartDelta)] == [
        '{"a":2}'
    ]
    assert fold(unfold([edited])) == [edited]


def test_of_a_delta_that_comes_alone_the_text_is_kept_and_not_the_event() -> None:
    builder = MessageBuilder(MessageStarted("m", Role.MODEL))
    builder.add(PartStarted("m", 0, OpenText()))
    lone = [PartDelta("m", 0, "word ") for _ in range(3)]
    references = [sys.getrefcount(event) for event in lone]
    for place in range(len(lone)):
        builder.add_deltas(lone[place : place + 1])
    assert [sys.getrefcount(event) for event in lone] == references
    assert builder.message().text == "word word word "


def test_deltas_by_reads_of_any_size_stay_in_order() -> None:
    builder = MessageBuilder(MessageStarted("m", Role.MODEL))
    builder.add(PartStarted("m", 0, OpenText()))
    for texts in (("a", "b"), ("c",), ("d", "e"), ("f", "g"), ("h",)):
        builder.add_deltas([PartDelta("m", 0, text) for text in texts])
    assert builder.message().text == "abcdefgh"
