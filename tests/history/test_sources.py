"""Where messages come from, and what of them is to be saved: rules M-20 to M-28."""

from __future__ import annotations

from dragoman import MessageList
from support.listed import at, call, fresh, model, outline, result, results, texts, user


def five() -> MessageList:
    messages = fresh()
    messages.add(user("old", id="m"), "memory").add("ask", "input").add(
        model("answer", id="a"), "response"
    ).add("note", "context")
    return messages


def test_m21_each_source_has_those_that_count_and_all_that_it_ever_had() -> None:
    messages = five()
    messages.drain_unsaved()
    for source, now, ever in (
        ("memory", ["old"], ["old"]),
        ("input", [], ["ask"]),
        ("response", [], ["answer"]),
        ("context", ["note"], ["note"]),
    ):
        assert texts(messages.get(source)) == now
        assert texts(messages.get(source, saved=True)) == ever


def test_m22_what_is_added_as_a_response_is_no_longer_loaded_nor_asked() -> None:
    messages = fresh().add(model("a", id="1"), "memory").add(model("b", id="2"), "input")
    messages.add(messages.get("memory"), "response").add(messages.get("input"), "response")
    assert (messages.get("memory"), messages.get("input")) == ([], [])
    assert texts(messages.get("response")) == ["a", "b"]


def test_m23_loaded_and_context_are_never_drained() -> None:
    messages = five()
    assert texts(messages.drain_unsaved()) == ["ask", "answer"]
    assert messages.drain_unsaved() == []
    assert texts(messages.get("context")) == ["note"]


def test_m24_an_answer_that_goes_on_with_a_loaded_one_has_it_saved_again() -> None:
    messages = fresh().add([user("q", id="q"), model(call(), id="a")], "memory")
    messages.add(results(result()), "response").add(model("done"), "response")
    assert outline(messages.unsaved()) == ["model: call c1", "user: result c1=r", "model: done"]
    assert {message.turn for message in messages.unsaved()} == {"a"}
    assert texts(messages.get("memory")) == ["q"]


def test_a_long_turn_is_not_saved_again_with_each_of_its_messages() -> None:
    messages = fresh().add("q")
    messages.drain_unsaved()
    saved = 0
    for number in range(50):
        messages.add(model(call(f"c{number}")), "response").add(
            results(result(f"c{number}")), "response"
        )
        saved += len(messages.drain_unsaved())
    assert saved == 100
    assert {message.turn for message in messages.get()[1:]} == {messages.get()[1].id}


def test_m25_all_messages_in_order_without_system_messages() -> None:
    messages = five().add_system("s")
    assert texts(messages.get()) == ["old", "ask", "answer", "note"]


def test_m26_context_goes_to_the_prompt_and_is_not_saved() -> None:
    messages = five()
    assert "note" in texts(messages.prompt())
    assert messages.get("context")[0] not in messages.unsaved()


def test_m27_what_is_removed_is_returned_and_may_be_added_again() -> None:
    messages = five()
    stored = messages.get("memory")
    assert messages.remove(source="memory") == stored
    assert texts(messages.add(stored, "memory")) == ["old", "ask", "answer", "note"]
    assert texts(messages.remove(["a", "nobody"])) == ["answer"]
    assert texts(messages.remove("m")) == ["old"]
    assert texts(messages.remove()) == ["ask", "note"]
    assert len(messages) == 0


def test_m27_a_turn_is_removed_as_a_whole_by_its_id() -> None:
    messages = (
        fresh()
        .add(["q", model(call(), id="a")])
        .add([results(result())], "response")
        .add(model("x"), "response")
    )
    turn = messages.get()[-1].turn
    assert turn is not None
    assert outline(messages.remove(turn)) == ["model: call c1", "user: result c1=r", "model: x"]
    assert outline(messages) == ["user: q"]


def test_m28_a_snapshot_clears_only_what_has_not_changed_since() -> None:
    messages = fresh().add("ask").add(model(call(), id="a"), "response")
    snapshot = messages.unsaved()
    messages.update_tool(result())
    messages.drain_unsaved(snapshot)
    assert outline(snapshot) == ["user: ask", "model: call c1"]
    assert outline(messages.unsaved()) == ["user: result c1=r"]
    messages.update_metadata("c1", {"seen": True})
    messages.drain_unsaved(snapshot)
    assert outline(messages.unsaved()) == ["model: call c1", "user: result c1=r"]


def test_what_is_to_be_saved_has_a_first_time() -> None:
    messages = fresh().add(user("old", id="o", created_at=at(1)), "memory")
    assert messages.unsaved() == ()
    messages.add([user("a", created_at=at(5)), user("b", created_at=at(9))])
    assert messages.unsaved()[0].created_at == at(5)
    assert [message in messages.unsaved() for message in messages] == [False, True, True]
