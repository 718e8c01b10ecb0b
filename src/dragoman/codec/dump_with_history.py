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
from dragoman.codec.dump_cache import DumpedRequest, History, KnownTools
from dragoman.codec.dump_pieces import (
    CannotCutError,
    DumpRules,
    Link,
    Pieces,
    find_renamed_tools,
    fresh_ids,
    prepare_pieces,
    select_renamed,
)
from dragoman.codec.opening import count_system_messages
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.sent_history import DumpedSegment
from dragoman.codec.signature_check import digest_lookup, find_unreadable
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
    """Dumps a conversation with the history of what was sent: the JSON of its beginning comes from
    memory if the model was sent it before. `losses` grows; losses by repair come first."""
    history = None
    if turn is not None:
        history = turn.history
    if turn is not None and history is not None:
        if _is_worth_keeping(turn, history):
            key = turn.target, way.key, way.link is not None
            if not history.is_whole(turn.messages, key):
                try:
                    return _dump_remembered(turn, history, way, key, losses, tools)
                except CannotCutError:
                    history.keep_whole(turn.messages, key)
        messages, lost = repair_with_losses(turn.messages)
        # Losses by repair come first, as where the messages were repaired before.
        losses[:0] = lost
    out = _prepare_whole(history, way, messages, losses, tools)
    if turn is not None:
        digest_at = digest_lookup(messages)
        turn.prefix = digest_at(turn.wire, -1)
        out = replace(
            out, unreadable=find_unreadable(messages, turn.target, out.quirks.reads, digest_at)
        )
    payload, link_id = _dump_from_link(way, out)
    return Dumped(out, payload, _once(way.notes(way.elements(payload))), link_id)


def _is_worth_keeping(turn: DumpedRequest, history: History) -> bool:
    """True if a conversation is long enough to be remembered and not of system messages alone."""
    messages = turn.messages
    return len(messages) >= history.least and count_system_messages(messages) < len(messages)


def _dump_from_link(way: DumpRules[O], out: O) -> tuple[Any, str | None]:
    """Dumps with the history a request that goes on from a stored answer. Returns the payload, and
    the id of the answer that it goes on from; None if it is whole."""
    if way.link is not None and (link := way.link.find(out)) is not None:
        position, link_id = link
        return way.link.dump(out, position), link_id
    return way.dump(out), None


def dump_tools_with_history(
    turn: DumpedRequest | None,
    out: Outgoing[Any],
    tools: Sequence[ToolSpec | ServerTool],
    dump: Callable[[], JsonMap],
    notes: Callable[[JsonMap], Iterable[str]] = lambda _: (),
) -> tuple[JsonMap, Sequence[str]]:
    """Returns the fields of the body that hold the tools, from the history if it has them, and the
    notes for the rest of the request. A model that remembers reuses the JSON of tools that it sent
    before."""
    history = None
    if turn is not None:
        history = turn.history
    if history is None or not tools:
        fields = dump()
        return fields, _once(notes(fields))
    names = select_renamed(out.names)
    known_tools = history.tools(tools, out.target, names)
    if known_tools is not None:
        out.losses.extend(known_tools.losses)
        return known_tools.fields, known_tools.notes
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


def _prepare_whole(
    history: History | None,
    way: DumpRules[O],
    messages: Sequence[Message],
    losses: list[Loss],
    tools: Sequence[ToolSpec],
) -> O:
    """Returns the whole conversation, prepared for its dump without the history's pieces, without
    the tools if no name changes for them."""
    if history is not None and tools and not find_renamed_tools(history, way, tools):
        out = way.make(messages, losses, ())
        if not select_renamed(out.names):
            return out
    return way.make(messages, losses, tools)


def _dump_remembered(
    turn: DumpedRequest,
    history: History,
    way: DumpRules[O],
    key: Hashable,
    losses: list[Loss],
    tools: Sequence[ToolSpec],
) -> Dumped[O]:
    """Dumps a conversation: what was sent before is taken from the history, the rest is dumped and
    kept."""
    known_history = history.find(turn.messages, key)
    if way.link is not None and any(
        map(way.link.may, reversed(turn.messages[known_history.given :]))
    ):
        linked = _dump_linked(turn, history, way, way.link, (key, "linked"), losses, tools)
        if linked is not None:
            return linked
    pieces = prepare_pieces(turn, history, way, known_history, tools)
    known_history = pieces.known_history
    added, head, unsettled = _dump_segments(way, pieces)
    data = b",".join(
        [
            json_data
            for json_data in (known_history.data, *[segment.data for segment in added])
            if json_data
        ]
    )
    if added:
        history.keep(known_history, key, turn.messages, added, pieces.names)
    losses[:0] = pieces.lost
    losses += [*known_history.losses, *[loss for out in pieces.outs for loss in out.losses]]
    notes = _once(
        [
            *known_history.notes,
            *[note for segment in added for note in segment.notes],
            *way.notes(unsettled),
        ]
    )
    if data:
        elements = [msgspec.Raw(data), *unsettled]
    else:
        elements = unsettled
    return _finish_dump(turn, way, pieces, losses, head, elements, notes, None)


