"""What every dump of a conversation needs to know: where it goes, by which quirks, and what it could not say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from dragoman.codec.ids import call_ids, fitted
from dragoman.codec.replay import readable
from dragoman.loss import Loss
from dragoman.message import Message, Origin, ToolCallPart
from dragoman.request import ToolSpec
from dragoman.wires.openai_responses.calls import FUNCTION, kind_of
from dragoman.wires.openai_responses.quirks import OWN, Quirks

__all__ = ["Outgoing", "outgoing"]


class Outgoing(msgspec.Struct, frozen=True):
    """One conversation on its way out."""

    messages: tuple[Message, ...]
    target: Origin | None
    quirks: Quirks
    losses: list[Loss]
    reasons: list[str | None]
    """For each message why its signed content may not go along; `None`: it may."""
    ids: Mapping[tuple[int, int], str]
    names: Mapping[str, str]
    kinds: Mapping[str, str]
    """Id of a call → the type of the item that it is sent as. Calls of another origin are functions here."""
    foreign: Collection[str]
    """Ids of those calls."""
    holds: bool
    """Whether the provider holds the items of earlier responses, so that their ids mean something to it."""
    taken: set[str]
    """Ids of the items that are sent already: none may stand in a request twice."""

    def lose(self, position: int | None, part: int | None, what: str, why: str) -> None:
        """Notes something that is left out or changed."""
        self.losses.append(Loss(position, part, what, why))


def outgoing(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec] = (),
    *,
    holds: bool = True,
) -> Outgoing:
    """Prepares a dump. `tools`: those of the request. `holds`: whether the provider was to store what it answered."""
    messages = tuple(messages)
    quirks = quirks or Quirks()
    reasons = readable(messages, target, quirks.reads)
    kinds: dict[str, str] = {}
    foreign: set[str] = set()
    named: list[ToolSpec | ToolCallPart] = [*tools]
    for message, reason in zip(messages, reasons, strict=True):
        for piece in message.content:
            if isinstance(piece, ToolCallPart) and piece.run_by != "provider":
                named.append(piece)
                kinds[piece.id] = kind_of(piece) if reason is None else FUNCTION
                (foreign.discard if reason is None else foreign.add)(piece.id)
    as_is = [one.name for one in named if "as is" in OWN.form(one.native).values()]
    return Outgoing(
        messages,
        target,
        quirks,
        [] if losses is None else losses,
        reasons,
        call_ids(messages, quirks.ids, as_is=lambda piece: OWN.form(piece.native).get("id") == "as is"),
        fitted([one.name for one in named], quirks.names, as_is=as_is),
        kinds,
        foreign,
        holds and quirks.links,
        set(),
    )
