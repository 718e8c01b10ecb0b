"""A light check of a value against a JSON Schema that was given as it is: types, required keys, choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias, cast

from dragoman.errors import ToolError
from dragoman.json_bytes import MOST_DEPTH, bound_value

__all__ = ["check", "faults"]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}
_NONE: Mapping[str, Any] = {}
_DEEPEST = MOST_DEPTH
"""Levels of schema that are followed, `$ref`s among them; what lies deeper is not checked."""
_MOST = 100
"""Faults of one value that are named."""

_Known: TypeAlias = dict[tuple[int, int, str], Sequence[str]]
"""Schema, value and its place → its faults; none as long as they are being looked for, so that no loop is endless."""


def check(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Passes over every keyword that it does not know.

    Raises:
        ToolError: an argument is missing or does not fit; the text says which and what was expected.
    """
    if found := faults(schema, arguments):
        raise ToolError("invalid arguments: " + "; ".join(found))


def faults(schema: Mapping[str, Any], value: Any) -> list[str]:
    """What is wrong with a value, each with its place; keywords that are not known are passed over.

    Each value is held against each part of the schema once, however often a `$ref` leads there.
    """
    try:
        bound_value(value)
    except ValueError as error:
        return [f"the value: {error}"]
    return list(_faults(schema, value, "", schema, 0, {}))


def _faults(schema: Any, value: Any, where: str, root: Mapping[str, Any], depth: int, known: _Known) -> Sequence[str]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return ()
    rule = cast("Mapping[str, Any]", schema)
    key = (id(rule), id(value), where)
    if key not in known:
        known[key] = ()
        found = dict.fromkeys(_found(rule, value, where, root, depth, known))
        known[key] = tuple(islice(found, _MOST))
    return known[key]


def _found(
    rule: Mapping[str, Any], value: Any, where: str, root: Mapping[str, Any], depth: int, known: _Known
) -> Iterator[str]:
    place = where or "the value"
    if isinstance(reference := rule.get("$ref"), str):
        yield from _faults(_resolved(reference, root), value, where, root, depth + 1, known)
    if (names := _listed(rule.get("type"))) and not any(_is(value, name) for name in names):
        yield f"{place}: should be {' or '.join(map(str, names))}, got {value!r:.100}"
        return
    if isinstance(choices := rule.get("enum"), Sequence) and value not in choices:
        yield f"{place}: should be one of {', '.join(map(repr, cast('Sequence[Any]', choices)))}, got {value!r:.100}"
    if "const" in rule and value != rule["const"]:
        yield f"{place}: should be {rule['const']!r}, got {value!r:.100}"
    if isinstance(either := rule.get("anyOf"), Sequence):
        options = [_faults(one, value, where, root, depth + 1, known) for one in cast("Sequence[Any]", either)]
        if options and all(options):
            yield min(options, key=len)[0]
    if isinstance(value, dict):
        yield from _of_object(rule, cast("dict[str, Any]", value), where, root, depth, known)
    elif isinstance(value, (list, tuple)) and "items" in rule:
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _faults(rule["items"], item, f"{where}[{index}]", root, depth + 1, known)


def _of_object(
    rule: Mapping[str, Any], value: Mapping[str, Any], where: str, root: Mapping[str, Any], depth: int, known: _Known
) -> Iterator[str]:
    found: Any = rule.get("properties")
    properties: Mapping[str, Any] = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else _NONE
    prefix = f"{where}." if where else ""
    for name in _listed(rule.get("required")):
        if name not in value:
            yield f"{prefix}{name}: is required, but was not given"
    for name, item in value.items():
        if name in properties:
            yield from _faults(properties[name], item, f"{prefix}{name}", root, depth + 1, known)
        elif rule.get("additionalProperties") is False:
            yield f"{prefix}{name}: is not asked for"


def _resolved(reference: str, root: Mapping[str, Any]) -> Any:
    """What a `$ref` within the schema means; `None`: nothing that is there."""
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        found = cast("Mapping[str, Any]", found).get(step) if isinstance(found, Mapping) else None
    return found


def _listed(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, (list, tuple)) else [value] if isinstance(value, str) else []


def _is(value: Any, name: Any) -> bool:
    if not isinstance(name, str) or name not in _TYPES:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])
