"""All messages as others list them in a run (`MESSAGES_SNAPSHOT`), beside those that they streamed: which of these stand, and what was not told.

Few servers list reasoning, some give what they streamed another id there, and some say all or the end of an answer there alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.codec.json_values import if_objects, if_text
from dragoman.message import Role

__all__ = ["Snapshot", "ToldMessage"]

Entry = Mapping[str, Any]
_OF_RUN = ("assistant", "tool", "reasoning")


class ToldMessage:
    """A message of ours that was told, and by what it is known among theirs."""

    __slots__ = (
        "calls",
        "entries",
        "id",
        "next",
        "owner",
        "parts",
        "role",
        "spoke",
        "spoken",
        "texts",
    )

    def __init__(self, id_: str, role: Role, owner: str) -> None:
        self.id = id_
        self.role = role
        self.owner = owner
        self.next = 0
        """Index of its next part."""
        self.spoke = False
        """Whether it has more than thinking."""
        self.parts: list[tuple[str, str]] = []
        """Keys of its parts."""
        self.entries: list[str] = []
        """Ids of their messages that it is."""
        self.spoken: set[str] = set()
        """Those that are more than thinking."""
        self.calls: set[str] = set()
        """Ids of its calls, or of those that it answers."""
        self.texts: set[str] = set()


class Snapshot:
    """What one listed."""

    def __init__(self, listed: object) -> None:
        self._entries = if_objects(listed)
        self._ids = {if_text(entry.get("id")) for entry in self._entries}
        self._calls = {id_ for entry in self._entries for id_ in _calls_of(entry)}
        self._results = {if_text(entry.get("toolCallId")) for entry in self._entries}
        self._thinks = any(entry.get("role") == "reasoning" for entry in self._entries)
        asked = [at for at, entry in enumerate(self._entries) if entry.get("role") == "user"]
        self._answer = self._entries[asked[-1] + 1 if asked else 0 :]
        """What follows the last question."""

    def has(self, message: ToldMessage) -> bool:
        """Whether a message that was told stands."""
        if not message.spoken and not message.calls:
            return not self._thinks or not self._ids.isdisjoint(message.entries)
        return (
            not self._ids.isdisjoint(message.spoken)
            or not (self._calls if message.role is Role.MODEL else self._results).isdisjoint(
                message.calls
            )
            or any(_text_of(entry) in message.texts for entry in self._answer)
        )

    def untold(self, told: Iterable[ToldMessage]) -> list[Entry]:
        """What it has behind all that was told. Where nothing of the answer was, that is what follows the last result: those before it may be
        the client's."""
        known = list(told)
        ids = {id_ for message in known for id_ in (*message.entries, *message.spoken) if id_}
        calls = {id_ for message in known for id_ in message.calls}
        texts = {text for message in known for text in message.texts}
        last = -1
        for at, entry in enumerate(self._answer):
            is_told = if_text(entry.get("id")) in ids or not calls.isdisjoint(
                (*_calls_of(entry), if_text(entry.get("toolCallId")))
            )
            if is_told or _text_of(entry) in texts:
                last = at
        if last < 0:
            last = max(
                (at for at, entry in enumerate(self._answer) if entry.get("role") == "tool"),
                default=-1,
            )
        return [entry for entry in self._answer[last + 1 :] if entry.get("role") in _OF_RUN]


def _calls_of(entry: Entry) -> list[str]:
    return [id_ for call in if_objects(entry.get("toolCalls")) if (id_ := if_text(call.get("id")))]


def _text_of(entry: Entry) -> str | None:
    """What the agent says in an entry; `None`: nothing."""
    text = entry.get("content") if entry.get("role") == "assistant" else None
    return text if isinstance(text, str) and text else None
