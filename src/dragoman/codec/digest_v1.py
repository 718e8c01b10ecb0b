"""The digest chain of earlier releases, by which stored origins are still judged: all of `native` counted, and system text too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dragoman.codec.hashing import hashed
from dragoman.codec.marks import unmarked
from dragoman.message import NOTES, Content, Message, Native, ToolResultPart

__all__ = ["chain", "digest"]


def digest(parent: str, message: Message) -> str:
    """The digest of a conversation that goes on from `parent` (`""`: the beginning) with this message."""
    return hashed(message, None, _counted, parent.encode()).hex()


def _counted(message: Message) -> Any:
    content = unmarked(message).content
    if any(piece.native or isinstance(piece, ToolResultPart) for piece in content):
        content = tuple([_one_room(piece) for piece in content])
    return message.role, content, _joined(message.native)


def _one_room(piece: Content) -> Content:
    if isinstance(piece, ToolResultPart) and piece.is_content:
        inner: tuple[Content, ...] = piece.result
        if any(part.native for part in inner):
            piece = msgspec.structs.replace(
                piece, result=tuple([_one_room(part) for part in inner])
            )
    native = _joined(piece.native)
    return piece if native is piece.native else msgspec.structs.replace(piece, native=native)


def _joined(native: Native) -> Native:
    """Fields and notes under the wire's name alone: digests are stored, and so were they made."""
    if not native or not any(key.endswith(NOTES) for key in native):
        return native
    joined: dict[str, Any] = {}
    for key, own in native.items():
        wire = key.removesuffix(NOTES)
        joined[wire] = {**joined[wire], **own} if wire in joined and isinstance(own, dict) else own
    return joined


def chain(messages: Iterable[Message]) -> list[str]:
    """For each message the digest of all before it, and last the digest of all: one more than there are messages."""
    digests = [""]
    for message in messages:
        digests.append(digest(digests[-1], message))
    return digests
