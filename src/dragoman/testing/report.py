"""Runs checks and reports their outcomes, and lists checks as a table."""

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
    """The outcome of one check, or of all checks of one capability."""

    subject: str
    """The name of the wire, provider or store."""
    check: str
    """The name of the check, or of the capability that no check could prove."""
    outcome: Literal["passed", "failed", "skipped", "inconclusive"]
    """`inconclusive`: a real model may have erred, not the provider."""
    details: str = ""
    """What is wrong, or why the check was skipped."""
    rule: str = ""
    """The behaviour that the check requires."""
    shows: tuple[str, ...] = ()
    """The declared capabilities that a passing check proves."""


def run_checks(checks: Iterable[BoundCheck], *, whole: bool = True) -> Iterator[Finding]:
    """Runs checks in order and yields the findings to report.

    Afterwards, unless `whole` is False because only some checks are run, it yields a failure for
    each declared capability whose checks were all inconclusive. With `live`, it stops at the first
    check whose key is missing or refused, since all others would fail too.
    """
    remaining = list(checks)
    seen: list[Finding] = []
    while remaining:
        check = remaining.pop(0)
        finding, cause = _run_check(check)
        # All further checks would be refused too.
        if remaining and check.options.get("live") and isinstance(cause, AuthenticationError):
            note = f"The rest was not run: {len(remaining)} checks."
            yield msgspec.structs.replace(finding, details=f"{finding.details}\n{note}")
            return
        seen.append(finding)
        yield finding
    if whole:
        yield from _find_unproven_capabilities(seen)


_Outcome = Literal["passed", "failed", "skipped", "inconclusive"]


def _run_check(check: BoundCheck) -> tuple[Finding, BaseException | None]:
    """Returns the finding of a check, and the exception that made it fail."""

    def make_finding(outcome: _Outcome, details: str = "") -> Finding:
        """Returns the finding of this check for the report."""
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
        cause = wrong.__cause__
        return make_finding("failed", str(wrong)), cause and unwrap_error(cause)
    except Inconclusive as why:
        return make_finding("inconclusive", str(why)), None
    except Skipped as why:
        return make_finding("skipped", str(why)), None
    return make_finding("passed"), None


def _find_unproven_capabilities(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yields a failure for each capability whose checks, capability_findings that ran, were all inconclusive."""
    by_capability: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.outcome == "skipped":
            continue
        for capability in finding.shows:
            by_capability.setdefault((finding.subject, capability), []).append(finding)
    for (subject, capability), capability_findings in by_capability.items():
        if all(finding.outcome == "inconclusive" for finding in capability_findings):
            why = "".join(
                f"\n  {finding.check}: {finding.details}" for finding in capability_findings
            )
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
    """Yields findings as lines for a terminal as they come, then the failures in full and a count
    of each outcome."""
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
    """Reports checks as a Markdown table: rule, needs, and whether they also run on a real
    server."""
    rows = [
        f"| `{check.name}` | {' '.join(check.rule.split())} | {', '.join(check.needs) or '–'} | {'✓' if check.live else '–'} |"
        for check in checks
    ]
    return "\n".join(["| check | demands | needs | live |", "| --- | --- | --- | --- |", *rows])
