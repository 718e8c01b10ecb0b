"""Events → the stream: in all the ways in which runs go it is allowed, comes back, and ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui.core import Event as Theirs
from ag_ui_validate.pytest_plugin import assert_valid_agui
from pydantic import TypeAdapter

from dragoman.errors import StreamCutError
from dragoman.event import (
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    StateDelta,
)
from dragoman.fold import fold
from dragoman.message import Role, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires import ag_ui
from dragoman.wires.ag_ui.compact import compact
from support.ag_ui import (
    REQUEST,
    SCENARIOS,
    decoded,
    encoded,
    message_events,
    objects,
    without_empty,
)

TYPES: TypeAdapter[Any] = TypeAdapter(Theirs)
NAMES = sorted(SCENARIOS)


def types(stream: list[dict[str, Any]]) -> list[str]:
    return [each["type"] for each in stream]


@pytest.mark.parametrize("extras", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_every_stream_is_of_the_protocol(name: str, extras: bool) -> None:
    """The validator knows no results that are lists of parts, which came with 1.0."""
    stream = objects(SCENARIOS[name](), request=REQUEST, version="1.0", extras=extras)
    for each in stream:
        TYPES.validate_python(each)
    assert_valid_agui(
        stream, severity_overrides={"AGUI504": "off"} if name == "all kinds" else None
    )
    assert types(stream)[0] == "RUN_STARTED"
    assert types(stream)[-1] in ("RUN_FINISHED", "RUN_ERROR")
    if not extras and name != "an approval":  # its signature has to come back
        assert "dragoman" not in json.dumps(stream)


@pytest.mark.parametrize("name", NAMES)
def test_every_stream_comes_back(name: str) -> None:
    events = without_empty(SCENARIOS[name]())
    back = without_empty(decoded(encoded(events)))
    if name == "cut":
        assert isinstance(last := back.pop(), RunError) and isinstance(last.error, StreamCutError)
    for one, other in zip(back, events, strict=True):
        if isinstance(other, RunError):
            assert isinstance(one, RunError)
            assert (type(one.error), one.error.message, one.run_id) == (
                type(other.error), other.error.message, other.run_id,
            )  # fmt: skip
        else:
            assert one == other


@pytest.mark.parametrize("name", NAMES)
def test_the_objects_are_what_is_framed(name: str) -> None:
    encoder = ag_ui.encoder(run_id="r")
    single = [
        json.loads(json.dumps(each))
        for event in SCENARIOS[name]()
        for each in encoder.objects(event)
    ]
    framed = objects(SCENARIOS[name](), run_id="r")
    assert framed[: len(single)] == single


@pytest.mark.parametrize("name", NAMES)
def test_a_compacted_stream_says_the_same(name: str) -> None:
    stream = objects(SCENARIOS[name]())
    data = b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in compact(stream))
    assert fold(decoded(data)) == fold(decoded(encoded(SCENARIOS[name]())))


def test_frames_end_in_lf_alone_and_nothing_stands_behind_the_last() -> None:
    data = encoded(SCENARIOS["all kinds"]())
    assert b"\r" not in data and b"[DONE]" not in data and data.endswith(b"}\n\n")


def test_a_client_is_not_told_what_it_said_itself() -> None:
    stream = objects(SCENARIOS["what the client said"](), request=REQUEST)
    assert [each["messageId"] for each in stream if each["type"] == "TEXT_MESSAGE_START"] == ["m"]
    assert "Weather?" not in json.dumps(stream)


def test_what_a_client_asks_for_has_its_ids() -> None:
    stream = objects(SCENARIOS["a text"](), **ag_ui.envelope(REQUEST.replace(run_id="mine", thread_id="own"), id="x", now=None))  # type: ignore[arg-type]  # fmt: skip
    for each in (stream[0], stream[-1]):
        assert (each["threadId"], each["runId"]) == ("own", "mine")


def test_older_peers_are_told_what_they_know() -> None:
    """T: `cancelled` and `pendingToolCallIds` came with 1.0."""
    pending, cancelled = SCENARIOS["a tool of the client's"](), SCENARIOS["cancelled"]()
    assert objects(pending, version="1.0")[-1]["outcome"] == {
        "type": "success",
        "pendingToolCallIds": ["c1", "c2"],
    }
    assert objects(cancelled, version="1.0")[-1]["outcome"] == {"type": "cancelled"}
    for version in ("", "0.9", "1", "x.y", None, "١.٠"):
        assert objects(pending, version=version)[-1]["outcome"] == {"type": "success"}
        last = objects(cancelled, version=version)[-1]
        assert (last["type"], last["code"]) == ("RUN_ERROR", "cancelled")
    assert decoded(encoded(cancelled))[-1] == cancelled[-1]


def test_an_approval_names_its_call_and_what_is_answered() -> None:
    (interrupt,) = objects(SCENARIOS["an approval"]())[-1]["outcome"]["interrupts"]
    assert (interrupt["id"], interrupt["reason"], interrupt["toolCallId"]) == (
        "c1",
        "tool_call",
        "c1",
    )
    assert interrupt["responseSchema"]["required"] == ["approved"]


def test_what_is_taken_back_is_told_by_all_that_stands() -> None:
    stream = objects(SCENARIOS["taken back"](), request=REQUEST)
    snapshot = next(each for each in stream if each["type"] == "MESSAGES_SNAPSHOT")
    assert [each["id"] for each in snapshot["messages"]] == ["u"]


def test_a_text_behind_a_call_is_a_message_of_its_own() -> None:
    stream = objects(SCENARIOS["all kinds"]())
    starts = [(each["type"], each.get("messageId") or each["toolCallId"]) for each in stream if each["type"].endswith(("E_START", "L_START"))]  # fmt: skip
    assert starts == [
        ("REASONING_MESSAGE_START", "m:0"), ("TEXT_MESSAGE_START", "m"), ("TOOL_CALL_START", "c1"),
        ("TEXT_MESSAGE_START", "m:3"), ("TOOL_CALL_START", "c2"), ("TEXT_MESSAGE_START", "n"),
    ]  # fmt: skip


def test_a_signature_is_the_encrypted_value_byte_by_byte() -> None:
    signed = ThinkingPart("hm", {"anthropic": {"signature": "c2lnbmVk+/=="}})
    events = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, ThinkingPart()), PartDelta("m", 0, "hm"), PartFinished("m", 0, signed)]  # fmt: skip
    stream = objects(events)
    assert decoded(encoded(events)) == events
    (value,) = [each for each in stream if each["type"] == "REASONING_ENCRYPTED_VALUE"]
    assert value["encryptedValue"] == "c2lnbmVk+/=="
    assert json.dumps(stream).count("c2lnbmVk+/==") == 1


def test_ids_that_repeat_are_told_apart() -> None:
    stream = objects(SCENARIOS["ids that repeat"]())
    calls = [each["toolCallId"] for each in stream if each["type"] == "TOOL_CALL_START"]
    assert len(set(calls)) == 2
    (result,) = [each for each in stream if each["type"] == "TOOL_CALL_RESULT"]
    assert result["toolCallId"] == calls[0]


def test_ids_of_calls_that_the_client_has_are_not_given_again() -> None:
    call = ToolCallPart("c1", "weather", {})
    before = REQUEST.replace(messages=fold(message_events("old", call)))
    stream = objects(message_events("m", call), request=before)
    (start,) = [each for each in stream if each["type"] == "TOOL_CALL_START"]
    assert start["toolCallId"] != "c1"


@pytest.mark.parametrize(
    "native", [{"type": "RUN_FINISHED"}, {"metadata": 1}, {"stepName": 1, "subagentRunId": 2}]
)
def test_fields_that_somebody_else_had_take_no_place_of_ours(native: dict[str, Any]) -> None:
    event = StateDelta((), {"ag_ui": native})
    stream = objects([event])
    assert types(stream) == ["RUN_STARTED", "STATE_DELTA", "RUN_FINISHED"]
    assert decoded(encoded([event])) == [event]


def test_the_work_is_linear_in_ids_that_repeat() -> None:
    """No id is tried twice: as many of one id as there are messages."""
    events = [event for _ in range(2_000) for event in message_events("m", TextPart("a"))]
    stream = objects(events, extras=False)
    ids = {each["messageId"] for each in stream if each["type"] == "TEXT_MESSAGE_START"}
    assert len(ids) == 2_000 and max(map(len, ids)) < 10


def test_what_follows_the_end_is_not_told() -> None:
    late = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, TextPart("x")), PartDelta("m", 0, "x"), PartFinished("m", 0, TextPart("x"))]  # fmt: skip
    assert encoded([*SCENARIOS["a text"](), *late, RunFinished("r")]) == encoded(
        SCENARIOS["a text"]()
    )
