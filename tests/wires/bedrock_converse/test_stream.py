"""The Converse wire: streams that are read and written, that break off, lie or say what nobody knows,
against botocore's own parser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.codec.binary_frames import frame_binary_event
from dragoman.errors import (
    AuthenticationError,
    ContextLengthError,
    DecodeError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    StreamCutError,
)
from dragoman.event import Event, RunError
from dragoman.fold import fold, unfold
from dragoman.message import (
    Citation,
    DataPart,
    FinishReason,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.wires import bedrock_converse as wire
from support.rules.bedrock_converse import service

START = {"messageStart": {"role": "assistant", "p": "abc"}}
USAGE = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 18, "cacheReadInputTokens": 3}
OVER: list[Any] = [
    {"messageStop": {"stopReason": "end_turn", "p": "ab"}},
    {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 7}, "p": "a"}},
]
CITED = {"title": "t", "sourceContent": [{"text": "q"}], "location": {"web": {"url": "https://a"}}}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": fields, "p": "abcd"}}


def begin(index: int, **fields: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": fields}}


def stop(index: int) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index}}


STRANGE = delta(0, strange={"a": 1})


def framed(*events: Any) -> bytes:
    return b"".join(
        frame_binary_event(name, json.dumps(payload).encode())
        for event in events
        for name, payload in event.items()
    )


def read(*events: Any, size: int = 10**6) -> list[Event]:
    data, decoder = framed(*events), wire.decoder()
    found = [
        each for at in range(0, len(data), size) for each in decoder.feed(data[at : at + size])
    ]
    return [*found, *decoder.close()]


def message(*events: Any) -> Message:
    return fold(read(START, *events, *OVER))[0]


def error_in(events: list[Event]) -> Any:
    assert isinstance(events[-1], RunError), events[-1]
    return events[-1].error


SPOKEN = [
    delta(0, reasoningContent={"text": "H"}),
    delta(0, reasoningContent={"text": "m."}),
    delta(0, reasoningContent={"signature": "si"}),
    delta(0, reasoningContent={"signature": "gn"}),
    stop(0),
    delta(1, reasoningContent={"redactedContent": "eA=="}),
    stop(1),
    delta(2, text="Hel"),
    delta(2, text="lo."),
    delta(2, citation=CITED),
    stop(2),
    begin(3, toolUse={"toolUseId": "t1", "name": "look"}),
    delta(3, toolUse={"input": '{"at":'}),
    delta(3, toolUse={"input": '"home"}'}),
    stop(3),
    begin(4, toolUse={"toolUseId": "t2", "name": "search", "type": "server_tool_use"}),
    delta(4, toolUse={"input": "{}"}),
    stop(4),
    begin(5, toolResult={"toolUseId": "t2", "type": "x", "status": "success"}),
    delta(5, toolResult=[{"text": "a"}]),
    delta(5, toolResult=[{"text": "b"}, {"json": {}}]),
    stop(5),
    begin(6, image={"format": "png"}),
    delta(6, image={"source": {"bytes": "eHl6"}}),
    stop(6),
    begin(7, dream={"x": 1}),
    delta(7, dream={"y": 2}),
    stop(7),
]
BLOCKS = [
    {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sign"}}},
    {"reasoningContent": {"redactedContent": "eA=="}},
    {"citationsContent": {"content": [{"text": "Hello."}], "citations": [CITED]}},
    {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": "home"}}},
    {"toolUse": {"toolUseId": "t2", "name": "search", "type": "server_tool_use", "input": {}}},
    {"toolResult": {"toolUseId": "t2", "type": "x", "status": "success", "content": [{"text": "ab"}, {"json": {}}]}},
    {"image": {"format": "png", "source": {"bytes": "eHl6"}}},
    {"dream": {"x": 1, "y": 2}},
]  # fmt: skip
WHOLE = {
    "output": {"message": {"role": "assistant", "content": BLOCKS}},
    "stopReason": "tool_use",
    "usage": {**USAGE, "cacheDetails": [{"ttl": "1h", "inputTokens": 0}]},
    "metrics": {"latencyMs": 7},
    "trace": {"promptRouter": {"invokedModelId": "m"}},
    "additionalModelResponseFields": {"stop_sequence": "."},
    "serviceTier": {"type": "flex"},
}
ENDED = [
    {"messageStop": {"stopReason": "tool_use", "additionalModelResponseFields": {"stop_sequence": "."}}},
    {"metadata": {name: WHOLE[name] for name in ("usage", "metrics", "trace", "serviceTier")}},
]  # fmt: skip


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_a_stream_and_a_whole_answer_say_the_same(size: int) -> None:
    (streamed,) = fold(read(START, *SPOKEN, *ENDED, size=size))
    (whole,) = fold(wire.load_response(WHOLE))
    assert streamed == whole
    thought, hidden, text, call, searched, result, image, dream = whole.content
    assert thought == ThinkingPart("Hm.", {"bedrock_converse": {"signature": "sign"}})
    assert hidden == ThinkingPart("", {"bedrock_converse": {"redactedContent": "eA=="}})
    assert isinstance(text, TextPart)
    assert text.citations == (Citation("https://a", "t", quote="q"),)
    assert call == ToolCallPart("t1", "look", {"at": "home"})
    assert isinstance(searched, ToolCallPart) and searched.run_by == "provider"
    assert isinstance(result, ToolResultPart) and result.name == "search"
    assert image == DataPart(b"xyz", "image/png")
    assert isinstance(dream, ProviderPart) and dream.kind == "dream"
    assert whole.usage == Usage(
        input_tokens=13, output_tokens=5, total_tokens=18, cache_read_tokens=3
    )
    assert whole.finish_reason is FinishReason.tool_calls


def test_what_was_read_is_written_again() -> None:
    events = wire.load_response(WHOLE)
    assert wire.dump_response(events) == WHOLE
    encoder = wire.encoder()
    data = b"".join([encoder.feed(event) for event in events]) + encoder.close()
    # The stream has no room for what nobody knows.
    without = {**WHOLE, "output": {"message": {"role": "assistant", "content": BLOCKS[:-1]}}}
    assert fold(wire.load_response(data)) == fold(wire.load_response(without))


def parsed_by_botocore(data: bytes) -> list[Any]:
    """The events of a stream as AWS's client gives them."""
    from botocore.eventstream import EventStream
    from botocore.parsers import EventStreamJSONParser

    class Body:
        def stream(self, *_: Any) -> Any:
            yield data

    shape = service().operation_model("ConverseStream").output_shape.members["stream"]
    return [*EventStream(Body(), shape, EventStreamJSONParser(), "ConverseStream")]


