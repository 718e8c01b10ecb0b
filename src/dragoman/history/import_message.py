"""What of a message that only a client has is taken: what it says, and nothing that a provider
would have signed."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from dragoman.codec.marks import INTERRUPT
from dragoman.json_bytes import Json
from dragoman.message import (
    NOTES,
    OURS,
    Content,
    MarkPart,
    Message,
    Native,
    ProviderPart,
    Role,
    ThinkingPart,
    ToolResultPart,
)

__all__ = ["import_message", "import_content"]


def import_message(message: Message, taken: Collection[str | None], *, signatures: bool) -> Message:
    """Returns a client's message as it may be stored. `taken`: ids that it may not have;
    `signatures`: what it says of a provider is believed."""
    if message.id not in taken:
        ids = {}
    else:
        ids = {"id": None, "turn": None}
    if signatures:
        if ids:
            return message.replace(**ids)
        return message
    fields: Json = {
        "origin": None,
        "usage": None,
        "native": _import_native(message.native, message.role),
        **ids,
    }
    return message.replace(
        content=import_content(message, message.content, signatures=False), **fields
    )


def import_content(
    message: Message, content: Collection[Content], *, signatures: bool
) -> tuple[Content, ...]:
    """Returns the pieces of an imported client's message as they may be stored."""
    if signatures:
        return tuple(content)
    return tuple(
        [taken for piece in content if (taken := _import_part(piece, message.role)) is not None]
    )


def _import_part(piece: Content, role: Role) -> Content | None:
    """Returns what is imported of a piece of a client's message, or None for what a provider must
    sign."""
    if isinstance(piece, ThinkingPart):
        if piece.text:
            return ThinkingPart(piece.text)
        return None
    if isinstance(piece, ProviderPart):
        return None
    if isinstance(piece, MarkPart):
        if piece.kind == INTERRUPT:
            return None
        return piece
    if isinstance(piece, ToolResultPart) and piece.is_content:
        parts = tuple(
            [replace(part, native=_import_native(part.native, role)) for part in piece.result]
        )
        piece = replace(piece, result=parts)
    native = _import_native(piece.native, role)
    if native == piece.native:
        return piece
    return replace(piece, native=native)


def _import_native(native: Native, role: Role) -> Native:
    """Returns the native fields imported with a client's message: formats' fields of a user's, none
    of a model's, since a signature may be anywhere in it."""
    if not native or role is Role.MODEL:
        return None
    return {
        name: fields for name, fields in native.items() if name.removesuffix(NOTES) != OURS
    } or None
