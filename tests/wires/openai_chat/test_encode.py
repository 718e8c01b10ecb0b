"""The encoder of the openai_chat wire: what it writes is read back as it was, by us and by the
official client."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import OverloadedError, RateLimitError
from dragoman.event import Event, PartDelta, RunError
from dragoman.fold import fold, parse_call, unfold
from dragoman.message import (
    Content,
    DataPart,
    FinishReason,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.wires import openai_chat
from support.traffic import exchanges

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
arguments = st.dictionaries(
    words, st.integers() | words | st.none() | st.lists(words, max_size=2), max_size=3
)
calls = st.builds(
    lambda name, args, spaced: parse_call(
        ToolCallPart("", name), json.dumps(args) if spaced else msgspec.json.encode(args).decode()
    ),
    words,
    arguments,
    st.booleans(),
)
details = st.builds(
    lambda text, signed: ThinkingPart(
        text,
        {
            "openai_chat": {
                "type": "reasoning.text",
                "index": 0,
                **({"signature": "s="} if signed else {}),
            }
        },
    ),
    words,
    st.booleans(),
)
images = st.builds(
    lambda data: DataPart(
        data, "image/png", native={"openai_chat:notes": {"spelling": {"field": "images"}}}
    ),
    st.binary(min_size=1, max_size=9),
)
counts = st.integers(0, 10**6)
usages = st.builds(
    lambda prompt, answer, read, thought: Usage(
        input_tokens=prompt + (read or 0),
        output_tokens=answer + (thought or 0),
        total_tokens=prompt + answer + (read or 0) + (thought or 0),
        cache_read_tokens=read,
        reasoning_tokens=thought,
    ),
    counts,
    counts,
    st.none() | counts,
    st.none() | counts,
)


@st.composite
def answers(draw: Any) -> Message:
    """A model's message as this format can say it."""
    content: list[Content] = []
    if draw(st.booleans()):
        content.append(draw(st.builds(ThinkingPart, words) | details))
    if draw(st.booleans()):
        content.append(draw(st.builds(TextPart, words)))
    content += draw(st.lists(images, max_size=2))
    content += [
        msgspec.structs.replace(call, id=f"c{n}")
        for n, call in enumerate(draw(st.lists(calls, max_size=3)))
    ]
    if draw(st.booleans()) and content:
        content.append(draw(st.builds(TextPart, words)))
        if len(content) > 1 and isinstance(content[-2], TextPart):
            content.pop()
    called = any(isinstance(part, ToolCallPart) for part in content)
    reasons = [
        FinishReason.tool_calls if called else FinishReason.stop,
        FinishReason.content_filter,
    ]
    return Message(
        Role.MODEL,
        tuple(content),
        id="m1",
        origin=Origin("", served_model="m-1", response_id="m1"),
        finish_reason=draw(st.sampled_from(reasons)),
        usage=draw(st.none() | usages),
    )


def split(events: list[Event], size: int) -> list[Event]:
    out: list[Event] = []
    for event in events:
        if isinstance(event, PartDelta):
            pieces = [event.delta[at : at + size] for at in range(0, len(event.delta), size)]
            out += [PartDelta(event.message_id, event.index, piece) for piece in pieces]
        else:
            out.append(event)
    return out


def stream(events: list[Event], **envelope: Any) -> bytes:
    encoder = openai_chat.encoder(**envelope)
    return b"".join([encoder.feed(event) for event in events]) + encoder.close()


def of(message: Message, *kinds: type) -> list[Content]:
    return [part for part in message.content if isinstance(part, kinds)]


def chunks(data: bytes) -> list[dict[str, Any]]:
    assert data.endswith(b"data: [DONE]\n\n")
    return [
        json.loads(line[6:])
        for line in data.decode().split("\n\n")
        if line and line != "data: [DONE]"
    ]


@given(answers(), st.integers(1, 5))
def test_what_is_encoded_is_decoded_to_the_same(message: Message, size: int) -> None:
    events = split(unfold([message]), size)
    ids = iter(["m1"])
    decoder = openai_chat.decoder(new_id=lambda: next(ids))
    [streamed] = fold(decoder.feed(stream(events)) + decoder.close())
    assert streamed.replace(native=None) == message


@given(answers())
def test_a_whole_answer_is_read_back_as_the_same(message: Message) -> None:
    body = json.loads(msgspec.json.encode(openai_chat.dump_response(unfold([message]))))
    [whole] = fold(openai_chat.load_response(body, new_id=lambda: "m1"))
    assert (whole.text, whole.thinking, whole.tool_calls) == (
        message.text,
        message.thinking,
        message.tool_calls,
    )
    assert of(whole, DataPart, ThinkingPart) == of(message, DataPart, ThinkingPart)
    assert (whole.finish_reason, whole.usage, whole.origin) == (
        message.finish_reason,
        message.usage,
        message.origin,
    )


@pytest.mark.slow
def test_every_recorded_answer_is_encoded_and_read_back() -> None:
    for exchange in exchanges(
        "openai_chat", "openai_compatible", "openrouter", "together", "ollama_openai"
    ):
        if exchange.endpoint != "chat" or exchange.status != 200:
            continue
        events = openai_chat.load_response(exchange.body)
        if isinstance(events[-1], RunError):
            continue
        [message] = fold(events)
        [again] = fold(openai_chat.load_response(stream(events)))
        [whole] = fold(openai_chat.load_response(openai_chat.dump_response(events)))
        for other in (again, whole):
            assert other.text == message.text, exchange
            assert other.thinking == message.thinking, exchange
            assert [(c.name, c.arguments) for c in other.tool_calls] == [
                (c.name, c.arguments) for c in message.tool_calls
            ], exchange
            assert (
                other.finish_reason is message.finish_reason
                or message.finish_reason is FinishReason.unspecified
            )
            assert other.usage == message.usage, exchange
        assert of(again, TextPart, ThinkingPart) == of(message, TextPart, ThinkingPart), exchange