def test_botocore_reads_our_stream_in_its_types() -> None:
    from botocore.validate import ParamValidator

    encoder = wire.encoder()
    events = wire.load_response(WHOLE)
    data = b"".join([encoder.feed(event) for event in events]) + encoder.close()
    found = parsed_by_botocore(data)
    shape = service().operation_model("ConverseStream").output_shape.members["stream"]
    for event in found:
        [(name, payload)] = event.items()
        report = ParamValidator().validate(payload, shape.members[name])
        assert not report.has_errors(), report.generate_report()
    texts = [e["contentBlockDelta"]["delta"].get("text") for e in found if "contentBlockDelta" in e]
    assert "".join(filter(None, texts)) == "Hello."
    images = [e["contentBlockDelta"]["delta"]["image"] for e in found if "image" in e.get("contentBlockDelta", {}).get("delta", {})]  # fmt: skip
    assert images == [{"source": {"bytes": b"xyz"}}]
    assert found[-1]["metadata"]["usage"]["cacheReadInputTokens"] == 3


def test_botocore_raises_our_errors_by_name() -> None:
    from botocore.exceptions import EventStreamError

    for error, name in (
        (RateLimitError("slow down"), "throttlingException"),
        (OverloadedError("busy"), "serviceUnavailableException"),
        (ContextLengthError("long"), "validationException"),
        (ProviderError("broken"), "internalServerException"),
    ):
        encoder = wire.encoder()
        started = encoder.feed(unfold([Message.model("x")])[0])
        with pytest.raises(EventStreamError) as raised:
            parsed_by_botocore(started + encoder.feed(RunError(error)))
        assert raised.value.response["Error"]["Code"] == name


