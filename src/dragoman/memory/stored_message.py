"""The stored form of a message: a body that equal messages share, and the bytes of its attachments
apart from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec

from dragoman.codec.memos import select_visible
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.message import DataPart, Message, Role, TextPart, ToolResultPart

__all__ = ["Packed", "TABLES_VERSION", "digest_data", "to_microseconds", "pack", "unpack"]

TABLES_VERSION = "0003"
"""The newest version of the tables that hold messages."""
_SEARCHABLE = 100_000
"""Characters of a message that search covers; databases limit it."""


Packed = tuple[Json, tuple[bytes, ...]]
"""A message as a row of bodies, and the bytes of its attachments, in order. The row has the
`digest` of both, the `body` (JSON without id, time and turn, with empty attachments), the
searchable `text`, the number of `files`, and whether it is `embedded`: 0 for not yet, 2 for nothing
to embed."""


def pack(message: Message) -> Packed:
    """Returns the stored form of a message.

    Raises:
        HistoryError: it holds what JSON cannot.
    """
    attachments: list[bytes] = []

    def take_data(part: DataPart) -> DataPart:
        attachments.append(part.data)
        return msgspec.structs.replace(part, data=b"")

    bare = _change_files(message.replace(id=None, created_at=None, turn=None), take_data)
    body = bare.to_json()
    digest = sha256(body)
    for data in attachments:
        digest.update(digest_data(data))
    # Only what has metadata can have a text that people do not see. What a memory wrote must not be
    # found again: it would be recalled, and quote itself.
    visible = select_visible([message]) if message.metadata else [(0, message)]
    pieces = [piece for _, public in visible for piece in public.content]
    texts = [piece.text for piece in pieces if isinstance(piece, TextPart)]
    # Postgres refuses the character U+0000 in a text.
    searchable = "\n".join(texts)[:_SEARCHABLE].replace("\x00", " ")
    row = {
        "digest": digest.digest(),
        "body": body.decode(),
        "text": searchable,
        "files": len(attachments),
        "embedded": 0 if searchable.strip() and message.role is not Role.SYSTEM else 2,
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
    """Rebuilds a message from its stored form (body and attachments).

    Raises:
        HistoryError: the body is none, or of a version that this release does not read, or an attachment is missing.
    """
    remaining: Iterator[bytes] = iter(attachments)

    def restore_data(part: DataPart) -> DataPart:
        """Returns a stored file with its bytes."""
        try:
            return msgspec.structs.replace(part, data=next(remaining))
        except StopIteration:
            raise HistoryError(
                f"an attachment of the message {message_id} is missing in the store"
            ) from None

    message = _change_files(Message.from_json(body), restore_data)
    return message.replace(id=message_id, created_at=created_at, turn=turn)


def digest_data(data: bytes) -> bytes:
    """Returns the digest under which an attachment is stored."""
    return sha256(data).digest()


def to_microseconds(date: datetime) -> int:
    """Returns the date of a stored message as microseconds since 1970. A date without a zone counts
    as UTC."""
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    # Not by `timestamp()`: a float cannot hold microseconds of today exactly.
    return (date - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _change_files(message: Message, change: Callable[[DataPart], DataPart]) -> Message:
    """Returns the message to store with `change` applied to its files, also to those in tool
    results."""
    if not any(
        isinstance(piece, DataPart) or getattr(piece, "is_content", False)
        for piece in message.content
    ):
        return message

    def change_piece(piece: Any) -> Any:
        """Changes the files of one piece of a stored message."""
        if isinstance(piece, DataPart):
            return change(piece)
        if isinstance(piece, ToolResultPart) and piece.is_content:
            return msgspec.structs.replace(
                piece, result=tuple([change_piece(part) for part in piece.result])
            )
        return piece

    return message.replace(content=tuple([change_piece(piece) for piece in message.content]))
