"""What a server does at each place of a wire's API, by the place's purpose."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

from starlette.responses import Response, StreamingResponse

from dragoman import json_bytes, wires
from dragoman.errors import InvalidRequestError
from dragoman.event import Event, RunError
from dragoman.serve.call import Call
from dragoman.serve.losses import loss_headers, losses_of

__all__ = ["HANDLERS", "Handler", "json_response"]

Handler = Callable[[Call], Awaitable[Response]]


async def chat(call: Call) -> Response:
    """Messages → the model's answer, whole or streamed."""
    request = call.wire.load_request(call.body, path=call.path, headers=call.headers)
    backend = call.service.backend(request.model)
    events = backend.answer(call, request)
    first = await anext(events, list[Event]())
    if first and isinstance(first[0], RunError):
        await events.aclose()
        raise first[0].error
    headers = loss_headers(losses_of(first))
    envelope = call.wire.envelope(request, id=call.id, now=call.now)
    if request.stream:
        stream = _encoded(call, first, events, envelope)
        return StreamingResponse(stream, headers=dict(headers), media_type=call.wire.stream_type)
    whole = list(first)
    async with aclosing(events):
        async for batch in events:
            whole += batch
    return json_response(call.wire.dump_response(whole, **envelope), headers=headers)


async def _encoded(
    call: Call, first: list[Event], events: AsyncGenerator[list[Event], None], envelope: Mapping[str, object]
) -> AsyncGenerator[bytes, None]:
    """Events → the bytes of a stream, one piece for each read."""
    encoder = call.wire.encoder(**envelope)
    async with aclosing(events):
        if data := b"".join([encoder.feed(event) for event in first]):
            yield data
        async for batch in events:
            if data := b"".join([encoder.feed(event) for event in batch]):
                yield data
    if data := encoder.close():
        yield data


async def embeddings(call: Call) -> Response:
    """Texts → vectors."""
    wire = wires.embeddings(call.wire.name)
    if wire is None:
        raise InvalidRequestError(f"the API {call.wire.name} has no embeddings")
    request = wire.load_request(call.body, path=call.path)
    result = await call.service.backend(request.model).embed(call, request)
    return json_response(wire.dump_response(result, request=request))


def json_response(value: Mapping[str, object], status: int = 200, headers: Mapping[str, str] = {}) -> Response:
    """JSON, as a client gets it."""
    return Response(json_bytes.encode(value), status, dict(headers), "application/json")


HANDLERS: Mapping[str, Handler] = {"chat": chat, "embeddings": embeddings}
"""Purpose of a route → what is done there. A route whose purpose has no handler is not offered."""
