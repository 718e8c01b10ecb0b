"""Answers of the wires that share the shape of Chat Completions, written again as they came; and
what was retracted."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman import wires
from dragoman.codec.response_state import ResponseState, drop_retracted
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartStarted,
)
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from dragoman.request import ModelRequest

NAMES = ("openai_chat", "mistral")
named = pytest.mark.parametrize("name", NAMES)
DONE = b"data: [DONE]\n\n"
CHAT = wires.get("openai_chat")


def chunk(delta: dict[str, Any], finish: str | None = None, **of_choice: Any) -> bytes:
    body = {
        "id": of_choice.pop("id", "r1"),
        "choices": [{"delta": delta, "finish_reason": finish, **of_choice}],
    }
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def read(name: str, *pieces: bytes) -> Message:
    decoder = wires.get(name).decoder()
    (message,) = fold(
        [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()
    )
    return message


def whole(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": "a", **message}
    return {
        "id": "r1",
        "created": 7,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }


def stored(message: Message) -> list[Event]:
    return unfold([Message.from_json(message.to_json())])


def streamed(name: str, events: list[Event]) -> bytes:
    encoder = wires.get(name).encoder()
    return b"".join(map(encoder.feed, events)) + encoder.close()


def deltas(data: bytes) -> list[dict[str, Any]]:
    lines = [
        json.loads(line[6:])
        for line in data.decode().split("\n\n")
        if line and line != "data: [DONE]"
    ]
    return [choice["delta"] for line in lines for choice in line["choices"]]


# ------------------------------------------------------------------ what an answer says of itself


@named
def test_the_id_of_the_first_chunk_counts_where_a_vendor_changes_it(name: str) -> None:
    first = b'data: {"id": "", "choices": []}\n\n'
    pieces = (
        first,
        chunk({"content": "a"}),
        chunk({"content": "b"}),
        chunk({}, "stop", id="stub"),
        DONE,
    )
    origin = read(name, *pieces).origin
    assert origin is not None and origin.response_id == "r1"


def test_end_turn_is_a_stop() -> None:
    message = read("openai_chat", chunk({"content": "a"}), chunk({}, "end_turn"), DONE)
    assert message.finish_reason is FinishReason.stop
    assert CHAT.dump_response(stored(message))["choices"][0]["finish_reason"] == "stop"


def test_azures_filter_speaks_in_every_chunk() -> None:
    def says(severity: str) -> dict[str, Any]:
        return {
            "hate": {"filtered": False, "severity": severity},
            "jailbreak": {"filtered": False, "detected": True},
        }

    first = chunk({"content": "a"}, content_filter_results={})
    pieces = [
        first,
        *[chunk({"content": "b"}, content_filter_results=says(word)) for word in ("safe", "low")],
    ]
    for end in (chunk({}, "stop", content_filter_results={}), chunk({}, "stop")):
        message = read("openai_chat", *pieces, end, DONE)
        assert message.text == "abb"
        choice = CHAT.dump_response(stored(message))["choices"][0]
        assert choice["content_filter_results"] == says("low")
    lists = {"custom_blocklists": {"filtered": True, "details": [{"id": "x"}]}}
    message = read(
        "openai_chat", *pieces, chunk({"content": "c"}, content_filter_results=lists), end, DONE
    )
    assert CHAT.dump_response(stored(message))["choices"][0]["content_filter_results"] == lists


def test_the_end_of_audio_says_when_it_expires() -> None:
    pieces = [{"id": "audio_1"}, {"data": "AAAA"}, {"transcript": "Hi"}, {"expires_at": 17}]
    message = read(
        "openai_chat", *[chunk({"audio": one}) for one in pieces], chunk({}, "stop"), DONE
    )
    audio = {"id": "audio_1", "data": "AAAA", "transcript": "Hi", "expires_at": 17}
    assert CHAT.dump_response(stored(message))["choices"][0]["message"]["audio"] == audio
    assert (
        read("openai_chat", chunk({"audio": {"expires_at": 17}}), chunk({}, "stop"), DONE).content
        == ()
    )


@pytest.mark.parametrize(
    "said",
    [
        {"annotations": [{"type": "url_citation", "url_citation": {"url": "https://host.test/"}}]},
        {"provider_metadata": {"gateway": {"cost": "1"}}},
        {"channel": "final"},
        {
            "reasoning": "t",
            "reasoning_details": [{"type": "reasoning.text", "text": "t", "index": 0}],
        },
        {
            "executed_tools": [
                {"index": 0, "type": "python", "arguments": "{not json", "output": "x", "code": "y"}
            ]
        },
        {"executed_tools": [{"index": 0, "type": "python", "arguments": "print(1)", "name": "n"}]},
    ],
    ids=lambda said: ", ".join(said),
)
def test_what_a_stored_answer_says_beside_its_text_is_written_again_where_it_stood(
    said: dict[str, Any],
) -> None:
    body = whole(said)
    (message,) = fold(CHAT.load_response(body))
    in_order = dict(body["choices"][0]["message"])
    details = in_order.pop("reasoning_details", None)
    for events in (CHAT.load_response(body), unfold([message]), stored(message)):
        dumped = CHAT.dump_response(events)
        again = {
            name: value
            for name, value in dumped["choices"][0]["message"].items()
            if value is not None
        }
        assert {**again, **({"reasoning_details": details} if details else {})} == {**again, **said}
        assert in_order.items() <= {**again, **said}.items() and not said.keys() & dumped.keys()
        (reread,) = fold(CHAT.load_response(dumped))
        (restreamed,) = fold(CHAT.load_response(streamed("openai_chat", events)))
        for one in (reread, restreamed):
            assert (one.content, one.native) == (message.content, message.native)


def test_the_older_function_call_is_written_again_as_one() -> None:
    said = {"content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}}
    (message,) = fold(CHAT.load_response(whole(said, "function_call")))
    for body in (
        CHAT.dump_response(stored(message)),
        CHAT.dump_response(CHAT.load_response(whole(said, "function_call"))),
    ):
        choice = body["choices"][0]
        assert choice["message"] == {"role": "assistant", "refusal": None, **said, "content": ""}
        assert choice["finish_reason"] == "function_call"
    (again,) = fold(CHAT.load_response(streamed("openai_chat", stored(message))))
    assert (again.content, again.finish_reason) == (message.content, FinishReason.tool_calls)


def test_a_plain_field_beside_details_is_not_sent_back() -> None:
    said = {
        "reasoning": "t",
        "reasoning_details": [{"type": "reasoning.text", "text": "t", "index": 0}],
    }
    (message,) = fold(CHAT.load_response(whole(said)))
    assert CHAT.dump_messages([message]) == [
        {"role": "assistant", "content": "a", "reasoning_details": said["reasoning_details"]}
    ]
    streamed_ = [chunk({"reasoning": text, "reasoning_details": [{"type": "reasoning.text", "text": text, "index": 0}]})
                 for text in "xy"]  # fmt: skip
    message = read("openai_chat", *streamed_, chunk({}, "stop"), DONE)
    dumped = CHAT.dump_response(stored(message))["choices"][0]["message"]
    assert (dumped["reasoning"], dumped["reasoning_details"][0]["text"]) == ("xy", "xy")


@named
def test_fields_beside_a_streamed_text_are_written_again_beside_it(name: str) -> None:
    message = read(name, chunk({"content": "a", "metadata": {"x": 1}}), chunk({}, "stop"), DONE)
    dumped = wires.get(name).dump_response(stored(message))
    assert dumped["choices"][0]["message"]["metadata"] == {"x": 1} and "metadata" not in dumped
    assert {"metadata": {"x": 1}}.items() <= {**deltas(streamed(name, stored(message)))[-2]}.items()


@named
def test_an_answer_has_the_providers_id_else_its_messages(name: str) -> None:
    wire = wires.get(name)
    for message, expected in (
        (Message(Role.MODEL, ("a",), id="message-0", origin=Origin("p", response_id="r9")), "r9"),
        (Message(Role.MODEL, ("a",), id="m1"), "m1"),
        (Message.model("a"), ""),
    ):
        events = unfold([message])
        assert wire.dump_response(events)["id"] == expected
        assert json.loads(streamed(name, events).split(b"\n\n")[0][6:])["id"] == expected
        assert wire.dump_response(events, id="given")["id"] == "given"


# ------------------------------------------------------------------ what is retracted


COST = Usage(input_tokens=1, output_tokens=2, total_tokens=3)


def retracted(message: Message) -> list[Event]:
    """A message that is retracted when it is complete, and the one in its place."""
    answer = Message(Role.MODEL, ("whole",), id="b", finish_reason=FinishReason.stop, usage=COST)
    return [
        *unfold([message.replace(id="a", usage=COST)]),
        MessageDropped("a", "again"),
        *unfold([answer]),
    ]


HALF = Message.model(ThinkingPart("hm"), "Half an ans", ToolCallPart("c", "f", {}))


@named
def test_what_is_retracted_leaves_nothing_in_a_whole_answer(name: str) -> None:
    wire = wires.get(name)
    native = {f"{name}:notes": {"response": {"created": 7}, "message": {"odd": 1}}}
    (message,) = fold(
        wire.load_response(wire.dump_response(retracted(HALF.replace(native=native))))
    )
    assert message.content == (TextPart("whole"),) and message.usage == COST
    assert "odd" not in str(wire.dump_response(retracted(HALF.replace(native=native))))
    cut = [
        MessageStarted("a", Role.MODEL),
        PartStarted("a", 0, OpenText()),
        PartDelta("a", 0, "Half"),
    ]
    (message,) = fold(
        wire.load_response(wire.dump_response([*cut, *retracted(HALF)[-5:], MessageDropped("a")]))
    )
    assert message.text == "whole"


@named
def test_what_comes_after_a_retraction_is_kept_apart_from_what_went_out(name: str) -> None:
    (message,) = fold(wires.get(name).load_response(streamed(name, retracted(HALF))))
    assert message.text == "Half an ans\nwhole" and message.usage == COST
    (message,) = fold(
        wires.get(name).load_response(streamed(name, retracted(Message.model(ThinkingPart("hm")))))
    )
    assert (message.thinking, message.text) == ("hm", "whole")


@named
def test_a_part_that_was_open_when_its_message_was_retracted_is_not_gone_on_with(name: str) -> None:
    cut = [
        MessageStarted("a", Role.MODEL),
        PartStarted("a", 0, OpenText()),
        PartDelta("a", 0, "Half"),
    ]
    late = [PartDelta("a", 0, " more"), MessageFinished("a", FinishReason.length)]
    answer = unfold(
        [
            Message(
                Role.MODEL,
                (ToolCallPart("c", "f", {}),),
                id="a",
                finish_reason=FinishReason.tool_calls,
            )
        ]
    )
    (message,) = fold(
        wires.get(name).load_response(streamed(name, [*cut, MessageDropped("a"), *late, *answer]))
    )
    assert message.text == "Half" and [call.id for call in message.tool_calls] == ["c"]
    assert message.finish_reason is FinishReason.tool_calls


def test_thinking_of_two_messages_is_kept_apart_where_the_first_is_retracted() -> None:
    first, second = (
        Message.model(ThinkingPart("one")),
        Message(Role.MODEL, (ThinkingPart("two"),), id="b"),
    )
    events = [*unfold([first.replace(id="a")]), MessageDropped("a"), *unfold([second])]
    said = [
        delta["reasoning_content"]
        for delta in deltas(streamed("openai_chat", events))
        if "reasoning_content" in delta
    ]
    assert said == ["one", "\ntwo"]
    assert len(read("mistral", streamed("mistral", events)).content) == 2


def test_events_of_what_is_retracted_are_left_out_and_an_id_may_be_used_again() -> None:
    first, second = (unfold([Message(Role.MODEL, (text,), id="a")]) for text in "xy")
    dropped = MessageDropped("a")
    assert drop_retracted([*first, dropped, *second]) == second
    assert drop_retracted([*first, *second, dropped]) == first
    assert (
        drop_retracted([*first, dropped]) == []
        and drop_retracted([dropped]) == [dropped]
        and drop_retracted(first) == first
    )


def test_usage_of_what_is_retracted_does_not_count_and_of_one_id_twice_adds_up() -> None:
    answer = ResponseState(lambda _: {})
    for event in retracted(HALF):
        answer.accepts(event)
    assert answer.usage == COST
    for event in unfold([Message(Role.MODEL, id="b", usage=COST)]):
        answer.accepts(event)
    assert answer.usage == COST + COST


# ------------------------------------------------------------------ media of an answer


def test_a_link_to_audio_is_no_audio_of_an_answer() -> None:
    dumped = CHAT.dump_response(
        unfold([Message.model(LinkPart("https://host.test/a.wav", "audio/wav"))])
    )
    assert "audio" not in dumped["choices"][0]["message"]
    (message,) = fold(CHAT.load_response(dumped))
    assert [part.url for part in message.content if isinstance(part, LinkPart)] == [
        "https://host.test/a.wav"
    ]


def test_media_of_an_answer_are_images_or_audio() -> None:
    said = (
        DataPart(
            b"abc", "audio/pcm", native={"openai_chat": {"id": "audio_1", "transcript": "Hi"}}
        ),
        DataPart(b"abc", "image/png"),
        LinkPart("https://host.test/a.png", "image/png"),
        DataPart(b"abc", "video/mp4"),
    )
    message = CHAT.dump_response(unfold([Message.model(*said)]))["choices"][0]["message"]
    assert message["audio"] == {
        "id": "audio_1",
        "data": "YWJj",
        "expires_at": 0,
        "transcript": "Hi",
    }
    assert message["images"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}},
        {"type": "image_url", "image_url": {"url": "https://host.test/a.png"}},
    ]
    assert message["content"] == ""


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "a"}, TextPart("a")),
        (
            {"type": "image_url", "image_url": {"url": "https://a.test/a.png"}},
            LinkPart("https://a.test/a.png"),
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}},
            DataPart(b"abc", "image/png"),
        ),
    ],
)
def test_a_plain_block_is_a_part_without_notes(block: dict[str, Any], part: Any) -> None:
    for name in NAMES:
        said = [{"role": "user", "content": [block, block]}]
        (message,) = wires.get(name).load_messages(said)
        assert message == Message.user(part, part)
        assert wires.get(name).dump_messages([message]) == said


# ------------------------------------------------------------------ what a server is told


NOW = datetime(2026, 1, 2, tzinfo=UTC)


@named
def test_what_stands_around_an_answer(name: str) -> None:
    wire: Any = wires.get(name)
    own = {"id": "chatcmpl-7" if name == "openai_chat" else "7", "created": 1767312000}
    assert wire.envelope(None, id="7", now=NOW) == own
    assert wire.envelope(ModelRequest(""), id="7", now=NOW) == own
    assert wire.envelope(ModelRequest("m"), id="7", now=NOW) == {**own, "model": "m"}
    body = wire.dump_response(
        unfold([Message.model("a")]), **wire.envelope(ModelRequest("m"), id="7", now=NOW)
    )
    assert body | own | {"model": "m"} == body


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"stream_options": {"include_usage": True}}, True),
        ({"stream_options": {"include_usage": True, "include_obfuscation": False}}, True),
        ({"stream_options": {"include_usage": False}}, False),
        ({"stream_options": {}}, False),
        ({"stream_options": None}, False),
        ({}, False),
    ],
)
def test_a_stream_holds_its_usage_where_the_request_asked_for_it(
    options: dict[str, Any], asked: bool
) -> None:
    wire: Any = CHAT
    request = wire.load_request({"model": "m", "messages": [], "stream": True, **options})
    envelope = wire.envelope(request, id="7", now=NOW)
    assert envelope["include_usage"] is asked
    encoder = wire.encoder(**envelope)
    events = unfold([Message.model("a").replace(usage=Usage(input_tokens=1, output_tokens=2))])
    stream = b"".join([encoder.feed(event) for event in events]) + encoder.close()
    assert (b'"usage"' in stream) is asked
    assert wire.envelope(ModelRequest("m", stream=True), id="7", now=NOW)["include_usage"] is True


@named
def test_a_stream_is_kept_open_by_what_no_reader_tells_of(name: str) -> None:
    wire: Any = wires.get(name)
    decoder, stream = wire.decoder(), wire.encoder()
    events = unfold([Message.model("a")])
    pieces = [piece for event in events for piece in (wire.ping, stream.feed(event))] + [
        stream.close()
    ]
    (message,) = fold(
        [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()
    )
    assert (wire.stream_type, wire.ping, message.text) == ("text/event-stream", b": ping\n\n", "a")


# ------------------------------------------------------------------ several messages


def test_a_field_that_is_of_another_type_in_a_later_message_stays_as_the_first_has_it() -> None:
    first, second = (
        Message(Role.MODEL, ("a",), id=str(odd), native={"openai_chat": {"odd": odd}})
        for odd in ("x", {"y": 1})
    )
    for one, other in ((first, second), (second, first)):
        message = CHAT.dump_response(unfold([one, other]))["choices"][0]["message"]
        assert message["odd"] == (one.native or {})["openai_chat"]["odd"]


def test_to_write_messages_as_one_changes_none_of_them() -> None:
    sources = ([{"index": 0, "url": "a"}, "odd"], [{"title": "b"}])
    natives = [{"openai_chat": {"annotations": each}} for each in sources]
    before = json.dumps(natives)
    CHAT.dump_response(
        unfold([Message(Role.MODEL, ("a",), id=str(native), native=native) for native in natives])
    )
    assert json.dumps(natives) == before
