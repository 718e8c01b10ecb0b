"""Editing: forks, edits, regenerations, branches, trimming, summaries."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import Agent, Message, MessageList, Role
from dragoman.codec.turns import holds_only_answers
from dragoman.errors import HistoryError
from dragoman.testing import ScriptedModel
from support.conversations import conversations
from support.listed import call, fresh, model, outline, result, results, texts, user

TALK = [
    user("q1", id="q1"),
    model(call(), id="a1"),
    results(result(), id="r1"),
    model("done", id="b1"),
    user("q2", id="q2"),
    model("a2", id="a2"),
]


def talk() -> MessageList:
    return fresh(thread_id="t").add_system("s", "tag").add(TALK)


def test_a_fork_has_what_stands_before_a_message_and_all_else_of_the_list() -> None:
    messages = talk()
    fork = messages.fork("q2")
    assert outline(fork) == ["system: s", *outline(TALK[:4])]
    assert (fork.thread_id, fork.prompt()[1:]) == ("t", messages.get()[:4])
    assert outline(messages.fork().get()) == outline(messages.fork(6).get()) == outline(TALK)
    assert outline(messages.fork(-1).get()) == outline(TALK[:-1])
    fork.add_system("other")
    assert texts(messages.all_system_messages()) == ["s"]


@pytest.mark.parametrize("at", ["nobody", 7, -7])
def test_a_fork_at_nothing_is_an_error(at: str | int) -> None:
    with pytest.raises(HistoryError):
        talk().fork(at)


@pytest.mark.slow
def test_forks_hold_what_they_share_once() -> None:
    messages = fresh().add([user(f"{number}") for number in range(10_000)])
    forks = [messages.fork() for _ in range(50)]
    shared = {id(chunk) for chunk in messages._rows._chunks}
    for fork in forks:
        fork.add("more")
        assert fork._rows.position(messages.get()[17].id or "") == 17
        assert {id(chunk) for chunk in fork._rows._chunks} == shared
        assert len(fork._rows._ids.places) <= 256
    messages.add(user("changed", id=messages.get()[3].id))
    assert all(fork[3].text == "3" for fork in forks)


def test_forks_of_forks_and_growth_in_between_find_everything() -> None:
    messages = fresh()
    lists = [messages]
    for number in range(40):
        messages.add(f"m{number}")
        messages = messages.fork() if number % 2 else messages
        assert all(
            messages._rows.position(message.id or "") == place
            for place, message in enumerate(messages.get())
        )
        lists.append(messages)
        assert len(messages._rows._ids._layers) <= 12
    assert [len(each) for each in lists[-2:]] == [40, 40]


def test_an_edit_keeps_the_id_and_cuts_what_is_behind_it() -> None:
    messages = talk().edit("q2", "other")
    assert outline(messages.get()) == [*outline(TALK[:4]), "user: other"]
    assert messages.get()[-1].id == "q2"
    assert [(branch.behind, outline(branch.messages)) for branch in messages.branches] == [
        ("b1", outline(TALK[4:]))
    ]
    assert messages.edit("q1", {"role": "user", "content": "first"}).get()[0].text == "first"
    assert len(messages.branches) == 2


@pytest.mark.parametrize(
    ("message_id", "new"), [("nobody", "x"), ("q1", ["a", "b"]), ("q1", None), ("q1", 7)]
)
def test_an_edit_of_nothing_or_with_nothing_changes_nothing(message_id: str, new: object) -> None:
    messages = talk()
    with pytest.raises(HistoryError):
        messages.edit(message_id, new)
    assert outline(messages.get()) == outline(TALK)


@pytest.mark.parametrize("message_id", ["q1", "a1", "r1", "b1"])
def test_a_regeneration_ends_at_the_question(message_id: str) -> None:
    messages = talk().regenerate(message_id)
    assert outline(messages.get()) == ["user: q1"]
    assert outline(messages.branches[0].messages) == outline(TALK[1:])


def test_the_last_answer_is_regenerated_and_there_must_be_a_question() -> None:
    messages = talk().regenerate()
    assert outline(messages.get()) == outline(TALK[:5])
    assert len(messages.regenerate().branches) == 1
    with pytest.raises(HistoryError, match="no question"):
        fresh().add(model("a")).regenerate()


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({"exchanges": 1}, 2),
        ({"exchanges": 2}, 6),
        ({"messages": 5}, 2),
        ({"messages": 6}, 6),
        ({"messages": 0}, 2),
        ({"tokens": 1}, 2),
        ({"tokens": 10**6}, 6),
        ({}, 6),
    ],
)
def test_r06_the_oldest_exchanges_go_and_the_last_stays(limits: dict[str, int], left: int) -> None:
    messages = talk()
    gone = messages.trim(**limits)
    assert outline(messages.get()) == outline(TALK[6 - left :])
    assert outline(gone) == outline(TALK[: 6 - left])
    assert texts(messages.system_messages("tag")) == ["s"]


def test_r06_tokens_are_counted_by_whom_one_names() -> None:
    messages = fresh().add(
        [one for number in range(10) for one in (user(f"q{number}"), model(f"a{number}"))]
    )
    messages.trim(tokens=7, tokens_of=lambda _: 1)
    assert len(messages) == 6


@pytest.mark.parametrize("limit", [-1, True, 1.5, "3"])
def test_r01_a_limit_is_a_whole_number(limit: object) -> None:
    for name in ("messages", "tokens", "exchanges"):
        with pytest.raises(HistoryError, match=name):
            talk().trim(**{name: limit})  # type: ignore[arg-type]


def test_r19_what_a_call_ties_together_is_not_cut() -> None:
    messages = fresh().add(
        ["q1", model(call(), id="m"), "well?", model("wait"), results(result()), "q2", model("a2")]
    )
    messages.trim(exchanges=2)
    assert outline(messages)[0] == "user: q1"
    messages.trim(exchanges=1)
    assert outline(messages) == ["user: q2", "model: a2"]


@settings(max_examples=40)
@given(conversations(exchanges=5), st.integers(0, 12))
def test_r19_a_trimmed_conversation_begins_with_a_question_and_has_all_calls_of_its_results(
    talk: list[Message], most: int
) -> None:
    messages = MessageList().add(
        [message.replace(id=None, turn=None) for message in talk if message.role is not Role.SYSTEM]
    )
    before = messages.get()
    gone = messages.trim(messages=most)
    left = messages.get()
    assert gone + left == before
    assert not left or not gone or (left[0].role is Role.USER and not holds_only_answers(left[0]))
    called = {piece.id for message in left for piece in message.tool_calls}
    answered = {piece.id for message in left for piece in message.tool_results}
    assert answered <= called or not gone


@pytest.mark.anyio
async def test_a_summary_takes_the_place_of_the_beginning() -> None:
    seen: list[list[str]] = []

    def summary(messages: Sequence[Message]) -> str:
        seen.append(outline(messages))
        return f"summary {len(seen)}"

    messages = fresh().add(TALK)
    made = await messages.summarize(summary)
    assert made is not None and outline(messages) == [
        f"system: {made.text}",
        "user: q2",
        "model: a2",
    ]
    assert seen == [outline(TALK[:4])]
    assert outline(messages.branches[0].messages) == outline(TALK[:4])
    assert await messages.summarize(summary) is None
    messages.add(["q3", model("a3")])
    again = await messages.summarize(summary)
    assert again is not None and "summary 2" in again.text
    assert seen[1][0] == f"system: {made.text}"
    assert texts(messages.system_messages("summary")) == [again.text]


@pytest.mark.anyio
async def test_an_agent_summarises() -> None:
    model_ = ScriptedModel(["All was said."])
    messages = fresh().add(TALK)
    made = await messages.summarize(Agent(model_), exchanges=0)
    assert made is not None and made.text.endswith("All was said.")
    assert outline(messages) == [f"system: {made.text}"]


@pytest.mark.anyio
async def test_what_changes_while_it_is_summarised_is_not_lost() -> None:
    messages = fresh().add(TALK)

    async def summary(_: Sequence[Message]) -> str:
        messages.remove("a1")
        return "x"

    with pytest.raises(HistoryError, match="was changed"):
        await messages.summarize(summary)
    assert len(messages.get()) == 5
