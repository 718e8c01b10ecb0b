"""Images of Gemini, which has no endpoint for them: a chat is asked to answer with images alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import log
from typing import Any

from dragoman.codec.json_values import drop_none, if_object, optional_field
from dragoman.errors import InvalidRequestError
from dragoman.json_bytes import Json
from dragoman.media_request import ImageRequest
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest
from dragoman.wires.google.decode import Decoder
from dragoman.wires.google.decode import decoder as chat_decoder
from dragoman.wires.google.request import dump_http as dump_chat

__all__ = ["decoder", "dump_http"]

_RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")
"""Aspect ratios that all models take."""
_PIXELS = re.compile(r"([1-9][0-9]{1,4})x([1-9][0-9]{1,4})")
_LONGEST_1K, _LONGEST_2K = 1600, 2560
"""Pixels of the longer side up to which a resolution is the nearest one."""
_RESOLUTIONS = ("512", "1K", "2K", "4K")


def dump_http(request: ImageRequest, *, quirks: Any = None) -> HttpRequest:
    """Writes path, headers and body of a request. Of a size in pixels the nearest aspect ratio is
    asked for; the type of the image is the model's choice.

    Raises:
        InvalidRequestError: it asks for a mask, for several images, or for an unknown size.
    """
    if request.mask is not None:
        raise InvalidRequestError(
            "Gemini takes no mask; say in the prompt what is to change, and where"
        ).at(field="mask")
    if (request.count or 1) > 1:
        raise InvalidRequestError("Gemini makes one image a request; send several requests").at(
            field="count"
        )
    image_config = _dump_size(request.size)
    options = dict(request.options)
    config: Json = {
        "responseModalities": ["IMAGE"],
        **optional_field("imageConfig", image_config),
        **if_object(options.pop("generationConfig", None)),
    }
    chat = ModelRequest(
        request.model,
        (request.message,),
        stream=request.stream,
        options={**options, "generationConfig": config},
    )
    return dump_chat(chat, quirks=quirks)


def _dump_size(size: str | None) -> Json:
    """Returns the fields of Gemini's image config for a size of images: pixels, an aspect ratio, or
    a resolution such as `2K`."""
    if size in (None, "auto"):
        return {}
    if size in _RESOLUTIONS:
        return {"imageSize": size}
    if re.fullmatch(r"[1-9][0-9]?:[1-9][0-9]?", size):
        return {"aspectRatio": size}
    if (match := _PIXELS.fullmatch(size)) is None:
        raise InvalidRequestError(
            f"size {size!r:.100} is unknown; write WIDTHxHEIGHT, an aspect ratio such as 16:9, or one of {', '.join(_RESOLUTIONS)}"
        ).at(field="size")
    width, height = int(match[1]), int(match[2])
    distances = {ratio: abs(log(width / height) - log(_divide(ratio))) for ratio in _RATIOS}
    # Below that the model's usual resolution is the nearest one.
    longest = max(width, height)
    resolution = None
    if longest > _LONGEST_2K:
        resolution = "4K"
    elif longest > _LONGEST_1K:
        resolution = "2K"
    return drop_none(
        {"aspectRatio": min(distances, key=distances.__getitem__), "imageSize": resolution}
    )


def _divide(ratio: str) -> float:
    width, _, height = ratio.partition(":")
    return int(width) / int(height)


def decoder(
    request: ImageRequest,
    *,
    media_type: str = "",
    origin: Origin | None = None,
    new_id: Callable[[], str] | None = None,
) -> Decoder:
    """Returns a decoder of the Gemini answer with images, which is that of a chat."""
    del request, media_type
    return chat_decoder(origin=origin, new_id=new_id)
