"""What is seen of an answer while it comes."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import Any, TextIO

from dragoman.cli.ask import summarize
from dragoman.cli.terminal import STEERING, echo, escape, to_one_line
from dragoman.errors import SettingsError
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import JsonMap
from dragoman.loss import Loss
from dragoman.message import FinishReason, Usage
from dragoman.result import ChatResult, sum_cost
from dragoman.tools.context import PROGRESS

__all__ = ["Screen", "find_cost", "show_notes", "show_pending", "format_usage"]

_CONTROL: dict[int, str | None] = {
    **{code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"},
    **STEERING,
}
_DIM, _PLAIN, _ERASED = "\x1b[2m", "\x1b[0m", "\r\x1b[2K"


class Screen:
    """Shows chunks: text as it is, thinking dimmed or, without colour, between [Thinking] and
    [/Thinking].

    Where standard output is no terminal, it gets the answer alone. What is shown on a terminal is
    stripped of control characters: a model's text must not steer it.
    """

    def __init__(
        self,
        *,
        colour: bool = True,
        thinking: bool | None = None,
        out: TextIO | None = None,
        err: TextIO | None = None,
    ) -> None:
        """`thinking`: whether it is shown; left out, where standard output is a terminal."""
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._is_terminal = self._out.isatty()
        self._shows_thinking = self._is_terminal if thinking is None else thinking
        self._thinks_on = self._out if self._is_terminal else self._err
        colour = (
            colour
            and self._is_terminal
            and "NO_COLOR" not in os.environ
            and os.environ.get("TERM") != "dumb"
        )
        self._marks = (_DIM, f"{_PLAIN}\n\n") if colour else ("[Thinking]\n", "\n[/Thinking]\n\n")
        self._is_thinking = False
        self._waits = False
        self._last = "\n"
        self._text = ""

    def show_waiting(self, line: str) -> None:
        """Says on standard error, where that is a terminal, what is waited for, until there is
        something to show."""
        self._waits = self._err.isatty()
        if self._waits:
            self._err.write(f"{_DIM}{escape(line)}{_PLAIN}")
            self._err.flush()

    def warm_up(self, model: str) -> None:
        """Says that the first answer takes a while, where the model is loaded into this process
        first."""
        from dragoman import providers
        from dragoman.model.strings import parse_model_string

        if callable(providers.get(parse_model_string(model).provider).base_url):
            self.show_waiting(f"loading {model} …")

    def show(self, chunk: ChatResult[str]) -> None:
        """Writes what is new."""
        if chunk.thinking and self._shows_thinking:
            self._switch_mode(thinking=True)
            self._write(chunk.thinking, self._thinks_on)
        if progress := chunk.custom.get(PROGRESS):
            self._show_progress(progress)
        self._text = chunk.joined(self._text)
        if chunk.retracted:
            self._mark_void()
        elif chunk.output:
            self._switch_mode(thinking=False)
            self._write(chunk.output, self._out)

    def finish(self) -> None:
        """The answer is over, or was given up: the next line begins at the left."""
        self._switch_mode(thinking=False)
        self._end_line()
        self._text = ""

    def _show_progress(self, value: JsonMap) -> None:
        """Says on a terminal how far a tool is, in a line that what follows takes the place of."""
        if self._is_terminal:
            self._switch_mode(thinking=False)
            self._end_line()
            done, total = value["done"], value["total"]
            far = f"{done:g}" if total is None else f"{done:g}/{total:g}"
            self.show_waiting(to_one_line(f"{value['message'] or 'working'} ({far}) …"))

    def _mark_void(self) -> None:
        """Says that the answer which stands there does not count. A terminal gets anew what does;
        what was piped on is gone."""
        self._switch_mode(thinking=False)
        if not self._is_terminal:
            self._write_raw(
                "note: a part of what was written is void, the answer was begun again\n", self._err
            )
            return
        self._end_line()
        self._write_raw("[The answer above is void. It begins again:]\n", self._out)
        if self._text:
            self._write(self._text, self._out)

    def _end_line(self) -> None:
        if self._last != "\n":
            self._write_raw("\n", self._out)

    def _switch_mode(self, *, thinking: bool) -> None:
        if self._waits:
            self._waits = False
            self._err.write(_ERASED)
            self._err.flush()
        if thinking is not self._is_thinking:
            self._is_thinking = thinking
            self._write_raw(self._marks[0 if thinking else 1], self._thinks_on)

    def _write(self, text: str, to: TextIO) -> None:
        if text := text.translate(_CONTROL) if to.isatty() else text:
            self._write_raw(text, to)

    def _write_raw(self, text: str, to: TextIO) -> None:
        to.write(text)
        to.flush()
        if to is self._out:
            self._last = text[-1]


def show_pending(pending: Sequence[Interrupt], then: str) -> None:
    """Says on standard error, in a line each, what is waited for, and `then` what becomes of it."""
    for interrupt in pending:
        echo(f"pending: {summarize(interrupt)}", err=True)
    if pending:
        echo(f"note: {then}", err=True)


def find_cost(results: Iterable[ChatResult[Any]]) -> Decimal | None:
    """What results cost together, in US dollars; `None`: that is unknown, or the extra `cost` is
    not installed."""
    try:
        return sum_cost(call for result in results for call in result.calls)
    except SettingsError:
        return None


def format_usage(usage: Usage | None, cost: Decimal | None = None) -> str:
    """What `--verbose` tells of an answer's tokens, and of US dollars where they are known."""
    counts = (
        {"Input": usage.input_tokens, "Output": usage.output_tokens, "Total": usage.total_tokens}
        if usage
        else {}
    )
    parts = [f"{name}: {count} tokens" for name, count in counts.items() if count is not None]
    dollars = "" if cost is None else f"; cost: ${cost:f}"
    return f"Usage: {', '.join(parts) or 'the provider did not tell'}{dollars}"


def show_notes(result: ChatResult[Any], known_losses: Collection[Loss] = ()) -> None:
    """Says on standard error, in a line each, what the requests had to leave out beyond what is
    `known_losses` already, and that an answer is not whole."""
    losses = "; ".join(
        dict.fromkeys(
            f"{loss.which or loss.what} ({loss.why})"
            for loss in result.losses
            if not (loss.is_minor or loss in known_losses)
        )
    )
    notes = [f"not sent as it is: {losses}"] if losses else []
    if result.finish_reason is FinishReason.length:
        notes.append(
            "the answer reached its most tokens and is not whole; --max-tokens gives it more"
        )
    for note in notes:
        echo(f"note: {to_one_line(note)}", err=True)
