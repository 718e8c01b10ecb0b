"""The google wire's answers, streamed and whole, and written back: rules D-123, D-125, D-126, D-128, decisions 2, 14, 22."""

from __future__ import annotations

import json
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import DecodeError, OverloadedError, ProviderError, RateLimitError, StreamCutError
from dragoman.event import (
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.fold import compact, fold, unfold
from dragoman.message import (
    DataPart,
    FinishReason,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.wires import google as wire
from support import agent


def chunk(*parts, finish=None, index=0, **around):
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": index}
    return {"candidates": [{**candidate, **({"finishReason": finish} if finish else {})}], **around}


def sse(*chunks, end="\n\n"):
    return "".join(f"data: {json.dumps(each)}{end}" for each in chunks).encode()


def decode(data, cuts=(), **how):
    decoder = wire.decoder(**how)
    events = []
    for start, stop in zip((0, *cuts), (*cuts, len(data)), strict=True):
        events += decoder.feed(data[start:stop])
    return [*events, *decoder.close()]


def message(*chunks):
    (told,) = fold(decode(sse(*chunks)))
    return told


def whole(*parts, **around):
    (told,) = fold(wire.load_response(chunk(*parts, finish="STOP", **around)))
    return told


def text(piece, **more):
    return {"text": piece, **more}


def error_of(events):
    assert isinstance(events[-1], RunError)
    return events[-1].error


# --- text and thinking


def test_text_of_several_chunks_is_one_part():
    told = message(chunk(text("Hel")), chunk(text("lo")), chunk(text("!"), finish="STOP"))
    assert told.content == (TextPart("Hello!"),)
    assert told.finish_reason is FinishReason.stop


def test_decision_2_separate_parts_stay_separate():
    assert whole(text("a"), text("b")).content == (TextPart("a"), TextPart("b"))
    told = message(chunk(text("a")), chunk(text("b"), text("c")), chunk(text("d"), finish="STOP"))
    assert [piece.text for piece in told.content] == ["ab", "cd"]


def test_d125_thoughts_are_thinking():
    told = message(
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
    assert told.content == (ThinkingPart("hm"), TextPart("so"))


def test_decision_14_signed_parts_are_never_merged():
    told = message(
        chunk(text("a")), chunk(text("b", thoughtSignature="AA==")), chunk(text("c")),
        chunk(text("", thoughtSignature="BB==")), chunk(text(""), finish="STOP"),
    )  # fmt: skip
    assert told.content == (
        TextPart("a"),
        TextPart("b", {"google": {"thoughtSignature": "AA=="}}),
        TextPart("c"),
        ThinkingPart("", {"google": {"thoughtSignature": "BB=="}, "google:notes": {"spelling": {"thought": "absent"}}}),
    )
    assert [part.get("thoughtSignature") for part in wire.dump_messages([told])["contents"][0]["parts"]] == [
        None, "AA==", None, "BB==",
    ]  # fmt: skip


def test_the_text_comes_as_it_is_told():
    events = decode(sse(chunk(text("Hel")), chunk(text("lo"), finish="STOP")))
    assert [type(event) for event in events] == [
        MessageStarted, PartStarted, PartDelta, PartDelta, PartFinished, MessageFinished,
    ]  # fmt: skip
    decoder = wire.decoder()
    assert [type(event) for event in decoder.feed(sse(chunk(text("Hel"))))] == [MessageStarted, PartStarted, PartDelta]
    assert [event.delta for event in decoder.feed(sse(chunk(text("lo"))))] == ["lo"]


# --- calls


def test_d122_calls_with_and_without_ids():
    calls = [
        {"functionCall": {"name": "f", "args": {"a": 1}, "id": "x"}, "thoughtSignature": "AA=="},
        {"functionCall": {"name": "g"}},
    ]
    told = whole(*calls)
    assert told.finish_reason is FinishReason.tool_calls
    assert [(call.id, call.name, call.arguments) for call in told.tool_calls] == [
        ("x", "f", {"a": 1}),
        ("call-1", "g", {}),
    ]
    assert wire.dump_messages([told])["contents"][0]["parts"] == calls
    numbers = count()
    (told,) = fold(wire.load_response(chunk(*calls, finish="STOP"), new_id=lambda: f"n{next(numbers)}"))
    assert (told.id, [call.id for call in told.tool_calls]) == ("n0", ["x", "n1"])


def test_a_call_is_told_with_its_arguments_as_a_delta():
    events = wire.load_response(chunk({"functionCall": {"name": "f", "args": {"a": 1}}}, finish="STOP"))
    assert [event.delta for event in events if isinstance(event, PartDelta)] == ['{"a":1}']


def partial(*pieces, name=None, more=True, **part):
    call = {
        **({"name": name} if name else {}),
        **({"partialArgs": list(pieces)} if pieces else {}),
        **({"willContinue": True} if more else {}),
    }
    return chunk({"functionCall": call, **part})


def piece(path, *, more=False, **value):
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def test_arguments_that_come_in_pieces():
    told = message(
        partial(name="f", thoughtSignature="AA=="),
        partial(piece("$.towns[0].name", stringValue="Os", more=True)),
        partial(piece("$.towns[0].name", stringValue="lo")),
        partial(piece("$.towns[1]['full name']", stringValue="Bergen"), piece("$.towns[1].people", numberValue=7.5)),
        partial(piece("$.sure", boolValue=True), piece("$.why", nullValue="NULL_VALUE")),
        partial(more=False),
        partial(name="g"),
        chunk(text("and"), finish="STOP"),
    )
    first, second = told.tool_calls
    assert first.arguments == {
        "towns": [{"name": "Oslo"}, {"full name": "Bergen", "people": 7.5}], "sure": True, "why": None,
    }  # fmt: skip
    assert (first.native["google"]["thoughtSignature"], second.arguments, told.text) == ("AA==", {}, "and")
    assert told.finish_reason is FinishReason.tool_calls


def test_arguments_that_come_whole_before_the_pieces():
    start = chunk({"functionCall": {"name": "f", "args": {"a": 1}, "willContinue": True}})
    told = message(start, partial(piece("$.b", numberValue=2), more=False), chunk(finish="STOP"))
    assert told.tool_calls[0].arguments == {"a": 1, "b": 2}


def test_arguments_that_are_cut():
    start = [partial(name="f"), partial(piece("$.a", stringValue="lon", more=True))]
    told = message(*start, chunk(finish="MAX_TOKENS"))
    assert (told.tool_calls[0].state, told.tool_calls[0].raw) == ("cut", '{"a":"lon"}')
    events = decode(sse(*start))
    assert error_of(events).partial.tool_calls[0].state == "cut"


@pytest.mark.parametrize("path", ["", "$", "$[0]", "$.a[99999999]", "$.a.b[0].c"])
def test_a_path_that_is_none_is_an_error_value(path):
    events = decode(
        sse(partial(name="f"), partial(piece("$.a", stringValue="x")), partial(piece(path, stringValue="y")))
    )
    assert isinstance(error_of(events), DecodeError)


# --- what the provider did


def test_decision_22_what_the_provider_ran():
    told = whole(
        {"executableCode": {"code": "1", "language": "PYTHON"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"something_new": 1}, text("so"),
    )  # fmt: skip
    code, output, image, unknown, _ = told.content
    assert (code.run_by, output.run_by, output.id) == ("provider", "provider", code.id)
    assert image == DataPart(b"\0\0\0", "image/png")
    assert unknown == ProviderPart("something_new", {"google": {"something_new": 1}})
    assert told.finish_reason is FinishReason.stop


def test_d128_what_stands_around_the_answer_is_kept():
    around = {
        "groundingMetadata": {"a": 1},
        "citationMetadata": {"citations": [1]},
        "safetyRatings": [],
        "finishMessage": "m",
    }
    first, last = chunk(text("a")), chunk(text("b"), finish="STOP", createTime="t", modelVersion="v", responseId="r")
    first["candidates"][0] |= {"groundingMetadata": {"b": 2}, "citationMetadata": {"citations": [0]}}
    last["candidates"][0] |= around
    told = message(first, last)
    assert told.native["google:notes"]["response"] == {
        **around, "groundingMetadata": {"a": 1, "b": 2}, "citationMetadata": {"citations": [0, 1]}, "createTime": "t",
    }  # fmt: skip
    assert (told.origin.served_model, told.origin.response_id) == ("v", "r")


def test_the_origin_that_was_given_is_completed():
    mine = Origin("google", "https://x", "m", prefix="p")
    (told,) = fold(decode(sse(chunk(text("a"), finish="STOP", modelVersion="v")), origin=mine))
    assert told.origin == Origin("google", "https://x", "m", "v", None, "p")


# --- usage and finish reasons


def test_usage_is_the_last_that_was_told():
    first = {"promptTokenCount": 5, "candidatesTokenCount": 1, "totalTokenCount": 6, "serviceTier": "standard"}
    last = {
        "promptTokenCount": 5, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "cachedContentTokenCount": 2,
        "toolUsePromptTokenCount": 10, "totalTokenCount": 22, "serviceTier": None, "promptTokensDetails": [1],
    }  # fmt: skip
    told = message(
        chunk(text("a"), usageMetadata=first), chunk(text("b"), usageMetadata=last), chunk(text("c"), finish="STOP")
    )
    assert told.usage == Usage(
        input_tokens=15,
        output_tokens=7,
        total_tokens=22,
        cache_read_tokens=2,
        cache_write_tokens=None,
        reasoning_tokens=3,
    )
    assert told.native["google:notes"]["response"]["usageMetadata"] == {
        "toolUsePromptTokenCount": 10, "serviceTier": "standard", "promptTokensDetails": [1],
    }  # fmt: skip


def test_a_total_that_is_not_told_is_the_sum():
    usage = whole(text("a"), usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": 4}).usage
    assert usage.total_tokens == 7


def test_usage_that_is_not_told_is_not_made_up():
    assert whole(text("a")).usage is None
    assert whole(text("a"), usageMetadata={"trafficType": "x"}).usage is None
    assert whole(text("a"), usageMetadata={"promptTokenCount": 3}).usage == Usage(input_tokens=3)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        *[(name, FinishReason.content_filter) for name in ("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "SPII", "MODEL_ARMOR", "IMAGE_PROHIBITED_CONTENT")],
        *[(name, FinishReason.recitation) for name in ("RECITATION", "IMAGE_RECITATION")],
        *[(name, FinishReason.unspecified) for name in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE")],
        *[(name, FinishReason.unspecified) for name in ("FINISH_REASON_UNSPECIFIED", "OTHER", "LANGUAGE", "NO_IMAGE", "SOMETHING_NEW")],
        ("STOP", FinishReason.stop),
        ("MAX_TOKENS", FinishReason.length),
    ],
)  # fmt: skip
def test_d126_finish_reasons_and_back(told, reason):
    events = decode(sse(chunk(text("a"), finish=told)))
    assert fold(events)[0].finish_reason is reason
    assert wire.dump_response(events)["candidates"][0]["finishReason"] == told


def test_an_answer_may_go_on_after_a_finish_reason():
    assert message(chunk(text("a"), finish="STOP"), chunk(text("b")), chunk(text("c"), finish="STOP")).text == "abc"


# --- answers that are no usual ones


def test_a_blocked_prompt_is_an_empty_message_that_the_filter_cut():
    feedback = {
        "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []},
        "usageMetadata": {"promptTokenCount": 4},
    }
    for events in (decode(sse(feedback)), wire.load_response(feedback)):
        (told,) = fold(events)
        assert (told.content, told.finish_reason, told.usage.input_tokens) == ((), FinishReason.content_filter, 4)
        assert told.native["google:notes"]["response"] == {
            "block_reason": "SAFETY",
            "promptFeedback": {"safetyRatings": []},
        }
        assert wire.dump_response(events) == {"candidates": [], **feedback}


@pytest.mark.parametrize(
    "candidate",
    [
        {"finishReason": "STOP"},
        {"content": {}, "finishReason": "STOP"},
        {"content": {"role": "model"}, "finishReason": "STOP", "index": 0},
    ],
)
def test_a_candidate_without_content_is_an_empty_message(candidate):
    (told,) = fold(decode(sse({"candidates": [candidate]})))
    assert (told.content, told.finish_reason) == ((), FinishReason.stop)


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
    (told,) = fold(wire.load_response(chunk(text("a"))))
    assert told.finish_reason is FinishReason.unspecified


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


# --- encoding


def written(events, **envelope):
    encoder = wire.encoder(**envelope)
    return b"".join(map(encoder.feed, events)) + encoder.close()


def through(*pieces, reason=FinishReason.stop, usage=None):
    """A message, written as a stream and as a whole, and read again."""
    made = Message.model(*pieces).replace(
        id="message-0", finish_reason=reason, usage=usage, origin=Origin("", served_model="m", response_id="r")
    )
    events = unfold([made])
    (streamed,) = fold(decode(written(events)))
    (whole,) = fold(wire.load_response(wire.dump_response(events)))
    assert streamed == whole
    return made, streamed


def test_what_is_written_is_read_as_the_same_message():
    made, again = through(
        ThinkingPart("hm"), ThinkingPart("so"), TextPart("a"), TextPart("b"), ToolCallPart("1", "f", {"x": 1}), TextPart("c"),
        reason=FinishReason.tool_calls, usage=Usage(input_tokens=3, output_tokens=5, total_tokens=8, reasoning_tokens=2, cache_read_tokens=1),
    )  # fmt: skip
    assert again == made


def test_the_shape_of_a_stream():
    made = Message.model("hi").replace(
        usage=Usage(input_tokens=1, output_tokens=2, total_tokens=3), finish_reason=FinishReason.stop
    )
    lines = [json.loads(line[6:]) for line in written(unfold([made]), model="m", id="r").decode().split("\n\n") if line]
    identity = {"modelVersion": "m", "responseId": "r"}
    assert lines == [
        {"candidates": [{"content": {"parts": [{"text": "hi"}], "role": "model"}, "index": 0}], **identity},
        {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP", "index": 0}],
         "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}, **identity},
    ]  # fmt: skip


def test_text_is_written_as_it_comes():
    encoder = wire.encoder()
    start = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText())]
    assert b"".join(map(encoder.feed, start)) == b""
    assert b'"text":"Hel"' in encoder.feed(PartDelta("m", 0, "Hel"))
    assert encoder.feed(PartDelta("other", 0, "x")) == b""


def test_text_that_comes_in_pieces_is_one_part_again():
    start = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText())]
    events = [*start, PartDelta("m", 0, "a"), PartDelta("m", 0, "b"), PartFinished("m", 0, TextPart("ab"))]
    (told,) = fold(decode(written([*events, MessageFinished("m", FinishReason.stop)])))
    assert told.content == (TextPart("ab"),)


def test_parts_that_are_told_side_by_side_are_written_in_their_order():
    call = ToolCallPart("1", "f", {"a": 1})
    events = [
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, ToolCallPart("1", "f")), PartStarted("m", 1, ThinkingPart()),
        PartDelta("m", 1, "hm"), PartDelta("m", 0, '{"a":'), PartDelta("m", 0, "1}"), PartFinished("m", 0, call),
        PartFinished("m", 1, ThinkingPart("hm")), MessageFinished("m", FinishReason.tool_calls), RunFinished("r"),
    ]  # fmt: skip
    (told,) = fold(decode(written(events)))
    assert [type(p) for p in told.content] == [ToolCallPart, ThinkingPart]
    assert told.tool_calls == (call,)


def test_a_signature_that_comes_after_the_text_is_written_after_it():
    signed = TextPart("ab", {"google": {"thoughtSignature": "AA=="}})
    events = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, ThinkingPart()), PartDelta("m", 0, "ab"),
              PartFinished("m", 0, ThinkingPart("ab", signed.native)), MessageFinished("m", FinishReason.stop)]  # fmt: skip
    (told,) = fold(decode(written(events)))
    assert [(p.text, (p.native or {}).get("google", {}).get("thoughtSignature")) for p in told.content] == [
        ("ab", None),
        ("", "AA=="),
    ]


