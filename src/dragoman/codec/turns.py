"""Turns: which messages a user interface shows as one. A model's answers with the results of their
tools between them are one turn; every other message is one by itself.

`Message.turn` names the turn; messages without one are grouped by structure.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from dragoman.codec.marks import INTERRUPT
from dragoman.message import Content, MarkPart, Message, Role, ToolResultPart

__all__ = [
    "MessageTurn",
    "continues_turn",
    "make_inner_ids",
    "holds_only_answers",
    "next_turn_id",
    "split_turns",
]


class MessageTurn(NamedTuple):
    """Messages that are shown as one."""

    id: str | None
    """Its id: that of `Message.turn`, else of its first message; `None` where neither has one."""
    start: int
    """Position of its first message in the conversation."""
    messages: tuple[Message, ...]
    """All of them, in order."""


def split_turns(messages: Sequence[Message]) -> list[MessageTurn]:
    """Cuts a conversation into turns. A message without a turn continues the one before it by
    structure: results after the model, the model after results. Two neighbouring answers are two
    turns unless both name the same one."""
    message_turns: list[MessageTurn] = []
    start = 0
    for end in range(1, len(messages) + 1):
        if end == len(messages) or not continues_turn(
            messages[start], messages[end - 1], messages[end]
        ):
            part = tuple(messages[start:end])
            message_turns.append(MessageTurn(part[0].turn or part[0].id, start, part))
            start = end
    return message_turns


def continues_turn(first: Message, before: Message, message: Message) -> bool:
    """True if a message belongs to the turn of the one before it. `first`: the turn's first
    message."""
    if message.role is Role.SYSTEM or before.role is Role.SYSTEM:
        return False
    if message.turn is not None:
        # Results have no turn of their own: then the turn's first message tells it.
        if before.turn is None:
            return message.turn == first.turn
        return message.turn == before.turn
    if message.role is Role.MODEL:
        return holds_only_answers(before) and first.role is Role.MODEL
    return holds_only_answers(message) and first.role is Role.MODEL


def next_turn_id(messages: Sequence[Message]) -> str | None:
    """Returns the turn that an answer to a conversation continues: None if it begins one, empty if
    that turn has no name."""
    for message in reversed(messages):
        if message.role is Role.MODEL:
            return message.turn or ""
        if not holds_only_answers(message):
            return None
    return None


def holds_only_answers(message: Message) -> bool:
    """True if a user message, which begins no turn, holds tool results (or interrupt marks) and
    nothing else."""
    if message.role is not Role.USER or not message.content:
        return False
    for piece in message.content:
        if type(piece) is not ToolResultPart and not _answers(piece):
            return False
    return True


def _answers(piece: Content) -> bool:
    if isinstance(piece, MarkPart):
        return piece.kind == INTERRUPT
    return isinstance(piece, ToolResultPart)


def make_inner_ids(turn_id: str, taken: Container[str] = ()) -> Iterator[str]:
    """Yields ids for a turn's messages: its own for the first, then `id:1`, `id:2`, …, without
    those in `taken`."""
    yield turn_id
    number = 0
    while True:
        number += 1
        if (message_id := f"{turn_id}:{number}") not in taken:
            yield message_id
