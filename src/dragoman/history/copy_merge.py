"""A client's copy, matched with what is stored, and merged with it: what stays, what changes, what
is new, and where it is.

A message of the copy is a stored one, holds pieces of some, which own it, or takes the place of one
that stands beside a known one. A stored message that the copy lacks was taken away, unless the
client cannot have it: it is behind or before the part that was sent, or holds only what the format
or this client shows nowhere. What is kept goes behind the stored message that it followed. A
message that the client changed keeps its id and whatever the copy could not have.

Everywhere below `index` is a position in the copy, `position` one in what is stored, and `place`
that of a piece in a message.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from dragoman.codec.turns import holds_only_answers
from dragoman.history.foreign import import_content, import_message
from dragoman.history.matching import Match
from dragoman.history.pieces import Place, is_shared
from dragoman.json_bytes import Json
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

__all__ = ["CopyPolicy", "CopyMerge", "MergedMessage", "with_stored_ids"]

MergedMessage = tuple[Message, int | None]
"""A message, and its position in what is stored; `None`: it is new."""
_Order = tuple[int, int, int]
"""Position in the copy, 1 for what is stored and 2 for what is new, position in what is stored."""
_Pieces = list[tuple[int | None, Content]]
"""Pieces of a message that the client changed, each with its place in the stored one; `None`: it is
new."""
_KINDS: Mapping[type[Content], str] = {
    DataPart: "file",
    LinkPart: "file",
    FilePart: "file",
    ToolCallPart: "call",
    ToolResultPart: "result",
}
"""What a client may show nowhere; it shows all texts."""


class CopyPolicy(NamedTuple):
    """What a client may change, beside its own messages, and what its copy means."""

    system: bool = False
    """System messages."""
    results: bool = False
    """Results that are stored."""
    answers: bool = False
    """What the model said."""
    signatures: bool = False
    """New messages may come with what a provider signed."""
    whole: bool = False
    """The copy has all: what it lacks before its first stored message is removed."""
    regenerates: bool = False
    """What stands behind the copy's last message is to be made anew."""

    def may_change(self, piece: Content) -> bool:
        """Returns whether the client may change a stored piece of this type."""
        if isinstance(piece, ToolResultPart):
            return self.results
        return self.answers


