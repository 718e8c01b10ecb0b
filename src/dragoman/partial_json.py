"""Reads JSON that is still being written. `PartialReader` keeps what is certain of it as a tree, and
the cost of a piece of text depends on that piece alone.

`pydantic_core.from_json(allow_partial=True)` starts at the first character each time, so a text of
100 kB that comes in pieces of 4 characters would be read 25,000 times. The tree here only grows:
a value enters its `Node` once it is whole. So a `Slice`, which says how many values of each open
node count, stays true although the tree goes on growing, and making one copies nothing.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

__all__ = [
    "LONGEST_PATH",
    "Node",
    "GrowingText",
    "PartialReader",
    "Scalar",
    "Slice",
    "Value",
    "to_builtins",
]

Scalar: TypeAlias = str | int | float | bool | None

LONGEST_PATH = 200
"""Objects and lists within each other, at most; what is deeper is not shown before the end."""
_LONGEST_SCALAR = 1000
"""Characters of a number. A longer one has no meaning, and reading it again would cost more each
time."""
_LONGEST_ESCAPE = 12
"""Characters of an escape: two halves of a character beyond the basic plane."""
_TEXT = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_TOKEN = re.compile(r'[\s,:]*(?:([{}\[\]"])|([^\s,:\[\]{}"]+))')


class Node:
    """An object or a list. It holds only values that are whole."""

    __slots__ = ("keys", "open_key", "values")

    def __init__(self, *, is_object: bool) -> None:
        """Starts an object or list of partial JSON."""
        self.values: list[Value] = []
        self.keys: dict[str, int] | None = None
        """Key → index of its value; `None` for a list."""
        if is_object:
            self.keys = {}
        self.open_key: str | None = None
        """The key of an object whose value is being written."""

    def add(self, value: Value) -> None:
        """Adds a whole value to an object or list of partial JSON. Of two with one key the first
        stays, because it was shown."""
        if self.keys is not None:
            key, self.open_key = self.open_key or "", None
            if key in self.keys:
                return
            self.keys[key] = len(self.values)
        self.values.append(value)

    def whole(self) -> Slice:
        """Returns all of it, once it has ended."""
        return Slice(self, len(self.values))


def to_builtins(value: Value) -> object:
    """Returns a whole value as plain dicts and lists."""
    if not isinstance(value, Node):
        return value
    if value.keys is None:
        return [to_builtins(element) for element in value.values]
    return {key: to_builtins(value.values[index]) for key, index in value.keys.items()}


class GrowingText:
    """A text that is being written, as far as it had come."""

    __slots__ = ("_count", "_pieces")

    def __init__(self, pieces: list[str]) -> None:
        self._pieces, self._count = pieces, len(pieces)

    def read(self) -> str:
        """Returns the text of partial JSON, as far as it has come. An escape at its end that is not
        whole is left out."""
        raw = "".join(self._pieces[: self._count])
        for cut in range(min(_LONGEST_ESCAPE, len(raw)) + 1):
            try:
                return _decode_text(raw[: len(raw) - cut])
            except ValueError:
                continue
        return ""


class Slice:
    """An object or a list as it was at one time: its first values, and the one that was open."""

    __slots__ = ("count", "node", "open", "open_key")

    def __init__(
        self,
        node: Node,
        count: int,
        open_key: str | None = None,
        open: Slice | GrowingText | None = None,  # noqa: A002
    ) -> None:
        """Shows the first `count` values of a node of partial JSON, and what of it is open."""
        self.node, self.count, self.open_key, self.open = node, count, open_key, open


Value: TypeAlias = Scalar | Node


class PartialReader:
    """Takes pieces of a JSON text. It never raises: from where a text is no JSON on, nothing more
    is certain of it."""

    def __init__(self, *, growing_text: bool = False) -> None:
        """Starts to read partial JSON. `growing_text`: a text counts while it is being written;
        else only a whole one does."""
        self.root: Node | None = None
        """The outermost object or list, once it began."""
        self._growing_text = growing_text
        self._path: list[Node] = []
        self._text: list[str] | None = None
        self._unread = ""
        self._has_ended = False

    def feed(self, text: str) -> bool:
        """Takes the next piece of the JSON. Returns True if more is certain than before."""
        text, position, changed = self._unread + text, 0, False
        self._unread = ""
        while not self._has_ended and position < len(text):
            if self._text is None:
                position, more = self._read_token(text, position)
            else:
                position, more = self._read_text(text, position, self._text)
            changed |= more
        return changed

    def slice(self) -> Slice | None:
        """Returns what of the partial JSON is certain so far, or None before the outermost object
        or list began."""
        inner: Slice | GrowingText | None = None
        if self._growing_text and self._text is not None and self._takes_value():
            inner = GrowingText(self._text)
        for node in reversed(self._path):
            inner = Slice(node, len(node.values), node.open_key, inner)
        if inner is None and self.root is not None:
            return self.root.whole()
        return inner if isinstance(inner, Slice) else None

    def _takes_value(self) -> bool:
        """True if in the partial JSON a value comes next, and no key."""
        if not self._path:
            return False
        node = self._path[-1]
        return node.keys is None or node.open_key is not None

    def _read_text(self, text: str, start: int, pieces: list[str]) -> tuple[int, bool]:
        """Reads on in a text of partial JSON. Returns the index behind it, and whether more is
        certain."""
        match = _TEXT.match(text, start)
        assert match is not None
        end = match.end()
        if end > start:
            pieces.append(text[start:end])
        if end == len(text) or text[end] != '"':
            # A backslash waits for what it escapes.
            self._unread = text[end:]
            return len(text), self._growing_text and end > start and self._takes_value()
        self._text = None
        return end + 1, self._add_text("".join(pieces))

    def _add_text(self, raw: str) -> bool:
        """Adds a whole text to the partial JSON, as a key or a value."""
        try:
            value = _decode_text(raw)
        except ValueError:
            self._has_ended = True
            return False
        if self._takes_value():
            self._path[-1].add(value)
            return True
        if self._path and self._path[-1].keys is not None:
            self._path[-1].open_key = value
        else:
            self._has_ended = True
        return False

    def _read_token(self, text: str, start: int) -> tuple[int, bool]:
        """Reads what comes next in partial JSON outside of a text. Returns the index behind it, and
        whether more is certain."""
        match = _TOKEN.match(text, start)
        if match is None:
            return len(text), False
        mark, scalar = match.groups()
        if mark == '"':
            self._text = []
            return match.end(), self._growing_text and self._takes_value()
        if mark is not None:
            change = self._open if mark in "{[" else self._close
            return match.end(), change(mark)
        # A number at the end may go on in the next piece.
        if match.end() == len(text):
            self._unread = scalar
            self._has_ended = len(scalar) > _LONGEST_SCALAR
            return match.end(), False
        return match.end(), self._add_scalar(scalar)

    def _open(self, mark: str) -> bool:
        """Opens an object or list of the partial JSON."""
        is_placed = self._takes_value() or self.root is None
        self._has_ended = not is_placed or len(self._path) == LONGEST_PATH
        if self._has_ended:
            return False
        node = Node(is_object=mark == "{")
        self.root = self.root or node
        self._path.append(node)
        return True

    def _close(self, mark: str) -> bool:
        """Ends the innermost object or list of the partial JSON, which is then a value of the one
        around it."""
        if not self._path or (self._path[-1].keys is not None) is not (mark == "}"):
            self._has_ended = True
            return False
        node = self._path.pop()
        if self._path:
            self._path[-1].add(node)
        self._has_ended = not self._path
        # All that is in it was certain before.
        return False

    def _add_scalar(self, text: str) -> bool:
        """Adds a number, true, false or null to the partial JSON."""
        try:
            value: Scalar = msgspec.json.decode(text, type=int | float | bool | None)
        except ValueError:
            self._has_ended = True
            return False
        self._has_ended = not self._takes_value()
        if not self._has_ended:
            self._path[-1].add(value)
        return not self._has_ended


def _decode_text(raw: str) -> str:
    """Returns a text of partial JSON without its escapes.

    Raises:
        ValueError: it has one that is none.
    """
    if "\\" not in raw:
        return raw
    return msgspec.json.decode(f'"{raw}"', type=str)
