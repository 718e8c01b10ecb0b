"""What a server notes of each call, for its metrics and its log: never what was said, and no keys."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from dragoman.errors import SettingsError
from dragoman.event import Event, MessageFinished, MessageStarted, RunError
from dragoman.logs import logger
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.result import Usage
from dragoman.serve.http.names import fits_pattern

__all__ = ["LEFT", "Observed", "log_call", "offered_name"]

_LOG = logger("serve.calls")

LEFT = 499
"""In the place of a status: the client left before it had the answer. So proxies log it."""


class Observed:
    """One call, as far as it came."""

    def __init__(
        self, *, call_id: str, wire: str, purpose: str, method: str, path: str, started: float
    ) -> None:
        """`started`: when it came, on the loop's clock."""
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
        """What the client asks for: a name that the server offers, or a pattern of its. Empty: it came to none."""
        self.status = LEFT
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

    def note_first(self, at: float | None) -> None:
        """When the first piece of the answer went out, on the loop's clock."""
        self.first_seconds = None if at is None else at - self.started

    def add(self, events: Sequence[Event]) -> None:
        """The next events of the answer."""
        for event in events:
            if type(event) is MessageFinished:
                if event.usage is not None:
                    self.usage = event.usage
                if event.origin is not None:
                    self.cost = _cost(event.origin, event.usage, event.native)
            elif type(event) is MessageStarted and event.losses:
                self.losses = [*self.losses, *event.losses]
            elif type(event) is RunError:
                self.error = event.error


def offered_name(model: str, names: Sequence[str]) -> str:
    """What a server offers that a client's name stands for: one of its names, else its first pattern that fits (`*` stands for any
    characters), else its first name. So there are no more than it offers, whatever clients send."""
    if model in names:
        return model
    return next(
        (name for name in names if "*" in name and fits_pattern(model, name)), next(iter(names), "")
    )


def log_call(call: Observed) -> None:
    """Logs a call in one line, where somebody listens."""
    if not _LOG.isEnabledFor(logging.INFO):
        return
    usage = call.usage or Usage()
    took = f"{call.seconds:.3f} s" + (
        "" if call.first_seconds is None else f", first after {call.first_seconds:.3f} s"
    )
    tokens = (
        f", {usage.input_tokens or 0} + {usage.output_tokens or 0} tokens" if call.usage else ""
    )
    who = f" by {call.caller}" if call.caller else ""
    model = f" {call.model}" if call.model else ""
    _LOG.info(
        "%s %s %d%s%s, %s%s, %s",
        call.method,
        call.path,
        call.status,
        model,
        who,
        took,
        tokens,
        call.id,
    )


def _cost(origin: Origin, usage: Usage | None, native: Any) -> float | None:
    from dragoman.cost import call_cost

    try:
        cost = call_cost(origin, usage, None, native)
    except SettingsError:  # prices are not installed
        return None
    return None if cost is None else float(cost)
