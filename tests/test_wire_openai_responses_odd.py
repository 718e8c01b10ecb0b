"""The openai_responses wire on input of another shape than it should be (decision 27), what a response says again of its
request, and answers that are taken back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman import wires
from dragoman.codec.json_dialect import Dialect, fit
from dragoman.codec.json_schema import strict_schema
from dragoman.errors import DecodeError, HistoryError, RateLimitError
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.fold import fold, unfold
from dragoman.message import FinishReason, Message, Origin, Role, TextPart, ThinkingPart, ToolCallPart, Usage
from dragoman.wires import openai_responses as wire
from test_linear import is_linear

NESTED = json.loads("[" * 200 + "]" * 200)
HEAD = {"id": "resp_1", "object": "response", "model": "m", "status": "completed"}


def said(text, **fields):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content, **fields}


def everywhere(messages):
    """Every wire writes them, with a target and without, as a conversation and as an answer."""
    for name in wires.names():
        for target in (None, Origin("openai"), Origin("other")):
            wires.get(name).dump_messages(messages, target=target)
    return written(unfold([message.replace(role=Role.MODEL) for message in messages]))


def written(events):
    wire.dump_response(events)
    encoder = wire.encoder()
    return b"".join(map(encoder.feed, events)) + encoder.close()


def told(data):
    return [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize(
    "item", [{"role": ["user"]}, {"role": {}}, {"type": {"a": 1}}, {"type": [1], "call_id": "c"}, 5]
)
def test_d7_an_item_of_no_type_or_role_is_refused(item):
    with pytest.raises(HistoryError, match="input"):
        wire.load_messages({"input": [item]})


def test_what_nests_too_deep_is_refused():
    for load in (wire.load_messages, wire.load_request):
        with pytest.raises(HistoryError, match="deeper"):
            load({"input": [{"role": "user", "content": NESTED}]})
    [event] = wire.load_response({**HEAD, "output": NESTED})
    assert isinstance(event, RunError) and isinstance(event.error, DecodeError) and "deeper" in event.error.message


@pytest.mark.parametrize(
    "fields",
    [{"text": "x"}, {"text": [1]}, {"text": {"format": "x"}}, {"text": {"format": True}}, {"reasoning": 5}, {"tool_choice": [1]}],
)  # fmt: skip
def test_d7_fields_of_another_type_are_written_again(fields):
    body = {"input": "a", **fields}
    request = wire.load_request(body)
    assert wire.dump_request(request) == body or fields == {"text": {"format": "x"}}
    for name in wires.names():
        wires.get(name).dump_request(request)


@pytest.mark.parametrize(
    "item",
    [
        {"arguments": "{}", "call_id": "c", "name": "f"}, {"type": "reasoning", "id": [1], "summary": []},
        {"type": "web_search_call", "id": {}, "action": 5}, {"type": "message", "role": "assistant", "content": [{}]},
        {"type": "message", "id": "m", "role": "assistant", "content": [{"a": 1}, {"type": "output_text", "text": "a"}]},
        {"type": "image_generation_call", "id": "i", "result": "iVBORw==", "output_format": [1]},
        {"type": "message", "id": [1], "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": True}]},
        {"type": "code_interpreter_call", "id": "c", "code": 5, "outputs": [{"type": "image", "url": "data:image/png;base64,AA=="}]},
        {"type": "message", "role": "assistant", "content": [{"type": ["x"], "text": "a"}], "spelling": "x", "response": "x"},
    ],
)  # fmt: skip
def test_d7_items_of_another_shape_are_written_everywhere(item):
    messages = wire.load_messages({"input": [item]})
    assert wire.dump_messages(messages)["input"] == [item]
    everywhere(messages)
    (answer,) = fold(wire.load_response({**HEAD, "output": [item]}))
    everywhere([answer])


NOTES = [
    "x", {"spelling": 5, "response": [1], "item": 5, "digest": {}, "echo": "x"},
    {"spelling": {"type": [], "pieces": "x", "output": {"place": "x"}, "call": "c", "field": {}, "content": 5, "block": True, "arguments": 5}},
    {"spelling": {"type": "x", "pieces": {"summary": 5, "content": [[1]]}, "output": 5, "call": [], "input": "string"}, "item": {"id": [1], "status": 5}},
    {"response": {"usage": "x", "status": {}, "created_at": "x"}},
]  # fmt: skip


@pytest.mark.parametrize("notes", NOTES)
@pytest.mark.parametrize("fields", ["x", [1], {"id": [1], "type": "x"}, {"type": {}, "annotations": 5, "status": 5}])
def test_d8_stored_messages_may_hold_anything(notes, fields):
    native = {"openai_responses": fields, "openai_responses:notes": notes}
    pieces = [
        {"type": "tool_call", "id": "c", "name": "f", "run_by": "provider"}, {"type": "tool_result", "id": "c", "name": "f", "run_by": "provider"},
        {"type": "text", "text": "a"}, {"type": "thinking", "text": "hm"}, {"type": "provider", "kind": "x"}, {"type": "data", "data": "AA==", "mime_type": "image/png"},
        {"type": "tool_call", "id": "c", "name": "f"}, {"type": "file", "id": "f1"}, {"type": "link", "url": "https://a.test"},
    ]  # fmt: skip
    stored = {"v": 2, "role": "model", "native": native, "content": [{**piece, "native": native} for piece in pieces]}
    model = Message.from_json(json.dumps(stored))
    result = {"type": "tool_result", "id": "c", "name": "f", "native": native}
    user = Message.from_json(json.dumps({"v": 2, "role": "user", "native": native, "content": [result]}))
    everywhere([model, user])
    everywhere([user])


def test_half_a_pair_of_surrogates_is_written():
    assert b"\\ud800" in everywhere([Message.model("\ud800")])
    assert isinstance(wire.load_response({**HEAD, "output": [said("a")], "x": "\ud800"}), list)


@pytest.mark.parametrize(
    "payload",
    [
        b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}",
        b'{"type":"response.output_text.delta","delta":"a","output_index":0,"content_index":0,"x":' + b"[" * 2000 + b"]" * 2000 + b"}",
    ],
)  # fmt: skip
def test_d6_a_stream_that_nests_too_deep_ends_in_an_error(payload):
    decoder = wire.decoder()
    error = [*decoder.feed(b"data: " + payload + b"\n\n"), *decoder.close()][-1]
    assert isinstance(error, RunError) and isinstance(error.error, DecodeError)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"enum": 5}}}, {"type": "object", "properties": {"a": {"anyOf": 5}}},
        {"type": "object", "properties": {"a": {"type": [{}]}}}, {"type": "object", "properties": {"a": {"allOf": [5], "type": 5}}},
        {"type": "object", "properties": {"a": {"format": [1], "type": "string"}}, "$defs": {"b": 5}},
    ],
)  # fmt: skip
def test_schemas_of_another_shape_have_no_strict_form_or_one(schema):
    assert strict_schema(schema) is None or "$defs" not in schema
    fit(schema, Dialect(kept=frozenset(["enum", "format"]), only={"format": frozenset(["date"])}))


# --- what a response says again of its request


def test_what_a_response_says_again_of_its_request_is_written_again():
    asked = {
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}, "verbosity": "low"},
        "tool_choice": "required", "top_p": 0.5, "prompt_cache_retention": "24h", "reasoning": {"effort": "high", "summary": None},
    }  # fmt: skip
    body = {**HEAD, **asked, "output": [said("a")], "instructions": "long", "tools": [{"type": "web_search"}]}
    events = wire.load_response(body)
    (message,) = fold(events)
    for again in (wire.dump_response(events), wire.dump_response(unfold([Message.from_json(message.to_json())]))):
        assert {key: again[key] for key in asked} == asked
        assert (again["instructions"], again["tools"]) == (None, [])
    assert all(event["response"]["tool_choice"] == "required" for event in told(written(events)) if "response" in event)
    assert "long" not in message.to_json().decode()
    plain = fold(wire.load_response({**HEAD, "output": [said("a")], "tool_choice": "auto", "reasoning": "words"}))[0]
    assert "echo" not in plain.native["openai_responses:notes"]


def test_an_unknown_count_of_cached_tokens_is_not_made_up():
    events = unfold([Message.model("a").replace(usage=Usage(input_tokens=1, output_tokens=2))])
    assert "cache_write_tokens" not in wire.dump_response(events)["usage"]["input_tokens_details"]
    events = unfold([Message.model("a").replace(usage=Usage(input_tokens=1, output_tokens=2, cache_write_tokens=0))])
    assert wire.dump_response(events)["usage"]["input_tokens_details"]["cache_write_tokens"] == 0


def test_what_a_failed_response_used_and_said_is_on_its_error():
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    body = {**HEAD, "status": "failed", "error": error, "output": [said("half")], "usage": usage}
    event = wire.load_response(body)[-1]
    assert isinstance(event, RunError) and isinstance(event.error, RateLimitError)
    assert (event.error.partial.text, event.error.partial.usage.total_tokens) == ("half", 7)


# --- answers that were taken back


def dropped(part, *deltas):
    return [
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, part), *[PartDelta("m", 0, delta) for delta in deltas],
        PartStarted("m", 1, OpenText()), PartDelta("m", 1, "waits"), MessageDropped("m"),
        *unfold([Message.model("good").replace(id="m", finish_reason="stop")]),
    ]  # fmt: skip


def test_a_message_that_was_dropped_leaves_nothing_in_a_whole_response():
    body = wire.dump_response(dropped(OpenText(), "half ", "an answer"))
    assert [block["text"] for item in body["output"] for block in item["content"]] == ["good"]
    assert wire.dump_response(dropped(ToolCallPart("c", "f"), '{"a'))["output"][0]["type"] == "message"


@pytest.mark.parametrize("part", [OpenText(), ToolCallPart("c", "f")])
def test_what_a_stream_calls_done_is_what_its_deltas_were(part):
    data = written(dropped(part, '{"half', ": "))
    deltas, done = {}, {}
    for event in told(data):
        if event["type"].endswith(".delta"):
            key = event["item_id"], event.get("content_index")
            deltas[key] = deltas.get(key, "") + event["delta"]
        elif event["type"] in ("response.output_text.done", "response.function_call_arguments.done"):
            done[event["item_id"], event.get("content_index")] = event.get("text", event.get("arguments"))
    assert done == deltas and list(done.values()) == ['{"half: ', "good"]


# --- items that end as something else than they began

ENDINGS = {
    "message": {"role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
    "reasoning": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    "function_call": {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
}
PIECES = {"message": TextPart("a"), "reasoning": ThinkingPart("hm"), "function_call": ToolCallPart("c", "f")}


@pytest.mark.parametrize("began", ["message", "reasoning", "function_call"])
@pytest.mark.parametrize("ended", ["message", "reasoning", "function_call"])
@pytest.mark.parametrize("again", [True, False])
def test_a_part_ends_as_what_it_began(began, ended, again):
    """Fuzzing: an item that was begun as reasoning was done as a message, whose text closed the thinking."""
    item = {"type": began, **({"call_id": "c", "name": "f"} if began == "function_call" else {})}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *([{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": ""}] * (began == "message")),
        {"type": "response.output_item.done", "output_index": 0, "item": ENDINGS[ended]},
        {"type": "response.completed", "response": {**HEAD, "output": [ENDINGS[ended]] * again}},
    ]  # fmt: skip
    decoded = wire.load_response(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))
    kinds = {event.index: type(event.part) for event in decoded if isinstance(event, PartStarted)}
    kinds = {index: TextPart if kind is OpenText else kind for index, kind in kinds.items()}
    finished = [event for event in decoded if isinstance(event, PartFinished)]
    assert [kinds[event.index] for event in finished] == [type(event.part) for event in finished]
    (message,) = fold(decoded)
    pieces = [msgspec.structs.replace(piece, native=None) for piece in message.content]
    empty = {"reasoning": [ThinkingPart()], "function_call": [ToolCallPart("c", "f")], "message": []}[began]
    assert pieces == [*([] if began == ended else empty), PIECES[ended]]
    everywhere([message])
    written(decoded)


# --- linear time


def test_items_and_parts_cost_linear_time():
    def stream(size):
        items = [said("a", id=f"m{n}") for n in range(size)]
        done = [{"type": "response.output_item.done", "item": item} for item in items]
        end = {"type": "response.completed", "response": {**HEAD, "output": items}}
        return wire.load_response(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in (*done, end)))

    assert is_linear(stream, 250)


def test_many_parts_may_be_open_side_by_side():
    """Each waits for its turn: what they wait for is no depth of calls of ours."""
    count = 2000
    events = [
        MessageStarted("m", Role.MODEL), *[PartStarted("m", n, OpenText()) for n in range(count)],
        *[PartDelta("m", n, "x") for n in range(count)],
        *[PartFinished("m", n, TextPart("x")) for n in reversed(range(count))], MessageFinished("m", FinishReason.stop),
    ]  # fmt: skip
    assert written(events).count(b'"response.output_text.done","sequence_number"') == count


@pytest.mark.parametrize("odd", [{"arguments": "absent"}, {"arguments": None}, {"arguments": ""}, {}])
def test_decision_27_no_text_in_the_place_of_arguments_is_taken_for_their_absence(odd: dict[str, Any]) -> None:
    payload = {"input": [{"type": "function_call", "call_id": "c", "name": "f", **odd}]}
    assert wire.dump_messages(wire.load_messages(payload)) == payload


def test_an_older_note_of_absent_arguments_is_still_read() -> None:
    call = ToolCallPart("c", "f", native={"openai_responses:notes": {"spelling": {"arguments": "absent"}}})
    item = {"type": "function_call", "call_id": "c", "name": "f"}
    assert wire.dump_messages([Message.model(call)]) == {"input": [item]}
