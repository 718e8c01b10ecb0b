"""The google wire on input of another shape than it should be: what leaves is a value or a `DragomanError` (decision 27)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import wires
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import MessageDropped, MessageStarted, OpenText, PartDelta, PartStarted, RunError
from dragoman.fold import fold, unfold
from dragoman.message import Message, Origin, Role, ToolCallPart, ToolResultPart
from dragoman.wires import google as wire
from dragoman.wires.google import embeddings
from dragoman.wires.google.schema import lift, lower
from test_linear import is_linear

HI = [{"role": "user", "parts": [{"text": "hi"}]}]
NESTED = json.loads("[" * 200 + "]" * 200)


def answer(*parts, **fields):
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **fields}]}


def sse(*chunks):
    return b"".join(b"data: " + (c if isinstance(c, bytes) else json.dumps(c).encode()) + b"\n\n" for c in chunks)


def decode(*chunks):
    decoder = wire.decoder()
    return [*decoder.feed(sse(*chunks)), *decoder.close()]


def everywhere(messages):
    """Every wire writes them, with a target and without, as a conversation and as an answer."""
    for name in wires.names():
        for target in (None, Origin("google", model="gemini-3-pro"), Origin("other")):
            wires.get(name).dump_messages(messages, target=target)
    events = unfold([message.replace(role=Role.MODEL) for message in messages])
    wire.dump_response(events)
    encoder = wire.encoder()
    return b"".join(map(encoder.feed, events)) + encoder.close()


@pytest.mark.parametrize("role", [[0], {"a": 1}, 5, True, "x"])
def test_a_role_that_is_none_is_refused(role):
    with pytest.raises(HistoryError, match="role"):
        wire.load_messages({"contents": [{"role": role, "parts": [{"text": "a"}]}]})


@pytest.mark.parametrize("payload", [{"contents": NESTED}, {"contents": HI, "systemInstruction": NESTED}])
def test_what_nests_too_deep_is_refused(payload):
    for load in (wire.load_messages, wire.load_request, embeddings.load_request):
        with pytest.raises(HistoryError, match="deeper"):
            load(payload)
    (event,) = wire.load_response(payload)
    assert isinstance(event, RunError)
    assert isinstance(event.error, DecodeError)
    assert "deeper" in event.error.message


@pytest.mark.parametrize(
    "fields",
    [
        {"toolConfig": "x"}, {"toolConfig": 1e308}, {"generationConfig": "x"}, {"generationConfig": [1]},
        {"toolConfig": {"functionCallingConfig": {"mode": [1]}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [{}]}}},
        {"generationConfig": {"stopSequences": [1, {}]}}, {"generationConfig": {"temperature": True}},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": True}}},
        {"generationConfig": {"responseSchema": {"items": 5, "type": {"a": 1}}}},
        {"generationConfig": {"responseSchema": {"anyOf": ["x"], "properties": {"a": 1.5}, "enum": 5}}},
        {"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"properties": {"a": [1]}, "required": 5}}]}]},
    ],
)  # fmt: skip
def test_fields_of_another_type_come_back_as_they_were(fields):
    body = {"contents": HI, **fields}
    request = wire.load_request(body)
    assert wire.dump_request(request) == body
    for name in wires.names():
        wires.get(name).dump_request(request)


@pytest.mark.parametrize("name", ["spelling", "response", "native", "snake", "id"])
def test_fields_with_the_names_of_our_notes_come_back(name):
    part = {"functionCall": {"name": "f", "args": {}, "id": "c1"}, name: "x"}
    body = {"contents": [*HI, {"role": "model", "parts": [part], name: "x"}]}
    assert wire.dump_messages(wire.load_messages(body)) == body
    (message,) = fold(decode(answer(part, finishReason="STOP", **{name: "x"})))
    assert wire.dump_messages([message])["contents"][0]["parts"] == [part]
    everywhere([message])


NOTES = [
    "x", 5, [], {"spelling": "x"}, {"response": 5}, {"response": {"usageMetadata": "x", "promptFeedback": 5}},
    {"response": {"usageMetadata": {"toolUsePromptTokenCount": "x"}, "finishReason": {}}},
    {"spelling": {"snake": 5, "mimeType": [], "parts": "absent", "role": {}, "args": 1, "name": [], "text": 5}},
]  # fmt: skip


@pytest.mark.parametrize("notes", NOTES)
@pytest.mark.parametrize("fields", ["x", [1], {"id": {}, "thoughtSignature": 5, "functionCall": "x"}])
def test_d8_stored_messages_may_hold_anything(notes, fields):
    native = {"google": fields, "google:notes": notes}
    pieces = [
        {"type": "text", "text": "a"}, {"type": "thinking"}, {"type": "provider", "kind": "x"}, {"type": "data", "data": "AA==", "mime_type": "image/png"},
        {"type": "tool_call", "id": "c", "name": "f"}, {"type": "tool_call", "id": "c", "name": "codeExecution", "run_by": "provider"},
        {"type": "tool_result", "id": "c", "name": "codeExecution", "run_by": "provider", "result": "x"}, {"type": "link", "url": "https://a.test/*"},
    ]  # fmt: skip
    stored = {"v": 2, "role": "model", "native": native, "content": [{**piece, "native": native} for piece in pieces]}
    model = Message.from_json(json.dumps(stored))
    result = {"v": 2, "role": "user", "content": [{"type": "tool_result", "id": "c", "name": "f", "native": native}]}
    user = Message.from_json(json.dumps({**result, "native": native}))
    everywhere([model, user, user])


def test_half_a_pair_of_surrogates_is_written():
    assert b"\\ud800" in everywhere(
        wire.load_messages({"contents": [{"role": "model", "parts": [{"text": "\ud800"}]}]})
    )
    assert isinstance(wire.load_response(answer({"text": "a"}, x="\ud800")), list)


STREAMED = {"functionCall": {"name": "f", "willContinue": True}}


def piece(path, **value):
    return answer({"functionCall": {"partialArgs": [{"jsonPath": path, **value}]}})


@pytest.mark.parametrize(
    "chunks",
    [
        [answer({"functionCall": {"name": "", "willContinue": True}}), answer({})],
        [answer({"functionCall": {"name": 5, "partialArgs": []}})],
        [answer(STREAMED), piece("$" + ".a" * 500, stringValue="x")],
        [answer(STREAMED), piece("$.a[9999]", numberValue=1)],
        [answer(STREAMED), piece(f"$.a[{'9' * 5000}].b", numberValue=1), piece("$.a[0]", numberValue=1)],
        [answer(STREAMED), piece("$.a", stringValue=[1])],
        [answer({"text": "a"}), b'{"usageMetadata":' + b'{"a":' * 2000 + b"1" + b"}" * 2001],
        [answer({"text": "a"}), b'{"candidates":[{"content":{"parts":[{"text":"b"}]}}],"usageMetadata":{"a":' + b"[" * 150 + b"]" * 150 + b"}}"],
    ],
)  # fmt: skip
def test_d6_a_stream_of_another_shape_ends_in_an_error(chunks):
    error = decode(*chunks)[-1]
    assert isinstance(error, RunError) and isinstance(error.error, DecodeError)


def test_an_array_that_nests_too_deep_ends_in_an_error():
    error = wire.load_response(b"[" + b'{"a":' * 300 + b"1" + b"}" * 300 + b"]")[-1]
    assert isinstance(error, RunError) and isinstance(error.error, DecodeError)


def test_a_streamed_call_beside_a_text_stays_whole():
    (message,) = fold(decode(answer({**STREAMED, "text": "x"}), answer({"functionCall": {}}, finishReason="STOP")))
    assert wire.dump_messages([message])["contents"][0]["parts"][0]["text"] == "x"


def test_definitions_that_name_each_other_twice_do_not_grow_without_bound():
    both = [{"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "ab"}} for n in range(40)]
    schema = {"$defs": {f"d{n}": each for n, each in enumerate(both)}, "$ref": "#/$defs/d0"}
    assert len(json.dumps(lower(schema))) < 1_000_000


def test_parts_of_a_schema_that_are_none_are_passed_over():
    every = {"allOf": [{"properties": "x", "required": 5}, {"properties": {"a": 1}, "required": [[1]]}], "type": [{}]}
    assert lower(every) == {"type": "OBJECT", "properties": {"a": {}}, "required": [[1]]}
    assert lift({"items": 5, "properties": {"a": 1}}) == {"items": 5, "properties": {"a": 1}}


def test_a_bool_is_no_count_of_tokens():
    (message,) = fold(wire.load_response({**answer({"text": "a"}), "usageMetadata": {"promptTokenCount": True}}))
    assert message.usage is None and Message.from_json(message.to_json()) == message


# --- enums by number, as `$alt=json;enum-encoding=int` gives them


@pytest.mark.parametrize(
    ("number", "reason"),
    [(1, "stop"), (2, "length"), (3, "content_filter"), (4, "recitation"), (8, "content_filter"), (5, "unspecified")],
)
def test_a_finish_reason_by_its_number_is_read_and_written_again(number, reason):
    counted = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
    events = decode({**answer({"text": "a"}, finishReason=number), "usageMetadata": counted})
    (message,) = fold(events)
    assert (message.finish_reason, message.usage.total_tokens) == (reason, 3)
    assert wire.dump_response(events)["candidates"][0]["finishReason"] == number


def test_other_enums_by_number_are_read_and_written_again():
    schema = {"type": 6, "properties": {"a": {"type": 1, "nullable": True}, "b": {"type": 5, "items": {"type": 3}}}}
    body = {
        "contents": HI,
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}],
        "toolConfig": {"functionCallingConfig": {"mode": 2}},
    }
    request = wire.load_request(body)
    assert wire.dump_request(request) == body
    assert request.settings.tool_choice == "required"
    assert request.tools[0].input_schema["properties"]["a"] == {"type": ["string", "null"]}
    ran = wire.load_messages({"contents": [{"role": "model", "parts": [{"codeExecutionResult": {"outcome": 1}}]}]})
    assert not ran[0].content[0].is_error


# --- requests, errors, answers that were taken back


def test_embeddings_of_a_users_content_come_back():
    one = {"content": {"role": "user", "parts": [{"text": "a"}]}}
    for body, path in ((one, "/models/m:embedContent"), ({"requests": [one, one]}, "/models/m:batchEmbedContents")):
        request = embeddings.load_request(body, path=path)
        assert request.texts in (("a",), ("a", "a"))
        assert embeddings.dump_request(request) == body


@pytest.mark.parametrize("body", [5, ["x"], {"embedding": {"values": ["\ud800"]}}, {"embedding": {"values": NESTED}}])
def test_vectors_of_another_shape_are_a_decode_error(body):
    with pytest.raises(DecodeError):
        embeddings.load_response(body)


def test_turn_token_stands_beside_the_candidates():
    body = {**answer({"text": "a"}, finishReason="STOP"), "turnToken": "t"}
    told = wire.dump_response(wire.load_response(body))
    assert told["turnToken"] == "t" and "turnToken" not in told["candidates"][0]


def test_a_history_that_cannot_be_read_is_the_callers_fault():
    assert wire.dump_error(HistoryError("no conversation"))[0] == 400


def test_a_message_that_was_dropped_leaves_nothing_that_was_not_sent_yet():
    events = [
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText()), PartDelta("m", 0, "sent "),
        PartStarted("m", 1, ToolCallPart("c", "f")), MessageDropped("m"),
        *unfold([Message.model("good").replace(id="m2", finish_reason="stop")]),
    ]  # fmt: skip
    encoder = wire.encoder()
    (message,) = fold(wire.load_response(b"".join(map(encoder.feed, events)) + encoder.close()))
    assert (message.text, message.tool_calls) == ("sent good", ())
    assert wire.dump_response(events)["candidates"][0]["content"]["parts"] == [{"text": "good"}]


def test_results_and_parts_cost_linear_time():
    def load(size):
        calls = [{"functionCall": {"name": "f", "id": f"c{n}", "args": {}}} for n in range(size)]
        told = [{"functionResponse": {"name": "f", "id": f"c{n}", "response": {}}} for n in reversed(range(size))]
        return wire.load_messages({"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": told}]})

    def encode(size):
        encoder = wire.encoder()
        encoder.feed(MessageStarted("m", Role.MODEL))
        for n in range(size):
            encoder.feed(PartStarted("m", n, ToolCallPart(f"c{n}", "f")))
        for n in range(size):
            encoder.feed(PartDelta("m", n, "{"))

    assert is_linear(load, 500)
    assert is_linear(encode, 500)


def test_repeated_calls_are_answered_in_order():
    calls = [{"functionCall": {"name": "f", "args": {"n": n}}} for n in range(3)]
    told = [{"functionResponse": {"name": "f", "response": {"n": n}}} for n in range(3)]
    body = {"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": told}]}
    model, user = wire.load_messages(body)
    assert [part.id for part in user.content if isinstance(part, ToolResultPart)] == [
        call.id for call in model.tool_calls
    ]


@pytest.mark.parametrize("odd", [{"parts": "absent"}, {"parts": None}, {"parts": []}, {}])
def test_decision_27_no_text_in_the_place_of_parts_is_taken_for_their_absence(odd: dict[str, Any]) -> None:
    payload = {"contents": [{"role": "model", **odd}]}
    assert wire.dump_messages(wire.load_messages(payload)) == payload


@pytest.mark.parametrize("odd", [{"args": "absent"}, {"args": None}, {}])
def test_decision_27_no_text_in_the_place_of_arguments_is_taken_for_their_absence(odd: dict[str, Any]) -> None:
    payload = {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "f", **odd}}]}]}
    assert wire.dump_messages(wire.load_messages(payload)) == payload


@pytest.mark.parametrize("odd", [{"includeThoughts": "absent"}, {"includeThoughts": None}, {}])
def test_decision_27_no_text_in_include_thoughts_is_taken_for_its_absence(odd: dict[str, Any]) -> None:
    body = {"contents": [], "generationConfig": {"thinkingConfig": {"thinkingBudget": 5, **odd}}}
    assert wire.dump_request(wire.load_request(body)) == body


def test_older_notes_of_absent_fields_are_still_read() -> None:
    call = ToolCallPart("c", "f", native={"google": {"id": None}, "google:notes": {"spelling": {"args": "absent"}}})
    entry = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}
    assert wire.dump_messages([Message.model(call)]) == {"contents": [entry]}
    empty = Message.model().replace(native={"google:notes": {"spelling": {"parts": None}}})
    assert wire.dump_messages([empty]) == {"contents": [{"role": "model", "parts": None}]}
