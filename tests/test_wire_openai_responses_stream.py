"""The openai_responses wire's responses: rules D-139…D-142r, D-144r, D-146, decisions 3, 13, 14, 21 and 22; read and written."""

from __future__ import annotations

import json

import httpx2
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
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
    FilePart,
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
from dragoman.wires import openai_responses as wire

NAME = "openai_responses"
HEAD = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5-x"}
CREATED = {"type": "response.created", "response": {**HEAD, "status": "in_progress", "output": []}}
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 17,
}


def sse(*events):
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def of(kind, index=0, **fields):
    return {"type": f"response.{kind}", "output_index": index, **fields}


def said(text, id_="msg_1", **fields):
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {"type": "message", "id": id_, "role": "assistant", "status": "completed", "content": content, **fields}


def called(arguments="{}", id_="fc_1", **fields):
    fields = {"status": "completed", "call_id": "call_1", **fields}
    return {"type": "function_call", "id": id_, "name": "f", "arguments": arguments, **fields}


def thought(*summary, id_="rs_1", **fields):
    pieces = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": id_, "summary": pieces, **fields}


def ended(*output, kind="completed", **fields):
    status = {"completed": "completed", "incomplete": "incomplete", "failed": "failed"}[kind]
    return {
        "type": f"response.{kind}",
        "response": {**HEAD, "status": status, "output": list(output), "usage": USAGE, **fields},
    }


def whole(*output, **fields):
    return ended(*output, **fields)["response"]


def decode(*data, origin=None, new_id=None):
    decoder = wire.decoder(origin=origin, new_id=new_id)
    return [event for chunk in data for event in decoder.feed(chunk)] + decoder.close()


def message(*events):
    decoded = decode(sse(CREATED, *events))
    assert not [event for event in decoded if isinstance(event, RunError)]
    (folded,) = fold(decoded)
    return folded


def text(index, *deltas, place=0):
    return [
        of("output_item.added", index, item={**said(""), "content": [], "status": "in_progress"}),
        of("content_part.added", index, content_index=place, part={"type": "output_text", "text": ""}),
        *[of("output_text.delta", index, content_index=place, delta=delta, logprobs=[]) for delta in deltas],
    ]


def test_a_stream_of_text():
    folded = message(*text(0, "Hel", "lo"), of("output_item.done", item=said("Hello")), ended(said("Hello")))
    assert folded.text == "Hello"
    assert folded.finish_reason is FinishReason.stop
    assert folded.origin == Origin("", served_model="gpt-5-x", response_id="resp_1")


def test_the_given_origin_and_minted_ids():
    events = decode(sse(CREATED, ended(said("x"))), origin=Origin("o", model="m"), new_id=lambda: "minted")
    assert events[0].message_id == "minted"
    assert events[0].origin == Origin("o", model="m", served_model="gpt-5-x", response_id="resp_1")


def test_deltas_come_out_as_they_come_in():
    decoder = wire.decoder()
    decoder.feed(sse(CREATED, *text(0)))
    for delta in ("a", "b"):
        (told,) = [e for e in decoder.feed(sse(text(0, delta)[-1])) if isinstance(e, PartDelta)]
        assert told.delta == delta


def test_phase_and_ids_are_known_when_a_text_begins():
    added = of("output_item.added", item={**said("", phase="commentary"), "content": [], "status": "in_progress"})
    events = decode(sse(CREATED, added, text(0, "x")[-1]))
    started = next(event for event in events if isinstance(event, PartStarted))
    item = {"type": "message", "id": "msg_1", "phase": "commentary"}
    assert started.part == OpenText(native={NAME + ":notes": {"item": item}})


def test_usage_has_disjoint_buckets_within_the_totals():
    expected = Usage(
        input_tokens=10,
        output_tokens=7,
        total_tokens=17,
        cache_read_tokens=4,
        cache_write_tokens=2,
        reasoning_tokens=3,
    )
    assert message(ended(said("x"))).usage == expected
    told = message(ended(said("x"), usage={"input_tokens": 1, "output_tokens": 2, "cost": 0.5, "num_sources_used": 0}))
    assert told.usage == Usage(input_tokens=1, output_tokens=2, total_tokens=3)
    assert told.native[NAME + ":notes"]["response"]["usage"] == {"cost": 0.5}


