"""Measures each call of a server, for metrics and logs. Contents and keys are never recorded.

Each call has an `Observed`, which its handlers fill while they work. When the call is over,
`ServerMetrics.observe` counts it for Prometheus, `log_call` writes one line, and `log_failure`
writes the errors of the server. Labels come only from the server's own names of models, so that
clients cannot create new series. Messages of errors are logged with keys removed.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from dragoman.errors import KEYS, DragomanError
from dragoman.event import Event, MessageFinished, MessageStarted, RunError
from dragoman.logs import logger
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.result import Usage
from dragoman.serve.http.callers import fits_pattern
from dragoman.serve.http.counts import Counts, Key

__all__ = [
    "CONTENT_TYPE",
    "CLIENT_LEFT",
    "ServerMetrics",
    "Observed",
    "log_call",
    "log_failure",
    "find_offered_name",
]

_CALLS = logger("serve.calls")
_LOG = logger("serve")

CLIENT_LEFT = 499
"""Status of a call whose client left before it had the answer. nginx logs the same number."""

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""Of what `ServerMetrics.text` gives."""
_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Bounds of histograms, in seconds."""
_BOUNDS = (*[str(float(bound)) for bound in _BUCKETS], "+Inf")
_PLACES = 1 + len(_BOUNDS)
_CALLS_OVER, _SECONDS, _FIRST = (
    "dragoman_calls",
    "dragoman_call_seconds",
    "dragoman_first_event_seconds",
)
_TOKENS, _COST, _LOSSES = "dragoman_tokens", "dragoman_cost_dollars", "dragoman_losses"
_OPEN = "dragoman_open_calls"
_LABELS = ("wire", "purpose", "model")
_Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_METRICS: Mapping[str, tuple[type[_Family], str, Sequence[str]]] = {
    _CALLS_OVER: (CounterMetricFamily, "Calls that are over.", (*_LABELS, "status")),
    _SECONDS: (HistogramMetricFamily, "From a call to its end.", _LABELS),
    _FIRST: (
        HistogramMetricFamily,
        "From a call to the first piece of a streamed answer.",
        _LABELS,
    ),
    _TOKENS: (CounterMetricFamily, "Tokens of answers.", (*_LABELS, "kind")),
    _COST: (CounterMetricFamily, "What answers cost, where it is known.", _LABELS),
    _LOSSES: (CounterMetricFamily, "What of requests was left out.", (*_LABELS, "what")),
    _OPEN: (GaugeMetricFamily, "Calls that run.", ()),
}
_UNITS = {"input": "input_tokens", "output": "output_tokens", "cache_read": "cache_read_tokens"}
_LEAST = 500
"""Statuses from here on are the server's fault."""
_MOST_CHARACTERS = 2000
# or a password in an address
_SECRET = re.compile(rf"{KEYS}|(?<=://)[^/@\s]+@")
_MOST_CAUSES = 4


class Observed:
    """Measurements of one call."""

    def __init__(
        self, *, call_id: str, wire: str, purpose: str, method: str, path: str, started: float
    ) -> None:
        """Creates the measurements. `started`: when the call came, on the loop's clock."""
        self.id = call_id
        """As the client reads it in a header of the answer."""
        self.wire = wire
        """What the client speaks."""
        self.purpose = purpose
        """What it asks for: one of `PURPOSES`."""
        self.method = method
        """HTTP method."""
        self.path = path
        """Of the place, with `{model}` and `{id}`."""
        self.started = started
        """When it came, on the loop's clock."""
        self.owner = ""
        """Id of the caller."""
        self.caller = ""
        """Name of the key; empty: it has none."""
        self.model = ""
        """What the client asks for: a name that the server offers, or a pattern of its. Empty: it
        came to none."""
        self.status = CLIENT_LEFT
        """HTTP status; of a stream that broke off that of its error."""
        self.first_seconds: float | None = None
        """Until the first piece of the answer went out, of what is streamed."""
        self.seconds = 0.0
        """Until it was over."""
        self.usage: Usage | None = None
        """What the answer took."""
        self.cost: float | None = None
        """In US dollars, where it is known."""
        self.losses: Sequence[Loss] = ()
        """What of the request was left out."""
        self.error: Exception | None = None
        """With which the answer ended."""
        self._origin: Origin | None = None
        """Where the message comes from, as its start says."""

    def note_first(self, time: float | None) -> None:
        """Notes when the first piece of the answer went out, on the loop's clock."""
        if time is None:
            self.first_seconds = None
        else:
            self.first_seconds = time - self.started

    def add(self, events: Sequence[Event]) -> None:
        """Takes the next events of the answer."""
        for event in events:
            # Exact types: this runs for every event of every stream.
            if type(event) is MessageFinished:
                if event.usage is not None:
                    self.usage = event.usage
                # Most wires name the model at the start only.
                if (origin := event.origin or self._origin) is not None:
                    self.cost = _compute_cost(origin, event.usage, event.native)
            elif type(event) is MessageStarted:
                self._origin = event.origin
                if event.losses:
                    self.losses = [*self.losses, *event.losses]
            elif type(event) is RunError:
                self.error = event.error


