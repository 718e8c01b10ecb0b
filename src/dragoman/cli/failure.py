"""What a failure is for the shell: one plain line on standard error, and an exit code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from typer import TyperException

from dragoman.cli.terminal import echo, escape
from dragoman.errors import (
    DragomanError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    SettingsError,
)

__all__ = ["EXIT_CODES", "INTERRUPTED", "exit_code", "plain", "report"]

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
"""Kind of error → exit code: failure, usage, settings, the provider refused, network. The nearest kind counts."""

_HERE = ((", or pass api_key=", ""), ("pass base_url=", "give --base-url"), ("(auth=)", "(--key)"))
"""What the library calls arguments → how that is said on the command line."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 and the signal's number."""
_NO_COMMAND = re.compile(r"No such command ['\"](.*?)['\"]", re.DOTALL)


def exit_code(error: Exception) -> int:
    """The exit code for an error of ours or of the command line's parser."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def report(error: Exception) -> None:
    """Says on standard error what is wrong, in one line; for a wrong command line also where to read on. What a command that
    was given nothing raises is its help, which is shown as it is."""
    text = error.format_message() if isinstance(error, TyperException) else str(error)
    for argument, option in _HERE:
        text = text.replace(argument, option)
    if (unknown := _NO_COMMAND.match(text)) is not None:
        text = f'{text.rstrip(".")}; did you mean dragoman chat "{unknown[1]}"?'
    context = getattr(error, "ctx", None)
    if context is not None and text == context.get_help():
        echo(text, err=True)
        return
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    echo(f"error: {plain(text)}{hint}", err=True)


def plain(text: str) -> str:
    """Text in one line, without signs that steer a terminal."""
    return escape(" ".join(text.split()))
