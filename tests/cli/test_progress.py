"""The one progress bar: on terminals alone, after a second, with rate and time left."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable

import pytest

from dragoman.cli import progress
from dragoman.cli.progress import show_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """Makes standard error a terminal, within the test: pytest has one of its own in each phase."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 0.0)

    def replace() -> Terminal:
        monkeypatch.setattr(sys, "stderr", stream := Terminal())
        return stream

    return replace


def check_threads(before: int) -> None:
    """Asserts that no more threads are there than before; the one of the bar ends by itself."""
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


def work(**options: bool) -> None:
    with show_progress("embedding [b]\x1b[2J", 4000, unit="chunks", **options) as show:
        time.sleep(0.15)
        show(2000)
        time.sleep(0.15)


def test_a_terminal_sees_what_is_done_how_fast_and_how_long_it_takes(
    open_terminal: Callable[[], Terminal],
) -> None:
    terminal = open_terminal()
    before = threading.active_count()
    work()
    text = terminal.getvalue()
    assert "embedding [b]\\u001b[2J" in text
    assert "2,000 of 4,000 chunks" in text and "/s" in text and "left" in text
    # The bar is gone, and so is what drew it.
    check_threads(before)


def test_without_a_total_the_time_is_shown(open_terminal: Callable[[], Terminal]) -> None:
    terminal = open_terminal()
    with show_progress("fetching") as show:
        show(0, "checking it")
        time.sleep(0.15)
    assert "checking it" in terminal.getvalue() and "0:00:0" in terminal.getvalue()
    assert "left" not in terminal.getvalue()


def test_what_is_quick_shows_nothing(
    open_terminal: Callable[[], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal()
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 1.0)
    work()
    assert "embedding" not in terminal.getvalue()


def test_pipes_no_color_and_quiet_commands_get_nothing(
    open_terminal: Callable[[], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal()
    work(quiet=True)
    monkeypatch.setenv("NO_COLOR", "")
    work()
    assert terminal.getvalue() == ""
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    work()
    monkeypatch.setattr(sys, "stderr", None)
    work()
    assert pipe.getvalue() == ""


def test_an_error_takes_the_bar_away(open_terminal: Callable[[], Terminal]) -> None:
    terminal = open_terminal()
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt), show_progress("x", 2, unit="y"):
        raise KeyboardInterrupt
    check_threads(before)
    # The terminal has its cursor again.
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h")
