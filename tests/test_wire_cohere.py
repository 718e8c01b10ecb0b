"""The cohere wire by its rules: conversation, request, decoder, encoder and errors."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from dragoman import errors
from dragoman.event import MessageDropped, MessageFinished, MessageStarted, RunError
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
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
from dragoman.providers.registry import Registry
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import cohere as wire

HERE = Origin("cohere", "https://api.cohere.com/v2", "command-a-03-2025")
PLAN = {"cohere:notes": {"spelling": {"field": "tool_plan"}}}


def stream(*events: Any) -> bytes:
    written = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    return b"".join(b"data: " + event + b"\n\n" for event in written)


def decode(data: bytes, new_id: Any = None) -> list[Any]:
    decoder = wire.decoder(new_id=new_id)
    return [*decoder.feed(data), *decoder.close()]


START = {"type": "message-start", "id": "r1", "delta": {"message": {"role": "assistant", "content": []}}}


def content(index, kind="content-delta", **block):
    return {"type": kind, "index": index, "delta": {"message": {"content": block}}}


def call(index, kind="tool-call-delta", **fields):
    return {"type": kind, "index": index, "delta": {"message": {"tool_calls": fields}}}


def opened(index, name="f", arguments="", call_id="c1"):
    function = {"name": name, "arguments": arguments}
    return call(index, "tool-call-start", id=call_id, type="function", function=function)


def end(reason="COMPLETE", **delta):
    return {"type": "message-end", "delta": {"finish_reason": reason, **delta}}


# the conversation


def test_the_usual_spelling():
    messages = [
        Message.system("be brief"),
        Message.user("what is it?", DataPart(b"png", "image/png"), LinkPart("https://x/y.png")),
        Message.model(ThinkingPart("I look", PLAN), ToolCallPart("a1", "look", {"x": 1})),
        Message.user(ToolResultPart("a1", "look", {"seen": True}), "so?"),
        Message.model("a cat"),
    ]
    assert wire.dump_messages(messages) == [
        {"role": "system", "content": "be brief"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
                {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            ],
        },
        {
            "role": "assistant",
            "tool_plan": "I look",
            "tool_calls": [{"id": "a1", "type": "function", "function": {"name": "look", "arguments": '{"x":1}'}}],
        },
        {"role": "tool", "tool_call_id": "a1", "content": '{"seen":true}'},
        {"role": "user", "content": "so?"},
        {"role": "assistant", "content": "a cat"},
    ]
    assert wire.load_messages(wire.dump_messages(messages)[:3]) == messages[:3]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "user", "content": [{"type": "document", "document": {"data": "x", "id": "1"}}, {"type": "own"}]},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,!", "detail": "low"}}],
        },
        {"role": "assistant", "content": None, "tool_plan": "", "tool_calls": []},
        {"role": "assistant", "content": "x", "citations": [{"start": 0, "end": 1, "text": "x"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "h"}, {"type": "text", "text": ""}]},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": ""}}],
        },
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{"}}],
        },
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "null"}}],
        },
        {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "args": {}}]},
        {"role": "tool", "tool_call_id": "1"},
        {"role": "tool", "content": None},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "x"}]},
        {
            "role": "tool",
            "tool_call_id": "1",
            "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
        },
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "document", "document": {"data": {"a": 1}}}]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "document", "document": {"data": "x", "id": "d"}}]},
        {"role": "tool", "tool_call_id": "1", "content": []},
    ],
)
def test_odd_spellings_come_back_as_they_were(message):
    loaded = [Message.from_json(m.to_json()) for m in wire.load_messages([message])]
    assert wire.dump_messages(loaded) == [message]


def test_a_single_document_is_its_data_and_may_be_changed():
    payload = {"role": "tool", "tool_call_id": "1", "content": [{"type": "document", "document": {"data": {"a": 1}}}]}
    (message,) = wire.load_messages([payload])
    (result,) = message.tool_results
    assert result.result == {"a": 1}
    changed = msgspec.structs.replace(result, result={"a": 2})
    (dumped,) = wire.dump_messages([message.replace(content=(changed,))])
    assert dumped["content"] == [{"type": "document", "document": {"data": {"a": 2}}}]


def test_decision_4_thinking_plans_and_citations_go_back_to_their_origin_only():
    payload = [
        {
            "role": "assistant",
            "tool_plan": "so",
            "content": [{"type": "thinking", "thinking": "h"}, {"type": "text", "text": "x"}],
            "citations": [{"start": 0}],
        }
    ]
    messages = wire.load_messages(payload, origin=HERE)
    assert messages[0].thinking == "soh"
    assert wire.dump_messages(messages, target=HERE) == payload
    losses = []
    other = Origin("other")
    assert wire.dump_messages(messages, target=other, losses=losses) == [{"role": "assistant", "content": "x"}]
    assert [(loss.part, loss.what) for loss in losses] == [(0, "thinking"), (1, "thinking"), (None, "citations")]
    assert wire.dump_messages(messages, target=other, quirks=wire.Quirks(reads=("cohere",))) == payload


@pytest.mark.parametrize(
    ("piece", "what", "told"),
    [
        (FilePart("f1"), "file", ["[media: file]"]),
        (DataPart(b"%PDF", "application/pdf"), "application/pdf", ["[media: application/pdf]"]),
        (ProviderPart("odd", {"other": {}}), "provider", []),
        (ThinkingPart("h"), "thinking", []),
    ],
)
def test_what_the_format_cannot_hold_is_a_loss(piece, what, told):
    losses = []
    texts = [{"type": "text", "text": text} for text in ["a", *told]]
    (said,) = wire.dump_messages([Message.user("a", piece)], losses=losses)
    assert said == {"role": "user", "content": texts if told else "a"}
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [(0, 1, what)]


def test_decision_2_what_the_format_holds_in_another_order_is_a_loss():
    losses = []
    message = Message.model("first", ThinkingPart("late", PLAN), ToolCallPart("1", "f"), "after")
    (dumped,) = wire.dump_messages([message], losses=losses)
    assert dumped["tool_plan"] == "late" and [block["text"] for block in dumped["content"]] == ["first", "after"]
    assert [(loss.part, loss.what) for loss in losses] == [(1, "order"), (3, "order")]
    losses = []
    media = ToolResultPart("1", "f", (TextPart("t"), DataPart(b"x", "image/png")), is_error=True)
    wire.dump_messages([Message.user("first", media)], losses=losses)
    assert [(loss.part, loss.what) for loss in losses] == [(1, "is_error"), (1, "media"), (1, "order")]


def test_decision_12_ids_and_names_are_made_fit_per_request():
    model = Message.model(ToolCallPart("a b", "my tool", {}))
    messages = [model, Message.user(ToolResultPart("a b", "my tool", "x")), model]
    request = ModelRequest("m", tuple(messages), (ToolSpec("my tool"),))
    body = wire.dump_request(request, target=HERE)
    first, result, again = body["messages"]
    name = body["tools"][0]["function"]["name"]
    assert name == first["tool_calls"][0]["function"]["name"] != "my tool"
    assert first["tool_calls"][0]["id"] == result["tool_call_id"] != again["tool_calls"][0]["id"]
    assert " " not in name + result["tool_call_id"]


@pytest.mark.parametrize(
    "payload",
    [
        "x",
        [1],
        [{"role": "robot", "content": ""}],
        [{"role": "user", "content": [1]}],
        [{"role": "user", "content": 1}],
    ],
)
def test_what_is_no_conversation_is_refused(payload):
    with pytest.raises(errors.HistoryError):
        wire.load_messages(payload)


# the request


def test_settings_have_coheres_names():
    settings = Settings(
        temperature=0.5, max_tokens=9, top_p=0.9, top_k=3, seed=1, stop=("a",), tool_choice="required", reasoning=100
    )
    request = ModelRequest(
        "m", (Message.user("hi"),), settings=settings, stream=True, options={"documents": [{"text": "x"}]}
    )
    body = wire.dump_request(request)
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "temperature": 0.5,
        "max_tokens": 9,
        "p": 0.9,
        "k": 3,
        "seed": 1,
        "stop_sequences": ["a"],
        "tool_choice": "REQUIRED",
        "thinking": {"type": "enabled", "token_budget": 100},
        "documents": [{"text": "x"}],
    }
    assert wire.load_request(body) == request
    assert (wire.dump_http(request).path, wire.dump_http(request).body) == ("/chat", body)


@pytest.mark.parametrize(
    ("reasoning", "thinking"),
    [
        ("off", {"type": "disabled"}),
        ("low", {"type": "enabled", "token_budget": 1024}),
        ("medium", {"type": "enabled", "token_budget": 8192}),
        ("high", {"type": "enabled"}),
    ],
)
def test_an_effort_is_a_budget(reasoning, thinking):
    assert wire.dump_request(ModelRequest("m", settings=Settings(reasoning=reasoning)))["thinking"] == thinking


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stream": True},
        {"stream": None},
        {"tool_choice": "NONE"},
        {"tool_choice": "ODD", "max_tokens": None, "stop_sequences": None, "temperature": "hot", "seed": True},
        {"thinking": {"type": "enabled"}},
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled", "token_budget": 7}},
        {"thinking": {"type": "enabled", "own": 1}},
        {"thinking": {}},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "text"}},
        {"response_format": {"type": "json_object", "schema": {"type": "object"}}},
        {"response_format": {"type": "json_object", "json_schema": {"type": "object"}, "own": 1}},
        {"response_format": {"type": "json_object", "json_schema": {"type": "object", "properties": {}}}},
        {"tools": []},
        {"tools": [{"type": "function", "function": {"name": "g", "parameters": {}, "x": 1}, "y": 2}]},
        {"tools": [{"type": "function", "function": {"name": "g"}}], "strict_tools": True},
        {"model": None, "documents": ["x"], "citation_options": {"mode": "FAST"}},
    ],
)
def test_odd_bodies_come_back_as_they_were(fields):
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}
    assert wire.dump_request(wire.load_request(body)) == body


def test_an_output_schema_is_a_response_format():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    request = ModelRequest("m", output_schema=schema)
    assert wire.dump_request(request)["response_format"] == {"type": "json_object", "json_schema": schema}
    assert wire.dump_request(request.replace(output_schema={"type": "object"}))["response_format"] == {
        "type": "json_object"
    }


def test_settings_and_tools_that_the_api_does_not_know_are_losses():
    losses = []
    settings = Settings(tool_choice="f", parallel_tool_calls=True)
    request = ModelRequest("m", tools=(ToolSpec("f"), ServerTool("web_search")), settings=settings)
    body = wire.dump_request(request, losses=losses)
    assert body["tool_choice"] == "REQUIRED"
    assert body["tools"] == [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    ]
    assert [loss.what for loss in losses] == ["web_search", "tool_choice", "parallel_tool_calls"]


def test_bodies_of_version_1_are_refused():
    with pytest.raises(errors.HistoryError, match="version 2"):
        wire.load_request({"message": "hi", "chat_history": []})


def test_the_list_of_models_is_that_of_version_1():
    provider = Registry(plug_ins=lambda: ()).get("cohere")
    assert str(URL(f"{provider.base_url}{provider.models_path}")).startswith("https://api.cohere.com/v1/models?")


# answers


def test_a_plan_then_calls_side_by_side():
    message, = fold(
        decode(
            stream(
                START,
                {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I "}}},
                {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "look"}}},
                opened(0),
                opened(1, "g", call_id=""),
                call(1, function={"arguments": '{"y":'}),
                call(0, function={"arguments": '{"x":1}'}),
                call(1, function={"arguments": "2}"}),
                {"type": "tool-call-end", "index": 0},
                {"type": "tool-call-end", "index": 1},
                {"type": "never-heard-of"},
                end("TOOL_CALL", usage={"billed_units": {"input_tokens": 3, "output_tokens": 4}}),
                b"[DONE]",
                content(0, text="too late"),
            )
        )
    )  # fmt: skip
    assert message.content == (
        ThinkingPart("I look", PLAN),
        ToolCallPart("c1", "f", {"x": 1}),
        ToolCallPart("call-1", "g", {"y": 2}, native={"cohere": {"id": None}}),
    )
    assert message.finish_reason is FinishReason.tool_calls
    assert message.usage == Usage(input_tokens=3, output_tokens=4, total_tokens=7)
    assert message.origin == Origin("", response_id="r1")


def test_usage_counts_all_tokens_and_buckets_are_parts_of_them():
    usage = {
        "billed_units": {"input_tokens": 1, "output_tokens": 2},
        "tokens": {"input_tokens": 10.0, "output_tokens": 20, "reasoning_tokens": 5, "image_tokens": 3},
        "cached_tokens": 8,
    }
    message, = fold(decode(stream(START, content(0, "content-start", type="text", text="x"), end(usage=usage))))  # fmt: skip
    assert message.usage == Usage(
        input_tokens=10, output_tokens=20, total_tokens=30, cache_read_tokens=8, reasoning_tokens=5
    )
    assert message.native["cohere:notes"]["response"]["usage"] == {
        "billed_units": {"input_tokens": 1, "output_tokens": 2},
        "tokens": {"image_tokens": 3},
    }


@pytest.mark.parametrize(
    ("told", "calls", "reason"),
    [
        ("COMPLETE", False, "stop"),
        ("COMPLETE", True, "tool_calls"),
        ("STOP_SEQUENCE", False, "stop"),
        ("MAX_TOKENS", False, "length"),
        ("TOOL_CALL", True, "tool_calls"),
        ("NEW", False, "unspecified"),
    ],
)
def test_how_an_answer_ended(told, calls, reason):
    pieces = [opened(0), {"type": "tool-call-end", "index": 0}] if calls else []
    events = decode(stream(START, *pieces, end(told)))
    (message,) = fold(events)
    assert message.finish_reason is FinishReason[reason]
    assert wire.dump_response(events)["finish_reason"] == told


@pytest.mark.parametrize(
    ("text", "reason", "state"),
    [
        ("", "TOOL_CALL", "complete"),
        ("null", "TOOL_CALL", "complete"),
        ("{}", "MAX_TOKENS", "complete"),
        ("", "MAX_TOKENS", "cut"),
        ('{"x":', "MAX_TOKENS", "cut"),
        ('{"x":', "TOOL_CALL", "invalid"),
        ("[1]", "COMPLETE", "invalid"),
    ],
)
def test_d96_arguments_may_be_none_cut_or_invalid(text, reason, state):
    events = decode(stream(START, opened(0, arguments=text), {"type": "tool-call-end", "index": 0}, end(reason)))
    (found,) = fold(events)[0].tool_calls
    assert (found.state, found.arguments) == (state, {})


def test_blocks_of_other_kinds_and_log_probabilities_are_kept():
    document = {"type": "document", "document": {"data": "x"}}
    delta = content(0, text="a")
    delta["delta"]["logprobs"] = {"text": "a"}
    (message,) = fold(
        decode(
            stream(
                START,
                content(0, "content-start", type="text", text=""),
                delta,
                content(1, "content-start", **document),
                end(),
            )
        )
    )
    assert message.text == "a" and message.content[1] == ProviderPart("document", {"cohere": document})
    assert message.native["cohere:notes"]["response"]["logprobs"] == [{"text": "a"}]


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (stream(START, content(0, text="a"), end("ERROR", error="too many requests")), "RateLimitError", "a"),
        (stream(START, end("ERROR")), "ProviderError", ""),
        (stream(START, end("TIMEOUT")), "ProviderTimeoutError", ""),
        (b'{"id": "r9", "message": "invalid api token"}', "AuthenticationError", None),
        (stream({"message": "odd"}), "ProviderError", None),
        (stream(START, b"{odd"), "DecodeError", ""),
        (stream(START, b"[1]"), "DecodeError", ""),
        (stream(START, call(3, function={"arguments": "x"})), "DecodeError", ""),
        (stream(START, opened(0, name="")), "DecodeError", ""),
        (stream(START, content(0, text=1)), "DecodeError", ""),
        (stream(START, content(0, text="a"), content(0, thinking="h")), "DecodeError", "a"),
        (stream(START, {"type": "content-start", "index": 0}), "DecodeError", ""),
        (stream(START, {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": 1}}}), "DecodeError", ""),
        (b'{"finish_reason": "COMPLETE", "message": {"content": 1}}', "DecodeError", ""),
        (b'{"finish_reason": "COMPLETE", "message": 1}', "DecodeError", None),
        (b"<html>", "DecodeError", None),
        (b"", "StreamCutError", None),
        (stream(START, content(0, text="a")) + b'data: {"type": "mess', "StreamCutError", "a"),
    ],
)  # fmt: skip
def test_what_goes_wrong_in_an_answer_is_an_error_value(data, error, text):
    *_, last = decode(data)
    assert isinstance(last, RunError) and type(last.error).__name__ == error
    partial = last.error.partial
    assert (partial.text if partial else None) == text


def test_a_block_may_begin_without_its_text():
    (message,) = fold(decode(stream(START, content(0, "content-start", type="text"), content(0, text="a"), end())))
    assert message.text == "a"


def test_ids_are_minted_by_the_caller_where_none_came():
    ids = iter("abc")
    events = decode(stream(START, opened(0, call_id=""), end("TOOL_CALL")), lambda: next(ids))
    assert (fold(events)[0].id, fold(events)[0].tool_calls[0].id) == ("a", "b")


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
arguments = st.dictionaries(words, st.integers(-99, 99) | words | st.none() | st.lists(words, max_size=2), max_size=3)


@st.composite
def answers(draw: Any) -> Message:
    """A model's message as this format can say it."""
    pieces: list[Any] = [ThinkingPart(text, PLAN) for text in draw(st.lists(words, max_size=1))]
    pieces += draw(st.lists(st.builds(TextPart, words) | st.builds(ThinkingPart, words), max_size=3))
    found = draw(st.lists(st.tuples(words, arguments), max_size=3))
    pieces += [ToolCallPart(f"c{n}", name, given) for n, (name, given) in enumerate(found)]
    told, answer = draw(st.tuples(st.integers(0, 99), st.integers(0, 99)))
    usage = Usage(input_tokens=told, output_tokens=answer, total_tokens=told + answer)
    reason = FinishReason.tool_calls if found else draw(st.sampled_from([FinishReason.stop, FinishReason.length]))
    cited = {"cohere": {"citations": [{"start": 0}]}} if draw(st.booleans()) else None
    return Message(
        Role.MODEL, tuple(pieces), origin=Origin("", response_id="r"), finish_reason=reason, usage=usage, native=cited
    )


