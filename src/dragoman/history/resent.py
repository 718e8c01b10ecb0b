"""How much of what is added was there already, where messages have no ids: a conversation that is sent again, whole or its last part."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.codec.digest import neutral
from dragoman.history.rows import Rows
from dragoman.message import Message, Role

__all__ = ["Digests", "resent"]


class Digests:
    """Neutral digests of messages, each made once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, str]] = {}

    def of(self, message: Message) -> str:
        """The digest of a message."""
        found = self._known.get(id(message))
        if found is None or found[0] is not message:
            found = self._known[id(message)] = message, neutral(message)
        return found[1]


def resent(rows: Rows, given: Sequence[Message], digests: Digests) -> list[int]:
    """The positions at which the first of these messages stand already, one each; empty: they are new.

    They are known again from the conversation's start, or as its last part. Where they say less than the whole conversation, an answer of the
    model's must be among them: a user may well say again what he said before.
    """
    if not len(rows) or not given or any(message.id is not None for message in given):
        return []
    count = 0
    while count < min(len(rows), len(given)) and _alike(rows[count].message, given[count], digests):
        count += 1
    if count and (count == len(rows) or _answered(given[:count])):
        return list(range(count))
    count = _overlap(rows, given, digests)
    return (
        list(range(len(rows) - count, len(rows))) if count > 1 and _answered(given[:count]) else []
    )


def _answered(messages: Sequence[Message]) -> bool:
    return any(message.role is Role.MODEL for message in messages)


def _alike(known: Message, given: Message, digests: Digests) -> bool:
    return known.role is given.role and digests.of(known) == neutral(given)


def _overlap(rows: Rows, given: Sequence[Message], digests: Digests) -> int:
    """How many of these are the last ones of the rows: the most that fit. Each is looked at a bounded number of times."""
    if not _answered(given):
        return 0
    pattern = [neutral(message) for message in given]
    back = [0] * len(pattern)
    length = 0
    for at in range(1, len(pattern)):
        while length and pattern[at] != pattern[length]:
            length = back[length - 1]
        length += pattern[at] == pattern[length]
        back[at] = length
    length = 0
    for row in rows.between(max(0, len(rows) - len(pattern)), len(rows)):
        digest = digests.of(row.message)
        while length and (length == len(pattern) or digest != pattern[length]):
            length = back[length - 1]
        length += digest == pattern[length]
    return length
