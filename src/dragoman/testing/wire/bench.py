"""What the checks of a wire work with: the wire, and short ways to send something through it and
back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from dragoman import wires
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.fold import close_part, fold, unfold
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Content, Message, Origin, TextPart, ThinkingPart
from dragoman.testing.check import Bench, CheckFailed, check_maker, demand
from dragoman.transport.exchange import load_exchange
from dragoman.wires import Wire

__all__ = [
    "OPERATIONS",
    "OWN",
    "SIGNATURE",
    "WireBench",
    "cut_into",
    "events_of",
    "fault_of",
    "json_of",
    "seal_of",
    "sign_by_kit",
    "text_values",
    "wire_check",
]

OPERATIONS = {
    "conversation": ("load_messages", "dump_messages"),
    "request": ("load_request", "dump_request", "dump_http"),
    "response": ("load_response", "dump_response"),
    "stream": ("decoder", "encoder"),
    "error": ("load_error", "dump_error"),
    "serving": ("routes", "stream_type", "ping", "envelope"),
    "detection": ("votes",),
}
"""What a wire can do. Each of these it does wholly, both ways, or not at all."""

SIGNATURE = "c2lnbmVkIGJ5IGRyYWdvbWFuJ3Mga2l0LCBpdCBnb2VzIGJhY2sgYnl0ZSBieSBieXRl"
OWN = Origin("conformance", "https://api.conformance.invalid/v1", "m")
"""Where the checks say that a message came from."""


class WireBench(Bench):
    """A wire on the bench.

    Args:
        wire: the wire, or its name.
        signed: a piece of thinking as its provider signs it; a signature of the usual kind, else.
        recordings: a folder of exchanges with a real server, as `transport.Recorder` writes them.
    """

    def __init__(
        self,
        wire: Wire | str,
        *,
        signed: ThinkingPart | None = None,
        recordings: Path | str | None = None,
    ) -> None:
        self.wire = wires.get(wire) if isinstance(wire, str) else wire
        self.name = str(getattr(self.wire, "name", wire))
        files = [] if recordings is None else sorted(Path(recordings).glob("*.json"))
        self.recordings = [(file.name, load_exchange(file)) for file in files]
        self.signed_by_kit = signed is None
        self.signed = signed or sign_by_kit(self.name)

    def has(self, group: str) -> bool:
        """True if the wire has all operations of a group."""
        return all(getattr(self.wire, name, None) is not None for name in OPERATIONS[group])

    def lacks(self, needs: tuple[str, ...], *, live: bool) -> str | None:  # noqa: ARG002 - a wire has no server
        """See `Bench.lacks`."""
        return next(
            (f"the wire {self.name} has no {need}" for need in needs if not self.has(need)), None
        )

    def there(self, messages: Sequence[Message], **options: Any) -> tuple[Any, list[Loss]]:
        """Returns the payload of messages, as JSON has it, and the losses told."""
        losses: list[Loss] = []
        payload = self.wire.dump_messages(messages, losses=losses, **options)
        return json_of(payload, "dump_messages"), losses

    def and_back(
        self, messages: Sequence[Message], **options: Any
    ) -> tuple[list[Message], list[Loss]]:
        """Returns what comes back of messages, and the losses told."""
        payload, losses = self.there(messages, **options)
        return self.wire.load_messages(payload), losses

    def whole(self, message: Message) -> Json:
        """Returns the whole response that says a model's message."""
        return json_of(
            self.wire.dump_response(events_of(message), id="r1", model="m"), "dump_response"
        )

    def read_whole(self, message: Message, **options: Any) -> list[Event]:
        """Returns the events that are read of a model's message when it is written as a whole
        response."""
        return list(self.wire.load_response(self.whole(message), **options))

    def read_stream(self, message: Message, **options: Any) -> list[Event]:
        """Returns the events that are read of a model's message when it is written as a stream."""
        return self.decode([self.stream(events_of(message))], **options)

    def stream(self, events: Iterable[Event]) -> bytes:
        """Returns the streamed response that tells of events."""
        encoder = self.wire.encoder(id="r1", model="m")
        return b"".join([*[encoder.feed(event) for event in events], encoder.close()])

    def decode(self, pieces: Iterable[bytes], **options: Any) -> list[Event]:
        """Returns the events of a streamed response in pieces."""
        decoder = self.wire.decoder(**options)
        events: list[Event] = []
        for piece in pieces:
            events += decoder.feed(piece)
        return events + decoder.close()

    def message_of(self, events: Sequence[Event], what: str) -> Message:
        """Returns the one message that events tell of."""
        fault = fault_of(events)
        demand(fault is None, f"the events of {what} are not well-formed: {fault}")
        messages = fold(events)
        demand(len(messages) == 1, f"{what} must be one message and is {len(messages)}")
        return messages[0]


