"""Which messages of a client's copy are which stored ones.

A message of the copy is a stored one, or holds pieces of several, which then own it, or replaces
one that stands beside a known one. `CopyLinks` is filled in that order: whole messages and pieces
come from the match, replacements are found last, from the known messages outwards.

Everywhere below `index` is a position in the copy, `position` one in what is stored, and
`part_index` that of a piece in a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.codec.turns import holds_only_answers
from dragoman.history.copy_match import Match
from dragoman.history.pieces import Place, is_shared
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Role,
    ToolCallPart,
    ToolResultPart,
)

__all__ = ["CopyLinks", "CopyPolicy"]

_GROUPS: Mapping[type[Content], str] = {
    DataPart: "file",
    LinkPart: "file",
    FilePart: "file",
    ToolCallPart: "call",
    ToolResultPart: "result",
}
"""Pieces that a client may show nowhere, by group. Every client shows texts, so they have none."""


class CopyPolicy(NamedTuple):
    """What a client may change beside its own messages, and what its copy means."""

    system: bool = False
    """The client may change system messages."""
    results: bool = False
    """The client may change stored results."""
    answers: bool = False
    """The client may change what the model said."""
    signatures: bool = False
    """New messages may carry what a provider signed."""
    whole: bool = False
    """The copy is complete: stored messages before its first known one are removed."""
    regenerates: bool = False
    """The client asks for a new answer behind the copy's last message."""

    def may_change(self, piece: Content) -> bool:
        """True if the client may change a stored piece of this type."""
        if isinstance(piece, ToolResultPart):
            return self.results
        return self.answers


