"""A turn that is added and is there already: what becomes of the two.

`outcome` decides: the copy says nothing new, goes on with the turn, is merged with it, or takes its place. Two copies of a turn are laid flat
(`pieces`), so that a call and its result are one; equal pieces are found, what the second has more comes in behind the piece that it
followed, and the pieces become messages again. Nothing is lost, and a call never goes back to an earlier state.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from dragoman.codec.digest import neutral
from dragoman.codec.json_values import if_object
from dragoman.codec.turns import only_answers
from dragoman.history.format_fields import is_done, is_sealed
from dragoman.history.pieces import (
    APPROVED,
    Flat,
    Piece,
    is_step,
    key_of,
    lay_flat,
    messages_of,
    rank,
    result_of,
)
from dragoman.history.rows import Row, Rows
from dragoman.history.sources import Source
from dragoman.message import Message, Native, Role, ToolCallPart, ToolResultPart

__all__ = [
    "Outcome",
    "cut_at_steps",
    "filled",
    "is_model",
    "lacks_arguments",
    "merge_native",
    "outcome",
]

_MOST = 512
"""Messages before a call in which one of its id is looked for."""


# two copies of a turn


def _merge_turns(known: Sequence[Message], added: Sequence[Message]) -> list[Message]:
    """Returns a turn, and a copy of it that says more, as one. Messages that gain nothing stay the same objects; new ones keep their ids, unless
    the turn has them already."""
    if list(known) == list(added):
        return list(known)
    first, second = lay_flat(known), lay_flat(added)
    pairs = _pair_pieces(first, second)
    homes, moved = _merge_homes(first, second, pairs)
    pieces = list(first.pieces)
    copies = [_move(piece, moved) for piece in second.pieces]
    for at, place in pairs.items():
        pieces[place] = _merge_piece(pieces[place], copies[at])
    # What is new stands behind the known piece that it followed; what follows no known piece more, behind all.
    behind: defaultdict[int, list[Piece]] = defaultdict(list)
    final, before = max(pairs, default=-1), -1
    for at, piece in enumerate(copies):
        if at in pairs:
            before = pairs[at]
        else:
            behind[before if at < final else len(pieces) - 1].append(piece)
    woven = [(piece, True) for piece in behind[-1]]
    for place, piece in enumerate(pieces):
        woven += [(piece, False), *((new, True) for new in behind[place])]
    return messages_of(cut_at_steps(woven, homes))


def _pair_pieces(first: Flat, second: Flat) -> dict[int, int]:
    """Returns position of a piece in the second copy → that of the same in the first. Equal pieces are paired in order, calls from the end."""
    known: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for place, piece in enumerate(first.pieces):
        for key in _keys(piece):
            known[key].append(place)
    keys = [key_of(piece) for piece in second.pieces]
    counts, met = Counter(keys), Counter[tuple[Any, ...]]()
    taken: set[int] = set()
    pairs: dict[int, int] = {}
    for at, key in enumerate(keys):
        places = known.get(key, [])
        if not places and key[0] == "result":
            places = known.get(("result call", *key[1:]), [])
        skipped = len(places) - counts[key] if key[0] == "call" else 0
        number = met[key] + skipped
        met[key] += 1
        if 0 <= number < len(places) and places[number] not in taken:
            pairs[at] = places[number]
            taken.add(places[number])
    return pairs


def _keys(piece: Piece) -> list[tuple[Any, ...]]:
    """Returns the keys under which a piece is found: one that names its provider's id also by a copy that has lost it."""
    key = key_of(piece)
    if key[0] in ("text", "thinking") and key[2] is not None and key[1]:
        return [key, (key[0], key[1], None)]
    if key[0] == "call":
        return [key, ("result call", key[1])]
    return [key]


