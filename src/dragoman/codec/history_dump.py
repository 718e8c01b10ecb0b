"""A conversation, dumped in segments that tell nothing of each other: those that a model has sent
before are JSON already.

Where what follows would change one (an id that comes again, a tool that takes another's name) the
whole is dumped without memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import replace

from dragoman.codec import digest
from dragoman.codec.history import DumpedRequest, History, KnownTools
from dragoman.codec.history_line import DumpedSegment, count_system_messages
from dragoman.codec.history_pieces import (
    CannotCutError,
    DumpRules,
    Link,
    Pieces,
    find_renamed_tools,
    fresh_ids,
    prepare_pieces,
    select_renamed,
)
from dragoman.codec.outgoing import Outgoing
from dragoman.codec.replay import digest_lookup, find_unreadable
from dragoman.json_bytes import JsonMap
from dragoman.loss import Loss
from dragoman.message import Message
from dragoman.repair import repair_with_losses
from dragoman.request import ServerTool, ToolSpec

__all__ = ["Dumped", "Link", "DumpRules", "dump_with_history", "dump_tools_with_history"]

O = TypeVar("O", bound=Outgoing[Any])  # noqa: E741 the letter of its bound

_encode = msgspec.json.Encoder().encode


class Dumped(NamedTuple, Generic[O]):
    """A conversation that was dumped, and what the rest of its request is dumped with."""

    out: O
    """Has the names of tools, and the request's losses; its messages may be the last ones alone."""
    payload: Any
    """As `Way.dump` gives it; of the list the known beginning is one `msgspec.Raw`, several
    elements and the commas between."""
    notes: Sequence[str]
    """What `Way.notes` gave, each once and in order."""
    link: str | None
    """By which id the provider knows what it goes on from; `None`: from nothing."""


def dump_with_history(
    turn: DumpedRequest | None,
    way: DumpRules[O],
    messages: Sequence[Message],
    losses: list[Loss],
    tools: Sequence[ToolSpec],
) -> Dumped[O]:
    """A conversation → what it is on the wire. `losses` grows; with a turn that remembers, whose
    messages are not repaired yet, what repair lost stands before all else."""
    history = None if turn is None else turn.history
    if turn is not None and history is not None:
        if len(turn.messages) >= history.least and count_system_messages(turn.messages) < len(
            turn.messages
        ):
            key = turn.target, way.key, way.link is not None
            if not history.is_whole(turn.messages, key):
                try:
                    return _remembered(turn, history, way, key, losses, tools)
                except CannotCutError:
                    history.keep_whole(turn.messages, key)
        messages, lost = repair_with_losses(turn.messages)
        losses[:0] = lost
    out = _made_whole(history, way, messages, losses, tools)
    if turn is not None:
        digest_at = digest_lookup(messages)
        turn.prefix = digest_at(turn.wire, -1)
        out = replace(
            out, unreadable=find_unreadable(messages, turn.target, out.quirks.reads, digest_at)
        )
    link = None if way.link is None else way.link.find(out)
    payload = way.dump(out) if link is None or way.link is None else way.link.dump(out, link[0])
    return Dumped(
        out, payload, _once(way.notes(way.elements(payload))), None if link is None else link[1]
    )


def dump_tools_with_history(
    turn: DumpedRequest | None,
    out: Outgoing[Any],
    tools: Sequence[ToolSpec | ServerTool],
    dump: Callable[[], JsonMap],
    notes: Callable[[JsonMap], Iterable[str]] = lambda _: (),
) -> tuple[JsonMap, Sequence[str]]:
    """Tools → the fields of the body that hold them, and what the rest of the request must know of
    them. A model that remembers has the JSON of those that it sent before."""
    history = None if turn is None else turn.history
    if history is None or not tools:
        fields = dump()
        return fields, _once(notes(fields))
    names = select_renamed(out.names)
    known = history.tools(tools, out.target, names)
    if known is not None:
        out.losses.extend(known.losses)
        return known.fields, known.notes
    begun, fields = len(out.losses), dump()
    noted = _once(notes(fields))
    try:
        encoded = {name: msgspec.Raw(_encode(value)) for name, value in fields.items()}
    except Exception:  # noqa: BLE001 - whatever the encoder refuses is refused where it is sent
        return fields, noted
    history.keep_tools(
        KnownTools(tuple(tools), out.target, names, encoded, tuple(out.losses[begun:]), noted)
    )
    return encoded, noted


def _made_whole(
    history: History | None,
    way: DumpRules[O],
    messages: Sequence[Message],
    losses: list[Loss],
    tools: Sequence[ToolSpec],
) -> O:
    """The whole made ready; without the tools where nobody's name changes for them."""
    if history is not None and tools and not find_renamed_tools(history, way, tools):
        out = way.make(messages, losses, ())
        if not select_renamed(out.names):
            return out
    return way.make(messages, losses, tools)


