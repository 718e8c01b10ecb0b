"""What agents of others send: 1.0 without our extension, 0.3's events with a `kind`, agents that
send the text so far each time."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import event as ev
from dragoman import json_bytes
from dragoman.errors import (
    ContentRefusedError,
    InvalidRequestError,
    ModelNotFoundError,
    ProviderError,
    StreamCutError,
)
from dragoman.event import Event
from dragoman.fold import fold
from dragoman.message import (
    DataPart,
    FinishReason,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.wires import a2a

Json = dict[str, Any]


def read(*objects: Json, rpc: bool = False, origin: Origin | None = None) -> list[Event]:
    framed = [a2a.rpc_result(each, 1) if rpc else each for each in objects]
    data = b"".join([b"data: " + json_bytes.encode(each) + b"\r\n\r\n" for each in framed])
    decoder = a2a.decoder(origin=origin)
    return [*decoder.feed(data), *decoder.close()]


def status(state: str, *parts: Json, **more: Any) -> Json:
    message = (
        {"message": {"messageId": "s1", "role": "ROLE_AGENT", "parts": [*parts]}} if parts else {}
    )
    return {
        "statusUpdate": {
            "taskId": "T",
            "contextId": "c",
            "status": {"state": state, **message},
            **more,
        }
    }


def artifact(id_: str, *parts: Json, **more: Any) -> Json:
    return {
        "artifactUpdate": {
            "taskId": "T",
            "contextId": "c",
            "artifact": {"artifactId": id_, "parts": [*parts]},
            **more,
        }
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
        {
            "kind": "status-update",
            "taskId": "T",
            "contextId": "c",
            "status": {"state": "working"},
            "final": False,
        },
        {
            "kind": "artifact-update",
            "taskId": "T",
            "contextId": "c",
            "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "Hi."}]},
            "lastChunk": True,
        },
        {
            "kind": "status-update",
            "taskId": "T",
            "contextId": "c",
            "status": {"state": "completed"},
            "final": True,
        },
        rpc=True,
    )
    assert [message.text for message in fold(events)] == ["Hi."]
    assert events[-1] == ev.RunFinished("T")


def test_a_message_alone_is_the_answer() -> None:
    events = read(
        {
            "message": {
                "messageId": "m",
                "contextId": "c",
                "role": "ROLE_AGENT",
                "parts": [{"text": "Hi."}],
            }
        }
    )
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
    chunk = {
        "metadata": {"canonical_type": "TextMessageChunkEvent"},
        "messageId": "m",
        "role": "agent",
    }

    def working(text: str) -> Json:
        message = {**chunk, "parts": [{"kind": "text", "text": text}]}
        return {
            "kind": "status-update",
            "taskId": "T",
            "status": {"state": "working", "message": message},
        }

    done = {"role": "agent", "messageId": "end", "parts": [{"kind": "text", "text": "It is."}]}
    last = {
        "kind": "status-update",
        "taskId": "T",
        "status": {"state": "completed", "message": done},
    }
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
    assert content == [
        ToolCallPart("c1", "f", {"n": 42}, raw='{"n": 42}'),
        ToolResultPart("c1", "", "ok"),
    ]


def test_an_artifact_that_is_replaced_is_dropped() -> None:
    events = read(
        TASK,
        artifact("a", {"text": "No"}),
        artifact("a", {"text": "Yes"}),
        status("TASK_STATE_COMPLETED"),
    )
    assert [message.text for message in fold(events)] == ["Yes"]


def test_a_last_message_is_the_answer_where_there_is_none_else() -> None:
    events = read(TASK, status("TASK_STATE_COMPLETED", {"text": "Done."}))
    assert [message.text for message in fold(events)] == ["Done."]


def test_notes_of_an_agent_at_work_are_no_answer() -> None:
    events = read(
        TASK, status("TASK_STATE_WORKING", {"text": "Looking…"}), status("TASK_STATE_COMPLETED")
    )
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
    objects = [
        TASK,
        artifact("a", {"text": "Grüße"}, lastChunk=True),
        status("TASK_STATE_COMPLETED"),
    ]
    data = b"".join([b"data: " + json_bytes.encode(each) + b"\r\n\r\n" for each in objects])
    decoder = a2a.decoder()
    events = [
        event for at in range(0, len(data), cut) for event in decoder.feed(data[at : at + cut])
    ]
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


def test_shared_state_and_results_are_no_messages() -> None:
    patch = {"op": "replace", "path": "/n", "value": 2}
    kind = {"mediaType": "application/json-patch+json"}

    def state(value: Any, **more: Any) -> Json:
        update = artifact("state", {"data": value, **more.pop("part", {})}, **more)
        update["artifactUpdate"]["artifact"]["name"] = "state"
        return update

    result = artifact("result", {"data": {"sky": "clear"}})
    result["artifactUpdate"]["artifact"]["name"] = "result"
    events = read(
        TASK,
        state({"n": 1}),
        state([patch], append=True),
        state([patch], part=kind),
        state([1]),
        result,
        status("TASK_STATE_COMPLETED"),
    )
    assert events[1:-1] == [
        ev.StateSnapshot({"n": 1}),
        ev.StateDelta((patch,)),
        ev.StateDelta((patch,)),
        ev.StateSnapshot([1]),
    ]


@pytest.mark.parametrize(
    ("state", "kind", "words"),
    [
        ("TASK_STATE_FAILED", ProviderError, "the agent's task ended as failed"),
        ("TASK_STATE_REJECTED", ContentRefusedError, "the agent's task ended as rejected"),
    ],
)
def test_a_task_that_failed_says_so(state: str, kind: type[Exception], words: str) -> None:
    last = read(TASK, artifact("a", {"text": "It "}), status(state))[-1]
    assert (
        isinstance(last, ev.RunError) and type(last.error) is kind and last.error.message == words
    )
    told = read(TASK, status(state, {"text": "No more."}))[-1]
    assert isinstance(told, ev.RunError) and told.error.message == "No more."


def test_a_task_that_was_cancelled() -> None:
    events = read(TASK, artifact("a", {"text": "It "}), status("TASK_STATE_CANCELED"))
    assert events[-1] == ev.RunFinished("T", "cancelled")
    assert [message.finish_reason for message in fold(events)] == [FinishReason.cancelled]


def test_tokens_are_read_where_they_are_told() -> None:
    metadata = {
        a2a.EXTENSION: {
            "usage": '[{"inputTokens": 3, "outputTokens": 4}, {"inputTokens": 1, "outputTokens": true}]'
        }
    }
    last = read(TASK, status("TASK_STATE_COMPLETED", metadata=metadata))[-1]
    assert last == ev.RunFinished("T", usage=Usage(input_tokens=4, output_tokens=4))


def test_a_task_that_goes_on_tells_what_there_is_of_it() -> None:
    task: Json = {
        "id": "T",
        "status": {"state": "TASK_STATE_WORKING"},
        "artifacts": [{"artifactId": "a", "parts": [{"text": "Hi"}]}],
    }
    events = read(
        {"task": task},
        artifact("b", {"text": "there"}, lastChunk=True),
        status("TASK_STATE_COMPLETED"),
    )
    assert [(message.id, message.text) for message in fold(events)] == [("a", "Hi"), ("b", "there")]
    assert events.count(ev.RunStarted("T")) == 1


def test_an_artifact_that_is_over_can_be_replaced_too() -> None:
    one, two = (artifact("a", {"text": text}, lastChunk=True) for text in ("No", "Yes"))
    events = read(TASK, one, two, status("TASK_STATE_COMPLETED"))
    assert [message.text for message in fold(events)] == ["Yes"]
    assert isinstance(events[5], ev.MessageFinished) and isinstance(events[6], ev.MessageDropped)


def test_parts_with_fields_of_their_own_stay_apart() -> None:
    marked = {"text": "b", "metadata": {"lang": "de"}}
    data = {"data": {"n": 1}}
    events = read(
        TASK,
        artifact("a", {"text": "a"}, marked, data, lastChunk=True),
        status("TASK_STATE_COMPLETED"),
    )
    [message] = fold(events)
    assert [type(piece) for piece in message.content] == [TextPart, TextPart, DataPart]
    assert message.finish_reason is FinishReason.stop


def test_thinking_of_an_agent_at_work() -> None:
    thought = {"text": "Hm.", "metadata": {"thought": True}}
    events = read(
        TASK,
        status("TASK_STATE_WORKING", thought),
        status("TASK_STATE_COMPLETED"),
        origin=Origin("a2a"),
    )
    [message] = fold(events)
    assert (
        message.content == (ThinkingPart("Hm."),)
        and message.id == "s1"
        and message.origin == Origin("a2a")
    )


def test_texts_so_far_have_the_id_of_their_message() -> None:
    message = {
        "metadata": {"canonical_type": "TextMessageChunkEvent"},
        "role": "agent",
        "parts": [{"text": "Hi"}],
    }
    for given, wanted in (({"messageId": "m"}, "m"), ({}, "T:text")):
        update = {"taskId": "T", "status": {"state": "working", "message": {**message, **given}}}
        events = read({"statusUpdate": update}, status("TASK_STATE_COMPLETED"))
        assert [each.id for each in fold(events)] == [wanted]


def whole(state: str, *parts: Json, **more: Any) -> Json:
    given = {"artifacts": [{"artifactId": "a", "parts": [*parts]}]} if parts else {}
    return {"task": {"id": "T", "contextId": "c", "status": {"state": state}, **given, **more}}


DONE = whole(
    "TASK_STATE_COMPLETED",
    {"text": "It is clear."},
    {"url": "https://a.test/x", "mediaType": "image/png"},
)
PICTURE = {"url": "https://a.test/x", "mediaType": "image/png"}


@pytest.mark.parametrize(
    "before",
    [
        [artifact("a", {"text": "It is "}), artifact("a", {"text": "clear."}, PICTURE, append=True, lastChunk=True)],
        [artifact("a", {"text": "It is clear."}), artifact("a", PICTURE, append=True)],
        [artifact("a", {"text": "It was"}, lastChunk=True)],
        [whole("TASK_STATE_WORKING", {"text": "It is "}), artifact("a", {"text": "clear."}, PICTURE, append=True)],
        [whole("TASK_STATE_WORKING", {"text": "It is "}), whole("TASK_STATE_WORKING", {"text": "It is clear."}, PICTURE)],
        [whole("TASK_STATE_WORKING", {"text": "It is cl"}, PICTURE), whole("TASK_STATE_WORKING", {"text": "It is clear."}, PICTURE)],
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", [DONE, status("TASK_STATE_COMPLETED")])
def test_a_task_that_is_told_whole_is_not_told_twice(before: list[Json], end: Json) -> None:
    [message] = fold(read(TASK, *before, end))
    if end is DONE or "It was" not in str(before):
        assert (message.text, [type(each).__name__ for each in message.parts]) == ("It is clear.", ["TextPart", "LinkPart"])  # fmt: skip


def test_an_answer_that_stands_in_the_history_alone_is_read() -> None:
    said = [{"messageId": id_, "role": role, "parts": [{"text": id_}]} for id_, role in (("Earlier.", "ROLE_AGENT"), ("Well?", "ROLE_USER"), ("Yes.", "ROLE_AGENT"))]  # fmt: skip
    assert [each.text for each in fold(read(whole("TASK_STATE_COMPLETED", history=said)))] == [
        "Yes."
    ]
    assert [
        each.text
        for each in fold(read(whole("TASK_STATE_COMPLETED", {"text": "No."}, history=said)))
    ] == ["No."]
    assert fold(read(whole("TASK_STATE_COMPLETED", history=said[:2]))) == []
