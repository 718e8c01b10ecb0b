"""How long an answer takes, measured by who sends it: wires that tell it have no clock of their
own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from time import perf_counter_ns

import msgspec

from dragoman.event import Event, MessageStarted, PartStarted
from dragoman.message import Role

__all__ = [
    "AnswerTimer",
    "Durations",
    "convert_to_utc",
]


class Durations(msgspec.Struct, frozen=True):
    """Nanoseconds, each 1 at least: clients divide by them."""

    preparation: int
    """From the request to the moment in which the model was asked."""
    first_part: int
    """From then to the first part of the answer."""
    generation: int
    """From then to the end."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.preparation + self.first_part + self.generation


class AnswerTimer:
    """Measures one answer, from the moment in which it is made."""

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        """`clock`: tells nanoseconds that never go back."""
        self._clock = clock
        self._began = clock()
        self._asked: int | None = None
        self._first: int | None = None
        self._messages: set[str] = set()

    def ask(self) -> None:
        """The model is asked now."""
        self._asked = self._clock()

    def observe(self, events: Iterable[Event]) -> None:
        """Events came now: the first part that is the model's begins the answer."""
        if self._first is not None:
            return
        for event in events:
            if isinstance(event, MessageStarted) and event.role is Role.MODEL:
                self._messages.add(event.message_id)
            elif isinstance(event, PartStarted) and event.message_id in self._messages:
                self._first = self._clock()
                return

    def measure(self) -> Durations:
        """What it took until now. An answer without a part was not begun."""
        now = self._clock()
        asked = self._began if self._asked is None else self._asked
        first = now if self._first is None else self._first
        return Durations(max(asked - self._began, 1), max(first - asked, 1), max(now - first, 1))


def convert_to_utc(time: datetime) -> datetime:
    """A time in UTC; one without a zone is in it already. Where UTC would be before the year 1 or
    after 9999, the first or last time that there is."""
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    try:
        return time.astimezone(UTC)
    except OverflowError:
        return (datetime.min if time.year == 1 else datetime.max).replace(tzinfo=UTC)
