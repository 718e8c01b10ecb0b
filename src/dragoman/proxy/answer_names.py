"""Finds the names in an answer that the code of its wire does not have.

A name of a field, or a type, counts as known if the wire's code names it, or the request did, which
some answers repeat. Any other is a finding, unless the decoded messages depend on it: then it is the
model's own, as the names in a call's arguments are. So each candidate is left out, and the answer is
decoded once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import count
from pkgutil import iter_modules
from types import CodeType
from typing import Any, NamedTuple, cast

from dragoman import json_bytes, wires
from dragoman.errors import DragomanError
from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.json_bytes import Json, JsonMap

__all__ = ["AnswerNames", "decode_answer"]

_SHARED = ("dragoman.wires.chat", "dragoman.codec")
"""Packages whose code the wires share."""
_MOST_TRIED = 200
"""Names of one answer that are tried."""
_LEAST_TRIED = 5
_MOST_WORK = 2**22
"""Bytes of answers that are decoded for the names of one."""
_OTHER_TYPE = "dragoman-drift"
_EMPTY: tuple[object, ...] = (None, "", 0, [], {})
"""Values that say nothing."""
Kind = str
"""`type`, `dropped` or `kept`, as in `drift.DriftFinding`."""


class _Unknown(NamedTuple):
    """A name in an answer that is not known."""

    path: tuple[str, ...]
    key: str
    """`type` if it is that of an object."""


def decode_answer(wire: str, body: bytes) -> tuple[list[Json], list[DragomanError]]:
    """Returns the messages of an answer as JSON, and its errors."""
    numbers = count()
    decoder = wires.get(wire).decoder(new_id=lambda: f"id-{next(numbers)}")
    events = [*decoder.feed(body), *decoder.close()]
    errors = [event.error for event in events if isinstance(event, RunError)]
    return [json_bytes.decode(message.to_json()) for message in fold(events)], errors


class AnswerNames:
    """The names in one answer.

    Args:
        wire: the name of its wire.
        body: a whole answer, or a stream.
        request: the body of the request; what it names is no news.
    """

    def __init__(self, wire: str, body: bytes, request: object) -> None:
        """Decodes an answer."""
        self._wire = wire
        self._familiar = _names_in_code(wire).union(_list_keys(request), _list_types(request))
        self._lines = _split_lines(body)
        self._tries = min(_MOST_TRIED, max(_LEAST_TRIED, _MOST_WORK // (len(body) + 1)))
        messages, _ = decode_answer(wire, self._join(lambda frame: frame))
        self._neutral = _drop_native(messages)
        self._decoded_keys = set(_list_keys(messages))
        self._decoded_text = "\n".join(_list_texts(messages))

    def find_unknown(self) -> Iterator[tuple[Kind, str]]:
        """Yields the findings: kind, and path, in which `<text>` is the type of an object."""
        candidates: dict[tuple[str, ...], _Unknown] = {}
        for _, frame in self._lines:
            for unknown, holder in _walk(frame, (), self._familiar):
                # A field that several events of a stream repeat is one finding.
                if not self._is_repetition(unknown, holder):
                    candidates.setdefault((*unknown.path[-2:], unknown.key), unknown)
        for unknown in list(candidates.values())[: self._tries]:
            if not self._depends_on(unknown):
                yield self._kind_of(unknown), ".".join(unknown.path)

    def _kind_of(self, unknown: _Unknown) -> Kind:
        if unknown.key == "type":
            return "type"
        return "kept" if unknown.key in self._decoded_keys else "dropped"

    def _is_repetition(self, unknown: _Unknown, holder: Json) -> bool:
        """True for an event of a stream that tells nothing new but names of things."""
        is_event = unknown.key == "type" and len(unknown.path) == 1
        return is_event and all(text in self._decoded_text for text in _list_texts(holder))

    def _depends_on(self, unknown: _Unknown) -> bool:
        """True if the messages are others without a field, or with another type."""

        def change(frame: Any) -> Any:
            changed = json_bytes.decode(json_bytes.encode(frame))
            for other, holder in list(_walk(changed, (), self._familiar)):
                # Without its type an object cannot be decoded at all.
                if other == unknown and unknown.key == "type":
                    holder["type"] = _OTHER_TYPE
                elif other == unknown:
                    del holder[unknown.key]
            return changed

        messages, _ = decode_answer(self._wire, self._join(change))
        return _drop_native(messages) != self._neutral

    def _join(self, change: Callable[[Any], Any]) -> bytes:
        """Returns the answer's body with each piece of JSON changed."""
        return b"\n".join(
            before if frame is None else before + json_bytes.encode(change(frame))
            for before, frame in self._lines
        )


