"""A turn that is added and is there already: what becomes of the two.

`outcome` decides: the copy says nothing new, goes on with the turn, is merged with it, or takes its place. Two copies of a turn are laid flat
(`pieces`), so that a call and its result are one; equal pieces are found, what the second has more comes in behind the piece that it
followed, and the pieces become messages again. Nothing is lost, and a call never goes back to an earlier state.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from dragoman.codec.digest import neutral
from dragoman.codec.turns import only_answers
from dragoman.history.format_fields import STEP, is_done, is_sealed
from dragoman.history.pieces import Flat, Item, key_of, laid_flat, messages_of, rank
from dragoman.history.rows import Row, Rows
from dragoman.history.sources import Source
from dragoman.message import MarkPart, Message, Native, Role, ToolCallPart, ToolResultPart

__all__ = [
    "Outcome",
    "cut_at_steps",
    "filled",
    "is_model",
    "layered",
    "layered_user",
    "matched",
    "merged",
    "merged_call",
    "merged_native",
    "new_items",
    "outcome",
    "with_fields",
]


def merged(known: Sequence[Message], added: Sequence[Message]) -> list[Message]:
    """A turn, and a copy of it that says more, as one. Messages that gain nothing stay the same objects; new ones keep their ids, unless the
    turn has them already."""
    if len(known) == len(added) and all(
        one == other for one, other in zip(known, added, strict=True)
    ):
        return list(known)
    first, second = laid_flat(known), laid_flat(added)
    pairs = matched(first, second)
    homes, moved = _homes(first, second, pairs)
    items = list(first.items)
    for at, place in pairs.items():
        items[place] = merged_call(items[place], _moved(second.items[at], moved))
    behind: defaultdict[int, list[Item]] = defaultdict(
        list
    )  # place of a known item, -1: the front → what comes behind it
    final, before = max(pairs, default=-1), -1
    for at, item in enumerate(second.items):
        if (place := pairs.get(at)) is not None:
            before = place
        else:
            behind[before if at < final else len(items) - 1].append(_moved(item, moved))
    woven = [(item, True) for item in behind[-1]]
    for place, item in enumerate(items):
        woven += [(item, False), *((one, True) for one in behind[place])]
    return messages_of(cut_at_steps(woven, homes))


def matched(first: Flat, second: Flat) -> dict[int, int]:
    """Place of an item in the second copy → that of the same in the first. Equal pieces are matched in order, calls from the end."""
    known: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for place, item in enumerate(first.items):
        for key in _keys(item):
            known[key].append(place)
    counts = Counter(key_of(item) for item in second.items)
    met: Counter[tuple[Any, ...]] = Counter()
    taken: set[int] = set()
    pairs: dict[int, int] = {}
    for at, item in enumerate(second.items):
        key = key_of(item)
        places = (
            known.get(key)
            or (known.get(("result call", *key[1:])) if key[0] == "result" else None)
            or []
        )
        skipped = len(places) - counts[key] if key[0] == "call" else 0
        number = met[key] + skipped
        met[key] += 1
        if 0 <= number < len(places) and places[number] not in taken:
            pairs[at] = places[number]
            taken.add(places[number])
    return pairs


def _keys(item: Item) -> list[tuple[Any, ...]]:
    """The keys under which an item is found: one that names its provider's id also by a copy that has lost it."""
    key = key_of(item)
    if key[0] in ("text", "thinking") and key[2] is not None and key[1]:
        return [key, (key[0], key[1], None)]
    if key[0] == "call":
        return [key, ("result call", key[1])]
    return [key]


def new_items(known: Sequence[Message], added: Sequence[Message]) -> list[Message]:
    """What a copy of a turn has more than the turn: as messages, without ids."""
    first, second = laid_flat(known), laid_flat(added)
    pairs = matched(first, second)
    left: list[Item] = []
    for at, item in enumerate(second.items):
        place = pairs.get(at)
        if place is None:
            left.append(item)
        elif item.answer is not None and first.items[place].answer is None:
            left.append(Item(item.answer, item.answer_home, place=item.place))
    bare = tuple([message.replace(id=None, turn=None) for message in second.homes])
    return [message for message in messages_of(Flat(tuple(left), bare)) if message.content]


