"""Files that are named on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

__all__ = ["read_file"]


def read_file(file: str) -> bytes:
    """What a file holds; `-`: what comes in.

    Raises:
        typer.BadParameter: it cannot be read.
    """
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise typer.BadParameter(
            f"cannot read {file}: {error.strerror}", param_hint="FILE"
        ) from error
