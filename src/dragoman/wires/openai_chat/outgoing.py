"""What every dump of a conversation needs to know: where it goes, by which quirks, and what it could not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dragoman.ids import Rule, call_ids, fitted
from dragoman.message import Message, Origin, ToolCallPart, ToolResultPart
from dragoman.replay import Loss, readable
from dragoman.wires.openai_chat.calls import given_id
from dragoman.wires.openai_chat.quirks import Quirks

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

    def exact(self, message: Message) -> bool:
        """Whether the message goes to its own origin, so that what was odd about it is understood there."""
        return self.target is None or (message.origin is not None and message.origin.provider == self.target.provider)

    def call_id(self, position: int, place: int, call: ToolCallPart) -> str | None:
        """The id under which a call is sent. One that its provider did not give is not sent back to it (`None`)."""
        sent = given_id(call.native, call.id) if self.exact(self.messages[position]) else call.id
        return self.ids.get((position, place), sent) if sent else sent

    def name(self, name: str) -> str:
        """The name under which a tool is sent."""
        return self.names.get(name, name)


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
    if quirks.max_id_length is not None:
        ids = call_ids(messages, Rule(most=quirks.max_id_length))
        said = [p.name for m in messages for p in m.content if isinstance(p, (ToolCallPart, ToolResultPart)) and p.name]
        names = fitted(dict.fromkeys([*tools, *said]))
    reasons = readable(messages, target, quirks.reads)
    return Outgoing(messages, target, quirks, [] if losses is None else losses, reasons, ids, names)
