"""The google wire at the edges: models named twice, references without end, calls of others."""

from __future__ import annotations

import gc
import json
import sys

import pytest

from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
    Message,
    Origin,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ModelRequest
from dragoman.wires import google as wire
from dragoman.wires.google.schema import lower

CONTENTS = [{"role": "user", "parts": [{"text": "hi"}]}]


@pytest.mark.parametrize(
    ("named", "path", "model"),
    [
        ("models/a", "/v1beta/models/a:generateContent", "a"),
        ("models/b", "/v1beta/models/a:generateContent", "a"),
        ("models/a", "", "a"),
    ],
)
def test_a_model_that_the_body_names_goes_back_as_it_was(named: str, path: str, model: str) -> None:
    """The path's wins: it is the one that answers."""
    body = {"model": named, "contents": CONTENTS}
    request = wire.load_request(body, path=path)
    assert request.model == model
    assert wire.dump_request(request) == body


@pytest.mark.parametrize(("references", "last"), [(1000, "STRING"), (1001, "OBJECT")])
def test_references_are_replaced_up_to_a_thousand(references: int, last: str) -> None:
    properties = {f"p{number}": {"$ref": "#/$defs/A"} for number in range(references)}
    lowered = lower(
        {"type": "object", "properties": properties, "$defs": {"A": {"type": "string"}}}
    )
    types = [each["type"] for each in lowered["properties"].values()]
    assert types == ["STRING"] * (references - 1) + [last]


def test_a_result_has_the_name_of_the_call_that_was_ours_where_a_provider_had_the_same_id() -> None:
    history = [
        Message.user("hi"),
        Message.model(ToolCallPart("c1", "look", {"x": 1})),
        Message.user(ToolResultPart("c1", "", "7")),
        Message.model(ToolCallPart("c1", "web_search", {}, run_by="provider"), "done"),
    ]
    assert wire.dump_messages(history)["contents"] == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "look", "args": {"x": 1}, "id": "c1"}}],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "look", "id": "c1", "response": {"result": "7"}}}
            ],
        },
        {"role": "model", "parts": [{"text": "done"}]},
    ]


def test_turns_of_the_model_that_follow_each_other_are_one_round_of_calls() -> None:
    calls = [
        {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]}
        for name in ("f", "g")
    ]
    answers = [{"functionResponse": {"name": name, "response": {}}} for name in ("f", "g")]
    messages = wire.load_messages(
        {"contents": [*CONTENTS, *calls, {"role": "user", "parts": answers}]}
    )
    asked = [(call.id, call.name) for message in messages for call in message.tool_calls]
    assert [name for _, name in asked] == ["f", "g"]
    assert [(result.id, result.name) for result in messages[-1].tool_results] == asked


def test_an_array_with_bytes_that_are_no_text_is_read_as_far_as_it_can_be() -> None:
    body = b'[{"candidates":[{"content":{"parts":[{"text":"a\xff"}]},"finishReason":"STOP"}]}]'
    assert fold(wire.load_response(body))[0].text == "a\ufffd"


def test_a_call_that_comes_in_pieces_ends_where_something_else_begins() -> None:
    pieces = [
        {"functionCall": {"name": "f", "willContinue": True}},
        {
            "functionCall": {
                "partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}],
                "willContinue": True,
            }
        },
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    ]
    chunks = [
        {"candidates": [{"content": {"role": "model", "parts": [piece]}}]} for piece in pieces
    ]
    chunks += [{"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}]
    decoder = wire.decoder()
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    call, image = fold([*decoder.feed(data), *decoder.close()])[0].content
    assert isinstance(call, ToolCallPart)
    assert (call.name, call.arguments, call.state) == ("f", {"a": "x"}, "complete")
    assert image == DataPart(b"hi", "image/png")


@pytest.mark.parametrize(("length", "kept"), [(1024, True), (1025, False)])
def test_an_id_may_have_1024_letters(length: int, kept: bool) -> None:
    call = ToolCallPart("i" * length, "f", {})
    history = [
        Message.user("hi"),
        Message.model(call),
        Message.user(ToolResultPart(call.id, "f", "1")),
    ]
    contents = wire.dump_messages(history, target=Origin("google", None, "gemini-3"))["contents"]
    sent = contents[1]["parts"][0]["functionCall"]["id"]
    assert sent == contents[2]["parts"][0]["functionResponse"]["id"]
    assert (sent == call.id, len(sent) <= 1024) == (kept, True)


@pytest.mark.parametrize(
    ("noted", "sent"), [(1, 1), ("X", "X"), ({"a": 1}, "STOP"), (["STOP"], "STOP")]
)
def test_a_stored_reason_to_stop_that_is_none_is_not_sent(noted: object, sent: object) -> None:
    native = {"google:notes": {"response": {"finishReason": noted}}}
    message = Message.model("a").replace(finish_reason=FinishReason.stop, native=native)
    assert wire.dump_response(unfold([message]))["candidates"][0]["finishReason"] == sent


@pytest.mark.slow
def test_what_an_answer_cannot_hold_is_kept_nowhere() -> None:
    """A server writes answers for as long as it lives."""
    lost = (
        FilePart("file-1"),
        ThinkingPart("", {"anthropic": {"signature": "s"}}),
        ToolCallPart("c", "f", {}, run_by="provider"),
    )
    events = unfold([Message.model("a", *lost)])
    wire.dump_response(events)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(300):
        wire.dump_response(events)
    gc.collect()
    assert sys.getallocatedblocks() - before < 300


def test_what_names_a_schema_is_sent_with_it() -> None:
    schema = {
        "$id": "https://a.test/s",
        "$anchor": "s",
        "type": "object",
        "properties": {"a": {"type": "string"}},
    }
    target = Origin("google", None, "gemini-3")
    request = ModelRequest("gemini-3", (Message.user("hi"),), output_schema=schema)
    body = wire.dump_request(request, target=target, quirks=wire.Quirks())
    assert body["generationConfig"] == {
        "responseJsonSchema": schema,
        "responseMimeType": "application/json",
    }
