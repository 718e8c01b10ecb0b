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
from dragoman.wires.ai_sdk_messages.metadata import foreign, is_native
from dragoman.wires.ai_sdk_messages.own import OWN, Part, Parts, flags

__all__ = ["EMPTY", "JOINED", "ONE_STEP", "Expected", "extras_of", "with_extras"]

JOINED = "joined"
"""Key of what a message of the user's has with results before it, which are of the same message."""
ONE_STEP = "one_step"
"""Key of what a dialect would read as several steps, although the model said it in one message:
words behind an answered call."""
EMPTY = "empty"
"""Key of what says nothing, and has a part since each message must have one."""


class _Extra(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of one message; what is not said stays as it is."""

    id: str | msgspec.UnsetType | None = msgspec.UNSET
    turn: str | msgspec.UnsetType | None = msgspec.UNSET
    created_at: datetime | msgspec.UnsetType = msgspec.UNSET
    metadata: Part | msgspec.UnsetType = msgspec.UNSET
    origin: Origin | msgspec.UnsetType | None = msgspec.UNSET
    finish_reason: FinishReason | msgspec.UnsetType | None = msgspec.UNSET
    usage: Usage | msgspec.UnsetType | None = msgspec.UNSET
    native: Part | msgspec.UnsetType = msgspec.UNSET


class Expected(NamedTuple):
    """What a message is read with where nothing more is said."""

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
    """Returns what the messages of a turn have beyond what is read without it.

    Args:
        messages: of the turn.
        expected: of each, what is read without it.
        joined: the first is one with the results before it.
        empty: it has a part that says nothing.
        one_step: see `ONE_STEP`.
        metadata: the application's metadata of the first message is among it.
        time: the time of the first message is among it.
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
    extras_said: Part = {}
    if joined or empty or one_step:
        extras_said = flags(joined=joined, empty=empty, one_step=one_step)
    if shares_turn:
        extras_said["turn"] = first.turn
    if extras:
        extras_said["messages"] = extras
    return extras_said


def _extra_of(message: Message, usual: Expected, *, has_turn: bool) -> Part:
    """What one message has beyond what is read without it."""
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
    """Returns messages with what `extras_of` said of them, or None for what it would not say."""
    extras_said = if_object(extras)
    listed = if_list(extras_said.get("messages"))
    if (
        not extras_said
        or len(listed) > len(messages)
        or not isinstance(extras_said.get("turn"), str | None)
    ):
        return None
    changed = list(messages)
    if "turn" in extras_said:
        changed = [message.replace(turn=extras_said["turn"]) for message in messages]
    for index, fields in enumerate(listed):
        try:
            extra = msgspec.convert(fields, _Extra)
        except ValueError:  # half a character of UTF-16 is no ValidationError
            return None
        # Notes decide what is sent to providers byte for byte, so that a client must not write
        # them.
        if extra.native and not is_native(extra.native):
            return None
        changed[index] = _apply(changed[index], extra)
    return changed


def _apply(message: Message, extra: _Extra) -> Message:
    changes = {
        name: value
        for name, value in msgspec.structs.asdict(extra).items()
        if value is not msgspec.UNSET
    }
    if "native" in changes:
        changes["native"] = {**changes["native"], **(message.native or {})} or None
    return message.replace(**changes)


def _has_given_origin(message: Message) -> bool:
    """Whether its origin is what a caller gave as that of all messages that name none."""
    given = OWN.notes(message.native).get("origin") if message.native else None
    if given is None or message.origin is None:
        return False
    return msgspec.to_builtins(message.origin) == given