wire_check = check_maker(WireBench, "wire ")
"""Makes a check of a function on a wire's bench. `needs`: groups of `OPERATIONS`."""


def sign_by_kit(wire: str) -> ThinkingPart:
    """Returns a piece of thinking with a signature of the usual kind."""
    return ThinkingPart("Let me look.", {wire: {"signature": SIGNATURE}})


def events_of(message: Message, piece: int = 5) -> list[Event]:
    """Returns the events of a model's message as a stream has them: its deltas in small pieces."""
    events: list[Event] = []
    for event in unfold([message.replace(id=message.id or "m1")]):
        if isinstance(event, PartDelta):
            deltas = [
                event.delta[start : start + piece] for start in range(0, len(event.delta), piece)
            ]
            events += [PartDelta(event.message_id, event.index, delta) for delta in deltas]
        else:
            events.append(event)
    return events


def json_of(value: Any, what: str) -> Any:
    """Returns a value as it is after a way through JSON.

    Raises:
        CheckFailed: it cannot be written as JSON.
    """
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError) as error:
        raise CheckFailed(f"{what} gives what cannot be written as JSON: {error}") from error


def cut_into(data: bytes, size: int) -> Iterator[bytes]:
    """Returns bytes in pieces of that size."""
    return (data[start : start + size] for start in range(0, len(data), size))


def seal_of(signed: ThinkingPart, wire: str) -> str:
    """Returns the longest text of what signs it."""
    return max(text_values((signed.native or {}).get(wire)), key=len, default=signed.text)


def text_values(value: Any) -> list[str]:
    """Returns all texts in a value of JSON, keys aside."""
    match value:
        case str():
            return [value]
        case dict():
            within = list(cast("Json", value).values())
        case list() | tuple():
            within = list(cast("list[Any]", value))
        case _:
            within = list[Any]()
    return [text for inner in within for text in text_values(inner)]


def fault_of(events: Iterable[Event], *, spoilt: bool = False) -> str | None:
    """Returns the first thing that is wrong with a stream of events, in words, or None.

    `spoilt`: they come of spoilt bytes, so that the end of a part may say something else than its
    deltas.
    """
    messages: set[str] = set()
    closed_messages: set[str] = set()
    open_parts: dict[tuple[str, int], tuple[Content, list[str | bytes]]] = {}
    closed_parts: set[tuple[str, int]] = set()
    for event in events:
        match event:
            case MessageStarted(message_id=id_):
                if id_ in messages:
                    return f"the message {id_!r} is started twice"
                messages.add(id_)
            case PartStarted(message_id=id_, index=index, part=part):
                if id_ not in messages or id_ in closed_messages:
                    return f"a part is started in the message {id_!r}, which is not open"
                if (id_, index) in open_parts or (id_, index) in closed_parts:
                    return f"part {index} of the message {id_!r} is started twice"
                open_parts[id_, index] = (part, [])
            case PartDelta(message_id=id_, index=index, delta=delta):
                if (id_, index) not in open_parts:
                    return f"a delta is for part {index} of the message {id_!r}, which is not open"
                open_parts[id_, index][1].append(delta)
            case PartFinished(message_id=id_, index=index, part=part):
                if (id_, index) in closed_parts and isinstance(part, ThinkingPart):
                    # an amended signature
                    continue
                if (id_, index) not in open_parts:
                    return f"part {index} of the message {id_!r} is finished and was not open"
                opened, deltas = open_parts.pop((id_, index))
                closed_parts.add((id_, index))
                if not spoilt and _text(part) != _text(close_part(opened, deltas)):
                    return f"the deltas of part {index} of the message {id_!r} are not its text"
            case MessageFinished(message_id=id_):
                if id_ not in messages or id_ in closed_messages:
                    return f"the message {id_!r} is finished and was not open"
                if unfinished := [index for message, index in open_parts if message == id_]:
                    return f"the message {id_!r} is finished while its parts {unfinished} are open"
                closed_messages.add(id_)
            case _:
                pass
    if unfinished := messages - closed_messages:
        return f"the messages {sorted(unfinished)} are never finished"
    return None


def _text(part: Content | None) -> str:
    return part.text if isinstance(part, TextPart | ThinkingPart) else ""
