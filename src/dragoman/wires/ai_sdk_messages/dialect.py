"""What one kind of UI message is written and read by: a record of functions, one for each kind of piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.codec.media import Media
from dragoman.message import (
    MarkPart,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.reading import Loader

__all__ = ["ATTACHMENT", "Dialect", "Envelope", "Part", "Parts"]

ATTACHMENT = "attachment"
"""Stands as the type of a part that is to be one of the message's attachments."""
Part = dict[str, Any]
Parts = list[Part]


class Envelope(msgspec.Struct, frozen=True):
    """What a message is written with, beside its parts."""

    id: str | None
    """Its id; `None`: it has none."""
    role: str
    """`system`, `user` or `assistant`."""
    parts: Parts
    """All of them."""
    first: Message
    """The first of the messages that it is."""
    extras: dict[str, Any]
    """What stands under our own key."""


class Dialect(msgspec.Struct, frozen=True):
    """One kind of UI message."""

    name: str
    """By which it is noted."""
    loaders: Mapping[str, Loader]
    """Type of a part → what reads it. Any other is a mark."""
    prefixed: Mapping[str, Loader]
    """The same, by the beginning of the type."""
    text: Callable[[TextPart, bool], Part]
    """(text, whether it is the model's) → its part."""
    thinking: Callable[[Sequence[ThinkingPart]], Parts]
    """Thinking that follows each other → its parts."""
    file: Callable[[Media, bool], Part]
    """(file, whether it is the model's) → its part."""
    call: Callable[[ToolCallPart, bool, int], Part]
    """(call, whether it has a result, number of the step) → its part."""
    result: Callable[[Part, ToolResultPart, ToolCallPart], Part]
    """(part of a call, its result, the call) → the part with both."""
    mark: Callable[[MarkPart | ProviderPart], Part]
    """A mark, or a block of a provider's → its part."""
    envelope: Callable[[Envelope], dict[str, Any]]
    """The message around its parts."""
    keep: Callable[[dict[str, Any], Any], dict[str, Any]]
    """(fields of a message of its own, what stood under our key and is not ours) → the fields with it."""
    metadata_first: bool = False
    """The application's metadata has no field, and stands under our key."""
    silent: bool = True
    """Thinking without a text is thinking; otherwise nobody could tell it from a mark."""
    times: bool = False
    """The time of the first message has a field."""
