"""The one seam around a model: a middleware is a function `(request, next) -> events`."""

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
    """Whom a request goes to, and how: provider, endpoint and model of what will be the answer's
    origin."""

    wire: str = ""
    """Name of the wire that is spoken."""
    headers: str = ""
    """Digest of the headers that requests carry, as far as settings say them, without those that
    are secret."""
    credentials: str = ""
    """Digest of those that are: keys, and what tells who the user is."""
    profile: ModelProfile | None = None
    """What is known of the model; `None`: nothing of the request depends on it."""
    quirks: Any = None
    """What the provider does differently from others of its wire, as the wire's functions take
    it."""


Next: TypeAlias = Callable[[ModelRequest], AsyncIterator[Event]]
"""Goes on with a request, as it is or changed; may be called several times. A request with another
model string in `model` goes to that model."""

Batches: TypeAlias = Callable[[ModelRequest], AsyncGenerator[list[Event], None]]
"""Events as they come from the network: one list per read, none of them empty."""

Target: TypeAlias = Callable[[ModelRequest], Destination | None]
"""Whom a request goes to: provider, endpoint (empty where only credentials or a server that is yet
to be started say it) and model. `None`: nobody knows the model; who goes on is told so."""


@runtime_checkable
class BatchMiddleware(Protocol):
    """A middleware that takes events by the read, as they come, and not one by one."""

    def batches(
        self, request: ModelRequest, following: Batches, target: Target
    ) -> AsyncGenerator[list[Event], None]:
        """The events of a request. `following` goes on with it, as `Next` does; what it gives must
        be closed."""
        ...


_EventMiddleware: TypeAlias = Callable[[ModelRequest, Next], AsyncIterator[Event]]

Middleware: TypeAlias = _EventMiddleware | BatchMiddleware
"""Sees a request on its way in and its events on their way out. An async generator function, most
often. The request's `model` is the model string of the model that is asked, its `run` the run that
asks."""


def wrap(call: Batches, middleware: Sequence[Middleware], target: Target) -> Batches:
    """A call with middlewares around it, the first one outermost. Without any it is the call
    itself, batches and all."""
    plain: list[_EventMiddleware] = []
    for layer in reversed(middleware):
        if not isinstance(layer, BatchMiddleware):
            plain.append(layer)
            continue
        call = _wrap_batches(layer, _wrap_events(plain, call), target)
        plain = []
    return _wrap_events(plain, call)


def _wrap_batches(layer: BatchMiddleware, following: Batches, target: Target) -> Batches:
    def batches(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        return layer.batches(request, following, target)

    return batches


def _wrap_events(layers: Sequence[_EventMiddleware], call: Batches) -> Batches:
    """A call with middlewares around it that take events one by one, the first one innermost."""
    if not layers:
        return call

    async def events_of(request: ModelRequest) -> AsyncIterator[Event]:
        async with aclosing(call(request)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    chain: Next = events_of
    for layer in layers:
        chain = _bind(layer, chain)

    async def batches(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        events = chain(request)
        try:
            async for event in events:
                yield [event]
        finally:
            if hasattr(events, "aclose"):
                await cast(AsyncGenerator[Any, None], events).aclose()

    return batches


def _bind(layer: _EventMiddleware, following: Next) -> Next:
    def bound(request: ModelRequest) -> AsyncIterator[Event]:
        return layer(request, following)

    return bound
