"""Compares a client's copy of a conversation with the stored one: finds the stored messages and
pieces in it.

1. Messages that say the same are matched, by ids and in order, then those that the client moved.
2. In the gaps between two matched messages, pieces are matched: with what the client was shown of
   the stored ones (`projection`), as they are stored, in any order, and texts that were split or
   joined.
3. What is left over is matched anywhere, at last by the ids of calls, whatever they say.

Everywhere below `index` is a position in the copy, and `position` one in what is stored.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.history.alignment import align, align_texts, pair_equal
from dragoman.history.pieces import Piece, Place, shared_key, shared_pieces
from dragoman.history.projection import Shown, letters, project, widen_spans
from dragoman.message import Content, Message, Role, TextPart, ToolCallPart, ToolResultPart

__all__ = ["Match", "match_copy"]

_AHEAD = 64
"""Messages before the first and behind the last certain one that are looked at beyond four times as
many as the copy has there."""


class Match(NamedTuple):
    """The stored messages and pieces in a copy."""

    whole: dict[int, int]
    """Message of the copy → the stored message that says the same."""
    pieces: dict[Place, tuple[Place, ...]]
    """Piece of another message → the stored pieces that it shows; none if the format made it up."""
    changed: set[Place]
    """Pieces of the copy that match by the id of their call, but say something else."""
    named: dict[int, int]
    """Message of the copy → the stored message with its id and role."""
    hidden: set[Place]
    """Stored pieces that the format does not show."""


class _Gap(NamedTuple):
    """What stands between two messages that are certain."""

    stored: tuple[int, int]
    copy: tuple[int, int]


def match_copy(
    stored: Sequence[Message], copy: Sequence[Message], format_: str, *, floor: int = 0
) -> Match:
    """Returns which messages and pieces of a copy are stored ones. `floor`: the first stored
    message that the copy may have."""
    named = _match_ids(stored, copy, floor)
    stored_keys = [shared_key(message) for message in stored[floor:]]
    copy_keys = [shared_key(message) for message in copy]
    pairs = [
        (position + floor, index)
        for position, index in _match_in_order(
            stored[floor:], copy, stored_keys, copy_keys, named, floor
        )
    ]
    match = Match({index: position for position, index in pairs}, {}, set(), named, set())
    _match_moved(match, copy, stored_keys, copy_keys, pairs, floor)
    gaps = list(_find_gaps(pairs, floor, len(stored), len(copy)))
    if gaps:
        _Pieces(match, stored, copy, format_).match(gaps)
    return match


def _match_ids(stored: Sequence[Message], copy: Sequence[Message], floor: int) -> dict[int, int]:
    """Returns the messages of the copy that have the id and role of a stored one, by index."""
    positions = {
        stored[position].id: position for position in range(len(stored) - 1, floor - 1, -1)
    }
    named: dict[int, int] = {}
    for index, message in enumerate(copy):
        if message.id is None:
            position = None
        else:
            position = positions.pop(message.id, None)
        if position is not None and stored[position].role is message.role:
            named[index] = position
    return named


def _match_in_order(
    stored: Sequence[Message],
    copy: Sequence[Message],
    stored_keys: Sequence[str],
    copy_keys: Sequence[str],
    named: dict[int, int],
    floor: int,
) -> Iterator[tuple[int, int]]:
    """Matches a copy's messages that say the same, in order: those of one id before those
    without."""
    anchors: list[tuple[int, int]] = []
    if named:
        pairs = align([message.id for message in stored], [message.id for message in copy])
        anchors = [
            (position, index)
            for position, index in pairs
            if named.get(index) == position + floor and stored_keys[position] == copy_keys[index]
        ]
    start = copy_start = 0
    for end, copy_end in [*anchors, (len(stored), len(copy))]:
        between = align(stored_keys[start:end], copy_keys[copy_start:copy_end])
        yield from ((start + position, copy_start + index) for position, index in between)
        if end < len(stored):
            yield end, copy_end
        start, copy_start = end + 1, copy_end + 1


def _match_moved(
    match: Match,
    copy: Sequence[Message],
    stored_keys: Sequence[str],
    copy_keys: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    floor: int,
) -> None:
    """Matches messages that the client moved to another place. A question behind all that are
    stored is a new one, though it was asked before."""
    if not pairs or len(match.whole) == len(copy_keys):
        return
    taken = set(match.whole.values())
    remaining: dict[str, deque[int]] = {}  # positions of unmatched messages, by what they say
    for position, key in enumerate(stored_keys, floor):
        if position not in taken:
            remaining.setdefault(key, deque()).append(position)
    for index, message in enumerate(copy):
        positions = remaining.get(copy_keys[index])
        if not positions or index in match.whole:
            continue
        position = match.named.get(index, positions[0])
        if position in positions and not _is_said_again(message, index, position, pairs):
            positions.remove(position)
            match.whole[index] = position


def _is_said_again(
    message: Message, index: int, position: int, pairs: Sequence[tuple[int, int]]
) -> bool:
    """True if a message of the copy is new, though a stored one says the same: it stands behind all
    that are matched in order, and is a question, or the stored one stands before all of them."""
    if index <= pairs[-1][1]:
        return False
    is_question = message.role is Role.USER and bool(message.text)
    return is_question or position < pairs[0][0]


def _find_gaps(
    pairs: Sequence[tuple[int, int]], floor: int, stored: int, copy: int
) -> Iterator[_Gap]:
    """Yields what stands between certain matches of messages, where there is something stored; at
    the ends no more of it than the copy may have."""
    start, copy_start = floor, 0
    for number, (end, copy_end) in enumerate([*pairs, (stored, copy)]):
        # A client that sends the end of a long conversation must not cost a look at all that is
        # before it.
        first, last = start, end
        most = 4 * (copy_end - copy_start) + _AHEAD
        if pairs and number == 0:
            first = max(first, last - most)
        elif pairs and number == len(pairs):
            last = min(last, first + most)
        if first < last:
            yield _Gap((first, last), (copy_start, copy_end))
        start, copy_start = end + 1, copy_end + 1


class _View:
    """What the format shows of a span of messages, by message."""

    def __init__(self, shown_pieces: Sequence[Shown]) -> None:
        """Creates a view of a message's pieces as the client's format shows them."""
        self._shown = shown_pieces
        self.visible = {source for shown_piece in shown_pieces for source in shown_piece.sources}
        self._numbers: dict[int, list[int]] = {}
        for number, shown_piece in enumerate(shown_pieces):
            for position in {position for position, _ in shown_piece.sources}:
                self._numbers.setdefault(position, []).append(number)

    def select(self, positions: Iterable[int]) -> list[Shown]:
        """Returns the pieces that the client's format shows of these messages, in order."""
        numbers = {
            number for position in set(positions) for number in self._numbers.get(position, ())
        }
        return [self._shown[number] for number in sorted(numbers)]


