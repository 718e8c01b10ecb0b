"""Changes to a turn that is there: results of its calls, metadata, steps and going back to their
beginning, a seal."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from dragoman.history.format_fields import step_mark, with_step_model
from dragoman.history.pieces import Flat, Piece, is_step, join_pieces, lay_flat, result_of
from dragoman.history.rows import Row, Rows, order_rows
from dragoman.history.sources import RESPONSE, Mint, stamp
from dragoman.history.turn_merge import cut_at_steps, merge_native
from dragoman.json_bytes import JsonMap
from dragoman.message import OURS, Content, MarkPart, Message, Role, ToolCallPart, ToolResultPart

__all__ = [
    "Boundary",
    "last_boundary",
    "describe_step",
    "put_metadata",
    "put_result",
    "roll_back",
    "seal_turn",
    "start_step",
    "step_content",
    "without_step",
]


def put_result(rows: Rows, result: ToolResultPart, name: str | None, mint: Mint) -> bool:
    """Updates a turn: puts a result to the newest call of its id, in place of the one that this may
    have. Of what a provider ran, and whose id is not known, to the newest open call of that tool.
    Whether there is such a call."""
    position = rows.call(result.id)
    if position is None and result.run_by == "provider":
        provider_call = _open_at_provider(rows, name or result.name)
        if provider_call is not None:
            position, call_id = provider_call
            result = replace(result, id=call_id)
    if position is None:
        return False
    start, stop = rows.unit(position)
    flat = lay_flat([row.message for row in rows.between(start, stop)])
    index, call = _last_call(flat, result.id)
    result = replace(result, name=name or result.name or call.name, run_by=call.run_by)
    if call.run_by == "provider":
        put = _put_behind
    else:
        put = _put_answer
    _replace_unit(rows, start, stop, join_pieces(put(flat, index, result)), mint)
    return True


def _last_call(flat: Flat, call_id: str) -> tuple[int, ToolCallPart]:
    """Returns the last call of an id in a turn that has one, and its place among the pieces."""
    return next(
        (index, piece.part)
        for index, piece in reversed([*enumerate(flat.pieces)])
        if isinstance(piece.part, ToolCallPart) and piece.part.id == call_id
    )


def put_metadata(rows: Rows, call_id: str, metadata: JsonMap, mint: Mint) -> bool:
    """Updates a turn: adds metadata to the message that has the newest call of an id. Returns False
    if there is no such call."""
    position = rows.call(call_id)
    if position is None:
        return False
    message = rows[position].message
    message = message.replace(metadata={**message.own_metadata, **metadata})
    _replace_unit(rows, position, position + 1, [message], mint)
    return True


def _replace_unit(rows: Rows, start: int, stop: int, messages: list[Message], mint: Mint) -> None:
    """Puts messages in the place of those of a turn. What changes is a response's, to be saved."""
    old = {id(row.message): row for row in rows.between(start, stop)}
    by_id = {row.message.id: row for row in rows.between(start, stop)}
    turn = rows[start].message.turn
    new_rows: list[Row] = []
    for message in messages:
        row = old.get(id(message))
        if row is None:
            if message.id is not None:
                before = by_id.get(message.id)
            else:
                before = None
            last = new_rows[-1] if new_rows else rows[start]
            message = stamp(message, mint, last.message.created_at, turn)
            row = Row(
                message,
                before.order if before else last.order,
                RESPONSE,
                (before.origins if before else RESPONSE) | RESPONSE,
            )
        new_rows.append(row)
    rows.splice(start, stop, order_rows(new_rows))


def _put_answer(flat: Flat, index: int, result: ToolResultPart) -> Flat:
    """Puts a tool result behind its call in a turn, in the place of an earlier result."""
    piece, homes = flat.pieces[index], flat.homes
    before = result_of(piece)
    if piece.answer is not None and before is not None:
        result = replace(result, native=merge_native(before.native, result.native))
        return flat.with_piece(index, piece._replace(answer=piece.answer._replace(part=result)))
    beside = [
        other.answer.home
        for other in flat.pieces
        if other.home == piece.home and other.answer is not None
    ]
    if not beside:
        homes = (*homes, Message(Role.USER))
    answer = Piece(result, beside[-1] if beside else len(homes) - 1)
    answered = flat.with_piece(index, piece._replace(answer=answer))
    # What stands behind the call in a later step follows the result now, as it does once the list
    # was stored.
    return cut_at_steps(
        [(turn_piece, number > index) for number, turn_piece in enumerate(answered.pieces)],
        list(homes),
    )


def _put_behind(flat: Flat, index: int, result: ToolResultPart) -> Flat:
    """Returns the turn with the result of a tool that the provider ran, behind its call in the same
    message. An earlier result of the call is replaced."""
    for number, piece in enumerate(flat.pieces):
        if isinstance(piece.part, ToolResultPart) and piece.part.id == result.id:
            result = replace(result, native=merge_native(piece.part.native, result.native))
            return flat.with_piece(number, piece._replace(part=result))
    behind = Piece(result, flat.pieces[index].home)
    return flat._replace(pieces=(*flat.pieces[: index + 1], behind, *flat.pieces[index + 1 :]))


