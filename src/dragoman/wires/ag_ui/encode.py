"""Events of a run → the events of AG-UI, streamed. The protocol shows a run as it is: calls with their results, steps, state, runs within tools."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dragoman import json_bytes
from dragoman.codec.encoder import Objects
from dragoman.codec.framing import event_bytes
from dragoman.codec.serving import SSE_PING
from dragoman.event import Event, PartDelta
from dragoman.request import RunRequest
from dragoman.wires.ag_ui.encode_run import RunEncoder
from dragoman.wires.ag_ui.quirks import OWN, Quirks, is_current

__all__ = ["Encoder", "encoder", "envelope", "ping", "stream_type"]

stream_type = "text/event-stream"
"""Of a stream's bytes."""
ping = SSE_PING
"""Keeps a stream open."""


class Encoder:
    """Events → Server-Sent Events, whose lines end in LF alone, and without a mark at the end: the official client takes neither."""

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        """`envelope`: `thread_id`, `run_id` and `request` of the run, `version` of the protocol that the peer declares, and
        `extras`: whether what the protocol has no field for is sent."""
        version, extras = envelope.get("version", ""), envelope.get("extras", True)
        self._run = RunEncoder(
            Quirks(current=is_current(version), extras=extras),
            envelope.get("request"),
            thread_id=envelope.get("thread_id"),
            run_id=envelope.get("run_id"),
        )

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it."""
        if (
            type(event) is PartDelta and (data := self._run.delta(event)) is not None
        ):  # nearly all of a stream
            return data
        return self._framed(self._run.objects(event))

    def objects(self, event: Event) -> Objects:
        """One event → the objects that tell of it."""
        return self._run.objects(event)

    def close(self) -> bytes:
        """The end of the events → the end of the run, where none was told."""
        return self._framed(self._run.close())

    def _framed(self, objects: Objects) -> bytes:
        return b"".join([event_bytes(json_bytes.encode(each)) for each in objects])


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one run."""
    return Encoder(envelope)


def envelope(request: RunRequest | None, *, id: str, now: datetime) -> dict[str, Any]:  # noqa: A002, ARG001 the protocol's
    """What `encoder` takes of a request. `id`: of the run, where the request has none."""
    if request is None:
        return {"run_id": id, "thread_id": id}
    version = OWN.fields(request.native).get("protocolVersion", "")
    run_id = request.run_id or id
    return {
        "run_id": run_id,
        "thread_id": request.thread_id or run_id,
        "version": version,
        "request": request,
    }
