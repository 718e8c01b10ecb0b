"""Which events of a stream are those of runs within tools."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import Message, fold, unfold, wires
from dragoman.errors import ToolError
from dragoman.event import (
    Custom,
    Event,
    MessageStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from dragoman.inner_runs import InnerRuns, without_inner_runs
from dragoman.message import FinishReason
from dragoman.runs import visible
from support.strategies import interleave
from support.traffic import decode


def run(run_id: str, parent: str | None, texts: list[str], *, fails: bool) -> list[Event]:
    """The events of a run as they stand in the stream of the outermost."""
    own = None if parent is None else run_id
    events: list[Event] = [RunStarted(run_id, parent_run_id=parent), StepStarted("s", run_id=own)]
    for number, text in enumerate(texts):
        message = Message.model(text).replace(
            id=f"{run_id}.{number}", finish_reason=FinishReason.stop
        )
        for event in unfold([message]):
            is_start = isinstance(event, MessageStarted) and own is not None
            events.append(msgspec.structs.replace(event, run_id=own) if is_start else event)
    end = RunError(ToolError("no"), run_id) if fails else RunFinished(run_id)
    return [*events, Custom("c", run_id=own), StepFinished("s", run_id=own), end]


@st.composite
def trees(draw: Any) -> tuple[list[Event], list[Event]]:
    """A run's events with those of runs in its tools side by side, and its own alone."""

    def grown(run_id: str, parent: str | None, depth: int) -> tuple[list[Event], list[Event]]:
        texts = draw(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=2))
        own = run(run_id, parent, texts, fails=parent is not None and draw(st.booleans()))
        children = [
            grown(f"{run_id}{number}", run_id, depth - 1)[0]
            for number in range(draw(st.integers(0, depth)))
        ]
        between = interleave(draw, [own[1:-1], *children])
        return [own[0], *between, own[-1]], own

    return grown("r", None, 2)


@given(trees())
def test_a_runs_own_events_are_what_is_left(tree: tuple[list[Event], list[Event]]) -> None:
    events, own = tree
    assert without_inner_runs(events) == own
    assert without_inner_runs([*events, *events]) == [*own, *own]
    assert fold(events) == fold(own)
    assert [*visible(events)] == [*visible(own)]


@given(trees())
def test_a_stream_that_is_itself_an_inner_run_is_left_whole(
    tree: tuple[list[Event], list[Event]],
) -> None:
    _, own = tree
    inner = [RunStarted("r", parent_run_id="elsewhere"), *own[1:]]
    assert without_inner_runs(inner) == inner
    as_told = run("r", "elsewhere", ["a"], fails=False)
    assert without_inner_runs(as_told) == as_told


def test_the_next_run_may_name_the_last_one_as_its_parent() -> None:
    events = [*run("a", None, ["x"], fails=False), *run("b", "a", ["y"], fails=False)]
    assert without_inner_runs(events) == events


def test_an_id_that_was_an_inner_messages_may_be_one_of_the_run() -> None:
    inner = InnerRuns()
    events = [
        RunStarted("r"),
        MessageStarted("m", "model", run_id="i"),
        MessageStarted("m", "model"),
    ]  # pyright: ignore[reportArgumentType]
    assert [inner.has(event) for event in events] == [False, True, False]


@pytest.mark.parametrize("name", wires.names("model"))
@settings(max_examples=25)
@given(tree=trees())
def test_no_wire_tells_a_client_of_inner_runs(
    name: str, tree: tuple[list[Event], list[Event]]
) -> None:
    """Also where nobody asked what is visible."""
    events, own = tree
    wire = wires.get(name)
    streams: list[Any] = []
    for each in (events, own):
        encoder = wire.encoder(id="r1", model="m")
        streams.append(b"".join([*map(encoder.feed, each), encoder.close()]))
    assert streams[0] == streams[1]
    assert fold(decode(wire, streams[0]))
    assert wire.dump_response(events, id="r1", model="m") == wire.dump_response(
        own, id="r1", model="m"
    )
