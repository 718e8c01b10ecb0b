"""A conversation as one request to an endpoint for images, which takes a prompt and images only."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.codec.json_values import if_text, read_extra_fields
from dragoman.loss import Loss, Lost
from dragoman.media_request import ImageRequest
from dragoman.message import DataPart, LinkPart, Message, Role
from dragoman.request import ModelRequest

__all__ = ["make_image_request"]


def make_image_request(
    request: ModelRequest, mime_types: Sequence[str], losses: list[Loss]
) -> ImageRequest:
    """Returns the request for an image that a conversation ends with.

    The images to edit are those of the prompt, else those that the model made last. `losses` gets
    what the endpoint cannot be told.
    """
    prompt = request.messages[-1]
    images = _list_images(prompt) or _list_last_images(request.messages)
    if any(message.text for message in request.messages[:-1]):
        why = "an endpoint for images is told the last prompt alone"
        losses.append(Loss(None, None, Lost.message, why, "the conversation before it"))
    for piece in prompt.parts:
        if isinstance(piece, DataPart | LinkPart) and piece not in images:
            why = "an endpoint for images takes no other files"
            losses.append(Loss(len(request.messages) - 1, None, Lost.data, why, piece.name or ""))
    return ImageRequest(
        request.model,
        prompt.text,
        images,
        size=if_text(request.options.get("size")) or None,
        mime_type=mime_types[0] if len(mime_types) == 1 and "*" not in mime_types[0] else None,
        # Only a stream has images before they are finished.
        stream=bool(request.options.get("partial_images")),
        options=read_extra_fields(request.options, "size"),
    )


def _list_images(message: Message) -> tuple[DataPart | LinkPart, ...]:
    """Returns the images in a message, for an image request."""
    return tuple(
        [
            part
            for part in message.parts
            if isinstance(part, DataPart | LinkPart)
            and (part.mime_type or "image/").startswith("image/")
        ]
    )


def _list_last_images(messages: Sequence[Message]) -> tuple[DataPart | LinkPart, ...]:
    """Returns the images in the model's newest message, which an image request changes."""
    for message in reversed(messages):
        if message.role is Role.MODEL:
            return _list_images(message)
    return ()
