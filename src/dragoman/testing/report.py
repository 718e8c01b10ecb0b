"""Runs checks one after the other and says what came of each; and lists what there is to check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from dragoman.testing.check import BoundCheck, Check, CheckFailed, Doubtful, Skipped

__all__ = ["Finding", "lines", "run", "table"]


class Finding(msgspec.Struct, frozen=True):
    """What came of one check."""

    subject: str
    """Name of the wire or the provider."""
    check: str
    outcome: Literal["passed", "failed", "skipped", "doubtful"]
    told: str = ""
    """What is wrong, or why it was skipped."""
    rule: str = ""
    """What the check demands."""


def run(checks: Iterable[BoundCheck]) -> Iterator[Finding]:
    """Runs checks in their order → their findings, as they come."""
    for check in checks:
        where = (check.where, check.name)
        rule = " ".join(check.check.rule.split())
        try:
            check()
        except CheckFailed as wrong:
            yield Finding(*where, "failed", str(wrong), rule)
        except Doubtful as why:
            yield Finding(*where, "doubtful", str(why), rule)
        except Skipped as why:
            yield Finding(*where, "skipped", str(why), rule)
        else:
            yield Finding(*where, "passed", "", rule)


def lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Findings as lines for a terminal, each as it comes; failures again, whole, at the end, and how many there are of each."""
    seen: list[Finding] = []
    for finding in findings:
        seen.append(finding)
        why = f"  ({finding.told})" if finding.outcome in ("skipped", "doubtful") else ""
        yield f"{finding.outcome:8}  {finding.subject}  {finding.check}{why}"
    for finding in seen:
        if finding.outcome == "failed":
            yield ""
            yield finding.told
    yield ""
    counts = Counter(finding.outcome for finding in seen)
    yield ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped", "doubtful"))


def table(checks: Iterable[Check[Any]]) -> str:
    """Checks as a table in Markdown: what each demands, what it needs, and whether it also runs on a real server."""
    rows = [
        f"| `{check.name}` | {' '.join(check.rule.split())} | {', '.join(check.needs) or '–'} | {'✓' if check.live else '–'} |"
        for check in checks
    ]
    return "\n".join(["| check | demands | needs | live |", "| --- | --- | --- | --- |", *rows])
