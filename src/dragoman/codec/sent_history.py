"""A conversation that a model has sent, and how much of another one begins with it.

A `SentHistory` is cut into segments, and stores the dumped JSON, the losses and the names that
each segment used. Its columns hold running totals, so that the first n segments are always a
slice. `KnownHistory` is such a slice: what the next request of the same conversation can reuse.

Messages are compared by identity, which costs little even for a long history. A segment is added
in one order, the column `ends` last, so that readers of earlier segments need no lock.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import compress, count
from operator import is_not
from sys import getsizeof
from typing import NamedTuple
from weakref import ref

import msgspec

from dragoman.codec.digest import DIGEST_SIZE
from dragoman.codec.marks import KEY
from dragoman.json_bytes import JsonMap
from dragoman.loss import Loss
from dragoman.message import Message, Role, TextPart, ToolCallPart, ToolResultPart

__all__ = ["KnownHistory", "SentHistory", "DumpedSegment", "can_cut_at"]

_encode = msgspec.json.Encoder().encode
_LOSS = 128
"""Bytes of a loss, about."""
_LOOK_BACK = 4
"""Messages before a cut among which the model's last one is looked for."""


def can_cut_at(messages: Sequence[Message], position: int) -> bool:
    """True if a sent conversation may be cut into segments before this message: the model answers
    the user, and both say something that no wire leaves out."""
    before, after = messages[position - 1], messages[position]
    return (
        after.role is Role.MODEL
        and before.role is Role.USER
        and _has_text_or_part(after, ToolCallPart)
        and _has_text_or_part(before, ToolResultPart)
        and not _answers_interrupt(messages, position)
    )


def _answers_interrupt(messages: Sequence[Message], position: int) -> bool:
    """True if the sent history up to this position ends with answers to an interrupt: what is sent
    of an approval depends on what follows it."""
    before = reversed(messages[max(position - _LOOK_BACK, 0) : position])
    last = next((message for message in before if message.role is Role.MODEL), None)
    return last is not None and any(
        isinstance(piece, ToolCallPart) and piece.native is not None and KEY in piece.native
        for piece in last.content
    )


def _has_text_or_part(message: Message, part_type: type[ToolCallPart | ToolResultPart]) -> bool:
    """True if a message of the sent history has text, or a call or result of this type that its
    client runs."""
    for piece in message.content:
        if isinstance(piece, TextPart) and piece.text.strip():
            return True
        if isinstance(piece, part_type) and piece.run_by != "provider":
            return True
    return False


class DumpedSegment(NamedTuple):
    """A part of a conversation that was dumped on its own."""

    messages: Sequence[Message]
    """Its messages, before they were repaired."""
    length: int
    """How many they were after that."""
    head: JsonMap
    """What the payload holds beside the list."""
    data: bytes
    """JSON of the list's elements, with commas between them; empty in a line that is linked."""
    losses: Sequence[Loss]
    """What of it was left out."""
    ids: frozenset[str]
    """What no later segment may use again."""
    names: Sequence[str]
    """Of tools."""
    notes: Sequence[str]
    """What the rest of a request must know of it (`Way.notes`)."""
    digest: bytes
    """Of the conversation up to its end."""
    linked: bool = False
    """True if a request can go on from a message in it."""


