"""Merges a turn that is there with a copy of it that is added.

`decide_outcome` says what becomes of the two: the copy says nothing new, continues the turn, is
merged with it, or replaces it. To merge, both are laid flat (`pieces`), so that a call and its
result are one piece; equal pieces are found, what only the copy has goes behind the piece that it
followed, and the pieces become messages again. Nothing is lost, and a call never goes back to an
earlier state.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from dragoman.codec.digest import neutral_digest
from dragoman.codec.json_values import if_object
from dragoman.codec.turns import holds_only_answers
from dragoman.history.format_fields import is_done, is_sealed
from dragoman.history.pieces import (
    APPROVED,
    Flat,
    Piece,
    is_step,
    join_pieces,
    key_of,
    lay_flat,
    rank,
    result_of,
)
from dragoman.history.rows import Row, Rows
from dragoman.history.sources import Source
from dragoman.json_bytes import Json
from dragoman.message import Message, Native, Role, ToolCallPart, ToolResultPart

__all__ = [
    "Outcome",
    "cut_at_steps",
    "fill_arguments",
    "is_model",
    "lacks_arguments",
    "merge_native",
    "decide_outcome",
]

_MOST = 512
"""Messages before a call in which one of its id is looked for."""


# two copies of a turn


def _merge_turns(turn: Sequence[Message], copy: Sequence[Message]) -> list[Message]:
    """Returns a turn, and a copy of it that says more, as one. Messages that gain nothing stay the
    same objects; new ones keep their ids, unless the turn has them already."""
    if list(turn) == list(copy):
        return list(turn)
    first, second = lay_flat(turn), lay_flat(copy)
    pairs = _pair_pieces(first, second)
    homes, moved = _merge_homes(first, second, pairs)
    pieces = list(first.pieces)
    copies = [_move_piece(piece, moved) for piece in second.pieces]
    for copy_index, index in pairs.items():
        pieces[index] = _merge_piece(pieces[index], copies[copy_index])
    # What is new stands behind the known piece that it followed; what follows no known piece more,
    # behind all.
    behind: defaultdict[int, list[Piece]] = defaultdict(list)
    final, before = max(pairs, default=-1), -1
    for copy_index, piece in enumerate(copies):
        if copy_index in pairs:
            before = pairs[copy_index]
        else:
            behind[before if copy_index < final else len(pieces) - 1].append(piece)
    woven = [(piece, True) for piece in behind[-1]]
    for index, piece in enumerate(pieces):
        woven += [(piece, False), *((new, True) for new in behind[index])]
    return join_pieces(cut_at_steps(woven, homes))


def _pair_pieces(first: Flat, second: Flat) -> dict[int, int]:
    """Pairs the equal pieces of two copies of a turn that are merged, in order, calls from the end:
    position in the second copy to position in the first."""
    indexes_by_key: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, piece in enumerate(first.pieces):
        for key in _piece_keys(piece):
            indexes_by_key[key].append(index)
    keys = [key_of(piece) for piece in second.pieces]
    counts, met = Counter(keys), Counter[tuple[Any, ...]]()
    taken: set[int] = set()
    pairs: dict[int, int] = {}
    for copy_index, key in enumerate(keys):
        indexes = indexes_by_key.get(key, [])
        if not indexes and key[0] == "result":
            indexes = indexes_by_key.get(("result call", *key[1:]), [])
        # Ids of calls may come again in a conversation; a copy that has fewer of them has the later
        # ones.
        skipped = len(indexes) - counts[key] if key[0] == "call" else 0
        number = met[key] + skipped
        met[key] += 1
        if 0 <= number < len(indexes) and indexes[number] not in taken:
            pairs[copy_index] = indexes[number]
            taken.add(indexes[number])
    return pairs


def _piece_keys(piece: Piece) -> list[tuple[Any, ...]]:
    """Returns the keys under which a piece of a turn is found in a copy of the turn: one that names
    its provider's id also by a copy that has lost it."""
    key = key_of(piece)
    if key[0] in ("text", "thinking") and key[2] is not None and key[1]:
        return [key, (key[0], key[1], None)]
    if key[0] == "call":
        return [key, ("result call", key[1])]
    return [key]


def _new_pieces(turn: Sequence[Message], copy: Sequence[Message]) -> list[Message]:
    """Returns what a copy of a turn has more than the turn: as messages, without ids."""
    first, second = lay_flat(turn), lay_flat(copy)
    pairs = _pair_pieces(first, second)
    new: list[Piece] = []
    for index, piece in enumerate(second.pieces):
        if index not in pairs:
            new.append(piece)
        elif piece.answer is not None and first.pieces[pairs[index]].answer is None:
            new.append(piece.answer)
    bare = tuple([message.replace(id=None, turn=None) for message in second.homes])
    return [message for message in join_pieces(Flat(tuple(new), bare)) if message.content]


