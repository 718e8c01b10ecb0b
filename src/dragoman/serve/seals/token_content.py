"""Packs and restores the content of a sealed token, which is of a model's message: where it came from, what the provider signed, and where
in the message that stands.

What the client has in its own format anyway is not repeated: text and calls are found again by
their order. A digest of them binds a token to its message, so that beside other words, or another
call, it opens nothing. A token of a call holds what stands between the one before it and its call,
whose arguments nobody knows yet where it is made: it is bound to the text and to the calls so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.json_bytes import Json
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

__all__ = [
    "MARK",
    "is_needed",
    "is_sealed",
    "pack",
    "pack_call",
    "restore",
    "restore_calls",
    "split_id",
    "unpack",
]

MARK = "dragoman"
"""With which every token begins and ends: eight characters of base64. One whose head was cut or
changed is known by its tail."""

_ID = re.compile(rf"(.+?)({MARK}[\w+/=-]{{48,}}{MARK})", re.ASCII | re.DOTALL)
"""The least token has more characters than that."""
_encode = msgspec.msgpack.Encoder().encode


def is_sealed(text: str) -> bool:
    """True if a text looks like a token of any server, or what is left of one; `Sealer.open` says
    if it opens."""
    return text.startswith(MARK) or text.rstrip("=").endswith(MARK)


def split_id(call_id: str) -> tuple[str, str] | None:
    """Splits a call's id that holds a token into the id and the token. Returns None for any
    other id."""
    if MARK not in call_id or (match := _ID.fullmatch(call_id)) is None:
        return None
    return match[1], match[2]


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
    after: tuple[int, int] | None = None
    """Of a call's token: the characters of text and the shown pieces before its own."""


_decode = msgspec.msgpack.Decoder(_Sealed).decode


def is_needed(message: Message) -> bool:
    """True if a message needs a token: it has anything that its provider must get back and another
    format cannot say."""
    if message.origin is None:
        return False
    hidden = any(_is_hidden(piece) for piece in message.content if not isinstance(piece, TextPart))
    return hidden or any(_has_native(value.native) for value in (message, *message.content))


def pack(message: Message) -> bytes | None:
    """Returns the content of a message's token, or None if it cannot be written."""
    assert message.origin is not None
    return _encode_sealed(
        _Sealed(
            message.origin,
            _digest(*_split_visible(message.content)),
            _seal_pieces(message.content),
            _without_response_notes(message.native),
        )
    )


def pack_call(origin: Origin, content: Sequence[Content], since: int) -> bytes | None:
    """Returns the content of a call's token. `content`: the message as far as the call, its last
    piece; `since`: how many of these pieces the tokens of earlier calls hold."""
    text, pieces_shown = _split_visible(content[:since])
    pieces = _seal_pieces(content[since:])
    return _encode_sealed(
        _Sealed(
            origin,
            _call_digest(*_split_visible(content)),
            pieces,
            after=(len(text), len(pieces_shown)),
        )
    )


def unpack(content: bytes) -> _Sealed | None:
    """Reads what `pack` or `pack_call` wrote; None if it is of another release."""
    try:
        return _decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def restore(message: Message, sealed: _Sealed) -> Message | None:
    """Returns the message as its provider made it, or None if the token is not this message's, or
    the message was changed."""
    # Only tokens of calls have `after`; they do not hold a whole message.
    if sealed.after is not None:
        return None
    pieces_shown = _split_visible(message.content)[1]
    for text in _candidate_texts(message.content, [sealed]):
        if _digest(text, pieces_shown) == sealed.digest:
            content = tuple(_fill_token(sealed.pieces, text, pieces_shown))
            return message.replace(content=content, origin=sealed.origin, native=sealed.native)
    return None


def restore_calls(message: Message, sealed: Sequence[_Sealed]) -> Message | None:
    """Returns a client's message with what its provider had signed or hidden, from the tokens that
    its call ids hold, in order. None if the tokens do not belong to the message, as after an edit.
    Content behind the last call stays as the client sent it."""
    pieces_shown = _split_visible(message.content)[1]
    for text in _candidate_texts(message.content, sealed):
        content = _fill_calls(sealed, text, pieces_shown)
        if content is not None:
            return message.replace(content=tuple(content), origin=sealed[0].origin)
    return None


def _fill_calls(
    sealed: Sequence[_Sealed], text: str, pieces_shown: Sequence[Content]
) -> list[Content] | None:
    """Returns the content that the tokens of calls make of a text and the pieces beside it, or None
    if a token does not belong to these."""
    content: list[Content] = []
    letters = calls = 0
    for token in sealed:
        if token.after is None or token.after[0] < letters or token.after[1] < calls:
            return None
        before, calls_before = token.after
        content += _plain_content(text[letters:before], pieces_shown[calls:calls_before])
        letters = before + sum(piece.length for piece in token.pieces if isinstance(piece, _Text))
        calls = calls_before + sum(isinstance(piece, _Shown) for piece in token.pieces)
        if _call_digest(text[:letters], pieces_shown[:calls]) != token.digest:
            return None
        content += _fill_token(token.pieces, text[before:], pieces_shown[calls_before:])
    content += _plain_content(text[letters:], pieces_shown[calls:])
    return content


def _candidate_texts(content: Sequence[Content], sealed: Sequence[_Sealed]) -> Iterator[str]:
    """Yields the texts that a message may have had when its token was made. Clients may drop blank
    pieces of text, or join them with the text beside them."""
    # A format keeps blank pieces, and then joins them with the text beside them, or leaves all of
    # them out.
    text = "".join([piece.text for piece in content if isinstance(piece, TextPart)])
    if (without := _without_blanks(text, sealed)) is not None:
        yield without
    yield _split_visible(content)[0]


