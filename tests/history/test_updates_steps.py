"""Steps of an answer: rules M-70 to M-74."""

from __future__ import annotations

from dragoman import MarkPart, Message, MessageList, ToolCallPart, ToolResultPart
from support.listed import START, STEP, call, fresh, model, outline, result, results, user


def answering() -> MessageList:
    return fresh().add("q").add([model("a", call(), id="m"), results(result(), id="r")], "response")


def test_m70_a_step_is_marked_behind_the_models_last_message() -> None:
    messages = fresh().add(["q", model("a", id="m")], "memory")
    assert messages.start_step()
    assert outline(messages.unsaved()) == ["model: a, <step-start>"]
    mark = messages.get()[1].content[-1]
    assert mark == MarkPart("step-start", {"ai_sdk": {"createdAt": int(START.timestamp() * 1000)}})


def test_m70_not_twice_not_behind_a_question_not_in_an_empty_list_not_in_a_sealed_turn() -> None:
    messages = answering()
    assert messages.start_step() and not messages.start_step()
    assert not fresh().add("q").start_step() and not fresh().start_step()
    messages = answering()
    messages.seal("m")
    assert not messages.start_step()


def test_m70_what_follows_begins_with_the_mark() -> None:
    messages = answering()
    messages.start_step()
    messages.add(model("b", id="n"), "response")
    assert outline(messages)[1:] == [
        "model: a, call c1",
        "user: result c1=r",
        "model: <step-start>, b",
    ]
    parts = [part["type"] for part in messages.to_ui_messages()[-1]["parts"]]
    assert parts.count("step-start") == 1
    assert parts[-2:] == ["step-start", "text"]


def test_m71_the_model_of_the_last_step() -> None:
    messages = answering()
    assert not messages.describe_step("openai:gpt-5")
    messages.start_step()
    assert messages.describe_step("openai:gpt-5")
    mark = messages.get()[1].content[-1]
    assert mark.native is not None and mark.native["ai_sdk"]["model"] == "openai:gpt-5"
    assert not fresh().describe_step("x")


def test_m72_the_next_answer_is_a_turn_of_its_own() -> None:
    messages = answering()
    messages.new_response()
    messages.add(model("b", id="n"), "response").add(model("c"), "response")
    assert [message.turn for message in messages.get()[1:]] == ["m", "m", "n", "n"]
    messages.new_response("mine")
    messages.add(model("d"), "response").add(model("e"), "response")
    assert [message.turn for message in messages.get()[-2:]] == ["mine", "mine"]
    assert len(messages.to_ui_messages()) == 4


def test_m73_the_content_of_steps() -> None:
    messages = (
        fresh()
        .add("q")
        .add(model(STEP, "a", call(), id="m"), "response")
        .add(results(result()), "response")
    )
    messages.start_step()
    messages.add(model("b", STEP, "c"), "response")
    assert outline([model(*messages.step_content(number)) for number in (1, 2, 3, -1)]) == [
        "model: a, call c1, result c1=r",
        "model: b",
        "model: c",
        "model: c",
    ]
    assert messages.step_content(0) == messages.step_content(4) == messages.step_content(-4) == []
    assert fresh().step_content() == fresh().add("q").step_content() == []


def test_m74_what_stands_behind_a_boundary_is_dropped() -> None:
    messages = answering()
    boundary = messages.open_step()
    messages.add(model("b", call("c2")), "response").add(results(result("c2")), "response")
    dropped = messages.rollback(boundary)
    assert dropped is not None and outline(dropped) == ["model: b, call c2", "user: result c2=r"]
    assert outline(messages) == ["user: q", "model: a, call c1", "user: result c1=r"]
    assert messages.rollback(boundary) == []


def test_m74_pieces_of_a_message_are_dropped_too() -> None:
    messages = fresh().add(["q", model("a", id="m")])
    boundary = messages.open_step()
    messages.add(model("a", "b", call(), id="m"), "response")
    assert outline(messages.rollback(boundary) or []) == ["model: b, call c1"]
    assert outline(messages) == ["user: q", "model: a"]


def test_m74_a_boundary_of_another_turn_is_none() -> None:
    messages = answering()
    boundary = messages.open_step()
    messages.add(user("and?")).add(model("b"), "response")
    assert messages.rollback(boundary) is None
    assert len(messages) == 5
    start = fresh().open_step()
    assert outline(fresh().add("q").rollback(start) or []) == ["user: q"]


def test_a_result_that_names_a_turn_that_is_there_is_of_it() -> None:
    """Messages of a run name their turn: each keeps its id, and its place."""
    given = [
        Message.user("hi").replace(id="u"),
        Message.model(ToolCallPart("c", "t")).replace(id="m1", turn="m1"),
        Message.user(ToolResultPart("c", "t", 1)).replace(id="r", turn="m1"),
        Message.model("done").replace(id="m2", turn="m1"),
    ]
    messages = MessageList().add(given[0], "input")
    for message in given[1:]:
        messages.add(message, "response")
    assert [(each.id, each.turn, each.content) for each in messages.get_messages()] == [
        (each.id, each.turn, each.content) for each in given
    ]
    assert [each.id for each in messages.get("response")] == ["m1", "r", "m2"]