def _new_pieces(known: Sequence[Message], added: Sequence[Message]) -> list[Message]:
    """Returns what a copy of a turn has more than the turn: as messages, without ids."""
    first, second = lay_flat(known), lay_flat(added)
    pairs = _pair_pieces(first, second)
    left: list[Piece] = []
    for at, piece in enumerate(second.pieces):
        if at not in pairs:
            left.append(piece)
        elif piece.answer is not None and first.pieces[pairs[at]].answer is None:
            left.append(piece.answer)
    bare = tuple([message.replace(id=None, turn=None) for message in second.homes])
    return [message for message in messages_of(Flat(tuple(left), bare)) if message.content]


def _merge_piece(known: Piece, added: Piece) -> Piece:
    """Returns a piece, and another copy of it, as one. A call never goes back to an earlier state, and its arguments stay as the model made
    them."""
    call, other = known.part, added.part
    if isinstance(call, ToolCallPart) and isinstance(other, ToolResultPart):
        return known if known.answer is not None else known._replace(answer=added)
    if not isinstance(call, ToolCallPart) or not isinstance(other, ToolCallPart):
        is_richer = bool(other.native) and not call.native
        return known._replace(part=replace(call, native=other.native)) if is_richer else known
    is_forward = rank(added) >= rank(known)
    merged = _merge_call(call, other, is_forward=is_forward)
    known = known if merged is call else known._replace(part=merged)
    return _with_answer(known, added) if is_forward else known


def _merge_call(call: ToolCallPart, other: ToolCallPart, *, is_forward: bool) -> ToolCallPart:
    if call.state == "cut" and other.state != "cut":
        call = replace(other, native=merge_native(call.native, other.native))
    elif not call.arguments and other.arguments and call.state == other.state:
        call = replace(call, arguments=other.arguments, raw=other.raw)
    native = merge_native(call.native, other.native) if is_forward else call.native
    return call if native == call.native else replace(call, native=native)


def _with_answer(known: Piece, added: Piece) -> Piece:
    """Returns a call with the result that its copy has, unless that says the same as its own."""
    before, result = result_of(known), result_of(added)
    if result is None:
        return known
    if known.answer is None or before is None:
        return known._replace(answer=added.answer)
    if (before.result, before.is_error, before.denied) == (
        result.result,
        result.is_error,
        result.denied,
    ):
        return known
    result = replace(result, native=merge_native(before.native, result.native))
    return known._replace(answer=known.answer._replace(part=result))


def merge_native(known: Native, added: Native) -> Native:
    """Returns both, wire by wire; where both have a field, it is the added one's."""
    if not known or not added:
        return known or added
    merged: dict[str, Any] = {}
    for name in {**known, **added}:
        one, other = known.get(name), added.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            merged[name] = {**if_object(one), **if_object(other)}
        else:
            merged[name] = one if other is None else other
    return merged


def _merge_homes(
    first: Flat, second: Flat, pairs: Mapping[int, int]
) -> tuple[list[Message], dict[int, int]]:
    """Returns all messages that pieces are in, and number of a message of the second copy → its number there. One is that of the first copy
    where a piece of it is found."""
    homes = list(first.homes)
    moved: dict[int, int] = {}
    for at, place in pairs.items():
        copy, known = second.pieces[at], first.pieces[place]
        moved.setdefault(copy.home, known.home)
        if copy.answer is not None and known.answer is not None:
            moved.setdefault(copy.answer.home, known.answer.home)
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


def _with_fields(known: Message, added: Message) -> Message:
    """Returns a message with what another copy of it knows beside the content: of metadata the added goes before, all else is filled in."""
    changes: dict[str, Any] = {}
    metadata = {**known.own_metadata, **added.own_metadata}
    if metadata != known.own_metadata:
        changes["metadata"] = metadata
    for name in ("origin", "finish_reason", "usage", "created_at"):
        if getattr(known, name) is None and getattr(added, name) is not None:
            changes[name] = getattr(added, name)
    if added.native and (native := merge_native(known.native, added.native)) != known.native:
        changes["native"] = native
    return known.replace(**changes) if changes else known


