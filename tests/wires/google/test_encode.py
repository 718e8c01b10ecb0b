"""Answers as Google's wire writes them, streamed and whole."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import RateLimitError
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
    FinishReason,
    MarkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import ModelRequest
from dragoman.wires import google as wire
from support.google import answer, chunk, decode, error_of, text
from support.model import agent


def written(events, **envelope):
    encoder = wire.encoder(**envelope)
    return b"".join(map(encoder.feed, events)) + encoder.close()


def through(*pieces, reason=FinishReason.stop, usage=None):
    """A message, written as a stream and as a whole, and read again."""
    made = Message.model(*pieces).replace(
        id="message-0",
        finish_reason=reason,
        usage=usage,
        origin=Origin("", served_model="m", response_id="r"),
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
        usage=Usage(input_tokens=1, output_tokens=2, total_tokens=3),
        finish_reason=FinishReason.stop,
    )
    lines = [
        json.loads(line[6:])
        for line in written(unfold([made]), model="m", id="r").decode().split("\n\n")
        if line
    ]
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
    events = [
        *start,
        PartDelta("m", 0, "a"),
        PartDelta("m", 0, "b"),
        PartFinished("m", 0, TextPart("ab")),
    ]
    (read,) = fold(decode(written([*events, MessageFinished("m", FinishReason.stop)])))
    assert read.content == (TextPart("ab"),)


def test_parts_that_are_told_side_by_side_are_written_in_their_order():
    call = ToolCallPart("1", "f", {"a": 1})
    events = [
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, ToolCallPart("1", "f")), PartStarted("m", 1, ThinkingPart()),
        PartDelta("m", 1, "hm"), PartDelta("m", 0, '{"a":'), PartDelta("m", 0, "1}"), PartFinished("m", 0, call),
        PartFinished("m", 1, ThinkingPart("hm")), MessageFinished("m", FinishReason.tool_calls), RunFinished("r"),
    ]  # fmt: skip
    (read,) = fold(decode(written(events)))
    assert [type(p) for p in read.content] == [ToolCallPart, ThinkingPart]
    assert read.tool_calls == (call,)


def test_a_signature_that_comes_after_the_text_is_written_after_it():
    signed = TextPart("ab", {"google": {"thoughtSignature": "AA=="}})
    events = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, ThinkingPart()), PartDelta("m", 0, "ab"),
              PartFinished("m", 0, ThinkingPart("ab", signed.native)), MessageFinished("m", FinishReason.stop)]  # fmt: skip
    (read,) = fold(decode(written(events)))
    assert [
        (p.text, (p.native or {}).get("google", {}).get("thoughtSignature")) for p in read.content
    ] == [
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
    (read,) = fold(decode(written(unfold(run))))
    assert ([p.text for p in read.content], read.usage.output_tokens) == (["a", "b"], 3)
    body = wire.dump_response(unfold(run))
    assert body["candidates"][0]["content"]["parts"] == [{"text": "a"}, {"text": "b"}]


def test_the_thinking_of_other_providers_is_shown_without_its_signature():
    foreign = ThinkingPart("hm", {"anthropic": {"signature": "x"}})
    made, again = through(foreign, ThinkingPart("", foreign.native), "so")
    assert again.content == (ThinkingPart("hm"), TextPart("so"))
    assert made.thinking == "hm"


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


signature = st.sampled_from([None, {"google": {"thoughtSignature": "AA=="}}])


content = st.one_of(
    st.builds(TextPart, words, signature),
    st.builds(ThinkingPart, words, signature),
    st.builds(ToolCallPart, st.sampled_from(["1", "2"]), st.sampled_from(["f", "g"]), st.dictionaries(words, st.integers(0, 9), max_size=2), native=signature),
    st.builds(DataPart, st.binary(max_size=4), st.just("image/png")),
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(content, max_size=5))
def test_any_message_is_read_as_it_was_written(pieces):
    reason = (
        FinishReason.tool_calls
        if any(isinstance(p, ToolCallPart) for p in pieces)
        else FinishReason.stop
    )
    made, again = through(*pieces, reason=reason)
    assert again == made


def test_d128_what_is_said_around_an_answer_has_the_seeds_keys():
    ran = (
        {"executableCode": {"code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    )
    answer = chunk(*ran, text("a"), finish="STOP", modelVersion="gemini-3-pro-x", turnToken="t")
    answer["candidates"][0] |= {"safetyRatings": [1], "citationMetadata": {"citations": []}}
    metadata = agent(*fold(wire.load_response(answer)))[0].send_sync("x").metadata
    assert metadata["safety_ratings"] == [1] and metadata["citation_metadata"] == {"citations": []}
    assert metadata["executable_code"][0]["arguments"] == {"code": "1"}
    assert metadata["code_execution_result"][0]["result"] == {
        "outcome": "OUTCOME_OK",
        "output": "1",
    }
    assert (metadata["turn_token"], metadata["model"]) == ("t", "gemini-3-pro-x")
    blocked = {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [2]}}
    metadata = agent(*fold(wire.load_response(blocked)))[0].send_sync("x").metadata
    assert metadata["block_reason"] == "SAFETY" and not [
        key for key in metadata if key != key.lower()
    ]


def test_a_part_that_waited_is_written_in_one_piece():
    events = [
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText()), PartDelta("m", 0, "a"), PartStarted("m", 1, OpenText()),
        PartDelta("m", 1, "b"), PartDelta("m", 1, "c"), PartFinished("m", 0, TextPart("a")), PartDelta("m", 1, "d"),
        PartFinished("m", 1, TextPart("bcd")), MessageFinished("m", FinishReason.stop),
    ]  # fmt: skip
    encoder = wire.encoder()
    stream = b"".join(map(encoder.feed, events)) + encoder.close()
    candidates = [
        json.loads(line[6:])["candidates"][0]
        for line in stream.decode().splitlines()
        if line.startswith("data: ")
    ]
    parts = [one["content"].get("parts") for one in candidates]
    assert parts == [[{"text": "a"}], [{"text": ""}, {"text": "bc"}], [{"text": "d"}], None]


def test_a_part_that_is_whole_keeps_its_fields_behind_one_that_nobody_finished():
    signed = TextPart("b", {"google": {"thoughtSignature": "AA=="}})
    events = [
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText()), PartStarted("m", 1, OpenText()), PartStarted("m", 2, OpenText()),
        PartDelta("m", 1, "b"), PartFinished("m", 1, signed), PartDelta("m", 2, "c"), MessageFinished("m", FinishReason.stop),
    ]  # fmt: skip
    encoder = wire.encoder()
    stream = b"".join(map(encoder.feed, events)) + encoder.close()
    contents = [
        json.loads(line[6:])["candidates"][0]["content"]
        for line in stream.decode().splitlines()
        if line.startswith("data: ")
    ]
    (read,) = fold(wire.load_response(stream))
    assert [part for one in contents for part in one.get("parts", [])] == [
        {"text": "b"}, {"text": "", "thoughtSignature": "AA=="}, {"text": "c"},
    ]  # fmt: skip
    assert read.text == "bc"


def test_turn_token_stands_beside_the_candidates():
    body = {**answer({"text": "a"}, finishReason="STOP"), "turnToken": "t"}
    response = wire.dump_response(wire.load_response(body))
    assert response["turnToken"] == "t" and "turnToken" not in response["candidates"][0]


def test_a_message_that_was_dropped_leaves_nothing_that_was_not_sent_yet():
    events = [
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText()), PartDelta("m", 0, "sent "),
        PartStarted("m", 1, ToolCallPart("c", "f")), MessageDropped("m"),
        *unfold([Message.model("good").replace(id="m2", finish_reason="stop")]),
    ]  # fmt: skip
    encoder = wire.encoder()
    (message,) = fold(wire.load_response(b"".join(map(encoder.feed, events)) + encoder.close()))
    assert (message.text, message.tool_calls) == ("sent \ngood", ())
    assert wire.dump_response(events)["candidates"][0]["content"]["parts"] == [{"text": "good"}]


def test_marks_are_passed_over():
    message = Message.model(ThinkingPart("hm"), "a", ToolCallPart("c", "f", {"x": 1})).replace(
        id="m"
    )
    mark = MarkPart("step", {"ui": {"n": 1}})
    marked = message.replace(
        content=(mark, *[each for piece in message.content for each in (piece, mark)])
    )
    assert written(unfold([marked])) == written(unfold([message]))
    assert wire.dump_response(unfold([marked])) == wire.dump_response(unfold([message]))


NOW = datetime(2026, 11, 22, 16, 0, 1, 500000, timezone(timedelta(hours=1)))


def test_an_answer_has_the_id_that_its_server_gives_it_and_the_requests_model():
    around = wire.envelope(ModelRequest("gemini-x"), id="r1", now=NOW)
    events = unfold(
        [Message.model("a").replace(origin=Origin("other", served_model="m", response_id="r"))]
    )
    assert wire.dump_response(events, **around) == {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "a"}]},
                "finishReason": "OTHER",
                "index": 0,
            }
        ],
        "modelVersion": "gemini-x",
        "responseId": "r1",
    }
    assert wire.envelope(None, id="r1", now=NOW) == {"id": "r1"}


def test_a_ping_says_nothing_and_leaves_the_stream_whole():
    data = written(unfold([Message.model("a")]))
    first, rest = data.split(b"\n\n", 1)
    assert decode(wire.ping + first + b"\n\n" + wire.ping + rest) == decode(data)
    assert wire.ping.startswith(b":")
    assert wire.stream_type == "text/event-stream"
