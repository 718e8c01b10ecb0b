"""`dragoman memory`: work on a store of conversations as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli.embed import ModelOption, make_embedder
from dragoman.cli.progress import show_progress
from dragoman.cli.terminal import echo
from dragoman.cli.threads import open_memory

__all__ = ["index"]

_STEP = 64
"""Texts that are embedded between two lines of progress."""


def index(
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            envvar="DRAGOMAN_STORE",
            help="Where conversations are stored: sqlite:///FILE or postgresql://…  "
            "[default: ~/.local/share/dragoman/threads.db]",
            show_default=False,
        ),
    ] = None,
    model: ModelOption = None,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", min=1, help="Most texts.  [default: all]")
    ] = None,
) -> int:
    """Make vectors of all stored messages that have none, so that they are found by meaning.

    Recall makes those of new messages by itself. This is for a store that was filled without recall, or with
    another model, whose vectors are deleted. It may be stopped and started again: nothing is made twice.

    \b
    dragoman memory index
    dragoman memory index sqlite:///chats.db -m openai

    \b
    The model is -m, else that of DRAGOMAN_MODEL's provider, else local: the embedded model, which
    needs no key. Give the one that the memory's Recall(…) has.
    """
    import asyncio

    return asyncio.run(_index(url, model, limit))


async def _index(url: str | None, model: str | None, limit: int | None) -> int:
    """Makes the vectors of the memory's messages."""
    from dragoman.errors import DragomanError

    agent, name = make_embedder(model, None)
    count = 0
    try:
        async with agent, open_memory(url, embedder=agent) as memory:
            with show_progress("embedding", limit, unit="texts") as show:
                # In steps, so that progress is seen, and kept where a later step fails.
                while limit is None or count < limit:
                    step = _STEP if limit is None else min(_STEP, limit - count)
                    embedded = await memory.index(step)
                    count += embedded
                    if embedded < step:
                        break
                    show(count)
    except DragomanError:
        if count:
            echo(f"note: {count} texts were embedded before this error, and stay so", err=True)
        raise
    echo(f"{count} texts embedded with {name}")
    return 0
