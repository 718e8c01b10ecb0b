"""Tools of the user's own, for `dragoman chat --tools MODULE`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from dragoman.cli.modules import values_of
from dragoman.tools import Tool
from dragoman.tools.definition import is_tool

__all__ = ["tools_among", "tools_in"]

_OPTION = "--tools"


def tools_in(module: str) -> list[Tool]:
    """The tools that a module holds, each once. It is looked for where Python looks for modules, and then in the working directory.

    Raises:
        BadParameter: there is no such module, its import fails, or it has no tools.
    """
    return tools_among(module, values_of(module, _OPTION), _OPTION)


def tools_among(module: str, values: Mapping[str, Any], option: str) -> list[Tool]:
    """The tools among what stands in a module, each once.

    Raises:
        BadParameter: there are none.
    """
    found = {id(value): value for value in values.values() if is_tool(value)}
    if not found:
        raise typer.BadParameter(
            f"{module!r} ({values.get('__file__')}) has no tools; make one of a function with @tool",
            param_hint=option,
        )
    return list(found.values())
