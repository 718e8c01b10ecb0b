"""`MarkdownStream`: renders Markdown on a terminal while it arrives.

Only the block that is still open is drawn again, in a region below what is printed. A block that
has ended is printed once and never touched again. Of an open block no more is rendered than fits
the terminal, and not more often than every 50 ms, so a long answer costs no more per character than
a short one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from dragoman.cli.terminal import STEERING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
    from rich.live import Live

__all__ = ["MarkdownStream"]

_FENCE = re.compile(r"(?P<indent>\s*)(?P<fence>`{3,}|~{3,})(?P<label>[^`]*)")
_SECONDS = 0.05
_CONTROL: dict[int, str | None] = {
    **{code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"},
    **STEERING,
}


class MarkdownStream:
    """Takes pieces of Markdown and draws them on a terminal."""

    def __init__(
        self, out: TextIO, *, colour: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Creates the stream. `clock`: seconds, by which the open block is drawn again."""
        from rich.console import Console

        self._console = Console(file=out, no_color=None if colour else True, highlight=False)
        self._clock = clock
        self._drawn_time = float("-inf")
        self._live: Live | None = None
        self._lines: list[str] = []
        self._pieces: list[str] = []
        # The fence that is open; a block of code ends with one as long.
        self._fence = ""
        self._is_top_fence = False
        self._has_blank = False
        self._has_printed = False

    def write(self, text: str) -> None:
        """Takes the next piece of the text."""
        text = text.translate(_CONTROL)
        if "\n" in text:
            *lines, last_line = ("".join(self._pieces) + text).split("\n")
            self._pieces = []
            for line in lines:
                self._add_line(line)
            text = last_line
        if text:
            self._pieces.append(text)
            if self._has_blank and not self._fence and not self._pieces[0][0].isspace():
                self._print_block()
        # A model may send a thousand pieces a second.
        if self._clock() - self._drawn_time >= _SECONDS:
            self._draw()

    def close(self) -> None:
        """Prints what is open. The next piece begins a new block."""
        if self._pieces:
            self._add_line("".join(self._pieces))
            self._pieces = []
        self._print_block()
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._fence = ""

    def _add_line(self, line: str) -> None:
        """Adds a whole line to the open block, which may end before or after it."""
        match = _FENCE.fullmatch(line.rstrip())
        if self._fence:
            self._lines.append(line)
            is_end = match is not None and not match["label"].strip()
            if match is not None and is_end and match["fence"].startswith(self._fence):
                self._fence = ""
                if self._is_top_fence:
                    self._print_block()
            return
        if not line.strip():
            self._has_blank = True
        elif (self._has_blank and not line[0].isspace()) or (match and not match["indent"]):
            # A list goes on with an indented line behind a blank one, and all else ends there.
            self._print_block()
        self._lines.append(line)
        if match is not None:
            self._fence, self._is_top_fence = match["fence"], not match["indent"]

    def _print_block(self) -> None:
        """Prints the open block for good."""
        block = "\n".join(self._lines).strip("\n")
        self._lines, self._has_blank = [], False
        if not block.strip():
            return
        if self._live is not None:
            self._live.update("", refresh=True)
        self._console.print(*self._render(block), sep="\n")
        self._has_printed = True
        self._drawn_time = float("-inf")

    def _render(self, block: str) -> list[RenderableType]:
        """Returns what rich prints for a block: a blank line before every one but the first."""
        from rich.markdown import Markdown

        # A hyperlink may say something else than its text.
        markdown = Markdown(block, hyperlinks=False, code_theme="ansi_dark")
        return ["", markdown] if self._has_printed else [markdown]

    def _draw(self) -> None:
        """Draws the end of the open block, as far as it fits the terminal."""
        self._drawn_time = self._clock()
        width, height = self._console.size
        lines = self._lines[-height:]
        if self._is_top_fence and self._fence and len(self._lines) > len(lines):
            # Without its first line code would be drawn as prose.
            lines = [self._lines[0], *lines]
        # The pieces of one line have no bound.
        pieces: list[str] = []
        count = 0
        for piece in reversed(self._pieces):
            pieces.append(piece)
            count += len(piece)
            if count > width * height:
                break
        block = "\n".join([*lines, "".join(reversed(pieces))]).strip("\n")
        if not block.strip():
            return
        if self._live is None:
            from rich.live import Live

            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start()
        from rich.console import Group

        self._live.update(_Bottom(Group(*self._render(block)), height - 1), refresh=True)


class _Bottom:
    """The last lines of something that rich renders: of a high block its end is of interest."""

    def __init__(self, content: Group, height: int) -> None:
        self._content, self._height = content, max(height, 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yields the last lines, as rich calls it."""
        from rich.segment import Segment

        lines = console.render_lines(self._content, options, pad=False)
        for line in lines[-self._height :]:
            yield from line
            yield Segment.line()
