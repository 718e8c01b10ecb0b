"""What every dump of a conversation needs to know: where it goes, by which quirks, and what it could not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.codec.ids import call_ids, fitted
from dragoman.codec.replay import readable
from dragoman.loss import Loss
from dragoman.message import Content, Message, Origin, ToolCallPart, ToolResultPart
from dragoman.request import ToolSpec
from dragoman.wires.mistral.calls import given_id
from dragoman.wires.mistral.chunks import dump_chunk, unsaid
from dragoman.wires.mistral.quirks import OWN, Quirks

__all__ = ["Outgoing", "outgoing"]


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """One conversation on its way out."""

    messages: Sequence[Message]
    target: Origin | None
    quirks: Quirks
    losses: list[Loss]
    reasons: list[str | None]
    """For each message why its signed content may not go along; `None`: it may."""
    ids: Mapping[tuple[int, int], str]
    names: Mapping[str, str]

    def lose(self, position: int | None, part: int | None, what: str, why: str) -> None:
        """Notes something that is left out or changed. `position`: of the message; `None`: it concerns the request."""
        self.losses.append(Loss(position, part, what, why))

    def chunk(self, position: int, place: int, piece: Content) -> dict[str, Any] | None:
        """The chunk that says a piece; `None` where there is none. What it does not say is noted."""
        chunk = dump_chunk(piece)
        if chunk is not None and (lost := unsaid(piece, chunk)) is not None:
            self.lose(position, place, *lost)
        return chunk

    def exact(self, message: Message) -> bool:
        """Whether the message goes to its own origin, so that what was odd about it is understood there."""
        return self.target is None or (message.origin is not None and message.origin.provider == self.target.provider)

    def call_id(self, position: int, place: int, call: ToolCallPart) -> str | None:
        """The id under which a call is sent. One that its provider did not give is not sent back to it (`None`)."""
        given = given_id(call.native, call.id) if self.exact(self.messages[position]) else call.id
        return self.ids.get((position, place), call.id) if given == call.id else given

    def name(self, name: str) -> str:
        """The name under which a tool is sent."""
        return self.names.get(name, name)


def outgoing(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec] = (),
) -> Outgoing:
    """Prepares a dump. `tools`: those of the request."""
    messages, quirks = tuple(messages), quirks or Quirks()
    pieces = [piece for message in messages for piece in message.content]
    named = [*tools, *(p for p in pieces if isinstance(p, (ToolCallPart, ToolResultPart)) and p.name)]
    as_is = [one.name for one in named if target is None and "name_as_is" in OWN.form(one.native)]
    return Outgoing(
        messages,
        target,
        quirks,
        [] if losses is None else losses,
        readable(messages, target, quirks.reads),
        call_ids(messages, quirks.ids, as_is=lambda piece: target is None and "as_is" in OWN.form(piece.native)),
        fitted([one.name for one in named], quirks.names, as_is=as_is),
    )
