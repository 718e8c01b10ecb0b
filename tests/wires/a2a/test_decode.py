"""What agents of others send: 1.0 without our extension, 0.3's events with a `kind`, agents that send the text so far each time."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import event as ev
from dragoman import json_bytes
from dragoman.errors import InvalidRequestError, ModelNotFoundError, StreamCutError
from dragoman.event import Event
from dragoman.fold import fold
from dragoman.message import Origin, TextPart, ToolCallPart, ToolResultPart
from dragoman.wires import a2a

Json = dict[str, Any]


def read(*objects: Json, rpc: bool = False, origin: Origin | None = None) -> list[Event]:
    framed = [a2a.rpc_result(each, 1) if rpc else each for each in objects]
    data = b"".join([b"data: " + json_bytes.encode(each) + b"\r\n\r\n" for each in framed])
    decoder = a2a.decoder(origin=origin)
    return [*decoder.feed(data), *decoder.close()]


def status(state: str, *parts: Json, **more: Any) -> Json:
    message = {"message": {"messageId": "s1", "role": "ROLE_AGENT", "parts": [*parts]}} if parts else {}
    return {"statusUpdate": {"taskId": "T", "contextId": "c", "status": {"state": state, **message}, **more}}


def artifact(id_: str, *parts: Json, **more: Any) -> Json:
    return {
        "artifactUpdate": {"taskId": "T", "contextId": "c", "artifact": {"artifactId": id_, "parts": [*parts]}, **more}
    }


TASK: Json = {"task": {"id": "T", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}}}


@pytest.mark.parametrize("rpc", [True, False])
def test_a_text_in_pieces(rpc: bool) -> None:
    events = read(
        TASK,
        status("TASK_STATE_WORKING"),
        artifact("a", {"text": "It is "}),
        artifact("a", {"text": "clear."}, append=True, lastChunk=True),
        status("TASK_STATE_COMPLETED"),
        rpc=rpc,
        origin=Origin("a2a"),
    )
    [message] = fold(events)
    assert message.id == "a" and message.text == "It is clear." and message.origin == Origin("a2a")
    assert events[0] == ev.RunStarted("T", "c") and events[-1] == ev.RunFinished("T")
    assert [each.delta for each in events if isinstance(each, ev.PartDelta)] == ["It is ", "clear."]


def test_the_stream_of_version_0_3() -> None:
    events = read(
        {"kind": "task", "id": "T", "contextId": "c", "status": {"state": "submitted"}},
        {"kind": "status-update", "taskId": "T", "contextId": "c", "status": {"state": "working"}, "final": False},
        {
            "kind": "artifact-update",
            "taskId": "T",
            "contextId": "c",
            "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "Hi."}]},
            "lastChunk": True,
        },
        {"kind": "status-update", "taskId": "T", "contextId": "c", "status": {"state": "completed"}, "final": True},
        rpc=True,
    )
    assert [message.text for message in fold(events)] == ["Hi."]
    assert events[-1] == ev.RunFinished("T")


def test_a_message_alone_is_the_answer() -> None:
    events = read({"message": {"messageId": "m", "contextId": "c", "role": "ROLE_AGENT", "parts": [{"text": "Hi."}]}})
    assert [(message.id, message.text) for message in fold(events)] == [("m", "Hi.")]
    assert isinstance(events[-1], ev.RunFinished)


def test_a_whole_task_is_read_like_its_stream() -> None:
    task = {
        "id": "T",
        "contextId": "c",
        "status": {"state": "TASK_STATE_COMPLETED"},
        "history": [{"messageId": "u", "role": "ROLE_USER", "parts": [{"text": "Hello?"}]}],
        "artifacts": [{"artifactId": "a", "parts": [{"text": "Hi."}]}],
    }
    for body in (task, {"task": task}, a2a.rpc_result({"task": task}, 1)):
        events = a2a.load_response(json_bytes.encode(body))
        assert [message.text for message in fold(events)] == ["Hi."]
    assert [message.text for message in a2a.load_task(task)] == ["Hello?", "Hi."]


def test_the_text_so_far_is_told_in_pieces() -> None:
    chunk = {"metadata": {"canonical_type": "TextMessageChunkEvent"}, "messageId": "m", "role": "agent"}

    def working(text: str) -> Json:
        message = {**chunk, "parts": [{"kind": "text", "text": text}]}
        return {"kind": "status-update", "taskId": "T", "status": {"state": "working", "message": message}}

    done = {"role": "agent", "messageId": "end", "parts": [{"kind": "text", "text": "It is."}]}
    last = {"kind": "status-update", "taskId": "T", "status": {"state": "completed", "message": done}}
    events = read(working("It"), working("It is"), working("It is."), last)
    assert [each.delta for each in events if isinstance(each, ev.PartDelta)] == ["It", " is", "."]
    assert [message.text for message in fold(events)] == ["It is."]


def test_calls_that_a_task_waits_for_are_the_clients() -> None:
    call = {"call_id": "c1", "name": "f", "arguments": {"n": 1}}
    events = read(TASK, status("TASK_STATE_INPUT_REQUIRED", {"data": {"tool_calls": [call]}}))
    [message] = fold(events)
    assert message.tool_calls == (ToolCallPart("c1", "f", {"n": 1}, run_by="client"),)
    last = events[-1]
    assert isinstance(last, ev.RunFinished) and last.outcome == "pending"
    assert [(each.id, each.reason) for each in last.pending] == [("c1", "tool")]


def test_a_question_is_waited_for_in_its_own_words() -> None:
    last = read(TASK, status("TASK_STATE_INPUT_REQUIRED", {"text": "Which city?"}))[-1]
    assert isinstance(last, ev.RunFinished)
    assert [(each.reason, each.message) for each in last.pending] == [("input", "Which city?")]


def test_calls_and_results_of_others_stand_beside_each_other() -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolCallName": "f", "arguments": '{"n": 42}'}
    result = {"type": "tool-result", "toolCallId": "c1", "content": "ok"}
    events = read(
        TASK,
        artifact("c1", {"data": call}, lastChunk=True),
        artifact("r", {"data": result}, lastChunk=True),
        status("TASK_STATE_COMPLETED"),
    )
    content = [piece for message in fold(events) for piece in message.content]
    assert content == [ToolCallPart("c1", "f", {"n": 42}, raw='{"n": 42}'), ToolResultPart("c1", "", "ok")]


def test_an_artifact_that_is_replaced_is_dropped() -> None:
    events = read(TASK, artifact("a", {"text": "No"}), artifact("a", {"text": "Yes"}), status("TASK_STATE_COMPLETED"))
    assert [message.text for message in fold(events)] == ["Yes"]


def test_a_last_message_is_the_answer_where_there_is_none_else() -> None:
    events = read(TASK, status("TASK_STATE_COMPLETED", {"text": "Done."}))
    assert [message.text for message in fold(events)] == ["Done."]


def test_notes_of_an_agent_at_work_are_no_answer() -> None:
    events = read(TASK, status("TASK_STATE_WORKING", {"text": "Looking…"}), status("TASK_STATE_COMPLETED"))
    assert fold(events) == []
    assert [each.name for each in events if isinstance(each, ev.Custom)] == ["a2a.status"]


def test_a_stream_that_is_cut_says_so_and_keeps_what_there_was() -> None:
    last = read(TASK, artifact("a", {"text": "It "}))[-1]
    assert isinstance(last, ev.RunError) and isinstance(last.error, StreamCutError)
    assert last.error.partial is not None and last.error.partial.text == "It "


def test_errors_of_json_rpc() -> None:
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org",
    }
    body = a2a.rpc_failure({"code": -32001, "message": "no such task", "data": [info]}, 1)
    [event] = a2a.load_response(json_bytes.encode(body))
    assert isinstance(event, ev.RunError) and isinstance(event.error, ModelNotFoundError)


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_bytes_may_be_cut_anywhere(cut: int) -> None:
    objects = [TASK, artifact("a", {"text": "Grüße"}, lastChunk=True), status("TASK_STATE_COMPLETED")]
    data = b"".join([b"data: " + json_bytes.encode(each) + b"\r\n\r\n" for each in objects])
    decoder = a2a.decoder()
    events = [event for at in range(0, len(data), cut) for event in decoder.feed(data[at : at + cut])]
    assert [*events, *decoder.close()] == read(*objects)


@pytest.mark.parametrize(
    "part",
    [
        {"kind": "text", "text": "Hi."},
        {"text": "Hi."},
        {"root": {"kind": "text", "text": "Hi."}},
    ],
)
def test_texts_of_every_version(part: Json) -> None:
    [message] = a2a.load_messages([{"messageId": "m", "role": "user", "parts": [part]}])
    assert message.content == (TextPart("Hi."),)


def test_files_of_every_version() -> None:
    parts = [
        {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "a.txt"}},
        {"raw": "aGk", "mediaType": "text/plain", "filename": "a.txt"},
        {"kind": "file", "file": {"uri": "https://a.test/x.png", "mimeType": "image/png"}},
        {"url": "https://a.test/x.png", "mediaType": "image/png"},
    ]
    [message] = a2a.load_messages([{"messageId": "m", "role": "ROLE_USER", "parts": parts}])
    one, two, three, four = message.content
    assert one == two and three == four


def test_what_an_agent_says_with_results_between_is_several_messages() -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolCallName": "f", "arguments": "{}"}
    result = {"type": "tool-result", "toolCallId": "c1", "content": "ok"}
    parts = [{"text": "a"}, {"data": call}, {"data": result}, {"text": "b"}]
    loaded = a2a.load_messages([{"messageId": "m", "role": "ROLE_AGENT", "parts": parts}])
    assert [(each.id, str(each.role), each.turn) for each in loaded] == [
        ("m", "model", "m"),
        ("m:1", "user", "m"),
        ("m:2", "model", "m"),
    ]


def test_a_refusal_of_a_request_is_one_of_ours_again() -> None:
    for error in (InvalidRequestError("no"), ModelNotFoundError("none")):
        told = a2a.rpc_error(error)
        assert type(a2a.error_of({"error": told})) is type(error)
        answer = a2a.dump_error(error)
        again = a2a.load_error(answer.status, answer.headers, json_bytes.encode(answer.body))
        assert type(again) is type(error) and again.message == error.message