def _merge_piece(piece: Piece, copy: Piece) -> Piece:
    """Merges a piece of a turn with another copy of it. A call never goes back to an earlier state,
    and its arguments stay as the model made them."""
    call, other = piece.part, copy.part
    if isinstance(call, ToolCallPart) and isinstance(other, ToolResultPart):
        if piece.answer is not None:
            return piece
        return piece._replace(answer=copy)
    if not isinstance(call, ToolCallPart) or not isinstance(other, ToolCallPart):
        is_richer = bool(other.native) and not call.native
        if is_richer:
            return piece._replace(part=replace(call, native=other.native))
        return piece
    is_forward = rank(copy) >= rank(piece)
    merged = _merge_call(call, other, is_forward=is_forward)
    if merged is not call:
        piece = piece._replace(part=merged)
    if is_forward:
        return _take_copied_result(piece, copy)
    return piece


def _merge_call(call: ToolCallPart, other: ToolCallPart, *, is_forward: bool) -> ToolCallPart:
    """Merges a call of a turn: returns it with what a copy of it adds: complete arguments and
    native fields."""
    if call.state == "cut" and other.state != "cut":
        call = replace(other, native=merge_native(call.native, other.native))
    elif not call.arguments and other.arguments and call.state == other.state:
        call = replace(call, arguments=other.arguments, raw=other.raw)
    if is_forward:
        native = merge_native(call.native, other.native)
    else:
        native = call.native
    if native == call.native:
        return call
    return replace(call, native=native)


def _take_copied_result(piece: Piece, copy: Piece) -> Piece:
    """Returns a stored call with the result that the client's copy of it has, or unchanged if both
    have the same result."""
    before, result = result_of(piece), result_of(copy)
    if result is None:
        return piece
    if piece.answer is None or before is None:
        return piece._replace(answer=copy.answer)
    if (before.result, before.is_error, before.denied) == (
        result.result,
        result.is_error,
        result.denied,
    ):
        return piece
    result = replace(result, native=merge_native(before.native, result.native))
    return piece._replace(answer=piece.answer._replace(part=result))


def merge_native(before: Native, after: Native) -> Native:
    """Merges the native fields of both, wire by wire. `after` wins where both have a field."""
    if not before or not after:
        return before or after
    merged: Json = {}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            merged[name] = {**if_object(old), **if_object(new)}
        else:
            merged[name] = old if new is None else new
    return merged


def _merge_homes(
    first: Flat, second: Flat, pairs: Mapping[int, int]
) -> tuple[list[Message], dict[int, int]]:
    """Returns the messages of both copies, and for each of the second its number among them. A
    message of the second copy is the first copy's if they share a piece or the id."""
    homes = list(first.homes)
    moved: dict[int, int] = {}
    for copy_index, index in pairs.items():
        copy, piece = second.pieces[copy_index], first.pieces[index]
        moved.setdefault(copy.home, piece.home)
        if copy.answer is not None and piece.answer is not None:
            moved.setdefault(copy.answer.home, piece.answer.home)
    ids = {message.id for message in homes}
    for number, message in enumerate(second.homes):
        same = moved.get(number)
        if same is None or homes[same].role is not message.role:
            same = _home_of_id(first.homes, message.id)
        if same is not None and homes[same].role is message.role:
            moved[number] = same
            homes[same] = _with_fields(homes[same], message)
            continue
        moved[number] = len(homes)
        homes.append(message if message.id not in ids else message.replace(id=None))
    return homes, moved


def _home_of_id(homes: Sequence[Message], message_id: str | None) -> int | None:
    if message_id is None:
        return None
    return next((number for number, home in enumerate(homes) if home.id == message_id), None)


def _with_fields(message: Message, copy: Message) -> Message:
    """Merges a message of a turn: returns it with the fields of another copy of it, but not its
    content. The copy's metadata wins; other fields are filled in where they are missing."""
    changes: Json = {}
    metadata = {**message.own_metadata, **copy.own_metadata}
    if metadata != message.own_metadata:
        changes["metadata"] = metadata
    for name in ("origin", "finish_reason", "usage", "created_at"):
        if getattr(message, name) is None and getattr(copy, name) is not None:
            changes[name] = getattr(copy, name)
    if copy.native and (native := merge_native(message.native, copy.native)) != message.native:
        changes["native"] = native
    if changes:
        return message.replace(**changes)
    return message


