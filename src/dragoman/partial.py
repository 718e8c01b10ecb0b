"""`Partial`: what is certain of a value that a model is still writing.

It is a view of a `Slice` of the text read so far, so making one copies nothing, and it stays as it
is while the model writes on. A `Shape` says which fields the type has; it is looked up only where a
field is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar, cast

from dragoman.codec.json_values import if_list, if_object
from dragoman.json_bytes import Json, JsonMap
from dragoman.partial_json import GrowingText, Node, Slice, Value

__all__ = ["Partial", "Shape", "view"]

T = TypeVar("T", covariant=True)

_Pair: TypeAlias = tuple[Json, Json]
"""The same schema twice: with the keys of the JSON, and with the names of the fields."""


class Shape:
    """The fields of a type, read off its JSON Schema."""

    def __init__(self, pairs: Sequence[_Pair], roots: _Pair) -> None:
        """`pairs`: the schemas of the value. `roots`: those that hold the definitions."""
        self._pairs, self._roots = pairs, roots
        self._children: dict[str | int, Shape] = {}

    @classmethod
    def of(cls, schema: JsonMap = {}, named: JsonMap | None = None) -> Shape:
        """Returns the shape of a schema, by which a `Partial` names its fields. `named`: the schema
        with the names that fields have in Python, where the keys of the JSON are others."""
        roots = dict(schema), dict(named or schema)
        return cls([roots], roots)

    @cached_property
    def keys(self) -> Mapping[str, str]:
        """Maps the names of a `Partial`'s fields in Python to their keys in the JSON."""
        keys_by_name: dict[str, str] = {}
        for pair in self._branches:
            keys, names = _both(pair, "properties")
            # Two fields with one key cannot be told apart.
            if len(keys) == len(names):
                keys_by_name.update(zip(names, keys, strict=True))
        return keys_by_name

    def child(self, key: str | int) -> Shape:
        """Returns the shape of the `Partial` that is under a key or an index."""
        if isinstance(key, int):
            key = min(key, self._prefix_length)
        if key not in self._children:
            self._children[key] = Shape([*self._find_children(key)], self._roots)
        return self._children[key]

    def _find_children(self, key: str | int) -> Iterator[_Pair]:
        if isinstance(key, int):
            return self._find_elements(key)
        return self._find_fields(key)

    @cached_property
    def _prefix_length(self) -> int:
        """The number of first elements that have a schema of their own, as those of a tuple."""
        return max(len(if_list(schema.get("prefixItems"))) for schema, _ in self._branches)

    def _find_elements(self, index: int) -> Iterator[_Pair]:
        """Yields the schemas of the elements of a partial list."""
        for pair in self._branches:
            keyed, named = [if_list(schema.get("prefixItems")) for schema in pair]
            if index < len(keyed):
                yield if_object(keyed[index]), if_object(named[index])
            else:
                yield _both(pair, "items")

    def _find_fields(self, key: str) -> Iterator[_Pair]:
        """Yields the schemas, in JSON's and in Python's names, of a field of a `Partial`."""
        for pair in self._branches:
            keyed, named = _both(pair, "properties")
            if key in keyed:
                schemas = [*named.values()]
                yield if_object(keyed[key]), if_object(schemas[[*keyed].index(key)])
            else:
                yield _both(pair, "additionalProperties")

    @cached_property
    def _branches(self) -> list[_Pair]:
        """Returns the schemas of a `Partial`'s shape, with those that they refer to and those of
        which one holds."""
        branches: list[_Pair] = []
        seen: set[str] = set()
        open_pairs = [*self._pairs]
        while open_pairs:
            pair = open_pairs.pop()
            branches.append(pair)
            reference = pair[0].get("$ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                open_pairs.append(self._follow(reference))
            for key in ("anyOf", "oneOf", "allOf"):
                keyed, named = [if_list(schema.get(key)) for schema in pair]
                open_pairs += zip(map(if_object, keyed), map(if_object, named), strict=False)
        return branches

    def _follow(self, reference: str) -> _Pair:
        name = reference.removeprefix("#/$defs/")
        keyed, named = _both(self._roots, "$defs")
        return if_object(keyed.get(name)), if_object(named.get(name))


def _both(pair: _Pair, key: str) -> _Pair:
    """Returns what both schemas have under a key."""
    return if_object(pair[0].get(key)), if_object(pair[1].get(key))


class Partial(Generic[T]):
    """What is certain of a `T` while it is being written: all that has come whole.

    Of an object it is a `Mapping` whose keys are attributes, too, and of a list a `Sequence`. Their
    values are those of JSON, not yet converted or validated: a date is a text, an object or a list
    is a `Partial`, also a whole one. A field that has not come is `None` as an attribute and missing
    as a key. Before anything has come a `Partial` is empty, and false.

    A field whose name is that of a method of mappings (`items`, `keys`, `values`, `get`) is the
    attribute of that name.
    """

    __slots__ = ("_shape", "_slice")
    __hash__ = None  # pyright: ignore[reportAssignmentType] - as mappings and lists have none

    def __init__(self, slice: Slice | None = None, shape: Shape | None = None) -> None:  # noqa: A002
        self._slice = slice
        self._shape = shape or Shape.of()

    def __getattribute__(self, name: str) -> Any:
        """Returns the partial value's field of that name before anything else, except for what
        begins with an underscore."""
        if not name.startswith("_"):
            shape: Shape = self._shape
            key = shape.keys.get(name)
            if key is not None:
                try:
                    return self[key]
                except (KeyError, TypeError):
                    return None
        return object.__getattribute__(self, name)

    # For type checkers alone: each field is an attribute.
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"the type has no field {name!r}; a key that is no field stands in brackets: partial[{name!r}]"
        )

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __eq__(self, other: object) -> bool:
        return _copy(self) == _copy(other)

    def __repr__(self) -> str:
        return f"Partial({_copy(self)!r})"

    def to_builtins(self) -> Any:
        """Returns a copy as plain dicts and lists, to be written as JSON; None before anything has
        come."""
        return _copy(self)


