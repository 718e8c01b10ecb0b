"""Writes the requests of durable runs for a log, and reads them. A server that enqueues a run for a
client puts its `RunTerms` into the request."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.errors import HistoryError, RunLogError
from dragoman.json_bytes import JsonMap
from dragoman.request import RunRequest

__all__ = ["RunTerms", "read_terms", "request_from_json", "request_to_json"]

_VERSION = 1
"""Grows when an older release would misread a request."""


class _StoredRequest(msgspec.Struct, frozen=True):
    """A request as a log has it."""

    request: RunRequest
    version: int = _VERSION


class _Version(msgspec.Struct, frozen=True):
    """What every release can read of a stored request."""

    version: int


def request_to_json(request: RunRequest) -> str:
    """Returns a request as a log stores it.

    Raises:
        HistoryError: it holds what JSON cannot.
    """
    try:
        return msgspec.json.encode(_StoredRequest(request)).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise HistoryError(f"the request of a run cannot be stored as JSON: {error}") from error


def request_from_json(run_id: str, data: str | None) -> RunRequest:
    """Returns the request that `request_to_json` wrote. `data`: `None` if the log has none.

    Raises:
        RunLogError: there is none, or this release cannot read it.
    """
    if data is None:
        raise RunLogError(
            f"the log has no request of run {run_id!r}: only runs that were enqueued have one"
        )
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version > _VERSION:
            raise RunLogError(
                f"the request of run {run_id!r} has version {version}, and this release reads {_VERSION}: "
                "it was enqueued by a newer release of dragoman, which must drive it"
            )
        stored: Any = msgspec.json.decode(data, type=_StoredRequest)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise RunLogError(f"the request of run {run_id!r} cannot be read: {error}") from error
    return stored.request


_TERMS = "dragoman"
"""Name of the terms among the request's `native` fields."""


class RunTerms(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a server that enqueues a run for a client says of it, beside the request."""

    trusted: bool = True
    """False if the client may have made up the conversation; see `RunOptions.trusted_history`."""
    conversation: str | None = None
    """What answers without a signature are claimed under; `None`: the thread."""
    output_events: bool = False
    """True if the client is told of the output while it is written."""
    model: str | None = None
    """Model string that the client chose; `None`: the agent's model."""
    deadline: float | None = None
    """When the run is cancelled, in seconds since 1970; `None`: never."""
    payer: JsonMap | None = None
    """Who pays for its calls of models, as the server knows it; `None`: nobody."""

    def within(self, request: RunRequest) -> RunRequest:
        """Returns the request with these terms."""
        return request.replace(native={_TERMS: msgspec.to_builtins(self)})


def read_terms(request: RunRequest) -> RunTerms:
    """Returns the terms of a request; the usual ones if it has none."""
    return msgspec.convert((request.native or {}).get(_TERMS, {}), RunTerms)
