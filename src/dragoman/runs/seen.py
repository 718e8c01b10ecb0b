"""What a client has seen of a message and its parts, while a run is filtered for it (`visible`)."""

from __future__ import annotations

from dragoman.event import Event, MessageFinished, MessageStarted, OpenText, PartFinished
from dragoman.fold import close_part
from dragoman.message import Content

__all__ = ["SeenMessage", "SeenPart"]


class SeenPart:
    """A part that is sent to the client."""

    __slots__ = ("deltas", "index", "part", "separator")

    def __init__(self, part: Content | OpenText) -> None:
        """Starts with a part that users see, as it begins."""
        self.part = part
        self.index: int | None = None
        """Index of the part for the client; None if it was not sent yet."""
        self.deltas: list[str | bytes] | None = []
        """Deltas so far; None once the part is closed."""
        self.separator: str | None = None
        """Text to send before the part's own; None until the first text is sent."""


class SeenMessage:
    """A message of the run, with what was sent of it."""

    __slots__ = (
        "finish",
        "has_answer",
        "has_client_calls",
        "has_result",
        "is_empty",
        "parts",
        "sent_as",
        "start",
    )

    def __init__(self, start: MessageStarted) -> None:
        """Starts with a message that users see, without parts."""
        self.start = start
        self.finish: MessageFinished | None = None
        self.sent_as = ""
        """Id of the message that the client sees it in; empty if nothing was sent yet."""
        self.parts: dict[int, SeenPart] = {}
        """Parts that are sent and may grow, by their indexes in the run."""
        self.is_empty = True
        """True if it has no part, visible or not."""
        self.has_answer = False
        """True if something beside thinking was sent."""
        self.has_client_calls = False
        """True if a call was sent that the client runs."""
        self.has_result = False
        """True if its call of `return_result` has begun."""

    def cut(self) -> list[Event]:
        """Returns the events that end the seen message's open parts with what was sent of them."""
        cut: list[Event] = []
        for seen in self.parts.values():
            if seen.deltas is not None and seen.index is not None:
                if seen.separator:
                    deltas = [seen.separator, *seen.deltas]
                else:
                    deltas = seen.deltas
                part = close_part(seen.part, deltas, cut=True)
                cut += [] if part is None else [PartFinished(self.sent_as, seen.index, part)]
                seen.deltas = None
        return cut
