"""A whole history as JSON, and back."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman import json_bytes
from dragoman.errors import HistoryError
from dragoman.message import Message

__all__ = ["dump_messages", "load_messages"]


def dump_messages(messages: Iterable[Message]) -> bytes:
    """Messages → a JSON list of their stored forms.

    Raises:
        HistoryError: one holds what JSON cannot; the error says which.
    """
    return (
        b"[" + b",".join([_dumped(place, message) for place, message in enumerate(messages)]) + b"]"
    )


def load_messages(data: bytes | str) -> list[Message]:
    """What `dump_messages` wrote → the messages. Versions of the stored form may be mixed.

    Raises:
        HistoryError: it is no list, or one of its messages cannot be read; the error says which.
    """
    try:
        json_bytes.bound(data, 1 + 2 * json_bytes.MOST_DEPTH)
        stored = msgspec.json.decode(data, type=list[msgspec.Raw])
    except ValueError as error:
        raise HistoryError(
            f"not a saved history: {error}. Write it with dump_messages()."
        ) from error
    return [_loaded(place, bytes(message)) for place, message in enumerate(stored)]


def _dumped(place: int, message: Message) -> bytes:
    try:
        return message.to_json()
    except HistoryError as error:
        raise HistoryError(f"messages[{place}]: {error.message}") from error


def _loaded(place: int, stored: bytes) -> Message:
    try:
        return Message.from_json(stored)
    except HistoryError as error:
        raise HistoryError(f"messages[{place}]: {error.message}") from error
