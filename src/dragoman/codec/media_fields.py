"""What the endpoints for media share: fields of a body, tokens, and the stream of an answer.

An answer is the events of one message of the model's. A `MediaEncoder` builds that message from its
events, since a stream's last object holds all of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from dragoman.codec.json_values import if_object
from dragoman.codec.serving import SSE_PING
from dragoman.errors import DragomanError, InvalidRequestError
from dragoman.event import Custom, Event, MessageFinished, PartDelta, RunError
from dragoman.fold import MessageBuilder
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Message, Usage

__all__ = [
    "MediaEncoder",
    "MediaResponse",
    "dump_media_usage",
    "find_format",
    "find_mime_type",
    "load_media_usage",
    "take_flag",
    "take_text",
    "take_whole_number",
]

_COUNTS = {
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "total_tokens": ("total_tokens",),
}
"""Neutral count → its fields, the usual one first."""
_NUMERAL = re.compile(r"[0-9]{1,9}")
"""A whole number as a form has it."""


class MediaResponse(NamedTuple):
    """A whole answer as an endpoint for media gives it."""

    media_type: str
    """Of the body."""
    body: bytes
    """As it is sent."""


# fields of a body: those of a form are texts


def take_text(fields: Json, name: str, *, needed: bool = False) -> str | None:
    """Takes a text out of the fields of a media request; `None`: there is none.

    Raises:
        InvalidRequestError: it is no text, or it is needed and empty.
    """
    value = fields.pop(name, None)
    if value is not None and not isinstance(value, str):
        raise InvalidRequestError(f"{name} must be a text").at(field=name)
    if needed and not (value or "").strip():
        raise InvalidRequestError(f"{name} is needed, and is a text that is not empty").at(
            field=name
        )
    return value or None


def take_whole_number(fields: Json, name: str, least: int, most: int) -> int | None:
    """Takes a whole number out of the fields of a media request; `None`: there is none.

    Raises:
        InvalidRequestError: it is none, or is beyond the limits.
    """
    value = fields.pop(name, None)
    if isinstance(value, str) and _NUMERAL.fullmatch(value):
        value = int(value)
    if value is not None and (type(value) is not int or not least <= value <= most):
        raise InvalidRequestError(f"{name} must be a whole number from {least} to {most}").at(
            field=name
        )
    return value


def take_flag(fields: Json, name: str) -> bool:
    """Takes true or false out of the fields of a media request; false if there is neither.

    Raises:
        InvalidRequestError: it is something else.
    """
    value = fields.pop(name, None)
    if isinstance(value, str):
        value = {"true": True, "1": True, "false": False, "0": False, "": False}.get(value, value)
    if value is not None and not isinstance(value, bool):
        raise InvalidRequestError(f"{name} must be true or false").at(field=name)
    return bool(value)


def find_mime_type(formats: dict[str, str], format_name: str | None, name: str) -> str | None:
    """Returns the media type for the field of a media API that names a format, such as `png`.
    `name`: the body's field.

    Raises:
        InvalidRequestError: the API has no such format.
    """
    if format_name is None:
        return None
    if format_name not in formats:
        raise InvalidRequestError(f"{name} must be one of {', '.join(formats)}").at(field=name)
    return formats[format_name]


def find_format(formats: dict[str, str], mime_type: str | None) -> str | None:
    """Returns the field by which a media API names a media type; reverses `find_mime_type`.

    Raises:
        InvalidRequestError: the API has none.
    """
    if mime_type is None:
        return None
    for format_name, type_name in formats.items():
        if type_name == mime_type:
            return format_name
    raise InvalidRequestError(
        f"the provider makes no {mime_type!r:.100}; it makes {', '.join(formats.values())}"
    ).at(field="mime_type")


# tokens


def load_media_usage(value: Any) -> tuple[Usage | None, Json]:
    """Returns the tokens that the fields of a media answer tell, and what else it says of what it
    took, such as seconds."""
    fields = dict(if_object(value))
    counts: dict[str, int] = {}
    for name, spellings in _COUNTS.items():
        for spelling in spellings:
            if type(fields.get(spelling)) is int:
                counts.setdefault(name, fields.pop(spelling))
    beside = {name: field for name, field in fields.items() if field}
    return (Usage(**counts) if counts else None), beside


def dump_media_usage(
    usage: Usage | None, beside: Any, names: Sequence[str] = tuple(_COUNTS)
) -> JsonMap | None:
    """Returns the tokens as the fields of a media answer tell them; reverses `load_media_usage`.
    `names`: the fields for those of the request, of the answer, and of both."""
    if usage is None:
        return if_object(beside) or None
    counts = (usage.input_tokens or 0, usage.output_tokens or 0, usage.total_tokens or 0)
    return {**dict(zip(names, counts, strict=True)), **if_object(beside)}


# a stream


class MediaEncoder:
    """Writes the events of an answer as a stream. A format overrides what it tells of them."""

    stream_type = "text/event-stream"
    """Media type of the stream."""
    ping = SSE_PING
    """What keeps it open."""

    def __init__(self) -> None:
        self._builder = MessageBuilder()
        self._over = False

    def feed(self, event: Event) -> bytes:
        """Returns the bytes that tell of an event of a media answer."""
        if self._over:
            return b""
        self._builder.add(event)
        if isinstance(event, PartDelta):
            return self.delta(event)
        if isinstance(event, Custom):
            return self.custom(event)
        # An answer that fails is finished too, and its error follows.
        if isinstance(event, MessageFinished) and event.finish_reason is not FinishReason.error:
            self._over = True
            return self.finish(self._builder.message())
        if isinstance(event, RunError):
            self._over = True
            return self.error(event.error)
        return b""

    def close(self) -> bytes:
        """Returns the last bytes."""
        return b""

    def objects(self, event: Event) -> Sequence[JsonMap]:  # noqa: ARG002 the protocol's
        """See `StreamEncoder`. Streams of media are bytes alone."""
        return ()

    def delta(self, event: PartDelta) -> bytes:  # noqa: ARG002 for those that tell of it
        """Returns the bytes for more of a part."""
        return b""

    def custom(self, event: Custom) -> bytes:  # noqa: ARG002 for those that tell of it
        """Returns the bytes for a custom event."""
        return b""

    def finish(self, message: Message) -> bytes:  # noqa: ARG002 for those that tell of it
        """Returns the bytes that end the answer."""
        return b""

    def error(self, error: DragomanError) -> bytes:  # noqa: ARG002 for those that tell of it
        """Returns the bytes that end the answer with an error."""
        return b""
