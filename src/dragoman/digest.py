"""The digest chain H(parent, content): one fingerprint for everything that stands before a message.

It tells whether signed thinking is still valid, whether a stored response may be linked to, and whether two
conversations share a prefix. Ids, times, usage and metadata are no content and do not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from dragoman.message import Message

__all__ = ["chain", "digest"]

_encode = msgspec.json.Encoder(order="deterministic").encode


def digest(parent: str, message: Message) -> str:
    """The digest of a conversation that goes on from `parent` (`""`: the beginning) with this message."""
    h = blake2b(parent.encode(), digest_size=16)
    h.update(_encode((message.role, message.content, message.native)))
    return h.hexdigest()


def chain(messages: Iterable[Message]) -> list[str]:
    """For each message the digest of all before it, and last the digest of all: one more than there are messages."""
    digests = [""]
    for message in messages:
        digests.append(digest(digests[-1], message))
    return digests
