"""Ids of calls that a client's copy has otherwise: its format took other ids, and its results answer by those."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from dragoman.codec.turns import only_answers
from dragoman.history.foreign import foreign, foreign_content
from dragoman.history.matching import Match
from dragoman.history.projection import Place, is_shared
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Role,
    ToolCallPart,
    ToolResultPart,
)

__all__ = ["Allowed", "merged", "shares", "with_stored_ids"]


def with_stored_ids(
    stored: Sequence[Message], copy: Sequence[Message], whole: Mapping[int, int]
) -> Sequence[Message]:
    """A copy whose results answer the stored calls. `whole`: message of the copy → the stored message that it is."""
    found: list[Message] = []
    ids: dict[str, str] = {}
    for place, message in enumerate(copy):
        if message.role is Role.MODEL:
            ids = _ids(message, stored[whole[place]]) if place in whole else {}
        elif ids and message.tool_results:
            message = message.replace(
                content=tuple(
                    [
                        replace(piece, id=ids.get(piece.id, piece.id))
                        if isinstance(piece, ToolResultPart)
                        else piece
                        for piece in message.content
                    ]
                )
            )
        found.append(message)
    return found


def _ids(message: Message, stored: Message) -> dict[str, str]:
    """Id of a call in the copy → that of the stored call in its place, where they differ."""
    pairs = list(zip(message.tool_calls, stored.tool_calls, strict=False))
    return {copied.id: known.id for copied, known in pairs if copied.id != known.id}


class Allowed(NamedTuple):
    """What a client may change, beside its own messages, and what its copy means."""

    system: bool = False
    """System messages."""
    results: bool = False
    """Results that are stored."""
    answers: bool = False
    """What the model said."""
    signatures: bool = False
    """New messages may come with what a provider signed."""
    whole: bool = False
    """The copy has all: what it lacks before its first stored message is removed."""
    regenerates: bool = False
    """What stands behind the copy's last message is to be made anew."""
    merges: bool = False
    """In its format, two answers that stand beside each other are one."""


_Order = tuple[int, int, int]
"""Position in the copy, 1 for what is stored and 2 for what is new, position in what is stored."""


class _Links(NamedTuple):
    """Which stored messages the messages of a copy are."""

    owners: dict[int, list[int]]
    """Position in the copy → those in what is stored."""
    first: dict[int, int]
    """Stored message → the first of the copy that it is in."""
    places: set[Place]
    """Stored pieces that the copy has, of messages that it has not as a whole."""
    extra: dict[int, list[int]]
    """Message of the copy → places of its pieces that are not stored."""


def shares(stored: Sequence[Message], copy: Sequence[Message], match: Match) -> bool:
    """Whether the copy is one of this conversation: an answer or an id is known, or it begins as what is stored does."""
    owners = _links(copy, match).owners
    known = [k for k in owners if copy[k].role is not Role.SYSTEM]
    spoken = [k for k, message in enumerate(copy) if message.role is not Role.SYSTEM]
    if match.named or any(copy[k].role is Role.MODEL or copy[k].tool_results for k in known):
        return True
    begins = next(
        (at for at, message in enumerate(stored) if message.role is not Role.SYSTEM), None
    )
    return len(spoken) > 1 and bool(known) and begins in owners.get(spoken[0], ())


