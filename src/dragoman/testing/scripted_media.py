"""Answers of a scripted server to requests for images, speech and transcripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from dragoman import wires
from dragoman.codec.media_fields import MediaResponse
from dragoman.codec.multipart import is_form, load_form
from dragoman.errors import DragomanError
from dragoman.fold import unfold
from dragoman.json_bytes import Json
from dragoman.media_request import MediaKind, MediaRequest
from dragoman.message import DataPart, FinishReason, LinkPart, Message
from dragoman.request import HttpRequest

__all__ = ["MediaAnswer", "MediaFunction", "find_media_kind", "load_media_request", "write_media"]

MediaAnswer: TypeAlias = Message | DataPart | LinkPart | str | DragomanError
"""An image or audio, a transcript, a whole message with its usage and metadata, or an error."""
MediaFunction: TypeAlias = Callable[[MediaRequest], MediaAnswer]
"""Returns the answer to a request for media."""

_PATHS: Mapping[str, MediaKind] = {
    "generations": "images",
    "edits": "images",
    "speech": "speech",
    "transcriptions": "transcription",
}
"""Last word of a path → what is made there."""


def find_media_kind(wire: wires.Wire, path: str) -> MediaKind | None:
    """Returns the kind of scripted media that is made at a path, or None."""
    media_kind = _PATHS.get(path.partition("?")[0].rpartition("/")[2])
    if media_kind is None or wires.media(wire.name, media_kind) is None:
        return None
    return media_kind


def load_media_request(
    wire: wires.Wire, media_kind: MediaKind, request: HttpRequest, path: str
) -> MediaRequest:
    """Reads a request for scripted media, from JSON or a form.

    Raises:
        InvalidRequestError: it cannot be read.
    """
    headers = {name.lower(): value for name, value in request.headers.items()}
    content_type = headers.get("content-type", "")
    if isinstance(request.body, bytes) and is_form(content_type):
        fields = load_form(request.body, content_type)
    elif isinstance(request.body, bytes):
        fields = msgspec.json.decode(request.body, type=Json)
    else:
        fields = dict(request.body or {})
    return _find_endpoint(wire, media_kind).load_request(fields, path=path)


def write_media(
    wire: wires.Wire,
    media_kind: MediaKind,
    request: MediaRequest,
    answer: Message | DataPart | LinkPart | str,
) -> MediaResponse:
    """Writes a scripted answer with media, whole or as the request asks for it as a stream."""
    message = answer
    if not isinstance(message, Message):
        message = Message.model(*([message] if message else []))
    if message.finish_reason is None:
        message = message.replace(finish_reason=FinishReason.stop)
    endpoint = _find_endpoint(wire, media_kind)
    if not request.stream:
        return endpoint.dump_response(message, request=request)
    encoder = endpoint.encoder(request)
    data = b"".join([*map(encoder.feed, unfold([message])), encoder.close()])
    return MediaResponse(getattr(encoder, "stream_type", ""), data)


def _find_endpoint(wire: wires.Wire, media_kind: MediaKind) -> wires.MediaWire:
    endpoint = wires.media(wire.name, media_kind)
    assert endpoint is not None, "a wire with a route for media has an endpoint for it"
    return endpoint