def test_the_shape_that_official_clients_check() -> None:
    message = Message.model(TextPart("Hi"), ToolCallPart("c1", "f", {"x": 1})).replace(
        id="chatcmpl-1",
        finish_reason=FinishReason.tool_calls,
        usage=Usage(input_tokens=1, output_tokens=2),
    )
    events = unfold([message])
    told = chunks(stream(events, model="m", created=5))
    choices = [chunk["choices"][0] for chunk in told if chunk["choices"]]
    assert choices[0]["delta"]["role"] == "assistant"
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + [
        "tool_calls"
    ]
    assert {(chunk["id"], chunk["model"], chunk["created"]) for chunk in told} == {
        ("chatcmpl-1", "m", 5)
    }
    assert told[-1]["choices"] == []
    assert told[-1]["usage"]["total_tokens"] == 3
    assert [chunk for chunk in told if "usage" in chunk] == told[-1:]
    assert all("usage" not in chunk for chunk in chunks(stream(events, include_usage=False)))


def test_the_official_client_takes_it_strictly() -> None:
    pytest.importorskip("openai")
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    message = Message.model(
        ThinkingPart("hm"),
        ThinkingPart("", {"openai_chat": {"type": "reasoning.encrypted", "data": "x"}}),
        TextPart("Hi"),
        DataPart(b"hi", "image/png"),
        ToolCallPart("p1", "search", {"q": "x"}, run_by="provider"),
        ToolResultPart("p1", "search", "found", run_by="provider"),
        ToolCallPart("c1", "f", {"x": 1}),
        ToolCallPart("c2", "g"),
    ).replace(
        id="chatcmpl-1",
        finish_reason=FinishReason.tool_calls,
        usage=Usage(input_tokens=1, output_tokens=2, reasoning_tokens=1, cache_read_tokens=0),
        native={"openai_chat": {"annotations": [{"type": "file", "file": {}}]}},
    )
    state = ChatCompletionStreamState()
    for chunk in chunks(stream(split(unfold([message]), 2), model="m")):
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk, strict=True))
    final = state.get_final_completion()
    assert final.choices[0].message.content == "Hi"
    assert [
        (call.id, call.function.arguments) for call in final.choices[0].message.tool_calls or []
    ] == [
        ("c1", '{"x":1}'),
        ("c2", "{}"),
    ]
    body = openai_chat.dump_response(unfold([message.replace(native=None)]), model="m")
    completion = ChatCompletion.model_validate(json.loads(msgspec.json.encode(body)), strict=True)
    assert completion.choices[0].finish_reason == "tool_calls"
    assert completion.choices[0].message.content == "Hi"


def test_details_of_one_index_stay_apart() -> None:
    entries = [{"type": "reasoning.encrypted", "index": 0, "data": data} for data in ("x", "y")]
    message = Message.model(*(ThinkingPart("", {"openai_chat": entry}) for entry in entries), "a")
    for read in (stream(unfold([message])), openai_chat.dump_response(unfold([message]))):
        [again] = fold(openai_chat.load_response(read))
        details = openai_chat.dump_messages([again])[0]["reasoning_details"]
        assert [entry["data"] for entry in details] == ["x", "y"]


def test_several_messages_of_a_run_are_one_answer() -> None:
    run = [
        Message.model(TextPart("One. ")).replace(
            usage=Usage(input_tokens=1, output_tokens=1, total_tokens=2)
        ),
        Message.user("ignored"),
        Message.model(TextPart("Two.")).replace(
            usage=Usage(input_tokens=2, output_tokens=2, total_tokens=4),
            finish_reason=FinishReason.length,
        ),
    ]
    body = openai_chat.dump_response(unfold(run))
    assert body["choices"][0]["message"]["content"] == "One. Two."
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["total_tokens"] == 6


def test_what_no_delta_told_is_told_at_the_end_of_the_part() -> None:
    events = unfold([Message.model(TextPart("Hi"), ToolCallPart("c", "f", {"x": 1}))])
    quiet = [event for event in events if not isinstance(event, PartDelta)]
    [message] = fold(openai_chat.load_response(stream(quiet)))
    assert message.text == "Hi"
    assert message.tool_calls[0].arguments == {"x": 1}


def test_an_error_is_the_last_chunk_and_comes_back_as_itself() -> None:
    events = [*unfold([Message.model("so far")])[:-1], RunError(RateLimitError("Too fast"))]
    encoder = openai_chat.encoder()
    data = b"".join(encoder.feed(event) for event in events)
    assert encoder.close() == b""
    assert encoder.feed(events[0]) == b""
    last = openai_chat.load_response(data)[-1]
    assert isinstance(last, RunError)
    assert isinstance(last.error, RateLimitError)
    assert last.error.partial is not None
    assert last.error.partial.text == "so far"
    body = openai_chat.dump_response([RunError(OverloadedError("Busy"))])
    assert body["error"]["message"] == "Busy"


def test_only_candidate_0_is_told() -> None:
    other = [{"index": 1, "delta": {"content": "x"}, "finish_reason": "stop"}]
    first = [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]
    data = b"".join(
        b"data: " + json.dumps({"choices": choices}).encode() + b"\n\n"
        for choices in (first, other)
    )
    body = openai_chat.dump_response(openai_chat.load_response(data))
    assert body["choices"][0]["message"]["content"] == "a"
