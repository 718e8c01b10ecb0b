"""Exchanges: what the user asks and all that answers it. A conversation is cut between them alone;
and what of it a model is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from dragoman.codec.marks import strip_marks
from dragoman.codec.turns import holds_only_answers
from dragoman.history.rows import Rows
from dragoman.message import Content, Message, Role, TextPart, ToolCallPart, ToolResultPart
from dragoman.repair import repair

__all__ = ["Prompts", "find_cuts", "find_start", "sanitize"]


def find_cuts(messages: Sequence[Message]) -> list[int]:
    """Returns the positions at which a conversation may be cut, the start included: before a
    question, unless a call before it is answered behind it."""
    # Ids of results that are still ahead. A call whose id is not among them is never answered, and
    # keeps nothing together.
    unanswered = Counter(
        piece.id
        for message in messages
        for piece in message.content
        if isinstance(piece, ToolResultPart)
    )
    open_: Counter[str] = Counter()
    positions: list[int] = []
    is_question = False
    for position, message in enumerate(messages):
        was_question = is_question
        is_question = message.role is Role.USER and not holds_only_answers(message)
        if position == 0 or (is_question and not was_question and not open_):
            positions.append(position)
        _count_calls(message, open_, unanswered)
    return positions


def _count_calls(message: Message, open_: Counter[str], unanswered: Counter[str]) -> None:
    """Adds the calls of a message to those that are open, and takes off those that it answers.
    `unanswered`: how many results of each id are still ahead."""
    for piece in message.content:
        if isinstance(piece, ToolCallPart) and unanswered[piece.id] > open_[piece.id]:
            open_[piece.id] += 1
        elif isinstance(piece, ToolResultPart):
            unanswered[piece.id] -= 1
            open_[piece.id] -= 1
            # A counter is empty, and nothing open, only if it has no zeros.
            if open_[piece.id] <= 0:
                del open_[piece.id]


def find_start(
    messages: Sequence[Message],
    *,
    most_messages: int | None,
    most_exchanges: int | None,
    most_tokens: int | None,
    tokens_of: Callable[[Message], int],
) -> int:
    """Returns the position from which on a conversation fits the limits. The last exchange is
    always kept, even if it is too long."""
    starts = find_cuts(messages)
    total, end = 0, len(messages)
    start = starts[-1] if starts else 0
    for number, position in enumerate(reversed(starts), 1):
        if most_tokens is not None:
            total += sum(map(tokens_of, messages[position:end]))
        end = position
        if number > 1 and (
            _exceeds(len(messages) - position, most_messages)
            or _exceeds(number, most_exchanges)
            or _exceeds(total, most_tokens)
        ):
            break
        start = position
    return start


def _exceeds(count: int, most: int | None) -> bool:
    """True if a count is over its limit. `None`: there is no limit."""
    return most is not None and count > most


_BEGINNING = Message.user(".")
"""Question before an answer that begins a conversation: most models demand one."""
_LEAST = 64
"""Shortest conversation, in messages, whose prompt is cached."""


def sanitize(message: Message) -> Message | None:
    """Returns a message without marks and blank texts; `None` if nothing is left of it. A blank
    text of the model stays if it is all that there is."""
    bare = strip_marks(message)
    if any(_is_blank_text(piece) for piece in bare.content):
        content = tuple([piece for piece in bare.content if not _is_blank_text(piece)])
        if content or bare.role is not Role.MODEL:
            bare = bare.replace(content=content)
    if bare.content or not message.content:
        return bare
    return None


def _is_blank_text(piece: Content) -> bool:
    """True if a piece is a text that is empty, or of white space alone."""
    return isinstance(piece, TextPart) and not piece.text.strip()


class Prompts:
    """What was made of a conversation the last time, so that a turn costs what is new in it."""

    def __init__(self) -> None:
        self._changes, self._upto = -1, 0
        self._made: list[Message] = []
        self.worked = 0
        """How many messages were looked at, all in all."""

    def of(self, rows: Rows) -> list[Message]:
        """Returns the conversation of rows, repaired. Messages stay the same objects where nothing
        was to be done."""
        if self._changes != rows.changes or self._upto > len(rows):
            self._changes, self._upto, self._made = rows.changes, 0, []
        new = [row.message for row in rows.between(self._upto, len(rows))]
        self.worked += len(new)
        messages = [*self._made, *_mend(new)]
        # Nothing that comes later changes what stands before a question, so that is made once.
        if len(new) >= _LEAST and (settled := find_cuts(new)[-1]):
            self._made += _mend(new[:settled])
            self._upto += settled
        if messages and messages[0].role is Role.MODEL:
            return [_BEGINNING, *messages]
        return messages


def _mend(messages: Sequence[Message]) -> list[Message]:
    return repair([bare for message in messages if (bare := sanitize(message)) is not None])
