"""What others send to the wires that share the shape of Chat Completions: whatever it is, it is
read, kept or refused with an error of ours, in linear time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from dragoman import wires
from dragoman.codec.json_values import merge_pieces
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import Event, MessageFinished, RunError
from dragoman.fold import fold, unfold
from dragoman.json_bytes import JsonEnd
from dragoman.message import (
    LinkPart,
    Message,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

NAMES = ("openai_chat", "mistral")
ALL = wires.names("model")
named = pytest.mark.parametrize("name", NAMES)
DONE = b"data: [DONE]\n\n"


def nested(depth: int = 500) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def chunk(delta: dict[str, Any], finish: str | None = None, **beside: Any) -> bytes:
    body = {
        "id": "r1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **beside,
    }
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def read(name: str, *pieces: bytes) -> list[Event]:
    decoder = wires.get(name).decoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()


def steps(work: Callable[[], Any]) -> int:
    """The lines that it runs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def linear(work: Callable[[int], Callable[[], Any]], size: int = 100) -> None:
    small, large = steps(work(size)), steps(work(4 * size))
    assert large < 5 * small, (small, large)


@named
@pytest.mark.parametrize(
    "field", ["spelling", "response", "message", "native", "notes", "type", "__class__"]
)
def test_decision_27_fields_of_any_name_come_back(name: str, field: str) -> None:
    wire = wires.get(name)
    for value in ("x", {"content": "y"}, None):
        said = [
            {"role": "user", "content": "a", field: value},
            {"role": "assistant", "content": "b", field: value},
        ]
        assert wire.dump_messages(wire.load_messages(said)) == said


@named
def test_what_nests_too_deep_is_refused(name: str) -> None:
    wire, said = wires.get(name), [{"role": "user", "content": "a", "x": nested()}]
    for load, value in ((wire.load_messages, said), (wire.load_request, {"messages": said})):
        with pytest.raises(HistoryError, match="nests deeper"):
            load(value)
    for payload in ({"choices": nested()}, nested()):
        (event,) = wire.load_response(payload)
        assert isinstance(event, RunError) and isinstance(event.error, DecodeError)


@named
@pytest.mark.parametrize("value", [[], "x", 7, None, True, [{"choices": []}]])
def test_a_response_that_is_no_object_is_an_error_value(name: str, value: Any) -> None:
    (event,) = wires.get(name).load_response(value)
    assert isinstance(event, RunError) and isinstance(event.error, DecodeError)


HOSTILE: list[Any] = [None, "x", 7, [], [{}], {}, {"a": []}, ["x"], True, "\U0001f600"]
PIECES = (
    TextPart("a"),
    LinkPart("https://host.test/a.png"),
    ThinkingPart("t"),
    ToolCallPart("c", "f", {"a": 1}),
    ToolCallPart("e", "g", {}, run_by="provider"),
    ToolResultPart("e", "g", {"b": 1}, run_by="provider"),
)
NOTES = ("spelling", "response", "message")
SPELLINGS = (
    "field", "fields", "again", "items", "type", "id", "arguments", "without", "content", "name", "url", "place", "role",
)  # fmt: skip


@named
@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_d8_whatever_a_stored_native_holds_it_is_dumped_on_every_wire(
    name: str, value: Any
) -> None:
    notes = [{note: value} for note in NOTES] + [{"spelling": {how: value}} for how in SPELLINGS]
    notes += [
        {"response": {"usage": value, "finish_reason": value}},
        {"message": {"content": value, "annotations": value}},
    ]
    fields = [
        value,
        {"type": value, "index": value},
        {"annotations": value, "tool_calls": value},
        {"function": value},
    ]
    natives = [{f"{name}:notes": one} for one in notes] + [{name: one} for one in fields]
    for native in natives:
        stored = [
            {**json.loads(message.to_json()), "native": native, "usage": {"input_tokens": 1}}
            for message in (
                Message.model(*PIECES),
                Message.user(ToolResultPart("c", "f", 1), "b"),
                Message.system("s"),
            )
        ]
        for message in stored:
            message["content"] = [{**piece, "native": native} for piece in message["content"]]
        messages = [Message.from_json(json.dumps(message)) for message in stored]
        for wire in map(wires.get, ALL if value == HOSTILE[1] else NAMES):
            for target in (None, Origin("x")):
                json.dumps(wire.dump_messages(messages, target=target))
            events = unfold(messages)
            json.dumps(wire.dump_response(events))
            encoder = wire.encoder()
            assert b"".join(map(encoder.feed, events)) + encoder.close()


