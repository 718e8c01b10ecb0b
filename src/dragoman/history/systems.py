"""The system messages of a list. They live apart from the conversation, by tags; each is there once under its tag."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from dragoman.codec.digest import neutral
from dragoman.errors import HistoryError
from dragoman.message import Message, Role

__all__ = ["System", "Systems", "check_system"]


class System(NamedTuple):
    """A system message of a list."""

    message: Message
    """Itself."""
    tag: str | None
    """The tag under which it was added."""
    behind: int
    """The order of the row that it came behind; -1: it came before all others."""


class Systems:
    """System messages by tag, in the order in which they came; those without a tag stand before the others."""

    def __init__(self, given: Iterable[System] = ()) -> None:
        self.every: list[System] = list(given)
        """All of them, as they came."""
        self.changes = 0
        """How often they were changed."""
        self._digests = {(each.tag, neutral(each.message)) for each in self.every}

    def add(self, message: Message, tag: str | None, behind: int) -> bool:
        """Adds a message, unless one of that tag has its content; whether it did."""
        key = tag, neutral(message)
        if key in self._digests:
            return False
        self._digests.add(key)
        self.changes += 1
        self.every.append(System(message, tag, behind))
        return True

    def keep(self, wanted: Callable[[System], bool]) -> list[Message]:
        """Removes all others, and returns them."""
        removed = [each.message for each in self.every if not wanted(each)]
        changes = self.changes + 1
        self.__init__([each for each in self.every if wanted(each)])
        self.changes = changes
        return removed

    def ordered(self) -> list[System]:
        """Those without a tag, then the others."""
        return [
            *(each for each in self.every if each.tag is None),
            *(each for each in self.every if each.tag is not None),
        ]

    def fork(self) -> Systems:
        """The same, to be changed apart."""
        other = Systems()
        other.every, other._digests = self.every.copy(), self._digests.copy()
        return other


def check_system(messages: Iterable[Message]) -> None:
    """Raises `HistoryError` where one is no system message."""
    for place, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            raise HistoryError(
                f"a system message is to be added, and message {place} is of the role {str(message.role)!r}: add it with another source"
            )
