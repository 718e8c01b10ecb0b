"""A light check of a value against a JSON Schema that was given as it is: types, required keys,
choices.

Schema and value may both be somebody else's: a client brings the schema of an answer, a server of
tools that of its arguments. The work is therefore bounded: each step, a part of the schema held
against a part of the value, is counted, and a check that needs more than `MOST_STEPS` ends with a
fault that says so. No keyword that takes a pattern (`pattern`, `format`) is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from dragoman.errors import ToolError
from dragoman.json_bytes import MOST_DEPTH, Json, JsonMap, check_value_depth

__all__ = ["MOST_STEPS", "check", "find_faults"]

MOST_STEPS = 100_000
"""Steps of one check; about a quarter of a second."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}
_NONE: JsonMap = {}
_DEEPEST = MOST_DEPTH
"""Levels of schema that are followed, `$ref`s among them; what lies deeper is not checked."""
_MOST = 100
"""Faults of one value that are named."""

_SHOWN = 20
"""Choices that a fault lists."""
_COMPARED_A_STEP = 32
"""Small values that are compared in about the time of one step."""


class _TooMuchWorkError(Exception):
    """The check has taken all of its steps."""


class _Check:
    """One check: what it found so far, and the steps that it may still take."""

    def __init__(self, root: JsonMap) -> None:
        """Creates the check of a value against a JSON Schema. `root`: the schema with its
        `$defs`."""
        self.root = root
        self.steps = MOST_STEPS
        self.faults: dict[tuple[int, int, str], Sequence[str]] = {}
        """Schema, value and its place → its faults; none as long as they are being looked for, so
        that no loop is endless."""

    def spend(self, steps: int = 1) -> None:
        """Counts steps of the schema check. Raises an error beyond the limit.

        Raises:
            _TooMuchWorkError: there are none left.
        """
        self.steps -= steps
        if self.steps < 0:
            raise _TooMuchWorkError


def check(schema: JsonMap, arguments: JsonMap) -> None:
    """Checks that a schema can be checked by. Passes over every keyword that it does not know.

    Raises:
        ToolError: an argument is missing or does not fit; the text says which and what was expected.
    """
    if problems := find_faults(schema, arguments):
        raise ToolError("invalid arguments: " + "; ".join(problems))


def find_faults(schema: JsonMap, value: object) -> list[str]:
    """Checks a value by a JSON Schema: returns what is wrong with it, each with its place; keywords
    that are not known are passed over.

    Each value is held against each part of the schema once, however often a `$ref` leads there.
    """
    try:
        check_value_depth(value)
        return list(_check_value(schema, value, "", 0, _Check(schema)))
    except ValueError as error:
        return [f"the value: {error}"]
    except _TooMuchWorkError:
        return [
            f"the value: it takes more than {MOST_STEPS:,} steps to check against its schema; simplify the schema"
        ]


