"""Answers on the mistral wire, read and written: pieces of calls, thinking, candidates, errors and
cuts."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import (
    AuthenticationError,
    DecodeError,
    InvalidRequestError,
    RateLimitError,
    StreamCutError,
)
from dragoman.event import Event, MessageFinished, MessageStarted, PartDelta, PartFinished, RunError
from dragoman.fold import fold, parse_call, unfold
from dragoman.message import (
    Content,
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
from dragoman.wires import mistral
from support.traffic import exchanges

DONE = b"data: [DONE]\n\n"
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def chunk(delta: Any, finish: str | None = None, index: int = 0, **more: Any) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return (
        b"data: "
        + json.dumps({"id": "r", "model": "m-1", "choices": [choice], **more}).encode()
        + b"\n\n"
    )


def called(text: Any = "", *, name: str = "", **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"function": {"name": name, "arguments": text}, **more}]}


def thought(*items: Any, **more: Any) -> dict[str, Any]:
    said = [{"type": "text", "text": item} if isinstance(item, str) else item for item in items]
    return {"content": [{"type": "thinking", "thinking": said, **more}]}


def read(*pieces: bytes) -> Message:
    events = events_of(*pieces)
    assert not [event for event in events if isinstance(event, RunError)], events
    [message] = fold(events)
    return message


def events_of(*pieces: bytes) -> list[Event]:
    decoder = mistral.decoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()


def whole(**message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return json.dumps({"id": "r", "model": "m-1", "choices": [choice]}).encode()


def failed(events: list[Event]) -> Any:
    assert isinstance(events[-1], RunError)
    return events[-1].error


# ------------------------------------------------------------------ text and thinking


def test_text_by_strings_and_by_chunks_is_one_text() -> None:
    message = read(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": [{"type": "text", "text": "a"}]}),
        chunk({"content": "b"}, p="abc"),
        chunk({"content": None}),
        chunk({"content": "c"}, "stop"),
        DONE,
    )
    assert message.content == (TextPart("abc"),)
    assert message.finish_reason is FinishReason.stop
    assert message.origin == Origin("", served_model="m-1", response_id="r")
    assert message.native is None


def test_thinking_is_one_part_until_something_else_comes_or_it_ends() -> None:
    reference = {"type": "reference", "reference_ids": [1]}
    message = read(
        chunk(thought("a")),
        chunk(thought("b", closed=True)),
        chunk(thought(reference, "c")),
        chunk(thought(signature="s")),
        chunk(thought("d")),
        chunk(thought()),
        chunk(thought("e", closed=False)),
        chunk({"content": "f"}),
        chunk({"content": [reference]}),
        chunk({"content": "g"}, "stop"),
        DONE,
    )
    fields, notes = {"closed": True, "signature": "s"}, {"spelling": {"items": [2, reference, 1]}}
    assert message.content == (
        ThinkingPart("abc", {"mistral": fields, "mistral:notes": notes}),
        ThinkingPart("d"),
        ThinkingPart("e", {"mistral": {"closed": False}}),
        TextPart("f"),
        ProviderPart("reference", {"mistral": reference}),
        TextPart("g"),
    )


def test_thinking_that_was_streamed_goes_back_as_it_was() -> None:
    reference = {"type": "reference", "reference_ids": [1]}
    message = read(
        chunk(thought("ab", reference, "c", signature="s")), chunk({"content": "d"}, "stop"), DONE
    )
    [sent] = mistral.dump_messages([message])
    said = [{"type": "text", "text": "ab"}, reference, {"type": "text", "text": "c"}]
    assert sent["content"][0] == {"type": "thinking", "thinking": said, "signature": "s"}


def test_separate_chunks_of_a_whole_answer_stay_separate() -> None:
    content = [*thought("a", "b", signature="s")["content"], *thought("c")["content"], {"type": "text", "text": "d"}, {"type": "text", "text": "e"}]  # fmt: skip
    message = read(whole(content=content, tool_calls=None))
    assert [type(part) for part in message.content] == [
        ThinkingPart,
        ThinkingPart,
        TextPart,
        TextPart,
    ]
    assert mistral.dump_messages([message])[0]["content"] == content
    empty = [{"type": "text", "text": ""}, {"type": "thinking", "thinking": []}]
    assert [part for part in read(whole(content=empty)).content if isinstance(part, TextPart)] == []


# ------------------------------------------------------------------ calls


def calls(message: Message) -> list[tuple[str, str, dict[str, Any], str]]:
    return [(call.id, call.name, call.arguments, call.state) for call in message.tool_calls]


def test_calls_come_whole_or_in_pieces() -> None:
    message = read(
        chunk(called('{"a":', name="f", id="c1", index=0)),
        chunk(called("1}", index=0, id="null")),
        chunk(called({"b": 2}, name="g", id="c2", index=1)),
        chunk(
            {"content": ""},
            "tool_calls",
            usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        ),
        DONE,
    )
    assert calls(message) == [("c1", "f", {"a": 1}, "complete"), ("c2", "g", {"b": 2}, "complete")]
    assert message.usage == Usage(input_tokens=3, output_tokens=4, total_tokens=7)
    assert message.finish_reason is FinishReason.tool_calls


def test_decision_13_a_piece_belongs_to_its_index_or_to_its_id() -> None:
    by_id = read(
        chunk(called('{"a":', name="f", id="c1")),
        chunk(called('{"b":', name="g", id="c2")),
        chunk(called("1}", id="c1")),
        chunk(called("2}", id="c2"), "tool_calls"),
        DONE,
    )
    assert calls(by_id) == [("c1", "f", {"a": 1}, "complete"), ("c2", "g", {"b": 2}, "complete")]
    one_index = read(
        chunk(called("{}", name="f", index=0)),
        chunk(called("{}", name="f", index=0)),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert [call.name for call in one_index.tool_calls] == ["f", "f"]
    assert one_index.tool_calls[0].native == {"mistral": {"id": None}}
    repeated = read(
        chunk(called('{"a"', name="f", id="c", index=0)),
        chunk(called(":1}", name="f", id="c", index=0), "stop"),
        DONE,
    )
    assert calls(repeated) == [("c", "f", {"a": 1}, "complete")]
    assert repeated.finish_reason is FinishReason.tool_calls
    another = read(chunk(called("{}", name="f", id="a", index=0)), chunk(called("{}", name="g", id="b", index=0), "stop"), DONE)  # fmt: skip
    assert [call.id for call in another.tool_calls] == ["a", "b"]


@pytest.mark.parametrize("piece", [called("{}", index=3), called("{}"), called("{}", id="c9")])
def test_decision_13_a_piece_of_no_call_is_an_error_value(piece: dict[str, Any]) -> None:
    error = failed(events_of(chunk({"content": "a"}), chunk(piece)))
    assert isinstance(error, DecodeError)
    assert error.partial is not None
    assert error.partial.text == "a"


@pytest.mark.parametrize("finish", ["length", "model_length"])
@pytest.mark.parametrize(("text", "state"), [("", "cut"), ('{"a', "cut"), ("{}", "complete")])
def test_a_call_at_the_limit_is_cut(finish: str, text: str, state: str) -> None:
    message = read(chunk(called(text, name="f", id="c", index=0), finish), DONE)
    assert calls(message) == [("c", "f", {}, state)]
    assert message.finish_reason is FinishReason.length
    original = {"finish_reason": "model_length"} if finish == "model_length" else None
    assert (message.native or {}).get("mistral:notes", {}).get("response") == original


def test_empty_arguments_are_none_and_broken_ones_invalid() -> None:
    assert calls(read(chunk(called("", name="f", id="c"), "tool_calls"), DONE)) == [
        ("c", "f", {}, "complete")
    ]
    assert calls(read(chunk(called("[1]", name="f", id="c"), "tool_calls"), DONE)) == [
        ("c", "f", {}, "invalid")
    ]


def test_decision_22_what_the_provider_ran_is_a_call_and_its_result() -> None:
    messages = [
        {
            "role": "assistant",
            "content": "I look.",
            **called('{"q":1}', name="web_search", id="c1"),
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "assistant", "content": "It is."},
    ]
    body = json.dumps(
        {"choices": [{"index": 0, "finish_reason": "stop", "messages": messages}]}
    ).encode()
    message = read(body)
    call = ToolCallPart("c1", "web_search", {"q": 1}, run_by="provider")
    result = ToolResultPart("c1", "web_search", "found", run_by="provider")
    assert message.content == (TextPart("I look."), call, result, TextPart("It is."))
    assert message.finish_reason is FinishReason.stop
    streamed = read(*[chunk(one) for one in messages], chunk({}, "stop"), DONE)
    assert streamed.content == message.content
    unknown = {"role": "tool", "tool_call_id": "c9", "content": "x"}
    assert read(chunk({"content": "a"}), chunk(unknown), chunk({}, "stop"), DONE).text == "a"


# ------------------------------------------------------------------ around the answer


def test_candidates_are_kept_apart_and_usage_is_told_once() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    events = events_of(
        chunk({"content": "a"}, index=0),
        chunk({"content": "x"}, index=1),
        chunk({"content": "y"}, "stop", index=1),
        chunk({"content": "b"}, "stop", index=0, usage=usage),
        chunk({"content": "c"}, index=0),
        DONE,
    )
    assert [event.candidate for event in events if isinstance(event, MessageStarted)] == [0, 1]
    assert [message.text for message in fold(events)] == ["abc"]
    told = [event.usage for event in events if isinstance(event, MessageFinished)]
    assert told == [Usage(input_tokens=5, output_tokens=2, total_tokens=7), None]


@pytest.mark.parametrize(
    ("told", "usage", "beside"),
    [
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 2}}, {"input_tokens": 9, "cache_read_tokens": 4}, {"prompt_tokens_details": {"audio_tokens": 2}}),
        ({"prompt_tokens": 9, "num_cached_tokens": 3}, {"input_tokens": 9, "cache_read_tokens": 3}, None),
        ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 5}}, {"output_tokens": 9, "reasoning_tokens": 5}, None),
        ({"prompt_audio_seconds": 8, "service_tier": "standard"}, None, {"prompt_audio_seconds": 8, "service_tier": "standard"}),
        ({"prompt_tokens": None, "completion_tokens": True}, None, None),
    ],
)  # fmt: skip
def test_usage_in_every_spelling(told: dict[str, Any], usage: Any, beside: Any) -> None:
    message = read(
        chunk({"content": "a"}, usage={"prompt_tokens": None}), chunk({}, "stop", usage=told), DONE
    )
    assert message.usage == (None if usage is None else Usage(**usage))
    if beside is not None:
        assert message.native["mistral:notes"]["response"]["usage"] == beside


def test_what_stands_around_is_kept_as_metadata_and_never_sent() -> None:
    logprobs = {"content": [{"token": "a", "logprob": -1}]}
    first = json.loads(chunk({"content": "a", "metadata": {"x": 1}}, created=7)[6:])
    first["choices"][0] |= {"logprobs": logprobs, "odd": 1}
    message = read(b"data: " + json.dumps(first).encode() + b"\n\n", chunk({}, "error"), DONE)
    notes = message.native["mistral:notes"]
    assert notes["response"] == {"created": 7, "logprobs": logprobs, "odd": 1}
    assert notes["message"] == {"metadata": {"x": 1}}
    assert message.finish_reason is FinishReason.error
    assert mistral.dump_messages([message]) == [{"role": "assistant", "content": "a"}]


def test_an_unknown_reason_to_stop_is_kept() -> None:
    message = read(chunk({"content": "a"}, "sleepy"), DONE)
    assert message.finish_reason is FinishReason.unspecified
    assert message.native == {"mistral:notes": {"response": {"finish_reason": "sleepy"}}}


def test_ids_are_minted_or_made_from_the_place() -> None:
    ids = iter(["m", "c"])
    decoder = mistral.decoder(new_id=lambda: next(ids))
    events = decoder.feed(chunk(called("{}", name="f"), "tool_calls") + DONE) + decoder.close()
    [message] = fold(events)
    assert (message.id, message.tool_calls[0].id) == ("m", "c")
    plain = read(chunk(called("{}", name="f"), "tool_calls"), DONE)
    assert (plain.id, plain.tool_calls[0].id) == ("message-0", "call-0")


# ------------------------------------------------------------------ errors and cuts


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (
            {"object": "error", "message": "Rate limit exceeded", "type": "x", "code": None},
            RateLimitError,
        ),
        ({"detail": "Invalid API Key"}, AuthenticationError),
        (
            {"error": {"message": "bad", "type": "invalid_request_error", "raw_status_code": 400}},
            InvalidRequestError,
        ),
        ({"message": "Unauthorized"}, AuthenticationError),
        ({"id": "x"}, DecodeError),
        ([], DecodeError),
        ({"choices": 7}, DecodeError),
        ({"choices": [7]}, DecodeError),
    ],
)
def test_an_error_in_the_place_of_an_answer(body: Any, kind: type) -> None:
    data = json.dumps(body).encode()
    assert type(failed(events_of(data))) is kind
    if body != {"id": "x"}:
        error = failed(
            events_of(
                chunk({"content": "a"}), b"data: " + data + b"\n\n", chunk({"content": "z"}), DONE
            )
        )
        assert type(error) is kind
        assert error.partial.text == "a"


def test_bytes_that_are_no_json_are_an_error_value() -> None:
    error = failed(events_of(chunk({"content": "a"}), b"data: {oops}\n\n"))
    assert isinstance(error, DecodeError)
    assert error.body == b"{oops}"


@pytest.mark.parametrize("rest", [b"", b'data: {"choi', b"data: [DO"])
def test_a_stream_without_its_end_is_cut(rest: bytes) -> None:
    events = events_of(chunk({"content": "a"}), chunk(called('{"a', name="f", id="c")), rest)
    error = failed(events)
    assert isinstance(error, StreamCutError)
    assert error.partial.tool_calls[0].state == "cut"
    assert fold(events)[0].finish_reason is FinishReason.error
    assert isinstance(failed(events_of()), StreamCutError)


def test_an_answer_that_gave_its_reason_needs_no_end_mark() -> None:
    assert read(chunk({"content": "a"}), chunk({}, "stop")).text == "a"
    events = events_of(chunk({"content": "a"}, "stop"), chunk({"content": "b"}, index=1))
    assert isinstance(failed(events), StreamCutError)
    assert [event.candidate for event in events if isinstance(event, MessageStarted)] == [0, 1]


# ------------------------------------------------------------------ writing


arguments = st.dictionaries(words, st.integers() | words | st.none(), max_size=3)
made_calls = st.builds(
    lambda name, args, spaced: parse_call(
        ToolCallPart("", name), json.dumps(args) if spaced else msgspec.json.encode(args).decode()
    ),
    words,
    arguments,
    st.booleans(),
)
thoughts = st.builds(ThinkingPart, words) | st.builds(lambda text: ThinkingPart(text, {"mistral": {"signature": "s"}}), words)  # fmt: skip
references = st.just(
    ProviderPart("reference", {"mistral": {"type": "reference", "reference_ids": [1]}})
)
usages = st.builds(Usage, **{n: st.integers(0, 99) for n in ("input_tokens", "output_tokens", "total_tokens", "cache_read_tokens", "reasoning_tokens")})  # fmt: skip


@st.composite
def answers(draw: Any) -> Message:
    """A model's message as this format can say it: in a stream two texts in a row are one."""
    content: list[Content] = []
    for piece in draw(st.lists(thoughts | st.builds(TextPart, words) | references, max_size=4)):
        if not (content and isinstance(piece, TextPart) and isinstance(content[-1], TextPart)):
            content.append(piece)
    content += [
        msgspec.structs.replace(c, id=f"c{n}")
        for n, c in enumerate(draw(st.lists(made_calls, max_size=3)))
    ]
    called = any(isinstance(part, ToolCallPart) for part in content)
    return Message(
        Role.MODEL,
        tuple(content),
        id="m1",
        origin=Origin("", served_model="m-1", response_id="m1"),
        finish_reason=draw(st.sampled_from([FinishReason.tool_calls if called else FinishReason.stop, FinishReason.length])),
        usage=draw(st.none() | usages),
    )  # fmt: skip


