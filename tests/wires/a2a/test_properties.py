"""Laws of the A2A wire, over any messages and any events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import StreamCutError
from dragoman.event import Event, RunError, RunStarted, ToolStarted
from dragoman.fold import compact, unfold
from dragoman.message import Message
from dragoman.wires import a2a
from dragoman.wires.a2a.tasks import TERMINAL
from support import strategies


def dumped(messages: list[Message]) -> Any:
    return [message.to_json() for message in messages]


@given(strategies.histories)
def test_messages_come_back_as_they_were(history: list[Message]) -> None:
    assert dumped(a2a.load_messages(a2a.dump_messages(history))) == dumped(history)


def encoded(events: list[Event], **envelope: Any) -> bytes:
    encoder = a2a.encoder(**envelope)
    return b"".join([encoder.feed(event) for event in events]) + encoder.close()


def decoded(data: bytes) -> list[Event]:
    decoder = a2a.decoder()
    return [*decoder.feed(data), *decoder.close()]


def without_empty(events: list[Event]) -> list[Event]:
    return [event for event in events if getattr(event, "delta", None) not in ("", b"")]


def same(back: list[Event], events: list[Event]) -> None:
    if back and isinstance(last := back[-1], RunError):  # the run was not ended
        assert isinstance(last.error, StreamCutError) and (
            not events or isinstance(events[0], RunStarted)
        )
        del back[-1]
    assert compact(back) == compact(events)


@given(strategies.streams())
def test_events_come_back_as_they_were(stream: tuple[list[Message], list[Event]]) -> None:
    # The protocol has no place for it.
    told = [event for event in stream[1] if not isinstance(event, ToolStarted)]
    events = without_empty(told)
    same(decoded(encoded(events)), events)
    same(decoded(encoded(events, rpc_id=7)), events)


@given(strategies.histories)
def test_a_whole_task_comes_back_as_it_was(history: list[Message]) -> None:
    events = unfold(history)
    if events:
        assert compact(a2a.load_response(a2a.dump_response(events))) == compact(events)


@given(strategies.streams(), st.booleans())
def test_every_stream_is_one_that_the_protocol_allows(
    stream: tuple[list[Message], list[Event]], extras: bool
) -> None:
    """A task first and once, a state that ends last, artifacts that begin before they grow, and not
    after their last chunk."""
    encoder = a2a.encoder(extras=extras)
    told = [each for event in stream[1] for each in encoder.objects(event)]
    objects: list[Any] = [*told, *encoder.close_objects()]
    if not objects:
        return
    assert ["task" in each for each in objects] == [True] + [False] * (len(objects) - 1)
    ends = [
        each["statusUpdate"]["status"]["state"] in TERMINAL
        for each in objects
        if "statusUpdate" in each
    ]
    assert ends[-1] and not any(ends[:-1]) and "statusUpdate" in objects[-1]
    open_: set[str] = set()
    for update in [each["artifactUpdate"] for each in objects if "artifactUpdate" in each]:
        id_ = update["artifact"]["artifactId"]
        assert id_ and update["artifact"]["parts"]
        assert not update["append"] or id_ in open_ or id_ == "state"
        open_ = open_ - {id_} if update["lastChunk"] else open_ | {id_}
    types, json_format = (
        pytest.importorskip("a2a.types"),
        pytest.importorskip("google.protobuf.json_format"),
    )
    for each in objects:
        json_format.ParseDict(each, types.StreamResponse())
