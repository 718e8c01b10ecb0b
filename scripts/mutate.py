"""Mutation testing: breaks one expression at a time and asks whether some test fails.

    python scripts/mutate.py                              300 mutants of all modules
    python scripts/mutate.py --total 1500 --seed 1        more, others
    python scripts/mutate.py src/dragoman/fold.py         all of one module, or of a folder
    python scripts/mutate.py --again                      those alone that survived last time
    python scripts/mutate.py src/dragoman/fold.py --by tests/test_fold.py    a quick look, by these tests alone

Each mutant runs in a forked child that imports the broken module instead of the file; the work tree
is never touched. It is judged by all quick tests that reach its line, the module's own first
(`reach.py` finds out which, and keeps it). Outcomes are kept in `.mutate/`: that a test file kills
a mutant counts while that file and the module are as they were, that none does while all are.
Survivors that are no fault stand in `equivalent.toml`. Exit code 1: there are others (listed with
file, line and change).
"""

import argparse
import ast
import hashlib
import json
import os
import random
import resource
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from mutants import Mutant, mutants
from reach import Reach, digest, reached, shared, statements, test_files
from warm import ROOT, TOO_LONG, Broken, Change, children, judge, warm

SOURCES = ROOT / "src" / "dragoman"
OUTCOMES = ROOT / ".mutate" / "outcomes.json"
LONGEST = 1_200
"""Seconds until a child is given up that does nothing; one that computes has a limit of its own."""
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


class Module:
    """A module and its mutants."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.text = path.read_text("utf-8").splitlines()
        self.broken = Broken(path, ast.parse(path.read_bytes()))
        self.mutants = list(mutants(self.broken.tree))
        self.lines = statements(self.broken.tree)
        self.own = own_tests(path)

    def line(self, mutant: Mutant) -> str:
        """The text of the line where a mutant begins."""
        return self.text[getattr(mutant.old, "lineno", 1) - 1].strip()


class Trial(NamedTuple):
    """A mutant that is judged."""

    module: Module
    number: int

    @property
    def mutant(self) -> Mutant:
        return self.module.mutants[self.number]

    @property
    def key(self) -> str:
        """What distinguishes it, while its module is as it is."""
        what = (self.module.name, digest(self.module.path), self.number, str(self.mutant))
        return hashlib.sha256(repr(what).encode()).hexdigest()[:20]

    def __str__(self) -> str:
        return f"{self.module.name}:{getattr(self.mutant.old, 'lineno', 0)}: {self.mutant}"


class Outcomes:
    """What is known of mutants, and for how long it counts: key → the file that kills it (empty:
    none) and its digest."""

    def __init__(self, *, kept: bool = True) -> None:
        """`kept`: read and write the file."""
        self.file = OUTCOMES if kept else None
        self.kept: dict[str, list[str]] = (
            json.loads(OUTCOMES.read_text()) if kept and OUTCOMES.exists() else {}
        )
        self.all = digest(*test_files()) + shared()

    def survived(self, trial: Trial) -> bool | None:
        """`None`: it is not known, or no more."""
        file, stamp = self.kept.get(trial.key, ("", ""))
        if file:
            return False if (ROOT / file).exists() and stamp == digest(ROOT / file) else None
        return True if stamp == self.all else None

    def keep(self, trial: Trial, file: str) -> None:
        """Keeps which file kills it; empty: none."""
        self.kept[trial.key] = [file, digest(ROOT / file) if file else self.all]
        if self.file is not None:
            self.file.write_text(json.dumps(self.kept))


def own_tests(path: Path) -> set[str]:
    """The test files that stand where the module does: those of its name
    (`tests/codec/test_ids.py`), of a wire's module all."""
    *folders, name = path.relative_to(SOURCES).with_suffix("").parts
    here = [file for file in test_files() if file.parent == ROOT.joinpath("tests", *folders)]
    own = [
        file
        for file in here
        if folders[:1] == ["wires"] or f"{file.stem}_".startswith(f"test_{name}_")
    ]
    return {str(file.relative_to(ROOT)) for file in own}


def chosen(modules: Sequence[Module], total: int | None, seed: int) -> list[Trial]:
    """So many mutants, from each module as many as its share of all of them, and one at least."""
    every = sum(len(module.mutants) for module in modules)
    found: list[Trial] = []
    for module in modules:
        share = (
            len(module.mutants)
            if total is None
            else max(1, round(total * len(module.mutants) / max(1, every)))
        )
        numbers = random.Random(f"{seed} {module.name}").sample(
            range(len(module.mutants)), min(share, len(module.mutants))
        )
        found += [Trial(module, number) for number in numbers]
    random.Random(seed).shuffle(found)
    return found


