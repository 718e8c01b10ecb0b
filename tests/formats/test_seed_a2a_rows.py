"""Every row of the seed's table, and its three examples, as the document has them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from dragoman.errors import HistoryError
from dragoman.formats import seed_a2a

Json = dict[str, Any]
CALL: Json = {"call_id": "call_abc123", "name": "get_weather", "arguments": {"location": "Oakland"}}
OPENAI: Json = {
    "id": "call_abc123",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"location": "Oakland"}'},
}
RESULT: Json = {"call_id": "call_abc123", "name": "get_weather", "output": "Sunny, 72°F"}


def text(role: str, kind: str | None = None, words: str = "Hi.") -> Json:
    metadata = {"metadata": {"canonical_type": kind}} if kind else {}
    return {"role": role, "parts": [{"kind": "text", "text": words}], **metadata}


def data(role: str, kind: str | None = None, **value: Any) -> Json:
    metadata = {"metadata": {"canonical_type": kind}} if kind else {}
    return {"role": role, "parts": [{"kind": "data", "data": value}], **metadata}


def status(state: str) -> Json:
    return {"kind": "status-update", "taskId": "t1", "status": {"state": state}}


UPDATES = {
    "created": ("RunStartedEvent", "run-started", "run.started"),
    "submitted": ("RunStartedEvent", "run-started", "run.started"),
    "working": ("StepStartedEvent", "step-started", "run.step.started"),
    "input-required": ("StepFinishedEvent", "step-finished", "run.step.done"),
    "completed": ("RunFinishedEvent", "run-finished", "run.done"),
    "failed": ("RunErrorEvent", "run-error", "run.error"),
    "canceled": ("RunErrorEvent", "run-error", "run.error"),
}
"""State of a task → canonical type, event's type, event of Responses: the rows of tasks and their
updates."""
DELTA = "message.delta"
MESSAGES: dict[str, tuple[Json, str, str, Json | None, str]] = {
    "user, text": (
        text("user"), "TextMessageContentEvent", "text-message-content", {"role": "user", "content": "Hi."}, DELTA,
    ),
    "agent, chunk": (
        text("agent", "TextMessageChunkEvent"), "TextMessageChunkEvent", "text-message-chunk", None, DELTA,
    ),
    "agent, final": (
        text("agent"), "TextMessageEndEvent", "text-message-end", {"role": "assistant", "content": "Hi."}, "message.done",
    ),
    "agent, calls in pieces": (
        data("agent", "ToolCallArgsEvent", tool_calls=[CALL]), "ToolCallArgsEvent", "tool-call-args", None, DELTA,
    ),
    "agent, calls": (
        data("agent", tool_calls=[CALL]), "ToolCallStartEvent", "tool-call-start",
        {"role": "assistant", "content": "", "tool_calls": [OPENAI]}, DELTA,
    ),
}  # fmt: skip
"""Row → message, canonical type, event's type, message of Chat (`None`: none), event of
Responses."""


@pytest.mark.parametrize("state", UPDATES)
def test_a_row_of_a_tasks_update(state: str) -> None:
    kind, type_, name = UPDATES[state]
    assert seed_a2a.get_agui_event_type_from_task_status_update(status(state)) == kind
    event = seed_a2a.convert_task_status_update_to_agui_event(status(state), {"id": "task-1"})
    assert event == {"type": type_, "runId": "task-1"}
    assert seed_a2a.convert_agui_event_to_openai_chat(event) == (None, [])
    assert seed_a2a.convert_agui_event_to_responses_api(event) == {
        "event": name,
        "data": {"runId": "task-1"},
    }


def test_the_row_of_a_task_at_its_beginning() -> None:
    task = {"id": "task-1", "context_id": "c", "status": {"state": "submitted"}}
    assert seed_a2a.get_agui_event_type_from_task_status_update(task) == "RunStartedEvent"
    started = {"type": "run-started", "runId": "task-1", "threadId": "c"}
    assert seed_a2a.convert_task_status_update_to_agui_event(task, task) == started


@pytest.mark.parametrize("row", MESSAGES)
def test_a_row_of_a_message(row: str) -> None:
    message, kind, type_, chat, name = MESSAGES[row]
    assert seed_a2a.get_agui_event_type_from_a2a_message(message) == kind
    event = seed_a2a.convert_a2a_message_to_agui_event(message)
    assert event["type"] == type_
    assert seed_a2a.convert_agui_event_to_openai_chat(event) == (chat, [])
    response = seed_a2a.convert_agui_event_to_responses_api(event)
    assert isinstance(response, dict) and response["event"] == name
    assert seed_a2a.add_canonical_type_to_message({**message})["metadata"]["canonical_type"] == kind


def test_the_row_of_results_is_several_messages() -> None:
    message = data("user", tool_results=[RESULT, {**RESULT, "call_id": "b", "output": "Fog"}])
    event = seed_a2a.convert_a2a_message_to_agui_event(message)
    assert event == {
        "type": "tool-call-result",
        "results": [
            {"toolCallId": "call_abc123", "result": "Sunny, 72°F"},
            {"toolCallId": "b", "result": "Fog"},
        ],
    }
    told = [
        {"role": "tool", "tool_call_id": "call_abc123", "content": "Sunny, 72°F"},
        {"role": "tool", "tool_call_id": "b", "content": "Fog"},
    ]
    assert seed_a2a.convert_agui_event_to_openai_chat(event) == (None, told)
    assert seed_a2a.convert_agui_event_to_responses_api(event) == [
        {"event": DELTA, "data": each} for each in told
    ]


def test_example_1_a_users_text() -> None:
    message = text("user", "TextMessageContentEvent", "What's the weather?")
    event = seed_a2a.convert_a2a_message_to_agui_event(message)
    said = {"role": "user", "content": "What's the weather?"}
    assert event == {"type": "text-message-content", "message": said}
    assert seed_a2a.convert_agui_event_to_openai_chat(event) == (said, [])
    assert seed_a2a.convert_agui_event_to_responses_api(event) == {"event": DELTA, "data": said}


def test_example_2_an_assistants_call() -> None:
    message = data("agent", "ToolCallStartEvent", tool_calls=[CALL])
    event = seed_a2a.convert_a2a_message_to_agui_event(message)
    call = {"id": "call_abc123", "name": "get_weather", "arguments": {"location": "Oakland"}}
    assert event == {"type": "tool-call-start", "toolCall": call}
    chat = {"role": "assistant", "content": "", "tool_calls": [OPENAI]}
    assert seed_a2a.convert_agui_event_to_openai_chat(event) == (chat, [])
    told = {"role": "assistant", "tool_calls": [OPENAI]}
    assert seed_a2a.convert_agui_event_to_responses_api(event) == {"event": DELTA, "data": told}


def test_example_3_a_result() -> None:
    message = data("user", "ToolCallResultEvent", tool_results=[RESULT])
    event = seed_a2a.convert_a2a_message_to_agui_event(message)
    assert event == {
        "type": "tool-call-result",
        "toolCallId": "call_abc123",
        "result": "Sunny, 72°F",
    }
    tool = {"role": "tool", "tool_call_id": "call_abc123", "content": "Sunny, 72°F"}
    assert seed_a2a.convert_agui_event_to_openai_chat(event) == (None, [tool])
    assert seed_a2a.convert_agui_event_to_responses_api(event) == {"event": DELTA, "data": tool}


@pytest.mark.parametrize("wrong", ["text-message-content", None, 3, ["text-message-content"]])
def test_what_is_no_event_is_refused_by_its_place(wrong: Any) -> None:
    event = seed_a2a.convert_a2a_message_to_agui_event(text("user"))
    with pytest.raises(HistoryError, match=r"event \[1\] is an object"):
        seed_a2a.compact_events([event, wrong])
    with pytest.raises(HistoryError, match="a list of objects, not as dict"):
        seed_a2a.compact_events(event)  # pyright: ignore[reportArgumentType]
    if wrong is not None:
        for function in (
            seed_a2a.convert_agui_event_to_openai_chat,
            seed_a2a.convert_agui_event_to_responses_api,
        ):
            with pytest.raises(HistoryError, match="is an object with a type"):
                function(wrong)


def test_nothing_is_no_event_and_arguments_are_whatever_a_program_holds() -> None:
    assert (
        seed_a2a.convert_agui_event_to_openai_chat(None) == (None, [])
        and seed_a2a.convert_agui_event_to_responses_api(None) == {}
    )
    day = data(
        "agent", tool_calls=[{"call_id": "c", "name": "f", "arguments": {"day": date(2026, 1, 2)}}]
    )
    message, _ = seed_a2a.convert_a2a_message_to_openai(day)
    assert message and message["tool_calls"][0]["function"]["arguments"] == '{"day": "2026-01-02"}'