def stream(events: list[Event], **envelope: Any) -> bytes:
    encoder = mistral.encoder(**envelope)
    return b"".join([encoder.feed(event) for event in events]) + encoder.close()


@given(answers(), st.integers(1, 5))
def test_what_is_encoded_is_decoded_to_the_same(message: Message, size: int) -> None:
    events: list[Event] = []
    for event in unfold([message]):
        if isinstance(event, PartDelta):
            events += [PartDelta(event.message_id, event.index, event.delta[at : at + size]) for at in range(0, len(event.delta), size)]  # fmt: skip
        else:
            events.append(event)
    [streamed] = fold(mistral.load_response(stream(events), new_id=lambda: "m1"))
    assert streamed.replace(native=None) == message


@given(answers())
def test_a_whole_answer_is_read_back_as_the_same(message: Message) -> None:
    body = json.loads(msgspec.json.encode(mistral.dump_response(unfold([message]))))
    [read_back] = fold(mistral.load_response(body, new_id=lambda: "m1"))
    assert read_back.replace(native=None) == message


def test_every_recorded_answer_is_encoded_and_read_back() -> None:
    for exchange in exchanges("mistral"):
        if exchange.endpoint != "chat" or exchange.status != 200:
            continue
        events = mistral.load_response(exchange.body)
        [message] = fold(events)
        for again in (stream(events), mistral.dump_response(events)):
            [told] = fold(mistral.load_response(again, new_id=lambda message=message: message.id))
            if isinstance(again, dict) or "items" not in str(message.native):
                assert (told.text, told.thinking, told.tool_calls) == (
                    message.text,
                    message.thinking,
                    message.tool_calls,
                )
            assert (told.usage, told.finish_reason) == (message.usage, message.finish_reason), (
                exchange
            )


