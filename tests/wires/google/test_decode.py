"""Answers as Google's wire reads them, streamed and whole: rules D-123, D-125, D-128, decisions 2,
14, 22."""

from __future__ import annotations

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DecodeError, OverloadedError, ProviderError, StreamCutError
from dragoman.event import (
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.fold import compact, fold
from dragoman.message import (
    DataPart,
    FinishReason,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from dragoman.wires import google as wire
from support.google import (
    CALL,
    STREAMED,
    USAGE,
    answer,
    body,
    chunk,
    decode,
    decode_chunks,
    error_of,
    message,
    sse,
    text,
    whole,
)


def test_text_of_several_chunks_is_one_part():
    read = message(chunk(text("Hel")), chunk(text("lo")), chunk(text("!"), finish="STOP"))
    assert read.content == (TextPart("Hello!"),)
    assert read.finish_reason is FinishReason.stop


def test_decision_2_separate_parts_stay_separate():
    assert whole(text("a"), text("b")).content == (TextPart("a"), TextPart("b"))
    read = message(chunk(text("a")), chunk(text("b"), text("c")), chunk(text("d"), finish="STOP"))
    assert [piece.text for piece in read.content] == ["ab", "cd"]


def test_d125_thoughts_are_thinking():
    read = message(
        chunk(text("h", thought=True)),
        chunk(text("m", thought=True)),
        chunk(text("so")),
        chunk(
            text(
                "",
            ),
            finish="STOP",
        ),
    )
    assert read.content == (ThinkingPart("hm"), TextPart("so"))


def test_decision_14_signed_parts_are_never_merged():
    read = message(
        chunk(text("a")), chunk(text("b", thoughtSignature="AA==")), chunk(text("c")),
        chunk(text("", thoughtSignature="BB==")), chunk(text(""), finish="STOP"),
    )  # fmt: skip
    assert read.content == (
        TextPart("a"),
        TextPart("b", {"google": {"thoughtSignature": "AA=="}}),
        TextPart("c"),
        ThinkingPart(
            "",
            {
                "google": {"thoughtSignature": "BB=="},
                "google:notes": {"spelling": {"thought": "absent"}},
            },
        ),
    )
    assert [part.get("thoughtSignature") for part in wire.dump_messages([read])["contents"][0]["parts"]] == [
        None, "AA==", None, "BB==",
    ]  # fmt: skip


def test_the_text_comes_as_it_is_told():
    events = decode(sse(chunk(text("Hel")), chunk(text("lo"), finish="STOP")))
    assert [type(event) for event in events] == [
        MessageStarted, PartStarted, PartDelta, PartDelta, PartFinished, MessageFinished,
    ]  # fmt: skip
    decoder = wire.decoder()
    assert [type(event) for event in decoder.feed(sse(chunk(text("Hel"))))] == [
        MessageStarted,
        PartStarted,
        PartDelta,
    ]
    assert [event.delta for event in decoder.feed(sse(chunk(text("lo"))))] == ["lo"]


def test_d122_calls_with_and_without_ids():
    calls = [
        {"functionCall": {"name": "f", "args": {"a": 1}, "id": "x"}, "thoughtSignature": "AA=="},
        {"functionCall": {"name": "g"}},
    ]
    read = whole(*calls)
    assert read.finish_reason is FinishReason.tool_calls
    assert [(call.id, call.name, call.arguments) for call in read.tool_calls] == [
        ("x", "f", {"a": 1}),
        ("call-1", "g", {}),
    ]
    assert wire.dump_messages([read])["contents"][0]["parts"] == calls
    numbers = count()
    (read,) = fold(
        wire.load_response(chunk(*calls, finish="STOP"), new_id=lambda: f"n{next(numbers)}")
    )
    assert (read.id, [call.id for call in read.tool_calls]) == ("n0", ["x", "n1"])


def test_decision_22_what_the_provider_ran():
    read = whole(
        {"executableCode": {"code": "1", "language": "PYTHON"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"something_new": 1}, text("so"),
    )  # fmt: skip
    code, output, image, unknown, _ = read.content
    assert (code.run_by, output.run_by, output.id) == ("provider", "provider", code.id)
    assert image == DataPart(b"\0\0\0", "image/png")
    assert unknown == ProviderPart("something_new", {"google": {"something_new": 1}})
    assert read.finish_reason is FinishReason.stop


def test_the_origin_that_was_given_is_completed():
    mine = Origin("google", "https://x", "m", prefix="p")
    (read,) = fold(decode(sse(chunk(text("a"), finish="STOP", modelVersion="v")), origin=mine))
    assert read.origin == Origin("google", "https://x", "m", "v", None, "p")


def test_an_answer_may_go_on_after_a_finish_reason():
    assert (
        message(
            chunk(text("a"), finish="STOP"), chunk(text("b")), chunk(text("c"), finish="STOP")
        ).text
        == "abc"
    )


@pytest.mark.parametrize(
    "candidate",
    [
        {"finishReason": "STOP"},
        {"content": {}, "finishReason": "STOP"},
        {"content": {"role": "model"}, "finishReason": "STOP", "index": 0},
    ],
)
def test_a_candidate_without_content_is_an_empty_message(candidate):
    (read,) = fold(decode(sse({"candidates": [candidate]})))
    assert (read.content, read.finish_reason) == ((), FinishReason.stop)


def test_parts_that_say_nothing_leave_nothing():
    assert whole({}, {"functionCall": {}}, text(""), text("a")).content == (TextPart("a"),)


def test_what_comes_after_the_end_is_ignored():
    decoder = wire.decoder()
    decoder.feed(sse(chunk(text("a"), finish="STOP")))
    assert isinstance(decoder.close()[-1], MessageFinished)
    assert decoder.feed(sse(chunk(text("b")))) == decoder.close() == []


def test_d123_no_candidates_is_an_error():
    assert isinstance(error_of(wire.load_response({"candidates": []})), ProviderError)
    assert isinstance(error_of(decode(b"{}")), ProviderError)
    assert isinstance(error_of(decode(b"")), StreamCutError)


def test_several_candidates():
    chunks = [
        chunk(text("a")),
        chunk(text("x"), index=1),
        chunk(text("b"), finish="STOP"),
        chunk(text("y"), finish="MAX_TOKENS", index=1),
    ]
    events = decode(sse(*chunks, {"usageMetadata": {"promptTokenCount": 1}}))
    assert fold(events)[0].text == "ab"
    finished = {event.message_id: event for event in events if isinstance(event, MessageFinished)}
    assert [(f.finish_reason.value, f.usage) for f in finished.values()] == [
        ("stop", Usage(input_tokens=1)),
        ("length", None),
    ]
    assert [event.candidate for event in events if isinstance(event, MessageStarted)] == [0, 1]
    assert isinstance(error_of(decode(sse(*chunks[:3]))), StreamCutError)


def test_a_whole_answer_without_a_finish_reason_is_whole():
    (read,) = fold(wire.load_response(chunk(text("a"))))
    assert read.finish_reason is FinishReason.unspecified


def test_a_stream_without_a_finish_reason_is_cut():
    error = error_of(decode(sse(chunk(text("a")))))
    assert isinstance(error, StreamCutError)
    assert error.partial.text == "a"
    whole = sse(chunk(text("a")), chunk(text("b"), finish="STOP"))
    for end in range(1, whole.index(b"STOP")):
        assert isinstance(error_of(decode(whole[:end])), StreamCutError), end


@pytest.mark.parametrize("space", ["", "\n", ",\r\n  "])
def test_a_stream_that_is_a_json_array(space):
    chunks = [chunk(text("a")), chunk(text("ü")), chunk(text("c"), finish="STOP")]
    body = (
        ("[" + f",{space}".join(map(json.dumps, chunks)) + f"{space}]").encode()
        if space != ",\r\n  "
        else json.dumps(chunks).encode()
    )
    assert fold(decode(body, range(1, len(body)))) == fold(decode(sse(*chunks)))
    error = error_of(decode(body[: body.rindex(b"finishReason")]))
    assert isinstance(error, StreamCutError)
    assert error.partial.text == "aü"


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
def test_every_line_ending_in_every_chunking(end):
    data = sse(
        chunk(text("Grüße")),
        chunk({"functionCall": {"name": "f", "args": {}}}),
        chunk(text("!"), finish="STOP"),
        end=end,
    )
    once = decode(data)
    assert fold(once)[0].text == "Grüße!"
    assert decode(data, range(1, len(data))) == once
    assert decode(data.rstrip()) == once


@pytest.mark.parametrize("wrap", [lambda body: [body], lambda body: body])
def test_an_error_under_any_content_type(wrap):
    body = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    assert isinstance(error_of(decode(json.dumps(wrap(body)).encode())), OverloadedError)
    events = decode(sse(chunk(text("a")), body, chunk(text("b"), finish="STOP")))
    assert isinstance(error_of(events), OverloadedError)
    assert (error_of(events).partial.text, error_of(events).status) == ("a", 503)
    assert fold(events)[0].finish_reason is FinishReason.error


@pytest.mark.parametrize(
    "data",
    [b"data: {\n\n", b"data: \xff\n\n", b"data: 1\n\n", b"data: [1]\n\n", b'data: {"candidates": 1}\n\n', b"<html>", b"{",
     b'data: {"candidates": [1]}\n\n', b'data: {"candidates": [{"content": 1}]}\n\n', b'data: {"candidates": [{"content": {"parts": {}}}]}\n\n',
     b'data: {"candidates": [{"content": {"parts": [1]}}]}\n\n', b"data: " + b"[" * 3000 + b"\n\n", b"[" * 3000, b"[1]",
     b'data: {"candidates": [{"content": {"parts": [{"functionCall": {"willContinue": true}}]}}]}\n\n'],
)  # fmt: skip
def test_what_is_malformed_is_an_error_value(data):
    events = decode(data)
    assert isinstance(error_of(events), DecodeError | StreamCutError)
    good = sse(chunk(text("a")))
    assert error_of(decode(good + data)) is not None


def test_the_mark_of_another_api_at_the_end_is_passed_over():
    assert fold(decode(sse(chunk(text("a"), finish="STOP")) + b"data: [DONE]\n\n"))[0].text == "a"


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["candidates", "content", "parts", "text", "functionCall", "name", "args", "partialArgs", "jsonPath",
                         "willContinue", "usageMetadata", "finishReason", "index", "inlineData", "executableCode", "error",
                         "functionResponse", "response", "thoughtSignature", "promptFeedback", "promptTokenCount"]),
        inner, max_size=3),
    max_leaves=12,
))  # fmt: skip
def test_nothing_that_a_provider_sends_raises(value):
    for data in (
        sse(value),
        sse({"candidates": [{"content": {"parts": [value]}, "finishReason": "STOP"}]}),
        json.dumps(value).encode(),
    ):
        events = decode(data)
        assert fold(compact(events)) == fold(events)


