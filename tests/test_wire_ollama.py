"""The ollama wire by its rules: conversation, request, decoder, encoder and errors."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import HistoryError, InvalidRequestError, OverloadedError
from dragoman.event import MessageDropped, MessageFinished, MessageStarted, RunError
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
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
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import ollama as wire

PNG = b"\x89PNG\r\n\x1a\n0000"
HERE = Origin("ollama", "http://localhost:11434", "qwen3")


def decode(*lines: Any, new_id: Any = None) -> list[Any]:
    decoder = wire.decoder(new_id=new_id)
    data = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    return [*decoder.feed(data), *decoder.close()]


def said(done=False, **message):
    return {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "", **message}, "done": done}


def call(name="f", arguments: Any = None, **fields):
    return {"function": {"name": name, "arguments": arguments or {}}, **fields}


# the conversation


def test_d132_images_are_base64_and_a_result_names_its_tool():
    messages = [
        Message.user(DataPart(PNG, "image/png"), "what is it?"),
        Message.model(ToolCallPart("a1", "look", {"x": 1})),
        Message.user(ToolResultPart("a1", "look", {"seen": True})),
    ]
    assert wire.dump_messages(messages) == [
        {"role": "user", "content": "what is it?", "images": ["iVBORw0KGgowMDAw"]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a1", "function": {"name": "look", "arguments": {"x": 1}}}],
        },
        {"role": "tool", "content": '{"seen":true}', "tool_name": "look", "tool_call_id": "a1"},
    ]
    (loaded,) = wire.load_messages(wire.dump_messages(messages)[:1])
    assert loaded.content == messages[0].content


def test_d132_a_call_without_an_id_gets_one_and_goes_back_without():
    payload = [
        {"role": "assistant", "content": "", "tool_calls": [call("f"), call("g"), call("f", {"n": 2})]},
        {"role": "tool", "content": "2", "tool_name": "g"},
        {"role": "tool", "content": "1", "tool_name": "f"},
        {"role": "tool", "content": "3", "tool_name": "f"},
    ]
    model, results = wire.load_messages(payload)
    assert [c.id for c in model.tool_calls] == ["call-0", "call-1", "call-2"]
    assert [(r.id, r.name) for r in results.tool_results] == [("call-1", "g"), ("call-0", "f"), ("call-2", "f")]
    assert wire.dump_messages([model, results]) == payload
    answer = Message.user(ToolResultPart("call-0", "f", "1"))
    assert wire.dump_messages([model, answer])[1] == payload[2]


def test_decision_12_an_id_that_the_provider_gave_stays_and_pairs():
    payload = [
        {"role": "assistant", "content": "", "tool_calls": [call(id="c9"), call(id="c8")]},
        {"role": "tool", "content": "8", "tool_name": "f", "tool_call_id": "c8"},
    ]
    model, results = wire.load_messages(payload)
    assert results.tool_results[0].id == "c8" and [c.id for c in model.tool_calls] == ["c9", "c8"]
    assert wire.dump_messages([model, results]) == payload


def test_decision_4_thinking_goes_back_to_its_origin_and_to_nobody_else():
    (message,) = wire.load_messages([{"role": "assistant", "content": "hi", "thinking": "hm"}], origin=HERE)
    assert message.thinking == "hm" and message.content == (ThinkingPart("hm"), TextPart("hi"))
    assert wire.dump_messages([message], target=HERE) == [{"role": "assistant", "content": "hi", "thinking": "hm"}]
    losses = []
    other = Origin("other", model="m")
    assert wire.dump_messages([message], target=other, losses=losses) == [{"role": "assistant", "content": "hi"}]
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [(0, 0, "thinking")]
    kin = wire.Quirks(reads=("ollama",))
    assert wire.dump_messages([message], target=other, quirks=kin)[0]["thinking"] == "hm"


@pytest.mark.parametrize(
    ("piece", "what", "told"),
    [
        (LinkPart("http://x/y.png"), "image/png http://x/y.png", "\n[media: image/png] http://x/y.png\n"),
        (DataPart(b"%PDF", "application/pdf"), "application/pdf", "\n[media: application/pdf]\n"),
        (ProviderPart("odd", {"other": {}}), "provider", ""),
    ],
)
def test_what_the_format_cannot_hold_is_a_loss(piece, what, told):
    losses = []
    assert wire.dump_messages([Message.user("a", piece)], losses=losses) == [{"role": "user", "content": "a" + told}]
    joined = [(0, None, "texts")] if told else []
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [(0, 1, what), *joined]


def test_decision_2_what_the_format_holds_in_another_order_is_a_loss():
    losses = []
    message = Message.model(ToolCallPart("1", "f"), "after", ThinkingPart("late"))
    (dumped,) = wire.dump_messages([message], losses=losses)
    assert list(dumped) == ["role", "content", "thinking", "tool_calls"]
    assert [(loss.part, loss.what) for loss in losses] == [(1, "order"), (2, "order")]
    losses = []
    wire.dump_messages([Message.user("first", ToolResultPart("1", "f", "x", is_error=True))], losses=losses)
    assert [(loss.part, loss.what) for loss in losses] == [(1, "is_error"), (1, "order")]


def test_images_of_results_go_along():
    result = ToolResultPart("1", "f", (DataPart(PNG, "image/png"), TextPart("a png")))
    payload = wire.dump_messages([Message.user(result)])
    assert payload[0]["images"] and payload[0]["content"] == "a png"
    assert wire.load_messages(payload)[0].tool_results[0].result == result.result


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": None},
        {"role": "user"},
        {"role": "user", "content": "", "images": ["no base64!"]},
        {"role": "user", "content": "x", "images": "odd"},
        {"role": "assistant", "content": "", "thinking": "", "tool_calls": []},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "", "type": "function", "function": {"name": "f"}}]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{cut"}}]},
        {"role": "tool", "content": "x"},
        {"role": "tool", "content": None, "tool_name": None, "own": 1},
        {"role": "tool", "tool_name": "f", "tool_call_id": "1"},
        {"role": "system", "content": "be brief", "name": "n"},
    ],
)
def test_odd_spellings_come_back_as_they_were(message):
    loaded = [Message.from_json(m.to_json()) for m in wire.load_messages([message])]
    assert wire.dump_messages(loaded) == [message]


def test_an_edited_call_is_sent_as_edited():
    spelled = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]}
    (message,) = wire.load_messages([spelled])
    edited = msgspec.structs.replace(message.tool_calls[0], arguments={"a": 2})
    (dumped,) = wire.dump_messages([message.replace(content=(edited,))])
    assert dumped["tool_calls"][0]["function"]["arguments"] == {"a": 2}


@pytest.mark.parametrize("payload", ["x", [1], [{"role": "robot", "content": ""}], [{"role": "user", "content": [1]}]])
def test_what_is_no_conversation_is_refused(payload):
    with pytest.raises(HistoryError):
        wire.load_messages(payload)


# the request


def test_settings_go_to_options_and_the_rest_of_options_stays():
    settings = Settings(temperature=0.5, max_tokens=9, top_k=3, seed=1, stop=("a",), reasoning="off")
    request = ModelRequest(
        "qwen3", (Message.user("hi"),), settings=settings, options={"options": {"num_ctx": 8192}, "keep_alive": "5m"}
    )
    body = wire.dump_request(request)
    assert body == {
        "model": "qwen3",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": False,
        "think": False,
        "options": {"temperature": 0.5, "num_predict": 9, "top_k": 3, "seed": 1, "stop": ["a"], "num_ctx": 8192},
        "keep_alive": "5m",
    }
    assert wire.load_request(body) == request
    assert wire.dump_http(request).path == "/api/chat" and wire.dump_http(request).body == body


@pytest.mark.parametrize(
    ("model", "reasoning", "think"),
    [
        ("qwen3:4b", "off", False),
        ("qwen3:4b", "low", True),
        ("qwen3:4b", 100, True),
        ("gpt-oss:20b", "high", "high"),
        ("gpt-oss:20b", 100, "low"),
        ("gpt-oss:20b", 5000, "medium"),
        ("gpt-oss:20b", 50000, "high"),
    ],
)
def test_think_is_a_level_for_the_models_that_have_them(model, reasoning, think):
    assert wire.dump_request(ModelRequest(model, settings=Settings(reasoning=reasoning)))["think"] == think


@pytest.mark.parametrize("model", ["qwen3", "gpt-oss"])
@pytest.mark.parametrize("think", [True, False, "low", "medium", "high", "odd", None])
def test_every_think_comes_back_as_it_was(model, think):
    body = {"model": model, "messages": [], "stream": True, "think": think}
    request = wire.load_request(body)
    assert wire.dump_request(request) == body
    assert (request.settings.reasoning is None) == (think in ("odd", None))
    changed = wire.dump_request(request.replace(settings=Settings(reasoning="off")))
    assert think in ("odd", None) or changed["think"] is False


def test_d132_an_output_schema_is_format_with_tools_too():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    request = ModelRequest("m", tools=(ToolSpec("f"),), output_schema=schema)
    body = wire.dump_request(request)
    assert body["format"] == schema
    assert body["tools"] == [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    ]
    assert wire.dump_request(request.replace(output_schema={"type": "object"}))["format"] == "json"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stream": True},
        {"stream": False, "format": "json"},
        {"format": {"type": "object"}},
        {"format": ""},
        {"options": {}},
        {"options": {"temperature": None, "num_ctx": 1, "stop": "x", "seed": True}},
        {"tools": []},
        {
            "tools": [
                {"function": {"name": "f"}},
                {"type": "function", "function": {"name": "g", "parameters": {}, "x": 1}},
            ]
        },
        {"tools": [{"type": "own", "a": 1}, {"type": "bare"}]},
        {"model": None, "keep_alive": 0, "truncate": False, "stream": None},
    ],
)
def test_odd_bodies_come_back_as_they_were(fields):
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}
    assert wire.dump_request(wire.load_request(body)) == body


def test_the_api_streams_where_it_is_not_told():
    assert wire.load_request({"model": "m", "messages": []}).stream
    assert wire.dump_request(ModelRequest("m"))["stream"] is False


def test_settings_and_tools_that_the_api_does_not_know_are_losses():
    losses = []
    settings = Settings(tool_choice="required", parallel_tool_calls=True)
    body = wire.dump_request(ModelRequest("m", tools=(ServerTool("web_search"),), settings=settings), losses=losses)
    assert body == {"model": "m", "messages": [], "stream": False}
    assert [loss.what for loss in losses] == ["web_search", "tool_choice", "parallel_tool_calls"]


# answers


def test_thinking_text_and_calls_over_several_lines():
    events = decode(
        said(thinking="h"),
        said(thinking="m"),
        said(content="a"),
        said(content="b"),
        said(tool_calls=[call("f", {"x": 1}, id="c1")]),
        said(tool_calls=[call("f", {"x": 2})]),
        said(done=True) | {"done_reason": "stop", "eval_count": 3},
        said(content="too late"),
    )
    (message,) = fold(events)
    own = {"ollama": {"id": None}}
    assert message.content == (
        ThinkingPart("hm"),
        TextPart("ab"),
        ToolCallPart("c1", "f", {"x": 1}),
        ToolCallPart("call-0", "f", {"x": 2}, native=own),
    )
    assert message.finish_reason is FinishReason.tool_calls
    assert message.usage == Usage(output_tokens=3)


def test_decision_2_text_on_both_sides_of_a_call_stays_there():
    (message,) = fold(decode(said(content="a"), said(tool_calls=[call()]), said(content="b"), said(done=True)))
    assert [type(part).__name__ for part in message.content] == ["TextPart", "ToolCallPart", "TextPart"]


def test_ids_are_minted_by_the_caller_where_none_came():
    ids = iter("abc")
    (message,) = fold(decode(said(tool_calls=[call(), call()]), said(done=True), new_id=lambda: next(ids)))
    assert (message.id, [c.id for c in message.tool_calls]) == ("a", ["b", "c"])


@pytest.mark.parametrize(
    ("told", "calls", "reason"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("length", True, "length"),
        ("load", False, "unspecified"),
        ("unload", False, "unspecified"),
        (None, True, "tool_calls"),
        (None, False, "unspecified"),
    ],
)
def test_how_an_answer_ended(told, calls, reason):
    line = said(done=True, **({"tool_calls": [call()]} if calls else {}))
    (message,) = fold(decode(line | ({"done_reason": told} if told else {})))
    assert message.finish_reason is FinishReason[reason]
    kept = (message.native or {}).get("ollama:notes", {}).get("response", {}).get("done_reason")
    assert kept == (told if told in ("load", "unload") else None)


def test_log_probabilities_of_all_lines_are_kept():
    events = decode(said(content="a") | {"logprobs": [1]}, said(content="b") | {"logprobs": [2]}, said(done=True))
    (message,) = fold(events)
    assert message.native["ollama:notes"]["response"]["logprobs"] == [1, 2]


def test_a_whole_answer_over_several_lines_is_read():
    body = json.dumps(said(done=True, content="hé") | {"done_reason": "stop"}, indent=2).encode()
    assert fold(decode(body))[0].text == "hé"
    assert fold(decode(body[:-1]))[:1] == [] and type(decode(body[:-1])[-1].error).__name__ == "StreamCutError"


@pytest.mark.parametrize(
    ("lines", "error", "text"),
    [
        ([said(content="a"), {"error": "server busy, please try again"}], "OverloadedError", "a"),
        ([{"error": {"message": "an odd one"}}], "ProviderError", None),
        ([{"error": "no", "status_code": 401}], "AuthenticationError", None),
        ([said(content="a"), b"{cut", b"\n"], "DecodeError", "a"),
        ([b"<html>"], "DecodeError", None),
        ([b"{malformed: <<<"], "DecodeError", None),
        ([said(content="a"), b"[1]\n"], "DecodeError", "a"),
        ([b'{"x": 1}\n'], "DecodeError", None),
        ([{"message": 1}], "DecodeError", None),
        ([said(content=["a"])], "DecodeError", ""),
        ([said(content="a"), said(tool_calls=[{"function": {}}])], "DecodeError", "a"),
        ([], "StreamCutError", None),
        ([said(content="a"), b'{"model": "m", "cre'], "StreamCutError", "a"),
    ],
)
def test_what_goes_wrong_in_an_answer_is_an_error_value(lines, error, text):
    *_, last = decode(*lines)
    assert isinstance(last, RunError) and type(last.error).__name__ == error
    partial = last.error.partial
    assert (partial.text if partial else None) == text


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
arguments = st.dictionaries(words, st.integers(-99, 99) | words | st.none() | st.lists(words, max_size=2), max_size=3)


@st.composite
def answers(draw: Any) -> Message:
    """A model's message as this format can say it."""
    content: list[Any] = [ThinkingPart(text) for text in draw(st.lists(words, max_size=1))]
    content += [TextPart(text) for text in draw(st.lists(words, max_size=1))]
    found = draw(st.lists(st.tuples(words, arguments), max_size=3))
    content += [ToolCallPart(f"c{n}", name, given) for n, (name, given) in enumerate(found)]
    counts = draw(st.tuples(st.integers(0, 99), st.integers(0, 99)))
    usage = Usage(input_tokens=counts[0], output_tokens=counts[1], total_tokens=sum(counts))
    reason = FinishReason.tool_calls if found else draw(st.sampled_from([FinishReason.stop, FinishReason.length]))
    return Message(Role.MODEL, tuple(content), origin=Origin("", served_model="m"), finish_reason=reason, usage=usage)