def _move(piece: Piece, moved: Mapping[int, int]) -> Piece:
    answer = piece.answer
    if answer is not None:
        answer = answer._replace(home=moved[answer.home])
    return piece._replace(home=moved[piece.home], answer=answer)


def cut_at_steps(pieces: Sequence[tuple[Piece, bool]], homes: list[Message]) -> Flat:
    """Returns a turn of pieces, each with whether it is new. Where a new step begins behind answered calls, so does a message."""
    kept: list[Piece] = []
    cut: dict[int, int] = {}
    answered: set[int] = set()
    for piece, is_new in pieces:
        home = cut.get(piece.home, piece.home)
        if is_new and is_step(piece.part) and home in answered:
            cut[piece.home] = home = len(homes)
            homes.append(Message(Role.MODEL, origin=homes[piece.home].origin))
        if piece.answer is not None:
            answered.add(home)
        kept.append(piece if home == piece.home else piece._replace(home=home))
    return Flat(tuple(kept), tuple(homes))


# a turn as it is stored, and the copy of it that is there


def _with_outcomes(stored: Sequence[Message], held: Sequence[Message]) -> list[Message]:
    """Returns the stored turn of a model's, with the outcomes that a client's copy has of calls that are open in it: results, and answers to
    approvals. Of calls that a provider runs, answers to approvals alone."""
    first, second = lay_flat(stored), lay_flat(held)
    pieces, homes = list(first.pieces), list(first.homes)
    ids = {message.id for message in homes}
    moved: dict[int, int] = {}
    for at, place in _pair_pieces(first, second).items():
        known, added = pieces[place], second.pieces[at]
        call, other = known.part, added.part
        if not isinstance(call, ToolCallPart) or known.answer is not None:
            continue
        answer = added if isinstance(other, ToolResultPart) else added.answer
        if isinstance(other, ToolCallPart) and rank(added) == APPROVED > rank(known):
            call = replace(call, native=merge_native(call.native, other.native))
            pieces[place] = known._replace(part=call)
        elif answer is not None and call.run_by != "provider":
            if answer.home not in moved:
                message = second.homes[answer.home]
                moved[answer.home] = len(homes)
                message_id = None if message.id in ids else message.id
                homes.append(Message(Role.USER, id=message_id, created_at=message.created_at))
            pieces[place] = known._replace(answer=answer._replace(home=moved[answer.home]))
    return messages_of(Flat(tuple(pieces), tuple(homes)))


def _with_metadata(stored: Message, held: Message) -> Message:
    """Returns a stored message of a user's, with the metadata that the copy at hand has beside it: that goes before."""
    return _with_fields(stored, Message(Role.USER, metadata=held.own_metadata))


# what becomes of them


class Outcome(NamedTuple):
    """What becomes of a turn that was there, and of its copy."""

    messages: Sequence[Message]
    """What stands in its place: itself, where nothing changes."""
    more: Sequence[Message] = ()
    """What becomes a turn of its own, with new ids."""
    replaced: bool = False
    """The turn that was there is kept as a branch."""
    stored_first: bool = False
    """It was stored, and the copy that was there is newer."""


def outcome(
    known: Sequence[Row], added: Sequence[Message], source: Source, *, sealed: bool, merge: bool
) -> Outcome:
    """`known`: the turn as it is there; `sealed`: it never changes, or one behind it does not; `merge`: whether copies are made one."""
    before = [row.message for row in known]
    if _same(before, added):
        return Outcome(before)
    is_live = any(row.live - {"memory"} for row in known)
    if source == "memory" and not sealed and any(map(is_sealed, added)):
        return Outcome(added, _new_pieces(added, before) if is_live else ())
    if sealed:
        return Outcome(before, _new_pieces(before, added))
    if _goes_on(before, added):
        return Outcome([*before, *added])
    if before[0].role is not added[0].role and not (is_model(before) and is_model(added)):
        return Outcome(before, [message.replace(id=None, turn=None) for message in added])
    if source == "memory":
        return _stored_after(known, added, is_live=is_live)
    if is_model(before):
        if merge and not is_done([*before, *added]):
            return Outcome(_merge_turns(before, added))
        return Outcome(added, replaced=True)
    if len(before) == len(added) == 1 and neutral(before[0]) == neutral(added[0]):
        return Outcome([_with_fields(before[0], added[0])])
    return Outcome(added, replaced=True)