def merged_call(known: Item, added: Item) -> Item:
    """An item, and another copy of it. A call never goes back to an earlier state, and its arguments stay as the model made them."""
    piece, other = known.piece, added.piece
    if isinstance(piece, ToolCallPart) and isinstance(other, ToolResultPart):
        return (
            known
            if known.answer is not None
            else known._replace(answer=other, answer_home=added.home, place=added.place)
        )
    if not isinstance(piece, ToolCallPart) or not isinstance(other, ToolCallPart):
        return (
            known
            if piece.native or not other.native
            else known._replace(piece=replace(piece, native=other.native))
        )
    forward = rank(added) >= rank(known)
    if piece.state == "cut" and other.state != "cut":
        piece = replace(other, native=merged_native(piece.native, other.native))
    elif not piece.arguments and other.arguments and piece.state == other.state:
        piece = replace(piece, arguments=other.arguments, raw=other.raw)
    if forward and (native := merged_native(piece.native, other.native)) != piece.native:
        piece = replace(piece, native=native)
    known = known if piece is known.piece else known._replace(piece=piece)
    if added.answer is None or not forward or _alike(known.answer, added.answer):
        return known
    if known.answer is None:
        return known._replace(answer=added.answer, answer_home=added.answer_home, place=added.place)
    answer = replace(added.answer, native=merged_native(known.answer.native, added.answer.native))
    return known._replace(answer=answer)


def merged_native(known: Native, added: Native) -> Native:
    """Both, wire by wire; where both have a field, it is the added one's."""
    if not known or not added:
        return known or added
    return {name: _both(known.get(name), added.get(name)) for name in {**known, **added}}


def _both(known: Any, added: Any) -> Any:
    if isinstance(known, dict) and isinstance(added, dict):
        return {**cast("Mapping[str, Any]", known), **cast("Mapping[str, Any]", added)}
    return cast("Any", known if added is None else added)


def _alike(known: ToolResultPart | None, added: ToolResultPart) -> bool:
    return known is not None and (known.result, known.is_error, known.denied) == (
        added.result,
        added.is_error,
        added.denied,
    )


def _homes(
    first: Flat, second: Flat, pairs: Mapping[int, int]
) -> tuple[list[Message], dict[int, int]]:
    """All messages that items stand in, and number of a message of the second copy → its number there. One is that of the first copy where a
    piece of it is found."""
    homes = list(first.homes)
    moved: dict[int, int] = {}
    for at, place in pairs.items():
        moved.setdefault(second.items[at].home, first.items[place].home)
        if second.items[at].answer is not None and first.items[place].answer is not None:
            moved.setdefault(second.items[at].answer_home, first.items[place].answer_home)
    ids = {message.id for message in homes}
    for number, message in enumerate(second.homes):
        if number in moved and homes[moved[number]].role is message.role:
            homes[moved[number]] = with_fields(homes[moved[number]], message)
            continue
        same = next(
            (
                n
                for n, home in enumerate(first.homes)
                if message.id is not None and home.id == message.id
            ),
            None,
        )
        if same is not None and homes[same].role is message.role:
            moved[number] = same
            homes[same] = with_fields(homes[same], message)
            continue
        moved[number] = len(homes)
        homes.append(message if message.id not in ids else message.replace(id=None))
    return homes, moved


def with_fields(known: Message, added: Message) -> Message:
    """A message with what another copy of it knows beside the content: of metadata the added goes before, all else is filled in."""
    changes: dict[str, Any] = {}
    metadata = {**known.own_metadata, **added.own_metadata}
    if metadata != known.own_metadata:
        changes["metadata"] = metadata
    for name in ("origin", "finish_reason", "usage", "created_at"):
        if getattr(known, name) is None and getattr(added, name) is not None:
            changes[name] = getattr(added, name)
    if added.native and (native := merged_native(known.native, added.native)) != known.native:
        changes["native"] = native
    return known.replace(**changes) if changes else known


