"""Requests of a gateway's clients for media: to the provider of a model, and what its answer shows."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from dragoman import wires
from dragoman.event import Event, MessageFinished, MessageStarted
from dragoman.loss import refusal_error
from dragoman.media_request import MediaKind, MediaRequest
from dragoman.message import Origin
from dragoman.model.agent_models import Models
from dragoman.request import OnLoss
from dragoman.serve.core.call import Call
from dragoman.serve.core.request_fields import option_losses

__all__ = ["ask_media"]

_SHARED_METADATA = ("language", "duration", "segments", "words")
"""What all providers say of a transcript under one name."""


def ask_media(
    models: Models, call: Call, media_kind: MediaKind, request: MediaRequest, *, on_loss: OnLoss
) -> AsyncGenerator[list[Event], None]:
    """Returns the events of the answer to a client's request. Options go to a provider of the
    client's API as they are, and to no other.

    Raises:
        SettingsError: the model makes no such media.
        InvalidRequestError: there is an option that may not be left out.
    """
    string = models.string
    # A provider's record alone stands for its default models.
    named = str(string) if string.chat or string.media else None
    endpoint = models.media_endpoint(media_kind, named)
    is_own = endpoint.wire is wires.media(call.wire.name, media_kind)
    losses = list(call.losses)
    if not is_own:
        losses += option_losses(call.wire.name, request.options)
    if on_loss == "error" and (refused := refusal_error(losses)) is not None:
        raise refused
    call.observed.losses = losses
    # How the client wants its own answer written says nothing to the provider.
    request_sent = request.replace(native=None, options=request.options if is_own else {})
    return _show_answer(endpoint.batches(request_sent), call, request.model, is_own=is_own)


async def _show_answer(
    batches: AsyncGenerator[list[Event], None], call: Call, model: str, *, is_own: bool
) -> AsyncGenerator[list[Event], None]:
    """Yields the events of media as their client may see them: the model by the client's name for
    it, and nothing that another API has."""
    async with aclosing(batches):
        async for events in batches:
            call.observed.add(events)
            yield [_show_event(event, model, is_own=is_own) for event in events]


def _show_event(event: Event, model: str, *, is_own: bool) -> Event:
    """Returns an event of a media answer as the client may see it."""
    if not isinstance(event, MessageStarted | MessageFinished):
        return event
    metadata = {
        name: value
        for name, value in event.metadata.items()
        if (is_own and name != "model") or name in _SHARED_METADATA
    }
    return msgspec.structs.replace(
        event, metadata=metadata, origin=Origin("dragoman", model=model), native=None
    )
