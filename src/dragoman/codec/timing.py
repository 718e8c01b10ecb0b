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
        """Returns the total time of the answer in nanoseconds."""
        return self.preparation + self.first_part + self.generation


class AnswerTimer:
    """Measures one answer, from the moment in which it is made."""

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        """Creates the timer. `clock` returns nanoseconds that never decrease."""
        self._clock = clock
        self._began = clock()
        self._asked: int | None = None
        self._first: int | None = None
        self._messages: set[str] = set()

    def ask(self) -> None:
        """Records that the model is asked now."""
        self._asked = self._clock()

    def observe(self, events: Iterable[Event]) -> None:
        """Records for the timing the arrival of events: the first part of a model message begins
        the answer."""
        if self._first is not None:
            return
        for event in events:
            if isinstance(event, MessageStarted) and event.role is Role.MODEL:
                self._messages.add(event.message_id)
            elif isinstance(event, PartStarted) and event.message_id in self._messages:
                self._first = self._clock()
                return

    def measure(self) -> Durations:
        """Returns the durations up to now. An answer without a part has not begun."""
        now = self._clock()
        asked_at = self._began if self._asked is None else self._asked
        first = now if self._first is None else self._first
        return Durations(
            max(asked_at - self._began, 1), max(first - asked_at, 1), max(now - first, 1)
        )


def convert_to_utc(time: datetime) -> datetime:
    """Returns a time in UTC; one without a zone counts as UTC. Outside of the years 1 to 9999 it is
    the first or last possible time."""
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    try:
        return time.astimezone(UTC)
    except OverflowError:
        # The zone moves it over the first or the last day that Python knows.
        if time.year == 1:
            return datetime.min.replace(tzinfo=UTC)
        return datetime.max.replace(tzinfo=UTC)
