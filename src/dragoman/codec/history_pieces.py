"""What of a conversation is not known yet, cut into pieces that tell nothing of each other and made
ready for their dump.

Each piece is repaired and digested as a conversation of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from operator import is_
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from dragoman.codec import digest
from dragoman.codec.history import DumpedRequest, History
from dragoman.codec.history_line import KnownHistory, can_cut_between
from dragoman.codec.marks import drop_waits, holds_only_waits
from dragoman.codec.outgoing import Outgoing
from dragoman.codec.replay import DigestAt, digest_lookup, find_unreadable
from dragoman.json_bytes import JsonMap
from dragoman.loss import Loss
from dragoman.message import Message, ToolCallPart, ToolResultPart
from dragoman.repair import Source, repair_with_losses
from dragoman.request import ToolSpec

__all__ = [
    "CannotCutError",
    "Link",
    "HistoryPiece",
    "Pieces",
    "DumpRules",
    "fresh_ids",
    "map_losses_to_input",
    "prepare_pieces",
    "select_renamed",
    "find_renamed_tools",
    "find_sent_messages",
    "map_losses_before_repair",
]


O = TypeVar("O", bound=Outgoing[Any])  # noqa: E741 the letter of its bound


def _nothing(_: object) -> Iterable[str]:
    return ()


class Link(msgspec.Struct, Generic[O], frozen=True, gc=False):
    """How a wire goes on from what its provider holds, in place of sending all."""

    may: Callable[[Message], bool]
    """Whether a request could go on from a message, by its looks alone."""
    find: Callable[[O], tuple[int, str] | None]
    """The newest message that a request goes on from: its position, and the id by which the
    provider knows it."""
    dump: Callable[[O, int], Any]
    """As `Way.dump`, of what follows a position alone."""


class DumpRules(msgspec.Struct, Generic[O], frozen=True, gc=False):
    """How a wire dumps a conversation."""

    make: Callable[[Sequence[Message], list[Loss], Sequence[ToolSpec]], O]
    """(messages, losses, tools) → the conversation, ready for its dump."""
    dump: Callable[[O], Any]
    """The same → the part of the body that holds it: a list, or an object with a list in
    `field`."""
    field: str = ""
    """Which field that list is; empty: it is the whole."""
    link: Link[O] | None = None
    """How it goes on from what is held; `None`: all is sent."""
    key: Hashable = None
    """What of the request the dump depends on, beside messages, tools, target and whether there is
    a link."""
    ids: Callable[[O], Iterable[str]] = _nothing
    """After the dump: ids that no later message may use again, beside those of calls."""
    notes: Callable[[Sequence[Any]], Iterable[str]] = _nothing
    """Elements of the list → what the rest of the request must know of them."""

    def elements(self, payload: Any) -> Any:
        """The list in what `dump` gave."""
        return payload[self.field] if self.field else payload

    def head(self, payload: Any) -> JsonMap:
        """What stands beside the list."""
        return (
            {name: value for name, value in payload.items() if name != self.field}
            if self.field
            else {}
        )


class CannotCutError(Exception):
    """The conversation cannot be cut, nor any that begins with it."""


class HistoryPiece(NamedTuple):
    """A part of a conversation that is to be dumped on its own."""

    given: Sequence[Message]
    """Its messages."""
    mended: Sequence[Message]
    """The same after repair."""
    digests: Sequence[bytes]
    """Of all before each message, and last of all."""
    settled: bool
    """Nothing that follows changes it."""


class Pieces(NamedTuple, Generic[O]):
    """What follows what is known."""

    known: KnownHistory
    """What stands before them."""
    pieces: Sequence[HistoryPiece]
    """In order."""
    outs: Sequence[O]
    """Each ready for its dump."""
    lost: Sequence[Loss]
    """By repair."""
    own_names: Sequence[Sequence[str]]
    """Those of tools in each."""
    names: Mapping[str, str]
    """Under which tools are sent in them, where those are not their own."""


def prepare_pieces(
    turn: DumpedRequest,
    history: History,
    way: DumpRules[O],
    known: KnownHistory,
    tools: Sequence[ToolSpec],
) -> Pieces[O]:
    """What follows what is known; all of it, where that has names of tools which they do not have
    any more.

    Raises:
        Dependent: it cannot be cut.
    """
    pieces, lost = _cut(turn, history, known)
    made = [way.make(piece.mended, [], ()) for piece in pieces]
    names = _names(way, history, known, made, tools)
    if any(names.get(name, name) != sent for name, sent in known.names.items()):
        return prepare_pieces(turn, history, way, KnownHistory(), tools)
    outs: list[O] = []
    before, chains = known.mended, _Chains(turn, known.mended, pieces)
    for piece, out in zip(pieces, made, strict=True):
        unreadable = find_unreadable(
            piece.mended, turn.target, out.quirks.reads, partial(chains.at, before)
        )
        outs.append(replace(out, before=before, unreadable=unreadable, names=names))
        before += len(piece.mended)
    return Pieces(known, pieces, outs, lost, [tuple(out.names) for out in made], names)


def fresh_ids(
    way: DumpRules[O], known: KnownHistory, piece: HistoryPiece, out: O, taken: set[str]
) -> frozenset[str]:
    """The ids of a piece that was dumped, which are added to those taken by the pieces before it.

    Raises:
        Dependent: one of them was used before.
    """
    own = [
        each.id
        for one in piece.given
        for each in one.content
        if isinstance(each, ToolCallPart | ToolResultPart)
    ]
    ids = frozenset([*own, *out.ids.values(), *way.ids(out)])
    if not taken.isdisjoint(ids) or known.has(ids):
        raise CannotCutError
    taken |= ids
    return ids


def find_renamed_tools(
    history: History, way: DumpRules[Any], tools: Sequence[ToolSpec]
) -> Mapping[str, str]:
    """Names of tools that are sent as another."""
    return history.names(tools, lambda: select_renamed(way.make((), [], tools).names))


def select_renamed(names: Mapping[str, str]) -> Mapping[str, str]:
    """Those that are sent as another."""
    same = all(
        map(is_, names, names.values())
    )  # as nearly always, and seen at once also of a thousand
    return {} if same else {name: sent for name, sent in names.items() if name != sent}


def _cut(
    turn: DumpedRequest, history: History, known: KnownHistory
) -> tuple[list[HistoryPiece], list[Loss]]:
    """What follows the known segments, and what repair lost of it."""
    messages, start, state = turn.messages, known.given, known.digest
    cuts = [start]
    for at in range(start + history.segment, len(messages)):
        if at - cuts[-1] >= history.segment and can_cut_between(messages[at - 1], messages[at]):
            cuts.append(at)
    pieces: list[HistoryPiece] = []
    for begin, end in pairwise([*cuts, len(messages)]):
        given = messages[begin:end]
        mended, lost = repair_with_losses(given)
        if lost:  # what follows may still change it
            given = messages[begin:]
            mended, lost = repair_with_losses(given)
        digests = digest.chain_digest_bytes(mended, turn.wire, state)
        pieces.append(HistoryPiece(given, mended, digests, not lost))
        state = digests[-1]
        if lost:
            return pieces, [replace(loss, message=begin + (loss.message or 0)) for loss in lost]
    return pieces, []


def _names(
    way: DumpRules[O],
    history: History,
    known: KnownHistory,
    made: Sequence[O],
    tools: Sequence[ToolSpec],
) -> Mapping[str, str]:
    """The names under which all tools are sent, where those are not their own."""
    before = known.names
    if not any(
        map(select_renamed, (before, *[out.names for out in made]))
    ) and not find_renamed_tools(history, way, tools):
        return {}
    every = [way.make((), [], tools).names, *[out.names for out in made]]
    met = dict.fromkeys([*every[0], *before, *[name for names in every[1:] for name in names]])
    names = way.make((), [], [ToolSpec(name) for name in met]).names
    if any(name == sent != names[name] for each in every for name, sent in each.items()):
        raise CannotCutError  # one of them was recorded under a name that does not fit
    return names


class _Chains:
    """Digests of all before a message, by the wire that made an origin's prefix."""

    def __init__(self, turn: DumpedRequest, first: int, pieces: Sequence[HistoryPiece]) -> None:
        self._turn, self._first = turn, first
        self._own = [made for piece in pieces for made in piece.digests[:-1]]
        self._others: DigestAt | None = None

    def at(self, before: int, wire: str, position: int) -> str:
        """The digest before a message of a piece, which so many messages stand before."""
        if wire == self._turn.wire:
            return digest.format_prefix(wire, self._own[before + position - self._first])
        if self._others is None:
            self._others = digest_lookup(repair_with_losses(self._turn.messages)[0])
        return self._others(wire, before + position)


