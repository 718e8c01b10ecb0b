"""Arguments of a caller's, checked where they are given: a wrong type is named there and never sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

__all__ = ["expect", "expect_callable", "expect_each", "expect_sequence", "wrong"]

T = TypeVar("T")


def expect(name: str, value: object, *kinds: type, hint: str = "") -> None:
    """Raises `TypeError` where a value is not of one of these types. `hint`: what to write instead."""
    if not isinstance(value, kinds):
        raise wrong(name, value, " or ".join(map(_called, kinds)), hint)


def expect_callable(name: str, value: object, what: str) -> None:
    """Raises `TypeError` where a value cannot be called; `None` is no value."""
    if value is not None and not callable(value):
        raise wrong(name, value, what)


def expect_each(
    name: str,
    values: Iterable[T],
    *kinds: type,
    hint: Callable[[Any], str] = lambda value: "",  # noqa: ARG005
) -> list[T]:
    """The values as a list. Raises `TypeError` where they are no sequence, or one is not of these types, by its place."""
    given = cast(object, values)
    if type(given) is tuple and not given:  # what is left out, nearly everywhere
        return []
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise wrong(
            name,
            cast(object, given),
            f"a sequence of {' or '.join(map(_called, kinds))}",
            hint(given),
        )
    each = list(values)
    if set(map(type, each)) <= set(
        kinds
    ):  # as nearly always, and seen at once also of a long conversation
        return each
    for place, value in enumerate(cast("list[object]", each)):
        if not isinstance(value, kinds):
            raise wrong(f"{name}[{place}]", value, " or ".join(map(_called, kinds)), hint(value))
    return each


def expect_sequence(name: str, values: Iterable[T], what: str) -> tuple[T, ...]:
    """The values as a tuple. Raises `TypeError` where they are no sequence. `what`: the kind of its values."""
    given = cast(object, values)
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise wrong(name, cast(object, given), f"a sequence of {what}")
    return tuple(values)


def wrong(name: str, value: object, expected: str, hint: str = "") -> TypeError:
    """The error for an argument of a wrong type."""
    given = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    return TypeError(f"{name} must be {expected}, not {given}{f'; {hint}' if hint else ''}")


def _called(kind: type) -> str:
    return {"NoneType": "None"}.get(kind.__name__, kind.__name__)
