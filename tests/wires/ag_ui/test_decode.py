"""The stream of others, of any version, in any chunking → events; whatever comes, nothing is
raised."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DecodeError, RateLimitError, StreamCutError
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepStarted,
    event_to_json,
)
from dragoman.fold import fold
from dragoman.message import (
    FinishReason,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.wires import ag_ui
from support.ag_ui import SCENARIOS, decoded, encoded, objects

START: dict[str, Any] = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
END: dict[str, Any] = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
STREAM: list[dict[str, Any]] = [
    {**START, "protocolVersion": "1.0"},
    {"type": "STEP_STARTED", "stepName": "think"},
    {"type": "REASONING_START", "messageId": "t1"},
    {"type": "REASONING_MESSAGE_START", "messageId": "t1", "role": "reasoning"},
    {"type": "REASONING_MESSAGE_CONTENT", "messageId": "t1", "delta": "h"},
    {"type": "REASONING_MESSAGE_CONTENT", "messageId": "t1", "delta": "m"},
    {"type": "REASONING_MESSAGE_END", "messageId": "t1"},
    {
        "type": "REASONING_ENCRYPTED_VALUE",
        "subtype": "message",
        "entityId": "t1",
        "encryptedValue": "a+/==",
    },
    {"type": "REASONING_END", "messageId": "t1"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "I "},
    {
        "type": "TEXT_MESSAGE_CONTENT",
        "messageId": "m",
        "delta": "look.",
        "timestamp": 5,
        "rawEvent": {"a": [1]},
    },
    {
        "type": "TOOL_CALL_START",
        "toolCallId": "c1",
        "toolCallName": "weather",
        "parentMessageId": "m",
    },
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"city":'},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '"Rome"}'},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    {"type": "STATE_SNAPSHOT", "snapshot": None},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": 1}]},
    {"type": "RAW", "event": {"x": 1}, "source": "s"},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "p", "activityType": "PLAN", "content": {"a": 1}},
    {"type": "CUSTOM", "name": "note", "value": None},
    {
        "type": "TOOL_CALL_RESULT",
        "messageId": "x",
        "toolCallId": "c1",
        "content": "sun",
        "role": "tool",
    },
    {"type": "STEP_FINISHED", "stepName": "think"},
    {"type": "TEXT_MESSAGE_START", "messageId": "n"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "n", "delta": "Sun."},
    {"type": "TEXT_MESSAGE_END", "messageId": "n"},
    {
        **END,
        "result": {"a": 1},
        "usage": [{"inputTokens": 1, "outputTokens": 2}, {"inputTokens": 3}],
    },
]


def framed(stream: Sequence[Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in stream)


def read(*stream: Any) -> list[Event]:
    return decoded(framed(stream))


def messages(*stream: Any) -> list[Message]:
    return fold(read(START, *stream, END))


def test_a_stream_of_others_is_read() -> None:
    events = read(*STREAM)
    answer, results, last = fold(events)
    thinking, text, call = answer.content
    assert thinking == ThinkingPart("hm", {"ag_ui": {"id": "t1", "encryptedValue": "a+/=="}})
    assert (text, call) == (TextPart("I look."), ToolCallPart("c1", "weather", {"city": "Rome"}))
    assert answer.finish_reason is FinishReason.tool_calls
    assert (results.role, results.id, results.content) == (
        Role.USER,
        "x",
        (ToolResultPart("c1", "weather", "sun"),),
    )
    assert (last.id, last.text, last.finish_reason) == ("n", "Sun.", FinishReason.stop)
    assert RunStarted("r", "t") == events[0]
    assert isinstance(events[1], StepStarted) and events[1].name == "think"
    assert (
        StateSnapshot(None) in events
        and StateDelta(({"op": "add", "path": "/a", "value": 1},)) in events
    )
    assert [each.name for each in events if isinstance(each, Custom)] == ["raw", "activity", "note"]
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert (end.result, end.usage) == ({"a": 1}, Usage(input_tokens=4, output_tokens=2))


def test_what_others_streamed_is_a_stream_again() -> None:
    again = objects(read(*STREAM), extras=False)
    kinds = [each["type"] for each in again if each["type"] != "CUSTOM"]
    assert sorted(kinds) == sorted(each["type"] for each in STREAM if each["type"] != "CUSTOM")
    assert [each for each in again if each["type"] in ("RAW", "ACTIVITY_SNAPSHOT")] == STREAM[19:21]


def test_it_is_the_same_byte_by_byte_and_in_any_pieces() -> None:
    for data in (framed(STREAM), encoded(SCENARIOS["all kinds"]())):
        whole = decoded(data)
        assert decoded(data, range(1, len(data))) == whole
        chance = Random(1)
        for _ in range(10):
            assert decoded(data, sorted(chance.sample(range(1, len(data)), 9))) == whole


def test_chunks_are_what_they_stand_for() -> None:
    (message, result) = messages(
        {"type": "REASONING_MESSAGE_CHUNK", "messageId": "t", "delta": "hm"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "Hel"},
        {"type": "RAW", "event": 1},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "lo."},
        {
            "type": "TOOL_CALL_CHUNK",
            "toolCallId": "c",
            "toolCallName": "f",
            "parentMessageId": "m",
            "delta": "{",
        },
        {"type": "TOOL_CALL_CHUNK", "delta": "}"},
        {"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c", "content": "1"},
    )
    assert (message.thinking, message.text) == ("hm", "Hello.")
    assert [call.arguments for call in message.tool_calls] == [{}]
    assert result.content == (ToolResultPart("c", "f", "1"),)


def test_chunks_of_runs_side_by_side_are_told_apart() -> None:
    events = read(
        START,
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "helper"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "Out"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "i", "delta": "In", "subagentRunId": "s"},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "er."},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "ner.", "subagentRunId": "s"},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"},
        END,
    )
    assert [message.text for message in fold(events)] == ["Outer."]
    assert isinstance(events[1], RunStarted) and (events[1].run_id, events[1].parent_run_id) == (
        "s",
        "r",
    )


def test_names_of_old_are_read() -> None:
    old = [
        {"type": "run-started", "thread_id": "t", "run_id": "r"},
        {"type": "THINKING_START"},
        {"type": "THINKING_TEXT_MESSAGE_START"},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"},
        {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "THINKING_END"},
        {"type": "text-message-start", "message_id": "m"},
        {"type": "text-message-content", "message_id": "m", "delta": "Hi."},
        {"type": "text-message-end", "message_id": "m"},
        {"type": "tool-call-start", "toolCalls": [{"id": "c1", "name": "f", "arguments": {"a": 1}}, {"id": "c2", "name": "g"}]},
        {"type": "tool-call-start", "toolCall": {"id": "c3", "name": "h", "arguments": "{}"}},
        {"type": "tool-call-result", "toolCallId": "c1", "result": {"b": 2}},
        {"type": "run-finished", "thread_id": "t", "run_id": "r"},
    ]  # fmt: skip
    events = read(*old)
    answer, result = fold(events)
    assert (answer.thinking, answer.text) == ("hm", "Hi.")
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [("c1", "f", {"a": 1}), ("c2", "g", {}), ("c3", "h", {})]  # fmt: skip
    assert [each.result for each in result.tool_results] == ['{"b":2}']
    assert not [event for event in events if isinstance(event, RunError)]


def test_an_error_is_told_by_its_code() -> None:
    *_, error = read(START, {"type": "RUN_ERROR", "message": "wait", "code": "rate_limit"})
    assert (
        isinstance(error, RunError)
        and isinstance(error.error, RateLimitError)
        and error.error.message == "wait"
    )
    *_, other = read({"type": "RUN_ERROR", "message": "no", "code": "E7"})
    assert isinstance(other, RunError) and other.error.message == "E7: no"


@pytest.mark.parametrize("end", range(1, len(STREAM)))
def test_a_stream_that_is_cut_says_so(end: int) -> None:
    *_, last = read(*STREAM[:end])
    assert isinstance(last, RunError) and isinstance(last.error, StreamCutError)


@pytest.mark.parametrize("name", ["cut", "all kinds", "a run within a tool"])
def test_ours_that_is_cut_says_so(name: str) -> None:
    frames = encoded(SCENARIOS[name]()).split(b"\n\n")[:-1]
    for end in range(1, len(frames)):
        *_, last = decoded(b"\n\n".join(frames[:end]) + b"\n\n")
        assert isinstance(last, RunError) and isinstance(last.error, StreamCutError)


@pytest.mark.parametrize(
    "stream",
    [
        [{"type": "TEXT_MESSAGE_START", "messageId": "m"}],
        [START, {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}],
        [START, {"type": "TOOL_CALL_END", "toolCallId": "c"}],
        [START, {"messageId": "m"}],
        [START, {"type": 5}],
        [START, [1]],
        [START, {"type": "TOOL_CALL_RESULT", "content": [{"type": "x"}]}],
        [START, {"type": "MESSAGES_SNAPSHOT", "messages": 1}],
        [START, *[{"type": "TEXT_MESSAGE_START", "messageId": "m"}] * 2],
        [{**START, "metadata": {"dragoman": '{"v":1}'}}, {"type": "CUSTOM", "name": "dragoman.event", "value": "{"}],
        [{**START, "metadata": {"dragoman": '{"v":1}'}}, {"type": "CUSTOM", "name": "dragoman.event", "value": "[" * 99_999}],
    ],
)  # fmt: skip
def test_what_is_not_of_the_protocol_is_an_error_value(stream: list[Any]) -> None:
    *_, last = read(*stream)
    assert isinstance(last, RunError) and isinstance(last.error, DecodeError)


def test_what_is_unknown_is_passed_over() -> None:
    (message,) = messages(
        {"type": "NEW_KIND", "a": 1}, *STREAM[24:27], {"type": "STATE_DELTA", "delta": "x"}
    )
    assert message.text == "Sun."


def test_an_event_of_ours_is_believed_in_streams_of_ours_alone() -> None:
    carried = {
        "type": "CUSTOM",
        "name": "dragoman.event",
        "value": '{"type":"message_dropped","message_id":"m"}',
    }
    events = read(START, carried, END)
    assert not [event for event in events if isinstance(event, MessageDropped)]


VALUES: list[Any] = [None, True, 0, -1, 1.5, "", [], {}, [[]], [{}], 10**30, "{", "null", {"type": "text"}, '{"v":1}', '{"at":-1,"start":5,"part":[],"of":{}}']  # fmt: skip


def _changed(chance: Random, stream: list[Any]) -> Any:
    """A stream with a value of it made another."""
    made: Any = json.loads(json.dumps(stream))
    holder: Any = chance.choice(made)
    while True:
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if not keys:
            return made
        key: Any = chance.choice(list(keys))  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.7:
            holder = holder[key]  # pyright: ignore[reportUnknownVariableType]
            continue
        holder[key] = json.loads(json.dumps(chance.choice(VALUES)))
        return made


def check(data: bytes) -> None:
    """It is read without an exception, and what is read can be told on."""
    events = decoded(data)
    fold(events)
    for event in events:
        event_to_json(event)
    encoded(events)


@given(st.integers(0, 2**32), st.sampled_from(sorted(SCENARIOS)))
def test_values_of_other_kinds_raise_nothing(seed: int, name: str) -> None:
    chance = Random(seed)
    for stream in (STREAM, objects(SCENARIOS[name]())):
        check(framed(_changed(chance, _changed(chance, stream))))


@given(st.integers(0, 2**32), st.sampled_from(sorted(SCENARIOS)))
def test_changed_bytes_raise_nothing(seed: int, name: str) -> None:
    chance = Random(seed)
    for given_ in (framed(STREAM), encoded(SCENARIOS[name]())):
        data = bytearray(given_)
        for _ in range(3):
            data[chance.randrange(len(data))] = chance.randrange(256)
        check(bytes(data))


def test_an_error_in_place_of_a_stream_is_read() -> None:
    decoder = ag_ui.decoder()
    events = [
        *decoder.feed(b'{"error": {"message": "no", "code": "rate_limit"}}'),
        *decoder.close(),
    ]
    (error,) = events
    assert isinstance(error, RunError) and isinstance(error.error, RateLimitError)


def test_a_list_of_events_is_read_as_a_stream() -> None:
    assert ag_ui.load_response(json.dumps(STREAM).encode()) == read(*STREAM)
