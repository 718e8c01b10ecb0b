"""A circuit breaker: an endpoint that failed often is left alone for a while. See `Breaker`.

Each endpoint has a circuit. While it is closed, `_admit` lets every request through, and `_end`
records the times of failures. Enough of them within the window open the circuit. An open circuit
refuses requests until `open_seconds` have passed, then admits one trial: its success closes the
circuit, its failure opens it for as long again. A lock guards each of the two short methods and
is never held during a request.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from threading import Lock
from typing import Literal, get_args

from dragoman.arguments import expect, expect_callable
from dragoman.errors import (
    CircuitOpenError,
    DragomanError,
    OverloadedError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    SettingsError,
)
from dragoman.event import Event, RunError
from dragoman.logs import logger
from dragoman.message import Origin
from dragoman.model.middleware import Batches, Target
from dragoman.request import ModelRequest

__all__ = ["Breaker", "Per", "check_per", "endpoint_failed", "endpoint_key"]

_LOG = logger("model.breaker")

Per = Literal["endpoint", "model"]
"""Scope of a limit: all requests to a provider's base URL, or those to each of its models."""


def endpoint_failed(error: DragomanError) -> bool:
    """True if the breaker counts a failure: the endpoint itself does not work: no connection, a
    timeout, no capacity, or a server error."""
    # A request that a circuit blocked says nothing new about the endpoint.
    if isinstance(error, CircuitOpenError):
        return False
    # `ProviderError` itself is a 5xx; its subclasses have causes of their own.
    faults = (OverloadedError, ProviderConnectionError, ProviderTimeoutError)
    return isinstance(error, faults) or type(error) is ProviderError


def check_per(owner: str, per: str) -> None:
    """Raises `SettingsError` if the breaker's `per` is none of `Per`. `owner`: name of the
    middleware, for the message."""
    if per not in get_args(Per):
        raise SettingsError(f'{owner}(per={per!r}) is unknown; it is "endpoint" or "model"')


def endpoint_key(target: Origin, per: Per) -> Origin:
    """Returns the key under which requests to `target` are counted together."""
    return Origin(target.provider, target.endpoint, target.model if per == "model" else None)


