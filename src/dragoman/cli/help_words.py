"""Writes the help of commands without words of the parser: `N` in place of `<int range>`, `0 to 2` in
place of `0<=x<=2`."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

__all__ = ["name_values"]

_BRACKETS = re.compile(r"\[([^\]]*)\]")
"""All of a name in brackets."""
_NUMBERS = {"int": "N", "float": "NUMBER"}
"""Type of a value → its name in help."""


def name_values(command: Any) -> None:
    """Names what options and arguments take, in the help of a command and of those below it."""
    if isinstance(command, TyperGroup):
        for part in command.commands.values():
            name_values(part)
    if not isinstance(command, TyperGroup | TyperCommand):
        return
    for parameter in command.params:
        if isinstance(parameter, TyperArgument | TyperOption):
            _name_value(parameter)


def _name_value(parameter: Any) -> None:
    """Names what one option or argument takes."""
    name = str(parameter.name).upper().replace("_", "-")
    kind = str(parameter.display_type(None)).strip("<>").partition(" ")[0]
    if "|" in kind:
        # One of these words, which say more than a name.
        name = kind
    if isinstance(parameter, TyperArgument):
        # The usage line adds brackets itself.
        parameter.metavar = _BRACKETS.sub(r"\1", parameter.metavar or name)
        # Its name says what it is. The parser would add its type.
        _replace(parameter, "display_type_rich", None)
    elif not parameter.is_flag and not parameter.count:
        parameter.metavar = parameter.metavar or _NUMBERS.get(kind, name)
    _replace(parameter, "_get_number_range_help_str", _describe_range(parameter))


def _replace(parameter: Any, method: str, text: str | None) -> None:
    """Lets a method of a parameter, which typer calls for its help, return a text."""

    def describe(**_: object) -> str | None:
        """Returns the text, whatever the context of the help is."""
        return text

    setattr(parameter, method, describe)


def _describe_range(parameter: Any) -> str | None:
    """Returns the numbers that an option takes, in words; None if any."""
    low, high = parameter.min, parameter.max
    if low is None or high is None:
        # Fewer than one, or than none, is no number of things: no one expects it to work.
        return None
    return f"{low} to {high}"
