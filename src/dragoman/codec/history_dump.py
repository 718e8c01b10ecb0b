"""A conversation, dumped in segments that tell nothing of each other: those that a model has sent before are JSON already.

Each segment is repaired, digested and dumped as a conversation of its own. Where what follows would change one (an id that comes again,
a result that comes late, a tool that takes another's name) the whole is dumped without memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import is_
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import replace

from dragoman.codec import digest, digest_v1
from dragoman.codec.history import KnownTools, Line, Segment, Turn, head_length, parts
from dragoman.codec.outgoing import Outgoing
from dragoman.codec.replay import readable
from dragoman.loss import Loss
from dragoman.message import Message, ToolCallPart, ToolResultPart
from dragoman.repair import repaired
from dragoman.request import ServerTool, ToolSpec

__all__ = ["Dumped", "Way", "dumped", "dumped_tools"]

O = TypeVar("O", bound=Outgoing[Any])  # noqa: E741 the letter of its bound

_encode = msgspec.json.Encoder().encode


def _nothing(_: object) -> Iterable[str]:
    return ()


class Way(msgspec.Struct, Generic[O], frozen=True, gc=False):
    """How a wire dumps a conversation."""

    make: Callable[[Sequence[Message], list[Loss], Sequence[ToolSpec]], O]
    """(messages, losses, tools) → the conversation, ready for its dump."""
    dump: Callable[[O], Any]
    """The same → the part of the body that holds it: a list, or an object with a list in `field`."""
    field: str = ""
    """Which field that list is; empty: it is the whole."""
    in_one: bool = False
    """It cannot be dumped in segments."""
    key: Hashable = None
    """What of the request the dump depends on, beside messages, tools and target."""
    ids: Callable[[O], Iterable[str]] = _nothing
    """After the dump: ids that no later message may use again, beside those of calls."""
    notes: Callable[[Sequence[Any]], Iterable[str]] = _nothing
    """Elements of the list → what the rest of the request must know of them."""

    def elements(self, payload: Any) -> Any:
        """The list in what `dump` gave."""
        return payload[self.field] if self.field else payload


class Dumped(NamedTuple, Generic[O]):
    """A conversation that was dumped, and what the rest of its request is dumped with."""

    out: O
    """Has all names of tools, and the request's losses; its messages are the last ones, or all where `whole`."""
    payload: Any
    """As `Way.dump` gives it; of the list the known beginning is one `msgspec.Raw`, several elements and the commas between."""
    notes: Sequence[str]
    """What `Way.notes` gave, each once and in order."""
    whole: bool
    """Nothing of it was known."""


class _Piece(NamedTuple):
    """A part of a conversation that is to be dumped on its own."""

    given: Sequence[Message]
    mended: Sequence[Message]
    digests: Sequence[bytes]
    """Of all before each message, and last of all."""
    settled: bool
    """Nothing that follows changes it."""


class _Dependent(Exception):
    """The conversation cannot be dumped in segments."""


def dumped(
    turn: Turn | None, way: Way[O], messages: Sequence[Message], losses: list[Loss], tools: Sequence[ToolSpec]
) -> Dumped[O]:
    """A conversation → what it is on the wire. `losses` grows; with a turn, whose messages are not repaired yet, what repair lost stands
    before all else."""
    if turn is not None:
        if (
            not way.in_one
            and len(turn.messages) >= turn.history.least
            and head_length(turn.messages) < len(turn.messages)
        ):
            try:
                return _remembered(turn, way, losses, tools)
            except _Dependent:
                pass
        messages, lost = repaired(turn.messages)
        losses[:0] = lost
        turn.prefix = digest.prefix(messages, turn.wire)
    out = way.make(messages, losses, tools)
    payload = way.dump(out)
    return Dumped(out, payload, _once(way.notes(way.elements(payload))), whole=True)


