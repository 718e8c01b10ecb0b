"""Where a JSON object that comes in pieces ends."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["JsonEnd"]

_MARKS = re.compile(r'\\.|["{}\[\]]|\\\Z', re.DOTALL)
_DEPTH = {"{": 1, "[": 1, "}": -1, "]": -1}


class JsonEnd:
    """Counts the brackets of one text, each piece of it once."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_read", "reached")

    def __init__(self) -> None:
        self.reached = False
        """Whether all that was opened is closed."""
        self._read = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def among(self, pieces: Sequence[str | bytes]) -> bool:
        """Whether the end is among these pieces: all so far, those of earlier calls among them."""
        for place in range(self._read, len(pieces)):
            self._feed(str(pieces[place]))
        self._read = len(pieces)
        return self.reached

    def _feed(self, piece: str) -> None:
        start, self._escaped = int(self._escaped and piece != ""), self._escaped and piece == ""
        for found in _MARKS.finditer(piece, start):
            mark = found[0]
            if mark == '"':
                self._in_string = not self._in_string
            elif self._in_string:
                self._escaped = mark == "\\"
            elif mark in _DEPTH:
                self._depth += _DEPTH[mark]
                self.reached = self._depth == 0