class CopyMerge:
    """Knows which messages of a copy are which stored ones, and merges the two."""

    def __init__(
        self,
        stored: Sequence[Message],
        copy: Sequence[Message],
        match: Match,
        allowed: CopyPolicy,
        floor: int,
    ) -> None:
        """`floor`: the first stored message that the copy may have."""
        self._stored, self._copy, self._match = stored, copy, match
        self._allowed, self._floor = allowed, floor
        self._owners: dict[int, list[int]] = {}  # message of the copy → the stored ones that it is
        self._first: dict[int, int] = {}  # stored message → the first of the copy that has it
        self._present: set[Place] = (
            set()
        )  # stored pieces that messages hold which are none as a whole
        self._extra: dict[int, list[int]] = {}  # message of the copy → places of what is not stored
        self._needed: dict[int, list[int]] = {}
        self._merges = False
        self._units: dict[int, int] = {}
        self._spoken = [
            index for index, message in enumerate(copy) if message.role is not Role.SYSTEM
        ]
        for index in range(len(copy)):
            self._link(index)

    def shares(self) -> bool:
        """Returns whether the copy is one of this conversation: an answer or an id is known, or
        both begin alike."""
        matched = [index for index in self._spoken if index in self._owners]
        if self._match.named or any(self._is_answer(index) for index in matched):
            return True
        return len(self._spoken) > 1 and bool(matched) and self._begins_alike(self._first_spoken(0))

    def messages(self, *, merges: bool) -> list[MergedMessage]:
        """Returns the merged conversation. `merges`: in the copy's format, two answers that stand
        beside each other are one."""
        self._merges = merges
        self._units = _number_units(self._stored, self._floor)
        self._needed = self._find_needed()
        self._find_replaced()
        changed, added = self._find_changes()
        placed: list[tuple[_Order, Message, int | None]] = [
            (order, changed.get(order[2], self._stored[order[2]]), order[2])
            for order in self._order_remaining()
        ]
        taken: set[str | None] = {message.id for message in self._stored}
        for order, message in added:
            new = import_message(message, taken, signatures=self._allowed.signatures)
            taken.add(new.id)
            placed.append((order, new, None))
        return [(message, position) for _, message, position in sorted(placed, key=_order_of)]

    # which message is which

    def _link(self, index: int) -> None:
        match = self._match
        if index in match.whole:
            self._link_owners(index, [match.whole[index]])
            return
        shared = [
            part_index
            for part_index, piece in enumerate(self._copy[index].content)
            if is_shared(piece)
        ]
        sources = {
            source for part_index in shared for source in match.pieces.get((index, part_index), ())
        }
        self._present |= sources
        self._extra[index] = [
            part_index for part_index in shared if (index, part_index) not in match.pieces
        ]
        if sources:
            self._link_owners(index, sorted({position for position, _ in sources}))

    def _link_owners(self, index: int, positions: list[int]) -> None:
        self._owners[index] = positions
        for position in positions:
            self._first.setdefault(position, index)

    def _is_answer(self, index: int) -> bool:
        message = self._copy[index]
        return message.role is Role.MODEL or bool(message.tool_results)

    def _first_spoken(self, start: int) -> int | None:
        """Returns the position of the first stored message from `start` on that is not the
        system's."""
        positions = range(start, len(self._stored))
        return next(
            (position for position in positions if self._stored[position].role is not Role.SYSTEM),
            None,
        )

    def _begins_alike(self, first: int | None) -> bool:
        return first in self._owners.get(self._spoken[0], ())

    def _find_needed(self) -> dict[int, list[int]]:
        """Returns for each stored message the places of what the copy must have, or else the client
        took it away. A client that has the rest of an answer, and nowhere a file, a call or a
        result, shows none of that kind."""
        whole = set(self._match.whole.values())
        shown_kinds, missing_kinds = set[str](), set[str]()
        alive = {self._units[position] for position in self._first if position >= self._floor}
        needed: dict[int, list[int]] = {}
        for position in range(self._floor, len(self._stored)):
            content = self._stored[position].content
            if position in whole:
                shown_kinds.update([_piece_group(piece) for piece in content])
                continue
            needed[position] = [
                part_index
                for part_index, piece in enumerate(content)
                if is_shared(piece) and (position, part_index) not in self._match.hidden
            ]
            for part_index in needed[position]:
                if (position, part_index) in self._present:
                    shown_kinds.add(_piece_group(content[part_index]))
                elif self._units[position] in alive:
                    missing_kinds.add(_piece_group(content[part_index]))
        lacking = missing_kinds - shown_kinds - {""}
        return {
            position: [
                part_index
                for part_index in part_indexes
                if _piece_group(self._stored[position].content[part_index]) not in lacking
            ]
            for position, part_indexes in needed.items()
        }

    def _find_replaced(self) -> None:
        """Finds messages of the copy that take the place of a stored one: with its id, or else
        beside one that is stored."""
        if self._allowed.system:
            indexes = range(len(self._copy))
        else:
            indexes = self._spoken
        start = next(
            (number for number, index in enumerate(indexes) if index in self._owners), len(indexes)
        )
        self._replace_beside(indexes[: start + 1][::-1], -1)
        self._replace_beside(indexes[start:], 1)

    def _replace_beside(self, indexes: Sequence[int], step: int) -> None:
        """Goes through messages of the copy from one that is stored, forwards or backwards, and
        pairs each with the next stored one."""
        beside: int | None = None if step < 0 else self._floor - 1
        for index in indexes:
            if index in self._owners:
                beside = self._owners[index][-1 if step > 0 else 0]
                continue
            position = self._match.named.get(index)
            if position is None and beside is not None:
                position = self._next_needed(beside + step, step)
            beside = None
            if position is not None and self._replaces(index, position):
                self._link_owners(index, [position])
                beside = position

    def _next_needed(self, position: int, step: int) -> int:
        while self._is_stored(position) and not self._needed.get(position, position in self._first):
            position += step
        return position

    def _is_stored(self, position: int) -> bool:
        return self._floor <= position < len(self._stored)

    def _replaces(self, index: int, position: int) -> bool:
        if not self._is_stored(position) or position in self._first:
            return False
        message, before = self._copy[index], self._stored[position]
        if message.role is not before.role or not self._needed.get(position):
            return False
        if self._match.named.get(index) == position:
            return True
        if message.id is not None and before.id is not None:
            return False
        if message.role is Role.MODEL:
            return _begin_alike(message.text, before.text)
        return not holds_only_answers(message) and not holds_only_answers(before)

    # what stays, and where

    def _order_remaining(self) -> list[_Order]:
        """Returns where the stored messages stand that stay: each behind the message of the copy
        that it followed."""
        remaining = self._find_remaining()
        orders: list[_Order] = []
        where = top = -1
        for position, message in enumerate(self._stored):
            index = self._first.get(position)
            if index is not None and (message.role is not Role.SYSTEM or self._allowed.system):
                where = index
                if self._owners[index][0] != position:
                    # In the copy it is one with another message: what is between the two there was
                    # put behind both.
                    where = max(where, top)
                top = max(top, where)
            if position in remaining:
                orders.append((where, 1, position))
        return orders

    def _find_remaining(self) -> set[int]:
        """Returns the positions of the stored messages that stay."""
        matched = [
            position for position in self._first if self._stored[position].role is not Role.SYSTEM
        ]
        first, last = min(matched, default=len(self._stored)), max(matched, default=-1)
        cuts = self._is_cut_behind(first, last)
        remaining = set(range(self._floor))
        hidden: dict[int, list[int]] = {}
        gone: set[int] = set()
        for position in range(self._floor, len(self._stored)):
            is_fixed = (
                self._stored[position].role is Role.SYSTEM and not self._allowed.system
            ) or position in self._first
            is_beyond = (position < first and not self._allowed.whole) or (
                position > last and not cuts
            )
            if is_fixed or is_beyond:
                remaining.add(position)
            elif self._needed.get(position):
                gone.add(self._units[position])
            else:
                hidden.setdefault(self._units[position], []).append(position)
        # What no client shows stays or goes with its exchange, or, where nothing of that is shown,
        # with the one before it.
        alive = {self._units[position] for position in self._first}
        stays = True
        for unit in range(1, max(self._units.values(), default=0) + 1):
            if unit in alive or unit in gone:
                stays = unit in alive
            if stays:
                remaining.update(hidden.get(unit, ()))
        return remaining

    def _is_cut_behind(self, first: int, last: int) -> bool:
        """Returns whether what stands behind the last message that the copy has is no more part of
        the conversation."""
        if (
            self._allowed.whole
            or self._allowed.regenerates
            or first == self._first_spoken(self._floor)
        ):
            return True
        if self._spoken and self._copy[self._spoken[-1]].role is Role.USER:
            return True
        numbers = [
            number
            for number, index in enumerate(self._spoken)
            if last in self._owners.get(index, ())
        ]
        behind = self._spoken[max(numbers, default=-1) + 1 :]
        return any(self._extra.get(index) and index not in self._owners for index in behind)

    # what changes, and what is new

    def _find_changes(self) -> tuple[dict[int, Message], list[tuple[_Order, Message]]]:
        """Returns the stored messages that are other ones now, and the new ones with where they
        stand."""
        contents: dict[int, _Pieces] = {}
        metadata: dict[int, Json] = {}
        added: list[tuple[_Order, Message]] = []
        for index, message in enumerate(self._copy):
            if index in self._match.whole or (
                message.role is Role.SYSTEM and not self._allowed.system
            ):
                continue
            owners = [
                position
                for position in self._owners.get(index, ())
                if self._stored[position].role is message.role
            ]
            new, owned_parts = self._split_extra(index, owners)
            if new:
                added.append(((index, 2, 0), self._new_message(index, new)))
            for position in owners:
                contents.setdefault(position, [])
                metadata.setdefault(position, {}).update(message.own_metadata)
            for part_index, piece in enumerate(message.content):
                for position, source in self._match.pieces.get((index, part_index), ()):
                    if position in contents:
                        part = self._believe((index, part_index), (position, source))
                        contents[position].append((source, part))
                if part_index in owned_parts:
                    pieces = import_content(message, (piece,), signatures=self._allowed.signatures)
                    contents[owners[-1]] += [(None, part) for part in pieces]
        changed: dict[int, Message] = {}
        for position, pieces in contents.items():
            before = self._stored[position]
            content = self._change_content(position, pieces)
            if content is not None and (before.role is not Role.MODEL or self._allowed.answers):
                about = {**before.own_metadata, **metadata[position]}
                changed[position] = before.replace(content=content, metadata=about)
        return changed, added

    def _believe(self, at: Place, source: Place) -> Content:
        """Returns a stored piece, or what the client says of the call or result that it is, where
        the client may change that."""
        piece = self._copy[at[0]].content[at[1]]
        before = self._stored[source[0]].content[source[1]]
        is_believed = at in self._match.changed and self._allowed.may_change(piece)
        if is_believed:
            return _with_id(piece, before)
        return before

    def _split_extra(self, index: int, owners: Sequence[int]) -> tuple[set[int], set[int]]:
        """Returns the places of what no stored message has: of what is a new message, and of what
        belongs to the last of the owners."""
        message, extra = self._copy[index], set(self._extra[index])
        if not owners:
            return extra, set()
        if message.role is Role.USER and holds_only_answers(self._stored[owners[-1]]):
            return extra, set()
        if message.role is Role.MODEL:
            matched = [
                part_index for owner_index, part_index in self._match.pieces if owner_index == index
            ]
            is_behind = bool(extra) and bool(matched) and min(extra) > max(matched)
            if self._merges and is_behind:
                return (extra, set())
            return (set(), extra)
        results = {
            part_index
            for part_index in extra
            if isinstance(message.content[part_index], ToolResultPart)
        }
        return results, extra - results

    def _new_message(self, index: int, part_indexes: Collection[int]) -> Message:
        """Returns what a message of the copy has more than stored ones, as a message. One that is
        new as a whole keeps its id."""
        message = self._copy[index]
        is_whole = len(part_indexes) == len(self._extra[index]) and index not in self._owners
        content = tuple(
            [
                piece
                for part_index, piece in enumerate(message.content)
                if part_index in part_indexes or (is_whole and not is_shared(piece))
            ]
        )
        return message.replace(content=content, **({} if is_whole else {"id": None}))

    def _change_content(self, position: int, pieces: _Pieces) -> tuple[Content, ...] | None:
        """Returns what a stored message holds now: what the copy has of it, and behind what it
        followed what the copy could not have. `None`: nothing else than before, but for the order
        perhaps."""
        content = self._stored[position].content
        needed = self._needed.get(position, ())
        remaining = {part_index for part_index, _ in pieces}
        unchanged = {
            part_index
            for part_index, piece in pieces
            if part_index is not None and piece is content[part_index]
        }
        if len(unchanged) == len(pieces) and unchanged.issuperset(needed):
            return None
        behind: dict[int, list[Content]] = {}
        last = -1
        for part_index, piece in enumerate(content):
            is_fixed = isinstance(
                piece, ToolCallPart | ToolResultPart
            ) and not self._allowed.may_change(piece)
            if part_index in remaining:
                last = part_index
            elif part_index not in needed or is_fixed:
                behind.setdefault(last, []).append(piece)
        composed = behind.get(-1, [])
        for part_index, piece in pieces:
            if part_index is None:
                composed.append(piece)
            elif part_index in remaining:
                remaining.remove(part_index)
                composed += [piece, *behind.get(part_index, ())]
        if tuple(composed) != content:
            return tuple(composed)
        return None


