"""What became of calls: rules M-60 to M-62, M-38 and M-39."""

from __future__ import annotations

import logging

import pytest

from dragoman import MessageList, ToolResultPart
from support.listed import at, call, fresh, model, outline, result, results, user


def asked(**fields: object) -> MessageList:
    return fresh().add([user("q"), model("I look", call(**fields), id="m")], "memory")  # type: ignore[arg-type]


def test_m60_an_open_call_gets_its_result_and_keeps_its_arguments() -> None:
    messages = asked()
    assert messages.update_tool(result(value={"t": 21}))
    assert outline(messages) == ["user: q", "model: I look, call c1", "user: result c1={'t': 21}"]
    assert messages.get()[1].content[1] == call()


def test_m60_what_changed_is_a_response_and_is_saved_once() -> None:
    messages = asked()
    messages.update_tool(result())
    assert outline(messages.unsaved()) == ["user: result c1=r"]
    messages.update_tool(result(value="s"))
    assert outline(messages.drain_unsaved()) == ["user: result c1=s"]
    messages.add(messages.get()[-1], "response")
    assert messages.unsaved() == ()


def test_m60_the_result_stands_with_those_of_the_other_calls() -> None:
    messages = fresh().add(
        [user("q"), model(call("c1"), call("c2"), id="m"), results(result("c2"), id="r")]
    )
    assert messages.update_tool(result("c1"))
    assert outline(messages)[1:] == ["model: call c1, call c2", "user: result c2=r, result c1=r"]


def test_m60_a_call_of_an_earlier_turn_and_the_newest_of_an_id() -> None:
    messages = fresh().add(
        [model(call(), id="a"), user("well?"), model(call(), id="b"), user("and?")]
    )
    assert messages.update_tool(result())
    assert outline(messages) == [
        "model: call c1",
        "user: well?",
        "model: call c1",
        "user: result c1=r",
        "user: and?",
    ]


def test_m60_a_result_is_replaced_and_what_providers_know_of_it_joined() -> None:
    messages = asked()
    messages.update_tool(result(value="draft", native={"google": {"a": 1, "b": 1}}))
    messages.update_tool(
        result(value="final", native={"google": {"b": 2}, "openai_chat": {"c": 3}})
    )
    piece = messages.get()[-1].content[0]
    assert isinstance(piece, ToolResultPart)
    assert (piece.result, piece.native) == (
        "final",
        {"google": {"a": 1, "b": 2}, "openai_chat": {"c": 3}},
    )


def test_m60_what_a_provider_ran_stays_the_providers() -> None:
    messages = asked(run_by="provider")
    assert messages.update_tool(result())
    assert [piece.run_by for piece in messages.get()[1].content[1:]] == ["provider", "provider"]  # type: ignore[union-attr]
    assert len(messages) == 2


def test_m60_results_in_user_messages_are_no_calls() -> None:
    messages = fresh().add(results(result()))
    assert not messages.update_tool(result(value="s"))


def test_m61_an_unknown_id_is_told_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    messages = asked()
    with caplog.at_level(logging.WARNING, "dragoman.history"):
        assert not messages.update_tool(result("nobody"))
    assert "'nobody'" in caplog.text
    assert outline(messages) == ["user: q", "model: I look, call c1"]


def test_m61_a_providers_result_finds_the_open_call_of_its_tool() -> None:
    messages = fresh().add(
        [model(call("p1", "search", run_by="provider"), call("c1", "search"), id="m")]
    )
    assert messages.update_tool(result("other", name="search", run_by="provider"))
    assert outline(messages) == ["model: call p1, result p1=r, call c1"]
    assert not messages.update_tool(result("another", name="search", run_by="provider"))
    assert not messages.update_tool(result("another", name="search"))


def test_m62_a_sealed_turn_takes_a_result_too_and_is_saved_again() -> None:
    messages = asked()
    messages.seal("m")
    messages.drain_unsaved()
    messages.add(model("rotated"), "response")
    assert messages.update_tool(result())
    assert outline(messages.unsaved()) == ["user: result c1=r", "model: rotated"]


def test_metadata_of_the_message_of_a_call() -> None:
    messages = asked()
    assert messages.update_metadata("c1", {"a": 1}) and messages.update_metadata("c1", {"b": 2})
    assert messages.get()[1].metadata == {"a": 1, "b": 2}
    assert not messages.update_metadata("nobody", {"a": 1})


# arguments


def test_m38_a_call_that_comes_answered_and_empty_has_the_arguments_of_the_open_one() -> None:
    messages = fresh().add(
        [user("q"), model(call(arguments={"city": "Rome"}), id="a"), user("well?")]
    )
    messages.add([model(call(arguments={}), id="b"), results(result())], "response")
    assert messages.get()[3].content == (call(arguments={"city": "Rome"}),)


@pytest.mark.parametrize("known", [{}, {"city": "Rome"}])
def test_m38_a_call_without_arguments_keeps_none(known: dict[str, str]) -> None:
    before = (
        [model(call(arguments=known), id="a"), results(result(), id="r")]
        if known
        else [model(call("c0"), id="a")]
    )
    messages = fresh().add(
        [*before, user("q"), model(call(arguments={}), id="b"), results(result())]
    )
    assert messages.get()[-2].content == (call(arguments={}),)


def test_m38_the_newest_that_is_not_empty_counts() -> None:
    messages = fresh()
    for number, arguments in enumerate(({"n": 1}, {"n": 2}, {})):
        messages.add(
            [
                model(call(arguments=arguments), id=f"m{number}", created_at=at(number)),
                user("well?"),
            ]
        )
    messages.add([model(call(arguments={}), id="x"), results(result())], "response")
    assert messages.get()[-2].content == (call(arguments={"n": 2}),)


def test_m38_another_tool_is_another_call() -> None:
    messages = fresh().add([model(call(name="g", arguments={"n": 1}), id="a"), user("well?")])
    messages.add([model(call(arguments={}), id="b"), results(result())], "response")
    assert messages.get()[-2].content == (call(arguments={}),)


def test_m39_empty_arguments_in_a_copy_are_filled_by_those_that_are_known_and_the_other_way() -> (
    None
):
    messages = (
        fresh()
        .add(model(call(arguments={}), id="a"), "memory")
        .add(model(call(arguments={"n": 1}), id="a"), "response")
    )
    assert messages.get()[0].content == (call(arguments={"n": 1}),)
    assert messages.add(model(call(arguments={}), id="a"), "response").get()[0].content == (
        call(arguments={"n": 1}),
    )
