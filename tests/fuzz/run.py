"""Many inputs, each told by a seed and its index, so that any of them can be had again."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from functools import partial
from multiprocessing import get_context
from random import Random
from typing import NamedTuple

from dragoman import wires
from dragoman.testing.hostile import Case, draw_case

from .findings import Cause, Finding, cause_of
from .seeds import FOLDERS, seeds

BATCH = 2_000


class Plan(NamedTuple):
    """Which inputs."""

    seed: int = 0
    wire: str | None = None
    """`None`: one after the other."""
    door: str | None = None
    recordings: int | None = None
    timed: bool = False


def case_of(plan: Plan, index: int) -> Case:
    """The input of an index."""
    chance = Random(plan.seed * 2**40 + index)
    names = list(FOLDERS)
    name = plan.wire or names[index % len(names)]
    found = seeds(name, plan.recordings)
    found = {plan.door: found[plan.door]} if plan.door in found else found
    return draw_case(chance, wires.get(name), wires.get(chance.choice(names)), found)


def batch(plan: Plan, indices: Iterable[int]) -> tuple[int, list[Finding]]:
    """Puts inputs through → how many, and what is wrong with some."""
    count, found = 0, list[Finding]()
    for index in indices:
        count += 1
        case = case_of(plan, index)
        if wrong := cause_of(case, timed=plan.timed):
            found.append(Finding(index, case.wire.name, case.door, *wrong))
    return count, found


def batches(
    plan: Plan, count: int, start: int = 0, jobs: int = 0
) -> Iterator[tuple[int, list[Finding]]]:
    """The same over all processors: what came of each batch, as they are done."""
    for name in [plan.wire] if plan.wire else FOLDERS:
        seeds(name, plan.recordings)  # read once, for all processes
    gc.freeze()  # the seeds are many and stay
    ranges = [
        range(at, min(at + BATCH, start + count)) for at in range(start, start + count, BATCH)
    ]
    with ProcessPoolExecutor(jobs or os.cpu_count(), get_context("fork")) as pool:
        yield from pool.map(partial(batch, plan), ranges)


def altered(plan: Plan, count: int) -> list[str]:
    """Puts inputs through → the doors of the wires at which the seeds themselves were changed,
    which nothing may."""
    names = [plan.wire] if plan.wire else list(FOLDERS)
    before = {name: deepcopy(seeds(name, plan.recordings)) for name in names}
    batch(plan, range(count))
    return [
        f"{name}, {door}"
        for name in names
        for door, found in seeds(name, plan.recordings).items()
        if found != before[name][door]
    ]


def by_cause(findings: Iterable[Finding]) -> dict[Cause, list[Finding]]:
    """Findings of one fault together, the most frequent first."""
    found: dict[Cause, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.cause, []).append(finding)
    counts = Counter({cause: len(each) for cause, each in found.items()})
    return {cause: found[cause] for cause, _ in counts.most_common()}
