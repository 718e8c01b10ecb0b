"""`dragoman templates`: lists, shows, edits and removes stored templates."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.config_files import find_config_folder
from dragoman.cli.templates import (
    Template,
    find_template_file,
    list_template_files,
    load_template,
    parse_template,
    save_template,
)
from dragoman.cli.terminal import echo, report, to_one_line

__all__ = ["TEMPLATES"]

_SHOWN = 76
_NAME = Annotated[str, typer.Argument(metavar="NAME")]

TEMPLATES = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Stored prompts, for -t NAME."
)


@TEMPLATES.command(name="list")
def list_templates() -> None:
    """List the stored templates. A broken one is reported on standard error."""
    for path in list_template_files():
        try:
            template = load_template(str(path))
        except typer.BadParameter as error:
            report(error)
            continue
        pieces = [template.prompt]
        if template.system:
            pieces = [
                f"system: {template.system}",
                template.prompt and f"prompt: {template.prompt}",
            ]
        line = to_one_line(" ".join(pieces))
        echo(f"{path.stem}: {line if len(line) <= _SHOWN else f'{line[:_SHOWN]}…'}")


@TEMPLATES.command()
def show(name: _NAME) -> None:
    """Print a template, as it is stored."""
    echo(_find_existing(name).read_text("utf-8").removesuffix("\n"))


@TEMPLATES.command()
def edit(name: _NAME) -> None:
    """Edit a template in EDITOR. A new one begins with an example."""
    path = find_template_file(name)
    if not path.exists():
        save_template(name, Template(prompt="Summarize this: $input"))
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        subprocess.run([*shlex.split(editor), str(path)], check=True)  # noqa: S603 - the user's own
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise typer.BadParameter(f"{editor}: {error}", param_hint="EDITOR") from error
    # What is wrong is told while one remembers what was changed.
    parse_template(path.read_bytes(), str(path))


@TEMPLATES.command()
def path() -> None:
    """Print the folder of the templates."""
    echo(find_config_folder() / "templates")


@TEMPLATES.command()
def remove(name: _NAME) -> None:
    """Delete a template."""
    _find_existing(name).unlink()


def _find_existing(name: str) -> Path:
    """Returns the file of a stored template.

    Raises:
        BadParameter: there is none.
    """
    file = find_template_file(name)
    if not file.exists():
        load_template(name)
    return file
