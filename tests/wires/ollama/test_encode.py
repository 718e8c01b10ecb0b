"""Answers as Ollama's wire writes them, as lines and whole."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import OverloadedError
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartStarted,
    RunError,
)
from dragoman.fold import fold, unfold
from dragoman.message import (
    FinishReason,
    MarkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from dragoman.wires import ollama as wire
from support.ollama import arguments, decode, words


@st.composite
def answers(draw: Any) -> Message:
    """A model's message as this format can say it."""
    content: list[Any] = [ThinkingPart(text) for text in draw(st.lists(words, max_size=1))]
    content += [TextPart(text) for text in draw(st.lists(words, max_size=1))]
    found = draw(st.lists(st.tuples(words, arguments), max_size=3))
    content += [ToolCallPart(f"c{n}", name, given) for n, (name, given) in enumerate(found)]
    counts = draw(st.tuples(st.integers(0, 99), st.integers(0, 99)))
    usage = Usage(input_tokens=counts[0], output_tokens=counts[1], total_tokens=sum(counts))
    reason = (
        FinishReason.tool_calls
        if found
        else draw(st.sampled_from([FinishReason.stop, FinishReason.length]))
    )
    return Message(
        Role.MODEL,
        tuple(content),
        origin=Origin("", served_model="m"),
        finish_reason=reason,
        usage=usage,
    )


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
    written = (
        b"".join(map(encoder.feed, [*begun, RunError(OverloadedError("no room"))]))
        + encoder.close()
    )
    (*_, last) = decode(written)
    assert isinstance(last.error, OverloadedError) and "no room" in last.error.message
    assert json.loads(written.splitlines()[0]) == {
        "model": "m", "created_at": "t", "message": {"role": "assistant", "content": "a"}, "done": False,
    }  # fmt: skip
    assert wire.dump_response([RunError(OverloadedError("no room"))]) == {
        "error": "server busy: no room"
    }


def test_only_the_models_first_answer_is_written():
    encoder = wire.encoder()
    others = [
        MessageStarted("u", Role.USER),
        MessageStarted("b", Role.MODEL, 1),
        MessageStarted("d", Role.MODEL),
    ]
    dropped = unfold([Message.model("no").replace(id="d")])[1:-1]
    parts = [
        event
        for message in ("u", "b")
        for event in unfold([Message.model("no").replace(id=message)])[1:]
    ]
    shown = [
        *others[:2],
        *parts,
        others[2],
        MessageDropped("d"),
        *dropped,
        *unfold([Message.model("yes").replace(id="m")]),
    ]
    written = b"".join(map(encoder.feed, shown)) + encoder.close()
    assert fold(decode(written))[0].text == "yes"
    assert encoder.feed(MessageFinished("m")) == b"" == encoder.close()


def lines_of(events: Any) -> list[Any]:
    encoder = wire.encoder()
    return [
        json.loads(line)
        for line in (b"".join(map(encoder.feed, events)) + encoder.close()).splitlines()
    ]


def test_further_fields_of_a_message_go_out_live_and_from_storage():
    line = {"message": {"role": "assistant", "content": "a", "annotations": [1]}, "done": True}
    events = wire.load_response(line)
    (message,) = fold(events)
    for lines in (lines_of(events), lines_of(unfold([Message.from_json(message.to_json())]))):
        assert lines[-1]["message"]["annotations"] == [1]


def test_what_is_retracted_does_not_run_into_what_follows():
    void = [
        MessageStarted("a", Role.MODEL),
        PartStarted("a", 0, OpenText()),
        PartDelta("a", 0, "half an answ"),
        MessageFinished("a", native={"ollama": {"annotations": [1]}}),
        MessageDropped("a"),
    ]
    whole = unfold([Message.model("whole").replace(id="b")])
    lines = lines_of([*void, *whole])
    assert "".join(line["message"]["content"] for line in lines) == "half an answ\nwhole"
    assert "annotations" not in lines[-1]["message"]
    assert wire.dump_response([*void, *whole])["message"] == {
        "role": "assistant",
        "content": "whole",
    }
    silent = [MessageStarted("a", Role.MODEL), MessageDropped("a")]
    assert [line["message"]["content"] for line in lines_of([*silent, *whole])] == ["whole", ""]


def written(events: Any, **envelope: Any) -> bytes:
    encoder = wire.encoder(**envelope)
    return b"".join(map(encoder.feed, events)) + encoder.close()


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


def test_an_answer_has_the_requests_model_the_time_and_the_form_of_its_endpoint():
    chat = wire.load_request({"model": "m", "messages": [{"role": "user", "content": "x"}]})
    prompt = wire.load_request({"model": "m", "prompt": "x"})
    events = unfold([Message.model("a").replace(finish_reason=FinishReason.stop)])
    head = {"model": "m", "created_at": "2026-11-22T15:00:01.500000Z"}
    end = {"done": True, "done_reason": "stop"}
    whole = wire.dump_response(events, **wire.envelope(chat, id="r1", now=NOW))
    assert whole == {**head, "message": {"role": "assistant", "content": "a"}, **end}
    whole = wire.dump_response(events, **wire.envelope(prompt, id="r1", now=NOW))
    assert whole == {**head, "response": "a", **end}
    assert wire.envelope(None, id="r1", now=NOW) == {
        "timing": None,
        "created_at": head["created_at"],
    }


def test_a_stream_is_lines_and_nothing_keeps_it_open():
    assert (wire.stream_type, wire.ping) == ("application/x-ndjson", b"")
