"""Answers of OpenAI's endpoints for images: whole, and streamed while the images are drawn."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import (
    drop_none,
    if_list,
    if_object,
    if_text,
    need_object,
    optional_field,
    read_extra_fields,
    shape_error,
)
from dragoman.codec.media import dump_data_url, load_url
from dragoman.codec.media_fields import (
    MediaEncoder,
    MediaResponse,
    dump_media_usage,
    load_media_usage,
)
from dragoman.codec.response_decoder import MessageDecoder
from dragoman.codec.response_encoder import frame_typed_event
from dragoman.content import DataPart, LinkPart, guess_mime_type
from dragoman.errors import DragomanError, StreamCutError
from dragoman.event import PARTIAL_IMAGE, Custom
from dragoman.json_bytes import Json, JsonMap
from dragoman.media_request import ImageRequest
from dragoman.message import FinishReason, Message, Origin
from dragoman.wires.chat.errors import dump_error
from dragoman.wires.chat.record import DialectRecord

__all__ = [
    "IMAGE_FORMATS",
    "MOST_IMAGES",
    "ImagesDecoder",
    "ImagesEncoder",
    "dump_image_url",
    "dump_images",
]

IMAGE_FORMATS = {
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "svg": "image/svg+xml",
}
"""The API's name of a format → its media type."""
MOST_IMAGES = 16
"""Images of one request, and of one answer, as OpenAI has it."""
_UNKNOWN_TYPE = "application/octet-stream"


def dump_image_url(part: DataPart | LinkPart) -> str:
    """Returns the URL of an image in an image answer, or one that holds it."""
    if isinstance(part, LinkPart):
        return part.url
    return dump_data_url(part)


class ImagesDecoder(MessageDecoder):
    """Reads an answer, whole or streamed."""

    def __init__(
        self,
        chat: DialectRecord,
        request: ImageRequest,
        origin: Origin | None,
        new_id: Callable[[], str] | None,
    ) -> None:
        """Creates the decoder of an image answer."""
        super().__init__(origin, new_id)
        self._chat = chat
        self._mime_type = request.mime_type
        # A stream tells each image apart, and has no end of its own.
        self._missing = request.count or 1
        self._last: Json = {}

    def read_event(self, event: Json) -> None:
        """Reads one event of a stream, or a whole answer."""
        event_type = if_text(event.get("type"))
        if event_type.endswith(".partial_image"):
            fields = read_extra_fields(event, "type", "b64_json")
            self._out.start()
            self._events.append(
                Custom(PARTIAL_IMAGE, {"partial_image_b64": event.get("b64_json"), **fields})
            )
        elif event_type.endswith(".completed"):
            self._last = event
            self._missing -= 1
            self._add_image(event, event)
            if self._missing <= 0:
                self._finish()
        elif (error := self._chat.error_of(event)) is not None:
            raise error
        elif isinstance(event.get("data"), list):
            self._read_whole(event)
        elif not event_type:
            raise shape_error(event, "what is neither images nor an error")

    def end(self) -> None:
        """Ends an image answer: a stream may hold fewer images than were asked for."""
        if self._last:
            self._finish()
        else:
            self.fail(
                StreamCutError("the stream ended before an image did. Send the request again.")
            )

    def _read_whole(self, answer: Json) -> None:
        """Reads a whole image answer with its images."""
        entries = if_list(answer["data"])
        if not 0 < len(entries) <= MOST_IMAGES:
            raise shape_error(len(entries), "an answer with no images, or with too many")
        for entry in entries:
            self._add_image(need_object(entry, "an image"), answer)
        self._last = answer
        self._finish()

    def _add_image(self, entry: JsonMap, answer: JsonMap) -> None:
        """Adds one image of an answer, with its revised prompt."""
        told_type = IMAGE_FORMATS.get(if_text(answer.get("output_format")), self._mime_type)
        part = _read_image(entry, told_type)
        revised_prompt = if_text(entry.get("revised_prompt"))
        native = self._chat.own.note(optional_field("revised_prompt", revised_prompt))
        self._out.add_whole_part(msgspec.structs.replace(part, native=native))

    def _finish(self) -> None:
        """Ends the image answer with its usage and metadata."""
        self._over = True
        usage, beside = load_media_usage(self._last.get("usage"))
        metadata = read_extra_fields(
            self._last, "type", "data", "usage", "b64_json", "url", "revised_prompt"
        )
        metadata |= optional_field("usage", beside)
        self._out.finish(FinishReason.stop, usage, metadata=metadata)


