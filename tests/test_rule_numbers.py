"""Every D-, R- and T-rule of the seeds that is built has a test that names it by its own number: a
range hides the rules within."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RULE = re.compile(r"\b([DRT])-(\d+[a-z]?)\b")
RANGE = re.compile(r"\b[DRT]-\d+[a-z]? ?(?:…|–|\.\.\.?|to) ?[DRT]-\d+[a-z]?")
NAME = re.compile(r"(?<=_)([drt])_?(\d+[a-z]?)(?=_)")


def named_rules(text: str) -> set[str]:
    """The rules that a test file names one by one."""
    text = RANGE.sub("", text)
    rules = {f"{letter}-{number}" for letter, number in RULE.findall(text)}
    names = " ".join(re.findall(r"def (test_\w+)", text))
    return rules | {f"{letter.upper()}-{number}" for letter, number in NAME.findall(names)}


@pytest.mark.mend("3.10")
def test_every_rule_that_is_built_is_named_by_a_test() -> None:
    table = tomllib.loads((HERE / "rule_numbers.toml").read_text())
    rules, unbuilt, unnumbered = (
        set(table["rules"]),
        set(table["unbuilt"]),
        set(table["unnumbered"]),
    )
    files = [path for path in HERE.rglob("*.py") if path != Path(__file__)]
    named = set().union(*[named_rules(path.read_text()) for path in files])

    assert unbuilt | unnumbered <= rules
    assert rules - named - unbuilt == unnumbered


@pytest.mark.mend("3.10")
def test_a_range_names_no_rule() -> None:
    assert named_rules("rules D-20…D-29, D-30 to D-32 and D-41r; def test_t07_d08_x") == {
        "D-41r",
        "T-07",
        "D-08",
    }
