"""Runs checks one after the other and says what came of each; and lists what there is to check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from dragoman.errors import AuthenticationError
from dragoman.testing.check import BoundCheck, Check, CheckFailed, Doubtful, Skipped, innermost

__all__ = ["Finding", "lines", "run", "table"]


class Finding(msgspec.Struct, frozen=True):
    """What came of one check, or of all that need one capability."""

    subject: str
    """Name of the wire or the provider."""
    check: str
    """Its name; that of a capability, where nothing of it could be seen."""
    outcome: Literal["passed", "failed", "skipped", "doubtful"]
    """`doubtful`: a real model may have erred, not the provider."""
    told: str = ""
    """What is wrong, or why it was skipped."""
    rule: str = ""
    """What the check demands."""
    shows: tuple[str, ...] = ()
    """The declared capabilities that are seen when it passes."""


def run(checks: Iterable[BoundCheck], *, whole: bool = True) -> Iterator[Finding]:
    """Runs checks in their order → their findings, as they come; then, where they are the `whole`
    of what could show it, a failure for each capability that is declared while all that needs it is
    doubtful. Live it ends with the first check whose key is missing or refused: so would all
    others."""
    remaining = list(checks)
    seen: list[Finding] = []
    while remaining:
        check = remaining.pop(0)
        finding, cause = _finding(check)
        if remaining and check.how.get("live") and isinstance(cause, AuthenticationError):
            note = f"The rest was not run: {len(remaining)} checks."
            yield msgspec.structs.replace(finding, told=f"{finding.told}\n{note}")
            return
        seen.append(finding)
        yield finding
    if whole:
        yield from _unseen(seen)


def _finding(check: BoundCheck) -> tuple[Finding, BaseException | None]:
    """Returns what comes of a check, and what made it fail."""

    def found(
        outcome: Literal["passed", "failed", "skipped", "doubtful"], details: str = ""
    ) -> Finding:
        return Finding(
            check.where,
            check.name,
            outcome,
            details,
            " ".join(check.check.rule.split()),
            check.shows,
        )

    try:
        check()
    except CheckFailed as wrong:
        return found("failed", str(wrong)), innermost(wrong.__cause__) if wrong.__cause__ else None
    except Doubtful as why:
        return found("doubtful", str(why)), None
    except Skipped as why:
        return found("skipped", str(why)), None
    return found("passed"), None


def _unseen(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yields a failure for each capability of which all checks that ran are doubtful."""
    by_capability: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        for capability in finding.shows if finding.outcome != "skipped" else ():
            by_capability.setdefault((finding.subject, capability), []).append(finding)
    for (subject, capability), those in by_capability.items():
        if all(finding.outcome == "doubtful" for finding in those):
            why = "".join(f"\n  {finding.check}: {finding.told}" for finding in those)
            details = f"{subject}: {capability} is declared, and nothing that needs it could be seen:{why}"
            yield Finding(
                subject,
                capability,
                "failed",
                details,
                "What a record declares can be seen.",
                (capability,),
            )


def lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yields findings as lines for a terminal, each as it comes; failures again, whole, at the end,
    and how many there are of each."""
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
    yield ", ".join(
        f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped", "doubtful")
    )


def table(checks: Iterable[Check[Any]]) -> str:
    """Returns checks as a table in Markdown: what each demands, what it needs, and whether it also
    runs on a real server."""
    rows = [
        f"| `{check.name}` | {' '.join(check.rule.split())} | {', '.join(check.needs) or '–'} | {'✓' if check.live else '–'} |"
        for check in checks
    ]
    return "\n".join(["| check | demands | needs | live |", "| --- | --- | --- | --- |", *rows])