class CopyLinks:
    """The links between the messages of a copy and the stored ones."""

    def __init__(
        self,
        stored: Sequence[Message],
        copy: Sequence[Message],
        match: Match,
        policy: CopyPolicy,
        floor: int,
    ) -> None:
        """Links what `match` pairs. `floor`: the first stored message that the copy may have."""
        self.stored, self.copy, self.match = stored, copy, match
        self.policy, self.floor = policy, floor
        self.owners: dict[int, list[int]] = {}
        """Message of the copy → the stored messages that it holds."""
        self.first_copies: dict[int, int] = {}
        """Stored message → the first message of the copy that holds it."""
        self.extra: dict[int, list[int]] = {}
        """Message of the copy → places of its pieces that are not stored."""
        self.needed: dict[int, list[int]] = {}
        """Stored message → places of the pieces that a copy must have to keep it; `link_rest`."""
        self.units: dict[int, int] = {}
        """Stored message → number of its question or answer; `link_rest`."""
        self._present: set[Place] = set()  # stored pieces in messages that match none as a whole
        self.spoken = [
            index for index, message in enumerate(copy) if message.role is not Role.SYSTEM
        ]
        for index in range(len(copy)):
            self._link_copied_message(index)

    def link_rest(self) -> None:
        """Finds out what the copy must have, and which of its messages replace a stored one."""
        self.units = _number_units(self.stored, self.floor)
        self.needed = self._find_needed()
        self._find_replaced()

    def is_same_conversation(self) -> bool:
        """True if the copy belongs to what is stored: it has a stored answer or id, or both begin
        with the same message."""
        linked = [index for index in self.spoken if index in self.owners]
        if self.match.named or any(self._is_answer(index) for index in linked):
            return True
        # A single question may well be asked in two conversations.
        if len(self.spoken) < 2 or not linked:
            return False
        return self.first_spoken(0) in self.owners.get(self.spoken[0], ())

    def first_spoken(self, start: int) -> int | None:
        """Returns the position of the first stored message from `start` on, for the links of a
        copy, that is no system message; `None` if there is none."""
        for position in range(start, len(self.stored)):
            if self.stored[position].role is not Role.SYSTEM:
                return position
        return None

    def _link_copied_message(self, index: int) -> None:
        """Links one message of the client's copy to the stored message that it equals or holds
        pieces of."""
        match = self.match
        if index in match.whole:
            self._link_owners(index, [match.whole[index]])
            return
        shared = [
            part_index
            for part_index, piece in enumerate(self.copy[index].content)
            if is_shared(piece)
        ]
        sources = {
            source for part_index in shared for source in match.pieces.get((index, part_index), ())
        }
        self._present |= sources
        self.extra[index] = [
            part_index for part_index in shared if (index, part_index) not in match.pieces
        ]
        if sources:
            self._link_owners(index, sorted({position for position, _ in sources}))

    def _link_owners(self, index: int, positions: list[int]) -> None:
        self.owners[index] = positions
        for position in positions:
            self.first_copies.setdefault(position, index)

    def _is_answer(self, index: int) -> bool:
        message = self.copy[index]
        return message.role is Role.MODEL or bool(message.tool_results)

    # what the copy must have

    def _find_needed(self) -> dict[int, list[int]]:
        """Returns the pieces of each stored message to which the client's copy must have links:
        without one of them the client removed the message.

        A client that shows the rest of an answer, and nowhere a file, a call or a result, cannot
        show that group of pieces at all, so their absence means nothing.
        """
        matched = set(self.match.whole.values())
        shown_groups, missing_groups = set[str](), set[str]()
        alive = {self.units[position] for position in self.first_copies if position >= self.floor}
        needed: dict[int, list[int]] = {}
        for position in range(self.floor, len(self.stored)):
            content = self.stored[position].content
            if position in matched:
                shown_groups.update([_piece_group(piece) for piece in content])
                continue
            needed[position] = self._find_showable(position)
            for part_index in needed[position]:
                if (position, part_index) in self._present:
                    shown_groups.add(_piece_group(content[part_index]))
                elif self.units[position] in alive:
                    missing_groups.add(_piece_group(content[part_index]))
        return self._without_groups(needed, missing_groups - shown_groups - {""})

    def _without_groups(
        self, needed: Mapping[int, Sequence[int]], groups: set[str]
    ) -> dict[int, list[int]]:
        """Returns the pieces that the copy must link to without those of groups that the client
        cannot show."""
        return {
            position: [
                part_index
                for part_index in part_indexes
                if _piece_group(self.stored[position].content[part_index]) not in groups
            ]
            for position, part_indexes in needed.items()
        }

    def _find_showable(self, position: int) -> list[int]:
        """Returns for the copy's links the places of the pieces of a stored message that the format
        shows."""
        return [
            part_index
            for part_index, piece in enumerate(self.stored[position].content)
            if is_shared(piece) and (position, part_index) not in self.match.hidden
        ]

    # replaced messages

    def _find_replaced(self) -> None:
        """Links messages of the copy that replace a stored one: by its id, or else beside a linked
        one."""
        if self.policy.system:
            indexes = range(len(self.copy))
        else:
            indexes = self.spoken
        start = next(
            (number for number, index in enumerate(indexes) if index in self.owners), len(indexes)
        )
        self._replace_beside(indexes[: start + 1][::-1], -1)
        self._replace_beside(indexes[start:], 1)

    def _replace_beside(self, indexes: Sequence[int], step: int) -> None:
        """Links messages of the copy as replacements of stored ones that stand beside a linked one.

        It walks through the copy; behind a message that is linked, the next one replaces the next
        stored message that nothing else holds, and so on until one may not. A message that names a
        stored one replaces that. `indexes`: the messages, in the order of the walk; `step`: 1 walks
        forwards, -1 backwards.
        """
        beside: int | None = None if step < 0 else self.floor - 1
        for index in indexes:
            if index in self.owners:
                beside = self.owners[index][-1 if step > 0 else 0]
                continue
            position = self.match.named.get(index)
            if position is None and beside is not None:
                position = self._next_needed(beside + step, step)
            beside = None
            if position is not None and self._may_replace_stored(index, position):
                self._link_owners(index, [position])
                beside = position

    def _next_needed(self, position: int, step: int) -> int:
        """Returns the next stored message in a direction (-1 or 1) that the copy has no link to,
        and so may be one that a message of the copy replaces."""
        while self._is_stored(position) and not self.needed.get(
            position, position in self.first_copies
        ):
            position += step
        return position

    def _is_stored(self, position: int) -> bool:
        return self.floor <= position < len(self.stored)

    def _may_replace_stored(self, index: int, position: int) -> bool:
        """True if a message of the copy may replace a stored one that no other message holds."""
        if not self._is_stored(position) or position in self.first_copies:
            return False
        message, before = self.copy[index], self.stored[position]
        if message.role is not before.role or not self.needed.get(position):
            return False
        if self.match.named.get(index) == position:
            return True
        # Both have ids, and these differ: they are two messages.
        if message.id is not None and before.id is not None:
            return False
        if message.role is Role.MODEL:
            return _begin_alike(message.text, before.text)
        return not holds_only_answers(message) and not holds_only_answers(before)


def _piece_group(piece: Content) -> str:
    return _GROUPS.get(type(piece), "")


def _number_units(stored: Sequence[Message], floor: int) -> dict[int, int]:
    """Returns for the links of a copy the number of the unit of each stored message, by position. A
    unit is a question, or an answer with its calls and results."""
    units: dict[int, int] = {}
    number, is_after_question = 0, True
    for position in range(floor, len(stored)):
        message = stored[position]
        if message.role is not Role.SYSTEM:
            is_question = message.role is Role.USER and not holds_only_answers(message)
            number += is_question or is_after_question
            is_after_question = is_question
        units[position] = number
    return units


def _begin_alike(text: str, other: str) -> bool:
    """True if a text of the copy is the beginning of the linked one, or the other way round, as
    after an answer that was cut."""
    text, other = text.strip(), other.strip()
    if not text or not other:
        return False
    return text.startswith(other) or other.startswith(text)
