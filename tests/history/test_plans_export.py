"""`MessageList.export`: what a model reads is repaired, all else is written as it is stored; what
that costs is what `plan` names."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman import formats, wires
from dragoman.history import MessageList, plan
from dragoman.loss import Loss
from dragoman.message import DataPart, MarkPart, Message, Role, ToolCallPart, ToolResultPart
from support.conversations import conversations
from support.disorder import TAKEN, disordered
from support.histories import NEUTRAL
from support.rules import problems
from support.switching import TARGETS, sent

FEW = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
MODELS = [*wires.names("model"), "ai_sdk_model"]
OPEN = [
    Message.user("?"),
    Message.model("I look.", ToolCallPart("c1", "look", {})),
    Message.user("Well?"),
]
WAITS = Message.user(MarkPart("interrupt", {"dragoman": {"id": "i1"}}))


def held(messages: list[Message]) -> MessageList:
    """A list that holds exactly these."""
    return MessageList().add(messages, "memory", merge=False, ordered=True)


def exported(messages: MessageList, name: str, **how: Any) -> Any:
    return json.loads(msgspec.json.encode(messages.export(name, **how)))


@pytest.mark.parametrize("name", formats.names())
def test_m86_a_models_format_has_a_result_for_each_call_and_others_what_is_stored(
    name: str,
) -> None:
    messages = held(OPEN)
    again = formats.get(name).load_messages(messages.export(name))
    results = [
        piece for message in again for piece in message.content if isinstance(piece, ToolResultPart)
    ]
    assert len(results) == (1 if name in MODELS else 0)
    assert list(messages)[1].content == OPEN[1].content
    assert len(messages) == len(OPEN)


@pytest.mark.parametrize("name", formats.names())
def test_a_plan_names_what_an_export_does(name: str) -> None:
    for title, given_ in {
        **NEUTRAL,
        "open": OPEN,
        "waits": [OPEN[0], WAITS, *OPEN[1:], WAITS],
    }.items():
        messages, losses = held(given_), list[Loss]()
        messages.export(name, losses=losses)
        found = plan(messages, formats.get(name))
        assert losses == [*found.repairs, *found.losses], title


@pytest.mark.parametrize("wire", TARGETS)
@FEW
@given(messages=conversations(open_calls=True), seed=st.integers(0, 2**32))
def test_any_disorder_that_is_exported_is_valid_for_every_wire(
    wire: str, messages: list[Message], seed: int
) -> None:
    changed = disordered(messages, seed)
    payload = exported(held(changed), wire, target=TARGETS[wire])
    body = sent(wire, changed)
    fields = (
        payload
        if isinstance(payload, dict)
        else {"input" if wire == "openai_responses" else "messages": payload}
    )
    found = problems(wire, {**body, **fields})
    assert [each for each in found if wire not in TAKEN or not TAKEN[wire].fullmatch(each)] == []


@FEW
@given(messages=conversations(open_calls=True), seed=st.integers(0, 2**32))
def test_any_disorder_is_a_prompt_of_the_ai_sdks(messages: list[Message], seed: int) -> None:
    """M-81, M-86: as `streamText` demands it, each call of a message has its result in the `tool`
    message behind it."""
    waiting: list[str] = []
    for entry in held(disordered(messages, seed)).export("ai_sdk_model"):
        parts = [] if isinstance(entry["content"], str) else entry["content"]
        answered = [
            part["toolCallId"]
            for part in parts
            if part["type"] == "tool-result" and entry["role"] == "tool"
        ]
        assert answered == waiting
        called = [
            part
            for part in parts
            if part["type"] == "tool-call" and not part.get("providerExecuted")
        ]
        waiting = [part["toolCallId"] for part in called]
    assert waiting == []


def approved(*, behind: str = "") -> list[dict[str, Any]]:
    request = {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c2"}
    calls = [
        {"type": "tool-call", "toolCallId": f"c{n}", "toolName": "look", "input": {}}
        for n in (1, 2)
    ]
    answer = {"type": "tool-approval-response", "approvalId": "a1", "approved": True}
    talk = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [calls[0]]},
        {"role": "user", "content": "Well?"},
        {"role": "assistant", "content": [calls[1], request]},
        {"role": "tool", "content": [answer]},
    ]
    return [*talk, *([{"role": "user", "content": behind}] if behind else [])]


def test_a_call_that_was_approved_just_now_stays_open_for_the_ai_sdk() -> None:
    """It runs the call itself, if that has no result."""
    messages, losses = MessageList(), list[Loss]()
    messages.add(approved(), "memory", format="ai_sdk_model", merge=False, ordered=True)
    written = messages.export("ai_sdk_model", losses=losses)
    assert [entry["role"] for entry in written] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "tool",
    ]
    assert [entry["content"] for entry in written[-2:]] == [
        entry["content"] for entry in approved()[-2:]
    ]
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [(1, 0, "tool result")]
    late = MessageList().add(
        approved(behind="So?"), "memory", format="ai_sdk_model", merge=False, ordered=True
    )
    parts = [
        part
        for entry in late.export("ai_sdk_model")
        if entry["role"] == "tool"
        for part in entry["content"]
    ]
    assert [part["toolCallId"] for part in parts if part["type"] == "tool-result"] == ["c1", "c2"]


def test_losses_of_an_export_stand_where_the_user_has_them() -> None:
    audio = DataPart(b"RIFF", "audio/wav", "a.wav")
    messages, losses = (
        held([OPEN[0], WAITS, *OPEN[1:2], Message.model("So."), Message.user(audio)]),
        list[Loss](),
    )
    messages.export("anthropic", losses=losses)
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [
        (2, 1, "tool result"),
        (4, 0, "data"),
    ]


@pytest.mark.parametrize("name", formats.names())
def test_a_message_that_only_waits_is_no_part_of_what_others_have(name: str) -> None:
    again = formats.get(name).load_messages(held([OPEN[0], WAITS]).export(name))
    assert [len(message.content) for message in again if message.role is Role.USER] == [1] * (
        1 + (name == "dragoman")
    )
