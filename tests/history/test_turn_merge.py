"""Copies of a turn that say more are made one with it: rules M-42, M-46, M-48 to M-49h."""

from __future__ import annotations

import pytest

from dragoman import MarkPart, Message, ThinkingPart, ToolCallPart, repair
from support.listed import (
    START,
    STEP,
    at,
    call,
    fresh,
    model,
    outline,
    result,
    results,
    texts,
    user,
)


def merged(known: Message | list[Message], added: Message | list[Message]) -> list[str]:
    return outline(fresh().add(known).add(added, "response"))


def test_m42_answers_that_follow_each_other_are_one_turn_and_keep_their_ids() -> None:
    messages = (
        fresh().add("q").add(model("a", id="a"), "response").add(model("b", id="b"), "response")
    )
    assert [(message.id, message.turn) for message in messages.get()[1:]] == [
        ("a", "a"),
        ("b", "a"),
    ]


def test_m42_two_adjacent_answers_that_are_no_responses_stay_two_turns() -> None:
    messages = fresh().add([user("q"), model("a", id="a"), model("b", id="b")])
    assert [message.turn for message in messages.get()] == [None, None, None]


@pytest.mark.parametrize("why", ["merge", "rotated", "sealed", "done", "marks"])
def test_m42_what_keeps_answers_apart(why: str) -> None:
    first = model(
        MarkPart("data-x") if why == "marks" else "a",
        id="a",
        metadata={"isTaskCompleteResult": True} if why == "done" else {},
    )
    messages = fresh().add("q").add(first, "response")
    if why == "sealed":
        messages.seal("a")
    if why == "rotated":
        messages.new_response()
    messages.add(model("b", id="b"), "response", merge=why != "merge")
    assert [message.turn for message in messages.get()[1:]] == ["a", "b"]


def test_m48_metadata_are_joined_and_the_added_go_before() -> None:
    messages = (
        fresh()
        .add(model("a", id="x", metadata={"a": 1, "b": {"x": 1}}))
        .add(model("a", id="x", metadata={"b": {"y": 2}}), "response")
    )
    assert messages.get()[0].metadata == {"a": 1, "b": {"y": 2}}


def test_m49_a_call_takes_its_result() -> None:
    assert merged(model(call(), id="x"), [model(call(), id="x"), results(result())]) == [
        "model: call c1",
        "user: result c1=r",
    ]


def test_m49_a_call_that_is_known_changes_nothing() -> None:
    known = [model(call(), id="x"), results(result())]
    assert merged(known, model(call(arguments={"a": 2}), id="x")) == [
        "model: call c1",
        "user: result c1=r",
    ]


def test_m49_what_providers_know_of_a_call_is_joined() -> None:
    messages = fresh().add(model(call(native={"google": {"a": 1}}), id="x"))
    messages.add(
        model(call(native={"google": {"b": 2}, "openai_chat": {"c": 3}}), id="x"), "response"
    )
    piece = messages.get()[0].content[0]
    assert piece.native == {"google": {"a": 1, "b": 2}, "openai_chat": {"c": 3}}


def test_m49_a_cut_call_becomes_whole() -> None:
    cut = ToolCallPart("c1", "f", raw='{"a": ', state="cut")
    messages = fresh().add(model(cut, id="x")).add(model(call(), id="x"), "response")
    assert messages.get()[0].content == (call(),)


def test_m49_of_several_calls_the_one_of_that_id_is_updated() -> None:
    known = model(call("c1"), "between", call("c2"), id="x")
    assert merged(known, [model(call("c2"), id="x"), results(result("c2"))]) == [
        "model: call c1, between, call c2",
        "user: result c2=r",
    ]


def test_m49a_a_message_that_grows_is_not_doubled() -> None:
    grown = [
        model("a", id="x"),
        model("a", "a", id="x"),
        model("a", "a", call(), id="x"),
        model("a", "a", call(), "b", id="x"),
    ]
    messages = fresh()
    for message in grown:
        messages.add(message, "response")
        assert outline(messages) == outline([message])


