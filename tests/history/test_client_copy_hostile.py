"""Payloads that nobody should send: refused or merged, never a crash, never more work than their
length."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from dragoman import formats
from dragoman.errors import HistoryError
from dragoman.history import alignment, copy_match, pieces, projection, put
from dragoman.message import Message, Origin, Role, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.testing.mutation import Sample, mutate

STORED = [
    Message.system("Be brief."),
    Message.user("How warm?").replace(id="u1"),
    Message.model(ThinkingPart("Hm.", {"anthropic": {"signature": "c2ln"}}), ToolCallPart("c1", "weather", {"city": "Rome"})).replace(
        id="a1", origin=Origin("anthropic")
    ),
    Message.user(ToolResultPart("c1", "weather", {"t": 21})).replace(id="r1"),
    Message.model("21.").replace(id="a2"),
    Message.user("Why?").replace(id="u2"),
]  # fmt: skip


def attack(name: str, number: int) -> int:
    """Mutated payloads of a format → how many were merged."""
    chance = Random(f"{name} 1")
    sample = Sample.from_value(formats.get(name).dump_messages(STORED))
    merged = 0
    for _ in range(number):
        payload = mutate(chance, sample)
        try:
            changes = put(STORED, name, payload)
        except HistoryError:
            continue
        merged += 1
        kept = {id(message) for message in changes.messages}
        assert id(STORED[0]) in kept
        assert all(id(message) in kept or message in changes.removed or message.id in {one.id for one in changes.edited}
                   for message in STORED)  # fmt: skip
        assert all(message.origin is None for message in changes.added)
        assert all(message.role is not Role.SYSTEM for message in changes.added)
        for message in (*changes.added, *changes.edited):
            assert all(
                not piece.native or message.role is Role.USER
                for piece in message.content
                if piece.__class__ is ThinkingPart
            )
        assert put(changes.messages, name, payload) is not None
    return merged


@pytest.mark.parametrize("name", formats.names())
def test_a_mutated_payload_is_refused_or_merged(name: str) -> None:
    assert attack(name, 60) > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", formats.names())
def test_mutated_payloads_are_refused_or_merged(name: str) -> None:
    assert attack(name, 1000) > 100


def conversation(length: int) -> list[Message]:
    found: list[Message] = []
    for number in range(length // 4):
        call = ToolCallPart(f"call_{number}", "f", {"n": number})
        found += [Message.user(f"question {number}"), Message.model(ThinkingPart("Hm."), call)]
        found += [
            Message.user(ToolResultPart(call.id, "f", {"n": number})),
            Message.model(f"answer {number}"),
        ]
    return found


def halves(messages: list[Message]) -> list[Message]:
    return messages[::2]


def turned(messages: list[Message]) -> list[Message]:
    return messages[::-1]


def alike(messages: list[Message]) -> list[Message]:
    return [
        Message.user("a") if message.role is Role.USER else Message.model("b")
        for message in messages
    ]


def joined(messages: list[Message]) -> list[Message]:
    return [Message.model(*(f"{n}" for n in range(len(messages))))]


def texts(messages: list[Message]) -> list[Message]:
    return [message for message in messages if message.text]


def more(messages: list[Message]) -> list[Message]:
    return [*messages, Message.user("new")]


class Counting:
    """How often functions are called, and on how much."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work = 0
        for module, name, size in (
            (pieces, "neutral_digest", lambda *_: 1),
            (copy_match, "align", lambda these, those: len(these) + len(those)),
            (projection, "align", lambda these, those: len(these) + len(those)),
            (alignment, "_anchors", lambda these, those, **_: len(these) + len(those)),
            (alignment, "_longest_common", lambda these, those: len(these) * len(those)),
            (copy_match, "project", lambda _, start, end, __: end - start),
        ):
            monkeypatch.setattr(module, name, self.counted(getattr(module, name), size))

    def counted(self, function: Callable[..., Any], size: Callable[..., int]) -> Callable[..., Any]:
        def count(*given: Any, **how: Any) -> Any:
            self.work += size(*given, **how)
            return function(*given, **how)

        return count


@pytest.mark.parametrize("edit", [more, halves, turned, alike, joined, texts])
@pytest.mark.parametrize("name", ["openai_chat", "sharegpt"])
def test_the_work_is_linear(
    monkeypatch: pytest.MonkeyPatch, name: str, edit: Callable[[list[Message]], list[Message]]
) -> None:
    counting = Counting(monkeypatch)

    def work(length: int) -> int:
        stored = alike(conversation(length)) if edit is alike else conversation(length)
        payload = formats.get(name).dump_messages(edit(stored))
        counting.work = 0
        put(stored, name, payload)
        return counting.work

    small, large = work(120), work(960)
    assert large <= 12 * small + 2000


def test_a_conversation_that_is_sent_again_is_dumped_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = conversation(400)
    payload = formats.get("openai_chat").dump_messages(more(stored))
    counting = Counting(monkeypatch)
    calls: list[object] = []
    monkeypatch.setattr(copy_match, "project", lambda *given: calls.append(given) or [])
    assert len(put(stored, "openai_chat", payload).added) == 1
    assert not calls
    assert counting.work <= 5 * len(stored)
