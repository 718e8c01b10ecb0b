"""Prints to the terminal, with harmful characters escaped, and turns errors into a line and an exit
code.

Names of models, files and tools, errors, titles and answers come from servers and from other
people's files. A terminal obeys some characters instead of showing them (ESC and other control
characters), and some change the order of text (U+202E and similar) or break a line (U+2028). `echo`
and `echo_json` write these as `\\u202e`. Nothing in this package writes to the terminal in another
way.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
import typer
from typer import TyperException

from dragoman.errors import (
    DragomanError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    SettingsError,
)
from dragoman.visible_text import HARMFUL, STEERING, escape, to_one_line

__all__ = [
    "DirectoryOption",
    "EXIT_CODES",
    "HtmlOption",
    "INTERRUPTED",
    "STEERING",
    "echo",
    "echo_json",
    "escape",
    "find_exit_code",
    "print_table",
    "show_status",
    "to_one_line",
    "report",
]


DirectoryOption = Annotated[
    Path | None,
    typer.Option(
        "-C",
        "--directory",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Where to run, and to look for modules.  [default: here]",
        show_default=False,
    ),
]
HtmlOption = Annotated[
    bool, typer.Option("--html", help="As one HTML file, which needs no script to be read.")
]


_JSON = {code: sign for code, sign in HARMFUL.items() if code >= 0x20}


def echo(text: object = "", *, err: bool = False) -> None:
    """Prints a line, escaped. `err`: on standard error."""
    print(escape(str(text)), file=sys.stderr if err else sys.stdout, flush=err)


def echo_json(value: Any, *, indent: int = 2) -> None:
    """Prints a value on the terminal as JSON, escaped as JSON does. `indent`: spaces per level; 0
    for one line."""
    data = msgspec.json.encode(value)
    text = (msgspec.json.format(data, indent=indent) if indent else data).decode()
    print(text.translate(_JSON))  # noqa: T201 - the one place


def print_table(rows: Sequence[Sequence[str]], *, numbers: int = 0) -> None:
    """Prints rows with aligned columns. `numbers`: so many columns at the end are numbers."""
    table = [[to_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    texts = len(widths) - numbers
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row[:texts], widths, strict=False)]
        cells += [
            cell.rjust(width) for cell, width in zip(row[texts:], widths[texts:], strict=True)
        ]
        echo("  ".join(cells).rstrip())


def show_status(line: str) -> None:
    """Shows a line on standard error in the place of the last one, if that is a terminal. `""` removes
    it."""
    if sys.stderr is not None and sys.stderr.isatty() and "NO_COLOR" not in os.environ:
        sys.stderr.write(f"\r\x1b[2K{escape(line)}")
        sys.stderr.flush()


EXIT_CODES: Mapping[type[Exception], int] = MappingProxyType(
    {
        DragomanError: 1,
        TyperException: 2,
        SettingsError: 3,
        ProviderError: 4,
        ProviderConnectionError: 5,
        ProviderTimeoutError: 5,
    }
)
"""Error class → exit code: failure, usage, settings, provider, network. The most specific class
counts."""

_OPTION_NAMES = (
    (", or pass api_key=", ""),
    ("pass base_url=", "give --base-url"),
    ("(auth=)", "(--key)"),
)
"""Arguments in errors of the library → what they are called on the command line."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells: 128 plus the number of the signal."""
_NO_KEY = re.compile(r"^(\w+)( is required for .*?: )(?=set this environment variable)")
_NO_COMMAND = re.compile(r"No such command ['\"](.*?)['\"]", re.DOTALL)


def find_exit_code(error: Exception) -> int:
    """Returns the exit code of an error of dragoman or of the command line's parser."""
    return next(EXIT_CODES[base] for base in type(error).__mro__ if base in EXIT_CODES)


def report(error: Exception) -> None:
    """Reports on the terminal an error, on standard error in one line, with a hint at `--help` if
    the command line is wrong. A command without arguments raises its help, which is printed as it
    is."""
    text = error.format_message() if isinstance(error, TyperException) else str(error)
    for argument, option in _OPTION_NAMES:
        text = text.replace(argument, option)
    text = _NO_KEY.sub(r"\1\2run dragoman keys set \1, or ", text)
    if (unknown := _NO_COMMAND.match(text)) is not None and "did you mean" not in text.lower():
        text = f'{text.rstrip(".")}; a prompt of one word is dragoman chat "{unknown[1]}"'
    context = getattr(error, "ctx", None)
    # typer raises the help as an error if a group has no command.
    if context is not None and text == context.get_help():
        echo(text, err=True)
        return
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    echo(f"error: {to_one_line(text)}{hint}", err=True)
