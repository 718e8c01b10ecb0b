"""Times and order: rules M-30 to M-36."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from dragoman import Message, MessageList
from support.listed import (
    START,
    at,
    call,
    fresh,
    model,
    outline,
    result,
    results,
    texts,
    ticking,
    user,
)


def times(messages: MessageList) -> list[datetime | None]:
    return [message.created_at for message in messages.get()]


@pytest.mark.parametrize("source", ["input", "memory", "context"])
def test_m30_equal_times_keep_the_order_in_which_they_came(source: str) -> None:
    for _ in range(10):
        messages = fresh()
        given = [user(f"{number}", id=f"i{number}", created_at=START) for number in range(20)]
        for message in given[:10]:
            messages.add(message, source)
        messages.add(given[10:], source)
        assert texts(messages) == [f"{number}" for number in range(20)]


def test_m31_times_are_kept_and_what_was_asked_later_stands_later() -> None:
    messages = fresh().add(
        [user("a", created_at=at(100)), model("b", created_at=at(50)), user("c", created_at=at(70))]
    )
    assert texts(messages) == ["a", "b", "c"]
    assert times(messages) == [at(100), at(50), at(70)]


def test_m32_messages_without_times_get_later_ones_each() -> None:
    messages = fresh().add(user("old", created_at=at(10**6)), "memory")
    messages.add(["a", "b"]).add(model("c"), "response").add({"role": "user", "content": "d"})
    made = times(messages)
    assert all(
        one is not None and two is not None and one < two for one, two in itertools.pairwise(made)
    )
    assert made[1] == at(10**6) + timedelta(milliseconds=1)
    assert texts(messages) == ["old", "a", "b", "c", "d"]


def test_m32_the_clock_counts_where_it_is_later() -> None:
    messages = fresh(clock=ticking()).add("a").add("b").add("c")
    assert times(messages) == [at(0), at(1), at(2)]


def test_m32_the_clock_is_read_once_for_all_that_are_added() -> None:
    messages = fresh(clock=ticking()).add(["a", "b", "c"]).add("d")
    assert times(messages) == [at(0), at(0.001), at(0.002), at(1)]


def test_m33_the_time_that_a_ui_message_names_is_its_own() -> None:
    message = {
        "id": "1",
        "role": "user",
        "parts": [{"type": "text", "text": "a"}],
        "metadata": {"createdAt": "2026-02-03T04:05:06.789Z"},
    }
    assert times(fresh().add(message, format="ai_sdk_ui")) == [
        datetime(2026, 2, 3, 4, 5, 6, 789_000, UTC)
    ]


def test_m34_a_merge_keeps_the_time_that_was_there() -> None:
    messages = fresh().add(model("a", id="x", created_at=at(5)))
    messages.add(model("a", "b", id="x", created_at=at(90)), "response")
    assert outline(messages) == ["model: a, b"]
    assert times(messages) == [at(5)]


def test_m35_stored_messages_are_put_in_order() -> None:
    given = [
        user(f"{second}", id=f"i{second}", created_at=at(second)) for second in (5, 1, 4, 2, 3)
    ]
    assert texts(fresh().add(given, "memory")) == ["1", "2", "3", "4", "5"]
    one_by_one = fresh()
    for message in given:
        one_by_one.add(message, "memory")
    assert texts(one_by_one) == ["1", "2", "3", "4", "5"]


def test_m35_stored_messages_stand_before_what_is_asked_now() -> None:
    messages = fresh().add(user("now", created_at=at(50)))
    messages.add(
        [user("b", id="b", created_at=at(2)), user("a", id="a", created_at=at(1))], "memory"
    )
    messages.add(user("later", id="l", created_at=at(60)), "memory")
    assert texts(messages) == ["a", "b", "now", "later"]


def test_what_a_store_says_is_in_order_stays_so() -> None:
    given = [
        user("a", id="a", created_at=at(5)),
        model("b", id="b", created_at=at(4)),
        user("c", id="c", created_at=at(1)),
    ]
    messages = fresh().add(user("now", created_at=at(50))).add(given, "memory", ordered=True)
    assert texts(messages) == ["a", "b", "c", "now"]
    assert texts(messages.add(user("d", id="d", created_at=at(2)), "memory")) == [
        "d",
        "a",
        "b",
        "c",
        "now",
    ]


def test_m30_a_turn_is_not_cut_by_a_time_within_it() -> None:
    turn = [
        user("q", id="q", created_at=at(1)),
        model(call(), id="m", created_at=at(2)),
        results(result(), id="r", created_at=at(9)),
        model("done", id="d", created_at=at(10)),
    ]
    messages = fresh().add(turn, "memory").add(user("between", id="b", created_at=at(5)), "memory")
    assert outline(messages) == [
        "user: q",
        "model: call c1",
        "user: result c1=r",
        "model: done",
        "user: between",
    ]
    assert [row.order for row in messages._rows] == sorted(row.order for row in messages._rows)


@pytest.mark.slow
def test_m35_many_stored_messages_loaded_twice_are_looked_at_a_few_times_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = 0

    def counted(self: Message, other: object) -> bool:
        nonlocal looked
        looked += 1
        return self is other

    given = [user(f"{number}", id=f"i{number}", created_at=at(number)) for number in range(20_000)]
    backwards = given[::-1]
    messages = fresh().add(backwards, "memory")
    monkeypatch.setattr(Message, "__eq__", counted)
    messages.add(backwards, "memory").add(given, "memory")
    assert len(messages) == 20_000
    assert looked <= 4 * 20_000


def test_m36_a_prompt_does_not_move_the_clock() -> None:
    moved = 0

    def clock() -> datetime:
        nonlocal moved
        moved += 1
        return at(moved)

    messages = fresh(clock=clock).add(["a", model(call()), "b"])
    before = moved
    messages.prompt()
    messages.export("openai_chat")
    assert moved == before


@pytest.mark.parametrize(
    "time", [datetime.max, datetime.min, datetime.max.replace(tzinfo=UTC), datetime(2026, 1, 1)]
)
def test_times_at_the_ends_of_the_calendar_and_without_a_zone_are_kept(time: datetime) -> None:
    messages = (
        fresh()
        .add(user("a", created_at=time), "memory")
        .add(["b", "c"])
        .add(user("d", created_at=at(0)), "memory")
    )
    assert times(messages)[texts(messages).index("a")] == time
    assert sorted(texts(messages)) == ["a", "b", "c", "d"]
    assert MessageList.load(messages.dump()).get() == messages.get()
