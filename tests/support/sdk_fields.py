"""Every field of the request types of the vendors' official libraries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ForwardRef, Literal, NamedTuple, NotRequired, Required, get_args, get_origin

import pydantic
from typing_extensions import get_type_hints, is_typeddict

__all__ = ["Fields", "kinds_of"]

TAGS = ("type", "role")


class Fields(NamedTuple):
    """The fields of one kind of object."""

    tag: str
    """The field that says the kind; empty: none does."""
    values: frozenset[str]
    """What that field holds."""
    optional: bool
    """Whether it may be absent."""
    fields: dict[str, tuple[str, ...]]
    """Field → the kinds of the objects in it."""


def kinds_of(root: Any, renamed: Callable[[str], str]) -> dict[str, Fields]:
    """The fields of a type, which is called `request`, and of all types in it. `renamed`: a type's
    name → the one to give it."""
    found: dict[str, Fields] = {}
    waiting: list[tuple[str, Any]] = [("request", root)]
    names: dict[str, Any] = {}
    while waiting:
        name, kind = waiting.pop()
        if name in found:
            continue
        hints = dict(kind) if isinstance(kind, Mapping) else _hints(kind)
        tag = next((field for field in TAGS if field in hints and [*_literals(hints[field])]), "")
        values = frozenset(_literals(hints[tag])) if tag else frozenset[str]()
        fields: dict[str, tuple[str, ...]] = {}
        found[name] = Fields(tag, values, bool(tag) and tag not in _required(kind), fields)
        for field, hint in hints.items():
            inner = {}
            for type_ in () if field == tag else _objects(hint):
                inner[_name(type_, renamed, names)] = type_
            fields[field] = tuple(sorted(inner))
            waiting += inner.items()
    return found


def _name(type_: type, renamed: Callable[[str], str], names: dict[str, Any]) -> str:
    """A name for a type that no other has: libraries have several of one name in different
    modules."""
    short = name = renamed(type_.__name__)
    number = 1
    while names.setdefault(name, type_) is not type_:
        number += 1
        name = f"{short}~{number}"
    return name


def _hints(kind: Any) -> dict[str, Any]:
    if issubclass(kind, pydantic.BaseModel):
        return {
            (field.alias or name): field.annotation for name, field in kind.model_fields.items()
        }
    return get_type_hints(kind)


def _required(kind: Any) -> set[str]:
    if isinstance(kind, Mapping):
        return set()
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {
            name
            for name, hint in hints.items()
            if get_origin(hint) is Required
            or (kind.__total__ and get_origin(hint) is not NotRequired)
        }
    return {field.alias or name for name, field in kind.model_fields.items() if field.is_required()}


def _literals(hint: Any) -> Iterator[str]:
    if get_origin(hint) is Literal:
        yield from (str(value) for value in get_args(hint))
    else:
        for inner in get_args(hint):
            yield from _literals(inner)


def _objects(hint: Any, aliases: tuple[Any, ...] = ()) -> Iterator[type]:
    """The types of objects in a hint, without those of which it says no more than that they are
    mappings. `aliases`: those that the hint is the value of, as some hold themselves."""
    if inspect.isclass(hint) and hint.__name__ == "Unset":
        return
    if is_typeddict(hint) or (inspect.isclass(hint) and issubclass(hint, pydantic.BaseModel)):
        yield hint
        return
    origin = get_origin(hint)
    if isinstance(hint, ForwardRef | str) or (
        inspect.isclass(origin) and issubclass(origin, Mapping)
    ):
        return
    if hasattr(hint, "__value__") and hint not in aliases:
        yield from _objects(hint.__value__, (*aliases, hint))
    for inner in get_args(hint):
        yield from _objects(inner, aliases)
