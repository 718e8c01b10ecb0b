"""Code of the user's: a Python module, by its name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer

__all__ = ["values_of"]


def values_of(module: str, option: str) -> Mapping[str, Any]:
    """What stands in a module, by name. It is looked for where Python looks for modules, and then in the working directory.
    `option`: with which it was named.

    Raises:
        BadParameter: there is no such module, or its import fails.
    """
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109 - as the import system has it
        sys.path.append(here)
    try:
        return vars(import_module(module))
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _failed(module, error, option) from error
        hint = f"; without .py it is a module: {module[:-3]}" if module.endswith(".py") else ""
        raise typer.BadParameter(
            f"there is no module {module!r} in this directory or where Python looks for modules{hint}",
            param_hint=option,
        ) from error
    except Exception as error:  # code of the user's, which may raise anything
        raise _failed(module, error, option) from error


def _failed(module: str, error: Exception, option: str) -> typer.BadParameter:
    return typer.BadParameter(f"{module!r} cannot be imported: {type(error).__name__}: {error}", param_hint=option)
