"""Any cut, reordering or duplication of any valid history, repaired and exported to any wire,
passes that wire's strict validator."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.message import Message
from dragoman.repair import repair
from support.conversations import conversations
from support.disorder import TAKEN, disordered
from support.histories import native
from support.rules import problems
from support.switching import TARGETS, answered, recorded, sent

FEW = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


VENDORS = re.compile("no such field|are no JSON object")
"""What of its own wire is another vendor's, and goes back to who wrote it."""


def refused(messages: list[Message], wire: str, *, own: bool = False) -> list[str]:
    """What the wire's provider would refuse of a history. `own`: it is of that wire."""
    body = sent(wire, messages)
    found = [
        each
        for each in problems(wire, body)
        if wire not in TAKEN or not TAKEN[wire].fullmatch(each)
    ]
    return [
        f"{each} in {json.dumps(body)[:600]}"
        for each in found
        if not (own and VENDORS.search(each))
    ]


@pytest.mark.parametrize("wire", TARGETS)
@FEW
@given(messages=conversations(open_calls=True), seed=st.integers(0, 2**32))
def test_any_disorder_is_valid_for_every_wire(
    wire: str, messages: list[Message], seed: int
) -> None:
    changed = disordered(messages, seed)
    assert refused(changed, wire) == []
    assert repair(repair(changed)) == repair(changed)


@pytest.mark.parametrize("wire", TARGETS)
def test_any_disorder_of_what_a_wire_held_is_valid_for_every_other(wire: str) -> None:
    for first in TARGETS:
        for messages in native(first, TARGETS[first]):
            for seed in range(12):
                assert (
                    refused(disordered(answered(messages), seed), wire, own=first == wire) == []
                ), (first, seed)


@pytest.mark.slow
@pytest.mark.parametrize("wire", TARGETS)
def test_any_disorder_of_what_was_recorded_is_valid_for_every_wire(wire: str) -> None:
    seen = 0
    for first in TARGETS:
        for name, messages in recorded(first, every=11):
            for seed in range(3):
                seen += 1
                if first != wire:  # of its own wire also other vendors' fields, which are theirs
                    assert refused(disordered(messages, seed), wire) == [], (name, seed)
    assert seen > 100
