"""UI messages of Vercel's AI SDK, what `useChat` sends and shows, both ways. The conversation is a list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from dragoman.codec.layout import Layout
from dragoman.codec.serving import Problem
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.wires.ai_sdk_messages.approvals import approvals
from dragoman.wires.ai_sdk_messages.conversation import dump_ui, load_conversation
from dragoman.wires.ai_sdk_messages.detection import ui_votes as votes
from dragoman.wires.ai_sdk_messages.own import MESSAGE_FIELDS

__all__ = [
    "approvals",
    "dump_messages",
    "fields",
    "layout",
    "load_messages",
    "name",
    "versions",
    "votes",
]

name = "ai_sdk_ui"
fields = MESSAGE_FIELDS
"""Its own fields that a history acts on."""
layout = Layout(fields=("messages",), own=frozenset(["trigger", "messageId"]))
"""Where its messages stand in what `useChat` sends."""
versions = ("v4", "v5", "v6", "v7")
"""Releases of the library."""


def load_messages(
    payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """A list of UI messages → messages. `origin` is given to the model's where they do not say whose they are. With `problems`, a message
    that cannot be read is left out and noted there.

    Raises:
        HistoryError: it is no list, or a message cannot be read and no problems are noted.
    """
    return load_conversation(payload, origin, problems)


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,
    version: Literal["v4", "v5", "v6", "v7"] | None = None,
) -> list[dict[str, Any]]:
    """Messages → a list of UI messages. `version`: those of that release of the library; `None`: as each was read, else as the newest has
    them. What they cannot hold is added to `losses`."""
    return dump_ui(messages, losses, version)
