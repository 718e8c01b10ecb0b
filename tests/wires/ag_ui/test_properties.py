"""Laws of the AG-UI wire, over any messages and any events."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from dragoman.errors import StreamCutError
from dragoman.event import Event, RunError, RunStarted, ToolStarted
from dragoman.fold import compact, unfold
from dragoman.message import Message
from dragoman.wires import ag_ui
from support import strategies


def dumped(messages: list[Message]) -> Any:
    return [message.to_json() for message in messages]


@given(strategies.histories)
def test_messages_come_back_as_they_were(history: list[Message]) -> None:
    payload = ag_ui.dump_messages(history)
    assert dumped(ag_ui.load_messages(payload)) == dumped(history)
    ids = [entry["id"] for entry in payload]
    assert len(set(ids)) == len(ids) and all(ids)


def encoded(events: list[Event], **envelope: Any) -> bytes:
    encoder = ag_ui.encoder(**envelope)
    return b"".join([encoder.feed(event) for event in events]) + encoder.close()


def decoded(data: bytes) -> list[Event]:
    decoder = ag_ui.decoder()
    return [*decoder.feed(data), *decoder.close()]


def without_empty(events: list[Event]) -> list[Event]:
    return [event for event in events if getattr(event, "delta", None) not in ("", b"")]


@given(strategies.streams())
def test_events_come_back_as_they_were(stream: tuple[list[Message], list[Event]]) -> None:
    events = without_empty(stream[1])
    back = decoded(encoded(events))
    # The protocol has no place for it.
    events = [event for event in events if not isinstance(event, ToolStarted)]
    if back and isinstance(last := back[-1], RunError):  # the run was not ended
        assert isinstance(last.error, StreamCutError) and isinstance(events[0], RunStarted)
        del back[-1]
    assert compact(back) == compact(events)


@given(strategies.histories)
def test_a_transcript_comes_back_as_it_was(history: list[Message]) -> None:
    events = unfold(history)
    assert compact(decoded(encoded(events))) == compact(events)