def _open_at_provider(rows: Rows, name: str) -> tuple[int, str] | None:
    """Returns the position and id, in the turn to update, of the newest call that a provider runs
    and has not answered."""
    answered: set[str] = set()
    for position in range(len(rows) - 1, -1, -1):
        for piece in reversed(rows[position].message.content):
            if isinstance(piece, ToolResultPart):
                answered.add(piece.id)
            elif (
                isinstance(piece, ToolCallPart)
                and (piece.run_by, piece.name) == ("provider", name)
                and piece.id not in answered
            ):
                return position, piece.id
    return None


class Boundary(NamedTuple):
    """A place in a conversation, to go back to."""

    message: str | None
    """Id of the message that was the last; `None`: there was none."""
    pieces: int
    """How many pieces its content had."""


def start_step(rows: Rows, mint: Mint) -> bool:
    """Updates the last turn: marks that a step begins behind the model's last message. Returns
    False if there is none that may change, or if it is marked already."""
    position = _last_model(rows)
    if position is None or rows[position].order <= rows.sealed:
        return False
    message = rows[position].message
    if message.content and is_step(message.content[-1]):
        return False
    mark = step_mark(int(mint.clock().timestamp() * 1000))
    _replace_unit(
        rows, position, position + 1, [message.replace(content=(*message.content, mark))], mint
    )
    return True


def describe_step(rows: Rows, model: str, mint: Mint) -> bool:
    """Updates the last turn: says which model makes the last step that is marked; whether there is
    one in the last turn."""
    for position in reversed(_last_turn(rows)):
        message = rows[position].message
        content = list(message.content)
        for part_index in range(len(content) - 1, -1, -1):
            mark = content[part_index]
            if isinstance(mark, MarkPart) and is_step(mark):
                content[part_index] = replace(mark, native=with_step_model(mark, model))
                changed = message.replace(content=tuple(content))
                _replace_unit(rows, position, position + 1, [changed], mint)
                return True
    return False


def step_content(rows: Rows, number: int) -> list[Content]:
    """Returns the pieces of a step of the last turn, calls with their results behind them. The
    first is 1; -1 is the last."""
    if not len(rows) or rows[rows.last_start].message.role is not Role.MODEL:
        return []
    steps = _split_steps(
        lay_flat([row.message for row in rows.between(rows.last_start, len(rows))])
    )
    index = number if number < 0 else number - 1
    if number and -len(steps) <= index < len(steps):
        return steps[index]
    return []


def _split_steps(flat: Flat) -> list[list[Content]]:
    """Returns the pieces of a turn by step, calls with their results behind them. A step begins at
    its mark, and with each further message of the model."""
    steps: list[list[Content]] = [[]]
    home = 0
    for piece in flat.pieces:
        is_answer = flat.homes[piece.home].role is Role.MODEL
        begins = is_step(piece.part) or (is_answer and piece.home != home)
        if begins and steps[-1]:
            steps.append([])
        home = piece.home if is_answer else home
        if not is_step(piece.part):
            result = result_of(piece)
            steps[-1] += [piece.part] if result is None else [piece.part, result]
    return steps


def last_boundary(rows: Rows) -> Boundary:
    """Returns the position behind the last part of the last turn, for `roll_back`."""
    last = rows.last
    if last is None:
        return Boundary(None, 0)
    return Boundary(last.message.id, len(last.message.content))


def roll_back(rows: Rows, place: Boundary, mint: Mint) -> list[Message] | None:
    """Rolls the last turn back: drops everything behind a place in it, and returns it; `None` if
    the place is in another turn, or gone."""
    if place.message is None:
        dropped = [row.message for row in rows]
        rows.splice(0, len(rows), [])
        return dropped
    position = rows.position(place.message)
    if position is None or position < rows.last_start:
        return None
    message = rows[position].message
    dropped = [row.message for row in rows.between(position + 1, len(rows))]
    dropped_parts = message.content[place.pieces :]
    if dropped_parts:
        message = message.replace(content=message.content[: place.pieces])
    _replace_unit(rows, position, len(rows), [message], mint)
    if dropped_parts:
        return [message.replace(content=dropped_parts), *dropped]
    return dropped


def seal_turn(rows: Rows, message_id: str, mint: Mint) -> bool:
    """Says of a turn that it never changes; whether it is there."""
    position = rows.position(message_id)
    if position is None:
        position = rows.turn(message_id)
    if position is None:
        return False
    first, stop = rows.unit(position)
    sealed = [
        row.message.replace(native={**(row.message.native or {}), OURS: {"sealed": True}})
        for row in rows.between(first, stop)
    ]
    _replace_unit(rows, first, stop, sealed, mint)
    return True


def without_step(message: Message) -> tuple[Message, MarkPart] | None:
    """Returns a message of a turn without the step mark at its end, or None if it does not end in
    one."""
    last = message.content[-1] if message.content else None
    if not isinstance(last, MarkPart) or not is_step(last):
        return None
    return message.replace(content=message.content[:-1]), last


def _last_turn(rows: Rows) -> range:
    """Returns the positions of the last turn."""
    return range(rows.last_start if len(rows) else 0, len(rows))


def _last_model(rows: Rows) -> int | None:
    """Returns the model's last message in the last turn."""
    positions = reversed(_last_turn(rows))
    return next(
        (position for position in positions if rows[position].message.role is Role.MODEL), None
    )