def _goes_on(known: Sequence[Message], added: Sequence[Message]) -> bool:
    """Whether what is added are results that name the turn of the model's that they are of, and are not there yet."""
    turns, ids = {message.turn for message in known}, {message.id for message in known}
    return is_model(known) and all(
        only_answers(message)
        and message.turn is not None
        and message.turn in turns
        and message.id not in ids
        for message in added
    )


def is_model(messages: Sequence[Message]) -> bool:
    """Whether a turn is the model's: its results are of it."""
    return any(message.role is Role.MODEL for message in messages)


def _stored_after(known: Sequence[Row], stored: Sequence[Message], *, is_live: bool) -> Outcome:
    """A stored turn that comes when there is one of its id: it is what counts, and what it has not becomes a branch."""
    before = [row.message for row in known]
    if is_model(before) and (
        any("response" in row.live for row in known) or (not is_live and _is_saved(known))
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


def _is_saved(known: Sequence[Row]) -> bool:
    return any("memory" not in row.live for row in known)


def _same(known: Sequence[Message], added: Sequence[Message]) -> bool:
    """Whether a copy says nothing else than some of the messages that are there."""
    by_id = {message.id: message for message in known}
    return all(_says_no_more(by_id.get(message.id), message) for message in added)


def _says_no_more(known: Message | None, added: Message) -> bool:
    if known is added:
        return True
    if known is None or known.content != added.content or known.role is not added.role:
        return False
    fields = (
        (known.origin, added.origin),
        (known.usage, added.usage),
        (known.finish_reason, added.finish_reason),
    )
    if any(
        given is not None and given != there
        for there, given in (*fields, (known.native, added.native))
    ):
        return False
    return not added.metadata or added.metadata.items() <= known.metadata.items()


def filled(rows: Rows, messages: Sequence[Message]) -> Sequence[Message]:
    """New messages, of whose calls those that come answered and without arguments have the ones of an open call of their id."""
    if not len(rows) or not lacks_arguments(messages):
        return messages
    answered = {
        piece.id
        for message in messages
        for piece in message.content
        if isinstance(piece, ToolResultPart)
    }
    return [_filled(rows, message, answered) for message in messages]


def lacks_arguments(messages: Sequence[Message]) -> bool:
    """Whether a whole call has none."""
    return any(_is_empty(piece) for message in messages for piece in message.content)


def _is_empty(piece: object) -> bool:
    return isinstance(piece, ToolCallPart) and not piece.arguments and piece.state == "complete"


def _filled(rows: Rows, message: Message, answered: set[str]) -> Message:
    found = {
        place: arguments
        for place, piece in enumerate(message.content)
        if isinstance(piece, ToolCallPart)
        and _is_empty(piece)
        and piece.id in answered
        and (arguments := _of_open(rows, piece))
    }
    if not found:
        return message
    content = [
        replace(piece, arguments=found[place], raw=None)
        if isinstance(piece, ToolCallPart) and place in found
        else piece
        for place, piece in enumerate(message.content)
    ]
    return message.replace(content=tuple(content))


def _of_open(rows: Rows, call: ToolCallPart) -> dict[str, Any] | None:
    """The arguments of the newest call of that id and tool which has some, where that is still open."""
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
                    each.part is piece and each.answer is None for each in lay_flat(unit).pieces
                )
                return piece.arguments if is_open else None
    return None
