"""Ids and tool names made fit for a wire: a bijection per request, pure, stable while the
conversation grows."""

from __future__ import annotations

import re
from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.codec.fit_ids import CALL_IDS, NameRule, fit_names, invert_names, map_call_ids
from dragoman.codec.fit_ids import TOOL_NAMES as FIRST
from dragoman.message import Message, ToolCallPart, ToolResultPart

RULES = [
    CALL_IDS,
    FIRST,
    NameRule(most=40),
    NameRule(letters="a-zA-Z0-9", most=9, least=9),
    NameRule(letters="a-z0-9", most=3),
]
NAMES = st.lists(
    st.one_of(
        st.text(max_size=90),
        st.sampled_from(
            ["get weather", "get_weather", "mcp/a.b", "mcp/a:b", "x" * 65, "1st", "-a", "7" * 70]
        ),
    )
)


@settings(max_examples=60)
@given(NAMES, st.sampled_from(RULES[:4]))
def test_names_become_fit_and_stay_distinct(names, rule):
    sent = fit_names(names, rule)
    assert set(sent) == set(names)
    assert len(set(sent.values())) == len(sent)
    assert all(rule.fits(name) for name in sent.values())
    assert all(sent[name] == name for name in names if rule.fits(name))
    assert fit_names(list(reversed(names)), rule).keys() == sent.keys()


def test_a_name_begins_with_a_letter_or_an_underscore():
    sent = fit_names(["1st", "-a", "_a", "a1", "7" * 64])
    assert [sent["_a"], sent["a1"]] == ["_a", "a1"]
    assert all(
        re.fullmatch(r"_[0-9a-zA-Z_-]{1,63}", sent[name]) for name in ("1st", "-a", "7" * 64)
    )


def test_a_changed_name_can_still_be_read():
    assert re.fullmatch(
        r"get_the_weather__[0-9a-f]{8}", fit_names(["get the weather!"])["get the weather!"]
    )


def test_a_name_keeps_its_stand_in_when_others_come():
    assert fit_names(["a b"])["a b"] == fit_names(["other", "c d", "a b"])["a b"]


def test_a_stand_in_never_hides_a_name_that_was_fit():
    stand_in = fit_names(["a b"])["a b"]
    sent = fit_names(["a b", stand_in])
    assert sent[stand_in] == stand_in
    assert sent["a b"] not in ("a b", stand_in)


def test_names_that_are_sent_as_they_are():
    assert fit_names(["a b", "c d"], as_is=["a b"])["a b"] == "a b"


@pytest.mark.parametrize("rule", RULES)
def test_length_and_letters_hold_for_every_rule(rule):
    for name in ("", "x" * 100, "日本語", "call:1/é", "\ud800"):
        assert rule.fits(fit_names([name], rule)[name])


def call(id_, name="f"):
    return ToolCallPart(id_, name)


def result(id_):
    return ToolResultPart(id_, "f", "ok")


def sent_ids(messages, rule=CALL_IDS):
    return [id_ for _, id_ in sorted(map_call_ids(messages, rule).items())]


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
    messages = [
        Message.model(call("a!")),
        Message.user("wait"),
        Message.model("well"),
        Message.user(result("a!")),
    ]
    asked, answered = sent_ids(messages)
    assert asked == answered != "a!"


def test_results_may_stand_after_several_model_messages():
    messages = [
        Message.model(call("a:1")),
        Message.model(call("a:2")),
        Message.user(result("a:1"), result("a:2")),
    ]
    one, two, *answers = sent_ids(messages)
    assert answers == [one, two]


def test_a_result_without_a_call_still_has_a_fit_id():
    assert CALL_IDS.fits(sent_ids([Message.user(result("?"))])[0])


def test_what_the_provider_ran_keeps_its_ids():
    own = ToolCallPart("srv 1", "search", run_by="provider")
    assert map_call_ids([Message.model(own, call("a"))]) == {(0, 1): "a"}


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "?", "x" * 70, ""]), max_size=3), max_size=5),
    st.sampled_from(RULES[:3]),
)
def test_ids_are_unique_fit_paired_and_append_only(rounds, rule):
    messages = []
    for ids in rounds:
        messages += [Message.model(*map(call, ids)), Message.user(*map(result, ids))]
    sent = map_call_ids(messages, rule)
    calls = [id_ for (message, _), id_ in sent.items() if message % 2 == 0]
    assert len(set(calls)) == len(calls)
    assert all(map(rule.fits, calls))
    for (message, place), id_ in sent.items():
        assert sent[message ^ 1, place] == id_
    shorter = map_call_ids(messages[:-2], rule)
    assert shorter == {where: id_ for where, id_ in sent.items() if where in shorter}