def test_a_part_that_nobody_finished_is_written_at_the_end():
    events = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, ThinkingPart("hm")),
        MessageFinished("m", FinishReason.stop),
    ]
    assert fold(decode(written(events)))[0].thinking == "hm"
    assert wire.encoder().close() == b""


def test_an_error_is_written_as_an_error():
    events = [
        MessageStarted("m", Role.MODEL),
        RunError(RateLimitError("slow down", retry_after=3.0)),
        PartDelta("m", 0, "x"),
    ]
    error = error_of(decode(written(events)))
    assert isinstance(error, RateLimitError)
    assert error.retry_after == 3
    assert wire.dump_response(events)["error"]["code"] == 429


def test_several_messages_become_one_answer_and_results_are_not_shown():
    run = [Message.model("a").replace(usage=Usage(output_tokens=1)), Message.user(ToolResultPart("1", "f", 1)),
           Message.model("b").replace(usage=Usage(output_tokens=2), finish_reason=FinishReason.stop)]  # fmt: skip
    (told,) = fold(decode(written(unfold(run))))
    assert ([p.text for p in told.content], told.usage.output_tokens) == (["a", "b"], 3)
    body = wire.dump_response(unfold(run))
    assert body["candidates"][0]["content"]["parts"] == [{"text": "a"}, {"text": "b"}]