def _moved(item: Item, moved: Mapping[int, int]) -> Item:
    return item._replace(home=moved[item.home], answer_home=moved.get(item.answer_home, -1))


def cut_at_steps(items: Sequence[tuple[Item, bool]], homes: list[Message]) -> Flat:
    """Items, each with whether it is new. Where a new step begins behind answered calls, so does a message."""
    kept: list[Item] = []
    cut: dict[int, int] = {}
    answered: set[int] = set()
    for item, is_new in items:
        home = cut.get(item.home, item.home)
        if (
            is_new
            and isinstance(item.piece, MarkPart)
            and item.piece.kind == STEP
            and home in answered
        ):
            cut[item.home] = home = len(homes)
            homes.append(Message(Role.MODEL, origin=homes[item.home].origin))
        if item.answer is not None:
            answered.add(home)
        kept.append(item if home == item.home else item._replace(home=home))
    return Flat(tuple(kept), tuple(homes))


_APPROVED = 3


def layered(stored: Sequence[Message], held: Sequence[Message]) -> list[Message]:
    """The stored turn of a model's, with the outcomes that a client's copy has of calls that are open in it: results, and answers to approvals.
    Of calls that a provider runs, answers to approvals alone."""
    first, second = laid_flat(stored), laid_flat(held)
    items, homes = list(first.items), list(first.homes)
    ids = {message.id for message in homes}
    moved: dict[int, int] = {}
    for at, place in matched(first, second).items():
        known, added = items[place], second.items[at]
        call = known.piece
        if not isinstance(call, ToolCallPart) or known.answer is not None:
            continue
        is_result = isinstance(added.piece, ToolResultPart)
        answer = added.piece if isinstance(added.piece, ToolResultPart) else added.answer
        if (
            rank(added) == _APPROVED
            and rank(known) < _APPROVED
            and not is_result
            and isinstance(added.piece, ToolCallPart)
        ):
            items[place] = known._replace(
                piece=replace(call, native=merged_native(call.native, added.piece.native))
            )
        elif answer is not None and call.run_by != "provider":
            home = added.home if is_result else added.answer_home
            if home not in moved:
                message = second.homes[home]
                moved[home] = len(homes)
                homes.append(
                    Message(
                        Role.USER,
                        id=None if message.id in ids else message.id,
                        created_at=message.created_at,
                    )
                )
            items[place] = known._replace(answer=answer, answer_home=moved[home], place=added.place)
    return messages_of(Flat(tuple(items), tuple(homes)))


def layered_user(stored: Message, held: Message) -> Message:
    """A stored message of a user's, with the metadata that the copy at hand has beside it: that goes before."""
    return with_fields(stored, Message(Role.USER, metadata=held.own_metadata))


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
        return Outcome(added, new_items(added, before) if is_live else ())
    if sealed:
        return Outcome(before, new_items(before, added))
    if _goes_on(before, added):
        return Outcome([*before, *added])
    if before[0].role is not added[0].role and not (is_model(before) and is_model(added)):
        return Outcome(before, [message.replace(id=None, turn=None) for message in added])
    if source == "memory":
        return _stored_after(known, added, is_live=is_live)
    if is_model(before):
        if merge and not is_done([*before, *added]):
            return Outcome(merged(before, added))
        return Outcome(added, replaced=True)
    if len(before) == len(added) == 1 and neutral(before[0]) == neutral(added[0]):
        return Outcome([with_fields(before[0], added[0])])
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
        return Outcome(merged(stored, before), stored_first=is_live)
    has_more = bool(new_items(stored, before))
    if not is_live:
        return Outcome(stored, replaced=has_more)
    if is_model(before):
        return Outcome(layered(stored, before), replaced=has_more, stored_first=True)
    return Outcome(
        [*map(layered_user, stored, before), *stored[len(before) :]],
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


_MOST = 512
"""Messages before it in which the call is looked for."""


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
                    item.piece is piece and item.answer is None for item in laid_flat(unit).items
                )
                return piece.arguments if is_open else None
    return None
