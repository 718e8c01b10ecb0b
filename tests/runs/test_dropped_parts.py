"""Answers that go on after a part of them was taken back: how a Responses stream tells it."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import MessageDropped, PartDelta, PartStarted, RunFinished, RunStarted, unfold, wires
from dragoman.event import Event, MessageStarted, OpenText
from dragoman.json_bytes import decode
from dragoman.message import Message, Role, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.runs.visible import Visible

RESPONSES = wires.get("openai_responses")


def said(*parts: Any, name: str) -> list[Event]:
    return unfold([Message.model(*parts).replace(id=name)])


def cut(text: str, name: str) -> list[Event]:
    """A message whose process died in its middle."""
    return [
        MessageStarted(name, Role.MODEL),
        PartStarted(name, 0, OpenText()),
        PartDelta(name, 0, text),
        MessageDropped(name, "its process ended"),
    ]


def streamed(events: list[Event]) -> list[dict[str, Any]]:
    view, encoder = Visible(drops_parts=True), RESPONSES.encoder(id="resp_1")
    data = b"".join([encoder.feed(seen) for event in events for seen in view.feed(event)])
    data += encoder.close()
    frames = [frame for frame in data.split(b"\n\n") if frame]
    return [dict(decode(frame.partition(b"data: ")[2])) for frame in frames]


def texts(response: Any) -> list[str]:
    return [block["text"] for item in response["output"] for block in item.get("content", [])]


CALL, RESULT = ToolCallPart("c", "look", {}), Message.user(ToolResultPart("c", "look", "seen"))


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ([*cut("Half ", "m1"), *said("Whole.", name="m2")], ["Whole."]),
        ([*cut("Half ", "m1"), *cut("A th", "m2"), *said("Whole.", name="m3")], ["Whole."]),
        (
            [
                *said(TextPart("I look."), CALL, name="m1"),
                *unfold([RESULT.replace(id="u1")]),
                *cut("Half ", "m2"),
                *said("Whole.", name="m3"),
            ],
            ["I look.", "\nWhole."],
        ),
        (
            [
                *said(ThinkingPart("Hm."), TextPart("One."), name="m1")[:-1],
                MessageDropped("m1", "its process ended"),
                *said("Two.", name="m2"),
            ],
            ["Two."],
        ),
    ],
)
def test_the_end_of_a_stream_is_without_what_was_taken_back(
    events: list[Event], left: list[str]
) -> None:
    told = streamed([RunStarted("r"), *events, RunFinished("r", "success")])
    assert told[-1]["type"] == "response.completed"
    assert texts(told[-1]["response"]) == left
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    # Each item that began has ended before the next one begins.
    open_items: list[int] = []
    for event in told:
        if event["type"] == "response.output_item.added":
            assert open_items == []
            open_items.append(event["output_index"])
        elif event["type"] == "response.output_item.done":
            open_items.remove(event["output_index"])
    assert open_items == []
