"""The APIs that make media: images, speech and transcripts.

A request is JSON or a form with files. The answer is the events of one message: written whole, as a
stream of events, or for speech as bytes while they come.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from dragoman import wires
from dragoman.codec.audio import normalize_audio_type
from dragoman.codec.media_fields import MediaEncoder
from dragoman.errors import InvalidRequestError, SettingsError
from dragoman.event import Event, RunError
from dragoman.fold import MessageBuilder
from dragoman.logs import logger
from dragoman.loss import Loss, Lost
from dragoman.media_request import MediaKind, MediaRequest, SpeechRequest
from dragoman.serve.apis.models import find_backend
from dragoman.serve.core.call import Call, Handler
from dragoman.serve.core.request_fields import loss_headers
from dragoman.wires import MediaWire

__all__ = ["HANDLERS"]

_LOG = logger("serve")


def make_handler(media_kind: MediaKind) -> Handler:
    """Returns what is done at the routes for one kind of media."""

    async def handle(call: Call) -> None:
        await make_media(call, media_kind)

    return handle


HANDLERS: Mapping[str, Handler] = {
    "images": make_handler("images"),
    "speech": make_handler("speech"),
    "transcription": make_handler("transcription"),
}
"""Purpose of a route → what is done there."""


async def make_media(call: Call, media_kind: MediaKind) -> None:
    """Answers a request for media.

    Raises:
        DragomanError: there is no answer, and nothing was sent yet.
    """
    endpoint = wires.media(call.wire.name, media_kind)
    if endpoint is None:
        raise InvalidRequestError(f"the API {call.wire.name} has no {media_kind}")
    request = endpoint.load_request(call.body, path=call.path)
    backend = find_backend(call, request.model)
    admitted = backend.admit(call)
    if admitted is not call:
        call, request = admitted, endpoint.load_request(admitted.body, path=call.path)
    try:
        events = backend.make_media(call, media_kind, request)
    except SettingsError as error:
        _LOG.warning("%s of %.100r: %s", media_kind, request.model, error)
        raise InvalidRequestError(
            f"the model {request.model!r:.100} makes no {media_kind} here"
        ).at(field="model") from error
    async with aclosing(events):
        if request.stream or media_kind == "speech":
            await _stream(call, endpoint, request, events)
        else:
            await _respond_whole(call, endpoint, request, events)


async def _respond_whole(
    call: Call,
    endpoint: MediaWire,
    request: MediaRequest,
    events: AsyncGenerator[list[Event], None],
) -> None:
    """Answers a request for media at once."""
    builder = MessageBuilder()
    async for page in events:
        for event in page:
            if isinstance(event, RunError):
                raise event.error
            builder.add(event)
    media_type, body = endpoint.dump_response(builder.message(), request=request)
    headers = {"content-type": media_type, **loss_headers(call.observed.losses)}
    await call.connection.respond(200, headers, body)


async def _stream(
    call: Call,
    endpoint: MediaWire,
    request: MediaRequest,
    events: AsyncGenerator[list[Event], None],
) -> None:
    """Streams an answer with media while it comes. A failure before its first piece is raised."""
    connection, encoder = call.connection, endpoint.encoder(request)
    assert isinstance(encoder, MediaEncoder), "wires with endpoints for media build on this class"
    if encoder.ping:
        # An image takes long to draw, and the stream must be kept open meanwhile.
        _begin(call, encoder)
    async for page in events:
        if isinstance(failure := page[-1], RunError) and (
            not connection.started or not encoder.ping
        ):
            raise failure.error
        data = b"".join(map(encoder.feed, page))
        if not data:
            continue
        if not connection.started and not encoder.ping:
            _note_audio_type(call, request, encoder.stream_type)
            _begin(call, encoder)
        await connection.write(data)
    await connection.end(encoder.close())


def _begin(call: Call, encoder: MediaEncoder) -> None:
    """Prepares the stream: what it is, and what was left out of the request."""
    headers = {"content-type": encoder.stream_type, **loss_headers(call.observed.losses)}
    call.connection.stream(headers, encoder.ping, encoder.error if encoder.ping else None)


def _note_audio_type(call: Call, request: MediaRequest, media_type: str) -> None:
    """Notes a loss if the audio in a media answer is of another type than was asked for."""
    if not isinstance(request, SpeechRequest) or request.mime_type is None:
        return
    if normalize_audio_type(media_type) != request.mime_type:
        why = f"the model makes {normalize_audio_type(media_type)}"
        loss = Loss(None, None, Lost.setting, why, "response_format")
        call.observed.losses = [*call.observed.losses, loss]
