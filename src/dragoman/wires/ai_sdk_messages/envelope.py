"""What stands around the parts of a UI message: id, metadata, and under the key `dragoman` of the metadata what such a message has no
field for (ids of the messages within, times, tokens, who answered)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from dragoman.codec.json_values import if_list, if_object
from dragoman.message import FinishReason, Message, Origin, Usage
from dragoman.wires.ai_sdk_messages.carriage import is_native
from dragoman.wires.ai_sdk_messages.own import OWN
from dragoman.wires.ai_sdk_messages.signatures import foreign

__all__ = ["EMPTY", "JOINED", "ONE_STEP", "Expected", "extras_of", "with_extras"]

JOINED = "joined"
"""Key of what a message of the user's has with results before it, which are of the same message."""
ONE_STEP = "one_step"
"""Key of what a dialect would read as several steps, although the model said it in one message: words behind an answered call."""
EMPTY = "empty"
"""Key of what says nothing, and has a part since each message must have one."""


class _Extra(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of one message; what is not said stays as it is."""

    id: str | msgspec.UnsetType | None = msgspec.UNSET
    turn: str | msgspec.UnsetType | None = msgspec.UNSET
    created_at: datetime | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    origin: Origin | msgspec.UnsetType | None = msgspec.UNSET
    finish_reason: FinishReason | msgspec.UnsetType | None = msgspec.UNSET
    usage: Usage | msgspec.UnsetType | None = msgspec.UNSET
    native: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


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
) -> dict[str, Any]:
    """What the messages of a turn have beyond what is read without it: of all of them, and an object for each. `joined`: the first is one with
    the results before it; `empty`: it has a part that says nothing; `one_step`: see `ONE_STEP`; `metadata`, `time`: those of the first are among it."""
    made: list[dict[str, Any]] = []
    named = {message.turn for message in messages}
    shared = len(named) == 1 and messages[0].turn != expected[0].turn
    for at, (message, usual) in enumerate(zip(messages, expected, strict=False)):
        extra: dict[str, Any] = {}
        if message.id != usual.id:
            extra["id"] = message.id
        if message.turn != usual.turn and not shared:
            extra["turn"] = message.turn
        if message.origin != usual.origin and not _is_given(message):
            extra["origin"] = (
                None if message.origin is None else msgspec.to_builtins(message.origin)
            )
        if message.created_at is not None and (at or time):
            extra["created_at"] = msgspec.to_builtins(message.created_at)
        if message.finish_reason is not None:
            extra["finish_reason"] = message.finish_reason.value
        if message.usage is not None:
            extra["usage"] = msgspec.to_builtins(message.usage)
        if message.metadata and (at or metadata) and (own := message.own_metadata):
            extra["metadata"] = own
        if message.native and (held := foreign("message", message.native)):
            extra["native"] = held
        made.append(extra)
    while made and not made[-1]:
        made.pop()
    return {
        **({JOINED: True} if joined else {}),
        **({EMPTY: True} if empty else {}),
        **({ONE_STEP: True} if one_step else {}),
        **({"turn": messages[0].turn} if shared else {}),
        **({"messages": made} if made else {}),
    }


def with_extras(messages: Sequence[Message], extras: Any) -> list[Message] | None:
    """Messages with what `extras_of` said of them; `None`: it is nothing that it would say."""
    held = if_object(extras)
    given = if_list(held.get("messages"))
    if not held or len(given) > len(messages) or not isinstance(held.get("turn"), str | None):
        return None
    out = (
        [message.replace(turn=held["turn"]) for message in messages]
        if "turn" in held
        else list(messages)
    )
    for at, kept in enumerate(given):
        try:
            extra = msgspec.convert(kept, _Extra)
        except ValueError:  # half a character of UTF-16 is no ValidationError
            return None
        if extra.native and not is_native(extra.native):
            return None
        out[at] = _changed(out[at], extra)
    return out


def _changed(one: Message, extra: _Extra) -> Message:
    return Message(
        one.role,
        one.content,
        one.id if extra.id is msgspec.UNSET else extra.id,
        one.created_at if extra.created_at is msgspec.UNSET else extra.created_at,
        one.origin if extra.origin is msgspec.UNSET else extra.origin,
        one.metadata if extra.metadata is msgspec.UNSET else extra.metadata,
        one.finish_reason if extra.finish_reason is msgspec.UNSET else extra.finish_reason,
        one.usage if extra.usage is msgspec.UNSET else extra.usage,
        {**extra.native, **(one.native or {})} or None
        if extra.native is not msgspec.UNSET
        else one.native,
        one.turn if extra.turn is msgspec.UNSET else extra.turn,
    )


def _is_given(message: Message) -> bool:
    """Whether its origin is what a caller gave as that of all messages that name none."""
    held = OWN.notes(message.native).get("origin") if message.native else None
    return (
        held is not None
        and message.origin is not None
        and msgspec.to_builtins(message.origin) == held
    )
