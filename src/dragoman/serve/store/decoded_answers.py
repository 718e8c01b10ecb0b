"""Kept answers that were read before: what a long conversation is read from with each of its requests, so that each answer is decoded once."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from dragoman.serve.store.records import Answered

__all__ = ["DecodedAnswers"]

_MOST_BYTES = 16 * 1024 * 1024
_ANSWERED = msgspec.json.Decoder(Answered)


class DecodedAnswers:
    """Answers by a number that no other answer, and no later state of the same, ever has. Beyond so many bytes what was not used for the longest time goes."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """`most_bytes`: of the answers as JSON."""
        self._most = most_bytes
        self._bytes = 0
        self._known: OrderedDict[int, tuple[Answered, int]] = OrderedDict()

    def get(self, number: int) -> Answered | None:
        """An answer, where it is known. May be called from any thread."""
        found = self._known.get(number)
        return None if found is None else found[0]

    def of(self, number: int, data: bytes | Answered) -> Answered:
        """An answer. `data`: its JSON, or what `get` gave."""
        if isinstance(data, Answered):
            if number in self._known:
                self._known.move_to_end(number)
            return data
        if (known := self.get(number)) is not None:
            self._known.move_to_end(number)
            return known
        answered = _ANSWERED.decode(data)
        self._known[number] = answered, len(data)
        self._bytes += len(data)
        while self._bytes > self._most:
            self._bytes -= self._known.popitem(last=False)[1][1]
        return answered