def test_a_stream_that_ends_early_keeps_its_text_and_cuts_its_call() -> None:
    error = error_in(
        read(
            START,
            delta(0, text="I lo"),
            begin(1, toolUse={"toolUseId": "c", "name": "look"}),
            delta(1, toolUse={"input": '{"at": "ho'}),
        )
    )
    assert isinstance(error, StreamCutError)
    text, call = error.partial.content
    assert text == TextPart("I lo")
    assert (call.state, call.raw, call.arguments) == ("cut", '{"at": "ho', {})


def test_a_stream_that_ends_in_a_frame_is_cut() -> None:
    data = framed(START, delta(0, text="Half an"), delta(0, text=" answer"))[:-3]
    error = error_in(wire.load_response(data))
    assert isinstance(error, StreamCutError)
    assert error.partial is not None and error.partial.text == "Half an"


def test_only_the_counts_come_after_the_stop_reason() -> None:
    (ended,) = fold(read(START, delta(0, text="Hi."), stop(0), OVER[0]))
    assert (ended.text, ended.finish_reason, ended.usage) == ("Hi.", FinishReason.stop, None)


def test_a_corrupt_frame_ends_the_answer_with_what_was_said() -> None:
    data = bytearray(framed(START, delta(0, text="Hi")) + framed(delta(0, text=" there")))
    data[-5] ^= 1
    error = error_in(wire.load_response(bytes(data)))
    assert isinstance(error, DecodeError)
    assert "checksum" in error.message
    assert error.partial is not None and error.partial.text == "Hi"


def test_a_limit_cuts_the_call_that_is_open() -> None:
    (cut,) = fold(
        read(
            START,
            begin(0, toolUse={"toolUseId": "c", "name": "look"}),
            delta(0, toolUse={"input": '{"at'}),
            stop(0),
            {"messageStop": {"stopReason": "max_tokens"}},
        )
    )
    assert cut.finish_reason is FinishReason.length
    assert cut.tool_calls[0].state == "cut"


@pytest.mark.parametrize(
    "event",
    [
        {"contentBlockDelta": {"delta": {"text": "x"}}},
        delta(0, text=5),
        delta(0, toolUse={"input": "{}"}),
        delta(0, toolUse=5),
        begin(0, toolUse={"name": "look"}),
        {"contentBlockStart": {"contentBlockIndex": 0}},
        {"contentBlockDelta": {"contentBlockIndex": True, "delta": {"text": "x"}}},
    ],
)
def test_what_does_not_fit_is_an_error(event: Any) -> None:
    assert isinstance(error_in(read(START, event)), DecodeError)


def test_a_block_that_changes_its_kind_is_an_error() -> None:
    thought = delta(0, reasoningContent={"text": "Hm"})
    assert isinstance(error_in(read(START, thought, delta(0, text="x"))), DecodeError)
    twice = begin(0, toolUse={"toolUseId": "c", "name": "look"})
    assert isinstance(error_in(read(START, twice, twice)), DecodeError)


def test_what_nobody_knows_is_passed_over() -> None:
    assert message({"dreamt": {"x": 1}}, delta(0, text="Hi"), {"contentBlockStop": {"contentBlockIndex": 9}}).text == "Hi"  # fmt: skip


