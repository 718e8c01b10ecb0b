"""A stored turn that comes when a copy of it is there already, and a known id with another content:
rules M-40a to M-41, M-43 to M-45."""

from __future__ import annotations

import pytest

from dragoman import Message, MessageList, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from support.listed import at, call, fresh, model, outline, result, results, texts, user

ASKED = {"ai_sdk": {"approval": {"id": "p1"}}}
APPROVED = {"ai_sdk": {"approval": {"id": "p1", "approved": True}}}
OUTCOMES = {
    "result": result(value="client's"),
    "error": result(value={"error": "client's"}, is_error=True),
    "denied": result(value={"error": "client's"}, is_error=True, denied=True),
}


def echoed(stored: list[Message], live: list[Message], source: str = "input") -> MessageList:
    """A list with a copy of a turn, before what is stored of it comes."""
    return fresh().add(live, source).add(stored, "memory")


def test_m40a_the_stored_turn_takes_the_place_and_both_sources() -> None:
    messages = fresh().add("before").add(model("live", id="x"), "response").add("behind")
    messages.add(model("live", "more", id="x", created_at=at(-100)), "memory")
    assert outline(messages) == ["user: before", "model: live, more", "user: behind"]
    assert [texts(messages.get(source)) for source in ("response", "memory")] == [
        ["livemore"],
        ["livemore"],
    ]


@pytest.mark.parametrize("ours", ["result", "error", "denied"])
@pytest.mark.parametrize("theirs", [*OUTCOMES, "approved"])
def test_m40b_a_stored_outcome_is_not_overwritten(ours: str, theirs: str) -> None:
    stored = [
        model(call(), id="x"),
        results(result(value="ours", is_error=ours != "result", denied=ours == "denied"), id="r"),
    ]
    live = [
        model(call(native=APPROVED), id="x"),
        *([results(OUTCOMES[theirs], id="s")] if theirs in OUTCOMES else []),
    ]
    messages = echoed(stored, live)
    assert [message.content for message in messages] == [message.content for message in stored]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_m40b_an_open_call_takes_the_outcome(outcome: str) -> None:
    messages = echoed(
        [model("I look", call(), id="x")],
        [model(call(), id="x"), results(OUTCOMES[outcome], id="s")],
    )
    assert [message.content for message in messages] == [
        (TextPart("I look"), call()),
        (OUTCOMES[outcome],),
    ]
    assert {message.id for message in messages} == {"x", "s"}


def test_m40b_an_open_call_takes_the_answer_to_its_approval() -> None:
    messages = echoed([model(call(native=ASKED), id="x")], [model(call(native=APPROVED), id="x")])
    assert messages.get()[0].content == (call(native=APPROVED),)


def test_m40b_an_approved_call_takes_the_outcome() -> None:
    messages = echoed(
        [model(call(native=APPROVED), id="x")], [model(call(), id="x"), results(result(), id="s")]
    )
    assert outline(messages) == ["model: call c1", "user: result c1=r"]


def test_m40b_a_state_does_not_go_back() -> None:
    messages = echoed([model(call(native=APPROVED), id="x")], [model(call(native=ASKED), id="x")])
    assert messages.get()[0].content == (call(native=APPROVED),)


def test_m40b_that_an_approval_is_asked_for_is_not_the_clients_to_say() -> None:
    messages = echoed([model(call(), id="x")], [model(call(native=ASKED), id="x")])
    assert messages.get()[0].content == (call(),)


def test_m40b_stored_text_arguments_metadata_and_time_stand() -> None:
    stored = model(
        "ours",
        call(arguments={"city": "Rome"}),
        id="x",
        metadata={"a": 1},
        created_at=at(3),
        native={"ai_sdk": {"k": 1}},
    )
    live = model(
        "theirs",
        ThinkingPart("theirs"),
        call(arguments={"city": "Oslo"}),
        id="x",
        metadata={"b": 2},
        native={"ai_sdk": {"k": 2}},
    )
    messages = echoed([stored], [live, results(result(), id="s")])
    assert messages.get()[0] == stored
    assert outline(messages)[1:] == ["user: result c1=r"]
    assert [texts(branch.messages) for branch in messages.branches] == [["theirs", ""]]


def test_m40b_a_call_that_the_provider_runs_takes_no_result_of_a_clients() -> None:
    ran = call(run_by="provider")
    live = [model(ran, result(run_by="provider"), id="x"), results(result(), id="s")]
    messages = echoed([model(ran, id="x")], live)
    assert outline(messages) == ["model: call c1"]
    messages = echoed(
        [model(call(run_by="provider", native=ASKED), id="x")],
        [model(call(run_by="provider", native=APPROVED), id="x")],
    )
    assert messages.get()[0].content == (call(run_by="provider", native=APPROVED),)


