"""Ids of calls that a client's copy has otherwise: its format took other ids, and its results answer by those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from dragoman.message import Message, Role, ToolResultPart

__all__ = ["with_stored_ids"]


def with_stored_ids(
    stored: Sequence[Message], copy: Sequence[Message], whole: Mapping[int, int]
) -> Sequence[Message]:
    """A copy whose results answer the stored calls. `whole`: message of the copy → the stored message that it is."""
    found: list[Message] = []
    ids: dict[str, str] = {}
    for place, message in enumerate(copy):
        if message.role is Role.MODEL:
            ids = _ids(message, stored[whole[place]]) if place in whole else {}
        elif ids and message.tool_results:
            message = message.replace(
                content=tuple(
                    [
                        replace(piece, id=ids.get(piece.id, piece.id))
                        if isinstance(piece, ToolResultPart)
                        else piece
                        for piece in message.content
                    ]
                )
            )
        found.append(message)
    return found


def _ids(message: Message, stored: Message) -> dict[str, str]:
    """Id of a call in the copy → that of the stored call in its place, where they differ."""
    pairs = list(zip(message.tool_calls, stored.tool_calls, strict=False))
    return {copied.id: known.id for copied, known in pairs if copied.id != known.id}
