"""A client's copy and the stored conversation, merged: what stays, what changes, what is new.

`CopyLinks` says which messages of the copy are which stored ones. A stored message that the copy
lacks was removed by the client, unless the client cannot have it: it is outside of the part that
was sent, or holds only what the format or this client shows nowhere. A message that stays goes
behind the stored message that it followed. A message that the client changed keeps its id and
whatever the copy could not show.

Everywhere below `index` is a position in the copy, `position` one in what is stored, and
`part_index` that of a piece in a message.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from dragoman.codec.turns import holds_only_answers
from dragoman.history.copy_links import CopyLinks
from dragoman.history.import_message import import_content, import_message
from dragoman.history.pieces import Place, is_shared
from dragoman.json_bytes import Json
from dragoman.message import Content, Message, Role, ToolCallPart, ToolResultPart

__all__ = ["CopyMerge", "MergedMessage", "with_stored_ids"]

MergedMessage = tuple[Message, int | None]
"""A message, and its position in what is stored; `None` if it is new."""
_Order = tuple[int, int, int]
"""Position in the copy, 1 for stored and 2 for new messages, position in what is stored."""
_Pieces = list[tuple[int | None, Content]]
"""Pieces of a message that the client changed, each with its place in the stored message; `None`
for a new piece."""


class _Placed(NamedTuple):
    """A message of the result, and what it is sorted by."""

    order: _Order
    message: Message
    position: int | None


class CopyMerge:
    """Merges a copy into the conversation that it is linked with."""

    def __init__(self, links: CopyLinks) -> None:
        """Prepares the merge of a client's copy, by the links of its messages to the stored
        ones."""
        self._links = links
        self._stored, self._copy, self._match = links.stored, links.copy, links.match
        self._policy, self._owners = links.policy, links.owners
        self._joins_answers = False

    def messages(self, *, joins_answers: bool) -> list[MergedMessage]:
        """Returns the conversation merged with the client's copy. `joins_answers`: the copy's
        format shows two answers that stand beside each other as one."""
        self._joins_answers = joins_answers
        self._links.link_rest()
        changed, added = self._find_changes()
        placed = [
            _Placed(order, changed.get(order[2], self._stored[order[2]]), order[2])
            for order in self._order_remaining()
        ]
        taken: set[str | None] = {message.id for message in self._stored}
        for order, message in added:
            new = import_message(message, taken, signatures=self._policy.signatures)
            taken.add(new.id)
            placed.append(_Placed(order, new, None))
        placed.sort(key=lambda entry: entry.order)
        return [(entry.message, entry.position) for entry in placed]

    # what stays, and where

    def _order_remaining(self) -> list[_Order]:
        """Returns the order of the stored messages that stay: each behind the message of the copy
        that it followed."""
        remaining = self._find_remaining()
        orders: list[_Order] = []
        behind = highest = -1
        for position, message in enumerate(self._stored):
            index = self._links.first_copies.get(position)
            if index is not None and (message.role is not Role.SYSTEM or self._policy.system):
                behind = index
                if self._owners[index][0] != position:
                    # The copy shows this and an earlier message as one, so what was between the
                    # two goes behind both.
                    behind = max(behind, highest)
                highest = max(highest, behind)
            if position in remaining:
                orders.append((behind, 1, position))
        return orders

    def _find_remaining(self) -> set[int]:
        """Returns the positions of the stored messages that stay after the merge with the client's
        copy."""
        links = self._links
        linked = [
            position
            for position in links.first_copies
            if self._stored[position].role is not Role.SYSTEM
        ]
        first, last = min(linked, default=len(self._stored)), max(linked, default=-1)
        keeps_before = not self._policy.whole
        keeps_behind = not self._is_cut_behind(first, last)
        remaining = set(range(links.floor))
        hidden: dict[int, list[int]] = {}
        removed_units: set[int] = set()
        for position in range(links.floor, len(self._stored)):
            is_before, is_behind = position < first, position > last
            if (
                self._is_fixed(position)
                or (is_before and keeps_before)
                or (is_behind and keeps_behind)
            ):
                remaining.add(position)
            elif links.needed.get(position):
                removed_units.add(links.units[position])
            else:
                hidden.setdefault(links.units[position], []).append(position)
        return remaining | self._find_hidden_remaining(hidden, removed_units)

    def _is_fixed(self, position: int) -> bool:
        """True if a stored message stays in any case in the merge: the copy has it, or may not
        touch it."""
        if position in self._links.first_copies:
            return True
        return self._stored[position].role is Role.SYSTEM and not self._policy.system

    def _find_hidden_remaining(
        self, hidden: Mapping[int, Sequence[int]], removed_units: Collection[int]
    ) -> set[int]:
        """Returns which of the messages that no client shows stay in the merge. `hidden`: their
        positions by unit. They share the fate of their unit, or of the unit before where nothing of
        it shows."""
        links = self._links
        alive = {links.units[position] for position in links.first_copies}
        remaining: set[int] = set()
        stays = True
        for unit in range(1, max(links.units.values(), default=0) + 1):
            if unit in alive or unit in removed_units:
                stays = unit in alive
            if stays:
                remaining.update(hidden.get(unit, ()))
        return remaining

    def _is_cut_behind(self, first: int, last: int) -> bool:
        """True if the stored messages behind the copy's last known one are removed. `first`,
        `last`: the outermost stored messages that the copy has."""
        if self._policy.whole or self._policy.regenerates:
            return True
        if first == self._links.first_spoken(self._links.floor):
            return True
        spoken = self._links.spoken
        if spoken and self._copy[spoken[-1]].role is Role.USER:
            return True
        numbers = [
            number for number, index in enumerate(spoken) if last in self._owners.get(index, ())
        ]
        behind = spoken[max(numbers, default=-1) + 1 :]
        return any(self._links.extra.get(index) and index not in self._owners for index in behind)

    # what changes, and what is new

    def _find_changes(self) -> tuple[dict[int, Message], list[tuple[_Order, Message]]]:
        """Returns the stored messages that the merge changes, by position, and the new ones with
        their order."""
        contents: dict[int, _Pieces] = {}
        metadata: dict[int, Json] = {}
        added: list[tuple[_Order, Message]] = []
        for index, message in enumerate(self._copy):
            is_fixed = message.role is Role.SYSTEM and not self._policy.system
            if index in self._match.whole or is_fixed:
                continue
            owners = [
                position
                for position in self._owners.get(index, ())
                if self._stored[position].role is message.role
            ]
            new_parts, owned_parts = self._split_extra(index, owners)
            if new_parts:
                added.append(((index, 2, 0), self._new_message(index, new_parts)))
            for position in owners:
                contents.setdefault(position, [])
                metadata.setdefault(position, {}).update(message.own_metadata)
            self._collect_pieces(index, contents, owners, owned_parts)
        return self._change_messages(contents, metadata), added

    def _change_messages(
        self, contents: Mapping[int, _Pieces], metadata: Mapping[int, Json]
    ) -> dict[int, Message]:
        """Returns the stored messages that get another content by the merge, by position.
        `metadata`: what the copy has of each."""
        changed: dict[int, Message] = {}
        for position, pieces in contents.items():
            before = self._stored[position]
            content = self._change_content(position, pieces)
            if content is not None and (before.role is not Role.MODEL or self._policy.answers):
                own_metadata = {**before.own_metadata, **metadata[position]}
                changed[position] = before.replace(content=content, metadata=own_metadata)
        return changed

    def _collect_pieces(
        self,
        index: int,
        contents: dict[int, _Pieces],
        owners: Sequence[int],
        owned_parts: Collection[int],
    ) -> None:
        """Adds the pieces of a message of the copy to those of the stored messages that own it."""
        message = self._copy[index]
        for part_index, piece in enumerate(message.content):
            for position, source in self._match.pieces.get((index, part_index), ()):
                if position in contents:
                    part = self._choose_piece((index, part_index), (position, source))
                    contents[position].append((source, part))
            if part_index in owned_parts:
                pieces = import_content(message, (piece,), signatures=self._policy.signatures)
                contents[owners[-1]] += [(None, part) for part in pieces]

    def _choose_piece(self, copied: Place, source: Place) -> Content:
        """Returns for the merge a stored piece, or the client's version of it where the client may
        change it."""
        piece = self._copy[copied[0]].content[copied[1]]
        before = self._stored[source[0]].content[source[1]]
        if copied in self._match.changed and self._policy.may_change(piece):
            return _with_id(piece, before)
        return before

    def _split_extra(self, index: int, owners: Sequence[int]) -> tuple[set[int], set[int]]:
        """Returns for the merge the places of the pieces that are not stored: of those that make a
        new message, and of those that join the last of the owners."""
        message, extra = self._copy[index], set(self._links.extra[index])
        if not owners:
            return extra, set()
        if message.role is Role.USER and holds_only_answers(self._stored[owners[-1]]):
            return extra, set()
        if message.role is Role.MODEL:
            # Where the format joins two answers, what is behind the known pieces is the next one.
            if self._joins_answers and self._is_behind_matched(index, extra):
                return extra, set()
            return set(), extra
        results = {
            part_index
            for part_index in extra
            if isinstance(message.content[part_index], ToolResultPart)
        }
        return results, extra - results

    def _is_behind_matched(self, index: int, part_indexes: Collection[int]) -> bool:
        """True if in the merge these pieces of a message of the copy stand behind all of it that
        are stored."""
        matched = [
            part_index for owner_index, part_index in self._match.pieces if owner_index == index
        ]
        return bool(part_indexes) and bool(matched) and min(part_indexes) > max(matched)

    def _new_message(self, index: int, part_indexes: Collection[int]) -> Message:
        """Returns the new pieces of a message of the copy as a message of the merge. It keeps its
        id only if it is new as a whole."""
        message = self._copy[index]
        is_whole = len(part_indexes) == len(self._links.extra[index]) and index not in self._owners
        content = tuple(
            [
                piece
                for part_index, piece in enumerate(message.content)
                if part_index in part_indexes or (is_whole and not is_shared(piece))
            ]
        )
        if is_whole:
            return message.replace(content=content)
        return message.replace(content=content, id=None)

    def _change_content(self, position: int, pieces: _Pieces) -> tuple[Content, ...] | None:
        """Returns the merged content of a stored message: what the copy has of it, and what the
        copy could not show behind the piece that it followed. `None` if at most the order
        differs."""
        content = self._stored[position].content
        needed = self._links.needed.get(position, ())
        remaining = {part_index for part_index, _ in pieces}
        if _is_copy_unchanged(content, pieces, needed):
            return None
        behind = self._group_unseen(content, remaining, needed)
        composed = behind.get(-1, [])
        for part_index, piece in pieces:
            if part_index is None:
                composed.append(piece)
            elif part_index in remaining:
                remaining.remove(part_index)
                composed += [piece, *behind.get(part_index, ())]
        if tuple(composed) == content:
            return None
        return tuple(composed)

    def _group_unseen(
        self, content: Sequence[Content], remaining: Collection[int | None], needed: Collection[int]
    ) -> dict[int, list[Content]]:
        """Returns the pieces of a stored message that stay in the merge though the copy lacks them,
        by the place of the remaining piece that they follow; -1: they stand before all of these."""
        behind: dict[int, list[Content]] = {}
        last = -1
        for part_index, piece in enumerate(content):
            if part_index in remaining:
                last = part_index
            elif part_index not in needed or self._is_fixed_piece(piece):
                behind.setdefault(last, []).append(piece)
        return behind

    def _is_fixed_piece(self, piece: Content) -> bool:
        """True if a piece is a call or a result that the client may not remove."""
        is_call_or_result = isinstance(piece, ToolCallPart | ToolResultPart)
        return is_call_or_result and not self._policy.may_change(piece)


def _is_copy_unchanged(
    content: Sequence[Content], pieces: _Pieces, needed: Collection[int]
) -> bool:
    """True if a client's copy holds the very parts that are stored, each once, and lacks none of
    the `needed` ones, which every client can show."""
    unchanged = {
        part_index
        for part_index, piece in pieces
        if part_index is not None and piece is content[part_index]
    }
    return len(unchanged) == len(pieces) and unchanged.issuperset(needed)


def _with_id(piece: Content, before: Content) -> Content:
    """Returns for the merge the client's version of a stored call or result, with the stored id."""
    if isinstance(piece, ToolCallPart) and isinstance(before, ToolCallPart):
        return replace(piece, id=before.id, run_by=before.run_by, native=None)
    if isinstance(piece, ToolResultPart) and isinstance(before, ToolResultPart):
        return replace(piece, id=before.id, name=before.name, run_by=before.run_by, native=None)
    return before


def with_stored_ids(
    stored: Sequence[Message], copy: Sequence[Message], whole: Mapping[int, int]
) -> Sequence[Message]:
    """Returns the client's copy to merge, whose results answer the stored calls, for formats that
    rename ids. `whole`: message of the copy → the stored message that it is."""
    messages: list[Message] = []
    ids: dict[str, str] = {}  # id of a call in the copy → id of the stored call in its place
    for index, message in enumerate(copy):
        if message.role is Role.MODEL:
            if index in whole:
                stored_calls = stored[whole[index]].tool_calls
            else:
                stored_calls = ()
            pairs = zip(message.tool_calls, stored_calls, strict=False)
            ids = {call.id: before.id for call, before in pairs if call.id != before.id}
        elif ids and message.tool_results:
            message = message.replace(content=_rename_results(message.content, ids))
        messages.append(message)
    return messages


def _rename_results(content: Sequence[Content], ids: Mapping[str, str]) -> tuple[Content, ...]:
    """Returns content of the client's copy whose results have the stored ids. `ids`: old id → new
    id."""
    return tuple(
        [
            replace(piece, id=ids.get(piece.id, piece.id))
            if isinstance(piece, ToolResultPart)
            else piece
            for piece in content
        ]
    )