def test_what_a_decoder_tells_to_the_last_field():
    """D-125, decisions 14 and 22: no event and no field is more or less than this."""
    events = wire.load_response(
        body([{"text": "hm", "thought": True}, {"text": "a", "thoughtSignature": "AA=="}, CALL])
    )
    origin = Origin("", served_model="m", response_id="r")
    assert [event for event in events if isinstance(event, (MessageStarted, MessageFinished))] == [
        MessageStarted("message-0", Role.MODEL, origin=origin),
        MessageFinished(
            "message-0", FinishReason.tool_calls,
            Usage(input_tokens=12, output_tokens=8, total_tokens=21, cache_read_tokens=4, reasoning_tokens=3),
            native={"google:notes": {"response": {"usageMetadata": {key: USAGE[key] for key in ("toolUsePromptTokenCount", "promptTokensDetails", "trafficType")}}}},
        ),
    ]  # fmt: skip
    assert [event.index for event in events if isinstance(event, PartStarted)] == [0, 1, 2]
    assert [event.part for event in events if isinstance(event, PartFinished)] == [
        ThinkingPart("hm"),
        TextPart("a", {"google": {"thoughtSignature": "AA=="}}),
        ToolCallPart("c", "f", {"a": 1}),
    ]


def test_every_event_of_a_stream_in_its_order():
    """D-125, decision 2: a part is closed before the next one is begun."""
    origin = Origin("", served_model="m", response_id="r")
    identity = {"modelVersion": "m", "responseId": "r"}
    parts = [
        {"text": "h", "thought": True},
        {"text": "m", "thought": True},
        {"text": "a"},
        {"text": "b"},
        CALL,
        {"text": "c"},
    ]
    chunks = [{"candidates": [{"content": {"parts": [part]}}], **identity} for part in parts]
    end = {"candidates": [{"finishReason": "MAX_TOKENS"}], **identity}
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in [*chunks, end])
    call = ToolCallPart("c", "f", {"a": 1})
    assert wire.load_response(data) == [
        MessageStarted("message-0", Role.MODEL, origin=origin),
        PartStarted("message-0", 0, ThinkingPart()), PartDelta("message-0", 0, "h"), PartDelta("message-0", 0, "m"), PartFinished("message-0", 0, ThinkingPart("hm")),
        PartStarted("message-0", 1, OpenText()), PartDelta("message-0", 1, "a"), PartDelta("message-0", 1, "b"), PartFinished("message-0", 1, TextPart("ab")),
        PartStarted("message-0", 2, ToolCallPart("c", "f")), PartDelta("message-0", 2, '{"a":1}'), PartFinished("message-0", 2, call),
        PartStarted("message-0", 3, OpenText()), PartDelta("message-0", 3, "c"), PartFinished("message-0", 3, TextPart("c")),
        MessageFinished("message-0", FinishReason.length),
    ]  # fmt: skip


