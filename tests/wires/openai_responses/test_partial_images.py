"""Images that are shown before they are finished, both ways: events of the stream ↔ custom events."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from dragoman import Custom, DataPart, Message, MessageDropped, fold, wires
from dragoman.event import PARTIAL_IMAGE, MessageFinished
from dragoman.media import read_partial_image
from support.media import IMAGE, PNG, said, stream
from support.traffic import exchanges

WIRE = wires.get("openai_responses")
CREATED = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}


def partial(number: int, data: bytes, **fields: Any) -> dict[str, Any]:
    return {
        "type": "response.image_generation_call.partial_image",
        "output_index": 0,
        "item_id": "ig_1",
        "partial_image_index": number,
        "partial_image_b64": b64encode(data).decode(),
        **fields,
    }


def drawn(*shown: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of an image that is drawn, and a text behind it."""
    begun = {"id": "ig_1", "type": "image_generation_call", "status": "in_progress"}
    response = {"id": "resp_1", "status": "completed", "output": [IMAGE, said("Here.")]}
    return [
        CREATED,
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        *shown,
        {"type": "response.output_item.done", "output_index": 0, "item": IMAGE},
        {"type": "response.completed", "response": response},
    ]


def decode(body: bytes) -> list[Any]:
    decoder = WIRE.decoder(new_id=iter(["m", "m2"]).__next__)
    return [*decoder.feed(body), *decoder.close()]


def encode(events: list[Any]) -> list[dict[str, Any]]:
    encoder = WIRE.encoder()
    body = b"".join([*map(encoder.feed, events), encoder.close()])
    return [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: {")]


def test_an_unfinished_image_is_written_into_the_call_that_draws_it() -> None:
    shown = [partial(0, b"a", output_format="png"), partial(1, b"b", size="1x1")]
    events = decode(stream(*drawn(*shown))[2])
    written = encode(events)

    types = [event["type"].removeprefix("response.") for event in written]
    begin = types.index("output_item.added")
    assert types[begin : begin + 6] == [
        "output_item.added",
        "image_generation_call.in_progress",
        "image_generation_call.generating",
        "image_generation_call.partial_image",
        "image_generation_call.partial_image",
        "image_generation_call.completed",
    ]
    told = [event for event in written if event["type"] == shown[0]["type"]]
    assert [{**event, "sequence_number": 0} for event in told] == [
        {**event, "sequence_number": 0} for event in shown
    ]
    assert [item["type"] for item in written[-1]["response"]["output"]] == [
        IMAGE["type"],
        "message",
    ]
    assert written[-1]["response"]["output"][0] == IMAGE
    again = decode(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in written))
    assert [event for event in again if isinstance(event, Custom)] == [
        event for event in events if isinstance(event, Custom)
    ]


def test_the_finished_image_alone_is_kept() -> None:
    events = decode(stream(*drawn(partial(0, b"half"), partial(1, b"more")))[2])
    [message] = fold(events)
    assert [part.data for part in message.content if isinstance(part, DataPart)] == [PNG]
    assert b64encode(b"half") not in message.to_json()


def test_a_whole_response_has_no_unfinished_image() -> None:
    response = WIRE.dump_response(decode(stream(*drawn(partial(0, b"half")))[2]))
    assert response["output"][0] == IMAGE
    assert b64encode(b"half").decode() not in json.dumps(response)


def test_a_stream_that_is_cut_keeps_no_unfinished_image() -> None:
    events = decode(stream(*drawn(partial(0, b"half"))[:3])[2])
    [message] = fold(events)
    assert not [part for part in message.content if isinstance(part, DataPart)]


@pytest.mark.parametrize("cut", [3, 4])
def test_a_retracted_image_is_ended(cut: int) -> None:
    events = decode(stream(*drawn(partial(0, b"half")))[2])[:cut]
    events = [*events, MessageDropped("m", "again"), *decode(stream(*drawn())[2])[:-1]]
    written = encode([event for event in events if not isinstance(event, MessageFinished)])
    added = [event["output_index"] for event in written if event["type"].endswith("item.added")]
    done = [event["output_index"] for event in written if event["type"].endswith("item.done")]
    assert added == done


def test_an_image_that_no_call_draws_is_left_out() -> None:
    custom = Custom(PARTIAL_IMAGE, {"partial_image_b64": "AA=="})
    events = decode(stream(*drawn())[2])
    for place in range(len(events)):
        written = encode([*events[:place], custom, *events[place:]])
        items = [event for event in written if event["type"] == "response.output_item.added"]
        assert len(items) == 2
        assert written[-1]["response"]["output"][0] == IMAGE


@pytest.mark.parametrize(
    "name", ["openai_chat", "anthropic", "google", "ollama", "mistral", "cohere"]
)
def test_other_apis_are_told_the_finished_image_alone(name: str) -> None:
    events = decode(stream(*drawn(partial(0, b"half")))[2])
    encoder = wires.get(name).encoder()
    body = b"".join([*map(encoder.feed, events), encoder.close()])
    assert b64encode(b"half") not in body


def test_recorded_unfinished_images_go_through() -> None:
    count = 0
    for exchange in exchanges("openai_responses"):
        if b"image_generation_call.partial_image" not in exchange.body:
            continue
        events = decode(exchange.body)
        shown = [event for event in events if isinstance(event, Custom)]
        written = encode(events)
        told = [event for event in written if event["type"].endswith("partial_image")]
        assert [event["partial_image_b64"] for event in told] == [
            event.value["partial_image_b64"] for event in shown
        ]
        count += len(told)
    assert count


@pytest.mark.parametrize(
    "value", [None, {}, {"partial_image_b64": "*"}, {"partial_image_b64": 3}, [], "x"]
)
def test_what_holds_no_image_shows_none(value: Any) -> None:
    assert read_partial_image(Custom(PARTIAL_IMAGE, value)) is None
    assert read_partial_image(Custom("other", {"partial_image_b64": "AA=="})) is None


def test_an_unfinished_image_has_the_type_of_its_bytes() -> None:
    image = read_partial_image(
        Custom(PARTIAL_IMAGE, {"partial_image_b64": b64encode(PNG).decode()})
    )
    assert image == DataPart(PNG, "image/png", "partial_0")
    assert Message.model(image)
