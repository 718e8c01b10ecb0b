"""`Screen` shows an answer while it arrives; further functions show notes, usage and pending
questions after it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO

from dragoman.cli.terminal import STEERING, echo, escape, to_one_line
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import JsonMap
from dragoman.loss import Loss
from dragoman.message import FinishReason, Usage
from dragoman.pending_text import summarize
from dragoman.result import ChatResult, find_total_cost
from dragoman.tools.context import PROGRESS

if TYPE_CHECKING:
    from dragoman.cli.markdown_stream import MarkdownStream

__all__ = ["Screen", "TraceStream", "find_cost", "show_notes", "show_pending", "format_usage"]

_CONTROL: dict[int, str | None] = {
    **{code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"},
    **STEERING,
}
_DIM, _PLAIN, _ERASED = "\x1b[2m", "\x1b[0m", "\r\x1b[2K"


class Screen:
    """Shows chunks: text as it is, thinking dimmed or, without colour, between [Thinking] and
    [/Thinking].

    Standard output gets only the answer if it is not a terminal. A terminal gets no control
    characters: a model's text must not control it.
    """

    def __init__(
        self,
        *,
        colour: bool = True,
        thinking: bool | None = None,
        markdown: bool = False,
        out: TextIO | None = None,
        err: TextIO | None = None,
    ) -> None:
        """Creates the screen. `thinking`: whether to show it; by default if standard output is a
        terminal. `markdown`: whether a terminal shows the answer rendered."""
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._is_terminal = self._out.isatty()
        # Piped output gets the answer alone, so thinking goes to standard error there.
        self._thinks_on = self._out if self._is_terminal else self._err
        self._shows_thinking = self._is_terminal
        if thinking is not None:
            self._shows_thinking = thinking
        # https://no-color.org: the variable counts with any value.
        colourless = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        self._marks = ("[Thinking]\n", "\n[/Thinking]\n\n")
        if colour and self._is_terminal and not colourless:
            self._marks = (_DIM, f"{_PLAIN}\n\n")
        self._markdown: MarkdownStream | None = None
        if markdown and self._is_terminal:
            from dragoman.cli.markdown_stream import MarkdownStream

            self._markdown = MarkdownStream(self._out, colour=self._marks[0] == _DIM)
        self._is_thinking = False
        self._waits = False
        self._last = "\n"
        self._text = ""
        self._json_end = ""

    def show_waiting(self, line: str) -> None:
        """Shows on a terminal what the command waits for, until there is something else to show."""
        self._waits = self._err.isatty()
        if self._waits:
            self._err.write(f"{_DIM}{escape(line)}{_PLAIN}")
            self._err.flush()

    def warm_up(self, model: str) -> None:
        """Says that the first answer takes a while, if the model is loaded into this process
        first."""
        from dragoman import providers
        from dragoman.model.resolve_model import parse_model_string

        if callable(providers.get(parse_model_string(model).provider).base_url):
            self.show_waiting(f"loading {model} …")

    def show(self, chunk: ChatResult[str]) -> None:
        """Shows one chunk of an answer on the terminal."""
        if chunk.thinking and self._shows_thinking:
            self._switch_mode(thinking=True)
            self._write_text(chunk.thinking, self._thinks_on)
        if progress := chunk.custom.get(PROGRESS):
            self._show_progress(progress)
        # Before it is shown: after a retraction it is the text that still counts.
        self._text = chunk.joined(self._text)
        if chunk.retracted:
            self._mark_void()
        # Empty output would end the display of thinking.
        elif chunk.output:
            self._switch_mode(thinking=False)
            self._write_answer(chunk.output)

    def follow(self, chunk: ChatResult[str]) -> None:
        """Shows the end of JSON that is being written on a terminal, in a line that the next output
        replaces."""
        if chunk.retracted:
            self._json_end = ""
        if not chunk.output or not self._err.isatty():
            return
        columns = get_terminal_size().columns - 1
        line = to_one_line(self._json_end + chunk.output)
        # A character may be two columns wide, and a line that wraps cannot be erased.
        if not line.isascii():
            columns //= 2
        self._json_end = line[-columns:]
        self._switch_mode(thinking=False)
        self.show_waiting(self._json_end)

    def break_line(self) -> None:
        """Ends the line of the answer on a terminal, so that something else can be printed. More of
        the answer follows on a new line."""
        if self._is_terminal:
            self._switch_mode(thinking=False)
            self._end_line()

    def finish(self) -> None:
        """Ends the answer, also an incomplete one, so that the next output starts on a new line."""
        self._switch_mode(thinking=False)
        self._end_line()
        self._text = ""

    def _show_progress(self, value: JsonMap) -> None:
        """Shows a tool's progress on a terminal, in a line that the next output replaces."""
        if self._is_terminal:
            self._switch_mode(thinking=False)
            self._end_line()
            done, total = value["done"], value["total"]
            far = f"{done:g}"
            if total is not None:
                far += f"/{total:g}"
            self.show_waiting(to_one_line(f"{value['message'] or 'working'} ({far}) …"))

    def _mark_void(self) -> None:
        """Says that the text so far was withdrawn. A terminal shows the valid text again; piped
        output cannot be taken back."""
        self._switch_mode(thinking=False)
        if not self._is_terminal:
            self._write_raw(
                "note: a part of the output is void, the answer was started again\n", self._err
            )
            return
        self._end_line()
        self._write_raw("[The answer above is void. It starts again:]\n", self._out)
        if self._text:
            self._write_answer(self._text)

    def _write_answer(self, text: str) -> None:
        """Writes a piece of the answer, rendered if wanted."""
        if self._markdown is None:
            self._write_text(text, self._out)
        else:
            self._markdown.write(text)

    def _end_line(self) -> None:
        """Ends what is drawn of the answer, and its last line."""
        if self._markdown is not None:
            self._markdown.close()
        if self._last != "\n":
            self._write_raw("\n", self._out)

    def _switch_mode(self, *, thinking: bool) -> None:
        """Starts or ends the display of thinking, and removes a line of `show_waiting`."""
        if self._waits:
            self._waits = False
            self._err.write(_ERASED)
            self._err.flush()
        if thinking is not self._is_thinking:
            if self._markdown is not None:
                self._markdown.close()
            self._is_thinking = thinking
            self._write_raw(self._marks[0 if thinking else 1], self._thinks_on)

    def _write_text(self, text: str, to: TextIO) -> None:
        """Writes text, without control characters on a terminal."""
        if to.isatty():
            text = text.translate(_CONTROL)
        if text:
            self._write_raw(text, to)

    def _write_raw(self, text: str, to: TextIO) -> None:
        """Writes text as it is, and notes its last character."""
        to.write(text)
        to.flush()
        if to is self._out:
            self._last = text[-1]