def _dump_segments(
    way: DumpRules[O], pieces: Pieces[O]
) -> tuple[list[DumpedSegment], JsonMap, Sequence[Any]]:
    """Dumps the pieces to segments that the history keeps. Returns them, the payload beside the
    list, and the elements of the last piece if it is not settled."""
    added: list[DumpedSegment] = []
    head, taken = pieces.known_history.head, set[str]()
    for piece, out, own_names in zip(pieces.pieces, pieces.outs, pieces.own_names, strict=True):
        payload = way.dump(out)
        elements = _find_list_elements(way, payload)
        ids = fresh_ids(way, pieces.known_history, piece, out, taken)
        if not out.before:
            head = way.head(payload)
        if not piece.settled or not elements:
            # Bytes can only be joined in order: an open piece in the middle ends the memory.
            if piece is not pieces.pieces[-1]:
                raise CannotCutError
            return added, head, elements
        try:
            # Without the brackets of the list.
            data = _encode(elements)[1:-1]
        except Exception as error:
            # Whatever the encoder refuses is refused where it is sent.
            raise CannotCutError from error
        count, losses, notes = len(piece.mended), tuple(out.losses), _once(way.notes(elements))
        added.append(
            DumpedSegment(
                piece.messages, count, head, data, losses, ids, own_names, notes, piece.digests[-1]
            )
        )
    return added, head, []


def _dump_linked(
    turn: DumpedRequest,
    history: History,
    way: DumpRules[O],
    link: Link[O],
    key: Hashable,
    losses: list[Loss],
    tools: Sequence[ToolSpec],
) -> Dumped[O] | None:
    """Dumps with the history what follows the newest message that the request can continue from;
    None if there is none. Of the messages before it, only the digest is kept."""
    pieces = prepare_pieces(turn, history, way, history.find(turn.messages, key), tools)
    while (newest_link := _find_newest_anchor(link, pieces)) is None:
        if pieces.known_history.line is None:
            return None
        pieces = prepare_pieces(turn, history, way, pieces.known_history.before_link(), tools)
    newest, position, id_ = newest_link
    added: list[DumpedSegment] = []
    elements: list[Any] = []
    head, front = pieces.known_history.head, pieces.known_history.losses
    lost, taken = list(front), set[str]()
    for number, (piece, out) in enumerate(zip(pieces.pieces, pieces.outs, strict=True)):
        begun = 0
        if not out.before:
            bare = replace(out, losses=[])
            head, front = way.head(link.dump(bare, len(out.messages) - 1)), tuple(bare.losses)
            lost, begun = list(front), len(front)
        if number >= newest:
            if number == newest:
                payload = link.dump(out, position)
            else:
                payload = way.dump(out)
            elements += _find_list_elements(way, payload)
            lost += out.losses[begun:]
        ids = fresh_ids(way, pieces.known_history, piece, out, taken)
        if piece.settled:
            segment_losses, names = () if out.before else front, pieces.own_names[number]
            counted = len(piece.mended)
            added.append(
                DumpedSegment(
                    piece.messages,
                    counted,
                    head,
                    b"",
                    segment_losses,
                    ids,
                    names,
                    (),
                    piece.digests[-1],
                    linked=number == newest,
                )
            )
    if added:
        history.keep(pieces.known_history, key, turn.messages, added, pieces.names)
    losses[:0] = pieces.lost
    losses += lost
    return _finish_dump(turn, way, pieces, losses, head, elements, _once(way.notes(elements)), id_)


def _find_newest_anchor(link: Link[O], pieces: Pieces[O]) -> tuple[int, int, str] | None:
    """Returns the newest message that a request can continue from: the number of its piece, its
    position there, and its id."""
    for number in reversed(range(len(pieces.outs))):
        if (link_point := link.find(pieces.outs[number])) is not None:
            return number, *link_point
    return None


def _finish_dump(
    turn: DumpedRequest,
    way: DumpRules[O],
    pieces: Pieces[O],
    losses: list[Loss],
    head: JsonMap,
    elements: Sequence[Any],
    notes: Sequence[str],
    link: str | None,
) -> Dumped[O]:
    """Returns the finished dump with history, and notes the digest of the conversation's prefix."""
    turn.prefix = digest.format_prefix(turn.wire, pieces.pieces[-1].digests[-1])
    out = replace(pieces.outs[-1], losses=losses)
    if way.field:
        return Dumped(out, {**head, way.field: elements}, notes, link)
    return Dumped(out, elements, notes, link)


def _find_list_elements(way: DumpRules[Any], payload: Any) -> list[Any]:
    """Returns the list of messages in a dumped payload, which the history cuts into segments.
    Raises `CannotCutError` if there is none."""
    elements = way.elements(payload)
    if type(elements) is not list:
        raise CannotCutError
    return cast("list[Any]", elements)


def _once(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))
