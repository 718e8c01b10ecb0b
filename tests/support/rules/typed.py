"""Whether JSON is of an official client's type, to the letter: a `TypedDict`, a pydantic model, or
what they are made of.

Stricter than the clients themselves, which pass over fields that they do not know and over what is
inside an `Iterable`.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel
from typing_extensions import ReadOnly, TypeAliasType, get_type_hints, is_typeddict

__all__ = ["faults"]

_WRAPPERS = (Annotated, Required, NotRequired, ReadOnly)
_SCALARS = {str: str, int: int, float: (int, float), bool: bool, bytes: str, type(None): type(None)}


def faults(value: Any, type_: Any, where: str = "") -> list[str]:
    """What is wrong with a value, each with its place; nothing: it is of the type."""
    origin, arguments = get_origin(type_), get_args(type_)
    if isinstance(type_, TypeAliasType):
        return faults(value, type_.__value__, where)
    if isinstance(origin, TypeAliasType):
        return faults(value, origin.__value__[arguments], where)
    if origin in _WRAPPERS:
        return faults(value, arguments[0], where)
    if type_ in (Any, object):
        return []
    if origin in (Union, types.UnionType):
        return _of_any(value, arguments, where)
    if origin is Literal:
        return [] if value in arguments else [f"{where}: {value!r} is none of {arguments}"]
    if type_ in _SCALARS:
        fits = isinstance(value, _SCALARS[type_]) and (type_ is bool or not isinstance(value, bool))
        return [] if fits else [f"{where}: {value!r:.80} is no {type_.__name__}"]
    if is_typeddict(type_) or (isinstance(type_, type) and issubclass(type_, BaseModel)):
        return list(_of_fields(value, type_, where))
    if isinstance(type_, type) and issubclass(type_, Enum):
        return (
            []
            if value in [each.value for each in type_]
            else [f"{where}: {value!r} is no {type_.__name__}"]
        )
    container = origin or type_
    if container in (list, Iterable, Sequence):
        if not isinstance(value, list):
            return [f"{where}: {value!r:.80} is no list"]
        return [
            fault
            for n, each in enumerate(value)
            for fault in faults(each, *arguments[:1], f"{where}[{n}]")
        ]
    if container in (dict, Mapping):
        if not isinstance(value, dict):
            return [f"{where}: {value!r:.80} is no object"]
        return [
            f
            for k, v in value.items()
            for f in faults(v, arguments[1] if arguments else Any, f"{where}.{k}")
        ]
    if isinstance(container, type):  # a class that JSON cannot be, such as a file's
        return [f"{where}: {value!r:.80} is no {container.__name__}"]
    raise TypeError(f"the checker does not know {type_!r}")


def _of_any(value: Any, variants: Sequence[Any], where: str) -> list[str]:
    """The faults of the variant that has the fewest; of several, the one that calls itself what the
    value does."""
    told: list[list[str]] = []
    for variant in variants:
        told.append(faults(value, variant, where))
        if not told[-1]:
            return []
    named = [
        each
        for each in told
        if not any(f.startswith((f"{where}.type:", f"{where}.role:")) for f in each)
    ]
    deeper = [each for each in named if not each[0].startswith(f"{where}:")]
    return min(deeper or named or told, key=len)


def _of_fields(value: Any, type_: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: {value!r:.80} is no object"
        return
    fields, required = _fields(type_)
    yield from (f"{where}.{name}: it is missing" for name in sorted(required - value.keys()))
    for name, each in value.items():
        if name in fields:
            yield from faults(each, fields[name], f"{where}.{name}")
        else:
            yield f"{where}.{name}: {type_.__name__} has no such field"


@cache
def _fields(type_: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Names of the fields in JSON → their types, and the names of those that must be there."""
    if is_typeddict(type_):
        hints = get_type_hints(type_, include_extras=True)
        needed = {
            name for name, hint in hints.items() if get_origin(hint) is Required
        } | type_.__required_keys__
        return hints, frozenset(
            name for name in needed if get_origin(hints[name]) is not NotRequired
        )
    fields = type_.model_fields
    if any(isinstance(field.annotation, (str, ForwardRef)) for field in fields.values()):
        raise TypeError(f"{type_} has types that are not resolved")
    names = {name: _alias(type_, name) for name in fields}
    return (
        {names[name]: field.annotation for name, field in fields.items()},
        frozenset(names[name] for name, field in fields.items() if field.is_required()),
    )


def _alias(type_: Any, name: str) -> str:
    """A field's name in JSON. Cohere's client writes it as metadata beside the type."""
    field = type_.model_fields[name]
    told = [each.alias for each in field.metadata if type(each).__name__ == "FieldMetadata"]
    return field.serialization_alias or field.alias or (told[0] if told else name)
