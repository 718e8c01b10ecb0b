"""Which messages a user interface shows as one (decision 30)."""

from __future__ import annotations

from itertools import islice

from dragoman import Message, ToolCallPart, ToolResultPart
from dragoman.codec.turns import holds_only_answers, make_inner_ids, split_turns

CALL = Message.model("I look.", ToolCallPart("c1", "look"))
RESULT = Message.user(ToolResultPart("c1", "look", "blue"))
USER, ANSWER = Message.user("What colour?"), Message.model("Blue.")


def sizes(*messages: Message) -> list[int]:
    found = split_turns(messages)
    assert [message for turn in found for message in turn.messages] == list(messages)
    assert [turn.start for turn in found] == [
        sum(len(t.messages) for t in found[:n]) for n in range(len(found))
    ]
    return [len(turn.messages) for turn in found]


def test_an_answer_with_the_results_of_its_tools_is_one_turn():
    assert sizes(USER, CALL, RESULT, ANSWER, USER) == [1, 3, 1]
    assert sizes(RESULT, ANSWER) == [1, 1]
    assert sizes() == []


def test_answers_beside_each_other_are_one_turn_only_where_they_name_it():
    assert sizes(ANSWER, ANSWER) == [1, 1]
    assert sizes(ANSWER.replace(turn="t"), ANSWER.replace(turn="t")) == [2]
    assert sizes(ANSWER.replace(turn="t"), ANSWER.replace(turn="u")) == [1, 1]
    assert sizes(CALL.replace(turn="t"), RESULT, ANSWER.replace(turn="t")) == [3]
    assert sizes(CALL.replace(turn="t"), RESULT, ANSWER.replace(turn="u")) == [2, 1]
    assert sizes(CALL.replace(turn="t"), RESULT.replace(turn="t"), ANSWER) == [3]


def test_a_user_who_adds_words_to_results_ends_the_turn():
    assert sizes(CALL, RESULT.replace(content=(*RESULT.content, *USER.content)), ANSWER) == [
        1,
        1,
        1,
    ]
    assert not holds_only_answers(USER)
    assert not holds_only_answers(Message.user())
    assert sizes(CALL, Message.system("x"), ANSWER) == [1, 1, 1]


def test_a_turn_has_the_id_that_it_names_else_that_of_its_first_message():
    assert split_turns([CALL.replace(id="m", turn="t")])[0].id == "t"
    assert split_turns([CALL.replace(id="m"), RESULT.replace(id="n")])[0].id == "m"
    assert split_turns([CALL])[0].id is None


def test_inner_ids_collide_with_none():
    assert list(islice(make_inner_ids("x"), 3)) == ["x", "x:1", "x:2"]
    assert list(islice(make_inner_ids("x", {"x:1"}), 3)) == ["x", "x:2", "x:3"]
