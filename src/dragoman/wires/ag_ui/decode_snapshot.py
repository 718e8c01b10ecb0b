"""All messages as others list them in a run (`MESSAGES_SNAPSHOT`), beside those that they streamed: which of these stand, and what is listed alone.

Few servers list reasoning, some give what they streamed another id there, and some say all or the end of an answer there alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dragoman.codec.json_values import JsonMap, if_objects, if_text
from dragoman.message import Role

__all__ = ["Snapshot", "ReadMessage"]

_OF_RUN = ("assistant", "tool", "reasoning")


class ReadMessage:
    """A message of ours that was read of a stream, and by what it is known among theirs."""

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
    """All messages as one MESSAGES_SNAPSHOT lists them."""

    def __init__(self, entries: object) -> None:
        self._entries = if_objects(entries)
        self._ids = {if_text(entry.get("id")) for entry in self._entries}
        self._calls = {id_ for entry in self._entries for id_ in _call_ids(entry)}
        self._results = {if_text(entry.get("toolCallId")) for entry in self._entries}
        self._has_reasoning = any(entry.get("role") == "reasoning" for entry in self._entries)
        questions = [
            index for index, entry in enumerate(self._entries) if entry.get("role") == "user"
        ]
        self._answer = self._entries[questions[-1] + 1 if questions else 0 :]
        """What follows the last question."""

    def has(self, message: ReadMessage) -> bool:
        """Whether a message that was streamed stands: under its id, its calls, or its text."""
        if not message.spoken and not message.calls:
            return not self._has_reasoning or not self._ids.isdisjoint(message.entries)
        calls = self._calls if message.role is Role.MODEL else self._results
        if not self._ids.isdisjoint(message.spoken) or not calls.isdisjoint(message.calls):
            return True
        return any(_answer_text(entry) in message.texts for entry in self._answer)

    def find_unstreamed(self, streamed: Iterable[ReadMessage]) -> list[JsonMap]:
        """What the list has behind all that was streamed."""
        messages = list(streamed)
        ids = {id_ for message in messages for id_ in (*message.entries, *message.spoken) if id_}
        calls = {id_ for message in messages for id_ in message.calls}
        texts = {text for message in messages for text in message.texts}

        def is_streamed(entry: JsonMap) -> bool:
            # servers give what they streamed another id in the list: calls and texts tell it too
            entry_calls = (*_call_ids(entry), if_text(entry.get("toolCallId")))
            if if_text(entry.get("id")) in ids or not calls.isdisjoint(entry_calls):
                return True
            return _answer_text(entry) in texts

        unstreamed = self._find_behind(is_streamed)
        if unstreamed is None:
            # nothing of the answer was streamed: what precedes the last result may be the client's
            unstreamed = self._find_behind(lambda entry: entry.get("role") == "tool")
        answer = self._answer if unstreamed is None else unstreamed
        return [entry for entry in answer if entry.get("role") in _OF_RUN]

    def _find_behind(self, is_match: Callable[[JsonMap], bool]) -> Sequence[JsonMap] | None:
        """What the answer has behind the last entry of a kind; `None`: it has none of that kind."""
        matches = [index for index, entry in enumerate(self._answer) if is_match(entry)]
        return self._answer[matches[-1] + 1 :] if matches else None


def _call_ids(entry: JsonMap) -> list[str]:
    return [id_ for call in if_objects(entry.get("toolCalls")) if (id_ := if_text(call.get("id")))]


def _answer_text(entry: JsonMap) -> str | None:
    """What the agent says in an entry; `None`: nothing."""
    text = if_text(entry.get("content")) if entry.get("role") == "assistant" else ""
    return text or None
