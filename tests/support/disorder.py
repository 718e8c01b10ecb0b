"""Conversations that were cut, doubled or put in another order, as a history may be; and what of
them an API takes against its client's types."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from dragoman.message import DataPart, Message, Role

__all__ = ["TAKEN", "disordered"]

TAKEN = {"openai_responses": re.compile(r"body\.input\[\d+\]\.id: it is missing")}
"""What the official client's types refuse and the API takes: reasoning without its id, where that
stands in the request already."""


def cut_pieces(chance: Random, messages: list[Message]) -> list[Message]:
    """Some pieces are gone; what a provider ran is one with its result."""
    return [
        one.replace(
            content=tuple(
                [
                    piece
                    for piece in one.content
                    if getattr(piece, "run_by", "") == "provider"
                    or isinstance(piece, DataPart)
                    or chance.random() < 0.8
                ]
            )
        )
        for one in messages
    ]


def mixed_pieces(chance: Random, messages: list[Message]) -> list[Message]:
    """The pieces of a message are in another order, but where a provider ran something, whose
    blocks are its own."""
    return [
        one
        if any(getattr(piece, "run_by", "") == "provider" for piece in one.content)
        else one.replace(content=tuple(chance.sample(one.content, len(one.content))))
        for one in messages
    ]


def moved(chance: Random, messages: list[Message]) -> list[Message]:
    """A message stands elsewhere."""
    rest = list(messages)
    one = rest.pop(chance.randrange(len(rest)))
    rest.insert(chance.randrange(len(rest) + 1), one)
    return rest


def doubled(chance: Random, messages: list[Message]) -> list[Message]:
    """A stretch stands there twice."""
    start, end = sorted(chance.randrange(len(messages) + 1) for _ in range(2))
    return [*messages[:end], *messages[start:]]


def cut(chance: Random, messages: list[Message]) -> list[Message]:
    """A stretch is gone."""
    start, end = sorted(chance.randrange(len(messages) + 1) for _ in range(2))
    return [*messages[:start], *messages[end:]]


CHANGES: Sequence[Callable[[Random, list[Message]], list[Message]]] = (
    cut, cut, moved, moved, doubled, doubled, cut_pieces, mixed_pieces,
    lambda chance, messages: chance.sample(messages, len(messages)),
    lambda chance, messages: messages[: chance.randrange(len(messages) + 1)],
    lambda chance, messages: messages[chance.randrange(len(messages)) :],
)  # fmt: skip


def disordered(messages: list[Message], seed: int) -> list[Message]:
    """A history, changed in one to three ways; it ends with somebody who is not the model, as a
    request does."""
    chance = Random(seed)
    for _ in range(chance.choice((1, 1, 2, 3))):
        messages = chance.choice(CHANGES)(chance, messages) if messages else messages
    ends = messages and messages[-1].role is Role.USER and messages[-1].text.strip()
    return [*messages, *([] if ends else [Message.user("Well?")])]
