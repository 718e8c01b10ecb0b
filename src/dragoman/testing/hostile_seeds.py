"""Well-formed inputs that mutations start from: what a wire writes of the kit's samples, and
recordings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman import error_json, errors, wires
from dragoman.errors import DragomanError
from dragoman.event import Event, RunError, event_to_json
from dragoman.fold import fold, unfold
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Message, Usage
from dragoman.request import EmbeddingsRequest, ModelRequest, Settings
from dragoman.result import BatchEmbeddingsResult
from dragoman.testing.hostile import Seed
from dragoman.testing.mutation import JsonValue, Sample, encode_json, read_frames
from dragoman.testing.samples import ANSWER, CONVERSATION, PARTS, SCHEMA, TOOLS
from dragoman.testing.wire.bench import OPERATIONS, make_signed_thinking, make_stream_events
from dragoman.wires import Wire

__all__ = [
    "make_answer_seeds",
    "group_by_door",
    "make_seeds",
    "make_error_seed",
    "make_request_seeds",
    "make_seed",
    "shrink",
]

_LONGEST = 160
_MOST = 8
_KINDS = ("type", "role", "event")


def make_seeds(wire: Wire) -> list[Seed]:
    """Returns seeds from what a wire writes of the kit's samples, for the functions that it has."""
    has = {
        group
        for group, names in OPERATIONS.items()
        if all(callable(getattr(wire, name, None)) for name in names)
    }
    answer = ANSWER.replace(content=(make_signed_thinking(wire.name), *ANSWER.content))
    history = (*CONVERSATION, Message.user(*PARTS), answer, Message.user("So?"))
    request = ModelRequest(
        "m", history, TOOLS, Settings(temperature=0.5, max_tokens=9, seed=7, stop=("x",)), SCHEMA
    )
    seeds: list[Seed] = []
    if {"conversation", "request"} <= has:
        seeds += make_request_seeds(wire, wire.dump_request(request))
    if {"response", "stream"} <= has:
        encoder = wire.encoder(id="r1", model="m")
        stream = b"".join(
            [*[encoder.feed(event) for event in make_stream_events(answer)], encoder.close()]
        )
        seeds += make_answer_seeds(
            wire,
            msgspec.json.encode(wire.dump_response(make_stream_events(answer), id="r1", model="m")),
        )
        seeds += make_answer_seeds(wire, stream)
    if "error" in has:
        # Their texts have numbers and waits, which the wires parse.
        for error_class in (errors.RateLimitError, errors.ContextLengthError, errors.ProviderError):
            written = wire.dump_error(error_class("Limit 5, used 7. Try again in 3s."))
            seeds.append(
                make_error_seed(
                    written.status, {"retry-after": "3"}, msgspec.json.encode(written.body)
                )
            )
    everything = (Message.user(*PARTS), Message.model(*PARTS, *answer.content), *history)
    return [
        *seeds,
        *_make_embeddings_seeds(wire),
        *_make_error_seeds(),
        *_make_message_seeds(everything),
    ]


def group_by_door(seeds: Iterable[Seed]) -> dict[str, list[Seed]]:
    """Returns the seeds by door, with one seed for each shape."""
    seeds_by_door: dict[str, dict[Any, Seed]] = {}
    for seed in seeds:
        seeds_by_door.setdefault(seed.door, {}).setdefault(
            (seed.framing, _get_shape(seed.sample.value)), seed
        )
    return {door: list(shapes.values()) for door, shapes in seeds_by_door.items()}


def _make_embeddings_seeds(wire: Wire) -> list[Seed]:
    """Returns seeds of an embeddings request and response, if the wire has embeddings."""
    embeddings = wires.embeddings(wire.name)
    if embeddings is None:
        return []
    request = EmbeddingsRequest("m", ("one", "two"), "query", 3)
    result = BatchEmbeddingsResult(
        [[0.5, 1.0, -1.0], [0.0, 0.25, 1.0]], usage=Usage(input_tokens=2)
    )
    return [
        make_seed("embeddings_request", embeddings.dump_request(request)),
        make_seed("embeddings_response", embeddings.dump_response(result)),
    ]


