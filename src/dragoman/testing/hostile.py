"""Input as nobody means it, put through all that a wire does, and what it accepts through all that
is done with it.

Whatever comes in, what leaves is a value or a `DragomanError`; a decoder tells errors as events.
What was accepted is written on other wires, stored and read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

from dragoman import error_json, json_bytes, wires
from dragoman.errors import DragomanError, HistoryError
from dragoman.event import Event, RunError, event_from_json, event_to_json
from dragoman.fold import fold, unfold
from dragoman.message import Message
from dragoman.request import ModelRequest
from dragoman.testing.mutation import (
    ODD,
    Sample,
    encode_json,
    mutate,
    mutate_bytes,
    split_randomly,
    write_frames,
)
from dragoman.wires import EmbeddingsWire, Wire

__all__ = ["DOORS", "Case", "Door", "Seed", "draw_case", "run_case"]


class Seed(NamedTuple):
    """Input as it should be."""

    door: str
    """Where it goes in: a key of `DOORS`."""
    sample: Sample
    """The input, and all paths into it."""
    framing: str = "json"
    """Of a stream: `sse` or `ndjson`, its value a list of events (`mutation.frames_of`)."""
    status: int = 200
    """Of an error."""
    headers: dict[str, str] = {}
    """Of an error."""


class Case(NamedTuple):
    """Input as nobody means it."""

    door: str
    """As in `Seed`."""
    wire: Wire
    """The one that is tried."""
    other: Wire
    """What is accepted is written on this one also."""
    value: Any
    """JSON; of a stream its events; bytes, where these were changed."""
    framing: str = "json"
    """As in `Seed`."""
    as_bytes: bool = False
    """Whether JSON is handed in as bytes, where both can be."""
    chance: int = 0
    """Draws where the bytes are cut."""
    status: int = 200
    """As in `Seed`."""
    headers: dict[str, str] = {}
    """As in `Seed`."""

    @property
    def data(self) -> bytes:
        """The value as it is sent."""
        if isinstance(self.value, bytes):
            return self.value
        return (
            encode_json(self.value)
            if self.framing == "json"
            else write_frames(self.framing, self.value)
        )


def draw_case(chance: Random, wire: Wire, other: Wire, seeds: Mapping[str, Sequence[Seed]]) -> Case:
    """Returns one seed, changed. `seeds`: by their doors."""
    door, fellow = chance.choices(list(seeds), [_WEIGHTS[door] for door in seeds], k=2)
    seed = chance.choice(seeds[door])
    fellows = [chance.choice(seeds[door]).sample, chance.choice(seeds[fellow]).sample]
    value = mutate(chance, seed.sample, fellows)
    if seed.framing != "json" and chance.random() < 0.4:
        value = mutate(
            chance,
            Sample(value, ((), *[(index,) for index in range(len(seed.sample.value))])),
            fellows,
        )
    headers = seed.headers
    if seed.door == "error" and chance.random() < 0.5:
        odd = chance.choice((*_ODD_HEADERS, *[value for value in ODD if isinstance(value, str)]))
        headers = {**headers, chance.choice(_RETRY_HEADERS): odd}
    status = (
        chance.choice((seed.status, seed.status, 200, 400, 404, 429, 500, 503, 599))
        if seed.door == "error"
        else 200
    )
    case = Case(
        seed.door,
        wire,
        other,
        value,
        seed.framing,
        chance.random() < 0.5,
        chance.randrange(2**20),
        status,
        headers,
    )
    return case._replace(value=mutate_bytes(chance, case.data)) if chance.random() < 0.12 else case


_RETRY_HEADERS = (
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-reset",
    "x-ratelimit-reset-requests",
    "anthropic-ratelimit-requests-reset",
)
_ODD_HEADERS = (
    "inf",
    "nan",
    "-1",
    "1e400",
    "1m2.5s",
    "9" * 30 + "s",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "2026-01-01T00:00:00Z",
    "١",
)


def run_case(case: Case) -> bool:
    """Puts a case through its door and returns True if it was accepted. What it raises is a
    fault."""
    try:
        DOORS[case.door](case)
    except DragomanError:
        return False
    return True


Door = Callable[[Case], None]


class _RaisedByDecoderError(AssertionError):
    """A decoder raised an error of ours, which it must tell as an event."""


def _decode_value(case: Case) -> Any:
    """Returns the JSON of a case; bytes that hold none are refused as a server would."""
    if not isinstance(case.value, bytes):
        return case.value
    try:
        return json_bytes.decode(case.value)
    except ValueError as error:
        raise HistoryError(f"no JSON: {error}") from error


def _try_messages(case: Case) -> None:
    loaded = case.wire.load_messages(_decode_value(case))
    with suppress(DragomanError):
        _encode(case.wire.dump_messages(loaded, losses=[]))
    _use_messages(case, loaded)


def _try_request(case: Case) -> None:
    loaded = case.wire.load_request(_decode_value(case))
    _dump_request(case, loaded)
    for message in loaded.messages:
        _store_message(message)


def _dump_request(case: Case, request: ModelRequest) -> None:
    for wire in (case.wire, case.other):
        with suppress(DragomanError):
            _encode(wire.dump_request(request, losses=[]))
    with suppress(DragomanError):
        case.other.dump_http(request)


def _try_response(case: Case) -> None:
    if not case.as_bytes and not isinstance(case.value, bytes):
        _use_events(case, case.wire.load_response(case.value))
        return
    try:
        events = case.wire.load_response(case.data)
    except DragomanError as error:
        raise _RaisedByDecoderError(f"load_response raised {error!r} for bytes") from error
    _use_events(case, events)


def _try_stream(case: Case) -> None:
    pieces = split_randomly(Random(case.chance), case.data) if case.as_bytes else [case.data]  # noqa: S311
    decoder = case.wire.decoder()
    try:
        events = [event for piece in pieces for event in decoder.feed(piece)]
        events += decoder.close()
    except DragomanError as error:
        raise _RaisedByDecoderError(f"the decoder raised {error!r}") from error
    _use_events(case, events)


def _use_events(case: Case, events: list[Event]) -> None:
    """Does all that is done with the events of an answer."""
    _use_messages(case, fold(events))
    _dump_response(case, events)
    for event in events[:: max(1, len(events) // 8)]:
        with suppress(DragomanError):
            event_from_json(event_to_json(event))


def _dump_response(case: Case, events: list[Event]) -> None:
    for wire in (case.wire, case.other):
        with suppress(DragomanError):
            _encode(wire.dump_response(events, id="r1", model="m"))
        with suppress(DragomanError):
            encoder = wire.encoder(id="r1", model="m")
            for event in events:
                encoder.feed(event)
            encoder.close()


def _use_messages(case: Case, messages: Sequence[Message]) -> None:
    """Does all that is done with messages: writes them on another wire, and stores them."""
    with suppress(DragomanError):
        _encode(case.other.dump_messages(messages, losses=[]))
    for message in messages:
        _store_message(message)


def _store_message(message: Message) -> None:
    try:
        stored = message.to_json()
    except DragomanError:
        return
    try:
        Message.from_json(stored)
    except DragomanError as error:
        raise AssertionError(f"what was stored cannot be read again: {error}") from error


def _encode(value: Any) -> None:
    """Writes what a wire gives as JSON, as a transport does."""
    json_bytes.encode(value)


def _try_error(case: Case) -> None:
    error = case.wire.load_error(case.status, case.headers, case.data)
    _use_error(case, error)


def _use_error(case: Case, error: DragomanError) -> None:
    for wire in (case.wire, case.other):
        _encode(wire.dump_error(error).body)
    with suppress(DragomanError):
        stored = error_json.to_json(error)
        error_json.from_json(stored)


def _try_embeddings_request(case: Case) -> None:
    request = _get_embeddings(case.wire).load_request(_decode_value(case))
    for wire in (case.wire, case.other):
        if (embeddings := wires.embeddings(wire.name)) is not None:
            with suppress(DragomanError):
                _encode(embeddings.dump_request(request))
                embeddings.dump_http(request)


def _try_embeddings_response(case: Case) -> None:
    result = _get_embeddings(case.wire).load_response(
        case.data if case.as_bytes else _decode_value(case)
    )
    for wire in (case.wire, case.other):
        if (embeddings := wires.embeddings(wire.name)) is not None:
            with suppress(DragomanError):
                _encode(embeddings.dump_response(result))


def _get_embeddings(wire: Wire) -> EmbeddingsWire:
    embeddings = wires.embeddings(wire.name)
    if embeddings is None:
        raise HistoryError(f"the wire {wire.name} has no embeddings")
    return embeddings


def _try_stored_message(case: Case) -> None:
    message = Message.from_json(case.data)
    with suppress(DragomanError):
        _encode(case.wire.dump_messages([message], losses=[]))
    _use_messages(case, [message])
    _dump_response(case, unfold([message]))


def _try_stored_event(case: Case) -> None:
    event = event_from_json(case.data)
    if isinstance(event, RunError):
        _use_error(case, event.error)


def _try_stored_error(case: Case) -> None:
    _use_error(case, error_json.from_json(case.data))


DOORS: dict[str, Door] = {
    "messages": _try_messages,
    "request": _try_request,
    "response": _try_response,
    "stream": _try_stream,
    "error": _try_error,
    "embeddings_request": _try_embeddings_request,
    "embeddings_response": _try_embeddings_response,
    "stored_message": _try_stored_message,
    "stored_event": _try_stored_event,
    "stored_error": _try_stored_error,
}
"""Where input goes in."""
_WEIGHTS = dict.fromkeys(DOORS, 1) | {
    "stream": 5,
    "request": 5,
    "response": 3,
    "messages": 3,
    "stored_message": 2,
}