def dumped_tools(
    turn: Turn | None,
    out: Outgoing[Any],
    tools: Sequence[ToolSpec | ServerTool],
    dump: Callable[[], Mapping[str, Any]],
    notes: Callable[[Mapping[str, Any]], Iterable[str]] = _nothing,
) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Tools → the fields of the body that hold them, and what the rest of the request must know of them. A model that remembers has
    the JSON of those that it sent before."""
    if turn is None or not tools:
        fields = dump()
        return fields, _once(notes(fields))
    names = _odd(out.names)
    known = turn.history.tools(tools, out.target, names)
    if known is not None:
        out.losses.extend(known.losses)
        return known.fields, known.notes
    begun, fields = len(out.losses), dump()
    noted = _once(notes(fields))
    try:
        encoded = {name: msgspec.Raw(_encode(value)) for name, value in fields.items()}
    except Exception:  # noqa: BLE001 - whatever the encoder refuses is refused where it is sent
        return fields, noted
    turn.history.keep_tools(KnownTools(tuple(tools), out.target, names, encoded, tuple(out.losses[begun:]), noted))
    return encoded, noted


def _remembered(turn: Turn, way: Way[O], losses: list[Loss], tools: Sequence[ToolSpec]) -> Dumped[O]:
    history, key = turn.history, (turn.target, way.key)
    line, segments = history.find(turn.messages, key)
    pieces, lost = _pieces(turn, line, segments)
    made, names, kept = _made(way, line, segments, pieces, tools)
    if not kept:
        line, segments = None, 0
        pieces, lost = _pieces(turn, None, 0)
        made, names, kept = _made(way, None, 0, pieces, tools)
    added, rest = _segments(turn, way, line, segments, pieces, made, names)
    if line is None and not added:
        raise _Dependent
    known: Sequence[Any] = () if line is None else [line.data[: line.offsets[segments - 1]]]
    notes = [] if line is None else [note for note, number in line.notes.items() if number < segments]
    losses[:0] = lost
    losses += [] if line is None else line.losses[: line.lost[segments - 1]]
    losses += [loss for out in made for loss in out.losses]
    head = added[0].head if line is None else line.head
    raw = msgspec.Raw(b",".join([*known, *[segment.data for segment in added]]))
    if added:
        history.keep(line, segments, key, turn.messages, added, names)
    notes = _once([*notes, *[note for segment in added for note in segment.notes], *way.notes(rest)])
    elements = [raw, *rest]
    turn.prefix = digest.written(turn.wire, pieces[-1].digests[-1])
    out = replace(made[-1], names=names, losses=losses)
    return Dumped(out, {**head, way.field: elements} if way.field else elements, notes, whole=False)


def _pieces(turn: Turn, line: Line | None, segments: int) -> tuple[list[_Piece], list[Loss]]:
    """What follows the known segments, and what repair lost of it."""
    messages, state = turn.messages, b"" if line is None else line.digests[segments - 1]
    start = 0 if line is None else line.ends[segments - 1]
    cuts = [start]
    for at in range(start + turn.history.segment, len(messages)):
        if at - cuts[-1] >= turn.history.segment and parts(messages[at - 1], messages[at]):
            cuts.append(at)
    pieces: list[_Piece] = []
    for begin, end in pairwise([*cuts, len(messages)]):
        given = messages[begin:end]
        mended, lost = repaired(given)
        if lost:  # what follows may still change it
            given = messages[begin:]
            mended, lost = repaired(given)
        digests = digest.digests(mended, turn.wire, state if begin else None)
        pieces.append(_Piece(given, mended, digests, not lost))
        state = digests[-1]
        if lost:
            return pieces, [replace(loss, message=begin + (loss.message or 0)) for loss in lost]
    return pieces, []


def _made(
    way: Way[O], line: Line | None, segments: int, pieces: Sequence[_Piece], tools: Sequence[ToolSpec]
) -> tuple[list[O], Mapping[str, str], bool]:
    """The pieces made ready, the names under which tools are sent where those are not their own, and whether the known segments
    have those."""
    made = [way.make(piece.mended, [], ()) for piece in pieces]
    named = way.make((), [], tools).names
    before = {} if line is None else {name: sent for name, (number, sent) in line.names.items() if number < segments}
    if not any(map(_odd, (named, before, *[out.names for out in made]))):
        return made, {}, True
    every = dict.fromkeys([*named, *before, *[name for out in made for name in out.names]])
    names = way.make((), [], [ToolSpec(name) for name in every]).names
    if any(
        name == sent != names[name] for each in (named, *[out.names for out in made]) for name, sent in each.items()
    ):
        raise _Dependent  # one of them was recorded under a name that does not fit
    return made, names, all(names[name] == sent for name, sent in before.items())


def _segments(
    turn: Turn,
    way: Way[O],
    line: Line | None,
    segments: int,
    pieces: Sequence[_Piece],
    made: Sequence[O],
    names: Mapping[str, str],
) -> tuple[list[Segment], Sequence[Any]]:
    """The pieces → segments, and the elements of the last one where it is not settled."""
    added: list[Segment] = []
    rest: Sequence[Any] = ()
    taken: set[str] = set()
    before = first = 0 if line is None else line.counts[segments - 1]
    chains = _Chains(turn, first, pieces)
    for piece, ready in zip(pieces, made, strict=True):
        chains.before = before
        unreadable = readable(piece.mended, turn.target, ready.quirks.reads, chains.at)
        out = replace(ready, before=before, unreadable=unreadable, names=names)
        payload = way.dump(out)
        elements: Any = way.elements(payload)
        ids = frozenset([*_ids(piece.given), *out.ids.values(), *way.ids(out)])
        if type(elements) is not list or not taken.isdisjoint(ids):
            raise _Dependent
        if line is not None and any(line.ids.get(each, segments) < segments for each in ids):
            raise _Dependent
        taken |= ids
        before += len(piece.mended)
        if not piece.settled or not elements:
            if piece is not pieces[-1]:
                raise _Dependent
            rest = cast("list[Any]", elements)
            break
        head = {name: value for name, value in payload.items() if name != way.field} if way.field else {}
        try:
            data = _encode(elements)[1:-1]
        except Exception as error:  # whatever the encoder refuses is refused where it is sent
            raise _Dependent from error
        notes = _once(way.notes(cast("list[Any]", elements)))
        losses = tuple(out.losses)
        length = len(piece.mended)
        added.append(
            Segment(piece.given, length, head, data, losses, ids, tuple(ready.names), notes, piece.digests[-1])
        )
    return added, rest


class _Chains:
    """Digests of all before a message, by the wire that made an origin's prefix."""

    def __init__(self, turn: Turn, first: int, pieces: Sequence[_Piece]) -> None:
        self._turn, self._first = turn, first
        self._own = [made for piece in pieces for made in piece.digests[:-1]]
        self._others: dict[str, Sequence[str]] = {}
        self.before = 0
        """How many messages stand before those of the piece."""

    def at(self, wire: str, position: int) -> str:
        """The digest before a message of the piece."""
        position += self.before
        if wire == self._turn.wire:
            return digest.written(wire, self._own[position - self._first])
        if wire not in self._others:
            messages = repaired(self._turn.messages)[0]
            self._others[wire] = digest.signed_chain(messages, wire) if wire else digest_v1.chain(messages)
        return self._others[wire][position]


def _ids(messages: Iterable[Message]) -> Iterable[str]:
    for message in messages:
        for piece in message.content:
            if isinstance(piece, ToolCallPart | ToolResultPart):
                yield piece.id


def _odd(names: Mapping[str, str]) -> Mapping[str, str]:
    """Those that are sent as another."""
    same = all(map(is_, names, names.values()))  # as nearly always, and seen at once also of a thousand
    return {} if same else {name: sent for name, sent in names.items() if name != sent}


def _once(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))
