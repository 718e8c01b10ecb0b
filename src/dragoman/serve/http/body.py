"""The body of a request: read as far as the limits allow, and read as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from dragoman import json_bytes
from dragoman.codec.multipart import FORM_TYPE, FormBounds, is_form, load_form
from dragoman.errors import InvalidRequestError, RequestTooLargeError, UnsupportedTypeError
from dragoman.json_bytes import Json
from dragoman.serve.http.limits import ServerLimits

__all__ = [
    "FORM_PURPOSES",
    "BodyTimeoutError",
    "json_object",
    "json_value",
    "load_fields",
    "read_body",
]

FORM_PURPOSES = ("images", "transcription")
"""Purposes of routes whose clients send forms with files, or JSON."""
_JSON_TYPES = ("", "application/json", "text/plain", "application/x-www-form-urlencoded")
"""Media types of JSON. Clients without a library leave theirs as it is."""


_BOM = b"\xef\xbb\xbf"


class BodyTimeoutError(InvalidRequestError):
    """The body did not come whole in time."""


def _count_nothing(count: int) -> None:
    """Counts no bytes: the default for readers of a body without a limit."""


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    limits: ServerLimits,
    take: Callable[[int], None] = _count_nothing,
) -> bytes:
    """Reads the body of a request as bytes. `take` is called with the number of bytes before they
    are held.

    Raises:
        OverloadedError: `take` raises it.
        RequestTooLargeError: there are too many.
        BodyTimeoutError: they do not come.
        InvalidRequestError: they are compressed.
        ClientDisconnect: the client is gone.
    """
    most = limits.body_bytes
    if headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
        raise InvalidRequestError(
            "the body is compressed, which this server does not read; send it as it is"
        )
    length = headers.get("content-length", "").strip()
    if (
        most is not None
        and length.isascii()
        and length.isdigit()
        # Python refuses to convert very long numbers, so they are refused by their
        # length.
        and (len(length) > 18 or int(length) > most)
    ):
        raise _too_large_error(most)
    data = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(limits.body_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                piece = message.get("body", b"")
                if most is not None and len(data) + len(piece) > most:
                    raise _too_large_error(most)
                take(len(piece))
                data += piece
                if not message.get("more_body", False):
                    return bytes(data)
    raise BodyTimeoutError(
        f"the body did not come whole in {limits.body_seconds:g} seconds; send it again"
    )


def load_fields(data: bytes, content_type: str, purpose: str, limits: ServerLimits) -> Json:
    """The fields of a body: a JSON object, or for some purposes a form, in which a file is a
    `DataPart`, or any JSON, which becomes the field `input`.

    Raises:
        InvalidRequestError: it is neither.
        RequestTooLargeError: it holds too much.
        UnsupportedTypeError: it says that it is something else.
    """
    if purpose == "object":
        return {"input": json_value(data, limits)}
    if purpose not in FORM_PURPOSES:
        return json_object(data, limits)
    if is_form(content_type):
        bounds = FormBounds(limits.form_parts, limits.field_bytes, limits.file_bytes)
        return load_form(data, content_type, bounds)
    if content_type.partition(";")[0].strip().lower() not in _JSON_TYPES:
        raise UnsupportedTypeError(
            f"a body of type {content_type!r:.100} is not read here; send {FORM_TYPE} or application/json"
        )
    return json_object(data, limits)


def json_object(data: bytes, limits: ServerLimits) -> Json:
    """Returns the JSON object that a request's body holds; an empty body is an empty object.

    Raises:
        InvalidRequestError: it holds no JSON object, or one that is nested too deep.
        RequestTooLargeError: it holds too many values.
    """
    body = json_value(data, limits)
    if not isinstance(body, dict):
        raise InvalidRequestError("the body must be a JSON object")
    return cast("Json", body)


def json_value(data: bytes, limits: ServerLimits) -> Any:
    """Returns the JSON value that a request's body holds; an empty body is an empty object. Of two
    fields of one name the last one counts. Half a character, as a client leaves it that cuts an
    emoji, is replaced by U+FFFD.

    Raises:
        InvalidRequestError: it holds no JSON, or one that is nested too deep.
        RequestTooLargeError: it holds too many values.
    """
    # Some clients put a byte order mark in front of the JSON.
    data = data.removeprefix(_BOM)
    if not data or data.isspace():
        return {}
    _check_values(data, limits)
    depth = json_bytes.MOST_DEPTH
    if limits.depth is not None:
        depth = min(limits.depth, depth)
    try:
        return json_bytes.decode(data, depth)
    except msgspec.DecodeError as error:
        raise InvalidRequestError(f"the body is no JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise InvalidRequestError("the body is not in UTF-8") from error
    except ValueError as error:
        raise InvalidRequestError(
            f"the body has more than {depth} levels of objects and lists"
        ) from error


def _check_values(data: bytes, limits: ServerLimits) -> None:
    """Refuses a body that would take much more memory than it has bytes, before it is read.

    Raises:
        RequestTooLargeError: it holds too many values.
    """
    most = limits.values
    if most is not None and len(data) > most and sum(map(data.count, (b",", b"[", b"{"))) > most:
        raise RequestTooLargeError(
            f"the body has more than {most} commas and brackets, which is the most that this server takes; send files as base64"
        )


def _too_large_error(most: int) -> RequestTooLargeError:
    return RequestTooLargeError(
        f"the body has more than {most} bytes, which is the most that this server takes"
    )
