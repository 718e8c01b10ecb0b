"""Events of a run → the chunks of a UI message stream. All messages of the run's turn are one UI message; a step begins with each but the first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dragoman import json_bytes
from dragoman.codec.encoder import NONE, Objects
from dragoman.codec.framing import event_bytes
from dragoman.codec.serving import SSE_PING
from dragoman.event import Event, PartDelta
from dragoman.request import RunRequest
from dragoman.wires.ai_sdk.encode_again import chunks_before
from dragoman.wires.ai_sdk.encode_run import RunChunks
from dragoman.wires.ai_sdk.quirks import Quirks

__all__ = [
    "Encoder",
    "encoder",
    "envelope",
    "envelope_again",
    "ping",
    "stream_headers",
    "stream_type",
]

stream_type = "text/event-stream"
"""Of a stream's bytes."""
stream_headers: Mapping[str, str] = {"x-vercel-ai-ui-message-stream": "v1"}
"""By which clients know what the stream is."""
ping = SSE_PING
"""Keeps a stream open."""
_DONE = b"data: [DONE]\n\n"


class Encoder:
    """Events → Server-Sent Events."""

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        """`envelope`: the `request`, the peer's `quirks`, and whether the message is told `again` from its beginning."""
        request, quirks = envelope.get("request"), envelope.get("quirks") or Quirks()
        before = chunks_before(request, quirks) if envelope.get("again") else ()
        self._run = RunChunks(request, quirks, before)
        self._done = False

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it."""
        if (
            type(event) is PartDelta and (data := self._run.delta_bytes(event)) is not None
        ):  # nearly all of a stream
            return data
        return _framed(self._run.objects(event))

    def objects(self, event: Event) -> Objects:
        """One event → the chunks that tell of it."""
        return self._run.objects(event)

    def close(self) -> bytes:
        """The end of the events → the end of the stream."""
        if self._done:
            return b""
        self._done = True
        return _framed(self._run.close()) + _DONE


def _framed(objects: Objects) -> bytes:
    return (
        b"".join([event_bytes(json_bytes.encode(each)) for each in objects])
        if objects is not NONE
        else b""
    )


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one run."""
    return Encoder(envelope)


def envelope(request: RunRequest | None, *, id: str, now: datetime) -> dict[str, Any]:  # noqa: A002, ARG001 the protocol's
    """What `encoder` takes of a request."""
    return {} if request is None else {"request": request}


def envelope_again(request: RunRequest, *, id: str, now: datetime) -> dict[str, Any]:  # noqa: A002 the protocol's
    """The same, where a client reads a stream again from its beginning: it begins its message anew, of which the run may be the end alone."""
    return {**envelope(request, id=id, now=now), "again": True}