def _move_piece(piece: Piece, moved: Mapping[int, int]) -> Piece:
    """Returns a piece, and its answer, moved to other messages of the turn."""
    answer = piece.answer
    if answer is not None:
        answer = answer._replace(home=moved[answer.home])
    return piece._replace(home=moved[piece.home], answer=answer)


def cut_at_steps(pieces: Sequence[tuple[Piece, bool]], homes: list[Message]) -> Flat:
    """Returns a merged turn, with a new message wherever a new step begins behind answered calls.
    `pieces`: each with whether it is new."""
    cut_pieces: list[Piece] = []
    cut: dict[int, int] = {}
    answered: set[int] = set()
    for piece, is_new in pieces:
        home = cut.get(piece.home, piece.home)
        if is_new and is_step(piece.part) and home in answered:
            cut[piece.home] = home = len(homes)
            homes.append(Message(Role.MODEL, origin=homes[piece.home].origin))
        if piece.answer is not None:
            answered.add(home)
        cut_pieces.append(piece if home == piece.home else piece._replace(home=home))
    return Flat(tuple(cut_pieces), tuple(homes))


# a turn as it is stored, and the copy of it that is there


def _with_outcomes(stored: Sequence[Message], copy: Sequence[Message]) -> list[Message]:
    """Returns a stored turn of a model with the outcomes that a client's copy has of its open
    calls: results and answers to approvals. A provider's calls take answers to approvals only."""
    first, second = lay_flat(stored), lay_flat(copy)
    pieces, homes = list(first.pieces), list(first.homes)
    ids = {message.id for message in homes}
    moved: dict[int, int] = {}
    for copy_index, index in _pair_pieces(first, second).items():
        piece, copied_piece = pieces[index], second.pieces[copy_index]
        call, other = piece.part, copied_piece.part
        if not isinstance(call, ToolCallPart) or piece.answer is not None:
            continue
        if isinstance(other, ToolCallPart) and rank(copied_piece) == APPROVED > rank(piece):
            call = replace(call, native=merge_native(call.native, other.native))
            pieces[index] = piece._replace(part=call)
            continue
        if isinstance(other, ToolResultPart):
            answer = copied_piece
        else:
            answer = copied_piece.answer
        if answer is None or call.run_by == "provider":
            continue
        if answer.home not in moved:
            message = second.homes[answer.home]
            moved[answer.home] = len(homes)
            message_id = None if message.id in ids else message.id
            homes.append(Message(Role.USER, id=message_id, created_at=message.created_at))
        pieces[index] = piece._replace(answer=answer._replace(home=moved[answer.home]))
    return join_pieces(Flat(tuple(pieces), tuple(homes)))


def _with_metadata(stored: Message, copy: Message) -> Message:
    """Returns a stored message of a user's, with the metadata that the copy at hand has beside it:
    that goes before."""
    return _with_fields(stored, Message(Role.USER, metadata=copy.own_metadata))


# what becomes of them


class Outcome(NamedTuple):
    """What becomes of a turn and its copy."""

    messages: Sequence[Message]
    """The turn from now on: the same messages if nothing changes."""
    more: Sequence[Message] = ()
    """Messages that become a turn of their own, with new ids."""
    replaced: bool = False
    """The turn as it was is kept as a branch."""
    stored_first: bool = False
    """The copy was loaded from a store, and the turn as it was is newer."""


def decide_outcome(
    rows: Sequence[Row], added: Sequence[Message], source: Source, *, sealed: bool, merge: bool
) -> Outcome:
    """Returns what becomes of a turn and a copy of it.

    Args:
        rows: the turn as it is there.
        added: the copy.
        source: where the copy comes from.
        sealed: the turn never changes, or one behind it does not.
        merge: copies of a model's turn are merged.
    """
    before = [row.message for row in rows]
    if _is_same(before, added):
        return Outcome(before)
    is_live = any(row.live - {"memory"} for row in rows)
    if source == "memory" and not sealed and any(map(is_sealed, added)):
        return Outcome(added, _new_pieces(added, before) if is_live else ())
    if sealed:
        return Outcome(before, _new_pieces(before, added))
    if _is_continued(before, added):
        return Outcome([*before, *added])
    if before[0].role is not added[0].role and not (is_model(before) and is_model(added)):
        return Outcome(before, [message.replace(id=None, turn=None) for message in added])
    if source == "memory":
        return _merge_stored(rows, added, is_live=is_live)
    if is_model(before):
        if merge and not is_done([*before, *added]):
            return Outcome(_merge_turns(before, added))
        return Outcome(added, replaced=True)
    if len(before) == len(added) == 1 and neutral_digest(before[0]) == neutral_digest(added[0]):
        return Outcome([_with_fields(before[0], added[0])])
    return Outcome(added, replaced=True)


