"""Exchanges: a user's question and all messages up to the next one. A conversation is cut only
between exchanges. Also prepares the messages that a model is sent."""

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
    """Returns the positions at which a conversation may be cut into exchanges: its start, and
    before each question, unless a call before the question has its result after it. A question is a
    user message that holds more than tool results; several in a row count as one."""
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
    """Adds the calls of a message to those that are open in the exchange, and removes those that it
    answers."""
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
    """Returns the position of the exchange from which on a conversation fits the limits. The last
    exchange is always kept, even if it is too long."""
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


_OPENING_PROMPT = Message.user(".")
"""User message that goes first if a conversation begins with a model message: most models demand
one."""
_MIN_CACHED_MESSAGES = 64
"""Number of new messages from which on the repaired ones are kept for the next turn."""


def sanitize(message: Message) -> Message | None:
    """Returns a message of an exchange, for a prompt, without marks and blank texts; `None` if
    nothing is left of it. A blank text of the model stays if it is all that there is."""
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
    """Prepares the messages that a model is sent. Repaired messages are kept, so that a turn of a
    long conversation costs only what is new in it."""

    def __init__(self) -> None:
        """Starts before the first exchange of a conversation."""
        self._changes = -1
        """`Rows.changes` when the settled messages were repaired."""
        self._settled_count = 0
        """Number of rows that the settled messages were made of."""
        self._settled_messages: list[Message] = []
        """Repaired messages that no later message can change."""
        self.repaired_count = 0
        """Number of messages repaired so far, repetitions included."""

    def repair_rows(self, rows: Rows) -> list[Message]:
        """Returns the messages of the rows as a model is sent them: without marks and blank texts,
        and with calls and results paired (see `repair`). Messages that need no change stay the same
        objects."""
        if self._changes != rows.changes or self._settled_count > len(rows):
            self._changes, self._settled_count, self._settled_messages = rows.changes, 0, []
        new = [row.message for row in rows.between(self._settled_count, len(rows))]
        self.repaired_count += len(new)
        messages = [*self._settled_messages, *_sanitize_and_repair(new)]
        # Later messages change nothing before a cut, since no call there waits for its result. So
        # all before the last cut is repaired once.
        if len(new) >= _MIN_CACHED_MESSAGES and (last_cut := find_cuts(new)[-1]):
            self._settled_messages += _sanitize_and_repair(new[:last_cut])
            self._settled_count += last_cut
        if messages and messages[0].role is Role.MODEL:
            return [_OPENING_PROMPT, *messages]
        return messages


def _sanitize_and_repair(messages: Sequence[Message]) -> list[Message]:
    """Returns messages without marks and blank texts, and with calls and results paired."""
    return repair([bare for message in messages if (bare := sanitize(message)) is not None])
