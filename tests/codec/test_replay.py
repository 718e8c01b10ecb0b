"""Whose signed content may go back, and why not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dragoman.codec import signature_check
from dragoman.codec.digest import chain_signature_digests, compute_prefix
from dragoman.codec.signature_check import find_unreadable
from dragoman.loss import Loss
from dragoman.message import Message, Origin, ThinkingPart
from support import strategies as some

SIGNED = ThinkingPart("hm", {"anthropic": {"signature": "s"}})
TARGET = Origin("anthropic", "https://api.test", "claude")


def signed(**origin: Any) -> Message:
    return Message.model(SIGNED, "said").replace(
        origin=Origin(**{"provider": "anthropic", **origin})
    )


@pytest.mark.parametrize(
    ("origin", "target", "reads", "why"),
    [
        ({}, TARGET, (), None),
        ({"endpoint": "https://api.test", "model": "another"}, TARGET, (), None),
        ({"endpoint": "https://api.test"}, Origin("anthropic"), (), None),
        ({"endpoint": "https://proxy.test"}, TARGET, (), "another endpoint, https://proxy.test"),
        ({"provider": "minimax"}, TARGET, (), "from minimax, which anthropic does not read"),
        ({"provider": "minimax"}, TARGET, ("deepseek", "minimax"), None),
        ({"provider": "minimax", "endpoint": "https://minimax.test"}, TARGET, ("minimax",), None),
        ({"provider": "minimax"}, None, (), None),
        ({"prefix": "not that"}, TARGET, (), "has changed"),
        ({"prefix": "not that"}, None, (), None),
    ],
)
def test_signed_content_goes_to_an_origin_that_reads_it(
    origin: Any, target: Any, reads: Any, why: str | None
):
    before, (got,) = Message.user("ask"), find_unreadable([signed(**origin)], target, reads)
    assert (got is None) if why is None else (got is not None and why in got)
    assert find_unreadable([before, signed(**origin)], target, reads) == [None, got], (
        "what others said is not signed"
    )


def test_a_message_of_unknown_origin_is_not_readable():
    assert find_unreadable([Message.model(SIGNED)], TARGET) == ["its origin is not known"]
    assert find_unreadable([Message.model(SIGNED)], None) == [None]


def test_signed_content_is_valid_while_what_stood_before_is_as_it_was():
    ask, again = Message.user("ask").replace(id="1"), Message.user("and?")
    first = signed(prefix=compute_prefix([ask], "w"))
    second = signed(prefix=compute_prefix([ask, first, again], "w"))
    history = [ask, first, again, second]
    assert find_unreadable(history, TARGET) == [None] * 4
    assert (
        find_unreadable([ask.replace(id="2", metadata={"k": 1}), *history[1:]], TARGET)
        == [None] * 4
    ), "an id does not count"
    changed = "what stood before it has changed"
    assert find_unreadable([Message.user("other"), *history[1:]], TARGET) == [
        None,
        changed,
        None,
        changed,
    ]
    assert find_unreadable([ask, first, Message.user("edited"), second], TARGET) == [
        None,
        None,
        None,
        changed,
    ]
    assert find_unreadable(history[1:], TARGET) == [changed, None, changed]
    unbound = signed()
    assert find_unreadable([Message.user("other"), unbound], TARGET) == [None, None], (
        "without a prefix nothing is bound"
    )


def test_the_chain_is_made_once_and_only_where_a_prefix_asks_for_it(
    monkeypatch: pytest.MonkeyPatch,
):
    made: list[int] = []
    monkeypatch.setattr(
        signature_check.digest,
        "chain_signature_digests",
        lambda messages, wire: made.append(1) or chain_signature_digests(messages, wire),
    )
    find_unreadable([signed()] * 3, TARGET)
    assert made == []
    find_unreadable([signed(prefix="2:w:x")] * 3, TARGET)
    assert made == [1]


def test_a_loss_is_a_value():
    loss = Loss(0, None, "thinking", "why")
    assert loss == Loss(0, None, "thinking", "why")
    with pytest.raises(AttributeError):
        loss.what = "other"


@given(some.histories)
def test_every_message_gets_an_answer(history: list[Message]):
    assert find_unreadable(history, None) == [None] * len(history)
    assert len(find_unreadable(history, TARGET)) == len(history)