@given(answers())
def test_what_the_encoder_writes_is_read_back(message):
    events = unfold([message])
    encoder = wire.encoder()
    streamed = b"".join(map(encoder.feed, events)) + encoder.close()
    whole = msgspec.json.encode(wire.dump_response(events))
    for written in (streamed, whole):
        (read,) = fold(decode(written))
        assert read.replace(id=None, native=None) == message


def test_the_encoder_tells_an_error_as_a_line():
    encoder = wire.encoder(model="m", created_at="t")
    begun = unfold([Message.model("a")])[:3]
    written = b"".join(map(encoder.feed, [*begun, RunError(OverloadedError("no room"))])) + encoder.close()
    (*_, last) = decode(written)
    assert isinstance(last.error, OverloadedError) and "no room" in last.error.message
    assert json.loads(written.splitlines()[0]) == {
        "model": "m", "created_at": "t", "message": {"role": "assistant", "content": "a"}, "done": False,
    }  # fmt: skip
    assert wire.dump_response([RunError(OverloadedError("no room"))]) == {"error": "server busy: no room"}


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
        (400, {"error": "prompt too long; exceeded max context length by 9 tokens"}, "ContextLengthError"),
        (400, {"error": "the input length exceeds the context length"}, "ContextLengthError"),
        (400, {"error": "registry.ollama.ai/library/gemma:2b does not support tools"}, "InvalidRequestError"),
        (400, {"error": "odd"}, "InvalidRequestError"),
        (401, {"error": "unauthorized"}, "AuthenticationError"),
        (402, {"error": "pay"}, "PermissionDeniedError"),
        (403, {"error": "no"}, "PermissionDeniedError"),
        (404, {"error": "model 'x' not found"}, "ModelNotFoundError"),
        (404, {"error": 'model "x" not found, try pulling it first'}, "ModelNotFoundError"),
        (404, b"404 page not found", "InvalidRequestError"),
        (429, {"error": "you have reached your usage limit"}, "RateLimitError"),
        (500, {"error": "model requires more system memory (9 GiB)"}, "ProviderError"),
        (502, b"<html><body>Bad Gateway</body></html>", "ProviderError"),
        (503, {"error": "server busy, please try again. maximum pending requests exceeded"}, "OverloadedError"),
        (500, b"", "ProviderError"),
        (400, b"\xff[", "InvalidRequestError"),
    ],
)
def test_each_fault_has_its_class_and_keeps_the_servers_words(status, body, kind):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    error = wire.load_error(status, {"X-Request-Id": "r1"}, raw)
    assert type(error).__name__ == kind
    assert (error.status, error.body, error.request_id) == (status, raw, "r1")
    if isinstance(body, dict):
        assert body["error"].rstrip(".") in error.message


def test_how_long_to_wait_is_told_in_seconds_or_by_dates():
    def wait(**headers):
        return wire.load_error(429, {k.replace("_", "-"): v for k, v in headers.items()}, b"{}").retry_after

    later = {"retry_after": "Wed, 21 Oct 2026 07:28:30 GMT"}
    assert wait(retry_after="7") == 7
    assert wait(**later, date="Wed, 21 Oct 2026 07:28:00 GMT") == 30
    assert (wait(**later), wait(retry_after="soon"), wait()) == (None, None, None)


@pytest.mark.parametrize("kind", ["ContextLengthError", "ModelNotFoundError", "RateLimitError", "AuthenticationError"])
def test_an_error_that_is_written_is_read_back(kind):
    import dragoman.errors as errors

    status, body = wire.dump_error(getattr(errors, kind)("so it is"))
    assert type(wire.load_error(status, {}, json.dumps(body).encode())).__name__ == kind
    assert wire.dump_error(InvalidRequestError("so it is")) == (400, {"error": "so it is"})
