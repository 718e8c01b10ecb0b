"""A message of a run as its client sees it, while it is told."""

from __future__ import annotations

from dragoman.event import Event, MessageFinished, MessageStarted, OpenText, PartFinished
from dragoman.fold import close_part
from dragoman.message import Content

__all__ = ["SeenMessage", "SeenPart"]


class SeenPart:
    """A part that is told."""

    __slots__ = ("before", "deltas", "index", "part")

    def __init__(self, part: Content | OpenText) -> None:
        self.part = part
        self.index: int | None = None
        """Where the client sees it; `None`: it does not yet."""
        self.deltas: list[str | bytes] | None = []
        """While it is open."""
        self.before: str | None = None
        """What is told before its text; `None`: nothing of it is told yet."""


class SeenMessage:
    """A message of the run, as far as it is told."""

    __slots__ = ("calls", "finish", "is_empty", "parts", "returned", "sent_as", "speaks", "start")

    def __init__(self, start: MessageStarted) -> None:
        self.start = start
        self.finish: MessageFinished | None = None
        self.sent_as = ""
        """Id of the message that the client sees it in; empty: it sees nothing of it yet."""
        self.parts: dict[int, SeenPart] = {}
        """Those that are told and may get more."""
        self.is_empty = True
        """Nothing stands in it, seen or not."""
        self.speaks = False
        """Something beside thinking is told."""
        self.calls = False
        """A call is told that the client runs."""
        self.returned = False
        """Its call of `return_result` has begun."""

    def cut(self) -> list[Event]:
        """Ends the parts that are open, as far as they were told."""
        cut: list[Event] = []
        for seen in self.parts.values():
            if seen.deltas is not None and seen.index is not None:
                deltas = [seen.before, *seen.deltas] if seen.before else seen.deltas
                part = close_part(seen.part, deltas, cut=True)
                cut += [] if part is None else [PartFinished(self.sent_as, seen.index, part)]
                seen.deltas = None
        return cut
