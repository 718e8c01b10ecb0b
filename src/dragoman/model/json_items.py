"""A JSON array that is still being written → its elements, as text, each as soon as it is whole. Sans-I/O."""

from __future__ import annotations

__all__ = ["JsonItems"]


class JsonItems:
    """Cuts the text of one JSON array into the texts of its elements. What it is given may be cut anywhere.

    It trusts its writer to write JSON: it tells elements apart and leaves their reading, and their errors, to others.
    """

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._begin = 0
        self._depth = 0
        self._quoted = False

    @property
    def rest(self) -> str:
        """The text of the element that is not whole yet; `""`: none is begun. All of it, where it is no array."""
        return self._text[self._begin :].strip(" \t\r\n")

    def feed(self, text: str) -> list[str]:
        """More text → the elements that it completes."""
        self._text += text
        items: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if self._quoted:
                if character == "\\":
                    if self._at + 1 == len(self._text):
                        break  # what it escapes is still to come
                    self._at += 1
                elif character == '"':
                    self._quoted = False
            elif character == '"':
                self._quoted = True
            elif character in "[{":
                self._depth += 1
                if self._depth == 1 and character == "[":
                    self._begin = self._at + 1
            elif character in "]}" or (character == "," and self._depth == 1):
                self._depth -= character in "]}"
                if self._depth == 0 or character == ",":
                    item = self._text[self._begin : self._at].strip(" \t\r\n")
                    items += [item] if item else []
                    self._begin = self._at + 1
            self._at += 1
        return items
