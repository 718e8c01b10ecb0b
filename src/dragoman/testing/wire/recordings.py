"""Checks of a wire against what a real server once sent, as `transport.Recorder` wrote it."""

from __future__ import annotations

from urllib.parse import urlsplit

from dragoman.errors import DecodeError, HistoryError, ProviderError, StreamCutError
from dragoman.event import RunError
from dragoman.fold import compact
from dragoman.request import ModelRequest
from dragoman.testing.check import Skipped, attempt, demand, same
from dragoman.testing.wire.bench import WireBench, cut_into, fault_of, json_of, wire_check
from dragoman.transport.exchange import Exchange

__all__ = ["recorded_answers_are_read", "recorded_requests_return"]


@wire_check("request", "stream", "error", look="decoder, load_error")
def recorded_answers_are_read(bench: WireBench) -> None:
    """What a real server answered is read, in well-formed events, the same in any chunking, and is
    not taken for something that is no answer; what it refused with is an error."""
    for name, exchange, _ in _load_recorded(bench):
        if exchange.status >= 400:
            events = attempt(
                lambda e=exchange: bench.wire.load_error(e.status, e.headers, e.body), name
            )
            demand(isinstance(events, ProviderError), f"the refusal in {name} is {events!r}")
            continue
        whole = attempt(lambda e=exchange: bench.decode([e.body]), name) or []
        fault = fault_of(whole)
        demand(fault is None, f"the events of {name} are not well-formed: {fault}")
        errors = [event.error for event in whole if isinstance(event, RunError)]
        unread = [error for error in errors if isinstance(error, DecodeError | StreamCutError)]
        demand(
            not unread or exchange.cut_after is not None,
            f"the answer in {name} is not read: {unread}",
        )
        if not errors:
            same(
                compact(bench.decode(cut_into(exchange.body, 7))),
                compact(whole),
                f"{name} in pieces of 7 bytes",
            )


@wire_check("request", look="load_request, dump_http")
def recorded_requests_return(bench: WireBench) -> None:
    """A request that was once sent is, loaded and dumped, the same request: nothing of it is lost,
    and nothing is added."""
    for name, exchange, loaded in _load_recorded(bench):
        body = json_of(bench.wire.dump_http(loaded).body, "dump_http")
        same(body, exchange.request_body, f"the body of the request in {name}")


def _load_recorded(bench: WireBench) -> list[tuple[str, Exchange, ModelRequest]]:
    """Returns the recorded exchanges that asked a model: name of the file, exchange, request.
    Others, such as lists of models or embeddings, went to other paths."""
    recorded: list[tuple[str, Exchange, ModelRequest]] = []
    for name, exchange in bench.recordings:
        path = urlsplit(exchange.url or "").path
        try:
            loaded = bench.wire.load_request(exchange.request_body, path=path)
        except HistoryError:
            continue
        if path.endswith(urlsplit(bench.wire.dump_http(loaded).path).path):
            recorded.append((name, exchange, loaded))
    if not recorded:
        raise Skipped(
            "there are no recordings: write some with --live --record FOLDER, and pass recordings=FOLDER"
        )
    return recorded
