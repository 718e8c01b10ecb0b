"""What adding to a list costs, in calls and not in time; and that the short way of what is plainly
new gives what the long way gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.history import MessageList, add
from dragoman.message import Message
from support.conversations import conversations
from support.listed import fresh
from support.work import calls

START = datetime(2026, 1, 1, tzinfo=UTC)


def talk(count: int) -> list[Message]:
    speak = (Message.user, Message.model)
    return [speak[at % 2](f"{at}") for at in range(count)]


def stored(count: int) -> list[Message]:
    return [
        message.replace(id=f"m{at}", created_at=START + timedelta(seconds=at))
        for at, message in enumerate(talk(count))
    ]


def chat(count: int) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[at % 2], "content": f"{at}"} for at in range(count)]


def per_message(make: Callable[[int], list[Any]], **how: Any) -> float:
    """Calls that one message more costs."""
    few, many = make(100), make(2100)
    MessageList().add(few, **how)  # what is imported and made once
    return (
        calls(lambda: MessageList().add(many, **how)) - calls(lambda: MessageList().add(few, **how))
    ) / 2000


@pytest.mark.parametrize(
    ("make", "how", "most"),
    [
        (talk, {}, 7),
        (stored, {}, 5),
        (stored, {"source": "memory"}, 7),
        (chat, {"format": "openai_chat"}, 20),
        (chat, {}, 35),
    ],
    ids=["own", "own with ids and times", "stored", "chat", "chat, detected"],
)
def test_a_message_costs_few_calls(make: Any, how: dict[str, Any], most: int) -> None:
    assert per_message(make, **how) <= most


def test_ids_and_times_are_made_once_for_all() -> None:
    asked: list[str] = []

    def clock() -> datetime:
        asked.append("time")
        return START

    messages = MessageList(clock=clock).add(talk(300))
    assert asked == ["time"]
    assert len({message.id for message in messages}) == 300


def add_from_the_end(count: int, page: int = 1) -> MessageList:
    messages, rows = MessageList(), stored(count)
    for at in range(count - page, -1, -page):
        messages.add(rows[at : at + page], "memory")
    return messages


@pytest.mark.parametrize("page", [1, 4])
@pytest.mark.slow
def test_m35_rows_that_come_from_the_newest_on_are_put_in_order_once(page: int) -> None:
    assert add_from_the_end(64, page).get() == stored(64)
    few, many = (
        calls(lambda count=count: add_from_the_end(count, page).get()) for count in (200, 1600)
    )
    assert many < 10 * few


def test_what_waits_for_its_place_is_there_already() -> None:
    rows = stored(6)
    messages = MessageList().add(rows[4], "memory").add(rows[3], "memory").add(rows[1], "memory")
    messages.add(rows[3].replace(content=()), "memory").add(rows[5], "memory").add("new").add(
        rows[2], "memory"
    )
    assert [message.id for message in messages.get()[:5]] == ["m1", "m2", "m3", "m4", "m5"]
    assert messages.get()[5].text == "new"
    other = MessageList().add(rows[4], "memory").add(rows[1], "memory")
    assert len(other.fork()) == len(other) == 2
    assert [message.id for message in other.remove("m1")] == ["m1"]


def test_what_was_loaded_around_a_message_waits_for_nothing() -> None:
    rows = stored(10)
    messages = (
        MessageList()
        .add(rows[5], "memory")
        .add([rows[3], rows[9]], "memory")
        .add(rows[7], "context")
    )
    assert [message.id for message in messages] == ["m3", "m5", "m9", "m7"]


def outline(messages: MessageList) -> list[tuple[Any, ...]]:
    rows = [(row.message, row.order, row.live, row.origins, row.starts) for row in messages._rows]
    return [*rows, messages._rows.sealed, messages._rows.last_start]


def added(parts: Sequence[tuple[str, list[Message]]], *, ordered: bool) -> MessageList:
    messages = fresh()
    for source, part in parts:
        messages.add(part, source, ordered=ordered)  # pyright: ignore[reportArgumentType]
    return messages


@settings(max_examples=60)
@given(data=st.data())
@pytest.mark.slow
def test_the_short_way_is_the_long_way(data: st.DataObject) -> None:
    parts: list[tuple[str, list[Message]]] = []
    for number in range(data.draw(st.integers(1, 3))):
        part = data.draw(conversations(exchanges=2))
        if data.draw(st.booleans()):
            part = [message.replace(id=message.id and f"{number}-{message.id}") for message in part]
        if data.draw(st.integers(0, 3)) == 0:
            part = [message.replace(created_at=START) for message in part]
        parts.append((data.draw(st.sampled_from(["input", "memory", "context"])), part))
    ordered = data.draw(st.booleans())
    short = added(parts, ordered=ordered)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(add, "add_new", lambda *_: None)
        long = added(parts, ordered=ordered)
    assert outline(short) == outline(long)