def _check_value(
    schema: object, value: object, where: str, depth: int, check: _Check
) -> Sequence[str]:
    """Returns the faults of a value under a schema, each pair checked once."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return ()
    rule = cast("JsonMap", schema)
    key = (id(rule), id(value), where)
    if key not in check.faults:
        # Noted as faultless while it is looked at: a `$ref` that leads back here ends.
        check.spend()
        check.faults[key] = ()
        distinct = dict.fromkeys(islice(_check_rule(rule, value, where, depth, check), _MOST))
        check.faults[key] = tuple(distinct)
    return check.faults[key]


def _check_rule(
    rule: JsonMap, value: object, where: str, depth: int, check: _Check
) -> Iterator[str]:
    """Yields the faults of a value under one schema object: reference, type, choices, members."""
    label = where or "the value"
    if isinstance(reference := rule.get("$ref"), str):
        yield from _check_value(
            _resolve_reference(reference, check.root), value, where, depth + 1, check
        )
    if (names := _as_list(rule.get("type"))) and not any(
        _has_json_type(value, name) for name in names
    ):
        yield f"{label}: should be {' or '.join(map(str, names[:_SHOWN]))}, got {value!r:.100}"
        return
    if isinstance(enum := rule.get("enum"), Sequence):
        choices = cast("Sequence[Any]", enum)
        check.spend(len(choices) * _weigh_comparison(value) // _COMPARED_A_STEP)
        if value not in choices:
            yield f"{label}: should be one of {_show_choices(choices)}, got {value!r:.100}"
    if "const" in rule:
        check.spend(_weigh_comparison(value) // _COMPARED_A_STEP)
    if "const" in rule and value != rule["const"]:
        yield f"{label}: should be {rule['const']!r:.300}, got {value!r:.100}"
    if isinstance(either := rule.get("anyOf"), Sequence):
        yield from _check_options(cast("Sequence[Any]", either), value, where, depth, check)
    if isinstance(value, dict):
        yield from _check_object(rule, cast("Json", value), where, depth, check)
    elif isinstance(value, (list, tuple)) and "items" in rule:
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _check_value(rule["items"], item, f"{where}[{index}]", depth + 1, check)


def _check_options(
    options: Sequence[Any], value: object, where: str, depth: int, check: _Check
) -> Iterator[str]:
    """Yields the fault of the option of a schema (`anyOf`) that fits best; nothing if one fits."""
    best: Sequence[str] | None = None
    for option in options:
        option_faults = _check_value(option, value, where, depth + 1, check)
        if not option_faults:
            return
        if best is None or len(option_faults) < len(best):
            best = option_faults
    if best:
        yield best[0]


def _weigh_comparison(value: object) -> int:
    """Returns what it costs the schema check to compare a value with another, in small values;
    counted up to what no check can pay."""
    weight, level = 0, [value]
    while level and weight < MOST_STEPS * _COMPARED_A_STEP:
        item = level.pop()
        weight += 1 + (len(item) >> 10 if isinstance(item, str) else 0)
        if isinstance(item, (list, tuple)):
            level.extend(cast("list[Any]", item))
        elif isinstance(item, dict):
            level.extend(cast("Json", item).values())
    return weight


def _show_choices(choices: Sequence[Any]) -> str:
    more = ["…"] if len(choices) > _SHOWN else []
    return ", ".join([*(f"{choice!r:.300}" for choice in choices[:_SHOWN]), *more])


def _check_object(
    rule: JsonMap, value: JsonMap, where: str, depth: int, check: _Check
) -> Iterator[str]:
    """Yields the faults of an object by its schema: missing keys, members, unexpected keys."""
    declared: Any = rule.get("properties")
    properties: JsonMap = cast("JsonMap", declared) if isinstance(declared, Mapping) else _NONE
    prefix = f"{where}." if where else ""
    for name in _as_list(rule.get("required")):
        if name not in value:
            yield f"{prefix}{name}: is required, but was not given"
    for name, item in value.items():
        check.spend()
        if name in properties:
            yield from _check_value(properties[name], item, f"{prefix}{name}", depth + 1, check)
        elif rule.get("additionalProperties") is False:
            yield f"{prefix}{name}: is not asked for"


def _resolve_reference(reference: str, root: JsonMap) -> Any:
    """Returns what a `$ref` within the schema means; `None`: nothing that is there."""
    target: Any = root
    for step in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        if isinstance(target, Mapping):
            target = cast("JsonMap", target).get(step)
        else:
            target = None
    return target


def _as_list(value: object) -> Sequence[Any]:
    """Returns a value of a schema as a list: a single text as a list of one, anything else as an
    empty list."""
    if isinstance(value, (list, tuple)):
        return cast("list[Any]", value)
    if isinstance(value, str):
        return [value]
    return []


def _has_json_type(value: object, name: object) -> bool:
    """Returns whether a value has a JSON type of the schema. Unknown types match anything."""
    if not isinstance(name, str) or name not in _TYPES:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])
