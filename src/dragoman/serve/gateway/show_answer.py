"""What a gateway changes of an answer on its way to the client: generators, each left out where it
has nothing to do."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from dragoman.errors import ModelNotFoundError
from dragoman.event import Event, RunError
from dragoman.runs.visible import Visible

if TYPE_CHECKING:
    # cryptography, which few need
    from dragoman.serve.seals.seal_events import Sealing

__all__ = ["hide_unlisted", "make_not_found_error", "seal_answer", "show_final"]


def make_not_found_error(name: str) -> ModelNotFoundError:
    """Returns the error for a client's name that no model has."""
    return ModelNotFoundError(f"there is no model {name!r:.200} here").at(field="model")


async def hide_unlisted(
    batches: AsyncGenerator[list[Event], None], name: str
) -> AsyncGenerator[list[Event], None]:
    """Yields the answer of a model that a pattern matched. A ModelNotFoundError names the model as
    the client did."""
    async with aclosing(batches):
        async for events in batches:
            last = events[-1]
            if type(last) is RunError and isinstance(last.error, ModelNotFoundError):
                events = [
                    *events[:-1],
                    msgspec.structs.replace(last, error=make_not_found_error(name)),
                ]
            yield events


async def show_final(
    batches: AsyncGenerator[list[Event], None],
) -> AsyncGenerator[list[Event], None]:
    """Yields only what is never taken back, for clients that cannot take back."""
    view = Visible(calls=True)
    async with aclosing(batches):
        async for events in batches:
            if seen := [shown for event in events for shown in view.feed(event)]:
                yield seen
                if type(seen[-1]) is RunError:
                    # The client has seen this error; a fallback's answer could not be shown after
                    # it.
                    return
    if remaining := view.close():
        yield remaining


async def seal_answer(
    batches: AsyncGenerator[list[Event], None], sealing: Sealing
) -> AsyncGenerator[list[Event], None]:
    """Yields an answer with the tokens that its client keeps."""
    async with aclosing(batches):
        async for events in batches:
            yield [sealed for event in events for sealed in sealing.feed(event)]
