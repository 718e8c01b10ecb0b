"""`Editor`: the input line for prompts and answers, with editing keys, several lines, pasted text
and a history of prompts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app_or_none
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import DummyHistory, FileHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import create_output

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent

    from dragoman.cli.ctrl_c import Interrupts

__all__ = ["Editor", "LineGivenUp", "find_history_file"]


class LineGivenUp(Exception):
    """Ctrl-C gave up the line."""


class Editor:
    """Reads prompts from a terminal. Pasted text is one prompt, however many lines it has.

    Enter sends. Alt+Enter, or Enter after a backslash, starts a new line. Ctrl-X Ctrl-E opens the
    editor in EDITOR.
    """

    def __init__(self, interrupts: Interrupts, *, keeps: bool = True, suffix: str = ".md") -> None:
        """Creates the editor. `keeps`: save prompts for later conversations. `suffix`: of the file
        for EDITOR."""
        self._interrupts = interrupts
        self._session = PromptSession[str](
            "> ",
            prompt_continuation="  ",
            multiline=True,
            key_bindings=_make_key_bindings(),
            history=_History(find_history_file()) if keeps else DummyHistory(),
            interrupt_exception=LineGivenUp,
            enable_suspend=True,
            enable_open_in_editor=True,
            tempfile_suffix=suffix,
            # If the answer is piped, the line is edited on standard error.
            output=None if sys.stdout.isatty() else create_output(always_prefer_tty=True),
        )

    async def read(self, before: str = "> ", text: str = "") -> str:
        """Returns what was typed into the editor. `before` is the prompt of the line, `text` its
        initial content.

        Raises:
            LineGivenUp: after Ctrl-C.
            EOFError: after Ctrl-D on an empty line.
        """
        # `handle_sigint=False`: the editor would replace the handler of `Interrupts` by its own.
        with self._interrupts.to(_give_up):
            return await self._session.prompt_async(before, default=text, handle_sigint=False)


def find_history_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the file of the editor's saved prompts: XDG_STATE_HOME/dragoman/prompts, or
    ~/.local/state/dragoman/prompts."""
    folder = Path.home() / ".local" / "state"
    if state := environment.get("XDG_STATE_HOME"):
        folder = Path(state).expanduser()
    return folder / "dragoman" / "prompts"


class _History(FileHistory):
    """Prompts in a file that only its owner can read, or in memory if the file cannot be
    written."""

    def __init__(self, file: Path) -> None:
        """Creates the editor's history of prompts, kept in a file."""
        super().__init__(file)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            # Prompts may be private. The mode holds only for a new file.
            file.touch(mode=0o600)

    def load_history_strings(self) -> Iterator[str]:
        """Yields the editor's stored prompts, or none if the file cannot be read."""
        try:
            yield from super().load_history_strings()
        except OSError:
            return

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


def _make_key_bindings() -> KeyBindings:
    """Returns the editor's keys that send a prompt or start a new line."""
    keys = KeyBindings()
    typing = has_focus("DEFAULT_BUFFER")

    @keys.add("enter", filter=typing)
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline()
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=typing)
    def _another_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    return keys


def _give_up() -> None:
    """Ends the input line of the editor with `LineGivenUp`."""
    app = get_app_or_none()
    if app is not None and app.is_running and not app.is_done:
        app.exit(exception=LineGivenUp)