def test_d142r_what_the_response_says_of_itself_is_kept_once_and_not_what_was_asked_for():
    asked = {"tools": [{"type": "function"}], "instructions": "be", "temperature": 1, "text": {}, "store": True}
    folded = message(ended(said("x"), service_tier="flex", metadata={"a": "b"}, **asked))
    assert folded.native[NAME + ":notes"]["response"] == {
        "created_at": 1,
        "status": "completed",
        "service_tier": "flex",
        "metadata": {"a": "b"},
    }
    assert not folded.metadata
    assert message(ended(said("x"), store=False)).native[NAME + ":notes"]["response"]["store"] is False


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (ended(said("x")), FinishReason.stop),
        (ended(called()), FinishReason.tool_calls),
        (ended(said("x"), kind="incomplete", incomplete_details={"reason": "max_output_tokens"}), FinishReason.length),
        (ended(kind="incomplete", incomplete_details={"reason": "content_filter"}), FinishReason.content_filter),
        (ended(kind="incomplete", incomplete_details={"reason": "steered"}), FinishReason.unspecified),
        (ended(kind="incomplete", incomplete_details=None), FinishReason.unspecified),
        (ended(status="cancelled"), FinishReason.cancelled),
        (ended(status="queued"), FinishReason.unspecified),
        (ended({**said(""), "content": [{"type": "refusal", "refusal": "no"}]}), FinishReason.refusal),
    ],
)
def test_d142r_how_it_ended(end, reason):
    """But for calls, which wait for an answer whatever the status says (the brief's decision, against D-142r)."""
    folded = message(end)
    assert folded.finish_reason is reason
    assert wire.dump_response(unfold([folded]))["status"] == end["response"]["status"]


def test_decision_21_a_refusal_streams_as_text():
    item = {**said(""), "content": [{"type": "refusal", "refusal": "No."}]}
    folded = message(
        of("output_item.added", item={**item, "content": []}),
        of("refusal.delta", content_index=0, delta="No"),
        of("refusal.delta", content_index=0, delta="."),
        of("refusal.done", content_index=0, refusal="No."),
        of("output_item.done", item=item),
        ended(item),
    )
    assert (folded.text, folded.finish_reason) == ("No.", FinishReason.refusal)


def test_decision_2_order_is_the_providers():
    folded = message(
        ended(thought("t"), said("a"), called(), said("b", "msg_2"), thought(id_="rs_2"), said("c", "msg_3"))
    )
    kinds = [type(piece).__name__ for piece in folded.content]
    assert kinds == ["ThinkingPart", "TextPart", "ToolCallPart", "TextPart", "ThinkingPart", "TextPart"]


def test_decision_14_an_item_without_text_leaves_none_but_goes_back():
    folded = message(ended(thought(), said("")))
    assert folded.text == "" and not any(isinstance(piece, TextPart) for piece in folded.content)
    assert [item["id"] for item in wire.dump_messages([folded])["input"]] == ["rs_1", "msg_1"]


def test_d139_summaries_are_thinking_and_nothing_is_repeated():
    summary = of("reasoning_summary_text.delta", summary_index=0, delta="one")
    second = of("reasoning_summary_text.delta", summary_index=1, delta="two")
    item = thought("one", "two")
    events = decode(
        sse(
            CREATED,
            of("output_item.added", item=thought()),
            of("reasoning_summary_part.added", summary_index=0, part={"type": "summary_text", "text": ""}),
            summary,
            of("reasoning_summary_text.done", summary_index=0, text="one"),
            second,
            of("output_item.done", item=item),
            ended(item, said("x")),
        )
    )
    assert [e.delta for e in events if isinstance(e, PartDelta)] == ["one", "\n\n", "two", "x"]
    (folded,) = fold(events)
    assert folded.thinking == "one\n\ntwo" and folded.text == "x"
    assert wire.dump_messages([folded])["input"][0] == item


def test_reasoning_text_is_thinking():
    item = {**thought(), "content": [{"type": "reasoning_text", "text": "hm"}]}
    delta = of("reasoning_text.delta", content_index=0, delta="hm")
    folded = message(of("output_item.added", item=thought()), delta, of("output_item.done", item=item), ended(item))
    assert folded.thinking == "hm"
    assert wire.dump_messages([folded])["input"] == [item]


