"""`dragoman local …`: the embedded model."""

from __future__ import annotations

import typer

__all__ = ["pull"]


def pull() -> None:
    """Fetch the embedded model, 98 MB, once, and print where it is.

    \b
    pip install 'dragoman[local]'
    dragoman local pull
    dragoman chat "Hello"
    """
    from dragoman.providers import local_pull

    typer.echo(local_pull.pull(lambda line: typer.echo(line, err=True)))