def merged(
    stored: Sequence[Message], copy: Sequence[Message], match: Match, allowed: Allowed, floor: int
) -> list[tuple[Message, int | None]]:
    """The messages of the merged conversation, each with its position in what is stored; `None`: it is new."""
    links = _links(copy, match)
    needed = _needed(stored, links, match, floor)
    for k, at in _replaced(stored, copy, links, match, needed, allowed, floor).items():
        links.owners[k] = [at]
        links.first.setdefault(at, k)
    kept = _kept(stored, copy, links, needed, allowed, floor)
    placed: list[tuple[_Order, Message, int | None]] = []
    where = top = -1
    for at, message in enumerate(stored):
        if at in links.first and (message.role is not Role.SYSTEM or allowed.system):
            where = links.first[at]
            if (
                links.owners[where][0] != at
            ):  # in the copy it is one with another message, and what stands between them is not
                where = max(where, top)
            top = max(top, where)
        if at in kept:
            placed.append(((where, 1, at), message, at))
    changed, added = _changed(stored, copy, links, match, needed, allowed)
    placed = [
        (order, changed.get(at, message) if at is not None else message, at)
        for order, message, at in placed
    ]
    taken: set[str | None] = {message.id for message in stored}
    for order, message in added:
        new = foreign(message, taken, signatures=allowed.signatures)
        taken.add(new.id)
        placed.append((order, new, None))
    return [(message, at) for _, message, at in sorted(placed, key=lambda each: each[0])]


def _links(copy: Sequence[Message], match: Match) -> _Links:
    links = _Links({}, {}, set(), {})
    for k, message in enumerate(copy):
        if k in match.whole:
            links.owners[k] = [match.whole[k]]
        else:
            shared = [place for place, piece in enumerate(message.content) if is_shared(piece)]
            sources = {source for place in shared for source in match.pieces.get((k, place), ())}
            links.places.update(sources)
            if sources:
                links.owners[k] = sorted({at for at, _ in sources})
            links.extra[k] = [place for place in shared if (k, place) not in match.pieces]
        for at in links.owners.get(k, ()):
            links.first.setdefault(at, k)
    return links


def _needed(
    stored: Sequence[Message], links: _Links, match: Match, floor: int
) -> dict[int, list[int]]:
    """The places of what a copy must have of each stored message that it has not as a whole, or else it was taken away. Not that which
    this client shows nowhere: no file, no call or no result of an answer of which it has the rest."""
    whole = set(match.whole.values())
    shown: set[str] = set()
    missing: set[str] = set()
    units = _units(stored, floor)
    alive = {units[at] for at in links.first if at >= floor}
    shared: dict[int, list[int]] = {}
    for at in range(floor, len(stored)):
        if at in whole:
            shown.update(map(_kind, stored[at].content))
            continue
        shared[at] = [
            p
            for p, one in enumerate(stored[at].content)
            if is_shared(one) and (at, p) not in match.hidden
        ]
        for place in shared[at]:
            kind = _kind(stored[at].content[place])
            if (at, place) in links.places:
                shown.add(kind)
            elif units[at] in alive:
                missing.add(kind)
    lacking = missing - shown - {""}
    return {
        at: [p for p in places if _kind(stored[at].content[p]) not in lacking]
        for at, places in shared.items()
    }


def _kind(piece: Content) -> str:
    """Of what a client may show nowhere; empty: it shows it."""
    match piece:
        case DataPart() | LinkPart() | FilePart():
            return "file"
        case ToolCallPart():
            return "call"
        case ToolResultPart():
            return "result"
        case _:
            return ""


def _units(stored: Sequence[Message], floor: int) -> dict[int, int]:
    """Position of a message → the number of the question, or of the answer with its calls and results, that it belongs to."""
    units: dict[int, int] = {}
    number, asks = 0, True
    for at in range(floor, len(stored)):
        message = stored[at]
        if message.role is Role.SYSTEM:
            units[at] = number
            continue
        begins = message.role is Role.USER and not only_answers(message)
        number += begins or asks
        units[at], asks = number, begins
    return units


