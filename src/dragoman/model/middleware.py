"""Middleware: functions `(request, next) -> events` around a model call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from dragoman.event import Event
from dragoman.message import Origin
from dragoman.model_profile import ModelProfile
from dragoman.request import ModelRequest

__all__ = ["BatchMiddleware", "Batches", "Destination", "Middleware", "Next", "Target", "wrap"]


class Destination(Origin, frozen=True):
    """The provider, endpoint and model of a request, which will be the answer's origin, and how it
    gets there."""

    wire: str = ""
    """Name of the wire that is spoken."""
    headers: str = ""
    """Digest of the headers of its requests, without secret ones, as far as settings tell them."""
    credentials: str = ""
    """Digest of the secret headers: keys, and names of the user."""
    profile: ModelProfile | None = None
    """What is known of the model; `None`: nothing of the request depends on it."""
    quirks: Any = None
    """The provider's deviations from others of its wire, as the wire's functions take them."""


Next: TypeAlias = Callable[[ModelRequest], AsyncIterator[Event]]
"""Sends a request on, changed or not; may be called several times. Another model string in `model`
sends it to that model."""

Batches: TypeAlias = Callable[[ModelRequest], AsyncGenerator[list[Event], None]]
"""Events as they come from the network: one list per read, none of them empty."""

Target: TypeAlias = Callable[[ModelRequest], Destination | None]
"""Finds the destination of a request. Its endpoint is empty if only credentials or a server that
has not started know it. `None`: the model is unknown, and sending the request reports that."""


@runtime_checkable
class BatchMiddleware(Protocol):
    """A middleware that takes events in batches, one per network read, instead of one by one."""

    def batches(
        self, request: ModelRequest, following: Batches, target: Target
    ) -> AsyncGenerator[list[Event], None]:
        """Returns the events of a request, as every batch middleware does. `following` sends it on,
        as `Next` does; close what it returns."""
        ...


_EventMiddleware: TypeAlias = Callable[[ModelRequest, Next], AsyncIterator[Event]]

Middleware: TypeAlias = _EventMiddleware | BatchMiddleware
"""Sees requests on their way in and events on their way out, most often as an async generator
function. `request.model` is the model string, `request.run` the run that asks."""


def wrap(call: Batches, middleware: Sequence[Middleware], target: Target) -> Batches:
    """Returns the model call wrapped in middlewares, the first one outermost. Without any it is the
    call itself."""
    plain: list[_EventMiddleware] = []
    for layer in reversed(middleware):
        # Not `isinstance`, which inspects the whole protocol for each request.
        if (batches := getattr(layer, "batches", None)) is None:
            plain.append(cast("_EventMiddleware", layer))
            continue
        call = _wrap_batches(batches, _wrap_events(plain, call), target)
        plain = []
    return _wrap_events(plain, call)


def _wrap_batches(
    layer: Callable[[ModelRequest, Batches, Target], AsyncGenerator[list[Event], None]],
    following: Batches,
    target: Target,
) -> Batches:
    """Returns the call wrapped in one batch middleware, by its method `batches`."""

    def batches(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        return layer(request, following, target)

    return batches


def _wrap_events(layers: Sequence[_EventMiddleware], call: Batches) -> Batches:
    """Returns the call wrapped in middlewares that take events one by one, the first one
    innermost."""
    if not layers:
        return call

    async def events_of(request: ModelRequest) -> AsyncIterator[Event]:
        """Yields events one by one from the call inside the middleware."""
        async with aclosing(call(request)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    chain: Next = events_of
    for layer in layers:
        chain = _bind_middleware(layer, chain)

    async def batches(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        """Returns the middlewares' events in lists."""
        events = chain(request)
        try:
            async for event in events:
                yield [event]
        finally:
            if hasattr(events, "aclose"):
                await cast(AsyncGenerator[Any, None], events).aclose()

    return batches


def _bind_middleware(layer: _EventMiddleware, following: Next) -> Next:
    """Returns the middleware as a function of the request alone."""

    def bound(request: ModelRequest) -> AsyncIterator[Event]:
        return layer(request, following)

    return bound
