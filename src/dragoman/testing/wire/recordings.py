"""Checks of a wire with recordings of a real server, as `transport.Recorder` writes them."""

from __future__ import annotations

from urllib.parse import urlsplit

from dragoman.errors import DecodeError, HistoryError, ProviderError, StreamCutError
from dragoman.event import RunError
from dragoman.fold import compact
from dragoman.request import ModelRequest
from dragoman.testing.check import Skipped, attempt, require, require_equal
from dragoman.testing.wire.bench import (
    WireBench,
    find_fault,
    round_trip_json,
    split_bytes,
    wire_check,
)
from dragoman.transport.exchange import Exchange

__all__ = ["recordings_of_answers_are_read", "recordings_of_requests_return"]


@wire_check("request", "stream", "error", look="decoder, load_error")
def recordings_of_answers_are_read(bench: WireBench) -> None:
    """A recorded answer is read into well-formed events, the same with any chunking. A recorded
    refusal is an error."""
    for name, exchange, _ in _load_recorded(bench):
        if exchange.status >= 400:
            events = attempt(
                lambda e=exchange: bench.wire.load_error(e.status, e.headers, e.body), name
            )
            require(isinstance(events, ProviderError), f"the refusal in {name} is {events!r}")
            continue
        whole = attempt(lambda e=exchange: bench.decode([e.body]), name) or []
        fault = find_fault(whole)
        require(fault is None, f"the events of {name} are not well-formed: {fault}")
        errors = [event.error for event in whole if isinstance(event, RunError)]
        unread = [error for error in errors if isinstance(error, DecodeError | StreamCutError)]
        require(
            not unread or exchange.cut_after is not None,
            f"the answer in {name} is not read: {unread}",
        )
        if not errors:
            require_equal(
                compact(bench.decode(split_bytes(exchange.body, 7))),
                compact(whole),
                f"{name} in pieces of 7 bytes",
            )


@wire_check("request", look="load_request, dump_http")
def recordings_of_requests_return(bench: WireBench) -> None:
    """A recorded request, loaded and dumped, is the same request."""
    for name, exchange, loaded in _load_recorded(bench):
        body = round_trip_json(bench.wire.dump_http(loaded).body, "dump_http")
        require_equal(body, exchange.request_body, f"the body of the request in {name}")


def _load_recorded(bench: WireBench) -> list[tuple[str, Exchange, ModelRequest]]:
    """Returns the recorded exchanges that asked a chat model: file name, exchange and request.
    Others, such as model lists or embeddings, use other paths."""
    recorded: list[tuple[str, Exchange, ModelRequest]] = []
    for name, exchange in bench.recordings:
        path = urlsplit(exchange.url or "").path
        try:
            loaded = bench.wire.load_request(exchange.request_body, path=path)
        except HistoryError:
            continue
        # Wires read unknown bodies leniently: the path decides which API it was.
        if path.endswith(urlsplit(bench.wire.dump_http(loaded).path).path):
            recorded.append((name, exchange, loaded))
    if not recorded:
        raise Skipped(
            "there are no recordings: write some with --live --record FOLDER, and pass recordings=FOLDER"
        )
    return recorded
