"""Ids and tool names made fit for a wire: a bijection per request, pure, stable while the conversation grows."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.ids import NAMES as FIRST
from dragoman.ids import STANDARD, Rule, call_ids, fitted
from dragoman.message import Message, ToolCallPart, ToolResultPart

RULES = [STANDARD, FIRST, Rule(most=40), Rule(letters="a-zA-Z0-9", most=9, least=9), Rule(letters="a-z0-9", most=3)]
NAMES = st.lists(
    st.one_of(
        st.text(max_size=90),
        st.sampled_from(["get weather", "get_weather", "mcp/a.b", "mcp/a:b", "x" * 65, "1st", "-a", "7" * 70]),
    )
)


@settings(max_examples=60)
@given(NAMES, st.sampled_from(RULES[:4]))
def test_names_become_fit_and_stay_distinct(names, rule):
    sent = fitted(names, rule)
    assert set(sent) == set(names)
    assert len(set(sent.values())) == len(sent)
    assert all(rule.fits(name) for name in sent.values())
    assert all(sent[name] == name for name in names if rule.fits(name))
    assert fitted(list(reversed(names)), rule).keys() == sent.keys()


def test_a_name_begins_with_a_letter_or_an_underscore():
    sent = fitted(["1st", "-a", "_a", "a1", "7" * 64])
    assert [sent["_a"], sent["a1"]] == ["_a", "a1"]
    assert all(re.fullmatch(r"_[0-9a-zA-Z_-]{1,63}", sent[name]) for name in ("1st", "-a", "7" * 64))


def test_a_changed_name_can_still_be_read():
    assert re.fullmatch(r"get_the_weather__[0-9a-f]{8}", fitted(["get the weather!"])["get the weather!"])


def test_a_name_keeps_its_stand_in_when_others_come():
    assert fitted(["a b"])["a b"] == fitted(["other", "c d", "a b"])["a b"]


def test_a_stand_in_never_hides_a_name_that_was_fit():
    stand_in = fitted(["a b"])["a b"]
    sent = fitted(["a b", stand_in])
    assert sent[stand_in] == stand_in
    assert sent["a b"] not in ("a b", stand_in)


def test_names_that_are_sent_as_they_are():
    assert fitted(["a b", "c d"], as_is=["a b"])["a b"] == "a b"


@pytest.mark.parametrize("rule", RULES)
def test_length_and_letters_hold_for_every_rule(rule):
    for name in ("", "x" * 100, "日本語", "call:1/é", "\ud800"):
        assert rule.fits(fitted([name], rule)[name])


def call(id_, name="f"):
    return ToolCallPart(id_, name)


def result(id_):
    return ToolResultPart(id_, "f", "ok")


def sent_ids(messages, rule=STANDARD):
    return [id_ for _, id_ in sorted(call_ids(messages, rule).items())]


def test_ids_that_are_fit_stay():
    messages = [Message.model(call("a"), call("b")), Message.user(result("b"), result("a"))]
    assert sent_ids(messages) == ["a", "b", "b", "a"]


def test_an_id_that_comes_again_in_a_later_round_gets_another_and_its_result_follows():
    messages = [Message.model(call("a")), Message.user(result("a"))] * 3
    ids = sent_ids(messages)
    assert ids[0::2] == ids[1::2]
    assert len(set(ids)) == 3
    assert ids[0] == "a"


def test_two_calls_of_one_round_with_one_id_are_answered_in_order():
    messages = [Message.model(call("a"), call("a")), Message.user(result("a"), result("a"))]
    first, second, one, two = sent_ids(messages)
    assert (first, second) == (one, two)
    assert first != second


def test_a_late_result_answers_the_latest_call_of_its_id():
    messages = [Message.model(call("a!")), Message.user("wait"), Message.model("well"), Message.user(result("a!"))]
    asked, answered = sent_ids(messages)
    assert asked == answered != "a!"


def test_results_may_stand_after_several_model_messages():
    messages = [Message.model(call("a:1")), Message.model(call("a:2")), Message.user(result("a:1"), result("a:2"))]
    one, two, *answers = sent_ids(messages)
    assert answers == [one, two]


def test_a_result_without_a_call_still_has_a_fit_id():
    assert STANDARD.fits(sent_ids([Message.user(result("?"))])[0])


def test_what_the_provider_ran_keeps_its_ids():
    own = ToolCallPart("srv 1", "search", run_by="provider")
    assert call_ids([Message.model(own, call("a"))]) == {(0, 1): "a"}


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "?", "x" * 70, ""]), max_size=3), max_size=5),
    st.sampled_from(RULES[:3]),
)
def test_ids_are_unique_fit_paired_and_append_only(rounds, rule):
    messages = []
    for ids in rounds:
        messages += [Message.model(*map(call, ids)), Message.user(*map(result, ids))]
    sent = call_ids(messages, rule)
    calls = [id_ for (message, _), id_ in sent.items() if message % 2 == 0]
    assert len(set(calls)) == len(calls)
    assert all(map(rule.fits, calls))
    for (message, place), id_ in sent.items():
        assert sent[message ^ 1, place] == id_
    shorter = call_ids(messages[:-2], rule)
    assert shorter == {where: id_ for where, id_ in sent.items() if where in shorter}
