"""Checks of what a server must know of a wire beside its formats: places, the envelope of an
answer, what keeps a stream open."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

from dragoman.codec.serving import METHODS, PURPOSES
from dragoman.json_bytes import Json
from dragoman.message import Message
from dragoman.request import ModelRequest, Settings
from dragoman.testing.check import attempt, demand, same
from dragoman.testing.samples import ANSWER, CONVERSATION, SCHEMA, TOOLS, comparable
from dragoman.testing.wire.bench import WireBench, events_of, json_of, wire_check
from dragoman.wires.serving import REQUIRED_FUNCTIONS

__all__ = [
    "envelopes_suit_their_encoders",
    "pings_say_nothing",
    "requests_go_to_a_route",
    "routes_are_complete",
]

_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@wire_check("serving", "response", "stream", look="envelope; encoder, dump_response: their fields")
def envelopes_suit_their_encoders(bench: WireBench) -> None:
    """What `envelope` gives, for any request and for none, is JSON, the same each time, and what
    `encoder` and `dump_response` take: the answer comes back from both."""
    whole = ModelRequest(
        "kit-model", CONVERSATION, TOOLS, Settings(temperature=0.5, max_tokens=9), SCHEMA, True
    )
    for request in (
        whole,
        ModelRequest("kit-model", (Message.user("Hi."),)),
        ModelRequest(""),
        None,
    ):
        of = "no request" if request is None else f"a request of {len(request.messages)} messages"
        envelopes = [
            attempt(partial(_envelope, bench, request), f"the envelope of {of}") or {}
            for _ in range(2)
        ]
        same(envelopes[0], envelopes[1], f"the envelope of {of}, made a second time,")
        json_of(envelopes[0], "envelope")
        body = bench.wire.dump_response(events_of(ANSWER), **envelopes[0])
        loaded = bench.message_of(
            bench.wire.load_response(json_of(body, "dump_response")), f"a response to {of}"
        )
        same(comparable([loaded]), comparable([ANSWER]), f"the answer to {of}")
        encoder = bench.wire.encoder(**envelopes[0])
        stream = b"".join([*map(encoder.feed, events_of(ANSWER)), encoder.close()])
        loaded = bench.message_of(bench.decode([stream]), f"a streamed response to {of}")
        same(comparable([loaded]), comparable([ANSWER]), f"the streamed answer to {of}")


@wire_check("serving", look="routes, stream_type")
def routes_are_complete(bench: WireBench) -> None:
    """`routes` are places of the API, each once: a method, a path from the root of its host, and
    what is there; a chat is among them. The wire has the functions that their purposes need.
    `stream_type` is a media type."""
    routes = list(bench.wire.routes)
    for route in routes:
        demand(route.method in METHODS, f"the method of {route} is none of {', '.join(METHODS)}")
        demand(
            route.path.startswith("/") and "://" not in route.path,
            f"the path of {route} does not begin at the root",
        )
        demand(
            route.purpose in PURPOSES, f"the purpose of {route} is none of {', '.join(PURPOSES)}"
        )
        for function in REQUIRED_FUNCTIONS.get(route.purpose, ()):
            demand(
                callable(getattr(bench.wire, function, None)),
                f"{route} needs {function}, which is not there",
            )
    places = [(route.method, route.path) for route in routes]
    demand(len(set(places)) == len(places), f"a place stands twice among {places}")
    demand(any(route.purpose == "chat" for route in routes), "no route leads to a chat")
    demand(bench.wire.stream_type.count("/") == 1, f"stream_type is {bench.wire.stream_type!r}")


@wire_check("serving", "request", look="routes; dump_http: its path")
def requests_go_to_a_route(bench: WireBench) -> None:
    """The path of a request, whole and streamed, is the end of a route that leads to a chat,
    `{model}` being the model's name: what the wire asks for is where its API stands."""
    chats = [
        route.path.replace("{model}", "kit-model")
        for route in bench.wire.routes
        if route.purpose == "chat"
    ]
    for stream in (False, True):
        http = bench.wire.dump_http(
            ModelRequest("kit-model", (Message.user("Hi."),), stream=stream)
        )
        path = http.path.partition("?")[0]
        demand(
            any(chat.endswith(path) for chat in chats),
            f"requests go to {path!r}, which ends none of the routes {chats}",
        )


@wire_check("serving", "stream", look="ping")
def pings_say_nothing(bench: WireBench) -> None:
    """`ping` between the pieces of a stream, and before the first, changes nothing of what is
    read."""
    ping: Any = bench.wire.ping
    demand(isinstance(ping, bytes), f"ping is {ping!r}")
    encoder = bench.wire.encoder(id="r1", model="m")
    pieces = [piece for piece in [*map(encoder.feed, events_of(ANSWER)), encoder.close()] if piece]
    events = bench.decode([data for piece in pieces for data in (cast("bytes", ping), piece)])
    same(
        comparable([bench.message_of(events, "a stream with pings")]),
        comparable([ANSWER]),
        "what a stream with pings says",
    )


def _envelope(bench: WireBench, request: ModelRequest | None) -> Json:
    return bench.wire.envelope(request, id="kit1", now=_NOW)
