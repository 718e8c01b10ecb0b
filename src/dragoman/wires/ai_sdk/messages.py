"""Messages: those of the format `ai_sdk_ui`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dragoman.codec.format_layout import Layout, Regeneration
from dragoman.codec.json_values import read_extra_fields
from dragoman.codec.serving import Problem
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Content, Message, Origin, Role, ThinkingPart
from dragoman.wires.ai_sdk.quirks import NAME, OWN, part_id
from dragoman.wires.ai_sdk_messages.conversation import dump_ui, load_conversation
from dragoman.wires.ai_sdk_messages.detection import ui_votes as votes

__all__ = ["dump_messages", "layout", "load_messages", "same_as", "votes"]

layout = Layout(
    fields=("messages",),
    distinctive=frozenset(["trigger", "messageId"]),
    regeneration=Regeneration("trigger", "regenerate-message", "messageId"),
)
"""Where the messages are in what `useChat` sends."""
same_as = "ai_sdk_ui"
"""Name of the format of its messages, which detects them."""


def load_messages(
    payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Returns the messages in a list of AI SDK UI messages. With `problems`, unreadable ones are
    skipped and noted there.

    Raises:
        HistoryError: it is no list, or a message cannot be read and `problems` is None.
    """
    return [_without_ids(message) for message in load_conversation(payload, origin, problems)]


def _without_ids(message: Message) -> Message:
    """Returns a message without the ids that the AI SDK encoder gave to parts of thinking, which
    clients keep."""
    if message.role is not Role.MODEL:
        return message
    content = [
        _without_id(piece, part_id(message.id, index))
        for index, piece in enumerate(message.content)
    ]
    # Most messages have no such ids, and stay the same object.
    is_same = all(new is old for new, old in zip(content, message.content, strict=True))
    if is_same:
        return message
    return message.replace(content=tuple(content))


def _without_id(piece: Content, id_: str) -> Content:
    """Returns a piece of an AI SDK message without this id."""
    if isinstance(piece, ThinkingPart):
        fields = OWN.fields(piece.native)
    else:
        fields = {}
    if fields.get("id") != id_:
        return piece
    native = read_extra_fields(piece.native or {}, NAME)
    if other_fields := read_extra_fields(fields, "id"):
        native[NAME] = other_fields
    return msgspec.structs.replace(piece, native=native or None)


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,
) -> list[Json]:
    """Returns a conversation as AI SDK UI messages. `losses` grows with what they cannot hold."""
    return dump_ui(messages, losses, None)
