"""`dragoman fragments`: texts with a name, for `-f NAME` and `--sf NAME`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.attachments import find_fragment_file, read_text
from dragoman.cli.config_files import find_config_folder, write_file
from dragoman.cli.terminal import echo, to_one_line

__all__ = ["FRAGMENTS", "list_fragments"]

_SHOWN = 60
_NAME = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, -, _ and dots.")]

FRAGMENTS = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Texts with a name, for -f NAME."
)


def _find_file(name: str, *, exists: bool = True) -> Path:
    """Returns the file of a stored text.

    Raises:
        BadParameter: it can be no name, or there is no such text.
    """
    path = find_fragment_file(name)
    if path is None:
        raise typer.BadParameter(f"{name!r} is no name of a fragment", param_hint="NAME")
    if exists and not path.exists():
        names = ", ".join(file.name for file in list_fragments()) or "none yet"
        raise typer.BadParameter(
            f"no fragment is stored as {name!r}; there are {names}", param_hint="NAME"
        )
    return path


def list_fragments() -> list[Path]:
    """Returns the files of all stored texts, by name."""
    folder = find_config_folder() / "fragments"
    return sorted(path for path in folder.glob("*") if not path.name.startswith("."))


@FRAGMENTS.command(name="set")
def set_fragment(
    name: _NAME,
    source: Annotated[str, typer.Argument(help="A file, a URL, or - for standard input.")],
) -> None:
    """Store a copy of a text under a name.

    \b
    dragoman fragments set style docs/style.md
    dragoman -f style -f draft.md "Correct the draft."
    """
    path = _find_file(name, exists=False)
    write_file(path, read_text(source, "SOURCE"))


@FRAGMENTS.command(name="list")
def list_stored() -> None:
    """List the stored texts."""
    for path in list_fragments():
        text = path.read_text("utf-8", "replace")
        echo(f"{path.name}: {len(text)} characters: {to_one_line(text[: _SHOWN * 2])[:_SHOWN]}")


@FRAGMENTS.command()
def show(name: _NAME) -> None:
    """Print a stored text."""
    echo(_find_file(name).read_text("utf-8", "replace").removesuffix("\n"))


@FRAGMENTS.command()
def remove(name: _NAME) -> None:
    """Delete a stored text."""
    _find_file(name).unlink()
