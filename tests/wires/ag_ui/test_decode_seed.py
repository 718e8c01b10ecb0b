"""Decision 17b: the wire reads the events of the seeds' time, with their `message` and `results`
shapes (T-11 to T-14)."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import json_bytes
from dragoman.event import (
    Event,
    PartDelta,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from dragoman.fold import fold
from dragoman.message import Message, Role, ToolCallPart, ToolResultPart
from dragoman.wires import a2a, ag_ui

Json = dict[str, Any]
pytestmark = pytest.mark.mend("3.6")
START: Json = {"type": "run-started", "runId": "r", "threadId": "t"}
FINISHED: Json = {"type": "run-finished", "runId": "r"}


def events_of(*objects: Json) -> list[Event]:
    decoder = ag_ui.decoder()
    return [
        *decoder.feed(b"".join(b"data: " + json_bytes.encode(one) + b"\n\n" for one in objects)),
        *decoder.close(),
    ]


def read(*objects: Json) -> list[Message]:
    events = events_of(START, *objects, FINISHED)
    assert isinstance(events[-1], RunFinished), events[-1]
    return fold(events)


def text(name: str, content: str, role: str = "assistant") -> Json:
    return {"type": f"text-message-{name}", "message": {"role": role, "content": content}}


def call(id_: str, **arguments: Any) -> Json:
    return {"id": id_, "name": "f", "arguments": arguments}


def said(*objects: Json) -> list[tuple[str, str]]:
    return [(message.role.value, message.text) for message in read(*objects)]


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (START, RunStarted),
        ({"type": "step-started", "runId": "r"}, StepStarted),
        ({"type": "step-finished", "runId": "r"}, StepFinished),
        (FINISHED, RunFinished),
        ({"type": "run-error", "runId": "r"}, RunError),
    ],
)
def test_t07_events_of_runs_and_steps(event: Json, kind: type[Event]) -> None:
    assert any(isinstance(one, kind) for one in events_of(START, event, FINISHED))


def test_t11_a_message_of_the_user() -> None:
    assert said(text("content", "Hi.", "user")) == [("user", "Hi.")]


def test_t11_an_end_is_the_whole_answer() -> None:
    assert said(text("end", "It is.")) == [("model", "It is.")]


def test_t11_chunks_are_the_text_so_far() -> None:
    stream = [
        text("chunk", "It"),
        text("chunk", "It is"),
        text("chunk", "It is"),
        text("end", "It is."),
    ]
    assert said(*stream) == [("model", "It is.")]
    deltas = [
        event.delta for event in events_of(START, *stream, FINISHED) if isinstance(event, PartDelta)
    ]
    assert deltas == ["It", " is", "."]
    assert said(text("chunk", "First"), text("chunk", "Second"), text("end", "Second.")) == [
        ("model", "First"),
        ("model", "Second."),
    ]
    assert said(text("chunk", "It")) == [("model", "It")]


def test_t12_calls_in_both_forms() -> None:
    for event in (
        {"type": "tool-call-start", "toolCall": call("a", x=1)},
        {"type": "tool-call-start", "toolCalls": [call("a", x=1)]},
    ):
        [message] = read(event)
        assert [(part.id, part.name, part.arguments) for part in message.tool_calls] == [
            ("a", "f", {"x": 1})
        ]
    [message] = read({"type": "tool-call-start", "toolCalls": [call("a"), call("b", y=2)]})
    assert [(part.id, part.arguments) for part in message.tool_calls] == [
        ("a", {}),
        ("b", {"y": 2}),
    ]


def test_t24_arguments_in_pieces_are_merged() -> None:
    start = {"type": "tool-call-start", "toolCall": call("a", z=0)}
    more = {"type": "tool-call-args", "toolCall": call("a", b=2)}
    listed = {"type": "tool-call-args", "toolCalls": [call("a", c=3), call("other", d=4)]}
    for stream in ([start, more, listed], [more, listed, start], [start, more, start, listed]):
        [message] = read(*stream)
        assert [part.arguments for part in message.tool_calls] == [{"z": 0, "b": 2, "c": 3}]
    assert read(more) == []


def test_t13_results_in_both_forms() -> None:
    one = {"type": "tool-call-result", "toolCallId": "a", "result": "Sunny"}
    many = {
        "type": "tool-call-result",
        "results": [{"toolCallId": "a", "result": 1}, {"toolCallId": "b", "result": "x"}],
    }
    start = {"type": "tool-call-start", "toolCalls": [call("a"), call("b")]}
    _, results = read(start, one)
    assert [(part.id, part.result) for part in results.tool_results] == [("a", "Sunny")]
    _, results = read(start, many)
    assert [(part.id, part.name, part.result) for part in results.tool_results] == [
        ("a", "f", "1"),
        ("b", "f", "x"),
    ]


def test_t14_text_beside_calls_and_results_is_kept() -> None:
    start = {"type": "tool-call-start", "toolCall": call("a"), "content": "I look."}
    for result in (
        {"type": "tool-call-result", "toolCallId": "a", "result": "x", "content": "And?"},
        {
            "type": "tool-call-result",
            "results": [{"toolCallId": "a", "result": "x"}],
            "content": "And?",
        },
    ):
        asked, *answered = read(text("chunk", "I"), start, result)
        assert asked.text == "I look."
        assert isinstance(asked.content[1], ToolCallPart)
        content = [part for message in answered for part in message.content]
        assert all(message.role is Role.USER for message in answered)
        assert isinstance(content[0], ToolResultPart)
        assert [getattr(part, "text", None) for part in content[1:]] == ["And?"]


def test_t34_an_event_without_a_message_is_none() -> None:
    values: tuple[Any, ...] = (None, {}, "x")
    for odd in values:
        assert (
            read(
                {"type": "text-message-end", "message": odd},
                {"type": "text-message-content", "message": odd},
            )
            == []
        )


def test_a_seed_conversation_is_read_as_a2a_reads_it() -> None:
    """The same conversation by way of `wires.a2a` and by this wire."""

    def part(key: str, *entries: Json) -> Json:
        return {"kind": "data", "data": {key: [*entries]}}

    def words(content: str) -> Json:
        return {"kind": "text", "text": content}

    made = {"call_id": "c", "name": "w", "arguments": {"city": "Oakland"}}
    chunk = {"metadata": {"canonical_type": "TextMessageChunkEvent"}}
    history: list[Json] = [
        {"role": "user", "parts": [words("What's the weather?")]},
        {"role": "agent", "parts": [words("Let me")], **chunk},
        {"role": "agent", "parts": [words("Let me look."), part("tool_calls", made)]},
        {
            "role": "user",
            "parts": [part("tool_results", {"call_id": "c", "name": "w", "output": "Sunny, 72°F"})],
        },
        {"role": "agent", "parts": [words("It is 72°F.")]},
    ]
    events = [a2a.convert_a2a_message_to_agui_event(message) for message in history]

    def gist(messages: list[Message]) -> list[Any]:
        return [
            (
                m.role,
                m.text,
                [c.arguments for c in m.tool_calls],
                [r.result for r in m.tool_results],
            )
            for m in messages
        ]

    assert gist(read(*events)) == gist(a2a.load_messages(history))


def test_a_stream_that_is_cut_keeps_its_calls() -> None:
    events = events_of(START, {"type": "tool-call-start", "toolCall": call("a", x=1)})
    assert isinstance(events[-1], RunError)
    assert [part.arguments for part in fold(events)[0].tool_calls] == [{"x": 1}]