def test_pain_37_the_terminal_ciphertext_counts_and_the_part_is_told_at_once():
    """`output_item.done` and `completed` encrypt the same reasoning twice."""
    item = thought("one", encrypted_content="early")
    events = decode(
        sse(
            CREATED,
            of("output_item.added", item={**item, "summary": [], "encrypted_content": "first"}),
            of("output_item.done", item=item),
            *text(1, "x"),
            ended({**item, "encrypted_content": "late"}, said("x")),
        )
    )
    finished = [
        e.part.native[NAME]["encrypted_content"] for e in events if isinstance(e, PartFinished) and e.index == 0
    ]
    assert finished == ["early", "late"]
    assert fold(events)[0].content[0].native[NAME]["encrypted_content"] == "late"
    encoder = wire.encoder()
    assert fold(decode(b"".join(map(encoder.feed, events)) + encoder.close())) == fold(events)


def test_calls_stream_their_arguments():
    added = of("output_item.added", item=called("", status="in_progress"))
    deltas = [of("function_call_arguments.delta", delta=delta) for delta in ('{"a"', ":1}")]
    done = of("function_call_arguments.done", arguments='{"a":1}')
    events = decode(
        sse(CREATED, added, *deltas, done, of("output_item.done", item=called('{"a":1}')), ended(called('{"a":1}')))
    )
    started = next(event for event in events if isinstance(event, PartStarted))
    assert (started.part.id, started.part.name, started.part.arguments) == ("call_1", "f", {})
    (folded,) = fold(events)
    assert folded.tool_calls[0].arguments == {"a": 1}
    assert [e.delta for e in events if isinstance(e, PartDelta)] == ['{"a"', ":1}"]


def test_a_whole_call_is_told_as_the_text_of_its_arguments():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    events = decode(sse(CREATED, ended(called("{}"), called('{ "a": 1 }', "fc_2", call_id="2"), search)))
    assert [(e.index, e.delta) for e in events if isinstance(e, PartDelta)] == [(0, "{}"), (1, '{ "a": 1 }')]


def test_decision_13_parallel_calls_by_their_index():
    one, two = called('{"a":1}', call_id="1"), called('{"b":2}', "fc_2", call_id="2")
    folded = message(
        of("output_item.added", 0, item=called("", call_id="1")),
        of("output_item.added", 1, item=called("", "fc_2", call_id="2")),
        of("function_call_arguments.delta", 1, delta='{"b"'),
        of("function_call_arguments.delta", 0, delta='{"a":1}'),
        of("function_call_arguments.delta", 1, delta=":2}"),
        of("output_item.done", 1, item=two),
        of("output_item.done", 0, item=one),
        ended(one, two),
    )
    assert [(call.id, call.arguments) for call in folded.tool_calls] == [("1", {"a": 1}), ("2", {"b": 2})]


@pytest.mark.parametrize(
    "delta",
    [
        of("function_call_arguments.delta", 5, delta="{}"),
        of("reasoning_summary_text.delta", 0, summary_index=0, delta="x"),
        {"type": "response.function_call_arguments.delta", "delta": "x", "item_id": "nobody"},
    ],
)
def test_decision_13_a_delta_that_names_nothing_known_is_an_error_not_a_guess(delta):
    events = decode(sse(CREATED, *text(0, "x"), delta, *text(1, "y")))
    assert isinstance(events[-1], RunError) and isinstance(events[-1].error, DecodeError)
    assert events[-1].error.partial.text == "x"


def test_d140r_arguments_that_are_no_object():
    (call,) = message(ended(called("[1]"))).tool_calls
    assert (call.arguments, call.state) == ({"value": [1]}, "complete")
    (call,) = message(ended(called("null"))).tool_calls
    assert (call.arguments, call.state) == ({}, "complete")


