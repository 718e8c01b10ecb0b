"""Usual messages of Chat's kind are voted on once for each shape, not once for each message."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import formats
from dragoman.formats import detection
from dragoman.formats.registry import detectable

IDS = st.one_of(
    st.from_regex(r"(call_|toolu_|chatcmpl-tool-|é)?[A-Za-z0-9_-]{0,9}", fullmatch=True),
    st.sampled_from(
        ["call_1", "abcDEF123", "abcdefghé", "", "x" * 70, "fc_1", "9 9 9 9 9", "\ud83d"]
    ),
)
TEXTS = st.sampled_from(["", " ", "Hi.", "<a>", "{}", "\n", "\ud83d"])
CALLS = st.fixed_dictionaries(
    {
        "id": IDS,
        "type": st.sampled_from(["function", "function", "custom", "\ud83d"]),
        "function": st.fixed_dictionaries(
            {"name": st.sampled_from(["look", "a b", ""]), "arguments": TEXTS}
        ),
    },
    optional={"index": st.just(0)},
)
MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": IDS, "content": TEXTS}),
    st.fixed_dictionaries(
        {
            "role": st.just("assistant"),
            "content": st.one_of(st.none(), TEXTS),
            "tool_calls": st.lists(CALLS, max_size=3),
        }
    ),
)


def exchange(number: int, prefix: str) -> list[dict[str, Any]]:
    calls = [
        {
            "id": f"{prefix}{number}{place}",
            "type": "function",
            "function": {"name": "look", "arguments": "{}"},
        }
        for place in "ab"
    ]
    return [
        {"role": "user", "content": f"Look {number}."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *[{"role": "tool", "tool_call_id": call["id"], "content": "Seen."} for call in calls],
        {"role": "assistant", "content": "I looked."},
    ]


@given(MESSAGES)
def test_a_shape_has_the_votes_of_each_message_of_it(message: dict[str, Any]) -> None:
    every, facts = detectable(), detection._load_facts()
    shape = detection._shape(message)
    votes = detection._count_format_votes(message, shape, every, facts)
    assert votes == {name: vote for name, one in every.items() if (vote := one.votes(message))}, (
        shape
    )


def test_many_conversations_of_one_kind_are_voted_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    ballots = detection._ballots

    def count(*args: Any) -> dict[str, int]:
        asked["times"] += 1
        return ballots(*args)

    detection._last.clear()
    formats.detect(exchange(0, "call_"))
    monkeypatch.setattr(detection, "_ballots", count)
    for number in range(1, 9):
        body = {"model": "m", "messages": exchange(number, "call_") * 3, "id": f"{number}"}
        assert formats.detect(body) == "openai_chat"
    assert not asked
    # Ids that look otherwise may be another format's.
    assert formats.detect(exchange(10, "abcDEF")) == "mistral"
    assert asked["times"] == 2


def test_the_shapes_that_are_kept_are_bounded() -> None:
    facts = detection._load_facts()
    for number in range(detection._MOST_SHAPES + 50):
        formats.detect(exchange(number, f"p{number}_"))
    assert len(facts.usual) <= detection._MOST_SHAPES
    detection._last.clear()


def test_what_is_kept_of_a_shape_has_no_length_that_a_peer_chose() -> None:
    long = "a" * 100_000
    call = {"id": f"{long}_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": " " * 100_000, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "Seen."},
    ]
    formats.detect(chat)
    kept = detection._load_facts().usual
    assert len(kept) > 3 and all(len(repr(shape)) < 200 for shape in kept)
