"""Events are values that JSON gives back."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given

from dragoman import event as module
from dragoman.errors import HistoryError, LimitReachedError, RateLimitError
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
    ToolStarted,
    event_from_json,
    event_to_json,
    set_time,
)
from dragoman.fold import compact, fold
from dragoman.interrupt import Interrupt
from dragoman.loss import Loss, Lost
from dragoman.message import (
    DataPart,
    FinishReason,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.result import ChatResult
from support import strategies as some

EVENTS: list[Event] = [
    RunStarted("r", "t", "p"),
    RunFinished(
        "r",
        "pending",
        Usage(input_tokens=1),
        (Interrupt("1", "tool", ToolCallPart("1", "f", {"a": [1]})),),
    ),
    StepStarted("s"),
    StepFinished("s"),
    MessageStarted(
        "m",
        Role.USER,
        1,
        Origin("p"),
        {"k": 1},
        {"w": {}},
        datetime(2026, 1, 1, tzinfo=UTC),
        anonymous=True,
    ),
    PartStarted("m", 0, OpenText(native={"w": {"x": 1}})),
    PartDelta("m", 0, "ü"),
    MessageFinished("m", FinishReason.stop, Usage(), Origin("p"), {"k": 1}, {"w": {}}),
    MessageDropped("m", "retry"),
    StateSnapshot([1, {"a": None}]),
    StateDelta(({"op": "remove", "path": "/a"},)),
    Custom("c", {"a": 1}),
    ToolStarted("1", "f"),
    ToolStarted("1", "f", {"a": 2}, "inner"),
]


def again(event: Event) -> Event:
    return event_from_json(event_to_json(event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_kind_of_event_comes_back_from_json(event: Event):
    assert again(event) == event
    assert type(again(event)) is type(event)


@given(some.streams())
def test_every_stream_comes_back_from_json(told: tuple[list[Message], list[Event]]):
    for event in told[1]:
        assert again(event) == event


def test_a_failure_comes_back_from_json():
    error = RateLimitError(
        "slow",
        provider="p",
        status=429,
        retry_after=1.5,
        body=b"\xff",
        partial=Message.model("so far"),
    )
    told = again(RunError(error, "r"))
    assert isinstance(told, RunError)
    assert told.run_id == "r"
    assert type(told.error) is RateLimitError
    assert vars(told.error) == vars(error)


@pytest.mark.parametrize(
    "data", [b"{", b'{"type":"nothing"}', b'{"type":"run_error","error":3}', b"\xff", b"[" * 9000]
)
def test_what_is_no_stored_event_says_so(data: bytes):
    with pytest.raises(HistoryError, match="not a stored e"):
        event_from_json(data)


def test_what_has_no_json_form_says_so():
    with pytest.raises(NotImplementedError, match="a object has no JSON form"):
        event_to_json(Custom("c", object()))


def test_bytes_are_base64_in_json():
    assert b'"AP8="' in event_to_json(PartDelta("m", 0, b"\x00\xff"))
    assert again(PartDelta("m", 0, b"\x00\xff")) == PartDelta("m", 0, b"\x00\xff")
    assert again(PartDelta("m", 0, "AP8=")) == PartDelta("m", 0, "AP8=")
    opened = PartStarted("m", 0, DataPart(b"\x00\xff", "image/png"))
    assert again(opened) == opened


def test_a_delta_is_text():
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(
            b'{"type":"part_delta","message_id":"m","index":0,"delta":5}', type=Event
        )


def test_a_text_that_is_still_open_is_no_text_part_of_a_message():
    assert OpenText() == OpenText("")
    assert isinstance(OpenText(), TextPart)
    assert type(again(PartStarted("m", 0, OpenText())).part) is OpenText
    stored = Message.user("x").to_json().replace(b'"type":"text"', b'"type":"open_text"')
    assert not isinstance(Message.from_json(stored).content[0], TextPart)


def test_events_cannot_be_changed_and_explain_themselves():
    for event in EVENTS:
        assert type(event).__doc__
        with pytest.raises(AttributeError):
            setattr(event, type(event).__struct_fields__[0], None)
    named = {name for name in module.__all__ if inspect.isclass(getattr(module, name))}
    kinds = {type(event).__name__ for event in EVENTS}
    assert named - kinds == {"OpenText", "PartFinished", "RunError"}


def test_what_json_cannot_hold_is_refused_in_words():
    """Found by `make fuzz`: a count's name that a provider had cut in the middle of a character."""
    event = MessageFinished("m", native={"google:notes": {"response": {"usage": {"\ud83d": 1}}}})
    with pytest.raises(HistoryError, match="an event cannot be stored as JSON"):
        event_to_json(event)