def _order_of(placed: tuple[_Order, Message, int | None]) -> _Order:
    return placed[0]


def _piece_group(piece: Content) -> str:
    return _KINDS.get(type(piece), "")


def _number_units(stored: Sequence[Message], floor: int) -> dict[int, int]:
    """Returns position of a message → the number of the question, or of the answer with its calls
    and results, that it belongs to."""
    units: dict[int, int] = {}
    number, asks = 0, True
    for position in range(floor, len(stored)):
        message = stored[position]
        if message.role is not Role.SYSTEM:
            begins = message.role is Role.USER and not holds_only_answers(message)
            number += begins or asks
            asks = begins
        units[position] = number
    return units


def _begin_alike(text: str, other: str) -> bool:
    """Returns whether one text is the beginning of the other, as of an answer that was cut."""
    text, other = text.strip(), other.strip()
    return bool(text) and bool(other) and (text.startswith(other) or other.startswith(text))


def _with_id(piece: Content, before: Content) -> Content:
    """Returns what a client says of a call or result that is stored."""
    if isinstance(piece, ToolCallPart) and isinstance(before, ToolCallPart):
        return replace(piece, id=before.id, run_by=before.run_by, native=None)
    if isinstance(piece, ToolResultPart) and isinstance(before, ToolResultPart):
        return replace(piece, id=before.id, name=before.name, run_by=before.run_by, native=None)
    return before


def with_stored_ids(
    stored: Sequence[Message], copy: Sequence[Message], whole: Mapping[int, int]
) -> Sequence[Message]:
    """Returns a copy whose results answer the stored calls: its format took other ids. `whole`:
    message of the copy → the stored one."""
    messages: list[Message] = []
    ids: dict[str, str] = {}  # id of a call in the copy → that of the stored call in its place
    for index, message in enumerate(copy):
        if message.role is Role.MODEL:
            if index in whole:
                stored_calls = stored[whole[index]].tool_calls
            else:
                stored_calls = ()
            pairs = zip(message.tool_calls, stored_calls, strict=False)
            ids = {call.id: before.id for call, before in pairs if call.id != before.id}
        elif ids and message.tool_results:
            content = [
                replace(piece, id=ids.get(piece.id, piece.id))
                if isinstance(piece, ToolResultPart)
                else piece
                for piece in message.content
            ]
            message = message.replace(content=tuple(content))
        messages.append(message)
    return messages
