"""What a model is sent of a list: rules M-84 to M-87."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dragoman import MarkPart, Message, MessageList, Role, ThinkingPart
from dragoman.history import exchanges
from support.listed import call, fresh, model, outline, result, results, texts, user


def prompt(*messages: Message | str) -> list[str]:
    return outline(fresh().add(list(messages)).prompt())


def test_m84_a_conversation_begins_with_a_question() -> None:
    assert prompt(model("a"), "b") == ["user: .", "model: a", "user: b"]
    assert prompt(model("a"))[0] == "user: ."
    assert prompt("a", model("b")) == ["user: a", "model: b"]
    assert outline(fresh().add_system("s").add(model("a")).prompt()) == [
        "system: s",
        "user: .",
        "model: a",
    ]


def test_m84_nothing_is_put_behind_the_last() -> None:
    assert prompt("a", model("b"))[-1] == "model: b"


def test_m85_an_empty_list_is_an_empty_prompt_and_system_messages_alone_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert fresh().prompt() == []
    with caplog.at_level(logging.WARNING, "dragoman.history"):
        assert texts(fresh().add_system("s").prompt()) == ["s"]
    assert "nothing else" in caplog.text


def test_m86_marks_and_blank_texts_are_left_out() -> None:
    mark = MarkPart("data-weather", {"ai_sdk": {"data": 1}})
    assert prompt(user("a", " \n", mark), model(" ", "b", mark)) == ["user: a", "model: b"]
    assert prompt("a", user(mark), user("  "), model("b")) == ["user: a", "model: b"]


def test_m86_a_models_blank_text_stays_where_it_is_all() -> None:
    assert prompt("a", model("  ")) == ["user: a", "model:   "]
    assert prompt("a", model(ThinkingPart("t"), "  ")) == ["user: a", "model: (t)"]


def test_m86_a_call_without_an_outcome_is_answered() -> None:
    made = prompt("a", model("b", call()), "c")
    assert made[:2] == ["user: a", "model: b, call c1"]
    assert made[2].startswith("user: error c1=")


def test_m86_calls_of_the_providers_stay() -> None:
    ran = (call(run_by="provider"), result(run_by="provider"))
    assert prompt("a", model(*ran, "b")) == ["user: a", "model: call c1, result c1=r, b"]


def test_m87_a_result_without_its_call_is_left_out_and_the_rest_of_its_message_stays() -> None:
    assert prompt("a", user(result("c9"), "b"), results(result("c8"))) == ["user: a", "user: b"]


def test_m87_what_needs_nothing_is_the_same_object() -> None:
    messages = fresh().add(["a", model("b", call(), id="m"), results(result()), model("c"), "d"])
    assert all(one is other for one, other in zip(messages.prompt(), messages.get(), strict=True))


@pytest.mark.parametrize("size", [100, 400])
def test_a_prompt_costs_what_is_new(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = fresh()
    for number in range(size):
        messages.add([user(f"{number}"), model(call(f"c{number}"))]).add(
            results(result(f"c{number}"))
        ).add(model("x"))
    messages.prompt()
    looked = 0
    repair = exchanges.repair

    def counted(given: Any) -> list[Message]:
        nonlocal looked
        given = list(given)
        looked += len(given)
        return repair(given)

    monkeypatch.setattr(exchanges, "repair", counted)
    for number in range(10):
        messages.add(["more", model(call(f"d{number}"))])
        assert outline(messages.prompt())[-1].startswith("user: error")
        messages.add(results(result(f"d{number}")))
        assert len(messages.prompt()) == len(messages.get())
    assert looked <= 20 * 200


def test_what_changes_in_the_middle_is_seen() -> None:
    messages = fresh().add(
        [
            one
            for number in range(200)
            for one in (user(f"q{number}", id=f"q{number}"), model(f"a{number}", id=f"a{number}"))
        ]
    )
    before = messages.prompt()
    messages.add(user("edited", id="q5"))
    after = messages.prompt()
    assert [
        place
        for place, (one, other) in enumerate(zip(before, after, strict=True))
        if one is not other
    ] == [10]
    assert [message.role for message in after[:2]] == [Role.USER, Role.MODEL]
    messages.remove("q5")
    assert len(messages.prompt()) == 399
    assert MessageList(messages).prompt() == messages.prompt()
