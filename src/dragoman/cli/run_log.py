"""The log of runs that a command works on: its options, and how it is opened."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.errors import RunLogError, SettingsError

if TYPE_CHECKING:
    from dragoman.runs import RunLog

__all__ = ["EngineOption", "LogOption", "open_shared_log"]

LogOption = Annotated[
    str,
    typer.Option(
        "--log",
        metavar="URL",
        envvar="DRAGOMAN_LOG",
        help="The log of runs: sqlite:///FILE or postgresql://…  A variable keeps a password from "
        "other users, who can read command lines.",
        show_default=False,
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What says which run is driven where and when: log, or an engine that is installed.",
    ),
]


@asynccontextmanager
async def open_shared_log(url: str) -> AsyncGenerator[RunLog, None]:
    """Opens a log that several processes share, and checks that it can be read.

    Raises:
        BadParameter: the log is in memory.
        SettingsError: it cannot be opened, a newer release wrote it, or it refuses something.
    """
    from dragoman.runs import open_log

    if url == "memory:":
        raise typer.BadParameter(
            "a log in memory belongs to one process; give sqlite:///FILE or postgresql://…",
            param_hint="--log",
        )
    try:
        async with open_log(url) as log:
            await log.status([""])
            yield log
    except RunLogError as error:
        raise SettingsError(error.message) from error
