"""Prints to the terminal, with harmful characters escaped, and turns errors into a line and an exit
code.

Names of models, files and tools, errors, titles and answers come from servers and from other
people's files. A terminal obeys some characters instead of showing them (ESC and other control
characters), and some change the order of text (U+202E and similar) or break a line (U+2028). `echo`
and `echo_json` write these as `\\u202e`. Nothing in this package writes to the terminal in another
way.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
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
    "show_progress",
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


def _make_escapes(first: int, last: int) -> dict[int, str]:
    """Returns the JSON escape for the terminal of each code from `first` to `last`; codes beyond 16
    bits have two."""
    signs = {
        code: chr(code).encode("utf-16-be", "surrogatepass") for code in range(first, last + 1)
    }
    return {
        code: "".join(f"\\u{units[index : index + 2].hex()}" for index in range(0, len(units), 2))
        for code, units in signs.items()
    }


_CONTROLS = {
    code: sign
    for code, sign in (_make_escapes(0x00, 0x1F) | _make_escapes(0x7F, 0x9F)).items()
    if code not in (9, 10)
}
"""Control characters except tab and line feed."""
STEERING: Mapping[int, str] = {
    **_make_escapes(0x061C, 0x061C),
    **_make_escapes(0x200E, 0x200F),
    **_make_escapes(0x2028, 0x202E),
    **_make_escapes(0x2066, 0x2069),
    **_make_escapes(0xD800, 0xDFFF),
    **_make_escapes(0xFFF9, 0xFFFB),
    **_make_escapes(0xE0000, 0xE007F),
}
"""Characters that change the direction of text, break lines or hide text, and lone surrogates →
their escapes. A table for `str.translate`."""
_HARMFUL = {**_CONTROLS, **STEERING}
_JSON = {code: sign for code, sign in _HARMFUL.items() if code >= 0x20}


def escape(text: str) -> str:
    """Returns text with every character that a terminal obeys written as `\\u001b`. Tabs and line
    feeds stay."""
    return text.translate(_HARMFUL)


def echo(text: object = "", *, err: bool = False) -> None:
    """Prints a line, escaped. `err`: on standard error."""
    print(escape(str(text)), file=sys.stderr if err else sys.stdout, flush=err)


def echo_json(value: Any, *, indent: int = 2) -> None:
    """Prints a value on the terminal as JSON, escaped as JSON does. `indent`: spaces per level; 0
    for one line."""
    data = msgspec.json.encode(value)
    text = (msgspec.json.format(data, indent=indent) if indent else data).decode()
    print(text.translate(_JSON))  # noqa: T201 - the one place


def show_progress(line: str) -> None:
    """Shows a line on standard error in the place of the last one, if that is a terminal. `""` removes
    it."""
    if sys.stderr is not None and sys.stderr.isatty():
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
    (
        ": set this environment variable",
        ": run dragoman keys set, or set this environment variable",
    ),
    (", or pass api_key=", ""),
    ("pass base_url=", "give --base-url"),
    ("(auth=)", "(--key)"),
)
"""Arguments in errors of the library → what they are called on the command line."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells: 128 plus the number of the signal."""
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
    if (unknown := _NO_COMMAND.match(text)) is not None and "did you mean" not in text.lower():
        text = f'{text.rstrip(".")}; a prompt of one word is dragoman chat "{unknown[1]}"'
    context = getattr(error, "ctx", None)
    # typer raises the help as an error if a group has no command.
    if context is not None and text == context.get_help():
        echo(text, err=True)
        return
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    echo(f"error: {to_one_line(text)}{hint}", err=True)


def to_one_line(text: str) -> str:
    """Returns text in one line, without characters that a terminal obeys."""
    return escape(" ".join(text.split()))
