"""Signed thinking across a gateway that keeps nothing: what a provider must have back goes to the client sealed, in a field of the
client's own format, and comes back with its history.

Where a token stands is said by the client's wire: `dump_seal` makes the piece of content that holds one, `load_seal` finds it. A wire
without them has no room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.codec.digest import wire_of
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.loss import Loss, Lost
from dragoman.message import Content, Message, Origin, Role
from dragoman.serve.seal_marks import is_sealed
from dragoman.serve.sealed_message import is_needed, pack, restored, unpack

if TYPE_CHECKING:
    from dragoman.serve.sealer import Sealer

__all__ = ["Sealing", "open_messages", "seal_events"]

_WHY = "what was sealed for it does not open, or the message was changed"


class _Open:
    """A message that is not at its end."""

    def __init__(self, start: MessageStarted) -> None:
        self.start = start
        self.parts: dict[int, Content] = {}
        self.last = -1


class Sealing:
    """Adds a token to each message of an answer of another wire's provider, as its events pass."""

    def __init__(self, wire: Any, sealer: Sealer, owner: str = "") -> None:
        """`wire`: the client's; `owner`: id of the caller, who alone can bring the token back."""
        self._dump: Any = getattr(wire, "dump_seal", None)
        self._wire: str = wire.name
        self._sealer, self._owner = sealer, owner
        self._messages: dict[str, _Open] = {}

    def feed(self, event: Event) -> list[Event]:
        """One event → itself, and before the end of a message the piece that holds its token."""
        if type(event) is PartDelta or self._dump is None:
            return [event]
        if isinstance(event, MessageStarted) and event.role is Role.MODEL:
            self._messages[event.message_id] = _Open(event)
        elif isinstance(event, PartStarted | PartFinished) and (known := self._messages.get(event.message_id)):
            known.last = max(known.last, event.index)
            if isinstance(event, PartFinished):
                known.parts[event.index] = event.part
        elif isinstance(event, MessageDropped):
            self._messages.pop(event.message_id, None)
        elif isinstance(event, RunError):
            self._messages.clear()
        elif isinstance(event, MessageFinished) and (known := self._messages.pop(event.message_id, None)):
            return [*self._sealed(known, event), event]
        return [event]

    def _sealed(self, known: _Open, finish: MessageFinished) -> list[Event]:
        content = tuple([part for _, part in sorted(known.parts.items())])
        native = {**(known.start.native or {}), **(finish.native or {})} or None
        origin = _joined(known.start.origin, finish.origin)
        if origin is not None and wire_of(origin.prefix or "") == self._wire:
            return []  # the client has it all in its own fields
        message = Message(Role.MODEL, content, origin=origin, native=native)
        packed = pack(message) if is_needed(message) else None
        token = None if packed is None else self._sealer.seal(packed, self._owner)
        if token is None:
            return []
        piece, index = self._dump(token), known.last + 1
        return [PartStarted(finish.message_id, index, piece), PartFinished(finish.message_id, index, piece)]


def seal_events(events: Sequence[Event], wire: Any, sealer: Sealer, owner: str = "") -> list[Event]:
    """A whole answer, with the tokens of its messages (see `Sealing`)."""
    sealing = Sealing(wire, sealer, owner)
    return [sealed for event in events for sealed in sealing.feed(event)]


def open_messages(
    messages: Sequence[Message], wire: Any, sealer: Sealer | None, owner: str = ""
) -> tuple[tuple[Message, ...], list[Loss]]:
    """A client's conversation with what was sealed in it, as the providers made it, and what does not open. No token is left in it, nor what
    is left of one, so that none goes to a provider. Without a `sealer` none opens."""
    load: Any = getattr(wire, "load_seal", None)
    if load is None:
        return tuple(messages), []
    out: list[Message] = []
    losses: list[Loss] = []
    for position, message in enumerate(messages):
        found = [(place, token) for place, piece in enumerate(message.content) if (token := _token(load, piece))]
        if not found:
            out.append(message)
            continue
        places = {place for place, _ in found}
        plain = message.replace(content=tuple([each for at, each in enumerate(message.content) if at not in places]))
        opened = [_opened(plain, token, sealer, owner) for _, token in found] if message.role is Role.MODEL else []
        whole = next((each for each in opened if each is not None), None)
        if whole is None:
            losses.append(Loss(position, found[0][0], Lost.signature, _WHY))
        if whole is not None or plain.content:
            out.append(whole or plain)
    return tuple(out), losses


def _opened(message: Message, token: str, sealer: Sealer | None, owner: str) -> Message | None:
    content = None if sealer is None else sealer.open(token, owner)
    sealed = None if content is None else unpack(content)
    return None if sealed is None else restored(message, sealed)


def _token(load: Any, piece: Content) -> str | None:
    token = load(piece)
    return token if isinstance(token, str) and is_sealed(token) else None


def _joined(start: Origin | None, end: Origin | None) -> Origin | None:
    """An origin, with what the end of the answer adds to it."""
    if start is None or end is None:
        return end or start
    known = {name: value for name in end.__struct_fields__ if (value := getattr(end, name)) is not None}
    return msgspec.structs.replace(start, **known)