@given(answers())
def test_what_the_encoder_writes_is_read_back(message):
    events = unfold([message])
    encoder = wire.encoder()
    streamed = b"".join(map(encoder.feed, events)) + encoder.close()
    whole = msgspec.json.encode(wire.dump_response(events))
    for written in (streamed, whole):
        (read,) = fold(decode(written))
        assert read.replace(id=None) == message


def test_the_encoder_tells_an_error_as_the_end():
    encoder = wire.encoder(id="r")
    begun = unfold([Message.model("a")])[:3]
    written = b"".join(map(encoder.feed, [*begun, RunError(errors.OverloadedError("no room"))])) + encoder.close()
    *_, last = decode(written)
    assert isinstance(last.error, errors.OverloadedError) and last.error.partial.text == "a"
    assert wire.dump_response([RunError(errors.OverloadedError("no room"))]) == {"message": "overloaded: no room"}


def test_text_after_a_plan_ends_the_plan():
    plan = {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "p"}}}
    (message,) = fold(decode(stream(START, plan, content(0, "content-start", type="text", text="a"), plan, end())))
    assert message.content == (ThinkingPart("p", PLAN), TextPart("a"), ThinkingPart("p", PLAN))


def test_usage_that_tells_one_count_has_no_total():
    (message,) = fold(decode(stream(START, end(usage={"tokens": {"output_tokens": 2}}))))
    assert message.usage == Usage(output_tokens=2)


