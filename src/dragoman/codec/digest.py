"""Digests of a conversation: chains H(parent, content), one for each of two questions.

- `signed`: does it still hold what a provider signed over, so that its signatures are valid and its stored response may be
  linked to? Role and content count, and of `native` the fields of that provider's wire. System text at the head does not, unless it
  stood among the messages in a way of its own: it is of each request, and no provider signs it.
- `neutral`: is it the same conversation to a reader, though it went through another format? Role and content count, without
  `native` and ids; results of tools compare as JSON.

Marks, times, usage, metadata and ids of messages count in neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import takewhile
from typing import Any, Literal

import msgspec

from dragoman import json_bytes
from dragoman.codec.hashing import SIZE, hashed
from dragoman.codec.marks import only_waits, unmarked
from dragoman.message import (
    Content,
    Message,
    Role,
    ToolCallPart,
    ToolResultPart,
)

__all__ = [
    "digests",
    "free_prefix",
    "neutral",
    "neutral_chain",
    "prefix",
    "signed_chain",
    "wire_of",
    "written",
]

_VERSION = "2"


def signed_chain(messages: Iterable[Message], wire: str) -> list[str]:
    """For each message the digest of all before it, as `Origin.prefix` has it, and last that of all: one more than there are
    messages. `wire`: that of the provider which signs, or has signed."""
    return [written(wire, digest) for digest in digests(messages, wire)]


def digests(messages: Iterable[Message], wire: str, after: bytes | None = None) -> list[bytes]:
    """The same as bytes. `after`: the digest of what stands before these messages, where something does."""
    messages = tuple(messages)
    head = 0
    if after is None:
        head = sum(
            1
            for _ in takewhile(
                lambda message: message.role is Role.SYSTEM and not message.native, messages
            )
        )

    def make(message: Message) -> Any:
        return _signed(message, wire)

    chain = [after or b""] * (head + 1)
    for message in messages[head:]:
        own = None if only_waits(message) else hashed(message, wire, make)
        chain.append(chain[-1] if own is None else _next(chain[-1], own))
    return chain


def written(wire: str, digest: bytes) -> str:
    """A digest as `Origin.prefix` has it."""
    return f"{_VERSION}:{wire}:{digest.hex()}"


def prefix(messages: Iterable[Message], wire: str) -> str:
    """What `Origin.prefix` says of an answer to these messages."""
    return written(wire, digests(messages, wire)[-1])


def wire_of(prefix: str) -> str:
    """The wire by which a prefix `2:WIRE:DIGEST` was made; empty for one of an earlier release, a digest alone."""
    version, _, rest = prefix.partition(":")
    return rest.rpartition(":")[0] if version == _VERSION else ""


def free_prefix(wire: str) -> str:
    """The prefix of an answer by this wire of which nobody noted what stood before it: its origin alone says who reads it."""
    return f"{_VERSION}:{wire}:"


def neutral_chain(messages: Iterable[Message]) -> list[str]:
    """For each message the neutral digest of all before it, and last that of all: one more than there are messages."""
    digests = [b""]
    for message in messages:
        digests.append(
            digests[-1]
            if only_waits(message)
            else _next(digests[-1], hashed(message, "", _neutral))
        )
    return [digest.hex() for digest in digests]


def neutral(message: Message) -> str:
    """The neutral digest of one message, whatever stands before it."""
    return hashed(message, "", _neutral).hex()


def _next(parent: bytes, own: bytes) -> bytes:
    return blake2b(parent + own, digest_size=SIZE).digest()


def _signed(message: Message, wire: str) -> Any:
    content = unmarked(message).content
    if any(piece.native or isinstance(piece, ToolCallPart | ToolResultPart) for piece in content):
        content = tuple([_of_wire(piece, wire) for piece in content])
    own = (message.native or {}).get(wire)
    return message.role, content, own


def _of_wire(piece: Content, wire: str) -> Content:
    """The piece with the wire's own fields alone in its `native`, and with what every format tells of who runs a tool."""
    if isinstance(piece, ToolCallPart | ToolResultPart) and piece.run_by == "client":
        piece = msgspec.structs.replace(piece, run_by=_run_by(piece))
    if isinstance(piece, ToolResultPart) and piece.is_content:
        piece = msgspec.structs.replace(
            piece, result=tuple([_of_wire(part, wire) for part in piece.result])
        )
    if isinstance(piece, ToolResultPart) and piece.denied:
        piece = msgspec.structs.replace(piece, denied=False)
    own = (piece.native or {}).get(wire)
    if piece.native is None or (len(piece.native) == 1 and own is not None):
        return piece
    return msgspec.structs.replace(piece, native=None if own is None else {wire: own})


def _neutral(message: Message) -> Any:
    return message.role, [_plain(piece) for piece in unmarked(message).content]


def _plain(piece: Content) -> Any:
    if isinstance(piece, ToolCallPart):
        unread = piece.raw if piece.state != "complete" else None
        return "tool_call", piece.name, piece.arguments, unread, piece.state, _run_by(piece)
    if isinstance(piece, ToolResultPart):
        result = (
            [_plain(part) for part in piece.result] if piece.is_content else _value(piece.result)
        )
        return "tool_result", result, piece.is_error, _run_by(piece)
    return piece if piece.native is None else msgspec.structs.replace(piece, native=None)


def _run_by(piece: ToolCallPart | ToolResultPart) -> Literal["agent", "provider"]:
    """Who ran the tool, as formats tell it: a call of the client's comes back as any call that is not the provider's."""
    return "provider" if piece.run_by == "provider" else "agent"


def _value(result: Any) -> Any:
    """A result as the JSON value that its text is, where it is one: formats that have texts alone wrote it so."""
    if not isinstance(result, str):
        return result
    try:
        return json_bytes.decode(result)
    except ValueError:
        return result