def _replaced(
    stored: Sequence[Message],
    copy: Sequence[Message],
    links: _Links,
    match: Match,
    needed: Mapping[int, list[int]],
    allowed: Allowed,
    floor: int,
) -> dict[int, int]:
    """Messages of the copy that stand in the place of a stored one: with its id, or else right behind or before one that is stored."""
    found: dict[int, int] = {}
    taken = set(links.first)

    def fits(k: int, at: int) -> bool:
        message, before = copy[k], stored[at]
        if at in taken or message.role is not before.role or not needed.get(at):
            return False
        if match.named.get(k) == at:
            return True
        if message.id is not None and before.id is not None:
            return False
        if message.role is Role.MODEL:
            return _begin_alike(message.text, before.text)
        return not only_answers(message) and not only_answers(before)

    def take(order: Sequence[int], step: int) -> None:
        beside: int | None = None if step < 0 else floor - 1
        for k in order:
            if k in links.owners or k in found:
                owners = links.owners.get(k) or [found[k]]
                beside = owners[-1] if step > 0 else owners[0]
                continue
            at = match.named.get(k)
            if at is None and beside is not None:
                at = beside + step
                while floor <= at < len(stored) and not needed.get(at, at in taken):
                    at += step
            if at is not None and floor <= at < len(stored) and fits(k, at):
                found[k] = beside = at
                taken.add(at)
            else:
                beside = None

    spoken = [
        k for k, message in enumerate(copy) if message.role is not Role.SYSTEM or allowed.system
    ]
    first = next((place for place, k in enumerate(spoken) if k in links.owners), len(spoken))
    take(spoken[: first + 1][::-1], -1)
    take(spoken[first:], 1)
    return found


def _begin_alike(text: str, other: str) -> bool:
    """Whether one text is the beginning of the other, as of an answer that was cut."""
    text, other = text.strip(), other.strip()
    return bool(text) and bool(other) and (text.startswith(other) or other.startswith(text))


def _kept(
    stored: Sequence[Message],
    copy: Sequence[Message],
    links: _Links,
    needed: Mapping[int, list[int]],
    allowed: Allowed,
    floor: int,
) -> set[int]:
    """The stored messages that stay."""
    known = [at for at in links.first if stored[at].role is not Role.SYSTEM]
    first, last = min(known, default=len(stored)), max(known, default=-1)
    cuts = _cuts(stored, copy, links, allowed, first, last, floor)
    kept = set(range(floor))
    units = _units(stored, floor)
    alive, gone = {units[at] for at in links.first}, set[int]()
    hidden: list[int] = []
    for at in range(floor, len(stored)):
        message = stored[at]
        if (
            (message.role is Role.SYSTEM and not allowed.system)
            or at in links.first
            or (at < first and not allowed.whole)
            or (at > last and not cuts)
        ):
            kept.add(at)
        elif not needed.get(at):
            hidden.append(at)
        else:
            gone.add(units[at])
    stays = True
    by_unit: dict[int, list[int]] = {}
    for at in hidden:
        by_unit.setdefault(units[at], []).append(at)
    for unit in range(1, max(units.values(), default=0) + 1):
        if unit in alive or unit in gone:
            stays = unit in alive
        if stays:
            kept.update(by_unit.get(unit, ()))
    return kept


def _cuts(
    stored: Sequence[Message],
    copy: Sequence[Message],
    links: _Links,
    allowed: Allowed,
    first: int,
    last: int,
    floor: int,
) -> bool:
    """Whether what stands behind the last message that the copy has is no more part of the conversation."""
    spoken = [k for k, message in enumerate(copy) if message.role is not Role.SYSTEM]
    place = max((n for n, k in enumerate(spoken) if last in links.owners.get(k, ())), default=-1)
    goes_on = any(links.extra.get(k) and k not in links.owners for k in spoken[place + 1 :])
    begins = first == next(
        (at for at in range(floor, len(stored)) if stored[at].role is not Role.SYSTEM), None
    )
    asks = bool(spoken) and copy[spoken[-1]].role is Role.USER
    return goes_on or asks or begins or allowed.whole or allowed.regenerates