@pytest.mark.slow
def test_the_official_client_reads_what_is_written() -> None:
    client = pytest.importorskip("mistralai.client")
    httpx = pytest.importorskip("httpx2")
    call = ToolCallPart("abcdefgh1", "f", {"a": 1})
    message = Message(
        Role.MODEL,
        (ThinkingPart("hm"), TextPart("hi"), call),
        id="m1",
        finish_reason=FinishReason.tool_calls,
        usage=Usage(input_tokens=3, output_tokens=4, total_tokens=7),
    )
    events = unfold([message])
    bodies = {
        "text/event-stream": stream(events, model="m"),
        "application/json": msgspec.json.encode(mistral.dump_response(events, model="m")),
    }

    def answer(request: Any) -> Any:
        kind = (
            "text/event-stream"
            if b'"stream":true' in request.read().replace(b" ", b"")
            else "application/json"
        )
        return httpx.Response(200, headers={"content-type": kind}, content=bodies[kind])

    sdk = client.Mistral(api_key="none", client=httpx.Client(transport=httpx.MockTransport(answer)))
    asked = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    said = sdk.chat.complete(**asked)
    [choice] = said.choices
    assert (choice.message.content[0].thinking[0].text, choice.message.content[1].text) == (
        "hm",
        "hi",
    )
    assert (choice.message.tool_calls[0].id, choice.message.tool_calls[0].function.arguments) == (
        "abcdefgh1",
        '{"a":1}',
    )
    assert (said.usage.total_tokens, choice.finish_reason) == (7, "tool_calls")
    chunks = [event.data for event in sdk.chat.stream(**asked)]
    deltas = [one.choices[0].delta for one in chunks]
    assert [d.tool_calls[0].function.name for d in deltas if d.tool_calls] == ["f"]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert chunks[-1].usage.total_tokens == 7


