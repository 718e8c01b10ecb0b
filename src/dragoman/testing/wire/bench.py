"""`WireBench`, which the checks of a wire work with, and helpers that send messages through a wire
and back."""

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
from dragoman.testing.check import Bench, CheckFailed, check_maker, require
from dragoman.transport.exchange import load_exchange
from dragoman.wires import Wire

__all__ = [
    "OPERATIONS",
    "ORIGIN",
    "SIGNATURE",
    "WireBench",
    "split_bytes",
    "make_stream_events",
    "find_fault",
    "find_lists",
    "to_text",
    "round_trip_json",
    "find_signature",
    "make_signed_thinking",
    "list_texts",
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
"""Groups of a wire's functions, by name. A wire has all functions of a group or none."""

SIGNATURE = "c2lnbmVkIGJ5IGRyYWdvbWFuJ3Mga2l0LCBpdCBnb2VzIGJhY2sgYnl0ZSBieSBieXRl"
ORIGIN = Origin("conformance", "https://api.conformance.invalid/v1", "m")
"""The origin of the checks' model messages."""


class WireBench(Bench):
    """Runs a wire's functions for the checks.

    Args:
        wire: the wire, or its name.
        signed: thinking as the wire's provider signs it; by default thinking with a `signature`
            field.
        recordings: a folder of exchanges with a real server, as `transport.Recorder` writes them.
    """

    def __init__(
        self,
        wire: Wire | str,
        *,
        signed: ThinkingPart | None = None,
        recordings: Path | str | None = None,
    ) -> None:
        """Creates the bench of a wire's checks. `signed`: the wire signs thinking."""
        self.wire = wires.get(wire) if isinstance(wire, str) else wire
        self.name = str(getattr(self.wire, "name", wire))
        files = [] if recordings is None else sorted(Path(recordings).glob("*.json"))
        self.recordings = [(file.name, load_exchange(file)) for file in files]
        self.signed_by_kit = signed is None
        self.signed = signed or make_signed_thinking(self.name)

    def has(self, group: str) -> bool:
        """True if the wire has all functions of a group of `OPERATIONS`."""
        return all(getattr(self.wire, name, None) is not None for name in OPERATIONS[group])

    def find_skip_reason(self, needs: tuple[str, ...], *, live: bool) -> str | None:  # noqa: ARG002 - a wire has no server
        """See `Bench.lacks`."""
        return next(
            (f"the wire {self.name} has no {need}" for need in needs if not self.has(need)), None
        )

    def dump(self, messages: Sequence[Message], **options: Any) -> tuple[Any, list[Loss]]:
        """Returns the payload of messages after a JSON round trip, and the losses."""
        losses: list[Loss] = []
        payload = self.wire.dump_messages(messages, losses=losses, **options)
        return round_trip_json(payload, "dump_messages"), losses

    def round_trip(
        self, messages: Sequence[Message], **options: Any
    ) -> tuple[list[Message], list[Loss]]:
        """Returns messages dumped and loaded again, and the losses."""
        payload, losses = self.dump(messages, **options)
        return self.wire.load_messages(payload), losses

    def dump_answer(self, message: Message) -> Json:
        """Returns the whole response body for a model message."""
        return round_trip_json(
            self.wire.dump_response(make_stream_events(message), id="r1", model="m"),
            "dump_response",
        )

    def read_answer(self, message: Message, **options: Any) -> list[Event]:
        """Returns the events of a model message that was written as a whole response."""
        return list(self.wire.load_response(self.dump_answer(message), **options))

    def read_stream(self, message: Message, **options: Any) -> list[Event]:
        """Returns the events of a model message that was written as a stream."""
        return self.decode([self.encode(make_stream_events(message))], **options)

    def encode(self, events: Iterable[Event]) -> bytes:
        """Returns the streamed response of events."""
        encoder = self.wire.encoder(id="r1", model="m")
        return b"".join([*[encoder.feed(event) for event in events], encoder.close()])

    def decode(self, pieces: Iterable[bytes], **options: Any) -> list[Event]:
        """Returns the events of a streamed response that arrives in these pieces."""
        decoder = self.wire.decoder(**options)
        events: list[Event] = []
        for piece in pieces:
            events += decoder.feed(piece)
        return events + decoder.close()

    def fold_message(self, events: Sequence[Event], what: str) -> Message:
        """Returns the one message of events, and fails the check if they are malformed or have
        another number of messages."""
        fault = find_fault(events)
        require(fault is None, f"the events of {what} are not well-formed: {fault}")
        messages = fold(events)
        require(len(messages) == 1, f"{what} must be one message and is {len(messages)}")
        return messages[0]


wire_check = check_maker(WireBench, "wire ")
"""Decorator that makes a check from a function of a `WireBench`. `needs`: groups of
`OPERATIONS`."""


def make_signed_thinking(wire: str) -> ThinkingPart:
    """Returns thinking with a signature in the wire's `native` fields."""
    return ThinkingPart("Let me look.", {wire: {"signature": SIGNATURE}})


def make_stream_events(message: Message, piece: int = 5) -> list[Event]:
    """Returns the events of a model message as the bench's streams have them, with deltas of
    `piece` characters."""
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


def round_trip_json(value: Any, what: str) -> Any:
    """Returns a value that a wire wrote, encoded as JSON and decoded again.

    Raises:
        CheckFailed: it cannot be encoded as JSON.
    """
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError) as error:
        raise CheckFailed(f"{what} gives what cannot be written as JSON: {error}") from error


def split_bytes(data: bytes, size: int) -> Iterator[bytes]:
    """Returns the bytes in pieces of `size` bytes."""
    return (data[start : start + size] for start in range(0, len(data), size))


def find_signature(signed: ThinkingPart, wire: str) -> str:
    """Returns the longest text in the `native` fields of signed thinking."""
    return max(list_texts((signed.native or {}).get(wire)), key=len, default=signed.text)


def list_texts(value: Any) -> list[str]:
    """Returns all texts in what a wire wrote, a JSON value, except keys."""
    match value:
        case str():
            return [value]
        case dict():
            within = list(cast("Json", value).values())
        case list() | tuple():
            within = list(cast("list[Any]", value))
        case _:
            within = list[Any]()
    return [text for inner in within for text in list_texts(inner)]


def find_fault(events: Iterable[Event], *, corrupt: bool = False) -> str | None:
    """Returns a description of the first malformed event that a wire gave, or None if events are
    well-formed.

    `corrupt`: the events come from corrupt bytes, so the end of a part may differ from its deltas.
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
                    # Providers may amend a signature after the thinking has ended.
                    continue
                if (id_, index) not in open_parts:
                    return f"part {index} of the message {id_!r} is finished and was not open"
                opened, deltas = open_parts.pop((id_, index))
                closed_parts.add((id_, index))
                if not corrupt and _get_text(part) != _get_text(close_part(opened, deltas)):
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


def _get_text(part: Content | None) -> str:
    """Returns the text of a text or thinking part, and an empty text for other parts."""
    return part.text if isinstance(part, TextPart | ThinkingPart) else ""


def find_lists(payload: Any) -> list[list[Any]]:
    """Returns the lists in a wire's payload: the payload itself, or the lists directly in it,
    sorted by key."""
    if isinstance(payload, list):
        return [cast("list[Any]", payload)]
    fields = cast("Json", payload)
    return [fields[key] for key in sorted(fields) if isinstance(fields[key], list)]


def to_text(payload: Any) -> str:
    """Returns a payload as JSON text."""
    return msgspec.json.encode(payload).decode()
