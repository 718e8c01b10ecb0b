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
    """A conversation, cut into turns. A message that names no turn goes on with the one before it
    where structure says so: results behind the model, the model behind results. Two answers that
    stand beside each other are two turns unless both name the same one."""
    found: list[MessageTurn] = []
    start = 0
    for at in range(1, len(messages) + 1):
        if at == len(messages) or not continues_turn(
            messages[start], messages[at - 1], messages[at]
        ):
            part = tuple(messages[start:at])
            found.append(MessageTurn(part[0].turn or part[0].id, start, part))
            start = at
    return found


def continues_turn(first: Message, before: Message, message: Message) -> bool:
    """Whether a message belongs to the turn of the one before it. `first`: the turn's first
    message."""
    if message.role is Role.SYSTEM or before.role is Role.SYSTEM:
        return False
    if message.turn is not None:
        return message.turn == (before.turn if before.turn is not None else first.turn)
    if message.role is Role.MODEL:
        return holds_only_answers(before) and first.role is Role.MODEL
    return holds_only_answers(message) and first.role is Role.MODEL


def next_turn_id(messages: Sequence[Message]) -> str | None:
    """The turn with which an answer to a conversation goes on; `None`: it begins one; empty: that
    turn has no name."""
    for message in reversed(messages):
        if message.role is Role.MODEL:
            return message.turn or ""
        if not holds_only_answers(message):
            return None
    return None


def holds_only_answers(message: Message) -> bool:
    """Whether a user message brings results of tools (or what a call waits for) and nothing
    else."""
    return (
        message.role is Role.USER and bool(message.content) and all(map(_answers, message.content))
    )


def _answers(piece: Content) -> bool:
    return (
        piece.kind == INTERRUPT
        if isinstance(piece, MarkPart)
        else isinstance(piece, ToolResultPart)
    )


def make_inner_ids(turn_id: str, taken: Container[str] = ()) -> Iterator[str]:
    """The ids of a turn's messages: its own for the first, `id:1`, `id:2` … for the others, without
    those that are `taken`."""
    yield turn_id
    number = 0
    while True:
        number += 1
        if (made := f"{turn_id}:{number}") not in taken:
            yield made