def test_an_error_comes_back_with_all_that_there_was_of_its_run():
    call = ToolCallPart("c", "f", {"a": [1]}, native={"w": {"x": 1}})
    messages = (
        Message.user(DataPart(b"\x00\xff", "image/png")).replace(
            id="u", created_at=datetime(2026, 1, 1, tzinfo=UTC)
        ),
        Message.model(ThinkingPart("so"), call).replace(
            origin=Origin("p", "e"), usage=Usage(input_tokens=1), turn="t"
        ),
        Message.user(
            ToolResultPart("c", "f", (TextPart("x"), DataPart(b"\xfe", "image/png")), is_error=True)
        ),
    )
    result = ChatResult(
        "half",
        messages,
        FinishReason.error,
        Usage(output_tokens=2),
        "so",
        {"model": "m", "thinking": "so"},
        "id",
        (
            Interrupt(
                "c",
                "approval",
                call,
                "may it?",
                {"type": "object"},
                datetime(2026, 1, 2, tzinfo=UTC),
                editable=True,
            ),
        ),
        (Loss(1, None, Lost.setting, "why", "top_k"),),
    )
    error = LimitReachedError(
        "enough", provider="p", body=b"\x00", partial=messages[1], result=result
    )
    told = again(RunError(error, "r"))
    assert isinstance(told, RunError)
    assert type(told.error) is LimitReachedError
    assert vars(told.error) == vars(error)
    assert event_to_json(told) == event_to_json(RunError(error, "r"))


@given(some.histories)
def test_any_history_comes_back_in_an_error(history: list[Message]):
    error = RateLimitError(
        "slow", result=ChatResult("x", tuple(history)), partial=history[0] if history else None
    )
    told = again(RunError(error))
    assert isinstance(told, RunError)
    assert vars(told.error) == vars(error)


AT = datetime(2026, 11, 26, 9, 0, 0, 123456, UTC)


@given(some.streams())
def test_a_time_comes_back_from_json_and_counts_nowhere(told: tuple[list[Message], list[Event]]):
    plain, stored = set_time(told[1], None), set_time(told[1], AT)
    assert [event.at for event in map(again, stored)] == [AT] * len(stored)
    assert [event.at for event in map(again, plain)] == [None] * len(plain)
    assert stored == plain
    assert fold(stored) == fold(plain)
    assert compact(set_time(compact(stored), None)) == compact(plain)


def test_a_time_does_not_count_in_comparisons():
    for event in EVENTS:
        (stored,) = set_time([event], AT)
        assert stored == event
        assert stored.at == AT
        assert type(stored) is type(event)
    assert StepStarted("a", at=AT) != StepStarted("b", at=AT)
    assert StepStarted("a") != StepFinished("a")
    assert hash(StepStarted("a", at=AT)) == hash(StepStarted("a"))
    assert set_time([PartDelta("m", 0, b"x")], AT)[0] == PartDelta("m", 0, b"x")


def test_events_of_earlier_releases_are_read():
    stored = b'{"type":"part_delta","message_id":"m","index":0,"delta":"x"}'
    assert event_from_json(stored) == PartDelta("m", 0, "x")
    assert event_from_json(stored).at is None
    assert repr(event_from_json(b'{"type":"step_started","name":"s"}')) == "StepStarted(name='s')"
