"""What a task waits for, and the answers, with our extension and without."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman.interrupt import Interrupt, Resume
from dragoman.message import Message, TextPart, ToolCallPart, ToolResultPart
from dragoman.request import RunRequest
from dragoman.wires import a2a
from dragoman.wires.a2a.interrupts import (
    dump_pending,
    dump_resume,
    load_pending,
    load_resume,
    waiting_state,
)

WHOLE = Interrupt(
    "i",
    "approval",
    ToolCallPart("c", "delete", {"n": 2**53 + 1}),
    "May I?",
    {"type": "object", "maximum": 1},
    datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    True,
    "signed",
    metadata={"url": "https://a.test", "n": 42},
)
INNER = Interrupt("q", "input", parent=("outer",))


@pytest.mark.parametrize("extras", [True, False])
def test_a_question_comes_back_as_it_was(extras: bool) -> None:
    message = dump_pending([WHOLE, Interrupt("q", "input")], "m", extras=extras)
    assert load_pending(message, "TASK_STATE_INPUT_REQUIRED") == (WHOLE, Interrupt("q", "input"))
    assert message["role"] == "ROLE_AGENT" and message["messageId"] == "m"
    assert ("metadata" in message, "extensions" in message) == (extras, extras)


def test_whose_tool_asks_is_in_the_extension() -> None:
    assert load_pending(dump_pending([INNER], "m"), "") == (INNER,)


def test_people_read_what_is_asked() -> None:
    def words(interrupt: Interrupt) -> str:
        return dump_pending([interrupt], "m")["parts"][0]["text"]

    assert words(WHOLE) == "May I?"
    assert (
        words(Interrupt("i", "approval", ToolCallPart("c", "delete")))
        == "May the tool delete be run?"
    )
    assert (
        words(Interrupt("i", "tool", ToolCallPart("c", "look")))
        == "Run the tool look and send its result."
    )
    assert words(Interrupt("i", "auth")).startswith("Sign in")
    assert dump_pending([], "m")["parts"] == [{"text": "The agent waits."}]


def test_only_sign_ins_are_waited_for_as_such() -> None:
    auth, asked = Interrupt("a", "auth"), Interrupt("b", "input")
    assert waiting_state([auth]) == waiting_state([auth, auth]) == "TASK_STATE_AUTH_REQUIRED"
    assert (
        waiting_state([auth, asked])
        == waiting_state([asked])
        == waiting_state([])
        == "TASK_STATE_INPUT_REQUIRED"
    )


@pytest.mark.parametrize("odd", ["{}", "[1]", "null", '[{"id": 1}]', "half"])
def test_an_extension_that_cannot_be_read_leaves_the_parts(odd: str) -> None:
    message = dump_pending([WHOLE], "m")
    message["metadata"][a2a.EXTENSION]["pending"] = odd
    assert load_pending(message, "") == (WHOLE,)


def test_a_question_of_others_is_one_in_its_words() -> None:
    asked: dict[str, Any] = {
        "messageId": "x",
        "parts": [{"text": "a"}, {"data": {"type": "interrupt"}}, {"text": "b"}],
    }
    assert load_pending(asked, "TASK_STATE_INPUT_REQUIRED") == (
        Interrupt("x", "input", message="a\nb"),
    )
    assert load_pending({}, "TASK_STATE_AUTH_REQUIRED") == (Interrupt("auth", "auth"),)


@pytest.mark.parametrize(
    "resume",
    [
        Resume("i"),
        Resume("i", "cancelled"),
        Resume("i", payload={"value": 2**53 + 1}, signature="s", metadata={"n": 1}),
        Resume("i", payload="text"),
        Resume("i", payload=[]),
    ],
)
def test_an_answer_comes_back_as_it_was(resume: Resume) -> None:
    assert load_resume(dump_resume(resume)) == resume


def test_an_answer_may_be_json_itself() -> None:
    part = {"data": {"type": "resume", "interruptId": "i", "payload": {"approved": True}}}
    assert load_resume(part) == Resume("i", payload={"approved": True})
    assert load_resume({"data": {"type": "resume", "interruptId": 1}}) is None
    assert load_resume({"data": {"type": "other", "interruptId": "i"}}) is None


def test_words_beside_results_files_and_answers_answer_nothing() -> None:
    asked = [Interrupt("q", "input")]
    for message in (
        Message.user(TextPart("x"), ToolResultPart("c", "f", 1)),
        Message.model("x"),
        Message.user(" "),
        Message.user(),
    ):
        request = RunRequest((message,))
        assert a2a.answer_from_words(request, asked) is request
    answers = RunRequest((Message.user("x"),), resume=(Resume("q"),))
    assert a2a.answer_from_words(answers, asked) is answers
    nothing = RunRequest()
    assert a2a.answer_from_words(nothing, asked) is nothing


def test_a_clients_tool_that_waits_beside_a_question_is_no_second_question() -> None:
    pending = [Interrupt("q", "input"), Interrupt("c", "tool", ToolCallPart("c", "f"))]
    read = a2a.answer_from_words(RunRequest((Message.user("Rome"),)), pending)
    assert [each.interrupt_id for each in read.resume] == ["q"]
