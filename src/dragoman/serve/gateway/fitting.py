"""What a client's request becomes for the provider that it goes to, each time that one is asked: also in the place of another."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from dragoman.event import Event, MessageStarted, RunError
from dragoman.loss import Loss, refusal
from dragoman.message import Message, Origin, Role
from dragoman.model.middleware import Batches, Destination, Target
from dragoman.request import ModelRequest, OnLoss
from dragoman.serve.calls.fields import foreign_losses, shared_tools, without_own

__all__ = ["Fitting", "fitted", "with_losses"]


class Fitting:
    """A `BatchMiddleware`: the innermost of a gateway. The request's `wire` is that of its client."""

    def batches(self, request: ModelRequest, following: Batches, target: Target) -> AsyncGenerator[list[Event], None]:
        """See `BatchMiddleware`. Where nothing is left out, no step stands between."""
        destination = target(request)
        losses: Sequence[Loss] = ()
        if destination is not None:
            request, losses = fitted(request, destination)
        return with_losses(following(request), losses, request.on_loss) if losses else following(request)


async def with_losses(
    following: AsyncGenerator[list[Event], None], losses: Sequence[Loss], on_loss: OnLoss
) -> AsyncGenerator[list[Event], None]:
    """An answer whose first start says these losses too, or the error that refuses them."""
    async with aclosing(following):
        if on_loss == "error" and (refused := refusal(losses)) is not None:
            yield [RunError(refused)]
            return
        async for events in following:
            if losses and any(type(event) is MessageStarted for event in events):
                events, losses = _noted(events, losses), ()
            yield events


def fitted(request: ModelRequest, destination: Destination) -> tuple[ModelRequest, list[Loss]]:
    """A request for this provider, and what of its fields it leaves out there.

    Where the provider speaks the client's wire all fields stay, and what the model's messages hold of that wire is taken for the
    provider's own: the client had it from there.
    """
    wire = request.wire or destination.wire
    if wire != destination.wire:
        if not request.tools and request.settings.tool_choice in ("auto", "none"):  # some take no choice among none
            request = request.replace(settings=msgspec.structs.replace(request.settings, tool_choice=None))
        shared, lost = shared_tools(request, wire, destination.wire)
        return without_own(shared, wire), [*foreign_losses(request, wire), *lost]
    origin = Origin(destination.provider, destination.endpoint or None, destination.model)
    return request.replace(messages=_from(origin, request.messages)), []


def _from(origin: Origin, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, those of the model's that have no origin with this one."""
    return tuple(
        message.replace(origin=origin) if message.role is Role.MODEL and message.origin is None else message
        for message in messages
    )


def _noted(events: Sequence[Event], losses: Sequence[Loss]) -> list[Event]:
    """The events, whose first start of a message says these losses too."""
    noted = list(events)
    at = next(place for place, event in enumerate(events) if type(event) is MessageStarted)
    start = events[at]
    if isinstance(start, MessageStarted):
        noted[at] = msgspec.structs.replace(start, losses=(*losses, *start.losses))
    return noted