def test_cut_calls_are_cut_and_others_that_do_not_parse_invalid():
    length = {"kind": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    for item in (called('{"a', status="incomplete"), called('{"a', status="completed"), called('{"a')):
        (call,) = message(ended(item, **length)).tool_calls
        assert (call.state, call.raw, call.arguments) == ("cut", '{"a', {})
    (call,) = message(
        of("output_item.added", item=called("")), of("function_call_arguments.delta", delta='{"a'), ended(**length)
    ).tool_calls
    assert call.state == "cut"
    (call,) = message(ended(called("nonsense"))).tool_calls
    assert call.state == "invalid"


def test_custom_tools_and_code_stream_as_the_arguments_that_they_become():
    custom = {"type": "custom_tool_call", "id": "ctc", "call_id": "1", "name": "sh", "input": 'echo "ü"\n'}
    code = {"type": "code_interpreter_call", "id": "ci", "status": "completed", "code": "1+1", "container_id": "c"}
    events = decode(
        sse(
            CREATED,
            of("output_item.added", 0, item={**custom, "input": ""}),
            of("custom_tool_call_input.delta", 0, delta='echo "ü'),
            of("custom_tool_call_input.delta", 0, delta='"\n'),
            of("output_item.done", 0, item=custom),
            of("output_item.added", 1, item={**code, "code": "", "status": "in_progress"}),
            of("code_interpreter_call_code.delta", 1, delta="1+1"),
            of("output_item.done", 1, item=code),
            ended(custom, code),
        )
    )
    assert [e.delta for e in events if isinstance(e, PartDelta)] == [
        '{"input":"echo \\"ü',
        '\\"\\n',
        '"}',
        '{"code":"1+1',
        '","container_id":"c"}',
    ]
    (folded,) = fold(events)
    assert [piece.arguments for piece in folded.content] == [
        {"input": 'echo "ü"\n'},
        {"code": "1+1", "container_id": "c"},
    ]
    assert [call.name for call in folded.tool_calls] == ["sh"]


def test_d144r_what_the_provider_runs_is_seen_when_it_begins():
    item = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
    done = {**item, "status": "completed", "action": {"type": "search", "query": "q"}}
    decoder = wire.decoder()
    decoder.feed(sse(CREATED))
    (started,) = decoder.feed(sse(of("output_item.added", item=item)))
    assert (started.part.name, started.part.run_by) == ("web_search", "provider")
    assert decoder.feed(sse(of("web_search_call.searching", item_id="ws_1"))) == []
    told = decoder.feed(sse(of("output_item.done", item=done)))
    assert told[-1].part.arguments == {"action": {"type": "search", "query": "q"}}


def test_texts_whose_deltas_never_came_are_told_from_the_items():
    """And items from the terminal response, where nothing but that came."""
    part = of("output_item.done", item=said("Hello"))
    assert message(part, ended()).text == "Hello"
    assert message(*text(0, "Hel"), part, ended()).text == "Hello"
    assert message(ended(said("Hello"))).text == "Hello"


def test_the_item_is_the_authority_where_deltas_said_otherwise():
    folded = message(*text(0, "Helo"), of("output_item.done", item=said("Hello")), ended(said("Hello")))
    assert folded.text == "Hello"


def test_content_indexes_may_begin_anywhere():
    """A server counts the reasoning before it."""
    assert message(*text(0, "Hi", place=1), of("output_item.done", item=said("Hi")), ended(said("Hi"))).text == "Hi"


def test_a_server_without_indexes_is_read_by_ids():
    """llama.cpp tells neither output_index nor content_index; some tell no beginning of items either."""
    events = [
        {"type": "response.output_item.added", "item": {**said(""), "content": []}},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "He"},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "y"},
        {"type": "response.output_item.done", "item": said("Hey")},
        {"type": "response.output_item.added", "item": called("")},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{}"},
        {"type": "response.output_item.done", "item": called("{}")},
    ]
    folded = message(*events, ended(said("Hey"), called("{}")))
    assert folded.text == "Hey" and folded.tool_calls[0].arguments == {}
    unannounced = of("output_text.delta", content_index=0, delta="Hey")
    assert message(unannounced, ended(said("Hey"))).text == "Hey"


def test_ids_that_change_with_every_event_repeat_nothing():
    """GitHub Copilot encrypts the ids anew each time; here the terminal output does not even hold all items."""
    streamed = [
        of("output_item.added", 0, item=thought(id_="a")),
        of("reasoning_summary_text.delta", 0, summary_index=0, delta="hm", item_id="b"),
        of("output_item.done", 0, item=thought("hm", id_="c")),
        *text(1, "Hi"),
        of("output_item.done", 1, item=said("Hi", "d")),
    ]
    for output in ([thought("hm", id_="e"), said("Hi", "f")], [said("Hi", "f")], []):
        folded = message(*streamed, ended(*output))
        assert (folded.thinking, folded.text, len(folded.content)) == ("hm", "Hi", 2)


