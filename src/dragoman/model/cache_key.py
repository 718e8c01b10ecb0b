"""What a stored answer is found by: a digest over all that decides the answer, and over whose it is."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from dragoman.message import MarkPart, Message
from dragoman.model.middleware import Destination
from dragoman.request import ModelRequest

__all__ = ["cache_key"]

_VERSION = 1
"""Of what is counted. Another one finds nothing of what was stored before."""


def cache_key(request: ModelRequest, to: Destination, scope: str | None = None) -> str | None:
    """The key of the answer to a request; `None`: the request holds what JSON cannot, so that it has none.

    All of the request counts, but for what only tells it from other requests: ids and times, metadata and usage of messages, marks (no model
    is told of them), the run. Of the run it counts whose conversation it is. Who has no `resource_id` shares with the same `scope`, and
    who has neither with the same credentials.
    """
    user = None if request.run is None else request.run.resource_id
    credentials = to.credentials if user is None and scope is None else None
    where = (to.provider, to.endpoint, to.model, to.wire, to.headers)
    messages = tuple(map(_plain, request.messages))
    counted = request.replace(messages=messages, run=None, retries=None, verbatim=request.verbatim)
    try:
        return sha256(
            msgspec.json.encode((_VERSION, where, user, scope, credentials, counted))
        ).hexdigest()
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(message: Message) -> Message:
    """A message as the model is told of it."""
    content = message.content
    if any(isinstance(piece, MarkPart) for piece in content):
        content = tuple(piece for piece in content if not isinstance(piece, MarkPart))
    return message.replace(
        content=content, id=None, created_at=None, metadata={}, usage=None, turn=None
    )
