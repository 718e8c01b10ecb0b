"""What a token holds of a model's message: where it came from, what the provider signed, and where in the message that stands.

What the client has in its own format anyway is not repeated: text and calls are found again by their order. A digest of them binds a
token to its message, so that beside other words, or another call, it opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.message import (
    NOTES,
    Content,
    MarkPart,
    Message,
    Native,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

__all__ = ["is_needed", "pack", "restored", "unpack"]


class _Text(msgspec.Struct, frozen=True, omit_defaults=True, tag="length"):
    """So many characters of the text."""

    length: int
    native: Native = None


class _Shown(msgspec.Struct, frozen=True, omit_defaults=True, tag="shown"):
    """The next piece that is neither text nor hidden."""

    native: Native = None
    raw: str | None = None


class _Hidden(msgspec.Struct, frozen=True, tag="hidden"):
    """A whole piece that the client need not have."""

    piece: Content


class _Sealed(msgspec.Struct, frozen=True, omit_defaults=True):
    origin: Origin
    digest: bytes
    pieces: tuple[_Text | _Shown | _Hidden, ...]
    native: Native = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Sealed).decode


def is_needed(message: Message) -> bool:
    """Whether a message has anything that its provider must have back and another format cannot say."""
    if message.origin is None:
        return False
    hidden = any(_is_hidden(piece) for piece in message.content if not isinstance(piece, TextPart))
    return hidden or any(_own(value.native) for value in (message, *message.content))


def pack(message: Message) -> bytes | None:
    """The content of a message's token; `None`: it holds what cannot be written."""
    assert message.origin is not None
    pieces = tuple(_piece(piece) for piece in message.content if not isinstance(piece, MarkPart))
    sealed = _Sealed(message.origin, _digest(message.content), pieces, _sent(message.native))
    try:
        return _encode(sealed)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return None


def unpack(content: bytes) -> _Sealed | None:
    """What `pack` wrote; `None`: it is of another release."""
    try:
        return _decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def restored(message: Message, sealed: _Sealed) -> Message | None:
    """The message as its provider made it; `None`: the token is not this message's, or somebody changed the message."""
    if _digest(message.content) != sealed.digest:
        return None
    text = "".join([piece.text for piece in message.content if isinstance(piece, TextPart) and not _is_hidden(piece)])
    shown = iter(
        [piece for piece in message.content if not isinstance(piece, TextPart | MarkPart) and not _is_hidden(piece)]
    )
    content: list[Content] = []
    start = 0
    for each in sealed.pieces:
        if isinstance(each, _Hidden):
            content.append(each.piece)
        elif isinstance(each, _Text):
            content.append(TextPart(text[start : start + each.length], each.native))
            start += each.length
        elif isinstance(piece := next(shown), ToolCallPart):
            content.append(msgspec.structs.replace(piece, native=each.native, raw=each.raw))
        else:
            content.append(
                msgspec.structs.replace(piece, native={**(piece.native or {}), **(each.native or {})} or None)
            )
    return message.replace(content=tuple(content), origin=sealed.origin, native=sealed.native)


def _piece(piece: Content) -> _Text | _Shown | _Hidden:
    if _is_hidden(piece):
        return _Hidden(msgspec.structs.replace(piece, native=_sent(piece.native)))
    if isinstance(piece, TextPart):
        return _Text(len(piece.text), _sent(piece.native))
    return _Shown(_sent(piece.native), piece.raw if isinstance(piece, ToolCallPart) else None)


def _is_hidden(piece: Content) -> bool:
    """Whether a format may leave the piece out, or show it in a form of its own."""
    if isinstance(piece, TextPart):
        return not piece.text.strip()
    return isinstance(piece, ThinkingPart | ProviderPart) or getattr(piece, "run_by", "") == "provider"


def _own(native: Native) -> bool:
    return any(NOTES not in wire and fields for wire, fields in (native or {}).items())


def _sent(native: Native) -> Native:
    """The native mapping without what stood around the message in a response, which is never sent."""
    kept: dict[str, Any] = {}
    for wire, fields in (native or {}).items():
        if NOTES in wire:
            fields = {name: value for name, value in if_object(fields).items() if name not in ("response", "echo")}
        if fields or NOTES not in wire:
            kept[wire] = fields
    return kept or None


def _digest(content: Sequence[Content]) -> bytes:
    """Of all that every format shows: the text, and the calls in their order."""
    text = "".join([piece.text for piece in content if isinstance(piece, TextPart) and not _is_hidden(piece)])
    shown = [_facts(piece) for piece in content if not isinstance(piece, TextPart | MarkPart) and not _is_hidden(piece)]
    facts = msgspec.json.encode([text.encode("utf-8", "surrogatepass"), shown], order="sorted")
    return blake2b(facts, digest_size=16).digest()


def _facts(piece: Content) -> Iterable[Any]:
    if isinstance(piece, ToolCallPart):
        return piece.name, piece.arguments, piece.raw if piece.state != "complete" else None
    return piece.__struct_config__.tag, isinstance(piece, ToolResultPart)