EXCEPTIONS = [
    ("throttlingException", "Too many tokens, please wait before trying again.", RateLimitError),
    ("validationException", "Input is too long for requested model.", ContextLengthError),
    ("validationException", "The provided request is not valid", InvalidRequestError),
    ("serviceUnavailableException", "Bedrock is unable to process your request.", OverloadedError),
    ("internalServerException", "The system failed.", ProviderError),
    ("modelStreamErrorException", "The model failed.", ProviderError),
]


@pytest.mark.parametrize(("name", "words", "expected"), EXCEPTIONS)
def test_an_exception_in_the_stream_comes_after_what_was_said(
    name: str, words: str, expected: type[ProviderError]
) -> None:
    error = error_in(read(START, delta(0, text="Hal"), {name: {"message": words}}))
    assert type(error) is expected
    assert words.rstrip(".") in error.message
    assert error.partial is not None and error.partial.text == "Hal"


RESPONSES = [
    (429, "ThrottlingException", "Too many requests", RateLimitError),
    (400, "ServiceQuotaExceededException", "too many", RateLimitError),
    (400, "ValidationException", "Input is too long for requested model.", ContextLengthError),
    (400, "ValidationException", "Malformed input request", InvalidRequestError),
    (403, "AccessDeniedException", "You don't have access", PermissionDeniedError),
    (403, "UnrecognizedClientException", "The security token is invalid", AuthenticationError),
    (403, "ExpiredTokenException", "expired", AuthenticationError),
    (404, "ResourceNotFoundException", "Could not resolve the foundation model", ModelNotFoundError),
    (408, "ModelTimeoutException", "Model timed out", ProviderTimeoutError),
    (424, "ModelErrorException", "The model failed", ProviderError),
    (429, "ModelNotReadyException", "Model is not ready", OverloadedError),
    (500, "InternalServerException", "failed", ProviderError),
    (503, "ServiceUnavailableException", "busy", OverloadedError),
]  # fmt: skip


@pytest.mark.parametrize(("status", "name", "words", "expected"), RESPONSES)
def test_errors_are_known_by_their_names(
    status: int, name: str, words: str, expected: type[ProviderError]
) -> None:
    body = json.dumps({"message": words}).encode()
    headers = {"x-amzn-ErrorType": f"{name}:http://internal.amazon.com/", "x-amzn-RequestId": "r1"}
    error = wire.load_error(status, headers, body)
    assert (type(error), error.status, error.request_id) == (expected, status, "r1")
    typed = json.dumps({"__type": f"com.amazon.coral.service#{name}", "Message": words}).encode()
    assert type(wire.load_error(status, {}, typed)) is expected


def test_a_wait_that_is_told_is_kept() -> None:
    error = wire.load_error(429, {"retry-after": "3"}, b'{"message": "slow"}')
    assert isinstance(error, RateLimitError) and error.retry_after == 3


@given(st.sampled_from([b"", b"{}", b"[]", b"null", b"<html>", b'{"message": 5}', b'"x"']))
def test_any_body_of_an_error_is_read(body: bytes) -> None:
    assert isinstance(wire.load_error(400, {}, body), InvalidRequestError)
    assert isinstance(error_in(wire.load_response(body)), ProviderError | DecodeError)


def test_an_unknown_delta_beside_a_text_loses_no_word() -> None:
    """Neither where the answer is cut, which was a KeyError, nor where it ends."""
    begun = [START, delta(0, text="Hi"), STRANGE]
    assert isinstance(error_in(read(*begun)), StreamCutError)
    assert fold(read(*begun))[0].text == "Hi"
    assert message(*begun, stop(0), *OVER).text == "Hi"


@given(st.lists(st.sampled_from([START, *SPOKEN, STRANGE, *ENDED, *OVER]), max_size=9))
def test_any_order_of_events_ends_once(events: list[Any]) -> None:
    found = read(*events)
    ends = [event for event in found if type(event).__name__ in ("RunError", "MessageFinished")]
    assert ends
    assert found[-1] is ends[-1]
