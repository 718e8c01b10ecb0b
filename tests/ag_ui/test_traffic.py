"""Every recorded answer of a provider, told in AG-UI: accepted by both official clients and by the
validator, and read back as it was."""

from __future__ import annotations

import json
from functools import cache

import pytest
from ag_ui_validate.pytest_plugin import validate_agui

from dragoman import wires
from dragoman.event import Event, RunError
from dragoman.fold import compact as joined
from dragoman.fold import fold
from dragoman.wires import ag_ui
from dragoman.wires.ag_ui.compact import compact
from support.ag_ui import applied, decoded, encoded, objects, without_empty
from support.traffic import FOLDER, WIRES, decode, exchanges

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not FOLDER.is_dir(), reason="the recorded traffic is not beside the repository"
    ),
]
_ALONE = ("openai_embeddings", "cohere_v1")


@cache
def streams() -> dict[str, list[Event]]:
    found = {
        exchange.id: decode(wires.get(wire), exchange.body)
        for folder, wire in WIRES.items()
        if folder not in _ALONE
        for exchange in exchanges(folder)
        if exchange.framing != "json"
    }
    return {name: events for name, events in found.items() if events}


def as_values(events: list[Event]) -> list[object]:
    return [
        (type(each.error), each.error.message) if isinstance(each, RunError) else each
        for each in events
    ]


def test_every_stream_comes_back_and_its_conversation_too() -> None:
    assert len(streams()) > 800
    for name, events in streams().items():
        data = encoded(events, run_id="r")
        back = decoded(data)
        assert as_values(joined(back)) == as_values(without_empty(events)), name
        cuts = range(7, len(data), max(7, len(data) // 50))
        assert as_values(decoded(data, cuts)) == as_values(back), name
        messages = fold(events)
        assert ag_ui.load_messages(ag_ui.dump_messages(messages)) == messages, name


@pytest.mark.service
@pytest.mark.parametrize("version", ["1.0", "0.0.59"])
def test_every_stream_is_accepted(version: str) -> None:
    made = {
        name: objects(events, run_id="r", version=version) for name, events in streams().items()
    }
    for name, verdict in zip(
        made, applied([(each, []) for each in made.values()], version), strict=True
    ):
        failed = made[name][-1]["type"] == "RUN_ERROR"
        assert bool(verdict["error"]) == failed or verdict["error"] is None, (
            name,
            verdict["error"],
        )
        assert not verdict["warnings"], name


@pytest.mark.service
def test_every_stream_is_compacted_as_the_client_does_it() -> None:
    made = {name: objects(events, run_id="r") for name, events in streams().items()}
    shorter = [compact(each) for each in made.values()]
    whole, short = (
        applied([(each, []) for each in made.values()]),
        applied([(each, []) for each in shorter]),
    )
    for name, mine, one, other in zip(made, shorter, whole, short, strict=True):
        assert json.loads(json.dumps(mine)) == one["compacted"], name
        assert (one["messages"], one["state"]) == (other["messages"], other["state"]), name


def test_the_validator_finds_nothing_but_arguments_that_were_cut() -> None:
    """And, in one recording, a result whose call has another id, since its ids were made
    unreadable."""
    found = {
        (each.rule, name.partition("/")[2].partition("-")[0] if each.rule == "AGUI207" else "")
        for name, events in streams().items()
        for each in validate_agui(objects(events, run_id="r")).diagnostics
        if each.severity == "error"
    }
    assert found <= {("AGUI204", ""), ("AGUI207", "rig")}
