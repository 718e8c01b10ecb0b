"""What became of a call, put into the turn that it stands in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.history.flat import Flat, Item, laid_flat, messages_of
from dragoman.history.merging import cut_at_steps, merged_native
from dragoman.history.rows import Row, Rows, in_order
from dragoman.history.sources import RESPONSE, Mint, stamped
from dragoman.message import Message, Role, ToolCallPart, ToolResultPart

__all__ = ["put_metadata", "put_result", "replaced_unit"]


def put_result(rows: Rows, result: ToolResultPart, name: str | None, mint: Mint) -> bool:
    """Puts a result to the newest call of its id, in place of the one that this may have. Of what a provider ran, and whose id is not known, to the
    newest open call of that tool. Whether there is such a call."""
    position = rows.call(result.id)
    if position is None and result.run_by == "provider":
        found = _open_at_provider(rows, name or result.name)
        if found is not None:
            position, call = found
            result = replace(result, id=call.id)
    if position is None:
        return False
    start, stop = rows.unit(position)
    flat = laid_flat([row.message for row in rows.between(start, stop)])
    at = max(
        n
        for n, item in enumerate(flat.items)
        if isinstance(item.piece, ToolCallPart) and item.piece.id == result.id
    )
    call = flat.items[at].piece
    assert isinstance(call, ToolCallPart)
    result = replace(result, name=name or result.name or call.name, run_by=call.run_by)
    made = (
        _by_provider(flat, at, result) if call.run_by == "provider" else _answered(flat, at, result)
    )
    replaced_unit(rows, start, stop, messages_of(made), mint)
    return True


def put_metadata(rows: Rows, call_id: str, metadata: Mapping[str, Any], mint: Mint) -> bool:
    """Adds metadata to the message with the newest call of an id; whether there is one."""
    position = rows.call(call_id)
    if position is None:
        return False
    message = rows[position].message
    replaced_unit(
        rows,
        position,
        position + 1,
        [message.replace(metadata={**message.own_metadata, **metadata})],
        mint,
    )
    return True


def replaced_unit(rows: Rows, start: int, stop: int, messages: list[Message], mint: Mint) -> None:
    """Puts messages in the place of those of a turn. What changes is a response's, to be saved."""
    old = {id(row.message): row for row in rows.between(start, stop)}
    by_id = {row.message.id: row for row in rows.between(start, stop)}
    turn = rows[start].message.turn
    made: list[Row] = []
    for message in messages:
        row = old.get(id(message))
        if row is None:
            before = by_id.get(message.id) if message.id is not None else None
            last = made[-1] if made else rows[start]
            message = stamped(message, mint, last.message.created_at, turn)
            row = Row(
                message,
                before.order if before else last.order,
                RESPONSE,
                (before.origins if before else RESPONSE) | RESPONSE,
            )
        made.append(row)
    rows.splice(start, stop, in_order(made))


def _answered(flat: Flat, at: int, result: ToolResultPart) -> Flat:
    item, homes = flat.items[at], flat.homes
    if item.answer is not None:
        result = replace(result, native=merged_native(item.answer.native, result.native))
        return _with(flat, at, item._replace(answer=result))
    beside = [
        one.answer_home for one in flat.items if one.home == item.home and one.answer is not None
    ]
    if not beside:
        homes = (*homes, Message(Role.USER))
    answered = _with(
        Flat(flat.items, homes),
        at,
        item._replace(answer=result, answer_home=beside[-1] if beside else len(homes) - 1),
    )
    # What stands behind the call in a later step follows the result now, as it does once the list was stored.
    return cut_at_steps(
        [(one, place > at) for place, one in enumerate(answered.items)], list(answered.homes)
    )


def _by_provider(flat: Flat, at: int, result: ToolResultPart) -> Flat:
    """The result of a tool that the provider ran stands behind its call, in the same message."""
    for place, item in enumerate(flat.items):
        if isinstance(item.piece, ToolResultPart) and item.piece.id == result.id:
            merged = replace(result, native=merged_native(item.piece.native, result.native))
            return _with(flat, place, item._replace(piece=merged))
    items = (*flat.items[: at + 1], Item(result, flat.items[at].home), *flat.items[at + 1 :])
    return Flat(items, flat.homes)


def _with(flat: Flat, at: int, item: Item) -> Flat:
    return Flat((*flat.items[:at], item, *flat.items[at + 1 :]), flat.homes)


def _open_at_provider(rows: Rows, name: str) -> tuple[int, ToolCallPart] | None:
    """The newest call of a tool that a provider runs and has not answered."""
    answered: set[str] = set()
    for position in range(len(rows) - 1, -1, -1):
        for piece in reversed(rows[position].message.content):
            if isinstance(piece, ToolResultPart):
                answered.add(piece.id)
            elif (
                isinstance(piece, ToolCallPart)
                and piece.run_by == "provider"
                and piece.name == name
                and piece.id not in answered
            ):
                return position, piece
    return None
