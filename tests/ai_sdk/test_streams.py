"""The UI message stream without its library: what streams of others give, whatever is in them, and
what comes back of our own."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman import wires
from dragoman.event import Event, MessageDropped, RunError, RunFinished, RunStarted
from dragoman.fold import fold, unfold
from dragoman.interrupt import Interrupt
from dragoman.message import Message, Role, TextPart, ThinkingPart, ToolCallPart, ToolResultPart

WIRE: Any = wires.protocol("ai_sdk")
CALL = {"type": "tool-input-available", "toolCallId": "c", "toolName": "pay", "input": {"sum": 3}}
RESULT = {"type": "tool-output-available", "toolCallId": "c", "output": 1}
ASKS = {"type": "tool-approval-request", "toolCallId": "c", "approvalId": "a"}
STOP = {"type": "finish", "finishReason": "stop"}
TEXT: list[dict[str, Any]] = [
    {"type": "text-start", "id": "1"},
    {"type": "text-delta", "id": "1", "delta": "Done."},
    {"type": "text-end", "id": "1"},
]
STEP, RESET = {"type": "start-step"}, {"type": "reset-step"}
KINDS = [
    *(
        "start",
        "start-step",
        "finish-step",
        "reset-step",
        "text-start",
        "text-delta",
        "text-end",
        "reasoning-start",
    ),
    *(
        "reasoning-delta",
        "reasoning-end",
        "reasoning-file",
        "tool-input-start",
        "tool-input-delta",
        "custom",
        "file",
    ),
    *(
        "tool-input-available",
        "tool-input-error",
        "tool-approval-request",
        "tool-approval-response",
        "source-url",
    ),
    *(
        "tool-output-available",
        "tool-output-error",
        "tool-output-denied",
        "source-document",
        "data-x",
        "data-state",
    ),
    *(
        "data-state-delta",
        "data-interrupt",
        "steering-message",
        "error",
        "message-metadata",
        "abort",
        "finish",
    ),
    *("data-", "text-", "tool-input-", "tool-output-", "of-tomorrow"),
]
FIELDS = [
    *(
        "id",
        "delta",
        "toolCallId",
        "toolName",
        "input",
        "inputTextDelta",
        "output",
        "errorText",
        "providerMetadata",
    ),
    *(
        "messageMetadata",
        "messageId",
        "approvalId",
        "reason",
        "signature",
        "data",
        "transient",
        "dynamic",
        "url",
    ),
    *(
        "preliminary",
        "providerExecuted",
        "title",
        "mediaType",
        "sourceId",
        "kind",
        "parts",
        "finishReason",
    ),
]
VALUES: list[Any] = [
    *(
        None,
        True,
        0,
        -1.5,
        10**30,
        "",
        "a",
        "b",
        "stop",
        "tool-calls",
        [],
        {},
        ["x"],
        {"dragoman": {"a": 1}},
    ),
    *(
        {"dragoman": [1]},
        {"a": {"b": [1]}},
        "data:text/plain;base64,AAA",
        [{"op": "add"}],
        {"id": "a", "reason": {}},
    ),
]
NAMES = frozenset(["id", "toolCallId", "toolName", "delta", "inputTextDelta"])


def framed(chunks: Sequence[Any]) -> bytes:
    return b"".join([b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks])


def read(*chunks: Any, size: int | None = None) -> list[Event]:
    data, decoder = framed(chunks), WIRE.decoder()
    step = size or len(data)
    events = [
        event for at in range(0, len(data), step) for event in decoder.feed(data[at : at + step])
    ]
    return [*events, *decoder.close()]


def end_of(*chunks: Any) -> RunFinished:
    end = read(*chunks)[-1]
    assert isinstance(end, RunFinished)
    return end


def test_a_step_taken_back_is_void_whole() -> None:
    events = read(STEP, CALL, RESULT, RESET, *TEXT, STOP)
    assert len([event for event in events if isinstance(event, MessageDropped)]) == 2
    assert [message.text for message in fold(events)] == ["Done."]


def test_what_stood_before_the_step_stays() -> None:
    events = read(STEP, CALL, RESULT, STEP, *TEXT, RESET, *TEXT, STOP)
    assert [(message.role, message.text) for message in fold(events)] == [
        (Role.MODEL, ""),
        (Role.USER, ""),
        (Role.MODEL, "Done."),
    ]


def test_an_approval_of_a_step_taken_back_is_not_waited_for() -> None:
    assert end_of(STEP, CALL, ASKS, RESET, *TEXT, STOP).outcome == "success"


def test_an_approval_waits_until_it_is_answered() -> None:
    assert [each.id for each in end_of(CALL, ASKS, STOP).pending] == ["a"]
    assert end_of(CALL, ASKS, RESULT, *TEXT, STOP).pending == ()
    answer = {"type": "tool-approval-response", "approvalId": "a", "approved": True}
    assert end_of(CALL, ASKS, answer, STOP).pending == ()


def test_a_call_that_the_provider_runs_is_not_the_clients() -> None:
    waits = {"type": "finish", "finishReason": "tool-calls"}
    assert [each.reason for each in end_of(CALL, waits).pending] == ["tool"]
    assert end_of(CALL | {"providerExecuted": True}, waits).pending == ()


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_stream_holds_it_ends_once_and_raises_nothing(seed: int) -> None:
    rng = random.Random(seed)

    def value(name: str) -> Any:
        return (
            rng.choice(["a", "b"]) if name in NAMES and rng.random() < 0.8 else rng.choice(VALUES)
        )

    for _ in range(60):
        chunks = [
            {
                "type": rng.choice(KINDS),
                **{name: value(name) for name in rng.sample(FIELDS, rng.randint(2, 14))},
            }
            for _ in range(rng.randint(1, 9))
        ]
        events = read(*chunks)
        assert sum(isinstance(event, RunError | RunFinished) for event in events) == 1
        assert isinstance(events[-1], RunError | RunFinished)
        fold(events)


@pytest.mark.parametrize("given", [None, 1, "x", [], [1], {}, {"type": 1}, {"type": None}])
def test_what_is_no_chunk_is_an_error_of_the_run(given: Any) -> None:
    assert isinstance(read({"type": "start"}, given)[-1], RunError)


def test_a_stream_is_read_in_any_pieces_and_a_cut_one_says_so() -> None:
    chunks = [{"type": "start", "messageId": "m"}, STEP, CALL, RESULT, STEP, *TEXT, STOP]
    whole = read(*chunks)
    assert all(read(*chunks, size=size) == whole for size in (1, 2, 7))
    for end in range(1, len(chunks)):
        assert isinstance(read(*chunks[:end])[-1], RunError)


def test_a_run_comes_back_from_its_own_chunks() -> None:
    call = ToolCallPart("c", "pay", {"sum": 3})
    turn = [
        Message.model(ThinkingPart("Hm."), TextPart("Let me."), call),
        Message.user(ToolResultPart("c", "pay", {"paid": True})),
        Message.model("Done."),
    ]
    named = [message.replace(id=f"m{at}", turn="m0") for at, message in enumerate(turn)]
    encoder = WIRE.encoder()
    run = [RunStarted("r"), *unfold(named), RunFinished("r")]
    data = b"".join([*[encoder.feed(event) for event in run], encoder.close()])
    assert data.endswith(b"data: [DONE]\n\n")
    events = WIRE.load_response(data)
    assert [(message.role, message.parts, message.thinking) for message in fold(events)] == [
        (message.role, message.parts, message.thinking) for message in named
    ]
    assert isinstance(events[-1], RunFinished)


def test_an_approval_comes_back_with_its_signature() -> None:
    call = ToolCallPart("c", "pay", {"sum": 3})
    asks = Interrupt("c", "approval", call=call, message="3 for tea", signature="sealed")
    run = [
        *unfold([Message.model(call).replace(id="m", turn="m")]),
        RunFinished("r", "pending", pending=(asks,)),
    ]
    encoder = WIRE.encoder()
    data = b"".join([*[encoder.feed(event) for event in run], encoder.close()])
    end = WIRE.load_response(data)[-1]
    assert isinstance(end, RunFinished)
    assert end.pending == (asks,)


def test_metadata_of_the_message_is_read() -> None:
    """Whatever chunk brings it; objects in it are merged, as the library does, and what is ours is
    not shown."""
    events = read(
        {
            "type": "start",
            "messageId": "m",
            "messageMetadata": {"model": "x", "count": {"in": 1}, "dragoman": {"a": 1}},
        },
        *TEXT,
        {"type": "message-metadata", "messageMetadata": {"count": {"out": 2}}},
        {**STOP, "messageMetadata": {"model": "y"}},
    )
    [message] = fold(events)
    assert message.metadata == {"model": "y", "count": {"in": 1, "out": 2}}


def test_metadata_stands_with_the_message_that_it_came_in() -> None:
    early, late = (
        {"type": "message-metadata", "messageMetadata": {name: 1}} for name in ("early", "late")
    )
    first, _, last = fold(read(early, CALL, RESULT, STEP, *TEXT, late, STOP))
    assert (dict(first.metadata), dict(last.metadata)) == ({"early": 1}, {"late": 1})


@pytest.mark.parametrize("given", [None, 1, "x", [1]])
def test_metadata_that_is_no_object_says_nothing(given: Any) -> None:
    [message] = fold(read({"type": "start", "messageMetadata": given}, *TEXT, STOP))
    assert message.metadata == {}


def test_what_cannot_be_taken_back_behind_another_step_ends_the_stream() -> None:
    first, second = (Message.model(each).replace(id=each) for each in ("One.", "Two."))
    encoder = WIRE.encoder()
    events = [RunStarted("r"), *unfold([first]), *unfold([second])[:3], MessageDropped("One.")]
    chunks = [chunk for event in events for chunk in encoder.objects(event)]
    kinds = [chunk["type"] for chunk in chunks]
    assert "reset-step" not in kinds  # it would take back the step that is open
    assert kinds[-3:] == ["text-end", "error", "finish"]
    assert encoder.objects(RunFinished("r")) == ()