def _split_lines(body: bytes) -> list[tuple[bytes, Any]]:
    """Returns the lines of a body: what is before their JSON, and the JSON, or None."""
    whole = _load(body)
    if whole is not None:
        return [(b"", whole)]
    lines: list[tuple[bytes, Any]] = []
    # Not splitlines, which cuts at characters that JSON may hold.
    for line in body.replace(b"\r\n", b"\n").split(b"\n"):
        prefix = b"data: " if line.startswith(b"data:") else b""
        frame = _load(line[5:] if prefix else line)
        lines.append((line, None) if frame is None else (prefix, frame))
    return lines


def _load(text: bytes) -> Any:
    """Returns the object or list in a text, or None if it is none."""
    try:
        value = json_bytes.decode(text)
    except ValueError:
        return None
    return cast("object", value) if isinstance(value, dict | list) else None


def _walk(
    value: Any, path: tuple[str, ...], familiar: frozenset[str]
) -> Iterator[tuple[_Unknown, Json]]:
    """Yields what of a value is not known, and the object that has it. What is below an unknown
    name or type is not looked at."""
    if isinstance(value, list):
        for element in cast("list[Any]", value):
            yield from _walk(element, path, familiar)
    if not isinstance(value, dict):
        return
    holder = cast("Json", value)
    if _is_name(tag := holder.get("type")):
        path = (*path[:-1], f"{path[-1] if path else ''}<{tag}>")
        if tag not in familiar:
            yield _Unknown(path, "type"), holder
            return
    for key, inner in list(holder.items()):
        if key in familiar:
            yield from _walk(inner, (*path, key), familiar)
        elif inner not in _EMPTY:
            yield _Unknown((*path, key), key), holder


def _is_name(tag: object) -> bool:
    """True for the name of a type, such as `response.completed` or `message-start`."""
    return isinstance(tag, str) and tag.replace(".", "_").replace("-", "_").isidentifier()


def _drop_native(value: Any) -> Any:
    """Returns messages without what only their own provider reads."""
    if isinstance(value, list):
        return [_drop_native(element) for element in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("JsonMap", value)
    left_out = ("native", "kind") if fields.get("type") == "provider" else ("native",)
    return {key: _drop_native(inner) for key, inner in fields.items() if key not in left_out}


def _list_objects(value: object) -> Iterator[JsonMap]:
    """Yields all objects in a value."""
    if isinstance(value, list):
        for element in cast("list[object]", value):
            yield from _list_objects(element)
    elif isinstance(value, dict):
        fields = cast("JsonMap", value)
        yield fields
        for inner in fields.values():
            yield from _list_objects(inner)


def _list_keys(value: object) -> Iterator[str]:
    """Yields the keys of all objects in a value."""
    return (key for fields in _list_objects(value) for key in fields)


def _list_types(value: object) -> Iterator[str]:
    """Yields the types of all objects in a value."""
    types = (fields.get("type") for fields in _list_objects(value))
    return (tag for tag in types if isinstance(tag, str))


def _list_texts(value: object) -> Iterator[str]:
    """Yields the texts in the objects of a value that are neither ids nor types."""
    return (
        text
        for fields in _list_objects(value)
        for key, text in fields.items()
        if isinstance(text, str) and not key.endswith(("id", "type"))
    )


@cache
def _names_in_code(wire: str) -> frozenset[str]:
    """Returns the names in the code of a wire: of attributes, and texts that are one name."""
    names: set[str] = set()
    package = getattr(wires.get(wire), "__name__", None)
    for name in (*([package] if package else []), *_SHARED):
        module = import_module(name)
        inner = [entry.name for entry in iter_modules(getattr(module, "__path__", ()))]
        for full_name in (name, *(f"{name}.{entry}" for entry in inner)):
            _collect_names(_read_code(full_name), names)
    return frozenset(names)


def _read_code(module: str) -> CodeType | None:
    """Returns the code of a module, or None if it has none."""
    loader: Any = getattr(import_module(module).__spec__, "loader", None)
    return loader.get_code(module) if hasattr(loader, "get_code") else None


def _collect_names(constant: object, names: set[str]) -> None:
    """Adds the names in a constant of code, and in code itself."""
    if isinstance(constant, str):
        names.add(constant)
    elif isinstance(constant, tuple | frozenset):
        for element in cast("Iterable[object]", constant):
            _collect_names(element, names)
    elif isinstance(constant, CodeType):
        names.update(constant.co_names)
        _collect_names(constant.co_consts, names)