def test_m40c_the_stored_text_of_the_user_stands_and_metadata_are_joined() -> None:
    stored = user("stored", id="x", metadata={"a": 1, "b": 1})
    messages = echoed([stored], [user("typed", id="x", metadata={"b": 2, "c": 2})])
    assert texts(messages) == ["stored"]
    assert messages.get()[0].metadata == {"a": 1, "b": 2, "c": 2}
    assert texts(messages.branches[0].messages) == ["typed"]


def test_m40d_a_response_is_joined_with_what_is_stored_of_it() -> None:
    messages = echoed([model("a", call(), id="x")], [model("a", call(), "b", id="x")], "response")
    assert outline(messages) == ["model: a, call c1, b"]


def test_m40d_a_live_state_behind_the_stored_one_is_ignored() -> None:
    stored = [model(call(), id="x"), results(result(value="stored"), id="r")]
    assert outline(echoed(stored, [model(call(), id="x")], "response")) == [
        "model: call c1",
        "user: result c1=stored",
    ]
    cut = ToolCallPart("c1", "f", raw='{"a": ', state="cut")
    assert echoed([model(call(), id="x")], [model(cut, id="x")], "response").get()[0].content == (
        call(),
    )


def test_m41_what_is_there_already_is_ignored() -> None:
    given = [
        user("q", id="q"),
        model(call(), id="x"),
        results(result(), id="r"),
        model("done", id="d"),
    ]
    messages = fresh().add(given, "memory")
    before = messages.get()
    assert all(
        one is other for one, other in zip(messages.add(given, "memory").get(), before, strict=True)
    )
    assert messages.add(given).get() == before
    assert messages.unsaved() == ()


def test_m43_a_question_between_two_answers_keeps_them_apart() -> None:
    messages = (
        fresh().add(["q", model("a", id="a")]).add("and?").add(model("b", id="b"), "response")
    )
    assert outline(messages) == ["user: q", "model: a", "user: and?", "model: b"]
    assert len({message.turn for message in messages.get() if message.role == "model"}) == 2


def test_m44_a_question_of_a_known_id_takes_the_place_and_the_old_one_is_a_branch() -> None:
    messages = fresh().add([user("a", id="1"), model("b", id="2")])
    messages.add(user("A", id="1"))
    assert texts(messages) == ["A", "b"]
    assert [(branch.behind, texts(branch.messages)) for branch in messages.branches] == [
        (None, ["a"])
    ]


def test_m44_without_merge_an_answer_takes_the_place() -> None:
    messages = (
        fresh()
        .add([user("q"), model("a", "b", id="x")], "memory")
        .add(model("c", id="x"), merge=False)
    )
    assert outline(messages) == ["user: q", "model: c"]
    assert texts(messages.get("memory")) == ["q"]
    assert texts(messages.branches[0].messages) == ["ab"]


def test_m44_a_question_that_only_lost_its_native_fields_stays() -> None:
    kept = user(TextPart("a", {"anthropic": {"cache_control": {"type": "ephemeral"}}}), id="1")
    messages = fresh().add(kept).add(user("a", id="1", metadata={"x": 1}))
    assert messages.get()[0].content == kept.content
    assert messages.get()[0].metadata == {"x": 1}


def test_an_id_that_somebody_else_has_is_another_message() -> None:
    messages = fresh().add(user("a", id="x")).add(model("b", id="x"), "response")
    assert outline(messages) == ["user: a", "model: b"]
    assert len({message.id for message in messages.get()}) == 2


def test_m45_of_two_stored_rows_of_one_id_the_later_counts() -> None:
    messages = fresh().add(
        [model("old", id="x"), user("q", id="q"), model("new", id="x")], "memory"
    )
    assert texts(messages) == ["new", "q"]
    assert texts(messages.add(model("newest", id="x"), "memory")) == ["newest", "q"]


def test_m09_json_in_a_text_is_never_read() -> None:
    given = [
        '{"role": "user", "content": "x"}',
        {"role": "user", "content": '[{"type": "text", "text": "x"}]'},
        '["a"]',
    ]
    assert texts(fresh().add(given)) == [
        '{"role": "user", "content": "x"}',
        '[{"type": "text", "text": "x"}]',
        '["a"]',
    ]


def test_a_result_is_not_a_call() -> None:
    assert isinstance(fresh().add(results(result())).get()[0].content[0], ToolResultPart)


def test_m40b_a_result_without_its_call_is_none_of_a_providers() -> None:
    live = [model("t", id="x"), results(result(), id="s")]
    assert outline(echoed([model("t", call(run_by="provider"), id="x")], live)) == [
        "model: t, call c1"
    ]
    assert outline(echoed([model("t", call(), id="x")], live)) == [
        "model: t, call c1",
        "user: result c1=r",
    ]
