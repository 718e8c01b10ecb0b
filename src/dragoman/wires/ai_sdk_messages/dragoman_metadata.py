"""What is under the key `dragoman` of a message's metadata: all that a message of the family has no
field for.

These are ids of the messages within, times, tokens, who answered. Only what a reader would not find
without it is written (`extras_of`), and what is read counts only if it is what would be written for
the messages that it makes (`with_extras`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from dragoman.codec.json_values import drop_empty, if_list, if_object
from dragoman.message import FinishReason, Message, Origin, Usage
from dragoman.wires.ai_sdk_messages.notes import OWN, Part, Parts, flags
from dragoman.wires.ai_sdk_messages.provider_metadata import foreign, is_native

__all__ = ["EMPTY", "JOINED", "ONE_STEP", "Expected", "extras_of", "with_extras"]

JOINED = "joined"
"""Key of a user message that also has the results before it."""
ONE_STEP = "one_step"
"""Key of a message with words behind an answered call, which a dialect would read as two steps."""
EMPTY = "empty"
"""Key of a message without content, which has a part only because each message must have one."""


class _Extra(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is carried for one message. A field that is not set changes nothing."""

    id: str | msgspec.UnsetType | None = msgspec.UNSET
    turn: str | msgspec.UnsetType | None = msgspec.UNSET
    created_at: datetime | msgspec.UnsetType = msgspec.UNSET
    metadata: Part | msgspec.UnsetType = msgspec.UNSET
    origin: Origin | msgspec.UnsetType | None = msgspec.UNSET
    finish_reason: FinishReason | msgspec.UnsetType | None = msgspec.UNSET
    usage: Usage | msgspec.UnsetType | None = msgspec.UNSET
    native: Part | msgspec.UnsetType = msgspec.UNSET


class Expected(NamedTuple):
    """What a reader gives a message for which nothing is carried."""

    id: str | None
    """`Message.id`."""
    turn: str | None
    """`Message.turn`."""
    origin: Origin | None
    """`Message.origin`."""


def extras_of(
    messages: Sequence[Message],
    expected: Sequence[Expected],
    *,
    joined: bool = False,
    empty: bool = False,
    one_step: bool = False,
    metadata: bool = False,
    time: bool = True,
) -> Part:
    """Returns what to carry for the AI SDK messages of a turn: everything that a reader would miss.

    Args:
        messages: the messages of the turn.
        expected: what a reader gives each of them.
        joined: True if the first one also has the results before it.
        empty: True if it has a part that says nothing.
        one_step: see `ONE_STEP`.
        metadata: True to include the application's metadata of the first message.
        time: True to include the time of the first message.
    """
    first = messages[0]
    # A turn that all messages have is said once, for the whole.
    is_same_turn = len({message.turn for message in messages}) == 1
    shares_turn = is_same_turn and first.turn != expected[0].turn
    extras: Parts = []
    for message, usual in zip(messages, expected, strict=False):
        extras.append(_extra_of(message, usual, has_turn=not shares_turn))
    if not time:
        extras[0].pop("created_at", None)
    if not metadata:
        extras[0].pop("metadata", None)
    # Messages are told apart by their place in the list, so that only what is empty at its end can
    # go.
    while extras and not extras[-1]:
        extras.pop()
    carried = flags(joined=joined, empty=empty, one_step=one_step)
    if shares_turn:
        carried["turn"] = first.turn
    if extras:
        carried["messages"] = extras
    return carried


def _extra_of(message: Message, usual: Expected, *, has_turn: bool) -> Part:
    """Returns what to carry for one AI SDK message. `has_turn` includes its turn."""
    extra: Part = {}
    if message.id != usual.id:
        extra["id"] = message.id
    if message.turn != usual.turn and has_turn:
        extra["turn"] = message.turn
    if message.origin != usual.origin and not _has_given_origin(message):
        extra["origin"] = msgspec.to_builtins(message.origin)
    if message.created_at is not None:
        extra["created_at"] = msgspec.to_builtins(message.created_at)
    if message.finish_reason is not None:
        extra["finish_reason"] = message.finish_reason.value
    if message.usage is not None:
        extra["usage"] = msgspec.to_builtins(message.usage)
    if message.metadata:
        extra |= drop_empty({"metadata": message.own_metadata})
    if message.native:
        extra |= drop_empty({"native": foreign("message", message.native)})
    return extra


def with_extras(messages: Sequence[Message], extras: Any) -> list[Message] | None:
    """Returns AI SDK messages with what their dragoman metadata, `extras_of` carried for them, or
    None if it cannot have written that."""
    carried = if_object(extras)
    listed = if_list(carried.get("messages"))
    if not carried or len(listed) > len(messages):
        return None
    if not isinstance(carried.get("turn"), str | None):
        return None
    changed = list(messages)
    if "turn" in carried:
        changed = [message.replace(turn=carried["turn"]) for message in messages]
    for index, fields in enumerate(listed):
        try:
            extra = msgspec.convert(fields, _Extra)
        except ValueError:  # half a character of UTF-16 is no ValidationError
            return None
        # Notes decide what is sent to providers byte for byte, so that a client must not write
        # them.
        if extra.native and not is_native(extra.native):
            return None
        changed[index] = _apply_carried(changed[index], extra)
    return changed


def _apply_carried(message: Message, extra: _Extra) -> Message:
    """Returns an AI SDK message with what is carried for it."""
    changes = {
        name: value
        for name, value in msgspec.structs.asdict(extra).items()
        if value is not msgspec.UNSET
    }
    if "native" in changes:
        changes["native"] = {**changes["native"], **(message.native or {})} or None
    return message.replace(**changes)


def _has_given_origin(message: Message) -> bool:
    """True if an AI SDK message's origin is the one that the caller gave for all messages."""
    if not message.native or message.origin is None:
        return False
    noted_origin = OWN.notes(message.native).get("origin")
    return noted_origin is not None and msgspec.to_builtins(message.origin) == noted_origin