def test_a_server_that_gives_all_items_one_index():
    events = [
        *text(0, "a"),
        of("output_item.done", 0, item=said("a")),
        *[{**event, "item": {**event["item"], "id": "msg_2"}} if "item" in event else event for event in text(0, "b")],
        of("output_item.done", 0, item=said("b", "msg_2")),
        of("output_item.done", 0, item=said("c", "msg_3")),
    ]
    assert message(*events, ended(said("a"), said("b", "msg_2"), said("c", "msg_3"))).text == "abc"


def test_what_comes_of_an_item_that_is_whole_is_told_already():
    late = [of("output_text.delta", 0, content_index=0, delta="x"), of("output_item.done", 0, item=said("Hi"))]
    assert message(*text(0, "Hi"), late[1], *late, ended(said("Hi"))).text == "Hi"


def test_noise_is_passed_over():
    noise = [{"type": "keepalive", "sequence_number": 3}, of("brand_new.event", x=1), of("audio.delta", delta="AA==")]
    data = sse(CREATED, *noise, ended(said("x"))) + b": a comment\n\ndata: [DONE]\n\ndata: {\n\n"
    events = decode(data)
    assert fold(events)[0].text == "x" and not any(isinstance(event, RunError) for event in events)


def test_a_whole_response_takes_the_steps_of_its_stream():
    output = [thought("t", encrypted_content="g"), said("x"), called('{"a":1}')]
    streamed = decode(sse(ended(*output)))
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


# what goes wrong


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
        ended(said("par"), kind="failed", error=error),
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
    events = decode(b'{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}')
    assert [type(event.error) for event in events] == [AuthenticationError]


@pytest.mark.parametrize(
    "data",
    [
        sse(CREATED) + b"data: {nonsense\n\n",
        sse(CREATED) + b"data: []\n\n",
        sse(CREATED, {"type": "response.completed", "response": 3}),
        sse(CREATED, {"type": "response.output_item.added", "output_index": 0}),
        sse(CREATED, ended(3)),
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
    "data", [b"", sse(CREATED), sse(CREATED, *text(0, "Hel")), sse(CREATED) + b'data: {"type": "resp']
)
def test_a_stream_without_its_end_was_cut(data):
    events = decode(data)
    assert isinstance(events[-1], RunError) and isinstance(events[-1].error, StreamCutError)
    assert (events[-1].error.partial is not None) == bool(data)


def test_a_stream_cut_inside_a_call_leaves_it_cut_and_the_reasoning_it_had():
    item = thought("t", encrypted_content="g")
    data = sse(
        CREATED,
        of("output_item.added", 0, item={**item, "summary": []}),
        of("output_item.done", 0, item=item),
        of("output_item.added", 1, item=called("")),
        of("function_call_arguments.delta", 1, delta='{"a'),
    )
    (folded,) = fold(decode(data))
    assert folded.content[0].native[NAME]["encrypted_content"] == "g"
    assert folded.tool_calls[0].state == "cut"


# writing


def events_of(*content, reason=FinishReason.stop, usage=None, origin=None):
    return unfold([Message.model(*content).replace(id="m1", finish_reason=reason, usage=usage, origin=origin)])


def written(events, **envelope):
    encoder = wire.encoder(**envelope)
    return b"".join(map(encoder.feed, events)) + encoder.close()


def told(data):
    return [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]


EVENT = TypeAdapter(ResponseStreamEvent)


def with_count(event):
    """The event with a count that the official types demand, and that neither older servers nor we make up."""
    event = json.loads(json.dumps(event))
    if usage := (event.get("response") or {}).get("usage"):
        usage["input_tokens_details"].setdefault("cache_write_tokens", 0)
    return event


def check(data):
    """Every event is of the official type, in an order that the official helper can follow."""
    events = told(data)
    for event in events:
        EVENT.validate_python(with_count(event))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data)
    with httpx2.Client(transport=httpx2.MockTransport(lambda _: answer)) as http:
        client = OpenAI(api_key="k", http_client=http, max_retries=0)
        with client.responses.stream(model="m", input="?") as stream:
            return stream.get_final_response()


