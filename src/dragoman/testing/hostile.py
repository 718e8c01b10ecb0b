"""Runs malformed input through a wire, for fuzzing.

A `Case` is a mutated input with its door: the function of the wire that it goes into, such as
`load_request` or the stream decoder. `run_case` calls that function, and then does with an accepted
value what dragoman does with it: writes it on this and another wire, stores it and reads it again.
Whatever comes in, only a value or a `DragomanError` may come out; decoders return errors as events.
Any other exception is a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import NamedTuple

from dragoman import error_json, json_bytes, wires
from dragoman.errors import DragomanError, HistoryError
from dragoman.event import Event, RunError, event_from_json, event_to_json
from dragoman.fold import fold, unfold
from dragoman.message import Message
from dragoman.request import ModelRequest
from dragoman.testing.mutation import (
    ODD,
    JsonValue,
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
    """Well-formed input that mutations start from."""

    door: str
    """The function that it goes into: a key of `DOORS`."""
    sample: Sample
    """The input and all paths into it."""
    framing: str = "json"
    """`json`, or the framing of a stream (`sse`, `ndjson`), whose value is a list of events
    (`mutation.read_frames`)."""
    status: int = 200
    """The HTTP status of an error."""
    headers: dict[str, str] = {}
    """The HTTP headers of an error."""


class Case(NamedTuple):
    """One mutated input."""

    door: str
    """The function that it goes into: a key of `DOORS`."""
    wire: Wire
    """The wire that is tested."""
    other: Wire
    """Another wire, on which accepted values are written too."""
    value: JsonValue
    """JSON, the events of a stream, or bytes if those were mutated."""
    framing: str = "json"
    """`json`, `sse` or `ndjson`."""
    as_bytes: bool = False
    """True to pass JSON as bytes to functions that take both."""
    chance: int = 0
    """The seed that decides where a stream is cut."""
    status: int = 200
    """The HTTP status of an error."""
    headers: dict[str, str] = {}
    """The HTTP headers of an error."""

    @property
    def data(self) -> bytes:
        """Returns the value as it is sent."""
        if isinstance(self.value, bytes):
            return self.value
        if self.framing == "json":
            return encode_json(self.value)
        return write_frames(self.framing, self.value)


def draw_case(chance: Random, wire: Wire, other: Wire, seeds: Mapping[str, Sequence[Seed]]) -> Case:
    """Returns a mutation of a random seed. `seeds`: seeds by door."""
    door, fellow = chance.choices(list(seeds), [_WEIGHTS[door] for door in seeds], k=2)
    seed = chance.choice(seeds[door])
    fellows = [chance.choice(seeds[door]).sample, chance.choice(seeds[fellow]).sample]
    value = mutate(chance, seed.sample, fellows)
    # Some mutations lose, repeat or reorder whole events: those have paths of length one.
    if seed.framing != "json" and chance.random() < 0.4:
        value = mutate(
            chance,
            Sample(value, ((), *[(index,) for index in range(len(seed.sample.value))])),
            fellows,
        )
    headers, status = seed.headers, 200
    if seed.door == "error":
        if chance.random() < 0.5:
            texts = [value for value in ODD if isinstance(value, str)]
            odd = chance.choice((*_ODD_HEADERS, *texts))
            headers = {**headers, chance.choice(_RETRY_HEADERS): odd}
        status = chance.choice((seed.status, seed.status, 200, 400, 404, 429, 500, 503, 599))
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
    if chance.random() < 0.12:
        return case._replace(value=mutate_bytes(chance, case.data))
    return case


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
    """Returns True if the wire accepted the hostile input, False if it refused it with a
    `DragomanError`. Any other exception is a bug of the wire."""
    try:
        DOORS[case.door](case)
    except DragomanError:
        return False
    return True


Door = Callable[[Case], None]


class _RaisedByDecoderError(AssertionError):
    """A decoder raised a `DragomanError`, which it must return as an event."""


def _decode_value(case: Case) -> JsonValue:
    """Returns the JSON of a case, and refuses bytes that are not JSON as a server does."""
    if not isinstance(case.value, bytes):
        return case.value
    try:
        return json_bytes.decode(case.value)
    except ValueError as error:
        raise HistoryError(f"no JSON: {error}") from error


def _try_messages(case: Case) -> None:
    """Loads a hostile conversation."""
    loaded = case.wire.load_messages(_decode_value(case))
    with suppress(DragomanError):
        _encode(case.wire.dump_messages(loaded, losses=[]))
    _use_messages(case, loaded)


def _try_request(case: Case) -> None:
    """Loads a hostile request."""
    loaded = case.wire.load_request(_decode_value(case))
    _dump_request(case, loaded)
    for message in loaded.messages:
        _store_message(message)


def _dump_request(case: Case, request: ModelRequest) -> None:
    """Writes a hostile request on both wires."""
    for wire in (case.wire, case.other):
        with suppress(DragomanError):
            _encode(wire.dump_request(request, losses=[]))
    with suppress(DragomanError):
        case.other.dump_http(request)


def _try_response(case: Case) -> None:
    """Loads a hostile whole response. From bytes, errors must be events; a JSON value may be
    refused."""
    if not case.as_bytes and not isinstance(case.value, bytes):
        _use_events(case, case.wire.load_response(case.value))
        return
    try:
        events = case.wire.load_response(case.data)
    except DragomanError as error:
        raise _RaisedByDecoderError(f"load_response raised {error!r} for bytes") from error
    _use_events(case, events)


def _try_stream(case: Case) -> None:
    """Decodes a hostile stream, in pieces or at once. Errors must be events."""
    pieces = [case.data]
    if case.as_bytes:
        # The case's own seed, so that a finding can be repeated alone.
        pieces = split_randomly(Random(case.chance), case.data)  # noqa: S311
    decoder = case.wire.decoder()
    try:
        events = [event for piece in pieces for event in decoder.feed(piece)]
        events += decoder.close()
    except DragomanError as error:
        raise _RaisedByDecoderError(f"the decoder raised {error!r}") from error
    _use_events(case, events)


def _use_events(case: Case, events: list[Event]) -> None:
    """Uses what a hostile input became: folds, writes and stores the events of an answer."""
    _use_messages(case, fold(events))
    _dump_response(case, events)
    # Some eight events are enough: each stored event is read alone.
    for event in events[:: max(1, len(events) // 8)]:
        with suppress(DragomanError):
            event_from_json(event_to_json(event))


def _dump_response(case: Case, events: list[Event]) -> None:
    """Writes the events of a hostile input as a whole response and as a stream, on both wires."""
    for wire in (case.wire, case.other):
        with suppress(DragomanError):
            _encode(wire.dump_response(events, id="r1", model="m"))
        with suppress(DragomanError):
            encoder = wire.encoder(id="r1", model="m")
            for event in events:
                encoder.feed(event)
            encoder.close()


def _use_messages(case: Case, messages: Sequence[Message]) -> None:
    """Writes messages of a hostile input on the other wire and stores them."""
    with suppress(DragomanError):
        _encode(case.other.dump_messages(messages, losses=[]))
    for message in messages:
        _store_message(message)


def _store_message(message: Message) -> None:
    """Stores a message of a hostile input and reads it again. What was stored must be readable."""
    try:
        stored = message.to_json()
    except DragomanError:
        return
    try:
        Message.from_json(stored)
    except DragomanError as error:
        raise AssertionError(f"what was stored cannot be read again: {error}") from error


def _encode(value: JsonValue) -> None:
    """Encodes what a wire dumped as a transport does, which must not fail."""
    json_bytes.encode(value)


def _try_error(case: Case) -> None:
    """Loads an error response."""
    error = case.wire.load_error(case.status, case.headers, case.data)
    _use_error(case, error)


def _use_error(case: Case, error: DragomanError) -> None:
    """Writes the error of a hostile input on both wires, and stores it."""
    for wire in (case.wire, case.other):
        _encode(wire.dump_error(error).body)
    with suppress(DragomanError):
        stored = error_json.to_json(error)
        error_json.from_json(stored)


def _try_embeddings_request(case: Case) -> None:
    """Loads an embeddings request and writes it on both wires."""
    request = _get_embeddings(case.wire).load_request(_decode_value(case))
    for wire in (case.wire, case.other):
        if (embeddings := wires.embeddings(wire.name)) is not None:
            with suppress(DragomanError):
                _encode(embeddings.dump_request(request))
                embeddings.dump_http(request)


def _try_embeddings_response(case: Case) -> None:
    """Loads an embeddings response and writes it on both wires."""
    result = _get_embeddings(case.wire).load_response(
        case.data if case.as_bytes else _decode_value(case)
    )
    for wire in (case.wire, case.other):
        if (embeddings := wires.embeddings(wire.name)) is not None:
            with suppress(DragomanError):
                _encode(embeddings.dump_response(result))


def _get_embeddings(wire: Wire) -> EmbeddingsWire:
    """Returns the embeddings part of a wire that hostile input goes to. Raises `HistoryError` if it
    has none."""
    embeddings = wires.embeddings(wire.name)
    if embeddings is None:
        raise HistoryError(f"the wire {wire.name} has no embeddings")
    return embeddings


def _try_stored_message(case: Case) -> None:
    """Loads malformed input as a stored message, then dumps and uses it."""
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
"""The functions that input goes into, by name."""
_WEIGHTS = dict.fromkeys(DOORS, 1) | {
    "stream": 5,
    "request": 5,
    "response": 3,
    "messages": 3,
    "stored_message": 2,
}
