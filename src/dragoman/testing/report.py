"""Runs checks one after the other and says what came of each; and lists what there is to check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from dragoman.errors import AuthenticationError
from dragoman.testing.check import (
    BoundCheck,
    Check,
    CheckFailed,
    Inconclusive,
    Skipped,
    unwrap_error,
)

__all__ = ["Finding", "format_lines", "run_checks", "format_table"]


class Finding(msgspec.Struct, frozen=True):
    """What came of one check, or of all that need one capability."""

    subject: str
    """Name of the wire or the provider."""
    check: str
    """Its name; that of a capability, where nothing of it could be seen."""
    outcome: Literal["passed", "failed", "skipped", "inconclusive"]
    """`inconclusive`: a real model may have erred, not the provider."""
    details: str = ""
    """What is wrong, or why it was skipped."""
    rule: str = ""
    """What the check demands."""
    shows: tuple[str, ...] = ()
    """The declared capabilities that are seen when it passes."""


def run_checks(checks: Iterable[BoundCheck], *, whole: bool = True) -> Iterator[Finding]:
    """Runs checks in their order → their findings, as they come; then, where they are the `whole`
    of what could show it, a failure for each capability that is declared while all that needs it is
    inconclusive. Live it ends with the first check whose key is missing or refused: so would all
    others."""
    remaining = list(checks)
    seen: list[Finding] = []
    while remaining:
        check = remaining.pop(0)
        finding, cause = _run_check(check)
        if remaining and check.options.get("live") and isinstance(cause, AuthenticationError):
            note = f"The rest was not run: {len(remaining)} checks."
            yield msgspec.structs.replace(finding, details=f"{finding.details}\n{note}")
            return
        seen.append(finding)
        yield finding
    if whole:
        yield from _find_unproven_capabilities(seen)


def _run_check(check: BoundCheck) -> tuple[Finding, BaseException | None]:
    """Returns what comes of a check, and what made it fail."""

    def found(
        outcome: Literal["passed", "failed", "skipped", "inconclusive"], details: str = ""
    ) -> Finding:
        return Finding(
            check.subject_name,
            check.name,
            outcome,
            details,
            " ".join(check.check.rule.split()),
            check.shows,
        )

    try:
        check()
    except CheckFailed as wrong:
        return found("failed", str(wrong)), unwrap_error(
            wrong.__cause__
        ) if wrong.__cause__ else None
    except Inconclusive as why:
        return found("inconclusive", str(why)), None
    except Skipped as why:
        return found("skipped", str(why)), None
    return found("passed"), None


def _find_unproven_capabilities(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yields a failure for each capability of which all checks that ran are inconclusive."""
    by_capability: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        for capability in finding.shows if finding.outcome != "skipped" else ():
            by_capability.setdefault((finding.subject, capability), []).append(finding)
    for (subject, capability), those in by_capability.items():
        if all(finding.outcome == "inconclusive" for finding in those):
            why = "".join(f"\n  {finding.check}: {finding.details}" for finding in those)
            details = f"{subject}: {capability} is declared, and nothing that needs it could be seen:{why}"
            yield Finding(
                subject,
                capability,
                "failed",
                details,
                "What a record declares can be seen.",
                (capability,),
            )


def format_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yields findings as lines for a terminal, each as it comes; failures again, whole, at the end,
    and how many there are of each."""
    seen: list[Finding] = []
    for finding in findings:
        seen.append(finding)
        why = f"  ({finding.details})" if finding.outcome in ("skipped", "inconclusive") else ""
        yield f"{finding.outcome:12}  {finding.subject}  {finding.check}{why}"
    for finding in seen:
        if finding.outcome == "failed":
            yield ""
            yield finding.details
    yield ""
    counts = Counter(finding.outcome for finding in seen)
    yield ", ".join(
        f"{counts[outcome]} {outcome}"
        for outcome in ("passed", "failed", "skipped", "inconclusive")
    )


def format_table(checks: Iterable[Check[Any]]) -> str:
    """Returns checks as a table in Markdown: what each demands, what it needs, and whether it also
    runs on a real server."""
    rows = [
        f"| `{check.name}` | {' '.join(check.rule.split())} | {', '.join(check.needs) or '–'} | {'✓' if check.live else '–'} |"
        for check in checks
    ]
    return "\n".join(["| check | demands | needs | live |", "| --- | --- | --- | --- |", *rows])