def _read_image(entry: JsonMap, told_type: str | None) -> DataPart | LinkPart:
    """Returns the image of an image answer. Its bytes say more of its type than the answer does."""
    text = if_text(entry.get("b64_json"))
    if text.startswith("data:") or not text:
        url = text or if_text(entry.get("url"))
        if not url:
            raise shape_error(read_extra_fields(entry, "b64_json"), "an image without any data")
        return load_url(url)
    try:
        data = b64decode(text, validate=True)
    except ValueError as error:
        raise shape_error(text[:100], "an image that is no base64") from error
    found_type = guess_mime_type("", data)
    if found_type == _UNKNOWN_TYPE:
        found_type = told_type or "image/png"
    return DataPart(data, found_type)


def dump_images(chat: DialectRecord, message: Message, request: ImageRequest) -> MediaResponse:
    """Writes the images of a message as a whole answer: as `request` asks, as base64 or as URLs,
    which hold them."""
    as_urls = chat.own.form(request.native).get("response_format") == "url"
    metadata = dict(message.metadata)
    beside = metadata.pop("usage", None)
    created = message.created_at.timestamp() if message.created_at else 0
    body = {
        "created": metadata.pop("created", None) or int(created),
        "data": [
            _dump_image(chat, part, as_url=as_urls)
            for part in message.parts
            if isinstance(part, DataPart | LinkPart)
        ],
        **metadata,
        **drop_none({"usage": dump_media_usage(message.usage, beside)}),
    }
    return MediaResponse("application/json", json_bytes.encode(body))


def _dump_image(chat: DialectRecord, part: DataPart | LinkPart, *, as_url: bool) -> Json:
    """Returns an image as an entry of an answer: base64 or URL."""
    fields = chat.own.fields(part.native)
    if as_url or isinstance(part, LinkPart):
        return {"url": dump_image_url(part), **fields}
    return {"b64_json": b64encode(part.data).decode(), **fields}


class ImagesEncoder(MediaEncoder):
    """Writes an answer as a stream: images as they are drawn, then the whole ones."""

    def __init__(self, chat: DialectRecord, request: ImageRequest) -> None:
        super().__init__()
        self._chat = chat
        self._prefix = "image_edit" if request.images else "image_generation"

    def custom(self, event: Custom) -> bytes:
        """Tells of an image as far as it is drawn."""
        if event.name != PARTIAL_IMAGE:
            return b""
        fields = dict(if_object(event.value))
        data = fields.pop("partial_image_b64", "")
        return frame_typed_event(
            {"type": f"{self._prefix}.partial_image", "b64_json": data, **fields}
        )

    def finish(self, message: Message) -> bytes:
        """Tells of the whole images, and of the tokens."""
        metadata = dict(message.metadata)
        usage = dump_media_usage(message.usage, metadata.pop("usage", None))
        images = [part for part in message.parts if isinstance(part, DataPart | LinkPart)]
        return b"".join(
            [
                frame_typed_event(
                    {
                        "type": f"{self._prefix}.completed",
                        **_dump_image(self._chat, part, as_url=False),
                        **metadata,
                        # The tokens are those of all images, so one of them tells of them.
                        **drop_none({"usage": usage if part is images[-1] else None}),
                    }
                )
                for part in images
            ]
        )

    def error(self, error: DragomanError) -> bytes:
        """Tells of an error as the API does."""
        return frame_typed_event({"type": "error", **dump_error(self._chat, error).body})
