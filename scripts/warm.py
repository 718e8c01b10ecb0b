"""Children of a process that has pytest and all libraries loaded, and nothing of dragoman: each
imports it afresh, with a change."""

import ast
import gc
import importlib
import importlib.abc
import importlib.util
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mutants import Mutant

ROOT = Path(__file__).resolve().parents[1]
OURS = ("dragoman", "tests", "support", "conftest", "fuzz", "pages", "__main__")
QUIET = (
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-m",
    "not slow and not service",
    "--timeout",
    "30",
)
TOO_LONG = 255
"""What a child that was killed exits with."""


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


class Change(NamedTuple):
    """A mutant of a module."""

    broken: Broken
    mutant: Mutant

    def __call__(self) -> None:
        """Makes it, in this process, which has not imported the module yet."""
        self.mutant.apply()
        sys.meta_path.insert(0, self.broken)


class Selected:
    """A pytest plugin: of what was collected, these tests alone, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            [each for each in items if each.nodeid in self.order],
            key=lambda e: self.order[e.nodeid],
        )


def judge(groups: Mapping[str, Sequence[str]]) -> int:
    """Runs tests, by their files → 0: all passed; else the number of the file, from 1, in which one
    failed."""
    for number, (file, tests) in enumerate(groups.items(), 1):
        code = pytest.main(["-x", *QUIET, file], plugins=[Selected(tests)])
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return min(number, TOO_LONG - 1)
    return 0


def warm() -> None:
    """Imports in this process what the tests import from elsewhere, so that its children need
    not."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "modules"

        def collect() -> int:
            code = pytest.main([*QUIET, "--collect-only", "tests"])
            file.write_text("\n".join(name for name in sys.modules if not name.startswith(OURS)))
            return int(code)

        _, code = next(iter(children([(None, collect)], 300, 1)))
        if code:
            sys.exit("the tests cannot be collected: run `make test` first")
        for name in file.read_text().splitlines():
            with suppress(ImportError, AttributeError):
                importlib.import_module(name)
    if threading.active_count() > 1:
        sys.exit(
            f"a library starts threads when it is imported, so that no child can be forked: {threading.enumerate()}"
        )
    gc.collect()
    gc.freeze()


def start(work: Callable[[], int]) -> int:
    """Forks a child that does its work in silence → its process id."""
    if child := os.fork():
        return child
    os.setsid()
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    code = TOO_LONG - 1
    try:
        code = int(work())
    finally:
        os._exit(code)


def children(
    works: Iterable[tuple[Any, Callable[[], int]]], seconds: float, jobs: int
) -> Iterator[tuple[Any, int]]:
    """Does each work in a child of its own → its name and exit code, as they are done. So many run
    side by side."""
    waiting = iter(works)
    running: dict[int, tuple[Any, float]] = {}
    while True:
        for name, work in islice(waiting, jobs - len(running)):
            running[start(work)] = name, time.monotonic() + seconds
        if not running:
            return
        time.sleep(0.01)
        for child, (name, deadline) in list(running.items()):
            if late := time.monotonic() > deadline:
                os.killpg(child, signal.SIGKILL)
            done, status = os.waitpid(child, 0 if late else os.WNOHANG)
            if done:
                del running[child]
                with suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)  # what it has started and left
                code = os.waitstatus_to_exitcode(status)
                yield name, TOO_LONG if late or code < 0 else code