def _remembered(
    turn: DumpedRequest,
    history: History,
    way: DumpRules[O],
    key: Hashable,
    losses: list[Loss],
    tools: Sequence[ToolSpec],
) -> Dumped[O]:
    known = history.find(turn.messages, key)
    if way.link is not None and any(map(way.link.may, reversed(turn.messages[known.given :]))):
        found = _linked(turn, history, way, way.link, (key, "linked"), losses, tools)
        if found is not None:
            return found
    pieces = prepare_pieces(turn, history, way, known, tools)
    known = pieces.known
    added, head, rest = _segments(way, pieces)
    data = b",".join([each for each in (known.data, *[segment.data for segment in added]) if each])
    if added:
        history.keep(known, key, turn.messages, added, pieces.names)
    losses[:0] = pieces.lost
    losses += [*known.losses, *[loss for out in pieces.outs for loss in out.losses]]
    notes = _once(
        [*known.notes, *[note for segment in added for note in segment.notes], *way.notes(rest)]
    )
    elements = [msgspec.Raw(data), *rest] if data else rest
    return _done(turn, way, pieces, losses, head, elements, notes, None)


def _segments(
    way: DumpRules[O], pieces: Pieces[O]
) -> tuple[list[DumpedSegment], JsonMap, Sequence[Any]]:
    """The pieces → segments; what the payload holds beside the list; and the elements of the last
    piece where it is not settled."""
    added: list[DumpedSegment] = []
    head, taken = pieces.known.head, set[str]()
    for piece, out, own_names in zip(pieces.pieces, pieces.outs, pieces.own_names, strict=True):
        payload = way.dump(out)
        elements = _elements(way, payload)
        ids = fresh_ids(way, pieces.known, piece, out, taken)
        if not out.before:
            head = way.head(payload)
        if not piece.settled or not elements:
            if piece is not pieces.pieces[-1]:
                raise CannotCutError
            return added, head, elements
        try:
            data = _encode(elements)[1:-1]
        except Exception as error:  # whatever the encoder refuses is refused where it is sent
            raise CannotCutError from error
        count, losses, notes = len(piece.mended), tuple(out.losses), _once(way.notes(elements))
        added.append(
            DumpedSegment(
                piece.given, count, head, data, losses, ids, own_names, notes, piece.digests[-1]
            )
        )
    return added, head, []


def _linked(
    turn: DumpedRequest,
    history: History,
    way: DumpRules[O],
    link: Link[O],
    key: Hashable,
    losses: list[Loss],
    tools: Sequence[ToolSpec],
) -> Dumped[O] | None:
    """What follows the newest message that the request can go on from; `None`: it can from none. Of
    what is before that, the digest is known, and no JSON is kept."""
    pieces = prepare_pieces(turn, history, way, history.find(turn.messages, key), tools)
    while (found := _newest(link, pieces)) is None:
        if pieces.known.line is None:
            return None
        pieces = prepare_pieces(turn, history, way, pieces.known.before_link(), tools)
    newest, at, id_ = found
    added: list[DumpedSegment] = []
    elements: list[Any] = []
    head, front = pieces.known.head, pieces.known.losses
    lost, taken = list(front), set[str]()
    for number, (piece, out) in enumerate(zip(pieces.pieces, pieces.outs, strict=True)):
        begun = 0
        if not out.before:
            bare = replace(out, losses=[])
            head, front = way.head(link.dump(bare, len(out.messages) - 1)), tuple(bare.losses)
            lost, begun = list(front), len(front)
        if number >= newest:
            elements += _elements(way, link.dump(out, at) if number == newest else way.dump(out))
            lost += out.losses[begun:]
        ids = fresh_ids(way, pieces.known, piece, out, taken)
        if piece.settled:
            kept, names = () if out.before else front, pieces.own_names[number]
            counted = len(piece.mended)
            added.append(
                DumpedSegment(
                    piece.given,
                    counted,
                    head,
                    b"",
                    kept,
                    ids,
                    names,
                    (),
                    piece.digests[-1],
                    linked=number == newest,
                )
            )
    if added:
        history.keep(pieces.known, key, turn.messages, added, pieces.names)
    losses[:0] = pieces.lost
    losses += lost
    return _done(turn, way, pieces, losses, head, elements, _once(way.notes(elements)), id_)


def _newest(link: Link[O], pieces: Pieces[O]) -> tuple[int, int, str] | None:
    """The newest message that a request can go on from: the number of its piece, its position
    there, and its id."""
    for number in reversed(range(len(pieces.outs))):
        if (found := link.find(pieces.outs[number])) is not None:
            return number, *found
    return None


def _done(
    turn: DumpedRequest,
    way: DumpRules[O],
    pieces: Pieces[O],
    losses: list[Loss],
    head: JsonMap,
    elements: Sequence[Any],
    notes: Sequence[str],
    link: str | None,
) -> Dumped[O]:
    turn.prefix = digest.format_prefix(turn.wire, pieces.pieces[-1].digests[-1])
    out = replace(pieces.outs[-1], losses=losses)
    return Dumped(out, {**head, way.field: elements} if way.field else elements, notes, link)


def _elements(way: DumpRules[Any], payload: Any) -> list[Any]:
    elements = way.elements(payload)
    if type(elements) is not list:
        raise CannotCutError
    return cast("list[Any]", elements)


def _once(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))
