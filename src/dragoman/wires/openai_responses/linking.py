"""Continues from a response that the provider stores, instead of sending the conversation again.

`find_anchor` looks for the newest model message that is still as the provider answered it, together
with all before it. The request then sends its response's id and only the messages after it. A
digest in the message's notes shows whether its content was edited.
"""

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
"""Options by which a caller says what the request continues from. `previous_response_id: null`
means from nothing, and that the provider has forgotten what it stored."""
_SESSION = frozenset({"_responses_session", "response_id"})
"""Metadata by which messages of other libraries name their response."""
_BROKEN = (FinishReason.error, FinishReason.cancelled)


def is_stored(options: JsonMap) -> bool:
    """True if the provider stores the Responses answers to requests with these options, so that
    later ones may link to them. A `store` of null counts as true."""
    forgotten = "previous_response_id" in options and options["previous_response_id"] is None
    return options.get("store") is not False and not forgotten


def may_link(target: Origin | None, quirks: Quirks, options: JsonMap) -> bool:
    """True if a request may continue from a stored response at all."""
    stored = target is not None and quirks.links and is_stored(options)
    return stored and not any(name in options for name in LINKED_BY_CALLER)


def find_anchor(out: OutgoingItems) -> tuple[int, str] | None:
    """Returns the newest message that a Responses request can continue from: its position and its
    response's id. None if there is none.

    It and all before it are as they were when the provider answered, and something follows it.
    """
    # The last message is no anchor, since a request needs something new.
    for position in range(len(out.messages) - 2, -1, -1):
        message = out.messages[position]
        if message.role is not Role.MODEL:
            continue
        response_id = _response_id(message, out, out.unreadable[position])
        if response_id is not None:
            return position, response_id
    return None


def may_be_anchor(message: Message, target: Origin | None) -> bool:
    """True if a Responses request could continue from a message, as far as the message alone
    shows."""
    if message.role is not Role.MODEL or target is None:
        return False
    if message.origin is None:
        return not _SESSION.isdisjoint(message.metadata)
    return message.origin.provider == target.provider and message.origin.prefix is not None


def content_digest(message: Message) -> str:
    """Returns a digest of a message's content, whatever stands before or around it."""
    return chain_signature_digests([Message(message.role, message.content)], NAME)[-1]


def _find_noted_response_id(message: Message) -> str | None:
    """Returns the id of a response that another library noted in the metadata of a message."""
    session = message.metadata.get("_responses_session")
    session_id = if_object(session).get("response_id") or message.metadata.get("response_id")
    if isinstance(session_id, str) and session_id.startswith("resp_"):
        return session_id
    return None


def _response_id(message: Message, out: OutgoingItems, unreadable: str | None) -> str | None:
    """Returns the id of the stored response that a Responses message is. None if it is none, or has
    changed."""
    origin = message.origin
    if origin is None:
        return _find_noted_response_id(message)
    if not may_be_anchor(message, out.target) or unreadable is not None:
        return None
    if message.finish_reason in _BROKEN or OWN.response(message.native).get("store") is False:
        return None
    noted_digest = OWN.notes(message.native).get("digest")
    if noted_digest is not None and noted_digest not in _digests(message):
        return None
    return origin.response_id


def _digests(message: Message) -> tuple[str, ...]:
    """Returns the digests that this release and an earlier one noted for such a message."""
    return content_digest(message), digest.extend_digest("", Message(message.role, message.content))