class _Object(Partial[T], Mapping[str, Any]):
    """An object."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        """Returns the value of a key of a partial object."""
        part = _slice_of(self)
        index = (part.node.keys or {}).get(key, part.count)
        if index < part.count:
            return _show(part.node.values[index], self._shape, key)
        if part.open is not None and key == part.open_key:
            return _show(part.open, self._shape, key)
        raise KeyError(key)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        """Yields the keys of a partial object that have come."""
        part = _slice_of(self)
        keys = part.node.keys or {}
        yield from islice(keys, part.count)
        key = part.open_key
        if part.open is not None and key is not None and keys.get(key, part.count) >= part.count:
            yield key


class _List(Partial[T], Sequence[Any]):
    """A list."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        """Returns an element of a partial list, or a slice of it."""
        part = _slice_of(self)
        if isinstance(key, slice):
            return [self[index] for index in range(*key.indices(len(self)))]
        index: int = key + len(self) if key < 0 else key
        if 0 <= index < part.count:
            return _show(part.node.values[index], self._shape, index)
        if part.open is not None and index == part.count:
            return _show(part.open, self._shape, index)
        raise IndexError(f"the list has {len(self)} elements so far")

    def __len__(self) -> int:
        part = _slice_of(self)
        return part.count + (part.open is not None)

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]


def _copy(value: object) -> object:
    """Returns a `Partial` as plain dicts and lists, and any other value as it is."""
    if isinstance(value, _Object):
        return {key: _copy(value[key]) for key in value}
    if isinstance(value, _List):
        return [_copy(element) for element in value]
    return None if isinstance(value, Partial) else value


def view(part: Slice | None, shape: Shape) -> Partial[Any]:
    """Returns the `Partial` that shows a slice."""
    if part is None:
        return Partial(None, shape)
    if part.node.keys is None:
        return _List(part, shape)
    return _Object(part, shape)


def _slice_of(partial: Partial[Any]) -> Slice:
    return cast("Slice", object.__getattribute__(partial, "_slice"))


def _show(value: Value | Slice | GrowingText, shape: Shape, key: str | int) -> Any:
    """Returns a partial value as a `Partial` shows it."""
    if isinstance(value, GrowingText):
        return value.read()
    if isinstance(value, Node):
        value = value.whole()
    if isinstance(value, Slice):
        return view(value, shape.child(key))
    return value
