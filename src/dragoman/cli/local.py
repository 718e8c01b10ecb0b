"""`dragoman local …`: the embedded model."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli.terminal import echo

__all__ = ["pull"]


def pull(
    model: Annotated[
        str,
        typer.Argument(
            help="all-MiniLM-L6-v2, for dragoman embed; left out, the one that chats.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Fetch an embedded model, some 90 MB, once, and print where it is.

    \b
    dragoman local pull
    dragoman chat "Hello"
    dragoman local pull all-MiniLM-L6-v2
    dragoman embed text "Hello"
    """
    from importlib.util import find_spec

    from dragoman.providers import local_pull
    from dragoman.providers.hints import install
    from dragoman.providers.local_models import DEFAULT

    echo(local_pull.pull(lambda line: echo(line, err=True), model or DEFAULT))
    if find_spec("xllamacpp") is None:
        echo(f"note: what runs it is not installed: `{install('xllamacpp')}`", err=True)
