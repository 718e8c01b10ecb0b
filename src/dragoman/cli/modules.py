"""Code of the user's: a Python module, by its name, and the agents or tools in it."""

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
    """What `MODULE:NAME` names. `option`: with which it was named; `whole`: what a module alone
    stands for, of its name and what is in it.

    Raises:
        BadParameter: there is no such module, its import fails, or there is no such name in it.
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
    from dragoman.agent import Agent

    agents = [agent_name for agent_name, value in values.items() if isinstance(value, Agent)]
    hint = f"; its agents are: {', '.join(agents)}" if agents else "; it has no agent"
    return f"{module!r} ({values.get('__file__')}) has no {name!r}{hint}"


def load_module(module: str, option: str) -> JsonMap:
    """What stands in a module, by name. It is looked for where Python looks for modules, and then
    in the working directory. `option`: with which it was named.

    Raises:
        BadParameter: there is no such module, or its import fails.
    """
    if (folder := os.getcwd()) not in sys.path:  # noqa: PTH109 - as the import system has it
        sys.path.append(folder)
    try:
        return vars(import_module(module))
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _make_import_error(module, error, option) from error
        hint = f"; without .py it is a module: {module[:-3]}" if module.endswith(".py") else ""
        raise typer.BadParameter(
            f"there is no module {module!r} in this directory or where Python looks for modules{hint}",
            param_hint=option,
        ) from error
    except Exception as error:
        # Code of the user's, which may raise anything.
        raise _make_import_error(module, error, option) from error


def _make_import_error(module: str, error: Exception, option: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"{module!r} cannot be imported: {type(error).__name__}: {error}", param_hint=option
    )


_OPTION = "--tools"


def load_tools(module: str) -> list[Tool]:
    """The tools that a module holds, each once. It is looked for where Python looks for modules,
    and then in the working directory.

    Raises:
        BadParameter: there is no such module, its import fails, or it has no tools.
    """
    return find_tools(module, load_module(module, _OPTION), _OPTION)


def find_tools(module: str, values: JsonMap, option: str) -> list[Tool]:
    """The tools among what stands in a module, each once.

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
