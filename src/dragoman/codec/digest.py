"""Digests of a conversation: chains H(parent, content), one for each of two questions.

- `signed`: does it still hold what a provider signed over, so that its signatures are valid and its
  stored response may be
  linked to? Role and content count, and of `native` the fields of that provider's wire. System text at the head does not, unless it
  stood among the messages in a way of its own: it is of each request, and no provider signs it.
- `neutral`: is it the same conversation to a reader, though it went through another format? Role
  and content count, without
  `native` and ids; results of tools compare as JSON.

Marks, times, usage, metadata and ids of messages count in neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, Literal
from weakref import ref

import msgspec

from dragoman import json_bytes
from dragoman.codec.marks import holds_only_waits, strip_marks
from dragoman.json_bytes import Json
from dragoman.message import (
    NOTES,
    Content,
    MarkPart,
    Message,
    Native,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

__all__ = [
    "LARGE",
    "DIGEST_SIZE",
    "chain_digests",
    "extend_digest",
    "chain_digest_bytes",
    "prefix_without_digest",
    "hash_message",
    "neutral_digest",
    "chain_neutral_digests",
    "compute_prefix",
    "chain_signature_digests",
    "parse_prefix_wire",
    "format_prefix",
    "digest_value",
]


_VERSION = "2"
_STRIPPED = (TextPart, ToolCallPart, ToolResultPart, MarkPart)
"""Types of pieces that may hold something that the signature digest does not count."""


def chain_signature_digests(messages: Iterable[Message], wire: str) -> list[str]:
    """Returns for each message the signature digest of all before it, in the form of
    `Origin.prefix`, and at the end that of all. `wire`: the wire of the provider that signs."""
    return [format_prefix(wire, digest) for digest in chain_digest_bytes(messages, wire)]


def chain_digest_bytes(
    messages: Iterable[Message], wire: str, after: bytes | None = None
) -> list[bytes]:
    """Returns the signature digests of `chain_signature_digests` as bytes. `after`: the digest of
    the messages before these, if there are any."""
    messages = tuple(messages)
    head = 0
    if after is None:
        is_head = [message.role is Role.SYSTEM and not message.native for message in messages]
        head = [*is_head, False].index(False)

    def make(message: Message) -> Any:
        return _select_signed(message, wire)

    # System text at the head does not count: `Origin.system` has a digest of its own for it.
    chain = [after or b""] * (head + 1)
    for message in messages[head:]:
        # No wire sends a message of waits alone, so it must not change the chain.
        if holds_only_waits(message):
            chain.append(chain[-1])
        else:
            chain.append(_next(chain[-1], hash_message(message, wire, make)))
    return chain


def format_prefix(wire: str, digest: bytes) -> str:
    """Returns a digest in the form of `Origin.prefix`: `2:WIRE:DIGEST`."""
    return f"{_VERSION}:{wire}:{digest.hex()}"


def compute_prefix(messages: Iterable[Message], wire: str) -> str:
    """Returns the `Origin.prefix` of an answer to these messages."""
    return format_prefix(wire, chain_digest_bytes(messages, wire)[-1])


def parse_prefix_wire(prefix: str) -> str:
    """Returns the wire by which a prefix `2:WIRE:DIGEST` was made; empty for one of an earlier
    release, a digest alone."""
    version, _, wire_and_digest = prefix.partition(":")
    if version == _VERSION:
        return wire_and_digest.rpartition(":")[0]
    return ""


def prefix_without_digest(wire: str) -> str:
    """Returns a prefix that says which wire made an answer, but not what stood before it. Such an
    answer may always go back to its origin."""
    return f"{_VERSION}:{wire}:"


def chain_neutral_digests(messages: Iterable[Message]) -> list[str]:
    """Returns for each message the neutral digest of all before it, and at the end that of all: one
    more than there are messages."""
    digests = [b""]
    for message in messages:
        if holds_only_waits(message):
            digests.append(digests[-1])
        else:
            digests.append(_next(digests[-1], hash_message(message, "", _neutral)))
    return [digest.hex() for digest in digests]


def neutral_digest(message: Message) -> str:
    """Returns the neutral digest of one message, without what stands before it."""
    return hash_message(message, "", _neutral).hex()


def _next(parent: bytes, message_digest: bytes) -> bytes:
    return blake2b(parent + message_digest, digest_size=DIGEST_SIZE).digest()


def _select_signed(message: Message, wire: str) -> Any:
    """Returns what the signature digest counts of a message: role, content and one wire's native
    fields."""
    content = message.content
    if any(map(_has_more, content)):
        content = tuple([_of_wire(piece, wire) for piece in strip_marks(message, wire).content])
    wire_fields = (message.native or {}).get(wire)
    return message.role, content, wire_fields


def _has_more(piece: Content) -> bool:
    """True if a piece holds something that the signature digest does not count, or may hold it."""
    if type(piece) is TextPart:
        return bool(piece.native or piece.citations)
    return bool(piece.native) or isinstance(piece, _STRIPPED)


def _of_wire(piece: Content, wire: str) -> Content:
    """Returns what the signature digest counts of a piece: only this wire's fields in `native`, no
    citations, and nothing that formats cannot tell about who ran a tool."""
    if isinstance(piece, ToolCallPart | ToolResultPart):
        piece = _strip_run(piece, wire)
    if isinstance(piece, TextPart) and piece.citations:
        piece = TextPart(piece.text, piece.native)
    wire_fields = (piece.native or {}).get(wire)
    if piece.native is None or (len(piece.native) == 1 and wire_fields is not None):
        return piece
    if wire_fields is None:
        return msgspec.structs.replace(piece, native=None)
    return msgspec.structs.replace(piece, native={wire: wire_fields})


def _strip_run(piece: ToolCallPart | ToolResultPart, wire: str) -> ToolCallPart | ToolResultPart:
    """Returns a call or a result, for the digest, without what formats cannot tell about its
    run."""
    if piece.run_by == "client":
        piece = msgspec.structs.replace(piece, run_by=_run_by(piece))
    if not isinstance(piece, ToolResultPart):
        return piece
    if piece.is_content:
        piece = msgspec.structs.replace(
            piece, result=tuple([_of_wire(part, wire) for part in piece.result])
        )
    if piece.denied:
        piece = msgspec.structs.replace(piece, denied=False)
    return piece


def _neutral(message: Message) -> Any:
    return message.role, [_plain(piece) for piece in strip_marks(message).content]


def _plain(piece: Content) -> Any:
    """Returns what the neutral digest counts of a piece: what was said, without native fields and
    ids."""
    if isinstance(piece, ToolCallPart):
        unread = piece.raw if piece.state != "complete" else None
        return "tool_call", piece.name, piece.arguments, unread, piece.state, _run_by(piece)
    if isinstance(piece, ToolResultPart):
        if piece.is_content:
            result = [_plain(part) for part in piece.result]
        else:
            result = _value(piece.result)
        return "tool_result", result, piece.is_error, _run_by(piece)
    if isinstance(piece, TextPart):
        # No provider signs citations, and many formats do not hold them.
        return TextPart(piece.text)
    if piece.native is None:
        return piece
    return msgspec.structs.replace(piece, native=None)


def _run_by(piece: ToolCallPart | ToolResultPart) -> Literal["agent", "provider"]:
    """Returns who ran the tool, as far as every format tells it: a client's call is read back as
    the agent's."""
    return "provider" if piece.run_by == "provider" else "agent"


