"""Input as it should be, for changes to begin from: what a wire itself writes of the kit's samples,
and what is recorded."""

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
from dragoman.testing.mutation import Sample, frames_of, write
from dragoman.testing.samples import ANSWER, CONVERSATION, PARTS, SCHEMA, TOOLS
from dragoman.testing.wire.bench import OPERATIONS, events_of, sign_by_kit
from dragoman.wires import Wire

__all__ = ["answers", "by_door", "own_seeds", "refusal", "requests", "seed", "small"]

_LONGEST = 160
_MOST = 8
_KINDS = ("type", "role", "event")


def own_seeds(wire: Wire) -> list[Seed]:
    """Returns what a wire writes of the kit's samples, as far as it has the operations."""
    has = {
        group
        for group, names in OPERATIONS.items()
        if all(callable(getattr(wire, name, None)) for name in names)
    }
    answer = ANSWER.replace(content=(sign_by_kit(wire.name), *ANSWER.content))
    history = (*CONVERSATION, Message.user(*PARTS), answer, Message.user("So?"))
    request = ModelRequest(
        "m", history, TOOLS, Settings(temperature=0.5, max_tokens=9, seed=7, stop=("x",)), SCHEMA
    )
    seeds: list[Seed] = []
    if {"conversation", "request"} <= has:
        seeds += requests(wire, wire.dump_request(request))
    if {"response", "stream"} <= has:
        encoder = wire.encoder(id="r1", model="m")
        stream = b"".join([*[encoder.feed(event) for event in events_of(answer)], encoder.close()])
        seeds += answers(
            wire, msgspec.json.encode(wire.dump_response(events_of(answer), id="r1", model="m"))
        )
        seeds += answers(wire, stream)
    if "error" in has:
        for error_class in (errors.RateLimitError, errors.ContextLengthError, errors.ProviderError):
            written = wire.dump_error(error_class("Limit 5, used 7. Try again in 3s."))
            seeds.append(
                refusal(written.status, {"retry-after": "3"}, msgspec.json.encode(written.body))
            )
    everything = (Message.user(*PARTS), Message.model(*PARTS, *answer.content), *history)
    return [*seeds, *_own_embeddings(wire), *_of_errors(), *_stored_seeds(everything)]


def by_door(seeds: Iterable[Seed]) -> dict[str, list[Seed]]:
    """Returns the seeds by where they go in; of those that are of one shape the first."""
    seeds_by_door: dict[str, dict[Any, Seed]] = {}
    for seed in seeds:
        seeds_by_door.setdefault(seed.door, {}).setdefault(
            (seed.framing, _shape(seed.sample.value)), seed
        )
    return {door: list(shapes.values()) for door, shapes in seeds_by_door.items()}


def _own_embeddings(wire: Wire) -> list[Seed]:
    embeddings = wires.embeddings(wire.name)
    if embeddings is None:
        return []
    request = EmbeddingsRequest("m", ("one", "two"), "query", 3)
    result = BatchEmbeddingsResult(
        [[0.5, 1.0, -1.0], [0.0, 0.25, 1.0]], usage=Usage(input_tokens=2)
    )
    return [
        seed("embeddings_request", embeddings.dump_request(request)),
        seed("embeddings_response", embeddings.dump_response(result)),
    ]


def _of_errors() -> list[Seed]:
    error = errors.RateLimitError(
        "Too fast.", provider="p", status=429, body=b"{}", partial=CONVERSATION[4], retry_after=3.0
    )
    return [
        seed("stored_error", msgspec.json.decode(error_json.to_json(error))),
        seed("stored_event", msgspec.json.decode(event_to_json(RunError(error)))),
    ]


def requests(wire: Wire, body: JsonMap, path: str = "") -> list[Seed]:
    """Returns the seeds of a request's body: the request, its conversation, the messages as they
    are stored."""
    try:
        loaded = wire.load_request(body, path=path)
        losses: list[Loss] = []
        payload = wire.dump_messages(loaded.messages, losses=losses)
    except DragomanError:
        return []
    return [seed("request", dict(body)), seed("messages", payload), *_stored_seeds(loaded.messages)]


def answers(wire: Wire, body: bytes) -> list[Seed]:
    """Returns the seeds of a response, whole or streamed: itself, its message and its events as
    they are stored."""
    if body.lstrip()[:1] == b"{" and _is_json(body):
        seeds = [seed("response", msgspec.json.decode(body))]
    else:
        framing, frames = frames_of(body)
        seeds = [seed("stream", frames, framing=framing)]
    decoder = wire.decoder()
    try:
        events: list[Event] = [*decoder.feed(body), *decoder.close()]
        messages = fold(events)
    except DragomanError:
        return seeds
    return [*seeds, *_stored_seeds(messages), *_events(messages)]


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> Seed:
    """Returns the seed of an error's response; a body that is no JSON is a text of JSON."""
    waits = {
        name: value for name, value in headers.items() if "retry" in name or "ratelimit" in name
    }
    return seed(
        "error",
        msgspec.json.decode(body) if _is_json(body) else body.decode(),
        status=status,
        headers=waits,
    )


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _stored_seeds(messages: Iterable[Message]) -> list[Seed]:
    return [seed("stored_message", msgspec.json.decode(message.to_json())) for message in messages]


def _events(messages: Sequence[Message]) -> list[Seed]:
    return [
        seed("stored_event", msgspec.json.decode(event_to_json(event)))
        for event in unfold(messages)
    ]


def seed(door: str, value: Any, **what: Any) -> Seed:
    """Returns the seed of a value, made small."""
    return Seed(door, Sample.of(small(msgspec.json.decode(write(value)))), **what)


def small(value: Any) -> Any:
    """Returns a value of the same shape with less in it: texts are cut, and of neighbours in a list
    that are alike two are left."""
    match value:
        case str():
            return value[:_LONGEST]
        case dict():
            return {key: small(inner) for key, inner in cast("Json", value).items()}
        case list():
            items: list[Any] = []
            shapes: list[Any] = []
            for item in cast("list[Any]", value):
                shape = _shape(item)
                if shapes[-2:] != [shape, shape]:
                    shapes.append(shape)
                    items.append(item)
            middle = len(items) - _MOST
            return [
                small(item)
                for item in (items if middle <= 0 else items[: _MOST // 2] + items[-_MOST // 2 :])
            ]
        case _:
            return value


def _shape(value: Any) -> Any:
    match value:
        case dict():
            fields = cast("Json", value)
            return tuple(
                (key, inner if key in _KINDS and isinstance(inner, str) else _shape(inner))
                for key, inner in fields.items()
            )
        case list():
            items = cast("list[Any]", value)
            return "[]", tuple(_shape(inner) for inner in items[:2])
        case _:
            return type(value).__name__