def test_the_whole_sequence_of_events():
    data = written(
        events_of(ThinkingPart("hm"), "Hi", ToolCallPart("c1", "f", {"a": 1}), reason=FinishReason.tool_calls)
    )
    assert [event["type"].removeprefix("response.") for event in told(data)] == [
        "created", "in_progress",
        "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
        "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
        "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    final = check(data)
    assert final.output_text == "Hi"
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]
    assert final.output[2].arguments == '{"a":1}'


def test_the_envelope_goes_before_the_events_own():
    origin = Origin("x", served_model="theirs", response_id="resp_9")
    assert wire.dump_response(events_of("a", origin=origin))["id"] == "resp_9"
    tools = [{"type": "function", "name": "f", "parameters": {}, "strict": False}]
    body = wire.dump_response(events_of("a", origin=origin), id="resp_2", model="m", created_at=5, tools=tools)
    assert (body["id"], body["model"], body["created_at"], body["tools"]) == ("resp_2", "m", 5, tools)
    TypeAdapter(Response).validate_python(body)


def test_a_whole_answer_is_what_the_last_event_holds():
    events = events_of(ThinkingPart("hm"), "Hi", ToolCallPart("c1", "f"), usage=Usage(input_tokens=1, output_tokens=2))
    assert told(written(events))[-1]["response"] == wire.dump_response(events)


def test_cut_calls_are_told_as_far_as_they_came():
    call = ToolCallPart("c1", "f", raw='{"a', state="cut")
    body = wire.dump_response(events_of(call, reason=FinishReason.length))
    assert body["output"][0]["arguments"] == '{"a' and body["output"][0]["status"] == "incomplete"
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert told(written(events_of(call, reason=FinishReason.length)))[-1]["type"] == "response.incomplete"


def test_parts_that_are_open_side_by_side_are_told_one_after_the_other():
    events = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, ThinkingPart()),
        PartStarted("m", 1, OpenText()),
        PartDelta("m", 0, "hm"),
        PartDelta("m", 1, "H"),
        PartDelta("m", 0, "!"),
        PartFinished("m", 1, TextPart("H")),
        PartFinished("m", 0, ThinkingPart("hm!")),
        MessageFinished("m", FinishReason.stop),
    ]
    final = check(written(events))
    assert [item.type for item in final.output] == ["reasoning", "message"]
    assert final.output_text == "H"


def test_what_another_provider_ran_is_told_as_an_mcp_call():
    call = ToolCallPart("s1", "web_search", {"q": "x"}, run_by="provider")
    result = ToolResultPart("s1", "web_search", {"hits": 1}, run_by="provider")
    failed = ToolResultPart("s2", "fetch", "no", is_error=True, run_by="provider")
    final = check(written(events_of(call, result, ToolCallPart("s2", "fetch", run_by="provider"), failed, "done")))
    assert [item.type for item in final.output] == ["mcp_call", "mcp_call", "message"]
    assert (final.output[0].name, final.output[0].arguments, final.output[0].output) == (
        "web_search",
        '{"q":"x"}',
        '{"hits":1}',
    )


def test_a_result_without_its_call_is_not_told():
    lone = ToolResultPart("s1", "web_search", "x", run_by="provider")
    assert [item["type"] for item in wire.dump_response(events_of(lone, "a", lone))["output"]] == ["message"]


def test_a_call_is_done_as_soon_as_it_is_whole():
    encoder = wire.encoder()
    told_ = [encoder.feed(event) for event in events_of(ToolCallPart("c1", "f"), "later")]
    assert b"output_item.done" in told_[3] and b"call_id" in told_[3]


def test_media_and_blocks_of_others():
    body = wire.dump_response(
        events_of(DataPart(b"\x89PNG", "image/png"), FilePart("f1", name="a.txt"), ProviderPart("x", {"anthropic": {}}))
    )
    assert [item["type"] for item in body["output"]] == ["image_generation_call", "message"]
    assert body["output"][0]["result"] == "iVBORw=="
    assert body["output"][1]["content"][0]["text"] == "[media: file] a.txt"