@pytest.mark.parametrize(
    ("known", "added", "becomes"),
    [
        ([call()], [STEP, "text", call()], "model: <step-start>, text, call c1"),
        (["text", call()], [STEP, call()], "model: <step-start>, text, call c1"),
        (["a", call()], ["a", "b", call()], "model: a, b, call c1"),
        (
            [call("c1"), call("c2")],
            [call("c1"), "between", call("c2")],
            "model: call c1, between, call c2",
        ),
        (["old", call()], ["new", call()], "model: new, old, call c1"),
        ([call(), "old"], [call(), "new"], "model: call c1, old, new"),
    ],
)
def test_m49b_what_is_new_stands_where_it_stood_beside_what_is_known(
    known: list[object], added: list[object], becomes: str
) -> None:
    messages = fresh().add(model(*known, id="x"))  # type: ignore[arg-type]
    messages.add([model(*added, id="x"), results(result(), id="r")], "response")  # type: ignore[arg-type]
    assert outline(messages) == [becomes, "user: result c1=r"]


def test_m49c_what_is_missing_in_a_copy_stays() -> None:
    assert merged(model("a", ThinkingPart("t"), "b", id="x"), model("c", id="x")) == [
        "model: a, (t), b, c"
    ]


def test_m49d_texts_behind_an_answered_call_are_a_message_of_their_own() -> None:
    known = [model(call(), id="x"), results(result(), id="r")]
    copy = [*known, model("a", "b", id="y")]
    messages = fresh().add(known).add(copy, "response")
    assert outline(messages) == ["model: call c1", "user: result c1=r", "model: a, b"]
    assert [message.id for message in messages] == ["x", "r", "y"]


def test_m49b_a_step_behind_an_answered_call_begins_a_message() -> None:
    known = [model(call(), id="x"), results(result(), id="r")]
    messages = fresh().add(known).add(model(call(), STEP, "then", id="x"), "response")
    assert outline(messages) == ["model: call c1", "user: result c1=r", "model: <step-start>, then"]
    assert len({message.turn or "x" for message in messages.get()}) == 1


def test_m49e_several_calls_in_between_texts() -> None:
    messages = fresh().add(model("A", call("c1"), "B", call("c2"), id="x"), "response")
    messages.add(results(result("c1")), "response").add(results(result("c2")), "response").add(
        model("text"), "response"
    )
    assert outline(messages) == [
        "model: A, call c1, B, call c2",
        "user: result c1=r",
        "user: result c2=r",
        "model: text",
    ]
    assert outline(repair(messages)) == [
        "model: A, call c1, B, call c2",
        "user: result c1=r, result c2=r",
        "model: text",
    ]
    assert {message.turn for message in messages.get()} == {"x"}


def test_m49f_thinking_without_text_is_told_by_the_providers_id() -> None:
    one, two = (ThinkingPart("", {"openai_responses": {"id": f"rs_{number}"}}) for number in (1, 2))
    messages = fresh().add(model(one, id="x")).add(model(one, two, id="x"), "response")
    assert messages.get()[0].content == (one, two)


def test_m49f_thinking_that_lost_its_signature_on_the_way_is_the_same() -> None:
    signed = ThinkingPart("t", {"openai_responses": {"id": "rs_1", "encrypted_content": "e"}})
    messages = (
        fresh().add(model(signed, id="x")).add(model(ThinkingPart("t"), "a", id="x"), "response")
    )
    assert messages.get()[0].content == (signed, *model("a").content)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            MarkPart("data-a", {"ai_sdk": {"data": {"x": 1, "y": 2}}}),
            MarkPart("data-a", {"ai_sdk": {"data": {"y": 2, "x": 1}}}),
            True,
        ),
        (
            MarkPart("data-a", {"ai_sdk": {"data": 1}}),
            MarkPart("data-a", {"ai_sdk": {"data": 2}}),
            False,
        ),
        (call("c1"), call("c2"), False),
        (ThinkingPart("a"), ThinkingPart("b"), False),
    ],
)
def test_m49h_what_is_the_same_piece(one: object, other: object, same: bool) -> None:
    messages = fresh().add(model("t", one, id="x")).add(model("t", other, id="x"), "response")  # type: ignore[arg-type]
    assert len(messages.get()[0].content) == (2 if same else 3)


def test_m49g_a_result_is_replaced_by_a_later_one_and_never_taken_back() -> None:
    known = [model(call(), id="x"), results(result(value="old"), id="r")]
    messages = (
        fresh()
        .add(known)
        .add([model(call(), id="x"), results(result(value="new"), id="r")], "response")
    )
    assert outline(messages) == ["model: call c1", "user: result c1=new"]


def test_ids_that_a_copy_brings_and_the_turn_has_are_not_there_twice() -> None:
    known = [model(call(), id="x"), results(result(), id="x:1")]
    copy = [model(call(), id="x", turn="x"), model("more", id="x:1", turn="x")]
    messages = fresh().add(known).add(copy, "response")
    assert len({message.id for message in messages.get()}) == 3
    assert {message.turn for message in messages.get()} == {"x"}


