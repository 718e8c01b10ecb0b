"""Exchanges: what the user asks and all that answers it. A conversation is cut between them alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from dragoman.codec.turns import only_answers
from dragoman.message import Message, Role, ToolCallPart, ToolResultPart

__all__ = ["cuts", "kept_from"]


def cuts(messages: Sequence[Message]) -> list[int]:
    """Where a conversation may be cut, the start included: before a question, unless a call before it is answered behind it."""
    left = Counter(
        piece.id
        for message in messages
        for piece in message.content
        if isinstance(piece, ToolResultPart)
    )
    open_: Counter[str] = Counter()
    found: list[int] = []
    is_question = False
    for at, message in enumerate(messages):
        was_question, is_question = (
            is_question,
            message.role is Role.USER and not only_answers(message),
        )
        if at == 0 or (is_question and not was_question and not open_):
            found.append(at)
        for piece in message.content:
            if isinstance(piece, ToolCallPart) and left[piece.id] > open_[piece.id]:
                open_[piece.id] += 1
            elif isinstance(piece, ToolResultPart):
                left[piece.id] -= 1
                open_[piece.id] -= 1
                if open_[piece.id] <= 0:
                    del open_[piece.id]
    return found


def kept_from(
    messages: Sequence[Message],
    *,
    most_messages: int | None,
    most_exchanges: int | None,
    most_tokens: int | None,
    tokens_of: Callable[[Message], int],
) -> int:
    """Where a conversation begins of which as much is left as the limits allow, but for the last exchange, which always is."""
    places = cuts(messages)
    total, at = 0, len(messages)
    kept = places[-1] if places else 0
    for number, place in enumerate(reversed(places), 1):
        if most_tokens is not None:
            total += sum(map(tokens_of, messages[place:at]))
        at = place
        if number > 1 and (
            (most_messages is not None and len(messages) - place > most_messages)
            or (most_exchanges is not None and number > most_exchanges)
            or (most_tokens is not None and total > most_tokens)
        ):
            break
        kept = place
    return kept