def test_what_is_written_is_the_ordinary_form() -> None:
    events = unfold([Message.model("hi").replace(id="m1", finish_reason=FinishReason.stop)])
    first, second, last, done = stream(events, id="x", created=1).strip().split(b"\n\n")
    envelope = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": ""}
    start = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    assert json.loads(first[6:]) == {**envelope, "choices": [start]}
    assert json.loads(second[6:])["choices"][0]["delta"] == {"content": "hi"}
    assert json.loads(last[6:])["choices"][0] == {
        "index": 0,
        "delta": {"content": ""},
        "finish_reason": "stop",
    }
    assert done == b"data: [DONE]"
    body = mistral.dump_response(events)
    assert body["choices"][0]["message"] == {
        "role": "assistant",
        "content": "hi",
        "tool_calls": None,
    }


def test_an_error_is_written_as_one() -> None:
    events: list[Event] = [
        *unfold([Message.model("hi")])[:3],
        RunError(RateLimitError("slow down")),
    ]
    encoder = mistral.encoder()
    written = b"".join([encoder.feed(event) for event in events])
    assert encoder.feed(events[0]) == encoder.close() == b""
    assert isinstance(failed(mistral.load_response(written)), RateLimitError)
    assert mistral.dump_response(events)["object"] == "error"


def test_only_the_model_of_candidate_0_is_told_and_two_messages_are_one_answer() -> None:
    first, second = Message.model("a").replace(id="1", usage=Usage(input_tokens=1)), Message.model("b").replace(id="2", usage=Usage(input_tokens=2))  # fmt: skip
    other = [
        MessageStarted("9", Role.MODEL, 1),
        PartFinished("9", 0, TextPart("no")),
        MessageFinished("9"),
    ]
    events = [*unfold([Message.user("q"), first, second]), *other]
    [told] = fold(mistral.load_response(stream(events)))
    assert told.text == "ab"
    assert told.usage == Usage(input_tokens=3, output_tokens=0, total_tokens=3)
    assert [
        b["text"] for b in mistral.dump_response(events)["choices"][0]["message"]["content"]
    ] == ["a", "b"]


def test_the_whole_answer_of_a_run_has_the_id_of_its_stream() -> None:
    first, last = (
        Message.model(text).replace(id=text, origin=Origin("mistral", "m", response_id=f"r-{text}"))
        for text in "ab"
    )
    events = unfold([first, last])
    assert mistral.dump_response(events)["id"] == read(stream(events)).origin.response_id == "r-a"  # type: ignore[union-attr]