def _value(result: Any) -> Any:
    """Returns the JSON value of a result that the digest counts. A text that is JSON counts as its
    value, since some formats store results as text."""
    if not isinstance(result, str):
        return result
    try:
        return json_bytes.decode(result)
    except ValueError:
        return result


def extend_digest(parent: str, message: Message) -> str:
    """Returns the digest of a conversation whose last message is `message`. `parent`: the digest of
    those before it, empty if there are none."""
    return hash_message(message, None, _select_counted, parent.encode()).hex()


def _select_counted(message: Message) -> Any:
    """Returns what the prefix digest counts of a message, without marks."""
    content = strip_marks(message).content
    if any(piece.native or isinstance(piece, ToolResultPart) for piece in content):
        content = tuple([_one_room(piece) for piece in content])
    return message.role, content, _merge_notes(message.native)


def _one_room(piece: Content) -> Content:
    """Returns a piece of content with its native notes merged for the digest."""
    if isinstance(piece, ToolResultPart) and piece.is_content:
        inner: tuple[Content, ...] = piece.result
        if any(part.native for part in inner):
            piece = msgspec.structs.replace(
                piece, result=tuple([_one_room(part) for part in inner])
            )
    native = _merge_notes(piece.native)
    if native is piece.native:
        return piece
    return msgspec.structs.replace(piece, native=native)