def _changed(
    stored: Sequence[Message],
    copy: Sequence[Message],
    links: _Links,
    match: Match,
    needed: Mapping[int, list[int]],
    allowed: Allowed,
) -> tuple[dict[int, Message], list[tuple[_Order, Message]]]:
    """Stored messages that are other ones now, and new ones with where they stand."""
    contents: dict[int, list[tuple[int | None, Content]]] = {}
    metadata: dict[int, dict[str, Any]] = {}
    added: list[tuple[_Order, Message]] = []
    for k, message in enumerate(copy):
        if k in match.whole or (message.role is Role.SYSTEM and not allowed.system):
            continue
        owners = [at for at in links.owners.get(k, ()) if stored[at].role is message.role]
        new, own = _parted(stored, message, k, owners, links, match, allowed)
        if new:
            partly = (
                {} if len(new) == len(links.extra[k]) and k not in links.owners else {"id": None}
            )
            hidden = not partly
            content = [
                p
                for place, p in enumerate(message.content)
                if place in new or (hidden and not is_shared(p))
            ]
            added.append(((k, 2, 0), message.replace(content=tuple(content), **partly)))
        for at in owners:
            contents.setdefault(at, [])
            metadata.setdefault(at, {}).update(message.own_metadata)
        for place, piece in enumerate(message.content):
            believed = (k, place) in match.changed and _may_change(piece, allowed)
            for at, source in match.pieces.get((k, place), ()):
                if at in contents:
                    before = stored[at].content[source]
                    contents[at].append((source, _with_id(piece, before) if believed else before))
            if place in own:
                taken = foreign_content(message, (piece,), signatures=allowed.signatures)
                contents[owners[-1]] += [(None, one) for one in taken]
    changed: dict[int, Message] = {}
    for at, content in contents.items():
        before = stored[at]
        had = {
            place
            for place, piece in content
            if place is not None and piece is before.content[place]
        }
        if len(had) == len(content) and had.issuperset(needed.get(at, ())):
            continue  # the same pieces, in another order perhaps
        after = _composed(before, content, needed.get(at, ()), allowed)
        if after != before.content and (before.role is not Role.MODEL or allowed.answers):
            changed[at] = before.replace(
                content=after, metadata={**before.own_metadata, **metadata[at]}
            )
    return changed, added


def _parted(
    stored: Sequence[Message],
    message: Message,
    k: int,
    owners: Sequence[int],
    links: _Links,
    match: Match,
    allowed: Allowed,
) -> tuple[set[int], set[int]]:
    """The places of what a message of the copy has and no stored one: what is a new message, and what belongs to the last that it is."""
    extra = set(links.extra[k])
    if not owners or (message.role is Role.USER and only_answers(stored[owners[-1]])):
        return extra, set()
    if message.role is Role.MODEL:
        known = [place for at, place in match.pieces if at == k] if allowed.merges else []
        return (extra, set()) if extra and known and min(extra) > max(known) else (set(), extra)
    results = {place for place in extra if isinstance(message.content[place], ToolResultPart)}
    return results, extra - results


def _may_change(piece: Content, allowed: Allowed) -> bool:
    return allowed.results if isinstance(piece, ToolResultPart) else allowed.answers


def _with_id(piece: Content, before: Content) -> Content:
    """What a client says of a call or result that is stored."""
    if isinstance(piece, ToolCallPart) and isinstance(before, ToolCallPart):
        return replace(piece, id=before.id, run_by=before.run_by, native=None)
    if isinstance(piece, ToolResultPart) and isinstance(before, ToolResultPart):
        return replace(piece, id=before.id, name=before.name, run_by=before.run_by, native=None)
    return before


def _composed(
    before: Message,
    content: Sequence[tuple[int | None, Content]],
    needed: Collection[int],
    allowed: Allowed,
) -> tuple[Content, ...]:
    """The content of a message that the client changed: what its copy has, and behind what stood before it in the stored one what the copy
    could not have."""
    had = {place for place, _ in content}
    behind: dict[int, list[Content]] = {}
    last = -1
    for place, piece in enumerate(before.content):
        if place in had:
            last = place
        elif place not in needed or (
            isinstance(piece, ToolCallPart | ToolResultPart) and not _may_change(piece, allowed)
        ):
            behind.setdefault(last, []).append(piece)
    composed = behind.get(-1, [])
    for place, piece in content:
        if place is None:
            composed.append(piece)
        elif place in had:
            had.remove(place)
            composed += [piece, *behind.get(place, ())]
    return tuple(composed)
