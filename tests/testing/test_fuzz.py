"""A short run of the mutating test of the wires, and that it finds what is there to be found. `make
fuzz` runs a million."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dragoman import wires
from dragoman.testing.hostile import Case
from dragoman.testing.mutation import Sample, encode_json, mutate, read_frames, write_frames
from fuzz import findings
from fuzz.__main__ import main
from fuzz.findings import Cause, cause_of, smaller
from fuzz.run import Plan, altered, batch, by_cause, case_of
from fuzz.seeds import FOLDERS

SOME = 12
COUNT = 700
REAL = wires.get("openai_chat")


@pytest.mark.parametrize("wire", FOLDERS)
@pytest.mark.slow
def test_whatever_comes_in_what_leaves_is_a_value_or_an_error_of_ours(wire: str) -> None:
    _, found = batch(Plan(1, wire, recordings=SOME), range(COUNT))
    assert not {cause: (len(each), each[0]) for cause, each in by_cause(found).items()}


@pytest.mark.slow
def test_no_wire_changes_what_it_is_given() -> None:
    assert not altered(Plan(2, recordings=0), 700)


def test_an_input_is_told_by_seed_and_index() -> None:
    plan = Plan(7, recordings=0)
    assert [case_of(plan, index).data for index in range(50)] == [
        case_of(plan, index).data for index in range(50)
    ]
    assert case_of(plan, 3).data != case_of(Plan(8, recordings=0), 3).data


class Fragile:
    """A wire that takes for granted that a message has its role."""

    name = "openai_chat"

    def __getattr__(self, name: str) -> Any:
        return getattr(REAL, name)

    def load_messages(self, payload: Any, **how: Any) -> Any:
        return REAL.load_messages([raw for raw in payload if raw["role"]], **how)


@pytest.fixture
def fragile(monkeypatch: pytest.MonkeyPatch) -> Any:
    wire, real = Fragile(), wires.get
    monkeypatch.setattr(wires, "get", lambda name: wire if name == "openai_chat" else real(name))
    return wire


@pytest.mark.slow
def test_a_fault_is_found_and_made_small(fragile: Any) -> None:
    plan = Plan(0, "openai_chat", "messages", recordings=0)
    _, found = batch(plan, range(2_000))
    cause = next(cause for cause in by_cause(found) if cause.error == "KeyError")
    case = case_of(plan, by_cause(found)[cause][0].index)
    assert len(smaller(case, cause).data) < 40 < len(case.data)


@pytest.mark.slow
def test_the_command_says_how_to_have_a_finding_again(
    fragile: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "--count",
        "2000",
        "--wire",
        "openai_chat",
        "--door",
        "messages",
        "--recordings",
        "0",
        "--jobs",
        "1",
    ]
    assert main(arguments) == 1
    told = capsys.readouterr().out
    assert "KeyError at " in told
    again = told.partition("again: make fuzz ARGS='")[2].partition("'")[0].split()
    assert main(again) == 1
    assert "Traceback" in capsys.readouterr().err


def test_what_takes_too_long_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "SLOW", -1.0)
    case = Case("request", wires.get("google"), wires.get("google"), {})
    assert cause_of(case) is None
    assert cause_of(case, timed=True) is not None
    assert cause_of(case, timed=True)[0] == Cause("TooSlow", "request")


def test_a_change_leaves_what_was_given_as_it_was() -> None:
    value = {"a": [{"b": "text"}, 1, {"c": None}], "d": {"e": [1.5, "x"]}}
    before = encode_json(value)
    sample = Sample.from_value(value)
    changed = [encode_json(mutate(Random(index), sample, [sample])) for index in range(500)]
    assert encode_json(value) == before
    assert len(set(changed)) > 300


def test_streams_are_taken_apart_and_put_together_again() -> None:
    for stream in (
        b'event: a\ndata: {"x":1}\n\ndata: {"y":[2]}\n\ndata: [DONE]\n\n',
        b'{"x":1}\n{"y":[2]}\n',
    ):
        framing, frames = read_frames(stream)
        assert write_frames(framing, frames) == stream
        assert [frame.get("data") for frame in frames][:2] == [{"x": 1}, {"y": [2]}]


def test_what_no_stack_holds_is_written_all_the_same() -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = {"a": [deep, 1]}
    assert encode_json(deep) == b'{"a":[' * 5_000 + b"[]" + b",1]}" * 5_000
