"""Messages: those of the format `ai_sdk_ui`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.codec.layout import Layout
from dragoman.codec.serving import Problem
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.wires.ai_sdk_messages.conversation import dump_ui, load_conversation
from dragoman.wires.ai_sdk_messages.detection import ui_votes as votes

__all__ = ["dump_messages", "layout", "load_messages", "same_as", "votes"]

layout = Layout(fields=("messages",), own=frozenset(["trigger", "messageId"]))
"""Where its messages stand in what `useChat` sends."""
same_as = "ai_sdk_ui"
"""Name of the format whose messages these are, by which they are detected."""


def load_messages(
    payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """A list of UI messages → messages. With `problems`, a message that cannot be read is left out and noted there.

    Raises:
        HistoryError: it is no list, or a message cannot be read and no problems are noted.
    """
    return load_conversation(payload, origin, problems)


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,
) -> list[dict[str, Any]]:
    """Messages → a list of UI messages. What they cannot hold is added to `losses`."""
    return dump_ui(messages, losses, None)
