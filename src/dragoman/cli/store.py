"""Where the command line keeps conversations."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dragoman.errors import HistoryError, SettingsError

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.memory import Memory
    from dragoman.message import Message, Origin

__all__ = ["Begun", "StoreOption", "begun_thread", "last_origin", "open_memory", "store_file"]

_LAST = 200
"""Messages of a thread that a model is given at most."""

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="DRAGOMAN_STORE",
        help="Where conversations are kept: sqlite:///FILE or postgresql://…  "
        "[default: ~/.local/share/dragoman/threads.db]",
        show_default=False,
    ),
]


def store_file(environment: Mapping[str, str] = os.environ) -> Path:
    """The file that holds conversations: XDG_DATA_HOME/dragoman/threads.db, else ~/.local/share/dragoman/threads.db."""
    data = environment.get("XDG_DATA_HOME")
    return (
        (Path(data).expanduser() if data else Path.home() / ".local" / "share")
        / "dragoman"
        / "threads.db"
    )


class Begun(NamedTuple):
    """A conversation that is gone on with, or begun."""

    id: str
    """Its id."""
    messages: list[Message]
    """What was said in it, as far as a model is given it."""


@asynccontextmanager
async def begun_thread(agent: Agent[Any], name: str | None) -> AsyncGenerator[Begun, None]:
    """The conversation of that name; without one, the last that is kept, or, where none are, one of its own. Its store is closed behind it.

    Raises:
        HistoryError: none is kept.
    """
    from dragoman.memory.conversation import load_thread
    from dragoman.model.chat_model import new_id

    memory = agent.memory
    if memory is None:
        yield Begun(new_id(), [])
        return
    async with memory:
        if name is None:
            threads = (await memory.threads(per_page=1)).items
            if not threads:
                raise HistoryError(
                    "no conversation is kept to go on with; begin one with --thread NAME"
                )
            name = threads[0].id
        yield Begun(name, await load_thread(memory, name, None))


async def last_origin(url: str | None, name: str | None) -> Origin | None:
    """Which model answered last in the conversation of that name, or in the one that was kept last; `None`: none did."""
    from dragoman.memory.conversation import load_thread

    async with open_memory(url) as memory:
        if name is None:
            threads = (await memory.threads(per_page=1)).items
            if not threads:
                return None
            name = threads[0].id
        messages = await load_thread(memory, name, None)
    return next(
        (message.origin for message in reversed(messages) if message.origin is not None), None
    )


def open_memory(url: str | None) -> Memory:
    """The conversations at a URL, else in the user's own file.

    Raises:
        SettingsError: the URL is none, the folder cannot be made, or a package is missing.
    """
    from dragoman.memory import Memory

    if url is None:
        file = store_file()
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"{file.parent} cannot be made: {error.strerror}; give --store"
            ) from error
        url = f"sqlite:///{file}"
    return Memory(url, last_messages=_LAST)