def more_arguments(path, **value):
    return answer({"functionCall": {"partialArgs": [{"jsonPath": path, **value}]}})


@pytest.mark.parametrize(
    "chunks",
    [
        [answer({"functionCall": {"name": "", "willContinue": True}}), answer({})],
        [answer({"functionCall": {"name": 5, "partialArgs": []}})],
        [answer(STREAMED), more_arguments("$" + ".a" * 500, stringValue="x")],
        [answer(STREAMED), more_arguments("$.a[9999]", numberValue=1)],
        [answer(STREAMED), more_arguments(f"$.a[{'9' * 5000}].b", numberValue=1), more_arguments("$.a[0]", numberValue=1)],
        [answer(STREAMED), more_arguments("$.a", stringValue=[1])],
        [answer({"text": "a"}), b'{"usageMetadata":' + b'{"a":' * 2000 + b"1" + b"}" * 2001],
        [answer({"text": "a"}), b'{"candidates":[{"content":{"parts":[{"text":"b"}]}}],"usageMetadata":{"a":' + b"[" * 150 + b"]" * 150 + b"}}"],
    ],
)  # fmt: skip
def test_d6_a_stream_of_another_shape_ends_in_an_error(chunks):
    error = decode_chunks(*chunks)[-1]
    assert isinstance(error, RunError) and isinstance(error.error, DecodeError)


def test_an_array_that_nests_too_deep_ends_in_an_error():
    error = wire.load_response(b"[" + b'{"a":' * 300 + b"1" + b"}" * 300 + b"]")[-1]
    assert isinstance(error, RunError) and isinstance(error.error, DecodeError)
