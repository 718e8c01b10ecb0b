"""Measures each call of a server, for metrics and logs. Contents and keys are never recorded.

Each call has an `Observed`, which its handlers fill while they work. When the call is over,
`ServerMetrics.observe` counts it for Prometheus, `log_call` writes one line, and `log_failure`
writes the errors of the server. Labels come only from the server's own names of models, so that
clients cannot create new series. Messages of errors are logged with keys removed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from dragoman.errors import KEYS, DragomanError, SettingsError
from dragoman.event import Event, MessageFinished, MessageStarted, RunError
from dragoman.logs import logger
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.result import Usage
from dragoman.serve.http.callers import fits_pattern

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
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
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
                if event.origin is not None:
                    self.cost = _compute_cost(event.origin, event.usage, event.native)
            elif type(event) is MessageStarted and event.losses:
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
    from dragoman.cost import call_cost

    try:
        cost = call_cost(origin, usage, None, native)
    except SettingsError:
        # The package with the prices is not installed.
        return None
    return None if cost is None else float(cost)


class ServerMetrics:
    """Counts the calls of one server."""

    def __init__(self, open_calls: Callable[[], int]) -> None:
        """Creates the metrics. `open_calls` returns the number of running calls."""
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
        """Counts a finished call in the server's metrics."""
        labels = (call.wire, call.purpose, call.model)
        self._calls.labels(*labels, str(call.status)).inc()
        self._seconds.labels(*labels).observe(call.seconds)
        if call.first_seconds is not None:
            self._first.labels(*labels).observe(call.first_seconds)
        if call.usage is not None:
            for unit, field in _UNITS.items():
                if count := getattr(call.usage, field):
                    self._tokens.labels(*labels, unit).inc(count)
        if call.cost:
            self._cost.labels(*labels).inc(call.cost)
        for loss in call.losses:
            self._losses.labels(*labels, loss.what.value).inc()

    def text(self) -> bytes:
        """Returns all metrics, as Prometheus reads them."""
        return generate_latest(self._registry)


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
        _describe(error),
        exc_info=traceback,
    )


def _describe(error: BaseException) -> str:
    """Describes an error and its causes on one line for the log, without keys."""
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
