"""What a format makes of stored messages: which of their pieces its reader sees, and as what.

A client's copy is never compared with what is stored, but with what the client was shown of it:
texts may be joined there, a system message may be the user's, a failed result may be any result. So
stored messages are written in the format and read again, and each piece that is read is traced to
those that it came from: equal ones first, then, between these, what the format changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman import formats
from dragoman.codec.turns import holds_only_answers
from dragoman.errors import DragomanError
from dragoman.history.alignment import align, align_texts, pair_equal
from dragoman.history.pieces import Piece, Place, shared_pieces
from dragoman.message import Content, Message, Role, TextPart, ToolCallPart, ToolResultPart

__all__ = ["Shown", "letters", "merges_answers", "project", "widen_spans"]


class Shown(NamedTuple):
    """A piece as the format's reader sees it."""

    key: str
    """As that of `Piece`."""
    sources: tuple[Place, ...]
    """The stored pieces that it shows; of what the format made up: those of what stands before
    it."""


def widen_spans(
    messages: Sequence[Message], ranges: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Returns the spans of messages to project, which rise, widened so that each begins with a
    question, or with the first message, and ends before one."""
    begins, number = [0, *_find_questions(messages)], 0
    widened: list[tuple[int, int]] = []
    for first, end in ranges:
        while number + 1 < len(begins) and begins[number + 1] <= first:
            number += 1
        ahead = number
        while ahead < len(begins) and begins[ahead] < end:
            ahead += 1
        if ahead < len(begins):
            stop = begins[ahead]
        else:
            stop = len(messages)
        if widened and begins[number] < widened[-1][1]:
            widened[-1] = widened[-1][0], max(stop, widened[-1][1])
        else:
            widened.append((begins[number], stop))
    return widened


def _find_questions(messages: Sequence[Message]) -> list[int]:
    """Returns the positions of the messages in which the user says something, where spans of a
    projection may begin."""
    return [
        position
        for position, message in enumerate(messages)
        if message.role is Role.USER and not holds_only_answers(message)
    ]


def project(messages: Sequence[Message], start: int, end: int, format: str) -> list[Shown]:  # noqa: A002 what it is called everywhere
    """Returns the projection of a span of messages: what the reader of a format sees of them."""
    stored_pieces = shared_pieces(messages, range(start, end))
    codec = formats.get(format)
    try:
        copy = codec.load_messages(codec.dump_messages(list(messages[start:end])))
    except DragomanError:
        return [Shown(piece.key, (piece.location,)) for piece in stored_pieces]
    tracing = _Tracing(stored_pieces, shared_pieces(copy, range(len(copy))))
    tracing.trace()
    return tracing.list_shown()


class _Tracing:
    """Finds the stored pieces of what is read again. `own`, `read`: numbers of pieces of both."""

    def __init__(self, own: Sequence[Piece], read: Sequence[Piece]) -> None:
        self._own, self._read = own, read
        self._free = dict(enumerate(own))
        self._sources: dict[int, tuple[Place, ...]] = {}

    def trace(self) -> None:
        """Traces a projection: finds the stored piece behind each piece that a format's reader
        sees: equal ones in order, then unordered, then changed."""
        own_keys, keys = ([piece.key for piece in pieces] for pieces in (self._own, self._read))
        in_order = align(own_keys, keys)
        for own, read in in_order:
            self._sources[read] = (self._free.pop(own).location,)
        self._take_unordered()
        start = read_start = 0
        for end, read_end in [*in_order, (len(self._own), len(self._read))]:
            self._take_changed(range(start, end), range(read_start, read_end))
            start, read_start = end + 1, read_end + 1
        self._take_changed(list(self._free), range(len(self._read)))

    def list_shown(self) -> list[Shown]:
        """Returns the pieces of the projection that the reader sees, each with the places of the
        stored pieces behind it."""
        shown_pieces: list[Shown] = []
        for read, piece in enumerate(self._read):
            if shown_pieces:
                before = shown_pieces[-1].sources
            else:
                before = ()
            shown_pieces.append(Shown(piece.key, self._sources.get(read) or before))
        return shown_pieces

    def _take_unordered(self) -> None:
        """Traces projected pieces that the format has in another order."""
        unmatched = list(self._free)
        reads = [read for read in range(len(self._read)) if read not in self._sources]
        pairs = pair_equal(
            [self._own[number].key for number in unmatched],
            [self._read[read].key for read in reads],
        )
        for number, read in pairs:
            self._sources[reads[read]] = (self._free.pop(unmatched[number]).location,)

    def _take_changed(self, own: Iterable[int], reads: Iterable[int]) -> None:
        """Traces projected pieces that the format changed: those of one role and kind before those
        that may have become another."""
        own, reads = list(own), list(reads)
        # A format may make a system text the user's, so roles count first and then not at all.
        for role in (*Role, None):
            for kind in ("call", "result", "content", "file", "text", "rest"):
                self._take_kind(own, reads, kind, role)

    def _take_kind(
        self, own: Sequence[int], reads: Sequence[int], kind: str, role: Role | None
    ) -> None:
        """Traces projected pieces of a kind. As many on both sides are paired in order; texts may
        have been joined or split; otherwise every read piece comes from all of the own ones."""
        these, those = self._find_remaining(own, reads, kind, role)
        if kind == "text" and len(these) != len(those):
            self._take_texts(these, those)
            these, those = self._find_remaining(own, reads, kind, role)
        is_even = len(these) == len(those)
        if not these or not those or (kind == "content" and not is_even):
            return
        sources = tuple([self._free.pop(number).location for number in these])
        for number, read in enumerate(those):
            self._sources[read] = (sources[number],) if is_even else sources

    def _take_texts(self, own: Sequence[int], reads: Sequence[int]) -> None:
        """Traces projected texts that were joined or split, as long as both sides read alike."""
        own_texts = [letters(self._free[number]) for number in own]
        read_texts = [letters(self._read[number]) for number in reads]
        for own_range, read_range in align_texts(own_texts, read_texts):
            sources = tuple([self._free.pop(own[number]).location for number in own_range])
            self._sources.update(dict.fromkeys([reads[number] for number in read_range], sources))

    def _find_remaining(
        self, own: Sequence[int], reads: Sequence[int], kind: str, role: Role | None
    ) -> tuple[list[int], list[int]]:
        """Returns the own and the projected pieces of a kind and role that are not traced yet."""
        own_left = [
            number
            for number in own
            if number in self._free and _has_kind_and_role(self._own[number], kind, role)
        ]
        reads_left = [
            number
            for number in reads
            if number not in self._sources and _has_kind_and_role(self._read[number], kind, role)
        ]
        return own_left, reads_left


def _has_kind_and_role(piece: Piece, kind: str, role: Role | None) -> bool:
    """True if a piece of a projected conversation has this kind and role. `kind`: `call`, `result`,
    `file` or `text`; `content` and `rest` are files and texts. `role`: None for any."""
    if role is not None and piece.role is not role:
        return False
    piece_kind = _kind_of_content(piece.part)
    if kind in ("content", "rest"):
        return piece_kind in ("file", "text")
    return piece_kind == kind


def letters(piece: Piece) -> str:
    """Returns the text of a projected piece without white space, to compare how two formats show
    it."""
    if isinstance(piece.part, TextPart):
        return "".join(piece.part.text.split())
    return ""


def _kind_of_content(piece: Content) -> str:
    """Returns the kind of a piece of a projected conversation: call, result, text or file."""
    if isinstance(piece, ToolCallPart):
        return "call"
    if isinstance(piece, ToolResultPart):
        return "result"
    if isinstance(piece, TextPart):
        return "text"
    return "file"


def merges_answers(format: str) -> bool:  # noqa: A002 what it is called everywhere
    """True if the projection by a format reads two adjacent model messages as one."""
    codec = formats.get(format)
    answers = [Message.user("a"), Message.model("b"), Message.model("c")]
    return len(codec.load_messages(codec.dump_messages(answers))) < len(answers)
