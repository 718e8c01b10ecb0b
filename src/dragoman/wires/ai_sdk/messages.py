"""Messages: those of the format `ai_sdk_ui`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dragoman.codec.json_values import read_extra_fields
from dragoman.codec.layout import Layout, Regeneration
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
    own=frozenset(["trigger", "messageId"]),
    regeneration=Regeneration("trigger", "regenerate-message", "messageId"),
)
"""Where its messages stand in what `useChat` sends."""
same_as = "ai_sdk_ui"
"""Name of the format whose messages these are, by which they are detected."""


def load_messages(
    payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """A list of UI messages → messages. With `problems`, a message that cannot be read is left out
    and noted there.

    Raises:
        HistoryError: it is no list, or a message cannot be read and no problems are noted.
    """
    return [_without_ids(message) for message in load_conversation(payload, origin, problems)]


def _without_ids(message: Message) -> Message:
    """Returns a message without the ids that our stream gave to parts of thinking, which clients
    keep."""
    if message.role is not Role.MODEL:
        return message
    content = [
        _without_id(piece, part_id(message.id, index))
        for index, piece in enumerate(message.content)
    ]
    is_same = all(new is old for new, old in zip(content, message.content, strict=True))
    return message if is_same else message.replace(content=tuple(content))


def _without_id(piece: Content, id_: str) -> Content:
    fields = OWN.fields(piece.native) if isinstance(piece, ThinkingPart) else {}
    if fields.get("id") != id_:
        return piece
    native = read_extra_fields(piece.native or {}, NAME)
    if others := read_extra_fields(fields, "id"):
        native[NAME] = others
    return msgspec.structs.replace(piece, native=native or None)


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,
) -> list[Json]:
    """Messages → a list of UI messages. What they cannot hold is added to `losses`."""
    return dump_ui(messages, losses, None)