class TraceStream:
    """Standard error for a trace, which breaks the line of the answer first."""

    def __init__(self, before: Callable[[], None]) -> None:
        """`before`: is called before each piece of text on a terminal."""
        self._before, self._stream = before, sys.stderr
        self.encoding = self._stream.encoding

    def write(self, text: str) -> int:
        """Writes a piece of text."""
        # A trace in a file does not stand between the lines of the answer.
        if self._stream.isatty():
            self._before()
        return self._stream.write(text)

    def flush(self) -> None:
        """Flushes the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Returns True if it is a terminal."""
        return self._stream.isatty()


def show_pending(pending: Sequence[Interrupt], then: str) -> None:
    """Shows pending interrupts on standard error, and says what happens to them (`then`)."""
    for interrupt in pending:
        echo(f"pending: {summarize(interrupt)}", err=True)
    if pending:
        echo(f"note: {then}", err=True)


def find_cost(results: Iterable[ChatResult[Any]]) -> Decimal | None:
    """Returns the cost of results to show in US dollars, or None if it is unknown or the extra
    `cost` is not installed."""
    return find_total_cost(call for result in results for call in result.calls)


def format_usage(usage: Usage | None, cost: Decimal | None = None) -> str:
    """Returns the line that `--verbose` shows on the screen, with token counts, and the cost if it
    is known."""
    usage = usage or Usage()
    counts = {
        "Input": usage.input_tokens,
        "Output": usage.output_tokens,
        "Total": usage.total_tokens,
    }
    parts = [f"{name}: {count} tokens" for name, count in counts.items() if count is not None]
    line = f"Usage: {', '.join(parts) or 'the provider did not tell'}"
    if cost is not None:
        line += f"; cost: ${cost:f}"
    return line


def show_notes(result: ChatResult[Any], known_losses: Collection[Loss] = ()) -> None:
    """Shows on standard error what requests had to leave out, except `known_losses`, and says if an
    answer is incomplete."""
    losses = "; ".join(
        dict.fromkeys(
            f"{loss.which or loss.what} ({loss.why})"
            for loss in result.losses
            if not (loss.is_minor or loss in known_losses)
        )
    )
    notes: list[str] = []
    if losses:
        notes.append(f"left out or changed: {losses}")
    if result.finish_reason is FinishReason.length:
        notes.append("the answer reached the token limit and is incomplete; raise --max-tokens")
    for note in notes:
        echo(f"note: {to_one_line(note)}", err=True)
