"""A client's copy of a conversation held against what is stored: which of its messages and pieces are those that are stored.

By ids first, then by what is said, then, between messages that are certain, by what the client was shown of the stored ones, by texts
that were split or joined, and by the ids of calls.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.history.alignment import aligned, joined
from dragoman.history.projection import Piece, Place, Shown, key, letters, pieces, projected, spans
from dragoman.message import Content, Message, Role, TextPart, ToolCallPart, ToolResultPart

__all__ = ["Match", "matched"]

_AHEAD = 64
"""Messages before the first and behind the last certain one that are looked at beyond four times as many as the copy has there."""


class Match(NamedTuple):
    """What of a copy is stored. Positions are those in the copy, and in what is stored."""

    whole: dict[int, int]
    """Messages of the copy that say what a stored one says."""
    pieces: dict[Place, tuple[Place, ...]]
    """Pieces of other messages → the stored ones that they are; none: the format made the piece up."""
    changed: set[Place]
    """Those of them that are stored pieces by the id of their call, but say something else."""
    named: dict[int, int]
    """Messages of the copy with the id of a stored one of their role."""
    hidden: set[Place]
    """Stored pieces that the format does not show."""


class _Gap(NamedTuple):
    """What stands between two messages that are certain."""

    stored: tuple[int, int]
    copy: tuple[int, int]


def matched(
    stored: Sequence[Message],
    copy: Sequence[Message],
    format: str,
    *,
    floor: int = 0,
) -> Match:
    """`floor`: the first stored message that the copy may have."""
    named = _named(stored, copy, floor)
    stored_keys: list[str] = [key(message) for message in stored[floor:]]
    copy_keys = [key(message) for message in copy]
    pairs = [
        (at + floor, k)
        for at, k in _certain(stored[floor:], copy, stored_keys, copy_keys, named, floor)
    ]
    found = Match({k: at for at, k in pairs}, {}, set(), named, set())
    _take_moved(found, copy, stored_keys, copy_keys, pairs, floor)
    gaps = list(_gaps(pairs, floor, len(stored), len(copy)))
    taken = set(found.whole.values())
    by_span = deque(spans(stored, [gap.stored for gap in gaps]))
    view, end = _View([]), 0
    left: list[Shown] = []
    for gap in gaps:
        while end < gap.stored[1]:
            start, end = by_span.popleft()
            view = _View(projected(stored, start, end, format) if end >= gap.stored[1] else ())
        own = pieces(stored, [position for position in range(*gap.stored) if position not in taken])
        found.hidden.update(piece.place for piece in own if piece.place not in view.visible)
        those = pieces(copy, [k for k in range(*gap.copy) if k not in found.whole])
        shown = view.of(piece.place[0] for piece in own)
        free = _match_pieces(found, own, those, shown)
        left += [each for each in shown if any(place in free for place in each.sources)]
    if left:
        _match_elsewhere(found, left, stored, copy)
    return found


class _View:
    """What the format shows of a span of messages, by message."""

    def __init__(self, shown: Sequence[Shown]) -> None:
        self._shown = shown
        self.visible = {place for each in shown for place in each.sources}
        self._of: dict[int, list[int]] = {}
        for number, each in enumerate(shown):
            for at in {at for at, _ in each.sources}:
                self._of.setdefault(at, []).append(number)

    def of(self, positions: Iterable[int]) -> list[Shown]:
        """What is shown of these messages, in order."""
        return [
            self._shown[n]
            for n in sorted({n for at in set(positions) for n in self._of.get(at, ())})
        ]


def _named(stored: Sequence[Message], copy: Sequence[Message], floor: int) -> dict[int, int]:
    positions = {stored[at].id: at for at in range(len(stored) - 1, floor - 1, -1)}
    found: dict[int, int] = {}
    for k, message in enumerate(copy):
        at = None if message.id is None else positions.pop(message.id, None)
        if at is not None and stored[at].role is message.role:
            found[k] = at
    return found


def _certain(
    stored: Sequence[Message],
    copy: Sequence[Message],
    stored_keys: Sequence[str],
    copy_keys: Sequence[str],
    named: dict[int, int],
    floor: int,
) -> Iterator[tuple[int, int]]:
    """Messages that say the same, in order: those of one id before those without."""
    anchors: list[tuple[int, int]] = []
    if named:
        pairs = aligned([message.id for message in stored], [message.id for message in copy])
        anchors = [
            (at, k)
            for at, k in pairs
            if named.get(k) == at + floor and stored_keys[at] == copy_keys[k]
        ]
    i = j = 0
    for at, k in [*anchors, (len(stored), len(copy))]:
        yield from ((i + a, j + b) for a, b in aligned(stored_keys[i:at], copy_keys[j:k]))
        if at < len(stored):
            yield at, k
        i, j = at + 1, k + 1


def _take_moved(
    found: Match,
    copy: Sequence[Message],
    stored_keys: Sequence[str],
    copy_keys: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    floor: int,
) -> None:
    """Messages that the client put elsewhere. A question behind all that are stored is a new one, though it was asked before."""
    if not pairs or len(found.whole) == len(copy_keys):
        return
    taken = set(found.whole.values())
    left: dict[str, deque[int]] = {}
    for at in range(floor, len(stored_keys) + floor):
        if at not in taken:
            left.setdefault(stored_keys[at - floor], deque()).append(at)
    for k, message in enumerate(copy):
        places = left.get(copy_keys[k])
        if not places or k in found.whole:
            continue
        is_behind = k > pairs[-1][1]
        at = found.named.get(k, places[0])
        if at in places and not (
            is_behind and (at < pairs[0][0] or (message.role is Role.USER and message.text))
        ):
            places.remove(at)
            found.whole[k] = at


def _gaps(pairs: Sequence[tuple[int, int]], floor: int, stored: int, copy: int) -> Iterator[_Gap]:
    """What stands between certain messages, where there is something stored; at the ends no more of it than the copy may have."""
    i, j = floor, 0
    for number, (at, k) in enumerate([*pairs, (stored, copy)]):
        first, last = i, at
        most = 4 * (k - j) + _AHEAD
        if pairs and number == 0:
            first = max(first, last - most)
        elif pairs and number == len(pairs):
            last = min(last, first + most)
        if first < last:
            yield _Gap((first, last), (j, k))
        i, j = at + 1, k + 1


def _match_pieces(
    found: Match, own: Sequence[Piece], those: Sequence[Piece], shown: Sequence[Shown]
) -> dict[Place, Piece]:
    """The pieces between two certain messages. Returns the stored ones that the copy has not."""
    free = {piece.place: piece for piece in own}
    if not those:
        return free
    for a, b in aligned([each.key for each in shown], [piece.key for piece in those]):
        _link(found, free, those[b], [place for place in shown[a].sources if place in free])
    left = _open(found, those)
    kept = list(free.values())
    for a, b in aligned([piece.key for piece in kept], [piece.key for piece in left]):
        _link(found, free, left[b], [kept[a].place])
    by_key: dict[str, deque[Place]] = {}
    for piece in free.values():
        by_key.setdefault(piece.key, deque()).append(piece.place)
    for piece in _open(found, those):
        if places := by_key.get(piece.key):
            _link(found, free, piece, [places.popleft()])
    for role in (Role.USER, Role.MODEL):
        _match_texts(found, free, those, role)
    return free


def _open(found: Match, those: Sequence[Piece]) -> list[Piece]:
    return [piece for piece in those if piece.place not in found.pieces]


def _link(found: Match, free: dict[Place, Piece], piece: Piece, sources: Sequence[Place]) -> None:
    found.pieces[piece.place] = tuple(sources)
    for place in sources:
        free.pop(place, None)


def _match_texts(
    found: Match, free: dict[Place, Piece], those: Sequence[Piece], role: Role
) -> None:
    """Texts of one role that were split or joined: from the first on, and from the last back, as long as they read alike."""
    for step in (1, -1):
        own = [
            piece
            for piece in free.values()
            if piece.role is role and isinstance(piece.part, TextPart)
        ][::step]
        left = [p for p in _open(found, those) if p.role is role and isinstance(p.part, TextPart)][
            ::step
        ]
        for a, b in joined(
            [letters(piece)[::step] for piece in own], [letters(piece)[::step] for piece in left]
        ):
            if len(a) > 1 or len(b) > 1:
                for j in b:
                    _link(found, free, left[j], [own[i].place for i in a])


def _match_elsewhere(
    found: Match, shown: Sequence[Shown], stored: Sequence[Message], copy: Sequence[Message]
) -> None:
    """Pieces that the client put elsewhere, and calls and results by the call's id, whatever they say, where no other call has it. A text of
    the user's behind all that is stored is a new one."""
    last = max([*found.whole, *(k for k, _ in found.pieces)], default=-1)
    left = _open(found, pieces(copy, [k for k in range(len(copy)) if k not in found.whole]))
    if not left:
        return
    by_key: dict[str, deque[Shown]] = {}
    for each in shown:
        by_key.setdefault(each.key, deque()).append(each)
    used: set[Place] = set()
    for piece in left:
        is_new = (
            piece.place[0] > last
            and piece.role is Role.USER
            and not isinstance(piece.part, ToolResultPart)
        )
        if not is_new and (places := by_key.get(piece.key)):
            sources = places.popleft().sources
            found.pieces[piece.place] = sources
            used.update(sources)
    calls = {
        place: stored[place[0]].content[place[1]]
        for each in shown
        for place in each.sources
        if place not in used
    }
    unique = _unique(stored) & _unique(copy)
    by_call = {
        call: place for place, part in calls.items() if (call := _call(part)) and call[1] in unique
    }
    for piece in _open(found, left):
        if (call := _call(piece.part)) and (place := by_call.pop(call, None)) is not None:
            found.changed.add(piece.place)
            found.pieces[piece.place] = (place,)


def _unique(messages: Sequence[Message]) -> set[str]:
    """The ids that no two calls have."""
    counts = Counter(
        piece.id for one in messages for piece in one.content if isinstance(piece, ToolCallPart)
    )
    results = Counter(
        piece.id for one in messages for piece in one.content if isinstance(piece, ToolResultPart)
    )
    return {call_id for call_id in counts | results if counts[call_id] < 2 and results[call_id] < 2}


def _call(part: Content) -> tuple[str, ...] | None:
    if isinstance(part, ToolCallPart):
        return "call", part.id, part.name
    return ("result", part.id) if isinstance(part, ToolResultPart) else None
