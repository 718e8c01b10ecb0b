"""What every dump of a conversation needs to know: where it goes, by which quirks, and what it could not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.codec.ids import Rule, call_ids, fitted
from dragoman.codec.media import as_text
from dragoman.codec.replay import readable
from dragoman.loss import Loss
from dragoman.message import Content, LinkPart, Message, Origin, ToolCallPart, ToolResultPart
from dragoman.wires.openai_chat.calls import given_id
from dragoman.wires.openai_chat.content import dump_block, is_picture, unsaid
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["Outgoing", "outgoing"]


_SHORTEST = 40
"""How long an id may be for every vendor that is known."""


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

    def block(self, position: int, place: int, piece: Content) -> dict[str, Any] | None:
        """The content block that says a piece; `None` where there is none. What it does not say is noted.

        A target would take a link to something else for a broken image, and refuse the conversation.
        """
        block = dump_block(piece, self.quirks.blocks)
        if self.target and isinstance(piece, LinkPart) and block and block["type"] == "image_url":
            block = block if is_picture(piece) else {"type": "text", "text": as_text(piece)}
        if block is not None and (lost := unsaid(piece, block)) is not None:
            self.lose(position, place, *lost)
        return block

    def exact(self, message: Message) -> bool:
        """Whether the message goes to its own origin, so that what was odd about it is understood there."""
        return self.target is None or _is_of(message, self.target)

    def call_id(self, position: int, place: int, call: ToolCallPart) -> str | None:
        """The id under which a call is sent. One that its provider did not give is not sent back to it (`None`)."""
        given = given_id(call.native, call.id) if self.exact(self.messages[position]) else call.id
        return self.ids.get((position, place), call.id) if given == call.id else given

    def name(self, name: str) -> str:
        """The name under which a tool is sent."""
        return self.names.get(name, name)


def _is_of(message: Message, target: Origin | None) -> bool:
    """Whether the target's provider said it."""
    return message.origin is not None and target is not None and message.origin.provider == target.provider


def outgoing(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Sequence[str] = (),
) -> Outgoing:
    """Prepares a dump. `tools`: names of the request's tools."""
    messages = tuple(messages)
    quirks = quirks or Quirks()
    ids: dict[tuple[int, int], str] = {}
    names: dict[str, str] = {}
    limit = quirks.max_id_length
    if target is not None or limit is not None:
        own = set[int]() if limit is not None else {id(p) for m in messages if _is_of(m, target) for p in m.content}
        ids = call_ids(messages, Rule(most=limit or _SHORTEST), as_is=lambda piece: id(piece) in own)
        said = [p.name for m in messages for p in m.content if isinstance(p, (ToolCallPart, ToolResultPart)) and p.name]
        names = fitted(dict.fromkeys([*tools, *said]))
    reasons = readable(messages, target, quirks.reads)
    return Outgoing(messages, target, quirks, [] if losses is None else losses, reasons, ids, names)