def test_only_the_models_first_answer_is_written():
    encoder = wire.encoder()
    others = [MessageStarted("u", Role.USER), MessageStarted("b", Role.MODEL, 1), MessageStarted("d", Role.MODEL)]
    dropped = unfold([Message.model("no").replace(id="d")])[1:-1]
    told = [event for message in ("u", "b") for event in unfold([Message.model("no").replace(id=message)])[1:]]
    shown = [
        *others[:2],
        *told,
        others[2],
        MessageDropped("d"),
        *dropped,
        *unfold([Message.model("yes").replace(id="m")]),
    ]
    written = b"".join(map(encoder.feed, shown)) + encoder.close()
    assert fold(decode(written))[0].text == "yes"
    assert encoder.feed(MessageFinished("m")) == b"" == encoder.close()


# errors


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error_type": "TOO_MANY_TOKENS", "message": "size limit exceeded"}, "ContextLengthError"),
        (400, {"message": "invalid request: all elements in history must have a message"}, "InvalidRequestError"),
        (400, {"message": "blocked output: please try again"}, "ContentRefusedError"),
        (401, {"message": "invalid api token"}, "AuthenticationError"),
        (402, {"message": "pay"}, "PermissionDeniedError"),
        (403, {"message": "no"}, "PermissionDeniedError"),
        (404, {"message": "model 'x' not found, make sure"}, "ModelNotFoundError"),
        (404, {"message": "no such path"}, "InvalidRequestError"),
        (422, {"message": "unknown field"}, "InvalidRequestError"),
        (429, {"message": "trial keys are limited"}, "RateLimitError"),
        (498, {"message": "blocked"}, "ContentRefusedError"),
        (500, {"message": "internal"}, "ProviderError"),
        (502, b"<html><body>Bad Gateway</body></html>", "ProviderError"),
        (503, {"data": "busy"}, "OverloadedError"),
        (504, b"", "ProviderTimeoutError"),
        (400, b"\xff[", "InvalidRequestError"),
        (400, [], "InvalidRequestError"),
    ],
)
def test_each_fault_has_its_class_and_keeps_the_providers_words(status, body, kind):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    error = wire.load_error(status, {"X-Debug-Trace-Id": "t1", "Retry-After": "7"}, raw)
    assert type(error).__name__ == kind
    assert (error.status, error.body, error.request_id) == (status, raw, "t1")
    assert getattr(error, "retry_after", 7) == 7
    if isinstance(body, dict):
        assert body.get("message", body.get("data")) in error.message


@pytest.mark.parametrize(
    "kind", ["ContextLengthError", "ModelNotFoundError", "RateLimitError", "AuthenticationError", "ContentRefusedError"]
)
def test_an_error_that_is_written_is_read_back(kind):
    status, body = wire.dump_error(getattr(errors, kind)("so it is", request_id="r"))
    error = wire.load_error(status, {}, json.dumps(body).encode())
    assert (type(error).__name__, error.request_id) == (kind, "r")
