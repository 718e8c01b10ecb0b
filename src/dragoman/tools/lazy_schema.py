"""The schema of a handler's arguments, built when it is first read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dragoman.tools.signature import arguments, name_of

if TYPE_CHECKING:
    from dragoman.tools.schema import Arguments

__all__ = ["SignatureSchema"]


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
