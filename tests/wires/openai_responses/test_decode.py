"""The openai_responses decoder: rules D-7, D-142r, decisions 21 and 27; broken streams, errors,
what others send."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    ContextLengthError,
    DecodeError,
    InvalidRequestError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    StreamCutError,
)
from dragoman.event import Custom, OpenText, PartDelta, PartStarted, RunError
from dragoman.fold import fold
from dragoman.message import FinishReason, Origin, Usage
from dragoman.wires import openai_responses as wire
from support.responses import (
    COMPLETED_HEAD,
    CREATED,
    NAME,
    WHOLE,
    call_item,
    decode,
    end_event,
    message,
    message_item,
    odd_message,
    of,
    reasoning_item,
    sse,
    text,
    text_block,
)


def whole(*output, **fields):
    return end_event(*output, **fields)["response"]


def test_a_stream_of_text():
    folded = message(
        *text(0, "Hel", "lo"),
        of("output_item.done", item=message_item("Hello")),
        end_event(message_item("Hello")),
    )
    assert folded.text == "Hello"
    assert folded.finish_reason is FinishReason.stop
    assert folded.origin == Origin("", served_model="gpt-5-x", response_id="resp_1")


def test_the_given_origin_and_minted_ids():
    events = decode(
        sse(CREATED, end_event(message_item("x"))),
        origin=Origin("o", model="m"),
        new_id=lambda: "minted",
    )
    assert events[0].message_id == "minted"
    assert events[0].origin == Origin("o", model="m", served_model="gpt-5-x", response_id="resp_1")


def test_deltas_come_out_as_they_come_in():
    decoder = wire.decoder()
    decoder.feed(sse(CREATED, *text(0)))
    for delta in ("a", "b"):
        (events_in,) = [
            e for e in decoder.feed(sse(text(0, delta)[-1])) if isinstance(e, PartDelta)
        ]
        assert events_in.delta == delta


def test_phase_and_ids_are_known_when_a_text_begins():
    added = of(
        "output_item.added",
        item={**message_item("", phase="commentary"), "content": [], "status": "in_progress"},
    )
    events = decode(sse(CREATED, added, text(0, "x")[-1]))
    started = next(event for event in events if isinstance(event, PartStarted))
    item = {"type": "message", "id": "msg_1", "phase": "commentary"}
    assert started.part == OpenText(native={NAME + ":notes": {"item": item}})


def test_d142r_what_the_response_says_of_itself_is_kept_once_and_not_what_was_asked_for():
    repeated = {
        "tools": [{"type": "function"}],
        "instructions": "be",
        "temperature": 1,
        "text": {},
        "store": True,
    }
    folded = message(
        end_event(message_item("x"), service_tier="flex", metadata={"a": "b"}, **repeated)
    )
    assert folded.native[NAME + ":notes"]["response"] == {
        "created_at": 1,
        "status": "completed",
        "service_tier": "flex",
        "metadata": {"a": "b"},
    }
    assert not folded.metadata
    assert (
        message(end_event(message_item("x"), store=False)).native[NAME + ":notes"]["response"][
            "store"
        ]
        is False
    )


def test_decision_21_a_refusal_streams_as_text():
    item = {**message_item(""), "content": [{"type": "refusal", "refusal": "No."}]}
    folded = message(
        of("output_item.added", item={**item, "content": []}),
        of("refusal.delta", content_index=0, delta="No"),
        of("refusal.delta", content_index=0, delta="."),
        of("refusal.done", content_index=0, refusal="No."),
        of("output_item.done", item=item),
        end_event(item),
    )
    assert (folded.text, folded.finish_reason) == ("No.", FinishReason.refusal)


def test_noise_is_passed_over():
    noise = [
        {"type": "keepalive", "sequence_number": 3},
        of("brand_new.event", x=1),
        of("audio.delta", delta="AA=="),
    ]
    data = (
        sse(CREATED, *noise, end_event(message_item("x")))
        + b": a comment\n\ndata: [DONE]\n\ndata: {\n\n"
    )
    events = decode(data)
    assert fold(events)[0].text == "x" and not any(isinstance(event, RunError) for event in events)


def test_a_whole_response_takes_the_steps_of_its_stream():
    output = [reasoning_item("t", encrypted_content="g"), message_item("x"), call_item('{"a":1}')]
    streamed = decode(sse(end_event(*output)))
    assert wire.load_response(whole(*output)) == streamed
    assert wire.load_response(json.dumps(whole(*output)).encode()) == streamed


def test_other_objects_of_the_api_are_read():
    (counted,) = fold(wire.load_response({"object": "response.input_tokens", "input_tokens": 12}))
    assert counted.usage == Usage(input_tokens=12)
    compacted = {"id": "resp_1", "object": "response.compaction", "output": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "g"},
    ]}  # fmt: skip
    (message_,) = fold(wire.load_response(compacted))
    assert wire.dump_messages([message_])["input"] == compacted["output"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "server_error", "message": "oops"}, ProviderError),
        ({"code": "rate_limit_exceeded", "message": "slow"}, RateLimitError),
        ({"code": "invalid_prompt", "message": "no"}, InvalidRequestError),
        ({"code": "image_too_small", "message": "no"}, InvalidRequestError),
        ({"code": "image_content_policy_violation", "message": "no"}, ContentRefusedError),
        ({"code": "vector_store_timeout", "message": "no"}, ProviderTimeoutError),
        ({"code": "context_length_exceeded", "message": "no"}, ContextLengthError),
    ],
)
def test_d142r_a_failed_response_is_an_error_of_its_kind(error, kind):
    for end in (
        end_event(message_item("par"), kind="failed", error=error),
        {"type": "error", **error, "param": None},
        {"type": "error", "error": {"type": "x", **error}},
    ):
        events = decode(sse(CREATED, *text(0, "par"), end, *text(1, "late")))
        assert isinstance(events[-1], RunError) and type(events[-1].error) is kind
        assert events[-1].error.message.startswith(error["message"])
        assert events[-1].error.partial.text == "par"
        assert fold(events)[0].finish_reason is FinishReason.error
    body = wire.load_response(whole(kind="failed", error=error))
    assert type(body[-1].error) is kind


def test_an_error_body_under_a_streams_content_type():
    events = decode(
        b'{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
    )
    assert [type(event.error) for event in events] == [AuthenticationError]


@pytest.mark.parametrize(
    "data",
    [
        sse(CREATED) + b"data: {nonsense\n\n",
        sse(CREATED) + b"data: []\n\n",
        sse(CREATED, {"type": "response.completed", "response": 3}),
        sse(CREATED, {"type": "response.output_item.added", "output_index": 0}),
        sse(CREATED, end_event(3)),
        sse(CREATED) + b'data: {"x": 1}\n\n',
        sse(CREATED) + b"data: \xff\n\n",
        b"<html>",
        b"null",
    ],
)
def test_malformed_data_is_an_error_value(data):
    events = decode(data)
    assert isinstance(events[-1], RunError) and isinstance(events[-1].error, DecodeError)
    assert events[-1].error.body is not None


@pytest.mark.parametrize(
    "data",
    [b"", sse(CREATED), sse(CREATED, *text(0, "Hel")), sse(CREATED) + b'data: {"type": "resp'],
)
def test_a_stream_without_its_end_was_cut(data):
    events = decode(data)
    assert isinstance(events[-1], RunError) and isinstance(events[-1].error, StreamCutError)
    assert (events[-1].error.partial is not None) == bool(data)


def test_a_stream_cut_inside_a_call_leaves_it_cut_and_the_reasoning_it_had():
    item = reasoning_item("t", encrypted_content="g")
    data = sse(
        CREATED,
        of("output_item.added", 0, item={**item, "summary": []}),
        of("output_item.done", 0, item=item),
        of("output_item.added", 1, item=call_item("")),
        of("function_call_arguments.delta", 1, delta='{"a'),
    )
    (folded,) = fold(decode(data))
    assert folded.content[0].native[NAME]["encrypted_content"] == "g"
    assert folded.tool_calls[0].state == "cut"


@settings(max_examples=40)
@given(st.lists(st.text(min_size=1), max_size=5), st.randoms(use_true_random=False))
def test_any_chunking_gives_the_same_events(deltas, chance):
    data = sse(
        CREATED,
        *text(0, *deltas),
        of("output_item.done", item=message_item("".join(deltas))),
        end_event(message_item("".join(deltas))),
    )
    cuts = sorted(chance.sample(range(len(data)), 12))
    assert decode(
        *[data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    ) == decode(data)


DELTAS = {
    "output_text": ("message", {"content": [text_block("ab"), text_block("cd")]}, "content_index", "delta"),
    "refusal": ("message", {"content": [{"type": "refusal", "refusal": "ab"}, {"type": "refusal", "refusal": "cd"}]}, "content_index", "delta"),
    "reasoning_summary_text": ("reasoning", {"summary": [{"type": "summary_text", "text": "ab"}, {"type": "summary_text", "text": "cd"}]}, "summary_index", "delta"),
    "reasoning_text": ("reasoning", {"summary": [], "content": [{"type": "reasoning_text", "text": "ab"}, {"type": "reasoning_text", "text": "cd"}]}, "content_index", "delta"),
}  # fmt: skip


@pytest.mark.parametrize("name", DELTAS)
@pytest.mark.parametrize("indexed", [True, False])
def test_deltas_with_and_without_indexes_are_the_same(name, indexed):
    """D-139, decision 13: without `output_index` they are read by their item's id."""
    kind, fields, place, _ = DELTAS[name]
    item = {
        "id": "i",
        "type": kind,
        **({"role": "assistant"} if kind == "message" else {}),
        **fields,
    }
    at = {"item_id": "i", **({"output_index": 0} if indexed else {})}
    events = [
        {"type": "response.output_item.added", **at, "item": {**item, **{key: [] for key in fields}}},
        *[{"type": f"response.{name}.delta", **at, place: number, "delta": each} for number, words in enumerate(("ab", "cd")) for each in words],
        {"type": "response.output_item.done", **at, "item": item},
        {"type": "response.completed", "response": {**WHOLE, "output": [item]}},
    ]  # fmt: skip
    read = wire.load_response(
        b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    )
    deltas = [(event.index, event.delta) for event in read if isinstance(event, PartDelta)]
    if kind == "message":
        assert deltas == [(0, "a"), (0, "b"), (1, "c"), (1, "d")]
    else:
        assert deltas == [(0, "a"), (0, "b"), (0, "\n\n"), (0, "c"), (0, "d")]
    (whole,) = fold(wire.load_response({**WHOLE, "output": [item]}))
    (streamed,) = fold(read)
    assert streamed.content == whole.content


def test_an_image_that_is_not_finished_is_a_custom_event():
    event = {
        "type": "response.image_generation_call.partial_image",
        "sequence_number": 1,
        "output_index": 0,
        "item_id": "i",
        "partial_image_b64": "AA==",
        "partial_image_index": 0,
    }
    decoder = wire.decoder()
    _, custom = decoder.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    value = {"item_id": "i", "partial_image_b64": "AA==", "partial_image_index": 0}
    assert custom == Custom("image_generation.partial_image", value)


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


def test_what_a_failed_response_used_and_said_is_on_its_error():
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    body = {
        **COMPLETED_HEAD,
        "status": "failed",
        "error": error,
        "output": [odd_message("half")],
        "usage": usage,
    }
    event = wire.load_response(body)[-1]
    assert isinstance(event, RunError) and isinstance(event.error, RateLimitError)
    assert (event.error.partial.text, event.error.partial.usage.total_tokens) == ("half", 7)
