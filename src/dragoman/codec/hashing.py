"""The digest of a message on its own, as the chains of `codec.digest` and `codec.digest_v1` take it.

A conversation is hashed for each request that nobody remembers, and a message may hold megabytes: what is large is hashed once. What is
small is hashed again, which costs less than to keep its digest.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from typing import Any
from weakref import ref

import msgspec

from dragoman.message import Message

__all__ = ["LARGE", "SIZE", "hashed"]

LARGE = 4096
"""Bytes from which on a message is hashed once."""
SIZE = 16
"""Bytes of a digest."""

_encode = msgspec.json.Encoder(order="deterministic").encode
_known: dict[int, tuple[ref[Message], dict[str | None, tuple[bytes, bytes]]]] = {}
"""Identity of a large message that is alive → itself, and by name what stood before it last, and its digest then."""


def hashed(
    message: Message, name: str | None, counted: Callable[[Message], Any], after: bytes = b""
) -> bytes:
    """The digest of a message behind `after`. `counted`: the message → what of it counts; `name`: which digest that is,
    a wire's, the neutral one (empty), or that of earlier releases (`None`)."""
    known = _known.get(id(message)) if _known else None
    if known is not None and known[0]() is message:
        before, digest = known[1].get(name, (None, b""))
        if before == after:
            return digest
    data = _bytes(counted(message))
    state = blake2b(after, digest_size=SIZE)
    state.update(data)
    digest = state.digest()
    if len(data) >= LARGE:
        _keep(message, name, after, digest)
    return digest


def _keep(message: Message, name: str | None, after: bytes, digest: bytes) -> None:
    key = id(message)
    known = _known.get(key)
    if known is None or known[0]() is not message:
        known = _known[key] = (ref(message, lambda _, known=_known: known.pop(key, None)), {})
    known[1][name] = after, digest


def _bytes(value: Any) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:  # half a pair of surrogates, which UTF-8 cannot hold
        return json.dumps(msgspec.to_builtins(value), sort_keys=True).encode()