def run(
    trials: Sequence[Trial], reach: Reach, outcomes: Outcomes, until: float, jobs: int, most: float
) -> int:
    """Judges mutants → how many were."""
    todo = [trial for trial in trials if outcomes.survived(trial) is None]
    groups: dict[Trial, dict[str, list[str]]] = {}

    def works() -> Iterator[tuple[Trial, Callable[[], int]]]:
        for trial in takewhile(lambda _: time.monotonic() < until, todo):
            lines = trial.module.lines[id(trial.mutant.old)]
            groups[trial] = within(
                reach.tests(trial.module.name, lines, trial.module.own), reach, most
            )
            yield trial, lambda trial=trial: judged(trial, groups[trial], reach)

    began = time.monotonic()
    for number, (trial, code) in enumerate(children(works(), LONGEST, jobs), 1):
        files = list(groups.pop(trial))
        outcomes.keep(
            trial,
            ""
            if not code
            else files[code - 1]
            if code <= len(files)
            else (files or [trial.module.name])[0],
        )
        left = (time.monotonic() - began) / number * (len(todo) - number)
        late = " (too long)" if code == TOO_LONG else ""
        print(f"\r{number} of {len(todo)}, {left / 60:.0f} min left{late} ", end="", flush=True)
    if todo:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"\r{len(todo)} mutants judged in {time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU"
        )
    return len(todo)


def judged(trial: Trial, groups: dict[str, list[str]], reach: Reach) -> int:
    """In a child: makes the change and runs the tests, as long as they may take."""
    Change(trial.module.broken, trial.mutant)()
    seconds = round(15 + 3 * reach.seconds(groups))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    return judge(groups)


def within(groups: dict[str, list[str]], reach: Reach, most: float) -> dict[str, list[str]]:
    """The quickest of the tests that do not take longer together than so many seconds."""
    kept: dict[str, list[str]] = {}
    left = most
    for file, tests in groups.items():
        for test in tests:
            left -= reach.known.get(test, 0.0)
            if left >= 0:
                kept.setdefault(file, []).append(test)
    return kept


def equivalents() -> list[dict[str, str]]:
    """The survivors that are no fault: module, line, mutation, reason."""
    return tomllib.loads(EQUIVALENT.read_text("utf-8")).get("equivalent", [])


def report(trials: Sequence[Trial], outcomes: Outcomes, modules: Sequence[Module]) -> int:
    """Prints survivors and a table by module → how many survivors are no equivalents."""
    excused = {(each["module"], each["line"], each["mutation"]) for each in equivalents()}
    counts: dict[str, Counter[str]] = {}
    survivors: list[Trial] = []
    for trial in trials:
        survived = outcomes.survived(trial)
        equal = (trial.module.name, trial.module.line(trial.mutant), str(trial.mutant)) in excused
        what = (
            "not run"
            if survived is None
            else "killed"
            if not survived
            else "equivalent"
            if equal
            else "survived"
        )
        counts.setdefault(trial.module.name, Counter())[what] += 1
        survivors += [trial] if what == "survived" else []
    for trial in sorted(
        survivors, key=lambda trial: (trial.module.name, getattr(trial.mutant.old, "lineno", 0))
    ):
        print(f"  {trial}")
    columns = ("killed", "survived", "equivalent", "not run")
    print(f"\n{'module':<50} {'mutants':>8}" + "".join(f" {column:>10}" for column in columns))
    for name, count in [*sorted(counts.items()), ("all", sum(counts.values(), Counter[str]()))]:
        print(
            f"{name:<50} {count.total():>8}"
            + "".join(f" {count[column] or '–':>10}" for column in columns)
        )
    known = {
        (module.name, module.line(mutant), str(mutant))
        for module in modules
        for mutant in module.mutants
    }
    for stale in sorted(
        each
        for each in excused
        if each not in known and each[0] in {module.name for module in modules}
    ):
        print(f"no such mutant any more, take it out of {EQUIVALENT.name}: {stale}")
    return len(survivors)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Breaks modules line by line; some test must fail each time."
    )
    parser.add_argument(
        "modules", nargs="*", type=Path, help="files or folders (default: all of src)"
    )
    parser.add_argument(
        "--total", type=int, help="so many mutants in all (default: 300 of all of src, else all)"
    )
    parser.add_argument("--seed", type=int, default=0, help="which (default 0)")
    parser.add_argument(
        "--again", action="store_true", help="only those that survived, as far as is known"
    )
    parser.add_argument(
        "--by",
        nargs="+",
        type=Path,
        help="by these test files alone (default: all); nothing of it is kept",
    )
    parser.add_argument(
        "--minutes", type=float, default=600, help="start none after so many minutes"
    )
    parser.add_argument(
        "--tests",
        type=float,
        default=120,
        help="seconds of tests, at most, for one mutant (default 120)",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    paths = [path.resolve() for path in given.modules] or [SOURCES]
    files = [
        file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
    ]
    os.chdir(ROOT)
    os.environ["HYPOTHESIS_PROFILE"] = "mutate"
    modules = [module for module in map(Module, files) if module.mutants]
    trials = chosen(modules, given.total or (None if given.modules else 300), given.seed)
    began = time.monotonic()
    warm()
    tests = [path.resolve() for path in given.by] if given.by else test_files()
    found = Reach(
        reached(tests, given.jobs, lambda words: print(f"\r{words}", end=" ", flush=True))
    )
    outcomes = Outcomes(kept=not given.by)
    if given.again:
        trials = [
            trial
            for trial in trials
            if outcomes.kept.get(trial.key, [""])[0] == "" and trial.key in outcomes.kept
        ]
    print(
        f"\rready after {time.monotonic() - began:.0f} s: {len(trials)} mutants of {len(modules)} modules, {len(found.known)} tests"
    )
    run(trials, found, outcomes, time.monotonic() + 60 * given.minutes, given.jobs, given.tests)
    sys.exit(min(1, report(trials, outcomes, modules)))


if __name__ == "__main__":
    main()
