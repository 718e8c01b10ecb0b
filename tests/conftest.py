"""Shared by all tests: asynchronous ones run on asyncio, which the transport is written for; a
model server; the command line.

A run of the tests is the same every time. `HYPOTHESIS_PROFILE=search` looks for new examples, and
for more; `make test` tries but a few (`quick`), and `make service` tries those again whose number
is no matter of theirs.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator, Iterator

import pytest
from hypothesis import Phase, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

from support.cli import Stdin
from support.llm_server import Llm, echo, serving

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.register_profile(
    "mutate",
    deadline=None,
    derandomize=True,
    max_examples=50,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
if (
    os.environ.get("HYPOTHESIS_PROFILE") != "search"
):  # else examples depend on which modules a process has loaded by then
    _NO_CONSTANTS = providers.Constants()
    providers._get_local_constants = lambda: _NO_CONSTANTS  # pyright: ignore


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that look for examples, and notes which point of an issue a test belongs
    to."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.property)
        for mark in item.iter_markers("mend"):
            item.user_properties.extend(("mend", point) for point in mark.args)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Takes all that stands before the first test, which is much and stays, out of the garbage
    collector's sight: a collection takes a second otherwise, and many tests ask for one."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints each mended point with its tests and their outcome; only for `pytest -m mend`."""
    if terminalreporter.config.option.markexpr != "mend":
        return
    rows = {
        (tuple(int(digits) for digits in point.split(".")), outcome, report.nodeid)
        for outcome in ("passed", "failed", "skipped")
        for report in terminalreporter.stats.get(outcome, ())
        for name, point in report.user_properties
        if name == "mend"
    }
    for number, outcome, test in sorted(rows):
        terminalreporter.write_line(f"{'.'.join(map(str, number)):6} {outcome:8} {test}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """A report goes from process to process as UTF-8, which half a surrogate pair in a test's data
    has no form in."""
    outcome = yield
    report = outcome.get_result()  # pyright: ignore
    report.sections = [(name, _sendable(text)) for name, text in report.sections]
    if report.longrepr is not None and not isinstance(report.longrepr, tuple):
        text = str(report.longrepr)
        if _sendable(text) != text:
            report.longrepr = _sendable(text)


def _sendable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Llm]:
    """A model server that says what it is told, and an environment that leads to it. No key is
    set."""
    with serving(echo) as server:
        for name in [name for name in os.environ if name.endswith("_API_KEY")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("DRAGOMAN_MODEL", "openai-compatible:tiny")
        monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        yield server


@pytest.fixture(scope="session", autouse=True)
def data_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Gives commands folders for threads and settings: no test reads or writes those of whoever
    runs it."""
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture
def cli(
    llm: Llm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line in this process, with empty standard input → exit code, standard output,
    standard error."""
    from dragoman.cli import main

    monkeypatch.setattr(sys, "stdin", Stdin(b""))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run
