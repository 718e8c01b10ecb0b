"""Tools of the user's own, for `dragoman chat --tools MODULE`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import typer

from dragoman.tools import Tool

__all__ = ["tools_in"]

_OPTION = "--tools"


def tools_in(module: str) -> list[Tool]:
    """The tools that a module holds, each once. It is looked for where Python looks for modules, and then in the working directory.

    Raises:
        BadParameter: there is no such module, its import fails, or it has no tools.
    """
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109 - as the import system has it
        sys.path.append(here)
    try:
        values: dict[str, Any] = vars(import_module(module))
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _failed(module, error) from error
        hint = f"; without .py it is a module: {module[:-3]}" if module.endswith(".py") else ""
        raise typer.BadParameter(
            f"there is no module {module!r} in this directory or where Python looks for modules{hint}",
            param_hint=_OPTION,
        ) from error
    except Exception as error:  # code of the user's, which may raise anything
        raise _failed(module, error) from error
    found = {id(value): value for value in values.values() if isinstance(value, Tool)}
    if not found:
        raise typer.BadParameter(
            f"{module!r} ({values.get('__file__')}) has no tools; make one of a function with @tool", param_hint=_OPTION
        )
    return list(found.values())


def _failed(module: str, error: Exception) -> typer.BadParameter:
    return typer.BadParameter(f"{module!r} cannot be imported: {type(error).__name__}: {error}", param_hint=_OPTION)
