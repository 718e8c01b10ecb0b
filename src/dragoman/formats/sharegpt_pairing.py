"""Which call a result answers, where neither has an id: the first of the round that is not answered and has the result's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Called", "Pairing"]


class Called(NamedTuple):
    """A call, as far as pairing needs it."""

    id: str
    """Its own, or one that was minted."""
    name: str
    """Of the tool."""
    position: int = 0
    """Of its message."""
    place: int = 0
    """In the content of the message."""


class Pairing:
    """Knows the calls of the last round that are not answered yet. A round ends when anybody but the model speaks."""

    def __init__(self) -> None:
        self._open: list[Called] = []
        self._seen: set[str] = set()
        self._ended = False

    def call(self, called: Called) -> None:
        """The next call."""
        if self._ended:
            self._open, self._ended = [], False
        self._open.append(called)
        self._seen.add(called.id)

    def end(self) -> None:
        """The next call begins a round of its own."""
        self._ended = True

    def find(self, call_id: str, name: str) -> Called | None:
        """The call that a result answers. `call_id`, `name`: empty where the result has none."""
        if call_id:
            return next((each for each in self._open if each.id == call_id), None)
        return next((each for each in self._open if name in ("", each.name)), None)

    def answer(self, called: Called) -> None:
        """That call is answered."""
        self._open.remove(called)

    def fresh(self, ids: Iterator[str]) -> str:
        """The next id that no call has."""
        return next(id_ for id_ in ids if id_ not in self._seen)