def find_offered_name(model: str, names: Sequence[str]) -> str:
    """Returns the offered name for a client's name of a model: the same name, else the first pattern
    that matches (`*` stands for any characters), else the first name. Metrics use it as a label, so
    that clients cannot make up new ones."""
    if model in names:
        return model
    return next(
        (name for name in names if "*" in name and fits_pattern(model, name)), next(iter(names), "")
    )


def log_call(call: Observed) -> None:
    """Logs a call in one line, if the log takes that level."""
    if not _CALLS.isEnabledFor(logging.INFO):
        return
    usage = call.usage or Usage()
    duration = f"{call.seconds:.3f} s" + (
        "" if call.first_seconds is None else f", first after {call.first_seconds:.3f} s"
    )
    if call.usage:
        tokens = f", {usage.input_tokens or 0} + {usage.output_tokens or 0} tokens"
    else:
        tokens = ""
    caller = f" by {call.caller}" if call.caller else ""
    model = f" {call.model}" if call.model else ""
    _CALLS.info(
        "%s %s %d%s%s, %s%s, %s",
        call.method,
        call.path,
        call.status,
        model,
        caller,
        duration,
        tokens,
        call.id,
    )


def _compute_cost(origin: Origin, usage: Usage | None, native: Any) -> float | None:
    """Returns what a call cost in dollars, or None if the price is unknown."""
    from dragoman.cost import find_call_cost

    cost = find_call_cost(origin, usage, None, native)
    return None if cost is None else float(cost)


class ServerMetrics:
    """Counts the calls of one server, over all of its processes."""

    def __init__(self) -> None:
        """Creates the metrics of this process."""
        self._counts = Counts()
        self.set_open_calls(0)

    def share(self, descriptors: Sequence[int], index: int) -> None:
        """Counts in memory that processes share, see `Counts.share`."""
        self._counts.share(descriptors, index)
        # The process before this one may have been killed during calls.
        self.set_open_calls(0)

    def set_open_calls(self, count: int) -> None:
        """Notes how many calls run in this process."""
        self._counts.set((_OPEN,), count)

    def observe(self, call: Observed) -> None:
        """Counts a finished call in the server's metrics."""
        labels, add = (call.wire, call.purpose, call.model), self._counts.add
        add((_CALLS_OVER, *labels, str(call.status)), 1)
        self._observe_seconds((_SECONDS, *labels), call.seconds)
        if call.first_seconds is not None:
            self._observe_seconds((_FIRST, *labels), call.first_seconds)
        if call.usage is not None:
            for unit, field in _UNITS.items():
                if count := getattr(call.usage, field):
                    add((_TOKENS, *labels, unit), count)
        if call.cost:
            add((_COST, *labels), call.cost)
        for loss in call.losses:
            add((_LOSSES, *labels, loss.what.value), 1)

    def text(self) -> bytes:
        """Returns the metrics of all processes, as Prometheus reads them."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[_Family]:
        """Yields the metrics of all processes, see `prometheus_client.registry.Collector`."""
        sums = self._counts.sums(of_living=(_OPEN,))
        for name, (kind, description, labels) in _METRICS.items():
            metric = kind(name, description, labels=labels)
            for key, numbers in sums.items():
                if key[0] != name:
                    continue
                if isinstance(metric, HistogramMetricFamily):
                    metric.add_metric(key[1:], _cumulate(numbers[1:]), numbers[0])
                else:
                    metric.add_metric(key[1:], numbers[0])
            yield metric

    def _observe_seconds(self, key: Key, seconds: float) -> None:
        """Counts a duration in a histogram: its sum, then a number for each bucket."""
        self._counts.add(key, seconds, 0, _PLACES)
        self._counts.add(key, 1, 1 + bisect_left(_BUCKETS, seconds), _PLACES)


def _cumulate(counts: Sequence[float]) -> list[tuple[str, float]]:
    """Returns the buckets of a histogram: each bound with the number of values up to it."""
    return list(zip(_BOUNDS, accumulate(counts), strict=True))


def log_failure(call: Observed, error: BaseException, status: int) -> None:
    """Logs why a call ended with a status of 500 or more: class and message of the error and of its
    causes, the provider and the call's id. Keys in messages are left out. An error that is not
    dragoman's own comes with its traceback."""
    if status < _LEAST:
        return
    if isinstance(error, DragomanError):
        traceback = None
    else:
        traceback = error
    _LOG.error(
        "%s %s failed with %d%s, call %s: %s",
        call.method,
        call.path,
        status,
        f" for {call.model}" if call.model else "",
        call.id,
        _describe_failed_call(error),
        exc_info=traceback,
    )


def _describe_failed_call(error: BaseException) -> str:
    """Describes the error of a failed call and its causes, on one line for the server's log,
    without keys."""
    descriptions: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(descriptions) < _MOST_CAUSES:
        provider = getattr(cause, "provider", None)
        origin = f" from {provider}" if provider else ""
        if isinstance(cause, DragomanError):
            message = cause.message
        else:
            message = str(cause)
        descriptions.append(f"{type(cause).__name__}{origin}: {_redact(message)}")
        cause = cause.__cause__
    return ", caused by ".join(descriptions)


def _redact(text: str) -> str:
    """Returns the text on one line, without keys."""
    text = _SECRET.sub("…", text[:_MOST_CHARACTERS])
    return "".join([character if character.isprintable() else " " for character in text])
