"""A handler's signature: its parameters, which of them is the context, and the schema that they give."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from dragoman.errors import ToolError
from dragoman.tools.context import ToolContext

if TYPE_CHECKING:
    from dragoman.tools.schema import Arguments

__all__ = ["SignatureSchema", "arguments", "context_name", "name_of", "resolve"]

_CONTEXT = re.compile(rf"\b{ToolContext.__name__}\b")


class SignatureSchema(Mapping[str, Any]):
    """JSON Schema of a handler's arguments, built when it is first read: that is what needs pydantic.

    Raises:
        ToolError: the signature has a parameter that a model cannot fill; at construction where its kind says so, at
            first reading where its type does.
    """

    def __init__(self, handler: Callable[..., Any]) -> None:
        arguments(handler)
        self._handler = handler

    @cached_property
    def _built(self) -> Arguments:
        from dragoman.tools.schema import build

        return build(self._handler)

    def convert(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the model gave → what the handler takes, without the defaults of the signature.

        Raises:
            ToolError: it does not fit; the text says which argument and what was expected.
        """
        return self._built.convert(given)

    def __getitem__(self, key: str) -> Any:
        return self._built.schema[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._built.schema)

    def __len__(self) -> int:
        return len(self._built.schema)

    def __bool__(self) -> bool:
        return True  # never empty, and asking must not build it

    def __repr__(self) -> str:
        return f"<schema of {name_of(self._handler)}>"


def name_of(handler: Callable[..., Any]) -> str:
    """A handler's qualified name, for messages."""
    return getattr(handler, "__qualname__", None) or repr(handler)


def arguments(handler: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that the model fills, annotations as they are written.

    Raises:
        ToolError: there is no signature, or a parameter that cannot be given by name.
    """
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError) as error:
        raise ToolError(f"{name_of(handler)} has no signature; give the tool an input_schema") from error
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise ToolError(
                f"{name_of(handler)}: a model gives its arguments by name, so {str(parameter)!r} cannot be one; "
                "take a list, or make it a plain parameter"
            )
    return [parameter for parameter in parameters if not _is_context(handler, parameter)]


def context_name(handler: Callable[..., Any]) -> str | None:
    """The name of the parameter that takes the `ToolContext`; `None`: the handler has none."""
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError):
        return None
    return next((parameter.name for parameter in parameters if _is_context(handler, parameter)), None)


def resolve(handler: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The type that a parameter's annotation means; `Any` where there is none.

    Raises:
        ToolError: a name in it is not known in the handler's module.
    """
    if parameter.annotation is parameter.empty:
        return Any
    function = inspect.unwrap(getattr(handler, "func", handler))  # a partial has one
    if not hasattr(function, "__globals__"):
        function = type(function).__call__
    shim: Any = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return get_type_hints(shim, getattr(function, "__globals__", {}), include_extras=True)[parameter.name]
    except (NameError, SyntaxError, TypeError, AttributeError) as error:
        raise ToolError(
            f"{name_of(handler)}: the annotation of {parameter.name!r} cannot be read: {error}; "
            "its names must be importable at the top of the handler's module"
        ) from error


def _is_context(handler: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, str):
        if _CONTEXT.search(annotation):  # its type argument may exist for type checkers only
            return True
        try:
            annotation = resolve(handler, parameter)
        except ToolError:
            return False
    return _mentions_context(annotation)


def _mentions_context(annotation: Any) -> bool:
    return ToolContext in (annotation, get_origin(annotation)) or any(map(_mentions_context, get_args(annotation)))
