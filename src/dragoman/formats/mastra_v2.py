"""Rows of Mastra's storage as its versions since 0.10 write them (`content.format` is 2), both
ways. The conversation is a list."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.codec.serving import Problem
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.wires.ai_sdk_messages.conversation import dump_ui, load_conversation
from dragoman.wires.ai_sdk_messages.detection import row_votes as votes
from dragoman.wires.ai_sdk_messages.mastra_v2_rows import ROW
from dragoman.wires.ai_sdk_messages.notes import ROW_FIELDS

__all__ = ["dump_messages", "fields", "load_messages", "name", "votes"]

name = "mastra_v2"
fields = ROW_FIELDS
"""Its own fields that a history acts on."""


def load_messages(
    payload: object, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Reads a list of rows; a date may be a text or a `datetime`. `origin` is given to the model's
    messages where they do not say whose they are. With `problems`, a row that cannot be read is
    left out and noted there.

    Raises:
        HistoryError: it is no list, or a row cannot be read and no problems are noted.
    """
    return load_conversation(payload, origin, problems)


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,
) -> list[Json]:
    """Writes messages as a list of rows. Dates are texts, as JSON has them, where they were not
    read as a `datetime`. What rows cannot hold is added to `losses`."""
    return dump_ui(messages, losses, ROW)
