"""A text's further pieces are made as bytes at once: they are those that the objects make, whatever
stands between them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dragoman import json_bytes
from dragoman.event import (  # fmt: skip
    Custom,
    Event,
    MessageDropped,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunFinished,
    RunStarted,
)
from dragoman.message import Role, TextPart
from dragoman.wires import a2a
from dragoman.wires.a2a import encode

TEXTS = ("a", "é\U0001f600", '"text":""', "\\", "\n", "{}", "word " * 9, "")


def stream(chance: Random) -> list[Event]:
    events: list[Event] = [
        RunStarted("r"),
        MessageStarted("m", Role.MODEL),
        MessageStarted("n", Role.MODEL),
    ]
    open_: dict[tuple[str, int], list[str]] = {}
    for _ in range(60):
        key = (chance.choice("mn"), chance.randrange(3))
        if key not in open_:
            open_[key] = []
            events.append(PartStarted(key[0], key[1], OpenText()))
        elif chance.random() < 0.05:
            events.append(PartFinished(key[0], key[1], TextPart("".join(open_.pop(key)) or "x")))
        elif chance.random() < 0.04:
            events.append(chance.choice([Custom("note", {"a": 1}), MessageDropped("n", "again")]))
        else:
            for _ in range(chance.randrange(1, 6)):
                open_[key].append(chance.choice(TEXTS))
                events.append(PartDelta(key[0], key[1], open_[key][-1]))
    return [*events, RunFinished("r", "success")]


@pytest.mark.parametrize(
    "framed", [{}, {"rpc_id": 'a"text":""b'}, {"rpc_id": None, "extras": False}], ids=range(3)
)
def test_bytes_are_those_of_the_objects(framed: dict[str, Any]) -> None:
    for seed in range(40):
        fed, shown = (
            a2a.encoder(task_id='"text":""', **framed),
            a2a.encoder(task_id='"text":""', **framed),
        )
        for event in stream(Random(seed)):
            objects = [shown_object(each, framed) for each in shown.objects(event)]
            assert fed.feed(event) == b"".join([a2a.frame_object(each) for each in objects]), (
                seed,
                event,
            )
        assert fed.close() == b"".join(
            [a2a.frame_object(shown_object(each, framed)) for each in shown.close_objects()]
        )


def shown_object(each: Any, framed: dict[str, Any]) -> Any:
    return a2a.rpc_result(each, framed["rpc_id"]) if "rpc_id" in framed else each


def test_a_long_text_makes_its_frame_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: a JSON object is made for the first pieces alone."""
    sizes: list[int] = []

    def counted(value: Any) -> bytes:
        sizes.append(isinstance(value, dict))
        return encode_json(value)

    encode_json = json_bytes.encode
    fed = a2a.encoder()
    for event in stream(Random(1))[:3]:
        fed.feed(event)
    fed.feed(PartStarted("m", 7, OpenText()))
    monkeypatch.setattr(encode.json_bytes, "encode", counted)
    for at in range(500):
        fed.feed(PartDelta("m", 7, f"{at} "))
    assert sum(sizes) <= 4
