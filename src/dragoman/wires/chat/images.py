"""OpenAI's endpoints for images, `/images/generations` and `/images/edits`. Many vendors and servers
speak them.

One request is asked at both: with images it is an edit, which is a form with files (OpenAI) or JSON
(xAI). The answer is one message whose parts are the images. While one is drawn, `Custom` events named
`PARTIAL_IMAGE` show it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.codec.json_values import drop_none, if_list, if_object, if_text
from dragoman.codec.media import load_url
from dragoman.codec.media_fields import (
    MediaResponse,
    find_format,
    find_mime_type,
    take_flag,
    take_text,
    take_whole_number,
)
from dragoman.codec.multipart import dump_form
from dragoman.content import DataPart, LinkPart
from dragoman.errors import InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.media_request import ImageRequest
from dragoman.message import Message, Origin
from dragoman.request import HttpRequest
from dragoman.wires.chat.images_answer import (
    IMAGE_FORMATS,
    MOST_IMAGES,
    ImagesDecoder,
    ImagesEncoder,
    dump_image_url,
    dump_images,
)
from dragoman.wires.chat.record import DialectRecord

__all__ = ["Images"]

_ANSWER_FORMS = ("b64_json", "url", "base64")
"""How an answer holds images; `base64` is Together's word."""


class Images(msgspec.Struct, frozen=True, eq=False):
    """The endpoints for images of one format of the family (see `wires.MediaWire`)."""

    chat: DialectRecord

    def load_request(self, body: JsonMap, *, path: str = "") -> ImageRequest:
        """Reads the body of a request, JSON or a form's fields. `path`: an edit needs an image.

        Raises:
            InvalidRequestError: there is no prompt, an image that cannot be read, or a field of another type.
        """
        fields = dict(body)
        answer_form = take_text(fields, "response_format")
        if answer_form not in (None, *_ANSWER_FORMS):
            raise InvalidRequestError(
                f"response_format must be {' or '.join(_ANSWER_FORMS[:2])}"
            ).at(field="response_format")
        partial_images = take_whole_number(fields, "partial_images", 0, 3)
        images = _take_images(fields)
        is_edit = path.partition("?")[0].endswith("/edits")
        if is_edit and not images:
            raise InvalidRequestError("an edit needs an image").at(field="image")
        if images and not is_edit:
            raise InvalidRequestError("images are edited at /images/edits").at(field="image")
        mask = _load_image(fields.pop("mask", None), "mask")
        if isinstance(mask, LinkPart):
            raise InvalidRequestError("mask must be a file").at(field="mask")
        return ImageRequest(
            take_text(fields, "model") or "",
            take_text(fields, "prompt", needed=True) or "",
            images,
            mask,
            take_whole_number(fields, "n", 1, 10),
            take_text(fields, "size"),
            find_mime_type(IMAGE_FORMATS, take_text(fields, "output_format"), "output_format"),
            take_flag(fields, "stream"),
            fields | drop_none({"partial_images": partial_images}),
            self.chat.own.note(form=drop_none({"response_format": answer_form})),
        )

    def dump_http(self, request: ImageRequest, *, quirks: Any = None) -> HttpRequest:
        """Writes path, headers and body of an image request.

        Raises:
            InvalidRequestError: an image is a link, or of a type that the API has not.
        """
        fields = drop_none(
            {
                "model": request.model or None,
                "prompt": request.prompt,
                "n": request.count,
                "size": request.size,
                "output_format": find_format(IMAGE_FORMATS, request.mime_type),
                "stream": request.stream or None,
                **self.chat.own.form(request.native),
                **request.options,
            }
        )
        if not request.images:
            return HttpRequest("/images/generations", body=fields)
        if getattr(quirks, "image_edits", "form") == "json":
            return HttpRequest("/images/edits", body={**fields, **_dump_image_fields(request)})
        files = [part for part in request.images if isinstance(part, DataPart)]
        if len(files) < len(request.images):
            raise InvalidRequestError(
                "the provider edits files and no links; download the image, and pass DataPart.from_file(…)"
            ).at(field="image")
        image = files[0] if len(files) == 1 else files
        content_type, data = dump_form({**fields, "image": image, "mask": request.mask})
        return HttpRequest("/images/edits", {"content-type": content_type}, data)

    def decoder(
        self,
        request: ImageRequest,
        *,
        media_type: str = "",
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> ImagesDecoder:
        """Returns a decoder of the answer to an image request. `media_type` says nothing here."""
        del media_type
        return ImagesDecoder(self.chat, request, origin, new_id)

    def dump_response(self, message: Message, *, request: ImageRequest) -> MediaResponse:
        """Writes the images of a message as a whole answer."""
        return dump_images(self.chat, message, request)

    def encoder(self, request: ImageRequest) -> ImagesEncoder:
        """Returns an encoder of a streamed answer to a request."""
        return ImagesEncoder(self.chat, request)


def _take_images(fields: Json) -> tuple[DataPart | LinkPart, ...]:
    """Takes the images to edit out of the body of an image request (Images API): files, URLs, or
    objects that hold one."""
    values = [fields.pop("image", None), fields.pop("images", None)]
    entries = [entry for value in values for entry in (if_list(value) or [value])]
    images = [image for entry in entries if (image := _load_image(entry, "image")) is not None]
    if len(images) > MOST_IMAGES:
        raise InvalidRequestError(f"there are more than {MOST_IMAGES} images").at(field="image")
    return tuple(images)


def _load_image(value: Any, name: str) -> DataPart | LinkPart | None:
    """Reads one image of a request to the Images API, from a file, a URL or a data URL. Raises
    `InvalidRequestError` if it is none."""
    if value is None or isinstance(value, DataPart):
        image = value
    else:
        entry = if_object(value)
        url = if_text(entry.get("url")) or if_text(entry.get("image_url")) or if_text(value)
        if not url.startswith(("data:", "https://", "http://")):
            raise InvalidRequestError(f"{name} must be a file, or the URL of one").at(field=name)
        image = load_url(url)
    if isinstance(image, DataPart) and not (image.data and image.mime_type.startswith("image/")):
        raise InvalidRequestError(f"{name} is empty, or no image but {image.mime_type:.100}").at(
            field=name
        )
    return image


def _dump_image_fields(request: ImageRequest) -> Json:
    """Returns the images and the mask of a request to the Images API as fields of a JSON body."""
    images = [{"type": "image_url", "url": dump_image_url(part)} for part in request.images]
    fields: Json = {"image": images[0]} if len(images) == 1 else {"images": images}
    if request.mask is not None:
        fields["mask"] = {"type": "image_url", "url": dump_image_url(request.mask)}
    return fields
