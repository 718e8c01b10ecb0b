"""Which tests reach a line: each test file is run once under coverage, and what it reached kept in
`.mutate/reach/`.

What is kept counts while the sources, the test file and what the tests share are as they were.
"""

import ast
import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest
from warm import QUIET, ROOT, children

KEPT = ROOT / ".mutate" / "reach"
SOURCES = ROOT / "src" / "dragoman"


class Reached(NamedTuple):
    """What the tests of one file reached."""

    file: str
    seconds: dict[str, float]
    """Test → how long it took. Those that failed are not among them."""
    lines: dict[str, dict[str, list[str]]]
    """Module → line → tests."""


class Recorder:
    """A pytest plugin: tells coverage which test runs, and keeps how long each took."""

    def __init__(self, cover: coverage.Coverage) -> None:
        self.cover = cover
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.cover.switch_context(item.nodeid)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.monotonic() - began, 3)
            self.cover.switch_context("")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)


def digest(*files: Path) -> str:
    """What files hold."""
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]


@cache
def shared() -> str:
    """What all tests depend on: the sources, and what the tests share."""
    tests = [file for file in (ROOT / "tests").rglob("*.py") if not file.name.startswith("test_")]
    return digest(*sorted(SOURCES.rglob("*.py")), *sorted(tests))


def test_files() -> list[Path]:
    """All files of tests."""
    return sorted((ROOT / "tests").rglob("test_*.py"))


def _kept(file: Path) -> Path:
    name = "-".join(file.relative_to(ROOT / "tests").with_suffix("").parts)
    return KEPT / f"{name}-{digest(file)}-{shared()}.json"


def reached(files: Sequence[Path], jobs: int, tell: Callable[[str], None]) -> list[Reached]:
    """What each file's tests reach; runs those of which it is not known."""
    KEPT.mkdir(parents=True, exist_ok=True)
    unknown = [file for file in files if not _kept(file).exists()]
    works = ((file, lambda file=file: _collect(file)) for file in unknown)
    for number, (file, code) in enumerate(children(works, 1_200, jobs), 1):
        tell(
            f"which tests reach which lines: {number} of {len(unknown)} files"
            + (f" ({file.name}: {code})" if code else "")
        )
    wanted = {_kept(file): file for file in test_files()}
    for old in set(KEPT.glob("*.json")) - set(wanted):
        old.unlink()
    return [
        Reached(str(file.relative_to(ROOT)), **json.loads(kept.read_text()))
        for kept, file in wanted.items()
        if file in files and kept.exists()
    ]


def _collect(file: Path) -> int:
    cover = coverage.Coverage(
        data_file=None, source=[str(SOURCES)], config_file=False, messages=False
    )
    recorder = Recorder(cover)
    cover.start()
    code = pytest.main([*QUIET, "--timeout", "240", str(file)], plugins=[recorder])
    cover.stop()
    data = cover.get_data()
    lines: dict[str, dict[int, list[str]]] = {}
    for source in data.measured_files():
        found = {
            line: [test for test in tests if test and test not in recorder.failed]
            for line, tests in data.contexts_by_lineno(source).items()
        }
        lines[str(Path(source).relative_to(ROOT))] = {
            line: tests for line, tests in found.items() if tests
        }
    seconds = {
        test: taken for test, taken in recorder.seconds.items() if test not in recorder.failed
    }
    _kept(file).write_text(json.dumps({"seconds": seconds, "lines": lines}))
    return 0 if code in (0, 1, 5) else int(code)


class Reach:
    """Answers which tests reach a piece of a module."""

    def __init__(self, found: Sequence[Reached]) -> None:
        self.found = found
        self.known = {test: taken for one in found for test, taken in one.seconds.items()}

    def tests(self, module: str, lines: range | None, own: Collection[str]) -> dict[str, list[str]]:
        """File → tests that reach one of the lines (`None`: what runs at the import: any of the
        module's, and all tests of its `own` files), quickest first; the module's `own` files
        first."""
        groups: dict[str, list[str]] = {}
        for one in self.found:
            reached = one.lines.get(module, {})
            tests = {
                test
                for line, each in reached.items()
                if lines is None or int(line) in lines
                for test in each
            }
            if lines is None and one.file in own:
                tests.update(one.seconds)
            if tests:
                groups[one.file] = sorted(tests, key=lambda test: self.known.get(test, 0.0))
        if (
            not groups and lines is None
        ):  # a module of data alone is read when it is imported, by no test
            groups = {
                one.file: sorted(one.seconds, key=lambda test: self.known.get(test, 0.0))
                for one in self.found
            }
        return dict(
            sorted(
                groups.items(),
                key=lambda group: (group[0] not in own, self.seconds({group[0]: group[1]})),
            )
        )

    def seconds(self, groups: dict[str, list[str]]) -> float:
        """How long tests take, by files."""
        return sum(self.known.get(test, 0.0) for tests in groups.values() for test in tests)


def statements(tree: ast.Module) -> dict[int, range | None]:
    """`id` of each node → the lines of the statement that it is in; `None`: it runs when the module
    is imported."""
    found: dict[int, range | None] = {}

    def visit(node: ast.AST, lines: range | None, within: bool) -> None:
        if isinstance(node, ast.stmt) and within:
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            lines = range(node.lineno, max(last, node.lineno) + 1)
        found[id(node)] = lines
        for field, value in ast.iter_fields(node):
            inside = within or (
                field == "body"
                and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            )
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    at = (
                        range(child.lineno, (child.end_lineno or child.lineno) + 1)
                        if inside and not within and hasattr(child, "lineno")
                        else lines
                    )
                    visit(child, at, inside)

    visit(tree, None, within=False)
    return found
