"""The system messages of a list, and the list as one sequence with them.

System messages live apart from the conversation, by tags; each is there once under its tag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Self, overload

from dragoman.codec.digest import neutral_digest
from dragoman.errors import HistoryError
from dragoman.figure import Drawable, Figure
from dragoman.history.read_messages import read, unreadable_error
from dragoman.history.rows import Rows
from dragoman.message import Message, Role, draw_messages

__all__ = ["System", "Systems", "ConversationView", "check_system"]


class System(NamedTuple):
    """A system message of a list."""

    message: Message
    """Itself."""
    tag: str | None
    """The tag under which it was added."""
    behind: int
    """The order of the row that it came behind; -1: it came before all others."""


class Systems:
    """System messages by tag, in the order in which they came; those without a tag stand before the
    others."""

    def __init__(self, systems: Iterable[System] = ()) -> None:
        """Keeps a conversation's system messages by their positions."""
        self.every: list[System] = list(systems)
        """All of them, as they came."""
        self.changes = 0
        """How often they were changed."""
        self._digests = {(system.tag, neutral_digest(system.message)) for system in self.every}

    def add(self, message: Message, tag: str | None, behind: int) -> bool:
        """Adds a system message, unless one of that tag has its content; whether it did."""
        key = tag, neutral_digest(message)
        if key in self._digests:
            return False
        self._digests.add(key)
        self.changes += 1
        self.every.append(System(message, tag, behind))
        return True

    def keep(self, wanted: Callable[[System], bool]) -> list[Message]:
        """Keeps only some system messages, and returns the removed ones."""
        removed = [system.message for system in self.every if not wanted(system)]
        changes = self.changes + 1
        self.__init__([system for system in self.every if wanted(system)])
        self.changes = changes
        return removed

    def in_order(self) -> list[System]:
        """Returns the system messages without a tag, then the others."""
        return [
            *(system for system in self.every if system.tag is None),
            *(system for system in self.every if system.tag is not None),
        ]

    def fork(self) -> Systems:
        """Returns a copy of the system messages that changes independently."""
        other = Systems()
        other.every, other._digests = self.every.copy(), self._digests.copy()
        return other


def check_system(messages: Iterable[Message]) -> None:
    """Raises `HistoryError` where one to be added is no system message."""
    for position, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            raise HistoryError(
                f"a system message is to be added, and message {position} is of the role {str(message.role)!r}: add it with another source"
            )


class ConversationView(Drawable, Sequence[Message]):
    """What a list holds: the rows of its conversation, and its system messages."""

    def __init__(self) -> None:
        self._placed, self._systems = Rows(), Systems()
        self._seen = (-1, -1, -1)
        self._messages: tuple[Message, ...] = ()

    @property
    def _rows(self) -> Rows:
        """Returns the rows with their positions up to date."""
        self._placed.settle()
        return self._placed

    @_rows.setter
    def _rows(self, rows: Rows) -> None:
        self._placed = rows

    def _whole_conversation(self) -> tuple[Message, ...]:
        """Returns the whole conversation, system messages included, as one cached tuple."""
        seen = len(self._rows), self._rows.changes, self._systems.changes
        if self._seen != seen:
            self._seen, self._messages = (
                seen,
                tuple(_weave_system_messages(self._rows, self._systems)),
            )
        return self._messages

    def __figure__(self) -> Figure:
        """Returns the picture of the conversation, of a long one its end."""
        messages = self._whole_conversation()
        return Figure(title=f"{len(messages):,} messages", figures=draw_messages(messages))

    def __len__(self) -> int:
        return len(self._rows) + len(self._systems.every)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._whole_conversation())

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        return self._whole_conversation()[index]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} messages)"

    # system messages

    @property
    def system(self) -> list[Message]:
        """Returns the system messages without a tag."""
        return self.system_messages()

    def add_system(self, messages: object, tag: str | None = None) -> Self:
        """Adds system messages, or texts of some, under a tag. Those that are there already are not
        added again.

        Raises:
            HistoryError: one is no system message.
        """
        reading = read(messages, speak=Message.system)
        if reading.problems:
            raise unreadable_error(reading.problems)
        check_system(reading.messages)
        for message in reading.messages:
            self._systems.add(message, tag, -1)
        return self

    def system_messages(self, tag: str | None = None) -> list[Message]:
        """Returns the system messages of a tag; without one, those that have none."""
        return [system.message for system in self._systems.every if system.tag == tag]

    def all_system_messages(self) -> list[Message]:
        """Returns all system messages: those without a tag first."""
        return [system.message for system in self._systems.in_order()]

    def clear_system(self, tag: str | None = None) -> list[Message]:
        """Removes the system messages of a tag, or those without one, and returns them."""
        return self._systems.keep(lambda system: system.tag != tag)

    def replace_system(self, messages: object) -> Self:
        """Removes all system messages and adds others, without a tag."""
        self._systems.keep(lambda _: False)
        return self.add_system(messages)


def _weave_system_messages(rows: Rows, systems: Systems) -> list[Message]:
    """Returns a conversation with its system messages: those that came before it first, the others
    where they came."""
    every = systems.in_order()
    waiting = sorted(
        [system for system in every if system.behind >= 0], key=lambda system: system.behind
    )
    woven = [system.message for system in every if system.behind < 0]
    if not waiting:
        return [*woven, *[row.message for row in rows]]
    number = 0
    for row in rows:
        while number < len(waiting) and waiting[number].behind < row.order:
            woven.append(waiting[number].message)
            number += 1
        woven.append(row.message)
    return [*woven, *[system.message for system in waiting[number:]]]
