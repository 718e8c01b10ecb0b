"""A run as a task's stream, for peers that know no extension of ours, and as the official library's
types take it."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import event as ev
from dragoman.errors import ContentRefusedError, ProviderError
from dragoman.event import Event
from dragoman.fold import part_events
from dragoman.interrupt import Interrupt
from dragoman.message import (
    DataPart,
    FinishReason,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import RunRequest
from dragoman.wires import a2a

Json = dict[str, Any]
CALL = ToolCallPart("call_1", "weather", {"city": "Rome", "n": 42, "big": 2**53 + 1})
USAGE = Usage(input_tokens=3, output_tokens=4, total_tokens=7)


def text(message_id: str, *deltas: str, index: int = 0) -> list[Event]:
    return [
        ev.PartStarted(message_id, index, ev.OpenText()),
        *[ev.PartDelta(message_id, index, delta) for delta in deltas],
        ev.PartFinished(message_id, index, TextPart("".join(deltas))),
    ]


RUN: list[Event] = [
    ev.RunStarted("r", "t"),
    ev.StepStarted("model call 1"),
    ev.MessageStarted("m1", Role.MODEL),
    *part_events("m1", 0, ThinkingPart("Hm.")),
    *part_events("m1", 1, CALL),
    ev.MessageFinished("m1", FinishReason.tool_calls),
    ev.MessageStarted("m2", Role.USER),
    *part_events("m2", 0, ToolResultPart("call_1", "weather", {"sky": "clear"})),
    ev.MessageFinished("m2"),
    ev.StepFinished("model call 1"),
    ev.StateSnapshot({"n": 1}),
    ev.StateDelta(({"op": "replace", "path": "/n", "value": 2},)),
    ev.Custom("progress", {"done": 0.5}),
    ev.MessageStarted("m3", Role.MODEL),
    *text("m3", "It ", "is ", "clear."),
    *part_events("m3", 1, DataPart(b"\x89PNG", "image/png", "sky.png")),
    ev.MessageFinished("m3", FinishReason.stop, USAGE),
    ev.RunFinished("r", usage=USAGE, result={"sky": "clear"}),
]


def objects(events: list[Event], **envelope: Any) -> list[Json]:
    encoder = a2a.encoder(**{"task_id": "task-1", "context_id": "t", **envelope})
    found = [each for event in events for each in encoder.objects(event)]
    return [dict(each) for each in [*found, *encoder.close_objects()]]


def artifacts(listed: list[Json]) -> list[tuple[str, Any, bool, bool]]:
    updates = [each["artifactUpdate"] for each in listed if "artifactUpdate" in each]
    return [
        (
            one["artifact"]["artifactId"],
            one["artifact"]["parts"][0],
            one["append"],
            one["lastChunk"],
        )
        for one in updates
    ]


def states(listed: list[Json]) -> list[str]:
    found = [each["task"]["status"]["state"] for each in listed if "task" in each]
    return [
        *found,
        *(each["statusUpdate"]["status"]["state"] for each in listed if "statusUpdate" in each),
    ]


def test_a_task_comes_first_and_its_end_last() -> None:
    listed = objects(RUN, extras=False)
    assert [*listed[0]] == ["task"] and "task" not in {key for each in listed[1:] for key in each}
    assert states(listed)[:2] == ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"]
    assert listed[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_what_every_peer_sees_of_a_run() -> None:
    assert artifacts(objects(RUN, extras=False)) == [
        (
            "call_1",
            {
                "data": {
                    "type": "tool-call",
                    "toolCallId": "call_1",
                    "toolCallName": "weather",
                    "arguments": '{"city":"Rome","n":42,"big":9007199254740993}',
                },
                "mediaType": "application/json",
            },
            False,
            True,
        ),
        (
            "m2",
            {
                "data": {
                    "type": "tool-result",
                    "toolCallId": "call_1",
                    "toolCallName": "weather",
                    "content": '{"sky":"clear"}',
                },
                "mediaType": "application/json",
            },
            False,
            True,
        ),
        ("state", {"data": {"n": 1}, "mediaType": "application/json"}, False, True),
        (
            "state",
            {
                "data": [{"op": "replace", "path": "/n", "value": 2}],
                "mediaType": "application/json-patch+json",
            },
            True,
            True,
        ),
        ("m3", {"text": "It "}, False, False),
        ("m3", {"text": "is "}, True, False),
        ("m3", {"text": "clear."}, True, True),
        ("m3:1", {"raw": "iVBORw==", "mediaType": "image/png", "filename": "sky.png"}, False, True),
        ("result", {"data": {"sky": "clear"}, "mediaType": "application/json"}, False, True),
    ]
    thoughts = [
        each["statusUpdate"]["status"]["message"]["parts"]
        for each in objects(RUN, extras=False)
        if "message" in each.get("statusUpdate", {}).get("status", {})
    ]
    assert thoughts == [[{"text": "Hm.", "metadata": {"thought": True}}]]


def test_without_the_extension_nothing_of_it_is_sent() -> None:
    assert "dragoman" not in repr(objects(RUN, extras=False))
    assert all(
        "metadata" in each["artifactUpdate"]
        for each in objects(RUN)
        if each.get("artifactUpdate", {}).get("append") is False
    )


def test_one_delta_alone_is_the_first_and_the_last() -> None:
    run = [
        ev.RunStarted("r"),
        ev.MessageStarted("m", Role.MODEL),
        *text("m", "Hi."),
        ev.RunFinished("r"),
    ]
    assert artifacts(objects(run)) == [("m", {"text": "Hi."}, False, True)]


@pytest.mark.parametrize("events", [RUN, RUN[:-1], RUN[:9], RUN[3:12]])
def test_the_stream_put_together_is_the_whole_task(events: list[Event]) -> None:
    whole = a2a.dump_response(events, task_id="task-1", context_id="t", extras=False)
    assert whole == a2a.aggregate_task(objects(events, extras=False))


def test_the_official_library_puts_it_together_likewise() -> None:
    json_format = pytest.importorskip("google.protobuf.json_format")
    types = pytest.importorskip("a2a.types")
    utils = pytest.importorskip("a2a.server.tasks.task_manager")
    task = types.Task()
    for each in objects(RUN):
        response = json_format.ParseDict(each, types.StreamResponse())
        if response.HasField("task"):
            task.CopyFrom(response.task)
        elif response.HasField("artifact_update"):
            utils.append_artifact_to_task(task, response.artifact_update)
        else:
            task.status.CopyFrom(response.status_update.status)
    whole = a2a.dump_response(RUN, task_id="task-1", context_id="t")
    theirs = [("".join(part.text for part in one.parts), one.artifact_id) for one in task.artifacts]
    ours = [
        ("".join(part.get("text", "") for part in one["parts"]), one["artifactId"])
        for one in whole["artifacts"]
    ]
    assert theirs == ours
    json_format.ParseDict(whole, types.Task())


def test_events_survive_protobuf_and_back() -> None:
    json_format = pytest.importorskip("google.protobuf.json_format")
    types = pytest.importorskip("a2a.types")
    decoder = a2a.decoder()
    back: list[Event] = []
    for each in objects(RUN):
        through = json_format.MessageToDict(json_format.ParseDict(each, types.StreamResponse()))
        back += decoder.feed(a2a_bytes(through))
    back += decoder.close()
    assert without_steps(back) == without_steps(RUN)


def without_steps(events: list[Event]) -> list[bytes]:
    from dragoman.fold import compact

    return [ev.event_to_json(event) for event in compact(events)]


def a2a_bytes(value: Any) -> bytes:
    from dragoman import json_bytes

    return b"data: " + json_bytes.encode(value) + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (ev.RunFinished("r", "cancelled"), "TASK_STATE_CANCELED"),
        (ev.RunError(ProviderError("no"), "r"), "TASK_STATE_FAILED"),
        (ev.RunError(ContentRefusedError("no"), "r"), "TASK_STATE_REJECTED"),
        (
            ev.RunFinished("r", "pending", pending=(Interrupt("i", "input", message="Which?"),)),
            "TASK_STATE_INPUT_REQUIRED",
        ),
        (
            ev.RunFinished("r", "pending", pending=(Interrupt("i", "auth"),)),
            "TASK_STATE_AUTH_REQUIRED",
        ),
        (
            ev.RunFinished("r", "pending", pending=(Interrupt("call_1", "tool", CALL),)),
            "TASK_STATE_INPUT_REQUIRED",
        ),
    ],
)
@pytest.mark.parametrize("extras", [True, False])
def test_each_end_has_its_state_and_is_read_again(end: Any, state: str, extras: bool) -> None:
    listed = objects([ev.RunStarted("task-1", "t"), end], extras=extras)
    assert states(listed)[-1] == state
    back = a2a.load_response(b"".join(map(a2a_bytes, listed)))
    last = back[-1]
    if isinstance(end, ev.RunError):
        assert isinstance(last, ev.RunError) and type(last.error) is type(end.error)
    else:
        assert isinstance(last, ev.RunFinished) and last.outcome == end.outcome
        assert [(each.id, each.reason, each.call) for each in last.pending] == [
            (each.id, each.reason, each.call) for each in end.pending
        ]


def test_an_error_says_nothing_that_is_not_the_clients() -> None:
    error = ProviderError("it failed", body=b"upstream secret", partial=Message.model("half"))
    for sent in (
        repr(objects([ev.RunStarted("r"), ev.RunError(error, "r")])),
        repr(a2a.dump_response([ev.RunError(error)])),
    ):
        assert "it failed" in sent and "secret" not in sent and "half" not in sent
        assert "dXBzdHJlYW0gc2VjcmV0" not in sent  # in base64


def test_what_is_retracted_is_replaced_by_nothing() -> None:
    dropped = [
        *RUN[:1],
        ev.MessageStarted("m", Role.MODEL),
        *text("m", "No", "!"),
        ev.MessageDropped("m", "again"),
    ]
    listed = objects(
        [*dropped, ev.MessageStarted("n", Role.MODEL), *text("n", "Yes."), ev.RunFinished("r")],
        extras=False,
    )
    assert ("m", {"text": ""}, False, True) in artifacts(listed)
    task = a2a.aggregate_task(listed)
    said = [message.text for message in a2a.load_messages(task) if message.content]
    assert said == ["Yes."]


def test_a_task_that_goes_on_keeps_its_id_and_its_beginning() -> None:
    from datetime import UTC, datetime

    now = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
    params = {
        "message": {
            "messageId": "u",
            "taskId": "T",
            "contextId": "c",
            "role": "ROLE_USER",
            "parts": [{"text": "Yes."}],
        }
    }
    request = a2a.load_run(
        {"jsonrpc": "2.0", "id": "q", "method": "SendStreamingMessage", "params": params}
    )
    encoder = a2a.encoder(**a2a.envelope(request, id="new", now=now))
    data = encoder.feed(ev.RunStarted("r", "c")) + encoder.feed(ev.RunFinished("r"))
    assert data.count(b'"jsonrpc":"2.0","id":"q"') == 2
    [task, *_] = [
        dict(each)
        for each in a2a.encoder(**a2a.envelope(request, id="new", now=now)).objects(
            ev.RunStarted("r")
        )
    ]
    assert task["task"]["id"] == "T" and task["task"]["contextId"] == "c"
    assert task["task"]["status"] == {
        "state": "TASK_STATE_WORKING",
        "timestamp": "2026-01-02T03:04:05.678Z",
    }
    assert [each["messageId"] for each in task["task"]["history"]] == ["u"]
    fresh = a2a.envelope(RunRequest((Message.user("Hi."),)), id="new", now=now)
    assert fresh["task_id"] == "new" and not fresh["goes_on"]


def test_the_thinking_of_a_run_within_a_tool_is_no_artifact() -> None:
    inner: list[Event] = [
        ev.RunStarted("r2", parent_run_id="r"),
        ev.MessageStarted("i1", Role.MODEL, run_id="r2"),
        *text("i1", "inner"),
        ev.MessageFinished("i1"),
        ev.RunFinished("r2"),
    ]
    run = [
        ev.RunStarted("r"),
        *inner,
        ev.MessageStarted("m", Role.MODEL),
        *text("m", "Hi."),
        ev.RunFinished("r"),
    ]
    assert artifacts(objects(run)) == [("m", {"text": "Hi."}, False, True)]
    assert "inner" not in repr(objects(run, extras=False))
    back = a2a.load_response(b"".join(map(a2a_bytes, objects(run))))
    assert without_steps(back) == without_steps(run)


def test_a_stream_without_our_extension_is_read_as_far_as_it_says() -> None:
    from dragoman.fold import fold

    events = a2a.load_response(b"".join(map(a2a_bytes, objects(RUN, extras=False))))
    content = [piece for message in fold(events) for piece in message.content]
    assert content == [
        ThinkingPart("Hm."),
        CALL,
        ToolResultPart("call_1", "weather", '{"sky":"clear"}'),
        TextPart("It is clear."),
        DataPart(b"\x89PNG", "image/png", "sky.png"),
    ]
    assert [event for event in events if isinstance(event, ev.StateSnapshot)] == [
        ev.StateSnapshot({"n": 1})
    ]


def test_a_stream_that_loses_our_extension_half_way_is_read_on() -> None:
    listed = objects(RUN)
    for each in listed[6:]:
        for update in each.values():
            update.pop("metadata", None)
    back = a2a.load_response(b"".join(map(a2a_bytes, listed)))
    assert sum(isinstance(event, ev.RunStarted) for event in back) == 1
    assert isinstance(back[-1], ev.RunFinished)
    from dragoman.fold import fold

    assert "".join(message.text for message in fold(back)) == "It is clear."


def test_a_run_without_words_for_its_failure_has_some() -> None:
    [*_, last] = objects([ev.RunStarted("r"), ev.RunError(ProviderError(""), "r")])
    assert last["statusUpdate"]["status"]["message"]["parts"] == [{"text": "the agent failed"}]


def test_a_run_that_waits_by_what_it_waits_for_is_one_that_waits() -> None:
    for outcome in ("pending", "success"):
        end = ev.RunFinished("r", outcome, pending=(Interrupt("i", "input"),))
        assert states(objects([ev.RunStarted("r"), end]))[-1] == "TASK_STATE_INPUT_REQUIRED"
    assert (
        states(objects([ev.RunStarted("r"), ev.RunFinished("r", "pending")]))[-1]
        == "TASK_STATE_INPUT_REQUIRED"
    )


@pytest.mark.parametrize("extras", [True, False])
def test_a_whole_task_is_read_as_the_messages_of_its_run(extras: bool) -> None:
    from dragoman.fold import fold

    task = a2a.aggregate_task(objects(RUN, extras=extras))
    said = [TextPart("It is clear."), DataPart(b"\x89PNG", "image/png", "sky.png")]
    content = [list(message.content) for message in a2a.load_task(task) if message.content]
    given = [
        [CALL],
        [ToolResultPart("call_1", "weather", '{"sky":"clear"}')],
        *([said] if extras else [[one] for one in said]),
    ]
    thoughts = [[ThinkingPart("Hm.")]]
    assert content == [*thoughts, *given]
    without: Json = {**task, "metadata": {}}
    events = a2a.load_response(json_bytes_of(without))
    assert [list(message.content) for message in fold(events)] == given


def json_bytes_of(value: Any) -> bytes:
    from dragoman import json_bytes

    return json_bytes.encode(value)