class SentHistory:
    """A conversation that was sent, in columns of one element a segment. It only grows, so whoever
    reads its first segments may go on while another adds to it. Its first message that is not the
    system's is held weakly.

    A line without segments is of a conversation that cannot be cut."""

    def __init__(self, key: Hashable, first: Message, first_index: int) -> None:
        """Creates the record of a conversation that was sent, without segments. `first`: its first
        message that is not the system's."""
        self.key, self.at = key, first_index
        self.first = ref(first)
        self.given: list[Message | None] = []
        self.ends, self.counts, self.offsets, self.lost = (
            array("I"),
            array("I"),
            array("I"),
            array("I"),
        )
        """Up to the end of a segment: messages as given, as repaired, bytes, losses."""
        self.links = array("i")
        """Number of the last segment up to this one that a request can go on from; -1: there is
        none."""
        self.digests, self.data = bytearray(), bytearray()
        self.losses: list[Loss] = []
        self.head: JsonMap = {}
        self.ids: dict[str, int] = {}
        self.notes: dict[str, int] = {}
        self.names: dict[str, tuple[int, str]] = {}
        """What was met first in which segment; of a tool's name, as what it was sent."""
        self.size = 0
        """Bytes held, about."""
        self.ids_size = 0
        """Bytes of the ids alone."""

    def count_shared_messages(self, messages: Sequence[Message]) -> int:
        """Returns how many of its messages begin this conversation too. System texts at its head are
        compared by what they say: a server reads them anew with each request."""
        apart = compress(count(), map(is_not, self.given, messages))
        return next(
            (n for n in apart if n != self.at and not self._repeats(n, messages[n])),
            min(len(self.given), len(messages)),
        )

    def _repeats(self, position: int, message: Message) -> bool:
        """True if a system text at the head of the sent history says, to the byte, what this message
        does."""
        earlier = self.given[position] if position < self.at else None
        return earlier is not None and _encode(earlier) == _encode(message)

    def count_shared_segments(self, messages: Sequence[Message]) -> int:
        """Returns how many segments of the sent history begin this conversation and may be cut off
        it."""
        length = self.count_shared_messages(messages)
        # At least one message stays outside: a cut needs one on both sides.
        segments = bisect_right(self.ends, min(length, len(messages) - 1))
        while segments and not can_cut_at(messages, self.ends[segments - 1]):
            segments -= 1
        return segments

    def fork_at(self, segments: int, first: Message) -> SentHistory:
        """Returns a sent history of its own with the first segments of this one."""
        line = SentHistory(self.key, first, self.at)
        if segments:
            line.given = self.given[: self.ends[segments - 1]]
            line.data, line.losses = (
                self.data[: self.offsets[segments - 1]],
                self.losses[: self.lost[segments - 1]],
            )
        line.ends, line.counts = self.ends[:segments], self.counts[:segments]
        line.offsets, line.lost = self.offsets[:segments], self.lost[:segments]
        line.digests, line.links, line.head = (
            self.digests[: DIGEST_SIZE * segments],
            self.links[:segments],
            self.head,
        )
        line.ids = {name: number for name, number in self.ids.items() if number < segments}
        line.notes = {name: number for name, number in self.notes.items() if number < segments}
        line.names = {
            name: numbered_name
            for name, numbered_name in self.names.items()
            if numbered_name[0] < segments
        }
        line.ids_size = sum(map(getsizeof, line.ids))
        return line

    def add_segment(self, segment: DumpedSegment, names: Mapping[str, str]) -> None:
        """Adds a segment at the end of the sent history. `names`: the names under which tools are
        sent, where they differ."""
        number = len(self.ends)
        self.given += segment.messages
        # Not held, so that the line goes with it (see `first`).
        if not number:
            self.given[self.at] = None
            self.head = segment.head
        if number and segment.data:
            self.data += b"," + segment.data
        else:
            self.data += segment.data
        self.losses += segment.losses
        self._register_names(number, segment, names)
        self.digests += segment.digest
        if segment.linked:
            self.links.append(number)
        elif number:
            self.links.append(self.links[-1])
        else:
            self.links.append(-1)
        self.lost.append(len(self.losses))
        self.offsets.append(len(self.data))
        if number:
            self.counts.append(self.counts[-1] + segment.length)
        else:
            self.counts.append(segment.length)
        # Last: a reader takes its length for the number of segments.
        self.ends.append(len(self.given))
        self.measure()

    def _register_names(
        self, number: int, segment: DumpedSegment, names: Mapping[str, str]
    ) -> None:
        """Records the ids, notes and tools that this segment is the first of the sent history to
        have."""
        for id_ in segment.ids:
            if self.ids.setdefault(id_, number) == number:
                self.ids_size += getsizeof(id_)
        for note in segment.notes:
            self.notes.setdefault(note, number)
        for name in segment.names:
            self.names.setdefault(name, (number, names.get(name, name)))

    def measure(self) -> None:
        """Measures the bytes that the sent conversation holds in memory."""
        columns = (
            self.ends,
            self.counts,
            self.offsets,
            self.lost,
            self.links,
            self.digests,
            self.data,
            self.given,
        )
        tables = (self.ids, self.notes, self.names)
        self.size = (
            sum(map(getsizeof, (*columns, *tables))) + self.ids_size + _LOSS * len(self.losses)
        )


class KnownHistory(NamedTuple):
    """What is known of a conversation: the first segments of a line, or nothing."""

    line: SentHistory | None = None
    """`None`: nothing is known."""
    segments: int = 0
    """How many of its segments begin the conversation."""

    @property
    def given(self) -> int:
        """Returns how many messages of the conversation were sent before and are known."""
        if self.line is None:
            return 0
        return self.line.ends[self.segments - 1]

    @property
    def mended(self) -> int:
        """Returns how many messages the known part of the conversation has after repair."""
        if self.line is None:
            return 0
        return self.line.counts[self.segments - 1]

    @property
    def digest(self) -> bytes | None:
        """Returns the digest of the known part of the conversation, or None."""
        end = DIGEST_SIZE * self.segments
        if self.line is None:
            return None
        return bytes(self.line.digests[end - DIGEST_SIZE : end])

    @property
    def data(self) -> bytes:
        """Returns the JSON of the known part of the conversation."""
        if self.line is None:
            return b""
        return bytes(self.line.data[: self.line.offsets[self.segments - 1]])

    @property
    def head(self) -> JsonMap:
        """Returns what the payload holds beside the list of messages."""
        return {} if self.line is None else self.line.head

    @property
    def losses(self) -> Sequence[Loss]:
        """Returns the losses of the known part of the conversation."""
        if self.line is None:
            return ()
        return self.line.losses[: self.line.lost[self.segments - 1]]

    @property
    def notes(self) -> Sequence[str]:
        """Returns the notes about the known messages that the rest of a request needs."""
        notes = {} if self.line is None else self.line.notes.copy()
        return [note for note, number in notes.items() if number < self.segments]

    @property
    def names(self) -> Mapping[str, str]:
        """Maps tool names to those under which they were sent."""
        names = {} if self.line is None else self.line.names.copy()
        return {
            name: sent_name for name, (number, sent_name) in names.items() if number < self.segments
        }

    def has(self, ids: Iterable[str]) -> bool:
        """True if one of the ids is used already."""
        ids_of_line = {} if self.line is None else self.line.ids
        return any(ids_of_line.get(name, self.segments) < self.segments for name in ids)

    def before_link(self) -> KnownHistory:
        """Returns the part before the last segment that a request can continue from."""
        if self.line is None:
            number = -1
        else:
            number = self.line.links[self.segments - 1]
        if number > 0:
            return KnownHistory(self.line, number)
        return KnownHistory()
