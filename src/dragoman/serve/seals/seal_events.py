"""Adds sealed tokens to the events of an answer, for a gateway that keeps nothing: what a provider
must have back, such as signed thinking, goes to the client encrypted, in a field of the client's own
format, and comes back with the client's history (`open_messages`).

Where a token stands is said by the client's wire: `dump_seal` makes the piece of content that holds
one, `load_seal` finds it. A wire without them has no room. A wire whose clients keep fields of a
call has `dump_call_seal` and `load_call_seal` too: a call goes out before its message is whole, so
its token holds what stands before it. Where the gateway says so, the id of a call holds that token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.codec.digest import parse_prefix_wire
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
from dragoman.message import Content, Message, Origin, Role, ToolCallPart
from dragoman.serve.seals.token_content import is_needed, is_sealed, pack, pack_call
from dragoman.wires.serving import get_serving
from dragoman.wires.wire import Wire

if TYPE_CHECKING:
    from dragoman.serve.seals.token_encryption import Sealer

__all__ = [
    "Sealing",
    "seal_events",
]


class _OpenMessage:
    """A message that is not at its end."""

    def __init__(self, start: MessageStarted) -> None:
        """Starts to collect a streamed message for its seal."""
        self.start = start
        self.parts: dict[int, Content] = {}
        """Those that are over, and the calls that began."""
        self.last = -1
        self.sealed_until = -1
        """The index of the last part that a call's token holds."""
        self.ids: dict[int, str] = {}
        """Index of a call → its id with its token."""


class Sealing:
    """Adds a token to each message of an answer of another wire's provider, and to its calls, as
    its events pass."""

    def __init__(self, wire: Wire, sealer: Sealer, owner: str = "", *, longest_id: int = 0) -> None:
        """Creates the filter. `wire`: the client's. `owner`: id of the caller, who alone can bring
        a token back. `longest_id`: how many characters a call's id with a token may have."""
        form = get_serving(wire).seal
        self._dump, self._load, self._dump_call = form.dump, form.load, form.dump_call
        self._wire: str = wire.name
        self._sealer, self._owner, self._longest_id = sealer, owner, longest_id
        self._is_idle = self._dump is None and self._dump_call is None and not longest_id
        self._messages: dict[str, _OpenMessage] = {}

    def feed(self, event: Event) -> list[Event]:
        """Returns an event as the client gets it: a call with its token, and before the end of a
        message the piece that holds its token."""
        if type(event) is PartDelta or self._is_idle:
            return [event]
        if isinstance(event, MessageStarted) and event.role is Role.MODEL:
            self._messages[event.message_id] = _OpenMessage(event)
        elif isinstance(event, PartStarted | PartFinished) and (
            message := self._messages.get(event.message_id)
        ):
            return [self._feed_part(message, event)]
        elif isinstance(event, MessageDropped):
            self._messages.pop(event.message_id, None)
        elif isinstance(event, RunError):
            self._messages.clear()
        elif isinstance(event, MessageFinished) and (
            message := self._messages.pop(event.message_id, None)
        ):
            return [*self._seal_message(message, event), event]
        return [event]

    def _feed_part(self, message: _OpenMessage, event: PartStarted | PartFinished) -> Event:
        """Returns an event of a part, in which a call carries its token."""
        message.last = max(message.last, event.index)
        if isinstance(event, PartFinished):
            # Kept until the message ends: its token is made of all parts.
            message.parts[event.index] = event.part
            sealed_id = message.ids.get(event.index)
            if sealed_id is None or not isinstance(event.part, ToolCallPart):
                return event
            return msgspec.structs.replace(
                event, part=msgspec.structs.replace(event.part, id=sealed_id)
            )
        if not isinstance(event.part, ToolCallPart) or event.part.run_by == "provider":
            return event
        message.parts[event.index] = event.part
        token = self._make_call_token(message, event.index)
        if token is None:
            return event
        return msgspec.structs.replace(event, part=self._attach_token(token, message, event))

    def _make_call_token(self, message: _OpenMessage, index: int) -> str | None:
        """Returns the token of a call: it holds the message so far, from the call before it that
        has a token."""
        origin = message.start.origin
        if origin is None or parse_prefix_wire(origin.prefix or "") == self._wire:
            return None
        if self._dump_call is None and not self._longest_id:
            return None
        # A call goes out before its message is whole, so its token can hold only what came before.
        before = [position for position in sorted(message.parts) if position <= index]
        content = [message.parts[position] for position in before]
        since = sum(position <= message.sealed_until for position in before)
        if not is_needed(Message(Role.MODEL, tuple(content[since:]), origin=origin)):
            return None
        packed = pack_call(origin, content, since)
        if packed is None:
            return None
        return self._sealer.seal(packed, self._owner)

    def _attach_token(self, token: str, message: _OpenMessage, event: PartStarted) -> Content:
        """Returns a call with its token: in the call's id if it fits, else in a field of the
        client's format."""
        call = event.part
        assert isinstance(call, ToolCallPart)
        # Some clients bring back nothing but ids.
        if len(call.id) + len(token) <= self._longest_id:
            message.ids[event.index], message.sealed_until = call.id + token, event.index
            return msgspec.structs.replace(call, id=call.id + token)
        if self._dump_call is None:
            return call
        message.sealed_until = event.index
        return self._dump_call(token, call)

    def _seal_message(self, unfinished: _OpenMessage, finish: MessageFinished) -> list[Event]:
        """Returns the events that add the token of a finished message, or an empty list if it needs
        none."""
        if self._dump is None:
            return []
        content = tuple([part for _, part in sorted(unfinished.parts.items())])
        native = {**(unfinished.start.native or {}), **(finish.native or {})} or None
        origin = _update_origin(unfinished.start.origin, finish.origin)
        is_own = origin is not None and parse_prefix_wire(origin.prefix or "") == self._wire
        # The client's format keeps what its own API signed in its own fields.
        if is_own and not self._is_from_a_gateway(content):
            return []
        message = Message(Role.MODEL, content, origin=origin, native=native)
        packed = pack(message) if is_needed(message) else None
        if packed is None:
            token = None
        else:
            token = self._sealer.seal(packed, self._owner)
        if token is None:
            return []
        piece, index = self._dump(token), unfinished.last + 1
        return [
            PartStarted(finish.message_id, index, piece),
            PartFinished(finish.message_id, index, piece),
        ]

    def _is_from_a_gateway(self, content: Sequence[Content]) -> bool:
        """True if a gateway that was asked has put a token of its own into an answer. No server
        takes another's token from a client, so it must come back within this one's."""
        if self._load is not None:
            tokens = [self._load(piece) for piece in content]
        else:
            tokens = []
        return any(isinstance(token, str) and is_sealed(token) for token in tokens)


def seal_events(
    events: Sequence[Event], wire: Wire, sealer: Sealer, owner: str = "", *, longest_id: int = 0
) -> list[Event]:
    """Returns a whole answer with its tokens (see `Sealing`)."""
    sealing = Sealing(wire, sealer, owner, longest_id=longest_id)
    return [sealed for event in events for sealed in sealing.feed(event)]


def _update_origin(start: Origin | None, end: Origin | None) -> Origin | None:
    """Returns the origin that an answer is sealed with: that of its start, updated with the fields
    that its end tells. Where both tell a field, the end wins."""
    if start is None or end is None:
        return end or start
    end_fields = {
        name: value for name in end.__struct_fields__ if (value := getattr(end, name)) is not None
    }
    return msgspec.structs.replace(start, **end_fields)
