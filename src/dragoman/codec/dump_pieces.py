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
from dragoman.codec.dump_cache import DumpedRequest, History
from dragoman.codec.marks import drop_waits, holds_only_waits
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.sent_history import KnownHistory, can_cut_at
from dragoman.codec.signature_check import DigestAt, digest_lookup, find_unreadable
from dragoman.json_bytes import JsonMap
from dragoman.loss import Loss
from dragoman.message import Message, ToolCallPart, ToolResultPart
from dragoman.repair import repair_with_losses
from dragoman.request import ToolSpec

__all__ = [
    "CannotCutError",
    "Link",
    "HistoryPiece",
    "Pieces",
    "DumpRules",
    "fresh_ids",
    "prepare_pieces",
    "select_renamed",
    "find_renamed_tools",
    "find_sent_messages",
]


O = TypeVar("O", bound=Outgoing[Any])  # noqa: E741 the letter of its bound


def _nothing(_: object) -> Iterable[str]:
    return ()


class Link(msgspec.Struct, Generic[O], frozen=True, gc=False):
    """How a wire goes on from what its provider holds, in place of sending all."""

    may: Callable[[Message], bool]
    """True if a request could go on from a message, by its looks alone."""
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
        """Returns the list in a dumped payload."""
        return payload[self.field] if self.field else payload

    def head(self, payload: Any) -> JsonMap:
        """Returns the fields of the dumped conversation beside the list of its messages."""
        if self.field:
            return {name: value for name, value in payload.items() if name != self.field}
        return {}


class CannotCutError(Exception):
    """The conversation cannot be cut, nor any that begins with it."""


class HistoryPiece(NamedTuple):
    """A part of a conversation that is to be dumped on its own."""

    messages: Sequence[Message]
    """Its messages."""
    mended: Sequence[Message]
    """The same after repair."""
    digests: Sequence[bytes]
    """Of all before each message, and last of all."""
    settled: bool
    """Nothing that follows changes it."""


class Pieces(NamedTuple, Generic[O]):
    """What follows what is known."""

    known_history: KnownHistory
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
    known_history: KnownHistory,
    tools: Sequence[ToolSpec],
) -> Pieces[O]:
    """Returns the pieces that follow what is known, prepared for their dump; all of the
    conversation if a tool was sent under a name that it no longer has.

    Raises:
        Dependent: it cannot be cut.
    """
    pieces, lost = _cut_unknown_pieces(turn, history, known_history)
    drafts = [way.make(piece.mended, [], ()) for piece in pieces]
    names = _find_tool_names(way, history, known_history, drafts, tools)
    # The JSON that is known holds the old name, so none of it can be used.
    if any(names.get(name, name) != sent_name for name, sent_name in known_history.names.items()):
        return prepare_pieces(turn, history, way, KnownHistory(), tools)
    outs: list[O] = []
    before, chains = known_history.mended, _Chains(turn, known_history.mended, pieces)
    for piece, out in zip(pieces, drafts, strict=True):
        unreadable = find_unreadable(
            piece.mended, turn.target, out.quirks.reads, partial(chains.at, before)
        )
        outs.append(replace(out, before=before, unreadable=unreadable, names=names))
        before += len(piece.mended)
    return Pieces(known_history, pieces, outs, lost, [tuple(out.names) for out in drafts], names)


def fresh_ids(
    way: DumpRules[O], known_history: KnownHistory, piece: HistoryPiece, out: O, taken: set[str]
) -> frozenset[str]:
    """Returns the ids of a piece of the dump and adds them to `taken`, the ids of the pieces before
    it.

    Raises:
        Dependent: one of them was used before.
    """
    own_ids = [
        part.id
        for message in piece.messages
        for part in message.content
        if isinstance(part, ToolCallPart | ToolResultPart)
    ]
    ids = frozenset([*own_ids, *out.ids.values(), *way.ids(out)])
    # A wire makes a repeated id unique by what stands before it, which a piece does not know.
    if not taken.isdisjoint(ids) or known_history.has(ids):
        raise CannotCutError
    taken |= ids
    return ids


