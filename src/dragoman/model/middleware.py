"""The one seam around a model: a middleware is a function `(request, next) -> events`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, cast

from dragoman.event import Event
from dragoman.request import ModelRequest

__all__ = ["Batches", "Middleware", "Next", "wrap"]

Next = Callable[[ModelRequest], AsyncIterator[Event]]
"""Goes on with a request, as it is or changed; may be called several times."""

Middleware = Callable[[ModelRequest, Next], AsyncIterator[Event]]
"""Sees a request on its way in and its events on their way out. An async generator function, most often. The request's `model` is the
model string of the model that is asked, its `run` the run that asks."""

Batches = Callable[[ModelRequest], AsyncGenerator[list[Event], None]]
"""Events as they come from the network: one list per read."""


def wrap(call: Batches, middleware: Sequence[Middleware]) -> Batches:
    """A call with middlewares around it, the first one outermost. Without any it is the call itself, batches and all."""
    if not middleware:
        return call

    async def one_by_one(request: ModelRequest) -> AsyncIterator[Event]:
        async with aclosing(call(request)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    chain: Next = one_by_one
    for layer in reversed(middleware):
        chain = _bound(layer, chain)

    async def wrapped(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        events = chain(request)
        try:
            async for event in events:
                yield [event]
        finally:
            if hasattr(events, "aclose"):
                await cast(AsyncGenerator[Any, None], events).aclose()

    return wrapped


def _bound(layer: Middleware, following: Next) -> Next:
    def bound(request: ModelRequest) -> AsyncIterator[Event]:
        return layer(request, following)

    return bound
