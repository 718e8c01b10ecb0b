"""Streams of agents of others that speak in several messages at once, list all messages, or say
some of it in that list alone."""

from __future__ import annotations

import json
from typing import Any

from dragoman.event import Event, MessageDropped, RunFinished
from dragoman.fold import fold
from dragoman.message import FinishReason, Message
from support.ag_ui import decoded

START: dict[str, Any] = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
END: dict[str, Any] = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
ASKED = {"id": "u", "role": "user", "content": "Hi?"}
HI: list[dict[str, Any]] = [
    {"type": "TEXT_MESSAGE_START", "messageId": "m"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi."},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
]


def read(*stream: Any) -> list[Event]:
    return decoded(b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in stream))


def messages(*stream: Any) -> list[Message]:
    return fold(read(START, *stream, END))


def listed(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(entries)}


def test_messages_that_are_open_side_by_side_are_whole() -> None:
    """Nodes of a graph that speak at the same time, without runs of their own."""
    texts: list[dict[str, Any]] = [
        {"type": "TEXT_MESSAGE_START", "messageId": "a"},
        {"type": "TEXT_MESSAGE_START", "messageId": "b"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "On"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "a"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "b", "delta": "Two."},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "e."},
        {"type": "TEXT_MESSAGE_END", "messageId": "a"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"},
        {"type": "TEXT_MESSAGE_END", "messageId": "b"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
    ]
    events = read(START, *texts, END)
    assert [(each.id, each.text, each.finish_reason) for each in fold(events)] == [
        ("a", "One.", FinishReason.tool_calls),
        ("b", "Two.", FinishReason.stop),
    ]
    assert [call.arguments for call in fold(events)[0].tool_calls] == [{}]
    cut = fold(read(START, *texts[:5]))
    assert [each.finish_reason for each in cut] == [FinishReason.error, FinishReason.error]


def test_a_result_may_come_while_another_call_is_open() -> None:
    answer, results, last = messages(
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "f"},
        {"type": "TOOL_CALL_START", "toolCallId": "c2", "toolCallName": "g"},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        {"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "content": "1"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c2", "delta": '{"a":2}'},
        {"type": "TOOL_CALL_END", "toolCallId": "c2"},
        {"type": "TOOL_CALL_RESULT", "messageId": "r2", "toolCallId": "c2", "content": "2"},
        {"type": "TEXT_MESSAGE_START", "messageId": "n"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "n", "delta": "Both."},
        {"type": "TEXT_MESSAGE_END", "messageId": "n"},
    )
    assert [(call.id, call.arguments, call.state) for call in answer.tool_calls] == [("c1", {}, "complete"), ("c2", {"a": 2}, "complete")]  # fmt: skip
    assert [(each.id, each.result) for each in results.tool_results] == [("c1", "1"), ("c2", "2")]
    assert last.text == "Both."


def test_a_snapshot_without_a_message_takes_it_back() -> None:
    events = read(
        START,
        {"type": "TEXT_MESSAGE_START", "messageId": "m"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Wrong"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "MESSAGES_SNAPSHOT", "messages": []},
        END,
    )
    assert fold(events) == [] and MessageDropped("m") in events


def test_what_was_told_stands_where_a_snapshot_has_no_thinking_or_another_id() -> None:
    """As servers over graphs list their state at the end of a run."""
    thinking = [
        {"type": "REASONING_START", "messageId": "t"},
        {"type": "REASONING_MESSAGE_START", "messageId": "t", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "t", "delta": "hm"},
        {"type": "REASONING_MESSAGE_END", "messageId": "t"},
        {"type": "REASONING_END", "messageId": "t"},
    ]
    for id_ in ("m", "another"):
        events = read(
            START,
            *thinking,
            *HI,
            listed(ASKED, {"id": id_, "role": "assistant", "content": "Hi."}),
            END,
        )
        (answer,) = fold(events)
        assert (answer.thinking, answer.text) == ("hm", "Hi.")
        assert not [each for each in events if isinstance(each, MessageDropped)]
    call = [
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
    ]
    function = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    (answer,) = messages(
        *call, listed(ASKED, {"id": "a", "role": "assistant", "toolCalls": [function]})
    )
    assert [each.id for each in answer.tool_calls] == ["c"]
    result = {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "1"}
    (done,) = messages(
        *call, result, listed(ASKED, {"id": "r", "role": "tool", "toolCallId": "c", "content": "1"})
    )
    assert [each.id for each in done.tool_results] == ["c"]


def test_an_answer_that_a_snapshot_alone_has_is_told() -> None:
    said = {"id": "n", "role": "assistant", "content": "By hand."}
    first = {"id": "m", "role": "assistant", "content": "Hi."}
    earlier = {"id": "e", "role": "assistant", "content": "Earlier."}
    assert [each.text for each in messages(listed(earlier, ASKED, said))] == ["By hand."]
    assert [each.text for each in messages(*HI, listed(earlier, ASKED, first, said))] == [
        "Hi.",
        "By hand.",
    ]
    told = messages(
        listed(earlier, ASKED),
        *HI,
        listed(earlier, ASKED, {**first, "id": "x", "content": "Other."}),
    )
    assert [(each.text, each.finish_reason) for each in told] == [("Other.", FinishReason.stop)]
    function = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asks = {"id": "a", "role": "assistant", "content": "", "toolCalls": [function]}
    result = {"id": "r", "role": "tool", "toolCallId": "c", "content": "1"}
    call, done, last = messages(*HI, listed(ASKED, first, asks, result, said))[1:]
    assert (call.tool_calls[0].id, done.tool_results[0].result, last.text) == ("c", "1", "By hand.")
    assert [each.text for each in messages(listed(ASKED, asks, result, said))] == ["By hand."]
    end = {
        **END,
        "outcome": {
            "type": "interrupt",
            "interrupts": [{"id": "i", "reason": "tool_call", "toolCallId": "c"}],
        },
    }
    finished = read(START, listed(ASKED, asks), end)[-1]
    assert isinstance(finished, RunFinished) and finished.pending[0].call == call.tool_calls[0]


def test_a_list_of_what_stood_before_is_no_answer() -> None:
    earlier = {"id": "e", "role": "assistant", "content": "Earlier."}
    assert [each.text for each in messages(listed(earlier), *HI)] == ["Hi."]
    assert messages(listed(earlier, ASKED)) == []


def test_calls_that_wait_for_the_client_are_what_the_run_waits_for() -> None:
    call = [
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
    ]
    end = read(
        START,
        *call,
        {**END, "outcome": {"type": "success", "pendingToolCallIds": ["c", "unknown"]}},
    )[-1]
    assert isinstance(end, RunFinished) and end.outcome == "pending"
    assert [(each.id, each.reason, each.call and each.call.name) for each in end.pending] == [("c", "tool", "f"), ("unknown", "tool", None)]  # fmt: skip
