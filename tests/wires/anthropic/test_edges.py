"""The anthropic wire at the edges of its tables: what is nearly an ordinary block, event or
choice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.errors import (
    DragomanError,
    ModelNotFoundError,
    PermissionDeniedError,
    ProviderConnectionError,
    ProviderTimeoutError,
)
from dragoman.event import Event, MessageFinished, MessageStarted, RunError
from dragoman.fold import fold, unfold
from dragoman.message import (
    FilePart,
    FinishReason,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.wires import anthropic as wire
from support.profiles import quirks_of

START: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
        "usage": {},
    },
}
END: list[dict[str, Any]] = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def decoded(*events: dict[str, Any]) -> list[Event]:
    decoder = wire.decoder()
    return [*decoder.feed(sse(START, *events, *END)), *decoder.close()]


def written(events: list[Event]) -> list[dict[str, Any]]:
    encoder = wire.encoder()
    data = b"".join(map(encoder.feed, events)) + encoder.close()
    return [
        json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")
    ]


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": index},
    ]


def test_an_event_of_an_unknown_type_is_passed_over_whatever_stands_in_it() -> None:
    text = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "hi"})
    events = decoded({"type": "vendor_notice", "error": None}, *text)
    assert not [event for event in events if isinstance(event, RunError)]
    assert fold(events)[0].content == (TextPart("hi"),)


def test_a_signature_that_comes_only_at_the_end_goes_out_so() -> None:
    thought = block(
        0,
        {"type": "thinking", "thinking": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "s1"},
    )
    events = decoded(*thought)
    [part] = fold(events)[0].content
    assert isinstance(part, ThinkingPart)
    assert (part.text, (part.native or {})["anthropic"]) == ("hm", {"signature": "s1"})
    for told in (events, unfold(fold(events))):
        assert [event for event in written(told) if "index" in event] == thought


def test_a_message_that_had_no_content_says_what_was_given_to_it_since() -> None:
    payload = {"messages": [{"role": "user", "content": "hi"}, {"role": "system", "effort": "low"}]}
    asked, empty = wire.load_messages(payload)
    assert wire.dump_messages([asked, empty]) == payload
    told = wire.dump_messages([asked, empty.replace(content=(TextPart("Be brief."),))])["messages"]
    assert told[1] == {"role": "system", "effort": "low", "content": "Be brief."}


def test_thinking_without_a_budget_adds_nothing_to_the_most_tokens() -> None:
    quirks = quirks_of("anthropic", "claude-opus-4-6", wire.Quirks(max_tokens=4000))
    request = ModelRequest(
        "claude-opus-4-6", (Message.user("hi"),), settings=Settings(reasoning="low")
    )
    body = wire.dump_request(
        request, target=Origin("anthropic", None, "claude-opus-4-6"), quirks=quirks
    )
    assert (body["thinking"], body["max_tokens"]) == ({"type": "adaptive"}, 4000)


@pytest.mark.parametrize(
    ("mime_type", "block"),
    [
        (None, {"type": "document", "source": {"type": "file", "file_id": "f"}}),
        ("application/pdf", {"type": "document", "source": {"type": "file", "file_id": "f"}}),
        ("text/csv", {"type": "document", "source": {"type": "file", "file_id": "f"}}),
        ("image/png", {"type": "image", "source": {"type": "file", "file_id": "f"}}),
        ("application/zip", {"type": "container_upload", "file_id": "f"}),
    ],
)
def test_a_file_at_the_provider_is_named_by_what_it_is(
    mime_type: str | None, block: dict[str, Any]
) -> None:
    [message] = wire.dump_messages([Message.user(FilePart("f", mime_type))])["messages"]
    assert message["content"] == [block]


def test_an_answer_of_which_only_the_end_comes_is_an_empty_message() -> None:
    decoder = wire.decoder()
    start, finish = [*decoder.feed(sse(*END)), *decoder.close()]
    assert start == MessageStarted("message-0", Role.MODEL)
    assert finish == MessageFinished("message-0", FinishReason.stop, Usage(output_tokens=1))


def test_what_stands_beside_a_piece_of_arguments_is_kept() -> None:
    start = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    pieces = [
        {"type": "input_json_delta", "partial_json": text, "own": 1} for text in ('{"a":', "1}")
    ]
    [call] = fold(decoded(*block(0, start, *pieces)))[0].content
    assert call == ToolCallPart(
        "t", "f", {"a": 1}, native={"anthropic:notes": {"delta": {"own": 1}}}
    )


def test_an_answer_of_which_nothing_was_told_is_a_message_all_the_same() -> None:
    assert wire.dump_response([]) == {
        "id": "message-0",
        "type": "message",
        "role": "assistant",
        "model": "",
        "content": [],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


@pytest.mark.parametrize(
    "reason", [None, FinishReason.stop, FinishReason.error, FinishReason.cancelled]
)
def test_a_reason_to_stop_that_the_api_does_not_have_is_the_end_of_the_turn(
    reason: FinishReason | None,
) -> None:
    message = Message.model("a").replace(finish_reason=reason)
    assert wire.dump_response(unfold([message]))["stop_reason"] == "end_turn"


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (ModelNotFoundError("gone"), 404, "not_found_error"),
        (PermissionDeniedError("gone"), 403, "permission_error"),
        (ProviderTimeoutError("gone"), 504, "timeout_error"),
        (ProviderConnectionError("gone"), 502, "api_error"),
        (DragomanError("gone"), 500, "api_error"),
    ],
)
def test_an_error_is_told_with_the_status_that_the_api_has_for_it(
    error: DragomanError, status: int, kind: str
) -> None:
    answer = wire.dump_error(error)
    assert (answer.status, answer.body["type"], answer.body["error"]["type"]) == (
        status,
        "error",
        kind,
    )


def test_a_tool_whose_name_fits_says_nothing_of_its_own() -> None:
    schema = {"type": "object", "properties": {}}
    tools = [
        {"name": name, "description": "d", "input_schema": schema} for name in ("look", "look up")
    ]
    body = {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "a"}],
        "tools": tools,
    }
    plain, odd = wire.load_request(body).tools
    assert plain == ToolSpec("look", "d", schema)
    assert odd != ToolSpec("look up", "d", schema)
    assert wire.dump_request(wire.load_request(body)) == body
