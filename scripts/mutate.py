"""Mutation testing: breaks one expression of a module at a time and asks whether some test fails.

    python scripts/mutate.py                              the core, wires last
    python scripts/mutate.py src/dragoman/fold.py         one module, or all of a folder
    python scripts/mutate.py --sample 50 --minutes 20 …   so many of each module, and no longer than that

Each mutant runs in a forked child that imports the broken module instead of the file; the work tree is never touched.
Outcomes are kept in `.mutate/`, so that a run goes on where it was stopped; they count while the module and its tests
are as they were. Exit code 1: there are survivors (listed with file, line and change).
"""

import argparse
import ast
import hashlib
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import hypothesis  # noqa: F401 loaded once, for all children
import pytest
from mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[1]
CORE = (
    "fold.py",
    "repair.py",
    "emit.py",
    "framing.py",
    "digest.py",
    "replay.py",
    "wires/openai_chat",
    "wires/anthropic",
)
MORE_TESTS = {"fold": ("compact", "emit"), "emit": ("fold",), "embedding": ("wire_embeddings",)}
"""Tests beside the module's own that hold it to its word."""


class Broken(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a module from a tree instead of its file."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        self.name, self.path, self.tree = name.removesuffix(".__init__"), path, tree

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 the protocol's
        folder = [str(self.path.parent)] if self.path.stem == "__init__" else None
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=folder
        )

    def exec_module(self, module: Any) -> None:
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


def start(broken: Broken, mutant: Mutant | None, tests: Sequence[str]) -> int:
    """Forks a child that runs the tests → its process id."""
    if child := os.fork():
        return child
    os.setsid()
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    if mutant is not None:
        mutant.apply()
    sys.meta_path.insert(0, broken)
    os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests])))


def outcomes(
    broken: Broken, todo: Iterable[Mutant | None], tests: Sequence[str], seconds: float, jobs: int
) -> Iterator[tuple[Mutant | None, bool]]:
    """Each mutant and whether it survives: all tests pass, and in time. As many run side by side as there are jobs."""
    waiting = iter(todo)
    running: dict[int, tuple[Mutant | None, float]] = {}
    while True:
        for mutant in islice(waiting, jobs - len(running)):
            running[start(broken, mutant, tests)] = mutant, time.monotonic() + seconds
        if not running:
            return
        time.sleep(0.02)
        for child, (mutant, deadline) in list(running.items()):
            if time.monotonic() > deadline:
                os.killpg(child, signal.SIGKILL)
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                del running[child]
                yield mutant, os.waitstatus_to_exitcode(status) == 0


def tests_of(path: Path) -> list[str]:
    """A module's tests, recorded traffic last."""
    parts = path.relative_to(ROOT / "src/dragoman").with_suffix("").parts
    names = [f"wire_{parts[1]}*"] if parts[0] == "wires" else [parts[-1], *MORE_TESTS.get(parts[-1], ())]
    found = [str(test) for name in names for test in sorted((ROOT / "tests").glob(f"test_{name}.py"))]
    return sorted(found, key=lambda test: "traffic" in test)


def run(path: Path, sample: int | None, until: float, jobs: int) -> int:
    """Runs a module's mutants → how many survive."""
    where, tests, broken = path.relative_to(ROOT), tests_of(path), Broken(path, ast.parse(path.read_bytes()))
    found = dict(enumerate(mutants(broken.tree)))
    chosen = (
        found
        if sample is None
        else {n: found[n] for n in random.Random(0).sample(list(found), min(sample, len(found)))}
    )
    began = time.monotonic()
    if not tests or not all(passed for _, passed in outcomes(broken, [None], tests, 600, 1)):
        print(f"{where}: its tests must exist and pass first: {tests}")
        return 1
    limit = 20 + 5 * (time.monotonic() - began)
    read = [Path(file).read_bytes() for file in (__file__, path, *tests)]
    notes = ROOT / ".mutate" / f"{str(where).replace('/', '.')}-{hashlib.sha256(b''.join(read)).hexdigest()[:8]}.json"
    notes.parent.mkdir(exist_ok=True)
    known: dict[int, bool] = dict(json.loads(notes.read_text())) if notes.exists() else {}
    numbers = {id(mutant): number for number, mutant in found.items()}
    todo = takewhile(lambda _: time.monotonic() < until, [chosen[n] for n in chosen if n not in known])
    for mutant, survived in outcomes(broken, todo, tests, limit, jobs):
        known[numbers[id(mutant)]] = survived
        notes.write_text(json.dumps(list(known.items())))
        print(f"\r{where}: {len(known)} of {len(chosen)}, {sum(known.values())} survive", end=" ", flush=True)
    survivors = [number for number in sorted(chosen) if known.get(number)]
    print(f"\r{where}: {sum(n in known for n in chosen)} of {len(chosen)} mutants run, {len(survivors)} survive")
    for number in survivors:
        print(f"  {where}:{found[number].old.lineno}: {found[number]}")
    return len(survivors)


def main() -> None:
    parser = argparse.ArgumentParser(description="Breaks a module line by line; some test must fail each time.")
    parser.add_argument("modules", nargs="*", type=Path, help="files or folders (default: the core)")
    parser.add_argument("--sample", type=int, help="at most so many mutants of each module")
    parser.add_argument("--minutes", type=float, default=60, help="start none after so many minutes (default 60)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    given = [path.resolve() for path in options.modules] or [ROOT / "src/dragoman" / name for name in CORE]
    files = [file for path in given for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    os.chdir(ROOT)
    os.environ.update(HYPOTHESIS_PROFILE="mutate", PYTHONDONTWRITEBYTECODE="1")
    until = time.monotonic() + 60 * options.minutes
    sys.exit(min(1, sum([run(file, options.sample, until, options.jobs) for file in files])))


if __name__ == "__main__":
    main()
