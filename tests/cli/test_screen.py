"""What is seen of tools at work."""

from __future__ import annotations

import io

import pytest

from dragoman.cli.screen import Screen, TraceStream
from dragoman.result import ChatResult


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def progress(done: float, total: float | None, message: str | None) -> ChatResult[str]:
    return ChatResult(
        "",
        custom={
            "tool_progress": {"call_id": "c", "done": done, "total": total, "message": message}
        },
    )


@pytest.mark.parametrize(
    ("chunk", "line"),
    [
        (progress(1, 4, "reading \x1b[31mb"), "reading \\u001b[31mb (1/4) …"),
        (progress(0.5, None, None), "working (0.5) …"),
    ],
)
def test_progress_of_a_tool_stands_in_a_line_of_its_own_until_something_follows(
    chunk: ChatResult[str], line: str
) -> None:
    screen_of = Terminal()
    screen = Screen(colour=False, out=screen_of, err=screen_of)
    for each in (ChatResult("Let me see."), chunk, chunk, ChatResult("Done.")):
        screen.show(each)
    screen.finish()
    shown = f"\x1b[2m{line}\x1b[0m\r\x1b[2K"
    assert screen_of.getvalue() == f"Let me see.\n{shown}{shown}Done.\n"


def test_a_pipe_gets_no_progress() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(out=out, err=err)
    screen.show(progress(1, 2, "reading"))
    screen.show(ChatResult("Done."))
    assert (out.getvalue(), err.getvalue()) == ("Done.", "")


def test_json_that_is_being_written_shows_its_end_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "11")
    out, err = io.StringIO(), Terminal()
    screen = Screen(out=out, err=err)
    for chunk in (
        ChatResult('{"title": "'),
        ChatResult("", retracted='{"title": "'),
        ChatResult('{"a":\n "\x1b[31m'),
        ChatResult("é漢字漢字漢字"),
    ):
        screen.follow(chunk)
    screen.show(ChatResult('{"a": 1}'))
    screen.finish()
    lines = err.getvalue().split("\r\x1b[2K")
    assert lines[0] == '\x1b[2m"title": "\x1b[0m' and lines[-1] == ""
    assert "\x1b[31m" not in err.getvalue() and "\n" not in err.getvalue()
    assert lines[-2] == "\x1b[2m字漢字漢字\x1b[0m"
    assert out.getvalue() == '{"a": 1}\n'
    piped = io.StringIO()
    Screen(out=piped, err=piped).follow(ChatResult('{"a'))
    assert piped.getvalue() == ""


def test_a_trace_breaks_the_line_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    screen = Screen(colour=False, out=terminal, err=terminal)
    stream = TraceStream(screen.break_line)
    assert stream.isatty()
    screen.show(ChatResult("Let me see."))
    stream.write("├ look\n")
    stream.write("├ model call 2\n")
    screen.show(ChatResult("Done."))
    screen.finish()
    assert terminal.getvalue() == "Let me see.\n├ look\n├ model call 2\nDone.\n"


def test_a_trace_leaves_a_piped_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    out, terminal = io.StringIO(), Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    screen = Screen(out=out, err=terminal)
    screen.show(ChatResult("Half "))
    TraceStream(screen.break_line).write("├ look\n")
    screen.show(ChatResult("done."))
    assert out.getvalue() == "Half done."
    assert terminal.getvalue() == "├ look\n"
