"""Editing a conversation: cutting it, taking messages out, putting a summary in the place of its
beginning."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import Any, Protocol

from dragoman.codec.turns import holds_only_answers
from dragoman.errors import HistoryError
from dragoman.history.add import ReplacedBranch
from dragoman.history.exchanges import find_cuts, find_start
from dragoman.history.plans import name_unwritable
from dragoman.history.rows import Row, Rows
from dragoman.message import Message, Role
from dragoman.model.tokens import estimate_tokens

__all__ = [
    "Summary",
    "find_answer",
    "cut_rows",
    "ambiguous_range_error",
    "find_position",
    "remove_rows",
    "summarize_rows",
    "trim_rows",
]

_PROMPT = (
    "Summarise this conversation so far for whoever goes on with it: what was asked, decided, found and left open. Keep names, numbers "
    "and ids as they are. Write the summary and nothing else."
)
_HEAD = "Summary of the conversation so far:\n"


class _Agent(Protocol):
    async def send(self, prompt: str, *, history: object) -> Any: ...


Summary = Callable[[Sequence[Message]], str | Awaitable[str]] | _Agent
"""What makes a summary: a function of messages, or an agent."""


def find_position(rows: Rows, at: str | int) -> int:
    """Returns the position of a message to edit in the list, by its id or as a value.

    Raises:
        HistoryError: there is none.
    """
    if isinstance(at, str):
        position = rows.position(at)
        if position is None and (inner := rows.turn(at)) is not None:
            position = rows.unit(inner)[0]
        if position is None:
            raise HistoryError(f"no message of the list has the id {at!r}")
        return position
    position = at + len(rows) if at < 0 else at
    if not 0 <= position <= len(rows):
        raise HistoryError(f"the conversation has {len(rows)} messages: there is none at {at}")
    return position


def find_answer(rows: Rows, message_id: str | None) -> int:
    """Returns where the answer to edit begins that a message is of, or that is behind a question.

    Raises:
        HistoryError: there is none.
    """
    if message_id is None:
        position = len(rows) - 1
    else:
        position = find_position(rows, message_id)
    while position >= 0 and not _is_question(rows[position].message):
        position -= 1
    if position < 0:
        raise HistoryError("there is no question before it that could be answered anew")
    return position + 1


def _is_question(message: Message) -> bool:
    return message.role is Role.USER and not holds_only_answers(message)


def cut_rows(rows: Rows, position: int) -> ReplacedBranch:
    """Edits the list: removes all rows from a position on. Returns them as a replaced branch."""
    if position:
        behind = rows[position - 1].message.id
    else:
        behind = None
    gone = tuple([row.message for row in rows.between(position, len(rows))])
    rows.splice(position, len(rows), [])
    return ReplacedBranch(behind, gone)


def ambiguous_range_error(count: int) -> HistoryError:
    """Returns the error where something else than one message is given."""
    return HistoryError(f"one message is put in the place of another, not {count}")


def remove_rows(rows: Rows, goes: Callable[[Row], bool]) -> list[Message]:
    """Edits the list: removes rows with some ids."""
    every = list(rows)
    gone = [row.message for row in every if goes(row)]
    if gone:
        first = next(position for position, row in enumerate(every) if goes(row))
        rows.splice(first, len(rows), [row for row in every[first:] if not goes(row)])
    return gone


def trim_rows(
    rows: Rows,
    messages: int | None,
    tokens: int | None,
    exchanges: int | None,
    tokens_of: Callable[[Message], int] | None,
) -> list[Message]:
    """Edits the list: removes the oldest exchanges, down to a number of messages or tokens.

    Raises:
        HistoryError: a limit is below 0.
    """
    limits: dict[str, object] = {"messages": messages, "tokens": tokens, "exchanges": exchanges}
    for name, limit in limits.items():
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, int) or limit < 0
        ):
            raise HistoryError(f"{name} is a limit: a whole number from 0 on, not {limit!r:.50}")
    every = [row.message for row in rows]
    with name_unwritable(every):
        start = find_start(
            every,
            most_messages=messages,
            most_exchanges=exchanges,
            most_tokens=tokens,
            tokens_of=tokens_of or _estimate,
        )
    rows.splice(0, start, [])
    return every[:start]


def _estimate(message: Message) -> int:
    return estimate_tokens((message,))


async def summarize_rows(
    rows: Rows, before: Sequence[Message], summary: Summary, exchanges: int
) -> tuple[Message, ReplacedBranch] | None:
    """Edits the list: removes all but the last exchanges. Returns the message that sums them up,
    with the earlier summary in `before`, and the replaced branch."""
    every = [row.message for row in rows]
    starts = find_cuts(every)
    if exchanges > len(starts):
        return None
    end = starts[-exchanges] if exchanges > 0 else len(every)
    if not end:
        return None
    old = [*before, *every[:end]]
    if isinstance(summary, Callable):
        text = summary(old)
        if isawaitable(text):
            text = await text
    else:
        text = (await summary.send(_PROMPT, history=old)).output
    if [row.message for row in rows.between(0, end)] != every[:end]:
        raise HistoryError(
            "the conversation was changed while it was summarised: nothing was put in its place"
        )
    rows.splice(0, end, [])
    return Message.system(f"{_HEAD}{text}"), ReplacedBranch(None, tuple(every[:end]))