def _without_blanks(text: str, sealed: Sequence[_Sealed]) -> str | None:
    """Returns a text without the blank pieces that its tokens hold, or None if one of them is not
    where it should be."""
    texts: list[str] = []
    position = letters = 0

    def keep(length: int) -> None:
        """Returns the next characters of the text, and moves behind them."""
        nonlocal position, letters
        texts.append(text[position : position + length])
        position += length
        letters += length

    for token in sealed:
        keep(max((token.after or (0, 0))[0] - letters, 0))
        for piece in token.pieces:
            if isinstance(piece, _Text):
                keep(piece.length)
            elif isinstance(piece, _Hidden) and isinstance(piece.piece, TextPart):
                if not text.startswith(piece.piece.text, position):
                    return None
                position += len(piece.piece.text)
    texts.append(text[position:])
    return "".join(texts)


def _split_visible(content: Sequence[Content]) -> tuple[str, list[Content]]:
    """Returns what every format shows of a message beside its token: its text, and the pieces
    beside it."""
    text = "".join(
        [piece.text for piece in content if isinstance(piece, TextPart) and not _is_hidden(piece)]
    )
    return text, [
        piece
        for piece in content
        if not isinstance(piece, TextPart | MarkPart) and not _is_hidden(piece)
    ]


def _plain_content(text: str, pieces_shown: Sequence[Content]) -> list[Content]:
    return [*([TextPart(text)] if text else []), *pieces_shown]


def _fill_token(
    pieces: Sequence[_Text | _Shown | _Hidden], text: str, pieces_shown: Sequence[Content]
) -> list[Content]:
    """Returns the pieces of a token, filled with what the client has of them."""
    content: list[Content] = []
    remaining, start = iter(pieces_shown), 0
    for sealed_piece in pieces:
        if isinstance(sealed_piece, _Hidden):
            content.append(sealed_piece.piece)
        elif isinstance(sealed_piece, _Text):
            content.append(TextPart(text[start : start + sealed_piece.length], sealed_piece.native))
            start += sealed_piece.length
        elif isinstance(piece := next(remaining), ToolCallPart):
            content.append(
                msgspec.structs.replace(piece, native=sealed_piece.native, raw=sealed_piece.raw)
            )
        else:
            content.append(
                msgspec.structs.replace(
                    piece, native={**(piece.native or {}), **(sealed_piece.native or {})} or None
                )
            )
    return content


def _encode_sealed(sealed: _Sealed) -> bytes | None:
    """Encodes a token's content, or returns None if it cannot be encoded."""
    try:
        return _encode(sealed)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return None


def _seal_pieces(content: Sequence[Content]) -> tuple[_Text | _Shown | _Hidden, ...]:
    return tuple([_seal_piece(piece) for piece in content if not isinstance(piece, MarkPart)])


def _seal_piece(piece: Content) -> _Text | _Shown | _Hidden:
    """Returns a piece as a token holds it: hidden pieces whole, of others only what the client
    lacks."""
    if _is_hidden(piece):
        return _Hidden(msgspec.structs.replace(piece, native=_without_response_notes(piece.native)))
    if isinstance(piece, TextPart):
        return _Text(len(piece.text), _without_response_notes(piece.native))
    return _Shown(
        _without_response_notes(piece.native),
        piece.raw if isinstance(piece, ToolCallPart) else None,
    )


def _is_hidden(piece: Content) -> bool:
    """True if the token must hold a piece, since a format may leave the piece out, or show it in a
    form of its own."""
    if isinstance(piece, TextPart):
        # Several formats drop blank texts, so they are sealed rather than counted.
        return not piece.text.strip()
    return (
        isinstance(piece, ThinkingPart | ProviderPart) or getattr(piece, "run_by", "") == "provider"
    )


def _has_native(native: Native) -> bool:
    return any(NOTES not in wire and fields for wire, fields in (native or {}).items())


def _without_response_notes(native: Native) -> Native:
    """Returns the native mapping for a token without what stood around the message in a response,
    which is never sent."""
    wires: Json = {}
    for wire, fields in (native or {}).items():
        if NOTES in wire:
            fields = {
                name: value
                for name, value in if_object(fields).items()
                if name not in ("response", "echo")
            }
        if fields or NOTES not in wire:
            wires[wire] = fields
    return wires or None


def _digest(text: str, pieces_shown: Sequence[Content]) -> bytes:
    """Returns a digest of all that every format shows: the text, and the calls in their order."""
    return _hash(text, [_piece_facts(piece) for piece in pieces_shown])


def _call_digest(text: str, pieces_shown: Sequence[Content]) -> bytes:
    """Returns a digest, for a call's token, of what is known when the last of these calls
    begins."""
    return _hash(
        text, [[getattr(piece, "id", None), getattr(piece, "name", None)] for piece in pieces_shown]
    )


def _hash(text: str, facts: Sequence[Iterable[Any]]) -> bytes:
    written = msgspec.json.encode([text.encode("utf-8", "surrogatepass"), facts], order="sorted")
    return blake2b(written, digest_size=16).digest()


def _piece_facts(piece: Content) -> Iterable[Any]:
    if isinstance(piece, ToolCallPart):
        return piece.name, piece.arguments, piece.raw if piece.state != "complete" else None
    return piece.__struct_config__.tag, isinstance(piece, ToolResultPart)
