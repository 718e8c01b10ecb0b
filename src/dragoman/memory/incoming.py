"""What of the messages that a client sent with a prompt is new to a thread."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.codec.digest import neutral
from dragoman.codec.turns import only_answers
from dragoman.message import Message, Role

__all__ = ["incoming"]


def incoming(history: Sequence[Message], stored: Sequence[Message]) -> list[Message]:
    """Of a history that came from a client, what the thread does not have: what follows the last answer, and that answer, where it is
    another one than the thread has. The thread's own record counts for all before it. Of a thread without messages everything is new.

    System messages are for one request, and always there.
    """
    system = [message for message in history if message.role is Role.SYSTEM]
    talk = [message for message in history if message.role is not Role.SYSTEM]
    if not stored:
        return list(history)
    last = max([at for at, message in enumerate(talk) if message.role is Role.MODEL], default=-1)
    known = _Known(stored)
    return [*system, *[message for message in talk[max(last, 0) :] if not known.has(message)]]


class _Known:
    """What a thread has."""

    def __init__(self, stored: Sequence[Message]) -> None:
        self._ids = {message.id for message in stored}
        self._answers = {neutral(message) for message in stored if message.role is Role.MODEL}
        self._calls = {call.id for message in stored for call in message.tool_calls}
        self._answered = {result.id for message in stored for result in message.tool_results}

    def has(self, message: Message) -> bool:
        """Whether it is there: by its id; an answer also by what it says, or by its calls; results by the calls that they answer."""
        if message.id is not None and message.id in self._ids:
            return True
        if message.role is Role.MODEL:
            calls = {call.id for call in message.tool_calls}
            return neutral(message) in self._answers or (bool(calls) and calls <= self._calls)
        return (
            only_answers(message)
            and {result.id for result in message.tool_results} <= self._answered
        )
