"""A model's answer on its way to a client: events → the bytes of its wire, whole or streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.timing import AnswerTimer
from dragoman.errors import public
from dragoman.event import Event, MessageFinished, RunError, RunFinished
from dragoman.request import ModelRequest
from dragoman.serve.calls.call import Backend, Call
from dragoman.serve.calls.losses import loss_headers, losses_of
from dragoman.serve.conversations.logged import begin_logged
from dragoman.serve.conversations.recalling import links_of, recalled
from dragoman.serve.conversations.recording import Recording
from dragoman.serve.http.limits import check_request
from dragoman.wires.serving import stream_form

__all__ = ["answer"]


async def answer(call: Call, request: ModelRequest, backend: Backend) -> None:
    """Answers a chat.

    Raises:
        DragomanError: there is no answer, and nothing was sent yet.
    """
    timer = AnswerTimer()
    links = links_of(call, request)
    known = await recalled(
        call, links, edits=backend.edits, remembers=backend.remembers(call, request)
    )
    check_request(known.request, call.service.limits)  # what was kept counts too
    if links.background:  # whoever asks for it while it is made reads what there is
        known = msgspec.structs.replace(known, request=known.request.replace(stream=True))
    recording = Recording(call, request, links, known)
    envelope = call.wire.envelope(request, id=call.id, now=call.now)
    timer.ask()
    events = backend.answer(call, known, recording)
    kept: Recording | None = recording
    if links.background or backend.detaches:
        await begin_logged(call, events, recording, strict=links.background)
        if links.background and not request.stream:
            await _respond_in_progress(call, envelope)
            return
        events, kept = call.service.runs.pages(call.id, paces=True), None  # the run keeps it
    if "timing" in envelope:  # the wire tells how long it took
        envelope["timing"] = timer
        events = _observe(events, timer)
    async with aclosing(events):
        await (_stream if request.stream else _whole)(call, envelope, events, kept)


async def _observe(
    events: AsyncGenerator[list[Event], None], timer: AnswerTimer
) -> AsyncGenerator[list[Event], None]:
    async with aclosing(events):
        async for batch in events:
            timer.observe(batch)
            yield batch


async def _respond_in_progress(call: Call, envelope: dict[str, Any]) -> None:
    """Answers at once, with an answer that is still being made."""
    wire = call.served
    body = wire.with_state(wire.dump_response([], **envelope), "in_progress", None)
    await call.connection.respond(
        200, {"content-type": "application/json"}, json_bytes.encode(body)
    )


async def _whole(
    call: Call,
    envelope: dict[str, Any],
    events: AsyncGenerator[list[Event], None],
    recording: Recording | None,
) -> None:
    whole: list[Event] = []
    async for batch in events:
        whole += batch
    if whole and isinstance(whole[-1], RunError):
        raise whole[-1].error
    body = json_bytes.encode(call.wire.dump_response(whole, **envelope))
    if recording is not None:
        recording.add(whole)
        await recording.keep()
    headers = {"content-type": "application/json", **loss_headers(losses_of(whole))}
    await call.connection.respond(200, headers, body)


async def _stream(
    call: Call,
    envelope: dict[str, Any],
    events: AsyncGenerator[list[Event], None],
    recording: Recording | None,
) -> None:
    wire, connection = call.wire, call.connection
    encoder = wire.encoder(**envelope)
    kind, ping = stream_form(wire, encoder)
    connection.stream(
        {"content-type": kind}, ping, lambda error: encoder.feed(RunError(error)) + encoder.close()
    )
    ends = b""
    async for batch in events:
        if not connection.started:
            connection.add_headers(loss_headers(losses_of(batch)))
        last = batch[-1]
        failed = isinstance(last, RunError)
        data = b"".join([encoder.feed(event) for event in (batch[:-1] if failed else batch)])
        if failed and not (connection.started or ends or data):
            raise last.error  # with its status
        if recording is not None:
            recording.add(batch)
        if failed:
            data += encoder.feed(RunError(public(last.error), last.run_id))
        if ends or isinstance(last, _ENDS):  # it is kept before its client knows of its end
            ends += data
        elif data:
            await connection.write(data)
    ends += encoder.close()
    if recording is not None:
        await recording.keep()
    await connection.end(ends)


_ENDS = (MessageFinished, RunFinished, RunError)