def _make_error_seeds() -> list[Seed]:
    """Returns seeds of a stored error, alone and in an event."""
    error = errors.RateLimitError(
        "Too fast.", provider="p", status=429, body=b"{}", partial=CONVERSATION[4], retry_after=3.0
    )
    return [
        make_seed("stored_error", msgspec.json.decode(error_json.to_json(error))),
        make_seed("stored_event", msgspec.json.decode(event_to_json(RunError(error)))),
    ]


def make_request_seeds(wire: Wire, body: JsonMap, path: str = "") -> list[Seed]:
    """Returns seeds of a request body: the request, its conversation, and its messages as
    stored."""
    try:
        loaded = wire.load_request(body, path=path)
        losses: list[Loss] = []
        payload = wire.dump_messages(loaded.messages, losses=losses)
    except DragomanError:
        return []
    return [
        make_seed("request", dict(body)),
        make_seed("messages", payload),
        *_make_message_seeds(loaded.messages),
    ]


def make_answer_seeds(wire: Wire, body: bytes) -> list[Seed]:
    """Returns seeds of a response, whole or streamed: the response, its messages and its events as
    stored."""
    if body.lstrip()[:1] == b"{" and _is_json(body):
        seeds = [make_seed("response", msgspec.json.decode(body))]
    else:
        framing, frames = read_frames(body)
        seeds = [make_seed("stream", frames, framing=framing)]
    decoder = wire.decoder()
    try:
        events: list[Event] = [*decoder.feed(body), *decoder.close()]
        messages = fold(events)
    except DragomanError:
        return seeds
    return [*seeds, *_make_message_seeds(messages), *_make_event_seeds(messages)]


def make_error_seed(status: int, headers: Mapping[str, str], body: bytes) -> Seed:
    """Returns the seed of an error response. A body that is not JSON becomes a JSON text."""
    waits = {
        name: value for name, value in headers.items() if "retry" in name or "ratelimit" in name
    }
    value = body.decode()
    if _is_json(body):
        value = msgspec.json.decode(body)
    return make_seed("error", value, status=status, headers=waits)


def _is_json(body: bytes) -> bool:
    """Returns whether a recorded body that is to be a seed is JSON."""
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _make_message_seeds(messages: Iterable[Message]) -> list[Seed]:
    return [
        make_seed("stored_message", msgspec.json.decode(message.to_json())) for message in messages
    ]


def _make_event_seeds(messages: Sequence[Message]) -> list[Seed]:
    """Returns the events of messages as seeds for mutations."""
    return [
        make_seed("stored_event", msgspec.json.decode(event_to_json(event)))
        for event in unfold(messages)
    ]


def make_seed(door: str, value: JsonValue, **what: Any) -> Seed:
    """Returns a seed with a shrunken value."""
    return Seed(door, Sample.from_value(shrink(msgspec.json.decode(encode_json(value)))), **what)


def shrink(value: JsonValue) -> JsonValue:
    """Returns a smaller seed of the same shape: texts are cut, and of equal neighbours in a list
    two remain."""
    match value:
        case str():
            return value[:_LONGEST]
        case dict():
            return {key: shrink(inner) for key, inner in cast("Json", value).items()}
        case list():
            items: list[JsonValue] = []
            shapes: list[JsonValue] = []
            for item in cast("list[Any]", value):
                shape = _get_shape(item)
                if shapes[-2:] != [shape, shape]:
                    shapes.append(shape)
                    items.append(item)
            if len(items) > _MOST:
                items = items[: _MOST // 2] + items[-_MOST // 2 :]
            return [shrink(item) for item in items]
        case _:
            return value


def _get_shape(value: JsonValue) -> JsonValue:
    """Returns the shape of a seed: the types in a value by key, with the values of fields that name
    a type."""
    match value:
        case dict():
            fields = cast("Json", value)
            return tuple(
                (key, inner if key in _KINDS and isinstance(inner, str) else _get_shape(inner))
                for key, inner in fields.items()
            )
        case list():
            items = cast("list[Any]", value)
            return "[]", tuple(_get_shape(inner) for inner in items[:2])
        case _:
            return type(value).__name__
