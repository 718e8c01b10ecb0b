"""The mistral wire at the edges of its tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.event import Event, PartDelta
from dragoman.fold import fold, unfold
from dragoman.message import Message, ProviderPart, TextPart, ToolCallPart, ToolResultPart
from dragoman.wires import mistral as wire


def chunk(delta: Any, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        b"data: " + json.dumps({"id": "r", "model": "m-1", "choices": [choice]}).encode() + b"\n\n"
    )


def events_of(*pieces: bytes) -> list[Event]:
    decoder = wire.decoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()


def test_an_empty_piece_of_text_that_begins_the_answer_is_none() -> None:
    first = chunk({"content": [{"type": "text", "text": "", "own": 1}]})
    [message] = fold(
        events_of(first, chunk({"content": "hi"}), chunk({}, "stop"), b"data: [DONE]\n\n")
    )
    assert message.content == (TextPart("hi"),)


def test_a_choice_of_a_tool_without_a_name_goes_back_as_it_was() -> None:
    body = {
        "model": "m",
        "messages": [],
        "tool_choice": {"type": "function", "function": {"name": ""}},
    }
    request = wire.load_request(body)
    assert request.settings.tool_choice is None
    assert wire.dump_request(request) == body


def test_counts_that_have_no_neutral_name_go_back_as_they_were() -> None:
    usage = {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "total_tokens": 3,
        "completion_tokens_details": {"reasoning_tokens": 1, "accepted_prediction_tokens": 1},
    }
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}
    events = wire.load_response({"id": "r", "model": "m", "choices": [choice], "usage": usage})
    assert wire.dump_response(events)["usage"] == usage


@pytest.mark.parametrize("id_", ["x", 1])
def test_an_id_among_a_calls_own_fields_is_not_the_calls(id_: object) -> None:
    call = ToolCallPart("abcdefghi", "f", {}, native={"mistral": {"id": id_}})
    [sent] = wire.dump_messages([Message.model(call)])[0]["tool_calls"]
    assert sent == {
        "id": "abcdefghi",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
    }


def test_a_chunk_that_says_nothing_gives_no_event() -> None:
    said = [chunk({"content": text}) for text in ("a", "", "b")]
    events = events_of(*said, chunk({}, "stop"), b"data: [DONE]\n\n")
    assert [event.delta for event in events if isinstance(event, PartDelta)] == ["a", "b"]


def test_a_chunk_of_another_type_is_no_plain_text() -> None:
    own = {"type": "own", "text": "a"}
    part = ProviderPart("own", {"mistral": own})
    sent = {"role": "user", "content": [own]}
    assert wire.load_messages([sent]) == [Message.user(part)]
    assert wire.dump_messages([Message.user(part)]) == [sent]


def test_a_text_with_fields_of_its_own_is_streamed_as_text() -> None:
    encoder = wire.encoder()
    events = unfold([Message.model(TextPart("a", {"mistral": {"own": 1}}))])
    data = (b"".join(map(encoder.feed, events)) + encoder.close()).decode()
    chunks = [json.loads(line[6:]) for line in data.splitlines() if line.startswith("data: {")]
    assert [each["choices"][0]["delta"]["content"] for each in chunks] == ["", "a", ""]


def test_what_another_provider_ran_is_no_part_of_the_stream() -> None:
    encoder = wire.encoder()
    call = ToolCallPart("c", "web_search", {}, run_by="provider")
    events = unfold(
        [Message.model(call, ToolResultPart("c", "web_search", "1", run_by="provider"), "a")]
    )
    data = (b"".join(map(encoder.feed, events)) + encoder.close()).decode()
    deltas = [
        json.loads(line[6:])["choices"][0]["delta"]
        for line in data.splitlines()
        if line.startswith("data: {")
    ]
    assert deltas == [{"role": "assistant", "content": ""}, {"content": "a"}, {"content": ""}]
