"""Which messages of a client's history a stored thread lacks."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.codec.digest import neutral_digest
from dragoman.codec.turns import holds_only_answers
from dragoman.message import Message, Role

__all__ = ["find_unstored_messages"]


def find_unstored_messages(history: Sequence[Message], stored: Sequence[Message]) -> list[Message]:
    """Returns the messages of a client's history that are not stored in the thread: those after the
    last answer, and that answer if the thread has another one. The stored thread wins over
    everything earlier.

    System messages are for one request, and always there.
    """
    system = [message for message in history if message.role is Role.SYSTEM]
    talk = [message for message in history if message.role is not Role.SYSTEM]
    if not stored:
        return list(history)
    last = max(
        [position for position, message in enumerate(talk) if message.role is Role.MODEL],
        default=-1,
    )
    record = _StoredIndex(stored)
    return [*system, *[message for message in talk[max(last, 0) :] if not record.has(message)]]


class _StoredIndex:
    """Index of stored messages by id, answer, tool calls and tool results."""

    def __init__(self, stored: Sequence[Message]) -> None:
        self._ids = {message.id for message in stored}
        self._answers = {
            neutral_digest(message) for message in stored if message.role is Role.MODEL
        }
        self._calls = {call.id for message in stored for call in message.tool_calls}
        self._answered = {result.id for message in stored for result in message.tool_results}

    def has(self, message: Message) -> bool:
        """True if the message is stored: under its id, an answer also by its content or its calls,
        results by the calls that they answer."""
        if message.id is not None and message.id in self._ids:
            return True
        if message.role is Role.MODEL:
            calls = {call.id for call in message.tool_calls}
            return neutral_digest(message) in self._answers or (
                bool(calls) and calls <= self._calls
            )
        return (
            holds_only_answers(message)
            and {result.id for result in message.tool_results} <= self._answered
        )