def test_several_messages_become_the_items_of_one_response():
    """A run whose tools were its own: what the user's side said is not told."""
    call = ToolCallPart("c1", "f")
    events = [
        *unfold([Message.model("a", call).replace(id="m1", usage=Usage(output_tokens=1))]),
        *unfold([Message.user(ToolResultPart("c1", "f", "x")).replace(id="u1")]),
        *unfold([Message.model("b").replace(id="m2", usage=Usage(output_tokens=2), finish_reason=FinishReason.stop)]),
    ]
    final = check(written([*events, RunFinished("r")]))
    assert final.output_text == "ab" and final.usage.output_tokens == 3


def test_a_dropped_message_ends_what_was_open():
    events = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "x"),
        MessageDropped("m"),
    ]
    retried = [*events, *unfold([Message.model("y").replace(id="m2", finish_reason=FinishReason.stop)])]
    assert [item.type for item in check(written(retried)).output][-1] == "message"


def test_other_candidates_and_other_speakers_are_not_told():
    events = [MessageStarted("m", Role.MODEL, 1), PartStarted("m", 0, OpenText()), PartDelta("m", 0, "x")]
    assert written([*events, *unfold([Message.user("q").replace(id="u")])]).count(b"output_item") == 0


STATUSES = {
    AuthenticationError: 401, PermissionDeniedError: 403, ModelNotFoundError: 404, RateLimitError: 429,
    OverloadedError: 503, ProviderTimeoutError: 504, ProviderError: 500,
}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        AuthenticationError, PermissionDeniedError, ModelNotFoundError, ContextLengthError, ContentRefusedError,
        InvalidRequestError, RateLimitError, OverloadedError, ProviderTimeoutError, ProviderError,
    ],
)  # fmt: skip
def test_an_error_is_told_as_what_it_is_before_and_within_a_response(kind):
    early = written([RunError(kind("what happened"))])
    assert told(early)[0]["type"] == "error"
    late = written([*events_of("x")[:-1], RunError(kind("what happened"))])
    assert told(late)[-1]["type"] == "response.failed"
    for data in (early, late):
        for event in told(data):
            EVENT.validate_python(event)
        error = decode(data)[-1].error
        assert type(error) is kind and "what happened" in error.message
    status, body = wire.dump_error(kind("what happened"))
    assert status == STATUSES.get(kind, 400)
    assert type(wire.load_error(status, {}, json.dumps(body).encode())) is kind
    assert wire.dump_response([RunError(kind("what happened"))]) == body


neutral = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5), lambda x: st.lists(x, max_size=2) | st.dictionaries(st.text(max_size=4), x, max_size=2), max_leaves=4)  # fmt: skip
pieces = st.one_of(
    st.builds(TextPart, st.text(min_size=1)),
    st.builds(ThinkingPart, st.text()),
    st.builds(ToolCallPart, st.text("abc_", min_size=1, max_size=8), st.sampled_from(["f", "g"]), st.dictionaries(st.text(max_size=3), neutral, max_size=3)),
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(pieces, max_size=5))
def test_what_is_written_is_read_back(content):
    said_ = Message.model(
        *[msgspec.structs.replace(p, id=f"c{n}") if isinstance(p, ToolCallPart) else p for n, p in enumerate(content)]
    )
    reason = FinishReason.tool_calls if said_.tool_calls else FinishReason.stop
    events = unfold(
        [said_.replace(id="m", finish_reason=reason, usage=Usage(input_tokens=1, output_tokens=2, total_tokens=3))]
    )

    def bare(message_):
        return [msgspec.structs.replace(piece, native=None) for piece in message_.content]

    for back in (fold(decode(written(events))), fold(wire.load_response(wire.dump_response(events)))):
        assert bare(back[0]) == list(said_.content)
        assert back[0].finish_reason is reason
        assert back[0].usage.total_tokens == 3
    requested = wire.load_messages(wire.dump_messages([Message.user("x"), said_]))[1:]
    assert [piece for message_ in requested for piece in bare(message_)] == list(said_.content)


@settings(max_examples=40)
@given(st.lists(st.text(min_size=1), max_size=5), st.randoms(use_true_random=False))
def test_any_chunking_gives_the_same_events(deltas, chance):
    data = sse(
        CREATED, *text(0, *deltas), of("output_item.done", item=said("".join(deltas))), ended(said("".join(deltas)))
    )
    cuts = sorted(chance.sample(range(len(data)), 12))
    assert decode(*[data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]) == decode(data)
