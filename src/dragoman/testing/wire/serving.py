"""Checks of what a server needs from a wire beside its formats: routes, envelopes, pings."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

from dragoman.codec.serving import METHODS, PURPOSES
from dragoman.json_bytes import Json
from dragoman.message import Message
from dragoman.request import ModelRequest, Settings
from dragoman.testing.check import attempt, require, require_equal
from dragoman.testing.samples import ANSWER, CONVERSATION, SCHEMA, TOOLS, simplify_messages
from dragoman.testing.wire.bench import WireBench, make_stream_events, round_trip_json, wire_check
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
    """`envelope` returns JSON, the same each time, for any request and for none. `encoder` and
    `dump_response` accept it, and the answer returns from both."""
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
            attempt(partial(_make_envelope, bench, request), f"the envelope of {of}") or {}
            for _ in range(2)
        ]
        require_equal(envelopes[0], envelopes[1], f"the envelope of {of}, made a second time,")
        round_trip_json(envelopes[0], "envelope")
        body = bench.wire.dump_response(make_stream_events(ANSWER), **envelopes[0])
        loaded = bench.fold_message(
            bench.wire.load_response(round_trip_json(body, "dump_response")), f"a response to {of}"
        )
        require_equal(
            simplify_messages([loaded]), simplify_messages([ANSWER]), f"the answer to {of}"
        )
        encoder = bench.wire.encoder(**envelopes[0])
        stream = b"".join([*map(encoder.feed, make_stream_events(ANSWER)), encoder.close()])
        loaded = bench.fold_message(bench.decode([stream]), f"a streamed response to {of}")
        require_equal(
            simplify_messages([loaded]), simplify_messages([ANSWER]), f"the streamed answer to {of}"
        )


@wire_check("serving", look="routes, stream_type")
def routes_are_complete(bench: WireBench) -> None:
    """`routes` lists each endpoint once, with a method, a path from the host's root and a purpose.
    One is a chat. The wire has the functions that the purposes need. `stream_type` is a media
    type."""
    routes = list(bench.wire.routes)
    for route in routes:
        require(route.method in METHODS, f"the method of {route} is none of {', '.join(METHODS)}")
        require(
            route.path.startswith("/") and "://" not in route.path,
            f"the path of {route} does not begin at the root",
        )
        require(
            route.purpose in PURPOSES, f"the purpose of {route} is none of {', '.join(PURPOSES)}"
        )
        for function in REQUIRED_FUNCTIONS.get(route.purpose, ()):
            require(
                callable(getattr(bench.wire, function, None)),
                f"{route} needs {function}, which is not there",
            )
    places = [(route.method, route.path) for route in routes]
    require(len(set(places)) == len(places), f"a place stands twice among {places}")
    require(any(route.purpose == "chat" for route in routes), "no route leads to a chat")
    require(bench.wire.stream_type.count("/") == 1, f"stream_type is {bench.wire.stream_type!r}")


@wire_check("serving", "request", look="routes; dump_http: its path")
def requests_go_to_a_route(bench: WireBench) -> None:
    """The path of a request, streamed or not, ends a chat route, with the model's name for
    `{model}`. So the wire sends requests where its API serves them."""
    # The path of a request follows a base URL, which has the first part of the route.
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
        require(
            any(chat.endswith(path) for chat in chats),
            f"requests go to {path!r}, which ends none of the routes {chats}",
        )


@wire_check("serving", "stream", look="ping")
def pings_say_nothing(bench: WireBench) -> None:
    """`ping` between the pieces of a stream, and before the first, changes nothing that is read."""
    ping: Any = bench.wire.ping
    require(isinstance(ping, bytes), f"ping is {ping!r}")
    encoder = bench.wire.encoder(id="r1", model="m")
    pieces = [
        piece
        for piece in [*map(encoder.feed, make_stream_events(ANSWER)), encoder.close()]
        if piece
    ]
    events = bench.decode([data for piece in pieces for data in (cast("bytes", ping), piece)])
    require_equal(
        simplify_messages([bench.fold_message(events, "a stream with pings")]),
        simplify_messages([ANSWER]),
        "what a stream with pings says",
    )


def _make_envelope(bench: WireBench, request: ModelRequest | None) -> Json:
    return bench.wire.envelope(request, id="kit1", now=_NOW)
