"""`make fuzz`: a million inputs through all wires.

    make fuzz ARGS="--count 50000 --wire google"     fewer, of one wire
    make fuzz ARGS="--seed 3"                        others
    make fuzz ARGS="--seed 3 --index 41234"          one of them again, with what it raises

Prints what is found by its cause, with an example made small. Exit code 1: something was found.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Sequence

from dragoman.testing.hostile import DOORS, Case, run_case
from support.traffic import FOLDER

from .findings import Finding, cause_of, smaller
from .run import Plan, batches, by_cause, case_of
from .seeds import FOLDERS

LONGEST = 1_500


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "make fuzz", description="Input as nobody means it, through all wires."
    )
    parser.add_argument(
        "--count", type=int, default=1_000_000, help="how many inputs (default: a million)"
    )
    parser.add_argument("--wire", choices=FOLDERS, help="one wire (default: all, in turn)")
    parser.add_argument("--door", choices=DOORS, help="one way in (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="index of the first")
    parser.add_argument("--index", type=int, help="this input alone")
    parser.add_argument("--recordings", type=int, help="so many of each folder (default: all)")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument(
        "--stop", action="store_true", help="stop at the first finding, and make none small"
    )
    given = parser.parse_args(arguments)
    plan = Plan(given.seed, given.wire, given.door, given.recordings, timed=True)
    if not FOLDER.is_dir():
        print(
            f"recorded traffic is absent: {FOLDER} (set DRAGOMAN_TRAFFIC); the wires' own samples alone are the seeds"
        )
    if given.index is not None:
        return again(plan, given.index)
    began, done = time.monotonic(), 0
    found: list[Finding] = []
    for count, findings in batches(plan, given.count, given.start, given.jobs):
        done += count
        found += findings
        rate = done / (time.monotonic() - began)
        causes = len(by_cause(found))
        print(
            f"\r{done} of {given.count}, {rate:.0f} a second, {len(found)} findings of {causes} causes",
            end=" ",
            flush=True,
        )
        if given.stop and found:
            break
    print()
    for cause, findings in by_cause(found).items():
        first = findings[0]
        print(
            f"\n{cause.error} at {cause.place}: {len(findings)} times, first {first.wire}, {first.door}: {first.words}"
        )
        print(f"  again: make fuzz ARGS={options(plan, first)!r}")
        if not given.stop:
            shortest = min(
                (case_of(plan, each.index) for each in findings[:20]),
                key=lambda case: len(case.data),
            )
            print(f"  small: {shown(smaller(shortest, cause))}")
    return 1 if found else 0


def again(plan: Plan, index: int) -> int:
    """One input, with the traceback of what it raises."""
    case = case_of(plan, index)
    print(shown(case))
    try:
        print("accepted" if run_case(case) else "refused")
    except Exception:
        traceback.print_exc()
    return 1 if cause_of(case, timed=True) else 0


def options(plan: Plan, finding: Finding) -> str:
    more = [
        f"--{name} {value}"
        for name in ("wire", "door", "recordings")
        if (value := getattr(plan, name)) is not None
    ]
    return " ".join([f"--seed {plan.seed} --index {finding.index}", *more])


def shown(case: Case) -> str:
    data = case.data
    how = f"{case.wire.name} {case.door}" + (" in pieces" if case.as_bytes else "")
    extra = f" {case.status} {case.headers}" if case.door == "error" else ""
    text = data.decode(errors="backslashreplace")
    return f"{how} (then {case.other.name}){extra}: {text if len(text) <= LONGEST else text[:LONGEST] + ' …'}"


if __name__ == "__main__":
    sys.exit(main())
