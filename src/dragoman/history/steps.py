"""Steps of the answer that is being made: where one begins, what it holds, and going back to its beginning."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from dragoman.history.flat import laid_flat
from dragoman.history.format_fields import STEP, step_mark, with_step_model
from dragoman.history.rows import Rows
from dragoman.history.sources import Mint
from dragoman.history.tool_updates import replaced_unit
from dragoman.message import OURS, Content, MarkPart, Message, Role

__all__ = [
    "Boundary",
    "boundary",
    "describe",
    "rolled_back",
    "seal",
    "start",
    "step_content",
    "without_step",
]


class Boundary(NamedTuple):
    """A place in a conversation, to go back to."""

    message: str | None
    """Id of the message that was the last; `None`: there was none."""
    pieces: int
    """How many pieces its content had."""


def start(rows: Rows, mint: Mint) -> bool:
    """Marks that a step begins behind the model's last message; whether there is one that may change and is not marked."""
    position = _last_model(rows)
    if position is None or rows[position].order <= rows.sealed:
        return False
    message = rows[position].message
    if message.content and _is_step(message.content[-1]):
        return False
    mark = step_mark(int(mint.clock().timestamp() * 1000))
    replaced_unit(
        rows, position, position + 1, [message.replace(content=(*message.content, mark))], mint
    )
    return True


def describe(rows: Rows, model: str, mint: Mint) -> bool:
    """Says which model makes the last step that is marked; whether there is one in the last turn."""
    for position in range(len(rows) - 1, rows.last_start - 1 if len(rows) else 0, -1):
        message = rows[position].message
        for place in range(len(message.content) - 1, -1, -1):
            piece = message.content[place]
            if isinstance(piece, MarkPart) and piece.kind == STEP:
                mark = replace(piece, native=with_step_model(piece, model))
                content = (*message.content[:place], mark, *message.content[place + 1 :])
                replaced_unit(
                    rows, position, position + 1, [message.replace(content=content)], mint
                )
                return True
    return False


def step_content(rows: Rows, number: int) -> list[Content]:
    """The pieces of a step of the last turn, calls with their results behind them. The first is 1; -1 is the last."""
    if not len(rows) or rows[rows.last_start].message.role is not Role.MODEL:
        return []
    flat = laid_flat([row.message for row in rows.between(rows.last_start, len(rows))])
    steps: list[list[Content]] = [[]]
    home = 0
    for item in flat.items:
        begins = _is_step(item.piece) or (
            item.home != home and flat.homes[item.home].role is Role.MODEL
        )
        if begins and steps[-1]:
            steps.append([])
        home = item.home if flat.homes[item.home].role is Role.MODEL else home
        if not _is_step(item.piece):
            steps[-1] += [item.piece] if item.answer is None else [item.piece, item.answer]
    at = number if number < 0 else number - 1
    return steps[at] if number and -len(steps) <= at < len(steps) else []


def boundary(rows: Rows) -> Boundary:
    """The place behind all that there is."""
    last = rows.last
    return (
        Boundary(None, 0) if last is None else Boundary(last.message.id, len(last.message.content))
    )


def rolled_back(rows: Rows, place: Boundary, mint: Mint) -> list[Message] | None:
    """Drops what the last turn has behind a place → what was dropped; `None`: the place is in another turn, or gone."""
    position = len(rows) - 1 if place.message is None else rows.position(place.message)
    if place.message is None:
        dropped = [row.message for row in rows]
        rows.splice(0, len(rows), [])
        return dropped
    if position is None or position < rows.last_start:
        return None
    message = rows[position].message
    dropped = [row.message for row in rows.between(position + 1, len(rows))]
    rest = message.content[place.pieces :]
    kept = message.replace(content=message.content[: place.pieces]) if rest else message
    replaced_unit(rows, position, len(rows), [kept], mint)
    return [message.replace(content=rest), *dropped] if rest else dropped


def seal(rows: Rows, message_id: str, mint: Mint) -> bool:
    """Says of a turn that it never changes; whether it is there."""
    position = rows.position(message_id)
    position = rows.turn(message_id) if position is None else position
    if position is None:
        return False
    first, stop = rows.unit(position)
    made = [
        row.message.replace(native={**(row.message.native or {}), OURS: {"sealed": True}})
        for row in rows.between(first, stop)
    ]
    replaced_unit(rows, first, stop, made, mint)
    return True


def without_step(message: Message) -> tuple[Message, MarkPart] | None:
    """A message that ends in the mark of a step, without that; `None`: it does not."""
    last = message.content[-1] if message.content else None
    if not isinstance(last, MarkPart) or last.kind != STEP:
        return None
    return message.replace(content=message.content[:-1]), last


def _last_model(rows: Rows) -> int | None:
    """The model's last message in the last turn."""
    positions = range(len(rows) - 1, (rows.last_start if len(rows) else 0) - 1, -1)
    return next((at for at in positions if rows[at].message.role is Role.MODEL), None)


def _is_step(piece: Content) -> bool:
    return isinstance(piece, MarkPart) and piece.kind == STEP
