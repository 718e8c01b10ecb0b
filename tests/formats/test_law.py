"""The law of formats, for all ordered pairs: what is said survives X → Y → X or is a loss of the
way to Y, and X → X is the same JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from dragoman import formats, wires
from dragoman.errors import DragomanError
from dragoman.message import Message
from support.conversations import conversations
from support.histories import NATIVE, NEUTRAL, native
from support.law import broken, hop
from support.switching import FOLDERS, TARGETS
from support.traffic import exchanges

BEING_BUILT: tuple[str, ...] = ()
NAMES = [name for name in formats.names() if name not in BEING_BUILT]
FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


@cache
def held(name: str) -> dict[str, list[Message]]:
    """Conversations as a format holds them: of every kind, and a wire's own."""
    own = (
        {f"its own {n}": each for n, each in enumerate(native(name, TARGETS[name]))}
        if name in NATIVE
        else {}
    )
    return {kind: hop(messages, name).after for kind, messages in NEUTRAL.items()} | own


def is_drawn(text: str, one_of: int) -> bool:
    """Whether something is in the sample of the quick suite."""
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) % one_of == 0


def recorded(wire: str) -> Iterator[tuple[str, list[Message]]]:
    """The conversations of all recorded bodies of requests of a wire."""
    for exchange in exchanges(*FOLDERS[wire]):
        try:
            request = wires.get(wire).load_request(
                exchange.request or {}, path=exchange.url, origin=TARGETS[wire]
            )
        except DragomanError:
            continue
        if request.messages:
            yield exchange.id, list(request.messages)


def as_json(payload: Any) -> Any:
    return json.loads(msgspec.json.encode(payload))


@pytest.mark.parametrize("then", NAMES)
@FEW
@given(given_=conversations())
def test_what_is_said_survives_the_way_there_and_back(then: str, given_: list[Message]) -> None:
    for first in NAMES:
        assert broken(hop(given_, first).after, first, then) == []


@pytest.mark.parametrize("then", NAMES)
def test_what_is_said_survives_of_every_kind(then: str) -> None:
    for first in NAMES:
        for kind, messages in held(first).items():
            if kind.startswith("its own") or is_drawn(f"{first} {then} {kind}", 6):
                assert broken(messages, first, then) == [], kind


@pytest.mark.slow
@pytest.mark.parametrize("then", NAMES)
def test_what_is_said_survives_of_all_kinds(then: str) -> None:
    for first in NAMES:
        for kind, messages in held(first).items():
            assert broken(messages, first, then) == [], kind


@pytest.mark.parametrize("first", [name for name, folders in FOLDERS.items() if folders])
def test_what_was_recorded_survives(first: str) -> None:
    seen = 0
    for id_, messages in recorded(first):
        for then in NAMES:
            if is_drawn(f"{id_} {then}", 60):
                seen += 1
                assert broken(messages, first, then) == [], id_
    assert seen


@pytest.mark.slow
@pytest.mark.parametrize("first", FOLDERS)
def test_all_that_was_recorded_survives(first: str) -> None:
    for id_, messages in recorded(first):
        for then in NAMES:
            assert broken(messages, first, then) == [], id_


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(given_=conversations())
def test_what_a_format_wrote_it_writes_again(name: str, given_: list[Message]) -> None:
    format_ = formats.get(name)
    payload = as_json(format_.dump_messages(given_))
    losses: list[Any] = []
    assert as_json(format_.dump_messages(format_.load_messages(payload), losses=losses)) == payload
    assert losses == []


@pytest.mark.parametrize("name", NAMES)
def test_what_a_format_wrote_of_every_kind_it_writes_again(name: str) -> None:
    format_ = formats.get(name)
    for kind, messages in NEUTRAL.items():
        payload = as_json(format_.dump_messages(messages))
        assert as_json(format_.dump_messages(format_.load_messages(payload))) == payload, kind
