"""Two copies of a turn made one: what the second has and the first has not comes in where it belongs, and nothing is lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from dragoman.history.flat import Flat, Item, key_of, laid_flat, messages_of, rank
from dragoman.history.format_fields import STEP
from dragoman.message import MarkPart, Message, Native, Role, ToolCallPart, ToolResultPart

__all__ = [
    "cut_at_steps",
    "matched",
    "merged",
    "merged_call",
    "merged_native",
    "new_items",
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
