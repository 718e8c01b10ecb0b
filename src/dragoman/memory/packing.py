"""A message as a store holds it: a body, which equal messages share, and the bytes of its
attachments apart from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec

from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.message import DataPart, Message, TextPart, ToolResultPart

__all__ = ["Packed", "digest_data", "to_microseconds", "pack", "unpack"]

_TEXT = 100_000
"""Characters of a message that can be found; databases have limits of their own."""


Packed = tuple[Json, tuple[bytes, ...]]
"""A message as a row of bodies, and the bytes of its attachments, in order. The row has the
`digest` of both, the `body` (the stored form without id, time and turn, its attachments empty), the
`text` that can be found, and the number of `files`."""


def pack(message: Message) -> Packed:
    """Returns a message in parts.

    Raises:
        HistoryError: it holds what JSON cannot.
    """
    attachments: list[bytes] = []

    def emptied(part: DataPart) -> DataPart:
        attachments.append(part.data)
        return msgspec.structs.replace(part, data=b"")

    bare = _with_data(message.replace(id=None, created_at=None, turn=None), emptied)
    body = bare.to_json()
    digest = sha256(body)
    for data in attachments:
        digest.update(digest_data(data))
    text = "\n".join([piece.text for piece in message.content if isinstance(piece, TextPart)])
    searchable = text[:_TEXT].replace("\x00", " ")
    row = {
        "digest": digest.digest(),
        "body": body.decode(),
        "text": searchable,
        "files": len(attachments),
    }
    return row, tuple(attachments)


def unpack(
    body: str,
    attachments: Sequence[bytes],
    *,
    message_id: str,
    created_at: datetime | None,
    turn: str | None,
) -> Message:
    """The parts → the message.

    Raises:
        HistoryError: the body is none, or of a version that this release does not read, or an attachment is missing.
    """
    remaining: Iterator[bytes] = iter(attachments)

    def filled(part: DataPart) -> DataPart:
        try:
            return msgspec.structs.replace(part, data=next(remaining))
        except StopIteration:
            raise HistoryError(
                f"an attachment of the message {message_id} is missing in the store"
            ) from None

    message = _with_data(Message.from_json(body), filled)
    return message.replace(id=message_id, created_at=created_at, turn=turn)


def digest_data(data: bytes) -> bytes:
    """Returns what an attachment is found by."""
    return sha256(data).digest()


def to_microseconds(date: datetime) -> int:
    """Microseconds since 1970. A date without a zone counts as UTC."""
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _with_data(message: Message, change: Callable[[DataPart], DataPart]) -> Message:
    """Returns the message with its files changed, those in results of tools too."""
    if not any(
        isinstance(piece, DataPart) or getattr(piece, "is_content", False)
        for piece in message.content
    ):
        return message

    def changed(piece: Any) -> Any:
        if isinstance(piece, DataPart):
            return change(piece)
        if isinstance(piece, ToolResultPart) and piece.is_content:
            return msgspec.structs.replace(
                piece, result=tuple([changed(part) for part in piece.result])
            )
        return piece

    return message.replace(content=tuple([changed(piece) for piece in message.content]))