class Breaker:
    """Middleware that stops asking an endpoint which keeps failing. After `failures` within
    `window` seconds the circuit opens for `open_seconds`. Then one trial request decides whether it
    closes again. A blocked request fails with `CircuitOpenError`.

    One value serves agents, threads and event loops at once, and what it knows it knows for all of
    them. It starts nothing: time is looked at when a request is made.

    ```python
    breaker = Breaker(failures=5, window=60.0, open_seconds=30.0)
    agent = Agent(fallback("openai:gpt-4o", "anthropic:claude-sonnet-4-5", breaker=breaker))
    ```

    Args:
        failures: so many open the circuit.
        window: seconds within which they must come.
        open_seconds: how long nothing is asked.
        per: what has a circuit of its own.
        on: which errors count; left out, those by which an endpoint does not work at all (`endpoint_failed`).
        clock: seconds, from any beginning, that never go back.
    """

    def __init__(
        self,
        *,
        failures: int = 5,
        window: float = 60.0,
        open_seconds: float = 30.0,
        per: Per = "endpoint",
        on: Callable[[DragomanError], bool] = endpoint_failed,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Creates the circuit breaker. See the class.

        Raises:
            SettingsError: a number is not above 0, or `per` is unknown.
            TypeError: an argument is of another type.
        """
        expect("failures", failures, int)
        for name, value in (
            ("failures", failures),
            ("window", window),
            ("open_seconds", open_seconds),
        ):
            expect(name, value, int, float)
            if not value > 0:
                raise SettingsError(f"Breaker({name}={value!r}) must be above 0")
        expect_callable("on", on, "a function of an error")
        expect_callable("clock", clock, "a function")
        check_per("Breaker", per)
        self._failures, self._window, self._open_seconds = failures, window, open_seconds
        self._per: Per = per
        self._counts, self._clock = on, clock
        self._circuits: dict[Origin, _Circuit] = {}
        self._lock = Lock()

    def batches(
        self, request: ModelRequest, following: Batches, target: Target
    ) -> AsyncGenerator[list[Event], None]:
        """Sends a request through the circuit breaker. See `BatchMiddleware`."""
        destination = target(request)
        # An unknown model: sending the request reports that.
        if destination is None:
            return following(request)
        return self._guard_request(request, following, destination)

    async def _guard_request(
        self, request: ModelRequest, following: Batches, destination: Origin
    ) -> AsyncGenerator[list[Event], None]:
        """Sends a request unless the breaker has opened its endpoint's circuit, and notes whether
        the endpoint works."""
        key = endpoint_key(destination, self._per)
        attempt = self._admit(key)
        if not isinstance(attempt, _Attempt):
            yield [RunError(_circuit_error(destination, self._per, attempt))]
            return
        works: bool | None = None
        try:
            async with aclosing(following(request)) as batches:
                async for events in batches:
                    last = events[-1]
                    works = type(last) is not RunError or not self._counts(last.error)
                    yield events
        finally:
            self._end(key, attempt, works)

    def _admit(self, key: Origin) -> _Attempt | float:
        """Returns an attempt if the breaker lets a request go now, otherwise the seconds until one
        may."""
        with self._lock:
            circuit = self._circuits.setdefault(key, _Circuit())
            if circuit.opened_at is None:
                return _Attempt(None)
            now = self._clock()
            since = circuit.opened_at if circuit.trial is None else circuit.trial.began_at
            if (wait := since + self._open_seconds - now) > 0:
                return wait
            # A trial that never reported its end, because its task was destroyed, is replaced.
            circuit.trial = _Attempt(now)
            return circuit.trial

    def _end(self, key: Origin, attempt: _Attempt, works: bool | None) -> None:
        """Records for the breaker how a request ended. `works=None`: it was abandoned before any
        event, so it proves nothing."""
        with self._lock:
            circuit = self._circuits[key]
            if attempt.is_trial:
                if circuit.trial is not attempt:
                    return
                circuit.trial = None
                if works:
                    circuit.opened_at = None
                    _LOG.info("%s works again", _describe(key))
                elif works is False:
                    circuit.opened_at = self._clock()
            elif works is False and circuit.opened_at is None:
                now = self._clock()
                circuit.failed.append(now)
                while circuit.failed[0] <= now - self._window:
                    circuit.failed.popleft()
                if len(circuit.failed) >= self._failures:
                    circuit.failed.clear()
                    circuit.opened_at = now
                    _LOG.warning(
                        "%s failed %d times: left alone for %g s",
                        _describe(key),
                        self._failures,
                        self._open_seconds,
                    )


class _Attempt:
    """A request that the breaker let through."""

    __slots__ = ("began_at", "is_trial")

    def __init__(self, trial_at: float | None) -> None:
        self.is_trial = trial_at is not None
        self.began_at = trial_at or 0.0


class _Circuit:
    """State of the circuit of one endpoint."""

    __slots__ = ("failed", "opened_at", "trial")

    def __init__(self) -> None:
        """Starts the breaker with a closed circuit, through which requests go."""
        self.failed: deque[float] = deque()
        """When requests failed, while the circuit was closed."""
        self.opened_at: float | None = None
        """`None`: it is closed."""
        self.trial: _Attempt | None = None
        """The request that shows whether it may be closed."""


def _circuit_error(destination: Origin, per: Per, wait: float) -> CircuitOpenError:
    """Returns the error for an endpoint whose circuit the breaker has opened."""
    subject = destination.provider
    if per == "model":
        subject += f":{destination.model}"
    return CircuitOpenError(
        f"{subject} failed too often and is not asked for now. Try again in {wait:.1f} s, or take another model.",
        retry_after=wait,
        provider=destination.provider,
    )


def _describe(key: Origin) -> str:
    return " ".join(filter(None, (key.provider, key.model, key.endpoint)))
