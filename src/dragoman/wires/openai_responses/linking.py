"""Going on from a response that the provider stores, in place of sending the conversation again."""

from __future__ import annotations

from dragoman.codec import digest
from dragoman.codec.digest import chain_signature_digests
from dragoman.codec.json_values import if_object
from dragoman.json_bytes import JsonMap
from dragoman.message import FinishReason, Message, Origin, Role
from dragoman.wires.openai_responses.items import OutgoingItems
from dragoman.wires.openai_responses.quirks import NAME, OWN, Quirks

__all__ = [
    "LINKED_BY_CALLER",
    "find_anchor",
    "content_digest",
    "is_stored",
    "may_be_anchor",
    "may_link",
]

LINKED_BY_CALLER = ("previous_response_id", "conversation", "prompt")
"""Options by which a caller says himself what the request goes on from. `previous_response_id:
null` means: from nothing, and that the provider has forgotten what it stored."""
_SESSION = frozenset({"_responses_session", "response_id"})
"""Metadata by which messages of other libraries name their response."""
_BROKEN = (FinishReason.error, FinishReason.cancelled)


def is_stored(options: JsonMap) -> bool:
    """Whether the provider holds what such requests were answered: `store` counts as true where it
    is null."""
    forgotten = "previous_response_id" in options and options["previous_response_id"] is None
    return options.get("store") is not False and not forgotten


def may_link(target: Origin | None, quirks: Quirks, options: JsonMap) -> bool:
    """Whether a request may go on from a stored response at all."""
    stored = target is not None and quirks.links and is_stored(options)
    return stored and not any(name in options for name in LINKED_BY_CALLER)


def find_anchor(out: OutgoingItems) -> tuple[int, str] | None:
    """The newest message that a request which may link can go on from: its position and the id of
    its response; `None`: none.

    It and all before it are as they were when the provider answered, and something follows it.
    """
    for position in range(len(out.messages) - 2, -1, -1):
        message = out.messages[position]
        if (
            message.role is Role.MODEL
            and (id_ := _response_id(message, out, out.unreadable[position])) is not None
        ):
            return position, id_
    return None


def may_be_anchor(message: Message, target: Origin | None) -> bool:
    """Whether a request could go on from a message, by its looks alone."""
    if message.role is not Role.MODEL or target is None:
        return False
    if message.origin is None:
        return not _SESSION.isdisjoint(message.metadata)
    return message.origin.provider == target.provider and message.origin.prefix is not None


def content_digest(message: Message) -> str:
    """Fingerprint of what a message holds, whatever stands before or around it."""
    return chain_signature_digests([Message(message.role, message.content)], NAME)[-1]


def _response_id(message: Message, out: OutgoingItems, unreadable: str | None) -> str | None:
    """The id of the stored response that the message is; `None` where it is none, or not as it
    was."""
    origin, target = message.origin, out.target
    if origin is None:
        session = message.metadata.get("_responses_session")
        id_ = if_object(session).get("response_id") or message.metadata.get("response_id")
        return id_ if isinstance(id_, str) and id_.startswith("resp_") else None
    ours = (
        target is not None
        and origin.provider == target.provider
        and unreadable is None
        and origin.prefix is not None
    )
    if (
        not ours
        or message.finish_reason in _BROKEN
        or OWN.response(message.native).get("store") is False
    ):
        return None
    sealed = OWN.notes(message.native).get("digest")
    return origin.response_id if sealed is None or sealed in _digests(message) else None


def _digests(message: Message) -> tuple[str, ...]:
    """What this release and an earlier one noted of such a message."""
    return content_digest(message), digest.extend_digest("", Message(message.role, message.content))