def made(name, tries=0, *, shown=None):
    """The stand-in of a name by the standard rule."""
    digest = blake2b(f"{tries} {name}".encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f"{re.sub('[^a-zA-Z0-9_-]', '_', name)[:55] if shown is None else shown}_{digest[:8]}"


def test_stand_ins_are_the_same_for_ever():
    """A conversation that was sent keeps its ids and names, so that prompt caches hold."""
    three = [Message.model(call("a")), Message.user(result("a"))] * 4
    assert sent_ids(three)[::2] == ["a", *(made("a", tries) for tries in range(3))]
    assert sent_ids([Message.model(call("a b"), call("a b"))]) == [made("a b"), made("a b", 1)]
    assert fit_names(["a b", "x" * 65]) == {
        "a b": made("a b"),
        "x" * 65: made("x" * 65, shown="x" * 55),
    }
    assert fit_names(["a b", made("a b")]) == {"a b": made("a b", 1), made("a b"): made("a b")}
    assert fit_names(["1a"]) == {"1a": f"_{made('1a')}"}
    assert fit_names(["1" * 70]) == {"1" * 70: f"_{made('1' * 70, shown='1' * 55)}"[:64]}
    digest = blake2b(b"0 \xed\xa0\x80", digest_size=16).hexdigest()
    assert fit_names(["\ud800"]) == {"\ud800": f"__{digest[:8]}"}
    digest = blake2b(b"0 ", digest_size=16).hexdigest()
    assert fit_names([""], CALL_IDS) == {"": digest[:8]}


def test_stand_ins_of_narrow_rules():
    def digest(name, tries=0):
        return blake2b(f"{tries} {name}".encode(), digest_size=16).hexdigest()

    nine = NameRule(letters="a-zA-Z0-9", most=9, least=9)
    assert fit_names(["a-b", "abcdefghi", "short"], nine) == {
        "a-b": digest("a-b")[:9],
        "abcdefghi": "abcdefghi",
        "short": digest("short")[:9],
    }
    long = NameRule(most=64, least=20)
    assert fit_names(["ab"], long) == {"ab": f"ab_{digest('ab')[:18]}"}
    assert fit_names(["!" * 3], NameRule(letters="a-z0-9", most=3)) == {"!!!": digest("!!!")[:3]}
    eleven = NameRule(letters="a-z0-9", most=11)
    assert fit_names(["ab!cd!ef!gh!ij"], eleven) == {
        "ab!cd!ef!gh!ij": f"ab{digest('ab!cd!ef!gh!ij')[:8]}"
    }
    assert fit_names(["ab!"], NameRule(letters="a-z0-9_", most=10)) == {
        "ab!": f"a_{digest('ab!')[:8]}"
    }


@pytest.mark.parametrize(
    ("rule", "fit", "unfit"),
    [
        (CALL_IDS, ["a", "-", "_A9", "x" * 64], ["", "x" * 65, "a b", "é", "a.b", "a\n"]),
        (FIRST, ["a", "_", "A-9", "x" * 64], ["", "-a", "9a", "x" * 65]),
        (NameRule(least=2, most=3), ["ab", "abc"], ["a", "abcd"]),
        (NameRule(letters="a-z", least=0), ["", "abc"], ["A", "a1"]),
        (NameRule(least=0, first="_"), ["_"], ["", "a"]),
    ],
)
def test_what_fits_a_rule(rule, fit, unfit):
    assert [name for name in (*fit, *unfit) if rule.fits(name)] == fit


def test_the_other_way_only_what_differs_is_told():
    assert invert_names({"a": "a", "b c": "b_c", "d": "e"}) == {"b_c": "b c", "e": "d"}


def test_as_is_goes_before_any_rule():
    asked = [
        Message.model(call("a!"), call("a!")),
        Message.user(result("a!"), result("b!"), result("b!")),
    ]
    keep = lambda piece: piece.id == "a!"  # noqa: E731
    assert map_call_ids(asked, as_is=keep) == {
        (0, 0): "a!",
        (0, 1): "a!",
        (1, 0): "a!",
        (1, 1): made("b!"),
        (1, 2): made("b!", 1),
    }
    alone = [Message.user(result("c!"))]
    assert map_call_ids(alone, as_is=lambda _: True) == {(0, 0): "c!"}
    assert fit_names(["a b", "a_b"], as_is=("a b",)) == {"a b": "a b", "a_b": "a_b"}


def test_who_answers_whom_across_rounds():
    provider = ToolResultPart("srv 1", "search", "x", run_by="provider")
    messages = [
        Message.user(result("z")),
        Message.model("So", call("a"), provider, call("a"), call("b")),
        Message.user("Well", result("a"), result("a"), result("a"), result("b")),
        Message.model(call("a")),
        Message.model(call("c")),
        Message.user(result("c"), result("a"), result("b")),
        Message.model("Done"),
        Message.user(result("a")),
    ]
    one, two = made("a"), made("a", 1)
    assert map_call_ids(messages) == {
        (0, 0): "z",
        (1, 1): "a",
        (1, 3): one,
        (1, 4): "b",
        (2, 1): "a",
        (2, 2): one,
        (2, 3): one,
        (2, 4): "b",
        (3, 0): two,
        (4, 0): "c",
        (5, 0): "c",
        (5, 1): two,
        (5, 2): "b",
        (7, 0): two,
    }


def test_a_newline_makes_an_id_and_a_name_unfit() -> None:
    assert "\n" not in fit_names(["look\nhear"])["look\nhear"]
    asked = [Message.model(ToolCallPart("c\n1", "look"))]
    assert "\n" not in map_call_ids(asked)[0, 0]
