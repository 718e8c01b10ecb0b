"""The log of prompts and answers: what `dragoman chat` stores of a conversation without a name.

It goes into the store of threads, as a thread with a made id that `threads list` leaves out unless
asked. It is written after the answer has been shown. A log that cannot be written is told in one
line on standard error, and fails nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.settings import load_settings
from dragoman.cli.terminal import echo, to_one_line
from dragoman.cli.threads import find_store_file, open_memory
from dragoman.errors import DragomanError
from dragoman.json_bytes import JsonMap
from dragoman.message import Message, Role

__all__ = ["UNNAMED", "PromptLog", "is_logging"]

UNNAMED: JsonMap = {"unnamed": True}
"""Metadata of a thread that no one named."""
_TITLE = 80
"""Most characters of a title."""

ConversationOption = Annotated[
    str | None,
    typer.Option(
        "--conversation",
        "--cid",
        metavar="ID",
        help="A conversation of dragoman logs.",
        show_default=False,
    ),
]
LogOption = Annotated[
    bool | None,
    typer.Option(
        "--log/--no-log",
        help="Log the prompt and the answer. Off also by DRAGOMAN_NO_LOG and dragoman logs off.  "
        "[default: log]",
        show_default=False,
    ),
]


def is_logging(wanted: bool | None) -> bool:
    """True if prompts are logged: as an option says, else unless DRAGOMAN_NO_LOG is set, else as the
    settings say. Without the packages of a store nothing is, unless the option asks for it.

    Raises:
        SettingsError: the settings are invalid.
    """
    if wanted is not None:
        return wanted
    if os.environ.get("DRAGOMAN_NO_LOG"):
        return False
    return find_spec("sqlalchemy") is not None and load_settings().log


class PromptLog:
    """Logs conversations, one after the other. Unless prompts are logged it does nothing."""

    def __init__(self, store: str | None, *, is_on: bool) -> None:
        """Creates the log. Opens nothing. `store`: the URL of the threads' store; None is the user's
        own file."""
        self._store, self._is_on = store, is_on
        self._thread_id = ""
        self._count = 0

    async def write(self, thread_id: str, history: Sequence[Message]) -> None:
        """Writes the messages of a conversation that are not logged yet."""
        if not self._is_on:
            return
        # /clear begins another conversation.
        if thread_id != self._thread_id:
            self._thread_id, self._count = thread_id, 0
        new = [message for message in history[self._count :] if message.role is not Role.SYSTEM]
        self._count = len(history)
        if not new:
            return
        try:
            await self._save(new)
        except (DragomanError, OSError) as error:
            echo(f"note: this is not logged: {to_one_line(str(error))}", err=True)

    async def _save(self, messages: Sequence[Message]) -> None:
        """Saves messages in the log's thread, without SQLAlchemy if that is possible."""
        from dragoman.memory.quick_save import save_quickly
        from dragoman.memory.store import Batch, ThreadChange
        from dragoman.runtime import new_id, now

        time = now()
        stamped = [
            message.replace(id=message.id or new_id(), created_at=message.created_at or time)
            for message in messages
        ]
        title = to_one_line(messages[0].text)[:_TITLE]
        batch = Batch(
            thread_id=self._thread_id,
            messages=tuple(stamped),
            at=time,
            change=ThreadChange(title_if_empty=title, metadata={**UNNAMED}),
        )
        # Whatever is not simple, and every other database, takes the slow way.
        path = _find_file(self._store)
        if path is not None and save_quickly(path, batch):
            return
        async with open_memory(self._store) as memory:
            await memory.store.save(batch)


def _find_file(store: str | None) -> Path | None:
    """Returns the SQLite file of the log, or None if the store is another database."""
    if store is None:
        return find_store_file()
    scheme, _, path = store.partition(":///")
    return Path(path) if scheme == "sqlite" and path else None
