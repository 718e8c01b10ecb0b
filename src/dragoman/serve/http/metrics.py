"""What Prometheus reads of a server. Its labels have as many values as there are wires, purposes, statuses and offered models."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from dragoman.serve.http.observed import Observed

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""Of what `Metrics.text` gives."""
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_UNITS = {"input": "input_tokens", "output": "output_tokens", "cache_read": "cache_read_tokens"}


class Metrics:
    """Counts the calls of one server."""

    def __init__(self, open_calls: Callable[[], int]) -> None:
        """`open_calls`: how many run."""
        self._registry = registry = CollectorRegistry()
        labels = ("wire", "purpose", "model")
        self._calls = Counter(
            "dragoman_calls", "Calls that are over.", (*labels, "status"), registry=registry
        )
        self._seconds = Histogram(
            "dragoman_call_seconds",
            "From a call to its end.",
            labels,
            buckets=_SECONDS,
            registry=registry,
        )
        self._first = Histogram(
            "dragoman_first_event_seconds",
            "From a call to the first piece of a streamed answer.",
            labels,
            buckets=_SECONDS,
            registry=registry,
        )
        self._tokens = Counter(
            "dragoman_tokens", "Tokens of answers.", (*labels, "kind"), registry=registry
        )
        self._cost = Counter(
            "dragoman_cost_dollars",
            "What answers cost, where it is known.",
            labels,
            registry=registry,
        )
        self._losses = Counter(
            "dragoman_losses",
            "What of requests was left out.",
            (*labels, "what"),
            registry=registry,
        )
        Gauge("dragoman_open_calls", "Calls that run.", registry=registry).set_function(open_calls)

    def observe(self, call: Observed) -> None:
        """A call is over."""
        labels = (call.wire, call.purpose, call.model)
        self._calls.labels(*labels, str(call.status)).inc()
        self._seconds.labels(*labels).observe(call.seconds)
        if call.first_seconds is not None:
            self._first.labels(*labels).observe(call.first_seconds)
        if call.usage is not None:
            for kind, field in _UNITS.items():
                if count := getattr(call.usage, field):
                    self._tokens.labels(*labels, kind).inc(count)
        if call.cost:
            self._cost.labels(*labels).inc(call.cost)
        for loss in call.losses:
            self._losses.labels(*labels, loss.what.value).inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)