def find_sent_messages(given: Sequence[Message]) -> tuple[Sequence[Message], Sequence[int]]:
    """The messages that are a part of the conversation, and where each stands in what was given."""
    sent = drop_waits(given)
    if len(sent) == len(given):
        return given, range(len(given))
    return sent, [place for place, message in enumerate(given) if not holds_only_waits(message)]


def map_losses_before_repair(
    losses: Iterable[Loss], sources: Sequence[Source] | None
) -> list[Loss]:
    """Losses of a repaired conversation, where they stood before the repair; without those of what
    repair made up. `sources`: as `repair.traced` has them."""
    if sources is None:
        return list(losses)
    return [placed for loss in losses if (placed := _unrepaired(loss, sources)) is not None]


def map_losses_to_input(losses: Iterable[Loss], places: Sequence[int]) -> list[Loss]:
    """Losses of what is sent, where they stand in what was given."""
    return [
        loss
        if loss.message is None or places[loss.message] == loss.message
        else replace(loss, message=places[loss.message])
        for loss in losses
    ]


def _unrepaired(loss: Loss, sources: Sequence[Source]) -> Loss | None:
    if loss.message is None:
        return loss
    source = sources[loss.message]
    if loss.part is None:
        return None if source.message is None else replace(loss, message=source.message)
    stood = source.parts[loss.part]
    return None if stood is None else replace(loss, message=stood[0], part=stood[1])