@named
def test_a_name_in_every_piece_is_read_in_linear_time(name: str) -> None:
    def work(size: int) -> Callable[[], Any]:
        def piece(text: str) -> bytes:
            return chunk(
                {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": text}}]}
            )

        pieces = [piece('{"a":"'), *[piece("}")] * size, piece('"}'), chunk({}, "stop"), DONE]
        return lambda: read(name, *pieces)

    linear(work)
    (message,) = fold(work(3)())
    assert [call.arguments for call in message.tool_calls] == [{"a": "}}}"}]


@named
def test_a_name_in_every_piece_costs_no_second_look_at_what_came_before(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    feed = JsonEnd._feed
    monkeypatch.setattr(
        JsonEnd, "_feed", lambda self, piece: (seen.append(piece), feed(self, piece))[1]
    )
    pieces = ['{"a":"', *"x" * 500, '"}']
    calls = [[{"index": 0, "function": {"name": "f", "arguments": text}}] for text in pieces]
    (message,) = fold(
        read(name, *[chunk({"tool_calls": call}) for call in calls], chunk({}, "stop"), DONE)
    )
    assert [call.arguments for call in message.tool_calls] == [{"a": "x" * 500}]
    assert len("".join(seen)) <= len("".join(pieces))


@pytest.mark.parametrize(
    ("pieces", "reached"),
    [
        ([], False),
        (["{"], False),
        (["{}"], True),
        (["{", '"a":', "[1]", "}"], True),
        (['{"a}', '"', "}"], True),
        (['{"a\\', '"}'], False),
        (['{"a\\', '"}', '"}'], True),
        (['{"a\\\\', '"}'], True),
        (['{"a\\', "", '"}'], False),
        (["{}", "{"], False),
    ],
)
def test_where_an_object_in_pieces_ends(pieces: list[str], reached: bool) -> None:
    end = JsonEnd()
    assert [end.is_among(pieces[:count]) for count in range(len(pieces) + 1)][-1] is reached
    assert JsonEnd().is_among(pieces) is reached


def test_details_of_thinking_are_encoded_in_linear_time() -> None:
    wire = wires.get("openai_chat")

    def work(size: int) -> Callable[[], Any]:
        details = [{"type": "reasoning.text", "text": "a", "index": 0, "signature": "s"}] * size
        events = wire.load_response(
            {"choices": [{"message": {"reasoning_details": details}, "finish_reason": "stop"}]}
        )
        assert len(fold(events)[0].content) == size

        def encode() -> None:
            wire.dump_response(events)
            encoder = wire.encoder()
            for event in events:
                encoder.feed(event)

        return encode

    linear(work)


def test_sources_within_thinking_are_read_in_linear_time() -> None:
    def work(size: int) -> Callable[[], Any]:
        said = {
            "content": [
                {
                    "type": "thinking",
                    "thinking": [{"type": "text", "text": "a"}, {"type": "reference"}],
                }
            ]
        }
        return lambda: read("mistral", *[chunk(said)] * size, chunk({}, "stop"), DONE)

    linear(work)
    (message,) = fold(work(2)())
    items = [{"type": "text", "text": "a"}, {"type": "reference"}] * 2
    assert wires.get("mistral").dump_messages([message])[0]["content"][0]["thinking"] == items


def test_lists_in_pieces_are_not_copied() -> None:
    told: dict[str, Any] = {}
    first = [1]
    merge_pieces(told, {"a": first, "b": 1})
    kept = told["a"]
    merge_pieces(told, {"a": [2], "b": 2, "c": [3]})
    assert told == {"a": [1, 2], "b": 2, "c": [3]} and told["a"] is kept and first == [1]
    merge_pieces(told, {"a": "x"})
    merge_pieces(told, {"a": [1]})
    assert told["a"] == [1]


@named
def test_probabilities_of_any_shape_are_read(name: str) -> None:
    choices = [{"content": "x"}, {"content": [1]}, {"content": {}}, {"content": [2]}]
    bodies = [
        {"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": one}]} for one in choices
    ]
    pieces = [b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies]
    (message,) = fold(read(name, *pieces, chunk({}, "stop"), DONE))
    assert message.text == "aaaa"


# ------------------------------------------------------------------ errors


PAID = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8, "cost": 0.5}
WRONG = {"code": 502, "message": "upstream failed"}


@named
def test_an_error_beside_a_whole_message_keeps_what_was_paid_for(name: str) -> None:
    message = {"role": "assistant", "content": "Canada is"}
    choice = {"index": 0, "message": message, "finish_reason": None, "error": WRONG}
    body = {"id": "r1", "choices": [choice], "usage": PAID} | (
        {"error": WRONG} if name == "mistral" else {}
    )
    events = wires.get(name).load_response(body)
    assert isinstance(events[-1], RunError)
    error = events[-1].error
    assert (
        "upstream failed" in error.message
        and error.partial is not None
        and error.partial.usage is not None
    )
    assert error.partial.text == "Canada is"
    assert (error.partial.usage.input_tokens, error.partial.usage.output_tokens) == (3, 5)
    notes = (error.partial.native or {})[f"{name}:notes"]
    assert notes["response"]["usage"] == {"cost": 0.5}
    assert error.partial.origin is not None and error.partial.origin.response_id == "r1"


@named
@pytest.mark.parametrize("before", [(), (chunk({"role": "assistant", "content": "a"}),)])
def test_an_error_chunk_keeps_its_usage(name: str, before: tuple[bytes, ...]) -> None:
    events = read(
        name, *before, chunk({"role": "assistant", "content": ""}, "error", error=WRONG, usage=PAID)
    )
    assert isinstance(events[-1], RunError)
    partial = events[-1].error.partial
    assert partial is not None and partial.usage is not None and partial.usage.total_tokens == 8
    assert partial.text == ("a" if before else "")
    assert [event.usage for event in events if isinstance(event, MessageFinished)] == [
        partial.usage
    ]


@named
def test_an_error_that_says_nothing_else_has_no_message(name: str) -> None:
    (event,) = read(
        name, chunk({"role": "assistant", "content": ""}, "error", error=WRONG, usage=None)
    )
    assert isinstance(event, RunError) and event.error.partial is None


@named
def test_rubbish_beside_an_error_does_not_hide_it(name: str) -> None:
    (event,) = wires.get(name).load_response(
        {"choices": [{"message": 7}], "error": WRONG, "usage": "x"}
    )
    assert isinstance(event, RunError) and "upstream failed" in event.error.message