# sealed


def test_m46_what_a_copy_of_a_sealed_turn_has_more_is_a_message_of_its_own() -> None:
    messages = (
        fresh(clock=lambda: START)
        .add("q")
        .add(model("a", "b", id="x", created_at=at(9)), "response")
    )
    messages.seal("x")
    messages.drain_unsaved()
    messages.add(model("a", "b", "c", id="x"), "response")
    assert outline(messages) == ["user: q", "model: a, b", "model: c"]
    new = messages.get()[-1]
    assert new.id != "x"
    assert new.created_at is not None and new.created_at > at(9)
    assert texts(messages.unsaved()) == ["c"]
    assert len({message.turn for message in messages.get()[1:]}) == 2


def test_m46_nothing_new_is_nothing() -> None:
    messages = fresh().add(model("a", "b", id="x"), "response")
    messages.seal("x")
    before = messages.get()
    assert messages.add(model("a", id="x"), "response").add(model("b", "a", id="x")).get() == before


def test_m46_a_copy_that_has_nothing_of_a_sealed_turn_is_new_as_a_whole() -> None:
    messages = fresh().add(model("a", "b", id="x"), "response")
    messages.seal("x")
    messages.add(model("c", id="x"), "response")
    assert outline(messages) == ["model: a, b", "model: c"]


def test_m46_what_stands_before_a_sealed_turn_does_not_change_either() -> None:
    messages = fresh().add([model("a", id="x"), user("q"), model("b", id="y")])
    messages.seal("y")
    messages.add(model("a", "more", id="x"), "response")
    assert outline(messages) == ["model: a", "user: q", "model: b", "model: more"]


def test_m46_a_turn_behind_a_sealed_one_is_merged_as_any() -> None:
    messages = fresh().add([model("a", id="x"), user("q"), model("b", id="y")])
    messages.seal("x")
    messages.add(model("b", "more", id="y"), "response")
    assert outline(messages) == ["model: a", "user: q", "model: b, more"]


def test_m46_a_seal_is_stored_and_loaded() -> None:
    messages = fresh().add(model("a", id="x"), "response")
    messages.seal("x")
    again = type(messages).load(messages.dump()).add(model("a", "b", id="x"), "response")
    assert outline(again) == ["model: a", "model: b"]
    other = fresh().add(messages.drain_unsaved(), "memory").add(model("a", "b", id="x"))
    assert outline(other) == ["model: a", "model: b"]


def test_m46_a_seal_that_comes_from_the_store_holds_for_what_is_there() -> None:
    messages = fresh().add(model("a", id="x"), "memory")
    messages.add(model("a", id="x", metadata={"mastra": {"sealed": True}}), "memory")
    assert outline(messages.add(model("a", "b", id="x"), "response")) == ["model: a", "model: b"]


def test_a_turn_that_gets_new_ids_stays_one_turn() -> None:
    messages = fresh().add(user("q", id="x"))
    messages.add([model("a", id="x", turn="x"), model("b", id="y", turn="x")])
    assert outline(messages) == ["user: q", "model: a", "model: b"]
    first, second = messages.get()[1:]
    assert first.turn is not None and first.turn == second.turn
    assert [row.starts for row in messages._rows] == [True, True, False]


def test_one_id_twice_in_what_is_added_is_one_message() -> None:
    messages = fresh().add([model("a", id="x", turn="x"), model("b", id="x", turn="x")])
    assert outline(messages) == ["model: a, b"]
    assert [message.id for message in messages] == ["x"]


def test_m49g_an_answered_approval_is_not_asked_for_again() -> None:
    asked, approved = (
        {"ai_sdk": {"approval": {"id": "p", **more}}} for more in ({}, {"approved": True})
    )
    messages = fresh().add(model(call(native=approved), id="x"))
    messages.add(
        model(call(native={"ai_sdk": {"approval": {"id": "p"}, "title": "t"}}), id="x"), "response"
    )
    assert messages.get()[0].content == (call(native=approved),)
    assert fresh().add(model(call(native=asked), id="x")).add(messages.get()[0], "response").get()[
        0
    ].content == (call(native=approved),)


def test_m46_a_fork_keeps_what_is_sealed() -> None:
    messages = fresh().add(model("a", id="x"), "response")
    messages.seal("x")
    assert outline(messages.fork().add(model("a", "b", id="x"), "response")) == [
        "model: a",
        "model: b",
    ]
