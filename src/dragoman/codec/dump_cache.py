"""What conversations became on a wire, kept for their next requests, so that a turn dumps its new
messages only.

Messages are frozen, so what was dumped of them holds while they are the very same objects; equality
would not do, since `1 == True`. How a conversation is dumped so is `codec.dump_with_history`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import count
from operator import is_
from threading import Lock
from typing import NamedTuple
from weakref import ref

import msgspec

from dragoman.codec.opening import count_system_messages
from dragoman.codec.sent_history import DumpedSegment, KnownHistory, SentHistory
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.request import ServerTool, ToolSpec

__all__ = ["LEAST", "MOST_BYTES", "MOST_LINES", "History", "KnownTools", "DumpedRequest"]

MOST_LINES = 64
"""Conversations, and forks of them, that one model keeps."""
MOST_BYTES = 2**26
"""Bytes that one model keeps of them: their JSON, and what finds it again."""
LEAST = 16
"""Messages, or tools, from which on remembering is worth it."""
SEGMENT = 32
"""Messages that are dumped in one go, about."""
_MOST_TOOLS = 8
"""Lists of tools that one model keeps."""


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
    """The memory of one model, for runs at once and from any thread. It is bounded (`MOST_LINES`,
    `MOST_BYTES`) and keeps no conversation alive: what is known of one goes with its first message
    that is not the system's."""

    def __init__(self, *, least: int = LEAST, segment: int = SEGMENT) -> None:
        """Creates an empty cache of sent conversations. `least`: conversations with fewer messages,
        and requests with fewer tools, are not cached; `segment`: number of messages that are dumped
        as one segment."""
        self.least, self.segment = least, segment
        self._lines: dict[int, SentHistory] = {}
        """Serial number → a sent conversation or a fork of it, the last used at the end."""
        self._numbers = count()
        """Serial numbers of further conversations."""
        self._lock = Lock()
        # Tuples that are replaced as a whole, so that they are read without the lock.
        self._tools: tuple[KnownTools, ...] = ()
        """Lists of tools that were dumped, the latest first."""
        self._names: tuple[tuple[Sequence[ToolSpec], Mapping[str, str]], ...] = ()
        """Lists of tools with their names: a tool's own name → the name that is sent."""

    @property
    def size(self) -> int:
        """Returns about how many bytes the cache holds of conversations, without the messages
        themselves."""
        return sum([line.size for line in self._lines.copy().values()])

    def turn(
        self, messages: Sequence[Message], tools: Sequence[object], target: Origin, wire: str
    ) -> DumpedRequest | None:
        """Returns the cached dump of a request to `target` by this wire, to be read and extended.
        None if the request is too small for the cache."""
        if max(len(messages), len(tools)) >= self.least:
            return DumpedRequest(self, messages, target, wire)
        return None

    def find(self, messages: Sequence[Message], key: Hashable) -> KnownHistory:
        """Returns the longest beginning of a conversation whose dump is in the cache."""
        best, most = None, 0
        for number, line in self._lines_of(messages, key):
            shared = line.count_shared_segments(messages)
            if shared > most:
                best, most = number, shared
        line = self._mark_used(best)
        if line is None:
            return KnownHistory()
        return KnownHistory(line, most)

    def is_whole(self, messages: Sequence[Message], key: Hashable) -> bool:
        """True if the cache of dumps knows that the conversation, or its beginning, cannot be
        dumped in segments."""
        for number, line in self._lines_of(messages, key):
            if not line.ends and line.count_shared_messages(messages) == len(line.given):
                return self._mark_used(number) is not None
        return False

    def keep_whole(self, messages: Sequence[Message], key: Hashable) -> None:
        """Notes in the cache that the conversation cannot be dumped in segments, however it
        continues."""
        first_index = count_system_messages(messages)
        line = SentHistory(key, messages[first_index], first_index)
        line.given += messages
        line.given[first_index] = None
        line.measure()
        with self._lock:
            self._add_line(line, messages[first_index])

    def keep(
        self,
        known_history: KnownHistory,
        key: Hashable,
        messages: Sequence[Message],
        added: Sequence[DumpedSegment],
        names: Mapping[str, str],
    ) -> None:
        """Adds the dumped segments that follow the cached ones. A conversation that continued
        differently becomes a fork."""
        first_index = count_system_messages(messages)
        with self._lock:
            line = known_history.line
            # Another run may have added to the line since it was found.
            if line is None or len(line.ends) != known_history.segments:
                first = messages[first_index]
                if line is None:
                    line = SentHistory(key, first, first_index)
                else:
                    line = line.fork_at(known_history.segments, first)
                self._add_line(line, first)
            for segment in added:
                line.add_segment(segment, names)
            self._shrink()

    def _lines_of(
        self, messages: Sequence[Message], key: Hashable
    ) -> Iterator[tuple[int, SentHistory]]:
        """Yields the cached dumps of the conversations that may begin like these messages, the last
        used first."""
        first_index = count_system_messages(messages)
        # A copy, since lines may go at any time; the one that was used last comes first.
        for number, line in reversed(self._lines.copy().items()):
            if line.at == first_index and line.first() is messages[first_index] and line.key == key:
                yield number, line

    def _mark_used(self, number: int | None) -> SentHistory | None:
        """Returns the cached line of a conversation and moves it to the end, so that it is dropped
        last; None if it is gone."""
        with self._lock:
            if number is None:
                return None
            line = self._lines.pop(number, None)
            if line is not None:
                self._lines[number] = line
            return line

    def _add_line(self, line: SentHistory, first: Message) -> None:
        """Adds a sent conversation, which is dropped when its first message is garbage
        collected."""
        number, lines = next(self._numbers), self._lines
        # The callback holds the table, not `self`, and pops without the lock: the collector may
        # call it at any time, also in a thread that has the lock.
        line.first = ref(first, lambda _: lines.pop(number, None))
        lines[number] = line
        self._shrink()

    def _shrink(self) -> None:
        while len(self._lines) > MOST_LINES or (self._lines and self.size > MOST_BYTES):
            self._lines.pop(next(iter(self._lines)), None)

    def names(
        self, tools: Sequence[ToolSpec], find: Callable[[], Mapping[str, str]]
    ) -> Mapping[str, str]:
        """Returns the cached names under which these tools are sent, where they differ from the
        tools' own. `find` computes them the first time."""
        for known_tools, names in self._names:
            if _same(known_tools, tools):
                return names
        names = find()
        with self._lock:
            self._names = ((tuple(tools), names), *self._names[: _MOST_TOOLS - 1])
        return names

    def tools(
        self,
        tools: Sequence[ToolSpec | ServerTool],
        target: Origin | None,
        names: Mapping[str, str],
    ) -> KnownTools | None:
        """Returns the cached dump of these tools for a target under these names, or None."""
        for known_tools in self._tools:
            if (
                known_tools.target == target
                and known_tools.names == names
                and _same(known_tools.tools, tools)
            ):
                return known_tools
        return None

    def keep_tools(self, known_tools: KnownTools) -> None:
        """Keeps what tools became."""
        with self._lock:
            self._tools = (known_tools, *self._tools[: _MOST_TOOLS - 1])


class DumpedRequest:
    """One request of a model. Once it is dumped, `prefix` is what an answer's `Origin.prefix`
    says."""

    def __init__(
        self, history: History | None, messages: Sequence[Message], target: Origin, wire: str
    ) -> None:
        """Starts a request whose dump the cache is asked for and extended by. `history`: None if
        nothing is remembered and the messages are repaired already."""
        self.history, self.messages, self.target, self.wire = history, messages, target, wire
        self.prefix = ""


def _same(these: Sequence[object], those: Sequence[object]) -> bool:
    return len(these) == len(those) and all(map(is_, these, those))
