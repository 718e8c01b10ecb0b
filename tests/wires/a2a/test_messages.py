"""Messages of A2A 1.0 in themselves: what is read and written is the same JSON, and what the
extension adds, and when."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import json_bytes
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.interrupt import Interrupt, Resume
from dragoman.loss import Loss, Lost
from dragoman.message import DataPart, Message, TextPart, ToolCallPart, ToolResultPart
from dragoman.request import RunRequest, ToolSpec
from dragoman.wires import a2a

Json = dict[str, Any]


def user(*parts: Json, **more: Any) -> Json:
    return {"messageId": "u1", "role": "ROLE_USER", "parts": [*parts], **more}


@pytest.mark.parametrize(
    "entry",
    [
        user({"text": "Hi."}),
        user({"text": "Hi."}, {"text": "And?"}, contextId="c", taskId="T", referenceTaskIds=["S"]),
        user({"text": "Hi.", "metadata": {"lang": "en"}}, metadata={"mine": {"a": ["b"]}}),
        user({"raw": "aGk=", "mediaType": "text/plain", "filename": "a.txt"}),
        user(
            {"url": "https://a.test/x.png", "mediaType": "image/png"},
            extensions=["https://other.test/x"],
        ),
        user({"data": {"city": "Rome"}, "mediaType": "application/json"}),
        {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Hi."}]},
    ],
)
def test_what_is_read_and_written_is_the_same_json(entry: Json) -> None:
    assert a2a.dump_messages(a2a.load_messages([entry])) == [entry]


def test_what_others_cannot_hold_is_beside_it() -> None:
    [entry] = a2a.dump_messages([Message.user("Hi.").replace(id="u", metadata={"n": 1})])
    assert entry["extensions"] == [a2a.EXTENSION]
    assert entry["metadata"]["canonical_type"] == "TextMessageContentEvent"
    assert all(isinstance(value, str) for value in entry["metadata"][a2a.EXTENSION].values())
    [bare] = a2a.dump_messages(
        [Message.user("Hi.").replace(id="u", metadata={"n": 1})], extras=False
    )
    assert bare == user({"text": "Hi."}, metadata={"n": 1}) | {"messageId": "u"}


def test_a_files_bytes_are_sent_once() -> None:
    message = Message.user(
        DataPart(b"\x00" * 3000, "image/png", None, {"openai_chat": {"detail": "low"}})
    )
    [entry] = a2a.dump_messages([message])
    assert len(json_bytes.encode(entry)) < 4600
    assert a2a.load_messages([entry]) == [message]


@pytest.mark.parametrize("number", [42, 2**53 + 1, 1.0, 1e300])
def test_arguments_are_text(number: float) -> None:
    message = Message.model(ToolCallPart("c", "f", {"b": number, "a": 1})).replace(id="m")
    [entry] = a2a.dump_messages([message], extras=False)
    assert isinstance(entry["parts"][0]["data"]["arguments"], str)
    [read] = a2a.load_messages([entry])
    assert read.to_json() == message.to_json()


def test_without_the_extension_calls_results_files_and_texts_survive() -> None:
    history = [
        Message.user(TextPart("Look."), DataPart(b"hi", "text/plain", "a.txt")).replace(id="u"),
        Message.model(
            TextPart("I look."), ToolCallPart("c", "f", {"n": 42}, run_by="client")
        ).replace(id="m"),
        Message.user(ToolResultPart("c", "f", "it failed", is_error=True)).replace(id="r"),
    ]
    assert a2a.load_messages(a2a.dump_messages(history, extras=False)) == history


def test_a_conversation_is_a_task_and_again_one() -> None:
    history = [
        Message.user("Hi.").replace(id="u"),
        Message.model("Hello.").replace(id="m", metadata={"n": 1}),
    ]
    task = a2a.dump_task(history, task_id="T", context_id="c")
    assert [each["artifactId"] for each in task["artifacts"]] == ["m"]
    [asked, said] = a2a.load_task(task)
    assert asked.text == "Hi." and said == history[1]


REQUEST = RunRequest(
    (Message.user("Hi.").replace(id="u"),),
    thread_id="t",
    run_id="r",
    tools=(ToolSpec("f", "does", {"type": "object"}),),
    context=({"n": 2**53 + 1},),
    state={"b": 1, "a": 2},
    resume=(Resume("i", payload={"approved": True}, signature="s", metadata={"n": 1}),),
    metadata={"mine": "x"},
)


def test_a_request_comes_back_as_it_was() -> None:
    for body in (a2a.dump_run(REQUEST), a2a.rpc_request("SendMessage", a2a.dump_run(REQUEST), 7)):
        read = a2a.load_run(json_bytes.decode(json_bytes.encode(body)))
        assert read.replace(native=None) == REQUEST
        assert json_bytes.encode(read.state) == b'{"b":1,"a":2}'


def test_where_a_request_belongs() -> None:
    params = {
        "message": user({"text": "Hi."}, contextId="c", taskId="T"),
        "configuration": {"historyLength": 2, "returnImmediately": True},
    }
    read = a2a.load_run(params)
    assert read.thread_id == "c" and read.messages == (Message.user("Hi.").replace(id="u1"),)
    assert read.native is not None and read.native["a2a"]["taskId"] == "T"
    assert read.native["a2a"]["configuration"] == {"historyLength": 2, "returnImmediately": True}
    again = a2a.dump_run(read)
    assert again == params


def test_what_an_agent_must_know_already_is_a_loss() -> None:
    losses: list[Loss] = []
    a2a.dump_run(
        RunRequest((Message.user("a"), Message.model("b"), Message.user("c"))), losses=losses
    )
    assert [(each.message, each.what) for each in losses] == [(0, Lost.message), (1, Lost.message)]


APPROVAL = Interrupt("i", "approval", ToolCallPart("c", "f"))
QUESTION = Interrupt("q", "input", message="Which?")


@pytest.mark.parametrize(
    ("pending", "words", "payload"),
    [
        (QUESTION, "Rome", {"value": "Rome"}),
        (APPROVAL, "Yes.", {"approved": True}),
        (APPROVAL, "deny", {"approved": False}),
        (Interrupt("a", "auth"), "done", {"value": "done"}),
    ],
)
def test_words_answer_the_one_question(pending: Interrupt, words: str, payload: Json) -> None:
    read = a2a.answer_from_words(a2a.load_run({"message": user({"text": words})}), [pending])
    assert read.messages == () and [(each.interrupt_id, each.payload) for each in read.resume] == [
        (pending.id, payload)
    ]


@pytest.mark.parametrize(
    "pending",
    [[APPROVAL], [QUESTION, APPROVAL], [], [Interrupt("c", "tool", ToolCallPart("c", "f"))]],
)
def test_words_that_answer_nothing_stay_words(pending: list[Interrupt]) -> None:
    request = a2a.load_run({"message": user({"text": "Perhaps."})})
    assert a2a.answer_from_words(request, pending) is request


def test_the_canonical_type_tells_calls_and_results() -> None:
    odd = {"n": 1}
    history = [
        Message.model(ToolCallPart("c", "f")).replace(metadata=odd),
        Message.user(ToolResultPart("c", "f", "x")).replace(metadata=odd),
        Message.model("Hi.").replace(metadata=odd),
    ]
    written = a2a.dump_messages(history)
    assert [entry["metadata"]["canonical_type"] for entry in written] == [
        "ToolCallStartEvent",
        "ToolCallResultEvent",
        "TextMessageEndEvent",
    ]
    assert a2a.load_messages(written) == history


def test_how_surely_a_message_is_one_of_this_format() -> None:
    part = [{"text": "Hi."}]
    votes: dict[int, list[Any]] = {
        3: [
            {"role": "ROLE_USER", "parts": part},
            {"role": "user", "parts": part, "kind": "message"},
            {"role": "user", "parts": part, "metadata": {"canonical_type": "x"}},
        ],
        2: [{"role": "agent", "parts": part}, {"role": "user", "parts": part, "messageId": "m"}],
        0: [
            {"role": "user", "parts": part},
            {"role": "system", "parts": part},
            {"role": "ROLE_USER"},
            [],
            None,
            "x",
        ],
    }
    for vote, entries in votes.items():
        assert [a2a.votes(entry) for entry in entries] == [vote] * len(entries)


def test_what_cannot_be_read_is_left_out_and_noted() -> None:
    problems: list[Problem] = []
    fine = user({"text": "Hi."})
    odd: list[Any] = [
        fine,
        {**fine, "role": "nobody"},
        {**fine, "parts": "x"},
        user({"text": 1}),
        user({}),
        7,
        {**fine, "parts": [1]},
    ]
    assert len(a2a.load_messages(odd, problems=problems)) == 1
    assert [(each.index, each.field) for each in problems] == [
        (1, "role"), (2, "parts"), (3, "parts"), (4, "parts"), (5, None), (6, "parts"),
    ]  # fmt: skip
    for entry in odd[1:]:
        with pytest.raises(HistoryError):
            a2a.load_messages([entry])
    with pytest.raises(HistoryError):
        a2a.load_messages("x")


def test_what_a_task_asks_is_its_last_message() -> None:
    asked = {"messageId": "q", "role": "ROLE_AGENT", "parts": [{"text": "Which?"}]}
    status = {"state": "TASK_STATE_INPUT_REQUIRED", "message": asked}
    task: Json = {"id": "T", "status": status, "history": [user({"text": "Hi."})]}
    assert [each.text for each in a2a.load_messages(task)] == ["Hi.", "Which?"]
    assert [
        each.text for each in a2a.load_messages({**task, "history": [*task["history"], asked]})
    ] == [
        "Hi.",
        "Which?",
    ]


def test_a_message_without_an_id_has_one_where_it_is_written_and_none_where_it_is_read() -> None:
    [one, two] = a2a.dump_messages([Message.user("a"), Message.user("b")])
    assert one["messageId"] != two["messageId"]
    assert [each.id for each in a2a.load_messages([one, two])] == [None, None]
