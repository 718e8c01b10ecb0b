"""What a client asks an agent, both ways."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from ag_ui.core import RunAgentInput

from dragoman.errors import HistoryError
from dragoman.interrupt import Interrupt, Resume
from dragoman.message import Message, ToolCallPart
from dragoman.request import RunRequest, Settings, ToolSpec
from dragoman.wires import ag_ui
from dragoman.wires.ag_ui.interrupts import dump_interrupt, load_interrupt

BODY: dict[str, Any] = {
    "threadId": "t",
    "runId": "r",
    "parentRunId": "p",
    "protocolVersion": "1.0",
    "messages": [{"id": "u", "role": "user", "content": "Hi."}],
    "tools": [
        {
            "name": "confirm",
            "description": "Asks.",
            "parameters": {"type": "object"},
            "metadata": {"a": 1},
        }
    ],
    "context": [{"description": "page", "value": "home"}],
    "state": {"n": 1},
    "forwardedProps": {"x": [1]},
    "resume": [{"interruptId": "c1", "status": "resolved", "payload": {"approved": True}}],
}


def test_a_request_is_read() -> None:
    request = ag_ui.load_run(BODY)
    assert (request.thread_id, request.run_id, request.state) == ("t", "r", {"n": 1})
    assert [message.text for message in request.messages] == ["Hi."]
    assert [(tool.name, tool.description) for tool in request.tools] == [("confirm", "Asks.")]
    assert request.context == ({"description": "page", "value": "home"},)
    assert request.metadata == {"forwarded_props": {"x": [1]}}
    assert request.resume == (Resume("c1", payload={"approved": True}),)
    assert request.native == {"ag_ui": {"parentRunId": "p", "protocolVersion": "1.0"}}
    assert ag_ui.dump_run(request) == BODY
    RunAgentInput.model_validate(ag_ui.dump_run(request))


def test_what_is_null_or_absent_is_nothing() -> None:
    nothing = dict.fromkeys(
        ("state", "tools", "context", "forwardedProps", "resume", "parentRunId")
    )
    bare: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": []}
    assert (
        ag_ui.load_run({**bare, **nothing})
        == ag_ui.load_run(bare)
        == RunRequest(thread_id="t", run_id="r")
    )


def test_old_names_are_read() -> None:
    old: dict[str, Any] = {
        "thread_id": "t",
        "run_id": "r",
        "messages": [],
        "forwarded_props": {"a": 1},
    }
    assert ag_ui.load_run(old).thread_id == "t"
    assert ag_ui.load_run(old).metadata == {"forwarded_props": {"a": 1}}


def test_a_request_of_ours_comes_back() -> None:
    request = RunRequest(
        (Message.user("Hi.").replace(id="u"),),
        thread_id="t",
        run_id="r",
        tools=(ToolSpec("f", "F.", {"type": "object"}, {"anthropic": {"cache": True}}),),
        context=("plain",),
        settings=Settings(temperature=0.5),
        metadata={"forwarded_props": {"a": 1}, "more": 2.0},
        resume=(Resume("c1", "cancelled", signature="s", metadata={"a": 1}),),
    )
    back = ag_ui.load_run(ag_ui.dump_run(request))
    assert back.replace(native=None) == request


def test_a_client_does_not_say_whose_conversation_it_is() -> None:
    request = RunRequest(thread_id="t", run_id="r", resource_id="somebody", options={"user": "x"})
    back = ag_ui.load_run(ag_ui.dump_run(request))
    assert (back.resource_id, back.options) == (None, None)


@pytest.mark.parametrize("body", [None, [], "x", {"threadId": 1}, {"messages": {}}, {"tools": "x"}, {"resume": {}}, {"messages": [1]}])  # fmt: skip
def test_what_is_no_request_is_refused(body: Any) -> None:
    with pytest.raises(HistoryError):
        ag_ui.load_run(body)


CALL = ToolCallPart("c1", "pay", {"amount": 3})
INTERRUPTS = [
    Interrupt(
        "c1",
        "approval",
        call=CALL,
        message="Pay?",
        editable=True,
        signature="sealed",
        metadata={"a": 1},
    ),
    Interrupt(
        "c1",
        "approval",
        call=CALL,
        expires_at=datetime(2026, 1, 1, tzinfo=UTC),
        metadata={"dragoman": "x"},
    ),
    Interrupt("q", "input", message="Which?", schema={"type": "string"}, parent=("c0",)),
    Interrupt("a", "auth", metadata={"url": "https://sign.test"}),
    Interrupt("c1", "tool", call=CALL),
]


@pytest.mark.parametrize("interrupt", INTERRUPTS)
def test_what_a_run_waits_for_comes_back(interrupt: Interrupt) -> None:
    assert load_interrupt(dump_interrupt(interrupt), interrupt.call) == interrupt


@pytest.mark.parametrize("interrupt", INTERRUPTS)
def test_an_answer_brings_back_what_the_interrupt_carried(interrupt: Interrupt) -> None:
    """A client copies an interrupt's metadata, and knows nothing of what is in it."""
    asked = dump_interrupt(interrupt)
    copied = {"metadata": asked["metadata"]} if "metadata" in asked else {}
    body = {**BODY, "resume": [{"interruptId": asked["id"], "status": "resolved", "payload": {"approved": True}, **copied}]}  # fmt: skip
    (answer,) = ag_ui.load_run(body).resume
    assert (answer.signature, answer.metadata) == (interrupt.signature, interrupt.metadata)


def test_an_answer_that_is_no_approval_is_a_value() -> None:
    body = {**BODY, "resume": [{"interruptId": "q", "status": "resolved", "payload": "red"}]}
    assert ag_ui.load_run(body).resume == (Resume("q", payload={"value": "red"}),)


def test_what_the_protocols_own_package_writes_without_its_aliases_is_the_same() -> None:
    function = {"name": "confirm", "arguments": "{}"}
    picture = {
        "type": "image",
        "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"},
    }
    messages: list[dict[str, Any]] = [
        {"id": "u", "role": "user", "content": [{"type": "text", "text": "Hi."}, picture]},
        {"id": "t", "role": "reasoning", "content": "hm", "encryptedValue": "x"},
        {"id": "a", "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "function": function, "encryptedValue": "y"}]},
        {"id": "r", "role": "tool", "toolCallId": "c", "content": "yes"},
        {"id": "p", "role": "activity", "activityType": "PLAN", "content": {"mime_type": 1}},
    ]  # fmt: skip
    body = {**BODY, "messages": messages}
    written = RunAgentInput.model_validate(body).model_dump(mode="json", exclude_unset=True)
    assert {"thread_id", "forwarded_props"} <= written.keys() and "tool_call_id" in written[
        "messages"
    ][3]
    assert ag_ui.load_run(written) == ag_ui.load_run(body)
    assert ag_ui.load_messages(written["messages"]) == ag_ui.load_messages(messages)


@pytest.mark.parametrize(
    ("field", "value"), [("tools", ["look"]), ("tools", [{"name": "a"}, {"name": ""}]), ("resume", [{"id": "c1"}]), ("resume", ["c1"])]
)  # fmt: skip
def test_a_tool_without_a_name_and_an_answer_to_nothing_are_refused(field: str, value: Any) -> None:
    with pytest.raises(HistoryError, match=rf"{field}\[{len(value) - 1}\]"):
        ag_ui.load_run({**BODY, field: value})
