"""A handler's signature and docstring: its parameters, their types and meanings, and which of them
is the context."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

from dragoman.errors import ToolError
from dragoman.tools.context import ToolContext

__all__ = [
    "arguments",
    "context_name",
    "describe",
    "name_of",
    "resolve",
]

_CONTEXT = re.compile(rf"\b{ToolContext.__name__}\b")


def name_of(handler: Callable[..., Any]) -> str:
    """Returns a handler's qualified name, for messages."""
    return getattr(handler, "__qualname__", None) or repr(handler)


def arguments(handler: Callable[..., Any]) -> list[inspect.Parameter]:
    """Returns the parameters of a tool function's signature that the model fills, annotations as
    they are written.

    Raises:
        ToolError: there is no signature, or a parameter that cannot be given by name.
    """
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError) as error:
        raise ToolError(
            f"{name_of(handler)} has no signature; give the tool an input_schema"
        ) from error
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise ToolError(
                f"{name_of(handler)}: a model gives its arguments by name, so {str(parameter)!r} cannot be one; "
                "take a list, or make it a plain parameter"
            )
    return [parameter for parameter in parameters if not _is_context(handler, parameter)]


def context_name(handler: Callable[..., Any]) -> str | None:
    """Returns the name of the parameter in a tool function's signature that takes the
    `ToolContext`; `None`: the handler has none."""
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError):
        return None
    return next(
        (parameter.name for parameter in parameters if _is_context(handler, parameter)), None
    )


def resolve(handler: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Returns the type that the annotation of a parameter in a tool function's signature means;
    `Any` where there is none.

    Raises:
        ToolError: a name in it is not known in the handler's module.
    """
    if parameter.annotation is parameter.empty:
        return Any
    # A partial has one.
    function = inspect.unwrap(getattr(handler, "func", handler))
    if not hasattr(function, "__globals__"):
        function = type(function).__call__
    shim: Any = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return get_type_hints(shim, getattr(function, "__globals__", {}), include_extras=True)[
            parameter.name
        ]
    except (NameError, SyntaxError, TypeError, AttributeError) as error:
        raise ToolError(
            f"{name_of(handler)}: the annotation of {parameter.name!r} cannot be read: {error}; "
            "its names must be importable at the top of the handler's module"
        ) from error


def _is_context(handler: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    """Returns whether a parameter in a handler's signature takes the `ToolContext`, by its
    annotation."""
    annotation = parameter.annotation
    if isinstance(annotation, str):
        # Its type argument may exist for type checkers only.
        if _CONTEXT.search(annotation):
            return True
        try:
            annotation = resolve(handler, parameter)
        except ToolError:
            return False
    return _mentions_context(annotation)


def _mentions_context(annotation: object) -> bool:
    return ToolContext in (annotation, get_origin(annotation)) or any(
        map(_mentions_context, get_args(annotation))
    )


def describe(handler: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Reads the docstring of a tool function beside its signature: returns the text before the
    sections, and the text of each parameter by name. Both empty without a docstring."""
    doc = inspect.getdoc(handler.func if isinstance(handler, partial) else handler)
    if not doc:
        return "", {}
    # Lazily: only those who define tools need it.
    import docstring_parser

    parsed = docstring_parser.parse(doc)
    parameters = {
        name.strip(): " ".join(entry.description.split())
        for entry in parsed.params
        if entry.description
        # NumPy allows `x, y : int`.
        for name in entry.arg_name.split(",")
    }
    return parsed.description or "", parameters
