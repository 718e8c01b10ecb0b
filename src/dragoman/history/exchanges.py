"""Exchanges: what the user asks and all that answers it. A conversation is cut between them alone; and what of it a model is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from dragoman.codec.marks import unmarked
from dragoman.codec.turns import only_answers
from dragoman.history.rows import Rows
from dragoman.message import Message, Role, TextPart, ToolCallPart, ToolResultPart
from dragoman.repair import repair

__all__ = ["Prompts", "cuts", "kept_from", "sanitized"]


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


_BEGINNING = Message.user(".")
"""What stands before an answer that begins a conversation, since most models demand a question."""
_LEAST = 64
"""Messages from which on what was made is kept."""


def sanitized(message: Message) -> Message | None:
    """A message without marks and blank texts; `None` where nothing is left of it. A model's blank text stays where it is all there is."""
    bare = unmarked(message)
    if any(isinstance(piece, TextPart) and not piece.text.strip() for piece in bare.content):
        content = tuple(
            [
                piece
                for piece in bare.content
                if not isinstance(piece, TextPart) or piece.text.strip()
            ]
        )
        if content or bare.role is not Role.MODEL:
            bare = bare.replace(content=content)
    return bare if bare.content or not message.content else None


class Prompts:
    """What was made of a conversation the last time, so that a turn costs what is new in it."""

    def __init__(self) -> None:
        self._changes, self._upto = -1, 0
        self._made: list[Message] = []
        self.worked = 0
        """How many messages were looked at, all in all."""

    def of(self, rows: Rows) -> list[Message]:
        """The conversation of rows, repaired. Messages stay the same objects where nothing was to be done."""
        if self._changes != rows.changes or self._upto > len(rows):
            self._changes, self._upto, self._made = rows.changes, 0, []
        new = [row.message for row in rows.between(self._upto, len(rows))]
        self.worked += len(new)
        made = [*self._made, *_mended(new)]
        if len(new) >= _LEAST and (
            settled := cuts(new)[-1]
        ):  # nothing that comes later changes what stands before a question
            self._made += _mended(new[:settled])
            self._upto += settled
        return [_BEGINNING, *made] if made and made[0].role is Role.MODEL else made


def _mended(messages: Sequence[Message]) -> list[Message]:
    return repair([bare for message in messages if (bare := sanitized(message)) is not None])
