"""What conversations became on a wire, kept for their next requests, so that a turn dumps its new messages only.

Messages are frozen, so what was dumped of them holds while they are the very same objects; equality would not do, since `1 == True`.
How a conversation is dumped so is `codec.history_dump`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from itertools import compress, count
from operator import is_, is_not
from threading import Lock
from typing import Any, NamedTuple
from weakref import ref

import msgspec

from dragoman.loss import Loss
from dragoman.message import Message, Origin, Role, TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ServerTool, ToolSpec

__all__ = [
    "LEAST",
    "MOST_BYTES",
    "MOST_LINES",
    "History",
    "KnownTools",
    "Line",
    "Segment",
    "Turn",
    "head_length",
    "parts",
]

MOST_LINES = 64
"""Conversations, and forks of them, that one model keeps."""
MOST_BYTES = 2**26
"""Bytes of their JSON, together with 8 for each message, that one model keeps."""
LEAST = 16
"""Messages, or tools, from which on remembering is worth it."""
SEGMENT = 32
"""Messages that are dumped in one go, about."""
_MOST_TOOLS = 8
"""Lists of tools that one model keeps."""


def head_length(messages: Sequence[Message]) -> int:
    """How many messages at the head are the system's."""
    return next((at for at, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))


def parts(before: Message, after: Message) -> bool:
    """Whether a conversation may be cut between two messages, so that neither side tells anything of the other: the model answers
    somebody, and both say what no wire leaves out."""
    return (
        after.role is Role.MODEL
        and before.role is Role.USER
        and _says(after, ToolCallPart)
        and _says(before, ToolResultPart)
    )


def _says(message: Message, kind: type[ToolCallPart | ToolResultPart]) -> bool:
    for piece in message.content:
        if isinstance(piece, TextPart) and piece.text.strip():
            return True
        if isinstance(piece, kind) and piece.run_by != "provider":
            return True
    return False


class Segment(NamedTuple):
    """A part of a conversation that was dumped on its own."""

    given: Sequence[Message]
    """Its messages, before they were repaired."""
    length: int
    """How many they were after that."""
    head: Mapping[str, Any]
    """What the payload holds beside the list."""
    data: bytes
    """JSON of the list's elements, with commas between them."""
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


class Line:
    """A conversation that was sent, in columns of one element a segment. It only grows, so whoever reads its first segments may go on
    while another adds to it. Its first message that is not the system's is held weakly."""

    def __init__(self, key: Hashable, first: Message, at: int) -> None:
        self.key, self.at = key, at
        self.first = ref(first)
        self.given: list[Message | None] = []
        self.ends, self.counts, self.offsets, self.lost = array("q"), array("q"), array("q"), array("q")
        """Up to the end of a segment: messages as given, as repaired, bytes, losses."""
        self.digests: list[bytes] = []
        self.data = bytearray()
        self.losses: list[Loss] = []
        self.head: Mapping[str, Any] = {}
        self.ids: dict[str, int] = {}
        self.notes: dict[str, int] = {}
        self.names: dict[str, tuple[int, str]] = {}
        """What was met first in which segment; of a tool's name, as what it was sent."""

    @property
    def size(self) -> int:
        """Bytes held, about."""
        return len(self.data) + 8 * len(self.given)

    def shared(self, messages: Sequence[Message]) -> int:
        """How many of its segments begin this conversation, and may be cut off it."""
        apart = compress(count(), map(is_not, self.given, messages))
        length = next((n for n in apart if n != self.at), min(len(self.given), len(messages)))
        segments = bisect_right(self.ends, min(length, len(messages) - 1))
        while segments and not parts(messages[(end := self.ends[segments - 1]) - 1], messages[end]):
            segments -= 1
        return segments

    def until(self, segments: int, first: Message) -> Line:
        """A line of its own that has the first segments."""
        line = Line(self.key, first, self.at)
        if segments:
            line.given = self.given[: self.ends[segments - 1]]
            line.data, line.losses = self.data[: self.offsets[segments - 1]], self.losses[: self.lost[segments - 1]]
        line.ends, line.counts = self.ends[:segments], self.counts[:segments]
        line.offsets, line.lost = self.offsets[:segments], self.lost[:segments]
        line.digests, line.head = self.digests[:segments], self.head
        line.ids = {name: number for name, number in self.ids.items() if number < segments}
        line.notes = {name: number for name, number in self.notes.items() if number < segments}
        line.names = {name: known for name, known in self.names.items() if known[0] < segments}
        return line

    def add(self, segment: Segment, names: Mapping[str, str]) -> None:
        """A segment that follows. `names`: of tools → as what they were sent, where that differs."""
        number = len(self.ends)
        self.given += segment.given
        if not number:
            self.given[self.at] = None
            self.head = segment.head
        self.data += b"," + segment.data if number else segment.data
        self.losses += segment.losses
        for name in segment.ids:
            self.ids.setdefault(name, number)
        for name in segment.notes:
            self.notes.setdefault(name, number)
        for name in segment.names:
            self.names.setdefault(name, (number, names.get(name, name)))
        self.digests.append(segment.digest)
        self.lost.append(len(self.losses))
        self.offsets.append(len(self.data))
        self.counts.append((self.counts[-1] if number else 0) + segment.length)
        self.ends.append(len(self.given))


