"""Loads the user's Python modules, and the agents or tools in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer

from dragoman.json_bytes import JsonMap
from dragoman.tools import Tool
from dragoman.tools.definition import is_tool

__all__ = [
    "find_tools",
    "load_tools",
    "load_value",
    "load_module",
]


def load_value(target: str, option: str, whole: Callable[[str, JsonMap], Any]) -> Any:
    """Returns the value in a module that `MODULE:NAME` names. `option`: the option that named it,
    for errors. `whole`: returns what a module alone stands for.

    Raises:
        BadParameter: the module does not exist, its import fails, or it has no such name.
    """
    module, colon, name = target.partition(":")
    if not module or (colon and not name):
        raise typer.BadParameter("write MODULE:NAME, such as myagent:agent", param_hint=option)
    values = load_module(module, option)
    if not name:
        return whole(module, values)
    if name not in values:
        raise typer.BadParameter(_explain_missing_name(module, name, values), param_hint=option)
    return values[name]


def _explain_missing_name(module: str, name: str, values: JsonMap) -> str:
    """Returns the error for a name that a module lacks, with the agents that it has."""
    from dragoman.agent import Agent

    hint = "it has no agent"
    if agents := [key for key, value in values.items() if isinstance(value, Agent)]:
        hint = f"its agents are: {', '.join(agents)}"
    return f"{module!r} ({values.get('__file__')}) has no {name!r}; {hint}"


def load_module(module: str, option: str) -> JsonMap:
    """Returns the names in a module, which is looked up on Python's path and then in the working
    directory. `option`: the option that named it, for errors.

    Raises:
        BadParameter: the module does not exist, or its import fails.
    """
    if (folder := os.getcwd()) not in sys.path:  # noqa: PTH109 - as the import system has it
        # At the end, so that a file here does not hide an installed module.
        sys.path.append(folder)
    try:
        return vars(import_module(module))
    except ModuleNotFoundError as error:
        # The module exists, but imports another one that does not.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _make_import_error(module, error, option) from error
        problem = f"there is no module {module!r} in this directory or on Python's path"
        if module.endswith(".py"):
            problem += f"; write it without .py: {module[:-3]}"
        raise typer.BadParameter(
            problem,
            param_hint=option,
        ) from error
    except Exception as error:
        # The user's code may raise anything.
        raise _make_import_error(module, error, option) from error


def _make_import_error(module: str, error: Exception, option: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"{module!r} cannot be imported: {type(error).__name__}: {error}", param_hint=option
    )


_OPTION = "--tools"


def load_tools(module: str) -> list[Tool]:
    """Returns the tools in a module, each once. The module is looked up as in `load_module`.

    Raises:
        BadParameter: the module does not exist, its import fails, or it has no tools.
    """
    return find_tools(module, load_module(module, _OPTION), _OPTION)


def find_tools(module: str, values: JsonMap, option: str) -> list[Tool]:
    """Returns the tools among the names of a module, each once.

    Raises:
        BadParameter: there are none.
    """
    tools = {id(value): value for value in values.values() if is_tool(value)}
    if not tools:
        raise typer.BadParameter(
            f"{module!r} ({values.get('__file__')}) has no tools; make one of a function with @tool",
            param_hint=option,
        )
    return list(tools.values())