def test_the_thinking_of_other_providers_is_shown_without_its_signature():
    foreign = ThinkingPart("hm", {"anthropic": {"signature": "x"}})
    made, again = through(foreign, ThinkingPart("", foreign.native), "so")
    assert again.content == (ThinkingPart("hm"), TextPart("so"))
    assert made.thinking == "hm"


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
signature = st.sampled_from([None, {"google": {"thoughtSignature": "AA=="}}])
said = st.one_of(
    st.builds(TextPart, words, signature),
    st.builds(ThinkingPart, words, signature),
    st.builds(ToolCallPart, st.sampled_from(["1", "2"]), st.sampled_from(["f", "g"]), st.dictionaries(words, st.integers(0, 9), max_size=2), native=signature),
    st.builds(DataPart, st.binary(max_size=4), st.just("image/png")),
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(said, max_size=5))
def test_any_message_is_read_as_it_was_written(pieces):
    reason = FinishReason.tool_calls if any(isinstance(p, ToolCallPart) for p in pieces) else FinishReason.stop
    made, again = through(*pieces, reason=reason)
    assert again == made


def test_d128_what_is_said_around_an_answer_has_the_seeds_keys():
    ran = ({"executableCode": {"code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}})
    answer = chunk(*ran, text("a"), finish="STOP", modelVersion="gemini-3-pro-x", turnToken="t")
    answer["candidates"][0] |= {"safetyRatings": [1], "citationMetadata": {"citations": []}}
    told = agent(*fold(wire.load_response(answer)))[0].send_sync("x").metadata
    assert told["safety_ratings"] == [1] and told["citation_metadata"] == {"citations": []}
    assert told["executable_code"][0]["arguments"] == {"code": "1"}
    assert told["code_execution_result"][0]["result"] == {"outcome": "OUTCOME_OK", "output": "1"}
    assert (told["turn_token"], told["model"]) == ("t", "gemini-3-pro-x")
    blocked = {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [2]}}
    told = agent(*fold(wire.load_response(blocked)))[0].send_sync("x").metadata
    assert told["block_reason"] == "SAFETY" and not [key for key in told if key != key.lower()]