class _Pieces:
    """Matches the pieces of messages that are not matched as a whole."""

    def __init__(
        self, match: Match, stored: Sequence[Message], copy: Sequence[Message], format_: str
    ) -> None:
        """Pairs the pieces of a stored message with those of the client's copy."""
        self._match, self._stored, self._copy, self._format = match, stored, copy, format_
        self._free: dict[Place, Piece] = {}  # the stored pieces of a gap that are not matched yet

    def match(self, gaps: Sequence[_Gap]) -> None:
        """Matches the pieces in gaps, then what is left of them anywhere."""
        # A gap may begin in the middle of what the format shows as one message, so whole spans
        # are projected.
        spans = deque(widen_spans(self._stored, [gap.stored for gap in gaps]))
        view, end = _View([]), 0
        remaining: list[Shown] = []
        for gap in gaps:
            while end < gap.stored[1]:
                start, end = spans.popleft()
                reaches = end >= gap.stored[1]
                view = _View(project(self._stored, start, end, self._format) if reaches else ())
            remaining += self._match_in_view(gap, view)
        if remaining:
            self._match_elsewhere(remaining)

    def _match_in_view(self, gap: _Gap, view: _View) -> list[Shown]:
        """Matches the pieces of one gap. Returns the shown pieces that are not fully matched."""
        matched = set(self._match.whole.values())
        positions = [position for position in range(*gap.stored) if position not in matched]
        stored_pieces = shared_pieces(self._stored, positions)
        self._match.hidden.update(
            [piece.location for piece in stored_pieces if piece.location not in view.visible]
        )
        indexes = [index for index in range(*gap.copy) if index not in self._match.whole]
        copy_pieces = shared_pieces(self._copy, indexes)
        shown_pieces = view.select(piece.home for piece in stored_pieces)
        self._free = {piece.location: piece for piece in stored_pieces}
        if copy_pieces:
            self._match_gap(copy_pieces, shown_pieces)
        return self._filter_unfinished(shown_pieces)

    def _filter_unfinished(self, shown_pieces: Iterable[Shown]) -> list[Shown]:
        """Returns the shown pieces that show a stored one which is not matched yet."""
        return [
            shown_piece
            for shown_piece in shown_pieces
            if any(source in self._free for source in shown_piece.sources)
        ]

    def _match_gap(self, copy_pieces: Sequence[Piece], shown_pieces: Sequence[Shown]) -> None:
        """Matches the pieces between two matched messages, the surest ways first."""
        self._match_shown(copy_pieces, shown_pieces)
        for pair in (align, pair_equal):
            stored_pieces, unmatched = (
                list(self._free.values()),
                self._filter_unmatched(copy_pieces),
            )
            for number, index in pair(
                [piece.key for piece in stored_pieces], [piece.key for piece in unmatched]
            ):
                self._link(unmatched[index], [stored_pieces[number].location])
        for role in (Role.USER, Role.MODEL):
            for step in (1, -1):
                self._match_texts(copy_pieces, role, step)

    def _match_shown(self, copy_pieces: Sequence[Piece], shown_pieces: Sequence[Shown]) -> None:
        """Matches pieces that say what the client was shown, in order."""
        keys = [piece.key for piece in copy_pieces]
        for number, index in align([shown_piece.key for shown_piece in shown_pieces], keys):
            self._link(
                copy_pieces[index],
                [source for source in shown_pieces[number].sources if source in self._free],
            )

    def _match_texts(self, copy_pieces: Sequence[Piece], role: Role, step: int) -> None:
        """Matches texts of one role that were split or joined, as long as they read alike. `step`:
        1 reads from the first text on, -1 from the last one back."""
        stored_pieces = _filter_texts(self._free.values(), role)[::step]
        unmatched = _filter_texts(self._filter_unmatched(copy_pieces), role)[::step]
        stored_texts, texts = (
            [letters(piece)[::step] for piece in pieces] for pieces in (stored_pieces, unmatched)
        )
        for stored_range, range_ in align_texts(stored_texts, texts):
            if len(stored_range) > 1 or len(range_) > 1:
                for index in range_:
                    self._link(
                        unmatched[index],
                        [stored_pieces[number].location for number in stored_range],
                    )

    def _match_elsewhere(self, shown_pieces: Sequence[Shown]) -> None:
        """Matches pieces that the client moved, then calls and results by the call's id, whatever
        they say, if no other call has it. A text of the user behind all stored ones is new."""
        match = self._match
        last = max([*match.whole, *(index for index, _ in match.pieces)], default=-1)
        indexes = [index for index in range(len(self._copy)) if index not in match.whole]
        unmatched = self._filter_unmatched(shared_pieces(self._copy, indexes))
        if not unmatched:
            return
        old = [piece for piece in unmatched if piece.home <= last or not _is_input(piece)]
        used = self._match_shown_anywhere(old, shown_pieces)
        sources = {source for shown_piece in shown_pieces for source in shown_piece.sources}
        self._match_calls(self._filter_unmatched(unmatched), sources - used)

    def _match_shown_anywhere(
        self, copy_pieces: Sequence[Piece], shown_pieces: Sequence[Shown]
    ) -> set[Place]:
        """Matches pieces that say what the client was shown, in any order. Returns where the
        stored pieces are that they show."""
        used: set[Place] = set()
        for number, index in pair_equal(
            [shown_piece.key for shown_piece in shown_pieces], [piece.key for piece in copy_pieces]
        ):
            self._match.pieces[copy_pieces[index].location] = shown_pieces[number].sources
            used.update(shown_pieces[number].sources)
        return used

    def _match_calls(self, pieces: Iterable[Piece], sources: Iterable[Place]) -> None:
        """Matches calls and results by the call's id, whatever they say. `sources`: where the
        stored ones are."""
        match = self._match
        by_call = self._find_calls(sorted(sources))
        for piece in pieces:
            call = _call_match_key(piece.part)
            if call is None:
                source = None
            else:
                source = by_call.pop(call, None)
            if source is not None:
                match.changed.add(piece.location)
                match.pieces[piece.location] = (source,)

    def _find_calls(self, places: Iterable[Place]) -> dict[tuple[str, ...], Place]:
        """Returns the stored calls and results at these places by what identifies them, without
        those whose id occurs twice."""
        unique = _find_unique_ids(self._stored) & _find_unique_ids(self._copy)
        by_call: dict[tuple[str, ...], Place] = {}
        for home, part_index in places:
            call = _call_match_key(self._stored[home].content[part_index])
            if call is not None and call[1] in unique:
                by_call[call] = home, part_index
        return by_call

    def _filter_unmatched(self, pieces: Iterable[Piece]) -> list[Piece]:
        return [piece for piece in pieces if piece.location not in self._match.pieces]

    def _link(self, piece: Piece, sources: Sequence[Place]) -> None:
        self._match.pieces[piece.location] = tuple(sources)
        for source in sources:
            self._free.pop(source, None)


def _filter_texts(pieces: Iterable[Piece], role: Role) -> list[Piece]:
    """Returns the texts of one role."""
    return [piece for piece in pieces if piece.role is role and isinstance(piece.part, TextPart)]


def _is_input(piece: Piece) -> bool:
    """True if a piece is what a user said, and no result of a tool."""
    return piece.role is Role.USER and not isinstance(piece.part, ToolResultPart)


def _find_unique_ids(messages: Sequence[Message]) -> set[str]:
    """Returns the ids that only one call of a client's copy has."""
    counts = Counter(
        (type(piece), piece.id)
        for message in messages
        for piece in message.content
        if isinstance(piece, ToolCallPart | ToolResultPart)
    )
    ids = {call_id for _, call_id in counts}
    return ids - {call_id for (_, call_id), count in counts.items() if count > 1}


def _call_match_key(part: Content) -> tuple[str, ...] | None:
    """Returns the key by which a call or result of the copy is matched, or None for another
    part."""
    if isinstance(part, ToolCallPart):
        return "call", part.id, part.name
    if isinstance(part, ToolResultPart):
        return ("result", part.id)
    return None