def find_renamed_tools(
    history: History, way: DumpRules[Any], tools: Sequence[ToolSpec]
) -> Mapping[str, str]:
    """Returns for the pieces of a dump the names of tools that are sent as another."""
    return history.names(tools, lambda: select_renamed(way.make((), [], tools).names))


def select_renamed(names: Mapping[str, str]) -> Mapping[str, str]:
    """Returns for the pieces of a dump the tool names that are sent under another name."""
    # As nearly always, and seen at once also of a thousand.
    same = all(map(is_, names, names.values()))
    if same:
        return {}
    return {name: sent_name for name, sent_name in names.items() if name != sent_name}


def _cut_unknown_pieces(
    turn: DumpedRequest, history: History, known_history: KnownHistory
) -> tuple[list[HistoryPiece], list[Loss]]:
    """Returns the pieces that follow the known segments, and what repair lost of them."""
    messages, start, state = turn.messages, known_history.given, known_history.digest
    cuts = [start]
    for position in range(start + history.segment, len(messages)):
        if position - cuts[-1] >= history.segment and can_cut_at(messages, position):
            cuts.append(position)
    pieces: list[HistoryPiece] = []
    for begin, end in pairwise([*cuts, len(messages)]):
        piece_messages = messages[begin:end]
        mended, lost = repair_with_losses(piece_messages)
        # What follows may still change it, such as a result that comes later: it takes in the rest.
        if lost:
            piece_messages = messages[begin:]
            mended, lost = repair_with_losses(piece_messages)
        digests = digest.chain_digest_bytes(mended, turn.wire, state)
        pieces.append(HistoryPiece(piece_messages, mended, digests, not lost))
        state = digests[-1]
        if lost:
            return pieces, [replace(loss, message=begin + (loss.message or 0)) for loss in lost]
    return pieces, []


def _find_tool_names(
    way: DumpRules[O],
    history: History,
    known_history: KnownHistory,
    drafts: Sequence[O],
    tools: Sequence[ToolSpec],
) -> Mapping[str, str]:
    """Returns the names under which the tools of all dumped pieces are sent, where those are not
    their own."""
    before = known_history.names
    if not any(
        map(select_renamed, (before, *[out.names for out in drafts]))
    ) and not find_renamed_tools(history, way, tools):
        return {}
    every = [way.make((), [], tools).names, *[out.names for out in drafts]]
    met = dict.fromkeys([*every[0], *before, *[name for names in every[1:] for name in names]])
    names = way.make((), [], [ToolSpec(name) for name in met]).names
    # One of them was recorded under a name that does not fit.
    if any(_is_overruled(sent_names, names) for sent_names in every):
        raise CannotCutError
    return names


def _is_overruled(sent_names: Mapping[str, str], names: Mapping[str, str]) -> bool:
    """True if `names` change a name that a dumped piece on its own sends as it is."""
    return any(name == sent_name != names[name] for name, sent_name in sent_names.items())


class _Chains:
    """Digests of all before a message, by the wire that made an origin's prefix."""

    def __init__(self, turn: DumpedRequest, first: int, pieces: Sequence[HistoryPiece]) -> None:
        self._turn, self._first = turn, first
        self._own = [digest_before for piece in pieces for digest_before in piece.digests[:-1]]
        self._others: DigestAt | None = None

    def at(self, before: int, wire: str, position: int) -> str:
        """Returns the digest before a message of a piece. `before`: the number of messages before
        the piece."""
        if wire == self._turn.wire:
            return digest.format_prefix(wire, self._own[before + position - self._first])
        if self._others is None:
            self._others = digest_lookup(repair_with_losses(self._turn.messages)[0])
        return self._others(wire, before + position)


def find_sent_messages(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[int]]:
    """Returns the messages that belong to the dumped conversation, and the position of each among
    all."""
    sent_messages = drop_waits(messages)
    if len(sent_messages) == len(messages):
        return messages, range(len(messages))
    return sent_messages, [
        position for position, message in enumerate(messages) if not holds_only_waits(message)
    ]