def _is_continued(turn: Sequence[Message], added: Sequence[Message]) -> bool:
    """True if what a copy adds to the turn are results that name the turn of the model's that they
    are of, and are not there yet."""
    turns, ids = {message.turn for message in turn}, {message.id for message in turn}
    return is_model(turn) and all(
        holds_only_answers(message)
        and message.turn is not None
        and message.turn in turns
        and message.id not in ids
        for message in added
    )


def is_model(messages: Sequence[Message]) -> bool:
    """True if a turn is the model's: its results are of it."""
    return any(message.role is Role.MODEL for message in messages)


def _merge_stored(rows: Sequence[Row], stored: Sequence[Message], *, is_live: bool) -> Outcome:
    """Returns a stored turn that comes when there is one of its id: it is what counts, and what it
    has not becomes a branch."""
    before = [row.message for row in rows]
    if is_model(before) and (
        any("response" in row.live for row in rows) or (not is_live and _is_saved(rows))
    ):
        return Outcome(_merge_turns(stored, before), stored_first=is_live)
    has_more = bool(_new_pieces(stored, before))
    if not is_live:
        return Outcome(stored, replaced=has_more)
    if is_model(before):
        return Outcome(_with_outcomes(stored, before), replaced=has_more, stored_first=True)
    return Outcome(
        [*map(_with_metadata, stored, before), *stored[len(before) :]],
        replaced=has_more,
        stored_first=True,
    )


def _is_saved(rows: Sequence[Row]) -> bool:
    return any("memory" not in row.live for row in rows)


def _is_same(turn: Sequence[Message], added: Sequence[Message]) -> bool:
    """True if a copy says nothing else than some of the messages that are there."""
    by_id = {message.id: message for message in turn}
    return all(_is_no_more(by_id.get(message.id), message) for message in added)


def _is_no_more(message: Message | None, copy: Message) -> bool:
    """True if, in a merge of turns, the copy of a message has nothing that the stored message
    lacks."""
    if message is copy:
        return True
    if message is None or message.content != copy.content or message.role is not copy.role:
        return False
    fields = (
        (message.origin, copy.origin),
        (message.usage, copy.usage),
        (message.finish_reason, copy.finish_reason),
    )
    if any(new is not None and new != old for old, new in (*fields, (message.native, copy.native))):
        return False
    return not copy.metadata or copy.metadata.items() <= message.metadata.items()


def fill_arguments(rows: Rows, messages: Sequence[Message]) -> Sequence[Message]:
    """Returns the new messages of a turn, whose calls have arguments: an answered call that came
    without any gets those of the open call with its id."""
    if not len(rows) or not lacks_arguments(messages):
        return messages
    answered = {
        piece.id
        for message in messages
        for piece in message.content
        if isinstance(piece, ToolResultPart)
    }
    return [_fill_call_arguments(rows, message, answered) for message in messages]


def lacks_arguments(messages: Sequence[Message]) -> bool:
    """True if a complete call has no arguments."""
    return any(_is_empty(piece) for message in messages for piece in message.content)


def _is_empty(piece: object) -> bool:
    return isinstance(piece, ToolCallPart) and not piece.arguments and piece.state == "complete"


def _fill_call_arguments(rows: Rows, message: Message, answered: set[str]) -> Message:
    """Returns a turn's message whose answered calls without arguments get them from the open calls
    in the rows."""
    arguments_found = {
        part_index: arguments
        for part_index, piece in enumerate(message.content)
        if isinstance(piece, ToolCallPart)
        and _is_empty(piece)
        and piece.id in answered
        and (arguments := _arguments_of_open(rows, piece))
    }
    if not arguments_found:
        return message
    content = [
        replace(piece, arguments=arguments_found[part_index], raw=None)
        if isinstance(piece, ToolCallPart) and part_index in arguments_found
        else piece
        for part_index, piece in enumerate(message.content)
    ]
    return message.replace(content=tuple(content))


def _arguments_of_open(rows: Rows, call: ToolCallPart) -> Json | None:
    """Returns for a merged turn the arguments of the newest call of that id and tool which has
    some, where that is still open."""
    newest = rows.call(call.id)
    if newest is None:
        return None
    for position in range(newest, max(-1, newest - _MOST), -1):
        for piece in rows[position].message.content:
            if (
                isinstance(piece, ToolCallPart)
                and (piece.id, piece.name) == (call.id, call.name)
                and piece.arguments
            ):
                unit = [row.message for row in rows.between(*rows.unit(position))]
                is_open = any(
                    turn_piece.part is piece and turn_piece.answer is None
                    for turn_piece in lay_flat(unit).pieces
                )
                if is_open:
                    return piece.arguments
                return None
    return None