class KnownTools(NamedTuple):
    """What the tools of a request became."""

    tools: Sequence[ToolSpec | ServerTool]
    """Themselves."""
    target: Origin | None
    """Who reads them."""
    names: Mapping[str, str]
    """Name of a tool → the one that is sent."""
    fields: Mapping[str, msgspec.Raw]
    """Field of the body → JSON of its value."""
    losses: Sequence[Loss]
    """What of them was left out."""
    notes: Sequence[str]
    """What the rest of the request must know of them."""


class History:
    """The memory of one model, for runs at once and from any thread. It is bounded (`MOST_LINES`, `MOST_BYTES`) and keeps no
    conversation alive: what is known of one goes with its first message that is not the system's."""

    def __init__(self, *, least: int = LEAST, segment: int = SEGMENT) -> None:
        """`least`: messages or tools from which on it remembers; `segment`: messages that are dumped in one go."""
        self.least, self.segment = least, segment
        self._lines: dict[int, Line] = {}
        self._numbers = count()
        self._lock = Lock()
        self._tools: tuple[KnownTools, ...] = ()

    @property
    def size(self) -> int:
        """Bytes held, about: JSON, and 8 for each message."""
        return sum([line.size for line in self._lines.copy().values()])

    def turn(self, messages: Sequence[Message], tools: Sequence[object], target: Origin, wire: str) -> Turn | None:
        """A request to `target` by this wire, to be dumped by what is known; `None`: it is too small to matter."""
        return Turn(self, messages, target, wire) if max(len(messages), len(tools)) >= self.least else None

    def find(self, messages: Sequence[Message], key: Hashable) -> tuple[Line | None, int]:
        """The line that has most of the conversation, and how many of its segments."""
        found, most, at = None, 0, head_length(messages)
        for number, line in reversed(self._lines.copy().items()):
            if line.at == at and line.first() is messages[at] and line.key == key:
                shared = line.shared(messages)
                if shared > most:
                    found, most = number, shared
        if found is None:
            return None, 0
        with self._lock:  # the one used last is dropped last
            line = self._lines.pop(found, None)
            if line is not None:
                self._lines[found] = line
        return (line, most) if line is not None else (None, 0)

    def keep(
        self,
        known: Line | None,
        segments: int,
        key: Hashable,
        messages: Sequence[Message],
        added: Sequence[Segment],
        names: Mapping[str, str],
    ) -> None:
        """Keeps the segments that follow the first ones of a known line, which is forked where it went on otherwise."""
        at = head_length(messages)
        with self._lock:
            line = known
            if line is None or len(line.ends) != segments:
                line = Line(key, messages[at], at) if line is None else line.until(segments, messages[at])
                number, lines = next(self._numbers), self._lines
                line.first = ref(messages[at], lambda _, number=number, lines=lines: lines.pop(number, None))
                lines[number] = line
            for segment in added:
                line.add(segment, names)
            while len(self._lines) > MOST_LINES or (self._lines and self.size > MOST_BYTES):
                self._lines.pop(next(iter(self._lines)), None)

    def tools(
        self, tools: Sequence[ToolSpec | ServerTool], target: Origin | None, names: Mapping[str, str]
    ) -> KnownTools | None:
        """What these very tools became for this target, under these names."""
        for known in self._tools:
            same = len(known.tools) == len(tools) and all(map(is_, known.tools, tools))
            if same and known.target == target and known.names == names:
                return known
        return None

    def keep_tools(self, known: KnownTools) -> None:
        """Keeps what tools became."""
        with self._lock:
            self._tools = (known, *self._tools[: _MOST_TOOLS - 1])


class Turn:
    """One request of a model that remembers. Once it is dumped, `prefix` is what an answer's `Origin.prefix` says."""

    def __init__(self, history: History, messages: Sequence[Message], target: Origin, wire: str) -> None:
        self.history, self.messages, self.target, self.wire = history, messages, target, wire
        self.prefix = ""
