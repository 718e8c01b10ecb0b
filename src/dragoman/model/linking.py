"""Going on without a stored response that the provider does not know any more.

A wire may link a request to a response that its provider stores, and send only what follows it. Where the provider has
forgotten that response, or may not use it, the same request is sent once more with the whole conversation.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from dragoman.errors import InvalidRequestError, ModelNotFoundError
from dragoman.event import Event, RunError
from dragoman.model.middleware import Batches
from dragoman.request import ModelRequest

__all__ = ["UNLINKED", "relinking"]

UNLINKED = {"previous_response_id": None}
"""The option that says: go on from nothing, the provider has forgotten what it stored."""
_FORGOTTEN = re.compile(rb"previous.?response", re.IGNORECASE)


def relinking(call: Batches) -> Batches:
    """A model call that is repeated without the link, where the link is all that the provider refuses.

    It works on batches, as it looks at the first one only: every later event passes at no cost.
    """

    async def relinked(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        forgotten = False
        async with aclosing(call(request)) as batches:
            async for batch in batches:
                forgotten = forgotten or _is_forgotten(batch)
                if forgotten:
                    break
                yield batch
        if forgotten:
            async with aclosing(call(request.replace(options={**request.options, **UNLINKED}))) as batches:
                async for batch in batches:
                    yield batch

    return relinked
