"""Model messages of Vercel's AI SDK (`ModelMessage`, in ai 4 `CoreMessage`), what `streamText`
takes, both ways. The conversation is a list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dragoman.codec.serving import Problem
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.wires.ai_sdk_messages.approvals import mended
from dragoman.wires.ai_sdk_messages.conversation import dump_model, load_conversation
from dragoman.wires.ai_sdk_messages.detection import model_votes as votes
from dragoman.wires.ai_sdk_messages.notes import MESSAGE_FIELDS

__all__ = ["dump_messages", "fields", "load_messages", "mended", "name", "versions", "votes"]

name = "ai_sdk_model"
fields = MESSAGE_FIELDS
"""Its own fields that a history acts on."""
versions = ("v4", "v5", "v6", "v7")
"""Releases of the library."""


def load_messages(
    payload: object, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Reads a list of model messages. `origin` is given to the model's where they do not say whose
    they are. With `problems`, a message that cannot be read is left out and noted there.

    Raises:
        HistoryError: it is no list, or a message cannot be read and no problems are noted.
    """
    return load_conversation(payload, origin, problems, is_model=True)


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,
    version: Literal["v4", "v5", "v6", "v7"] | None = None,
) -> list[Json]:
    """Writes messages as a list of model messages. `version`: those of that release of the library;
    `None`: as each was read, else as the newest has them. What they cannot hold is added to
    `losses`."""
    return dump_model(messages, losses, version)
