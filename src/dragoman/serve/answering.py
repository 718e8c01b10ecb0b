"""A model's answer on its way to a client: events → the bytes of its wire, whole or streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from dragoman import json_bytes
from dragoman.errors import public
from dragoman.event import Event, RunError
from dragoman.request import ModelRequest
from dragoman.serve.call import Backend, Call
from dragoman.serve.losses import loss_headers, losses_of

__all__ = ["answer"]


async def answer(call: Call, request: ModelRequest, backend: Backend) -> None:
    """Answers a chat.

    Raises:
        DragomanError: there is no answer, and nothing was sent yet.
    """
    events = backend.answer(call, request)
    async with aclosing(events):
        await (_stream(call, request, events) if request.stream else _whole(call, request, events))


async def _whole(call: Call, request: ModelRequest, events: AsyncGenerator[list[Event], None]) -> None:
    whole: list[Event] = []
    async for batch in events:
        whole += batch
    if whole and isinstance(whole[-1], RunError):
        raise whole[-1].error
    envelope = call.wire.envelope(request, id=call.id, now=call.now)
    body = json_bytes.encode(call.wire.dump_response(whole, **envelope))
    headers = {"content-type": "application/json", **loss_headers(losses_of(whole))}
    await call.connection.respond(200, headers, body)


async def _stream(call: Call, request: ModelRequest, events: AsyncGenerator[list[Event], None]) -> None:
    wire, connection = call.wire, call.connection
    encoder = wire.encoder(**wire.envelope(request, id=call.id, now=call.now))
    connection.stream(
        {"content-type": wire.stream_type, "cache-control": "no-cache", "x-accel-buffering": "no"}, wire.ping
    )
    async for batch in events:
        if not connection.started:
            connection.add_headers(loss_headers(losses_of(batch)))
        if isinstance(batch[-1], RunError):
            if not connection.started and len(batch) == 1:
                raise batch[-1].error
            batch = [*batch[:-1], RunError(public(batch[-1].error), batch[-1].run_id)]
        if data := b"".join([encoder.feed(event) for event in batch]):
            await connection.write(data)
    if data := encoder.close():
        await connection.write(data)
    await connection.end()
