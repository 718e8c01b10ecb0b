"""Every stream that we produce is accepted by AG-UI's official clients, the newest and the last
before 1.0, and says the same to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.fold import fold
from dragoman.wires import ag_ui
from dragoman.wires.ag_ui.compact import compact
from support.ag_ui import REQUEST, SCENARIOS, applied, objects

pytestmark = [pytest.mark.service, pytest.mark.slow]
VERSIONS = ("1.0", "0.0.59")
BEFORE = ag_ui.dump_messages(REQUEST.messages)


def streams(version: str, **envelope: Any) -> Mapping[str, list[dict[str, Any]]]:
    declared = version if version == "1.0" else ""
    return {
        name: objects(
            made(), thread_id="t", run_id="r", request=REQUEST, version=declared, **envelope
        )
        for name, made in SCENARIOS.items()
    }


@pytest.mark.parametrize("extras", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_every_way_in_which_a_run_goes_is_accepted(version: str, extras: bool) -> None:
    made = streams(version, extras=extras)
    verdicts = applied([(each, BEFORE) for each in made.values()], version)
    failing = {
        "an error in the middle": "too much",
        "cut": "the run was cut before its end. Ask again.",
    }
    if version != "1.0":
        failing["cancelled"] = "The run was cancelled."
    for name, verdict in zip(made, verdicts, strict=True):
        error = verdict["error"]
        assert error is None or (name in failing and failing[name] in error), (name, error)
        assert not verdict["warnings"], (name, verdict["warnings"])


def test_the_client_knows_a_stream_that_is_not_allowed() -> None:
    bad = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    ]
    for version in VERSIONS:
        (verdict,) = applied([(bad, [])], version)
        assert "TEXT_MESSAGE_END" in verdict["error"]


def texts_of(verdict: Mapping[str, Any]) -> list[tuple[str, str]]:
    read = ag_ui.load_messages(verdict["messages"])
    return [(str(message.role), message.text) for message in read if message.text]


def test_what_is_taken_back_is_gone() -> None:
    made = streams("1.0")
    for version in VERSIONS:
        for name, texts in (("taken back", ["Weather?", "Right."]), ("taken back while another is open", ["Weather?", "Hallo."])):  # fmt: skip
            (verdict,) = applied([(made[name], BEFORE)], version)
            assert [text for _, text in texts_of(verdict)] == texts


def test_what_waits_is_known_to_the_client() -> None:
    made = streams("1.0")
    approval, question = applied(
        [(made["an approval"], BEFORE), (made["a question and a sign-in"], BEFORE)]
    )
    (interrupt,) = approval["pending"]
    assert (interrupt["reason"], interrupt["toolCallId"], interrupt["message"]) == (
        "tool_call",
        "c1",
        "May I?",
    )
    assert [each["reason"] for each in question["pending"]] == [
        "input_required",
        "a2a:auth_required",
    ]


def test_state_is_what_the_run_made_of_it() -> None:
    made = streams("1.0")
    (verdict,) = applied([(made["steps and state"], BEFORE)])
    assert verdict["state"] == {"a": [2], "n": 1}


def test_a_client_that_sends_back_what_it_was_told_sends_what_was_said() -> None:
    made = streams("1.0")
    for (name, events), verdict in zip(SCENARIOS.items(), applied([(each, BEFORE) for each in made.values()]), strict=True):  # fmt: skip
        if name in ("several answers", "ids that repeat", "other than its deltas"):
            continue
        read = [each for each in ag_ui.load_messages(verdict["messages"]) if each.id != "u"]
        wanted = [each for each in fold(events()) if each.id != "u"]
        if name in ("runs one after the other", "an error in the middle", "cut"):
            assert "".join(each.text for each in read) == "".join(each.text for each in wanted), (
                name
            )
            continue
        assert {each.id for each in read} == {each.id for each in wanted}, name
        for message in wanted:
            (back,) = [each for each in read if each.id == message.id]
            assert list(back.content) == [each for each in message.content if type(each).__name__ != "ProviderPart"], name  # fmt: skip
            assert (back.origin, back.created_at, back.turn) == (
                message.origin,
                message.created_at,
                message.turn,
            ), name


def test_compacting_is_what_the_client_does_and_changes_nothing() -> None:
    made = streams("1.0")
    shorter = {name: compact(each) for name, each in made.items()}
    whole = applied([(each, BEFORE) for each in made.values()])
    short = applied([(each, BEFORE) for each in shorter.values()])
    for name, one, other in zip(made, whole, short, strict=True):
        assert (one["messages"], one["state"], one["error"]) == (
            other["messages"],
            other["state"],
            other["error"],
        ), name
        if name not in (
            "taken back while another is open",
            "steps and state",
        ):  # there it moves what is side by side
            assert one["compacted"] == shorter[name], name
