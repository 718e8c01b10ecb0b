"""Which of a model's messages may go back with what their provider signed.

Signed content is valid for the origin that signed it, and only while everything before it is as it
was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from dragoman.codec import digest
from dragoman.loss import Lost
from dragoman.message import Content, Message, Origin, Role

__all__ = ["DigestAt", "digest_lookup", "name_part_type", "find_unreadable"]

DigestAt = Callable[[str, int], str]
"""(wire, position) → the digest of all before that message, as `Origin.prefix` has it."""


def find_unreadable(
    messages: Sequence[Message],
    target: Origin | None,
    reads: Collection[str] = (),
    digest_at: DigestAt | None = None,
) -> list[str | None]:
    """Returns for each message None if its signed content may be sent to `target`, else the reason
    why not.

    `reads`: names of other providers whose signed content the target reads, from the target's
    record. `digest_at`: what tells the digests, where that is known or these are a part of a
    conversation. Without a target everything is readable, as if sent to its own origin.
    """
    if target is None:
        return [None] * len(messages)
    digest_at = digest_at or digest_lookup(messages)
    out: list[str | None] = []
    for position, message in enumerate(messages):
        origin = message.origin
        if message.role is not Role.MODEL:
            out.append(None)
        elif origin is None:
            out.append("its origin is not known")
        else:
            # Digests last: they read the whole conversation.
            foreign = _find_foreign_origin(origin, target, reads)
            out.append(foreign or _find_break(origin, target, position, digest_at))
    return out


def _find_foreign_origin(origin: Origin, target: Origin, reads: Collection[str]) -> str | None:
    """Returns why the target does not read the signature of this origin; None if it does."""
    if origin.provider != target.provider:
        if origin.provider in reads:
            return None
        return f"it comes from {origin.provider}, which {target.provider} does not read"
    # An endpoint that is not known may be the same one.
    if _differs(origin.endpoint, target.endpoint):
        return f"it comes from another endpoint, {origin.endpoint}"
    return None


def _find_break(origin: Origin, target: Origin, position: int, digest_at: DigestAt) -> str | None:
    """Returns why a message's signature no longer matches what it was bound to, or None if it
    does."""
    # An earlier release noted no rule: that of the model that reads it is the next best guess.
    binds = origin.binds or target.binds
    if binds == "block":
        return None
    if binds == "prefix":
        if _differs(origin.system, target.system):
            return "the system text has changed since it was signed"
        if _differs(origin.tools, target.tools):
            return "the tools have changed since it was signed"
    # Nothing was noted to compare with: whether it holds is for the provider to check.
    if origin.prefix is None:
        return None
    wire = digest.parse_prefix_wire(origin.prefix)
    if (
        origin.prefix == digest.prefix_without_digest(wire)
        or digest_at(wire, position) == origin.prefix
    ):
        return None
    return "what stood before it has changed"


def _differs(signed: str | None, current: str | None) -> bool:
    """True if both values, such as digests, are known and are not the same."""
    return None not in (signed, current) and signed != current


def digest_lookup(messages: Sequence[Message]) -> DigestAt:
    """Returns a function that looks up the digests of a conversation that signatures are checked
    by. It computes each wire's chain on first use; position -1 is the digest of all."""

    chains: dict[str, list[str]] = {}

    def digest_at(wire: str, position: int) -> str:
        """Returns the digest of all messages before a position: the signature digest of that wire,
        or the neutral digest if `wire` is empty."""
        if wire not in chains:
            if wire:
                chains[wire] = digest.chain_signature_digests(messages, wire)
            else:
                chains[wire] = digest.chain_digests(messages)
        return chains[wire][position]

    return digest_at


def name_part_type(piece: Content) -> Lost:
    """Returns the type of a piece as a loss names it, such as `thinking`. The piece is never a
    mark."""
    return Lost(str(piece.__struct_config__.tag).replace("_", " "))