def _merge_notes(native: Native) -> Native:
    """Returns `native` with the notes of each wire merged into its fields, as digests of earlier
    releases have it."""
    if not native or not any(key.endswith(NOTES) for key in native):
        return native
    joined: Json = {}
    for key, fields in native.items():
        wire = key.removesuffix(NOTES)
        if wire in joined and isinstance(fields, dict):
            joined[wire] = {**joined[wire], **fields}
        else:
            joined[wire] = fields
    return joined


def chain_digests(messages: Iterable[Message]) -> list[str]:
    """Returns for each message the digest of all before it, and at the end the digest of all, as
    releases before version 2 did."""
    digests = [""]
    for message in messages:
        digests.append(extend_digest(digests[-1], message))
    return digests


def digest_value(value: Any) -> str:
    """Returns the digest of a JSON value or struct."""
    return blake2b(_bytes(value), digest_size=DIGEST_SIZE).hexdigest()


LARGE = 4096
"""Bytes from which on a message is hashed once."""
DIGEST_SIZE = 16
"""Bytes of a digest."""

_encode = msgspec.json.Encoder(order="deterministic").encode
_large_messages: dict[int, tuple[ref[Message], dict[str | None, tuple[bytes, bytes]]]] = {}
"""Identity of a large message that is alive → itself, and by name what stood before it last, and
its digest then."""


def hash_message(
    message: Message,
    digest_name: str | None,
    counted: Callable[[Message], Any],
    previous_digest: bytes = b"",
) -> bytes:
    """Returns the digest (hash) of a message that follows `previous_digest`. That of a large
    message is remembered while the message lives.

    Args:
        message: the message.
        digest_name: which digest: a wire's name, empty for the neutral one, None for that of earlier
            releases.
        counted: returns what of the message counts.
        previous_digest: digest of the messages before it, empty if it is hashed alone.
    """
    entry = None
    if _large_messages:
        entry = _large_messages.get(id(message))
    # The identity of a message that is gone may be another one's by now.
    if entry is not None and entry[0]() is message:
        before, digest = entry[1].get(digest_name, (None, b""))
        if before == previous_digest:
            return digest
    data = _bytes(counted(message))
    state = blake2b(previous_digest, digest_size=DIGEST_SIZE)
    state.update(data)
    digest = state.digest()
    if len(data) >= LARGE:
        _remember_digest(message, digest_name, previous_digest, digest)
    return digest


def _remember_digest(
    message: Message, digest_name: str | None, previous_digest: bytes, digest: bytes
) -> None:
    """Stores the digest of a large message until the message is gone. `digest_name`,
    `previous_digest`: as for `hash_message`."""
    key = id(message)
    entry = _large_messages.get(key)
    if entry is None or entry[0]() is not message:
        # The weak reference drops the entry when the message is gone. The default argument keeps the
        # table reachable at interpreter exit, when names of the module may be cleared already.
        entry = _large_messages[key] = (
            ref(message, lambda _, table=_large_messages: table.pop(key, None)),
            {},
        )
    entry[1][digest_name] = previous_digest, digest


def _bytes(value: Any) -> bytes:
    """Encodes a value for a digest, also one with unpaired surrogates."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        # Half a pair of surrogates, which UTF-8 cannot hold.
        return json.dumps(msgspec.to_builtins(value), sort_keys=True).encode()
