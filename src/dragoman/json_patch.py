"""JSON Patch (RFC 6902) on a value that is changed in place, all operations or none, within bounds.

A peer chooses the patches: a remote agent's stream changes the state that we share with it, at any
rate. Applying an operation therefore costs what the operation holds, not what the state holds.
Nothing is copied but what an operation adds; a failed patch is undone step by step. The two
operations that let a few bytes grow a state without bound are limited: `copy` takes at most
`MOST_COPIED` of weight, and the whole may weigh `MOST_WEIGHT`.

The weight of a value is about its length as JSON. It is counted exactly only now and then: a patch
adds what it adds to an estimate, and where that is over twice the limit the state is weighed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from dragoman.json_bytes import MOST_DEPTH, Json, JsonMap, check_value_depth

__all__ = [
    "MOST_COPIED",
    "MOST_WEIGHT",
    "PatchError",
    "PatchTooLargeError",
    "PatchedValue",
    "copy_value",
    "weigh",
]

MOST_WEIGHT = 16 * 2**20
"""Weight of a state, about its bytes as JSON."""
MOST_COPIED = 2**16
"""Weight of what one operation copies, or moves to a deeper place."""
_VALUE_WEIGHT = 16
_Undo = Callable[[], object]
_MISSING: Any = object()


class PatchError(ValueError):
    """An operation that is none, or that does not fit the value."""


class PatchTooLargeError(PatchError):
    """A value that is larger than a state may be."""


class PatchedValue:
    """A JSON value that patches change in place. It owns its value: give it one that nobody else
    changes."""

    def __init__(self, value: object = None) -> None:
        """Starts with a value that JSON patches change. Raises `PatchTooLargeError` if the value is
        larger than a state may be."""
        self.value = value
        self._estimate = weigh(value)
        _check_weight(self._estimate)

    def patch(self, operations: Iterable[JsonMap]) -> None:
        """Applies all operations of a JSON patch, or none.

        Raises:
            PatchError: one does not fit; its place in the patch is named.
            PatchTooLargeError: the value would be too large.
        """
        undos: list[_Undo] = []
        before = self._estimate
        try:
            for number, operation in enumerate(operations):
                try:
                    self._apply_operation(operation, undos)
                except PatchTooLargeError:
                    raise
                except PatchError as error:
                    raise PatchError(f"operation {number}: {error}") from error
            self._check_growth()
        except BaseException:
            for undo in reversed(undos):
                undo()
            self._estimate = before
            raise

    def _apply_operation(self, operation: JsonMap, undos: list[_Undo]) -> None:
        """Applies one patch operation, and adds what undoes it to `undos`."""
        if not isinstance(cast("object", operation), Mapping):
            raise PatchError("is not an object")
        op = operation.get("op")
        if op not in _KINDS:
            raise PatchError(f"there is no op {op!r:.50}; there are {', '.join(_KINDS)}")
        path = _read_pointer(operation, "path")
        if op in ("add", "replace", "test"):
            if "value" not in operation:
                raise PatchError(f"{op} needs a value")
            if op == "test":
                if not _is_equal(self._find_value(path), operation["value"]):
                    raise PatchError(f"test failed at {_show_path(path)}")
                return
            _check_depth(operation["value"], path)
            value = copy_value(operation["value"])
            self._estimate += weigh(value)
            (self._add_value if op == "add" else self._replace_value)(path, value, undos)
        elif op == "remove":
            self._remove_value(path, undos)
        elif op == "copy":
            value = self._find_value(_read_pointer(operation, "from"))
            self._estimate += _weigh_moved(value, path)
            self._add_value(path, copy_value(value), undos)
        else:
            self._move_value(_read_pointer(operation, "from"), path, undos)

    def _move_value(self, source: list[str], path: list[str], undos: list[_Undo]) -> None:
        """Moves the patched value at `source` to `path`."""
        if path[: len(source)] == source and path != source:
            raise PatchError("a value cannot be moved into itself")
        value = self._find_value(source)
        # It may nest deeper there.
        if len(path) > len(source):
            _weigh_moved(value, path)
        self._remove_value(source, undos)
        self._add_value(path, value, undos)

    def _add_value(self, path: list[str], value: object, undos: list[_Undo]) -> None:
        """Adds by a patch a value at a path, into a list or an object."""
        if not path:
            self._set_root(value, undos)
            return
        parent, key = self._find_value(path[:-1]), path[-1]
        if isinstance(parent, list):
            items = cast("list[Any]", parent)
            if key == "-":
                index = len(items)
            else:
                index = _read_index(key, len(items) + 1, path)
            items.insert(index, value)
            undos.append(lambda: items.pop(index))
        else:
            self._set_member(_need_object(parent, path), key, value, undos)

    def _replace_value(self, path: list[str], value: object, undos: list[_Undo]) -> None:
        """Replaces the value at a path of the patched value."""
        self._find_value(path)
        if not path:
            self._set_root(value, undos)
            return
        parent, key = self._find_value(path[:-1]), path[-1]
        if isinstance(parent, list):
            items = cast("list[Any]", parent)
            index = _read_index(key, len(items), path)
            old = items[index]
            items[index] = value
            undos.append(lambda: items.__setitem__(index, old))
        else:
            self._set_member(_need_object(parent, path), key, value, undos)

    def _remove_value(self, path: list[str], undos: list[_Undo]) -> None:
        """Removes the value at a path of the patched value."""
        if not path:
            self._set_root(None, undos)
            return
        self._find_value(path)
        parent, key = self._find_value(path[:-1]), path[-1]
        if isinstance(parent, list):
            items = cast("list[Any]", parent)
            index = _read_index(key, len(items), path)
            old = items.pop(index)
            undos.append(lambda: items.insert(index, old))
            return
        members = _need_object(parent, path)
        # A failed patch puts the member back in its place, which a dict can only do by building the
        # order anew.
        if len(members) <= _ORDERED:
            order = list(members)
        else:
            order = None
        old = members.pop(key)
        undos.append(lambda: _restore_member(members, key, old, order))

    def _set_member(self, members: Json, key: str, value: object, undos: list[_Undo]) -> None:
        old = members.get(key, _MISSING)
        members[key] = value
        undos.append(lambda: members.pop(key) if old is _MISSING else members.__setitem__(key, old))

    def _set_root(self, value: object, undos: list[_Undo]) -> None:
        old, self.value = self.value, value
        undos.append(lambda: setattr(self, "value", old))

    def _find_value(self, path: list[str]) -> Any:
        """Returns the value at a path of the patched value. Raises `PatchError` if there is
        none."""
        value = self.value
        for step in path:
            if isinstance(value, list):
                items = cast("list[Any]", value)
                value = items[_read_index(step, len(items), path)]
            elif isinstance(value, dict) and step in value:
                value = cast("Json", value)[step]
            else:
                raise PatchError(f"there is nothing at {_show_path(path)}")
        return value

    def _check_growth(self) -> None:
        """Raises `PatchError` if JSON patches have made the value too large. The size is estimated,
        and measured only when the estimate is far over the limit."""
        if self._estimate > 2 * MOST_WEIGHT:
            self._estimate = weigh(self.value)
            _check_weight(self._estimate)


_KINDS = ("add", "remove", "replace", "move", "copy", "test")
_ORDERED = 1000
"""Members of an object whose order a failed patch restores."""


def weigh(value: object, most: int = 4 * MOST_WEIGHT) -> int:
    """Returns the weight of a JSON value that patches may change: about its length as JSON. Stops
    counting above `most`."""
    weight, values = 0, [value]
    while values and weight <= most:
        item = values.pop()
        weight += _VALUE_WEIGHT
        if isinstance(item, str):
            weight += len(item)
        elif isinstance(item, dict):
            members = cast("Json", item)
            weight += sum(map(len, members))
            values.extend(members.values())
        elif isinstance(item, (list, tuple)):
            values.extend(cast("list[Any]", item))
    return weight


def copy_value(value: object) -> Any:
    """Returns a copy of a patched JSON value that shares no object or list with this one."""
    if isinstance(value, dict):
        return {key: copy_value(item) for key, item in cast("Json", value).items()}
    if isinstance(value, (list, tuple)):
        return [copy_value(item) for item in cast("list[Any]", value)]
    return value


def _check_weight(weight: int) -> None:
    if weight > MOST_WEIGHT:
        raise PatchTooLargeError(f"a state takes {MOST_WEIGHT:,} bytes as JSON at most")


def _weigh_moved(value: object, path: list[str]) -> int:
    """Returns the weight of what a patch operation of a few bytes copies or moves.

    Raises:
        PatchTooLargeError: it is larger than such an operation may take, or would nest too deep.
    """
    weight = weigh(value, MOST_COPIED)
    if weight > MOST_COPIED:
        raise PatchTooLargeError(
            f"copy and move take {MOST_COPIED:,} bytes at most; send the value with add"
        )
    _check_depth(value, path)
    return weight


def _check_depth(value: object, path: list[str]) -> None:
    """Raises `PatchTooLargeError` if a patched value at a path would nest too deep."""
    try:
        check_value_depth(value, MOST_DEPTH - len(path))
    except ValueError as error:
        raise PatchTooLargeError(f"a state nests {MOST_DEPTH} levels at most") from error


def _read_pointer(operation: JsonMap, field: str) -> list[str]:
    """Returns the steps of a JSON Pointer (RFC 6901) in a patch."""
    pointer = operation.get(field)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError(f"{field} must be a JSON Pointer such as /a/0, and is {pointer!r:.100}")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _read_index(step: str, length: int, path: list[str]) -> int:
    """Returns the step of a patch's path as an index of a list. Raises `PatchError` if there is no
    such item."""
    is_number = (
        step.isascii() and step.isdigit() and len(step) < 10 and (step == "0" or step[0] != "0")
    )
    if not is_number or int(step) >= length:
        raise PatchError(f"there is no item {step!r:.50} in the list at {_show_path(path)}")
    return int(step)


def _need_object(value: object, path: list[str]) -> Json:
    if not isinstance(value, dict):
        raise PatchError(f"there is no object or list above {_show_path(path)}")
    return cast("Json", value)


def _restore_member(members: Json, key: str, value: object, order: list[str] | None) -> None:
    members[key] = value
    for name in order or ():
        members[name] = members.pop(name)


def _is_equal(value: object, other: object) -> bool:
    """Returns whether two JSON values are equal for a patch's `test`: 1 equals 1.0, but true does
    not equal 1."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, dict) and isinstance(other, dict):
        first, second = cast("Json", value), cast("Json", other)
        return first.keys() == second.keys() and all(
            _is_equal(first[name], second[name]) for name in first
        )
    if isinstance(value, (list, tuple)) and isinstance(other, (list, tuple)):
        items, other_items = cast("list[Any]", value), cast("list[Any]", other)
        return len(items) == len(other_items) and all(map(_is_equal, items, other_items))
    return value == other


def _show_path(path: list[str]) -> str:
    return repr("".join([f"/{step}" for step in path]))[:200]
