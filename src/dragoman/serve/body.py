"""The body of a request: read as far as the limits allow, and read as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import anyio
import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from dragoman.errors import InvalidRequestError, RequestTooLargeError
from dragoman.serve.limits import ServerLimits

__all__ = ["json_object", "read_body"]


async def read_body(receive: Receive, headers: dict[str, str], limits: ServerLimits) -> bytes:
    """The bytes of a body.

    Raises:
        RequestTooLargeError: there are too many.
        InvalidRequestError: they do not come, or are compressed.
        ClientDisconnect: the client is gone.
    """
    most = limits.body_bytes
    if headers.get("content-encoding", "identity").lower() not in ("identity", ""):
        raise InvalidRequestError("the body is compressed, which this server does not read; send it as it is")
    length = headers.get("content-length", "")
    if most is not None and length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > most):
        raise _too_large(most)
    pieces: list[bytes] = []
    size = 0
    with anyio.move_on_after(limits.body_seconds):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            piece = message.get("body", b"")
            size += len(piece)
            if most is not None and size > most:
                raise _too_large(most)
            pieces.append(piece)
            if not message.get("more_body", False):
                return b"".join(pieces)
    raise InvalidRequestError(f"the body did not come whole in {limits.body_seconds:g} seconds; send it again")


def json_object(data: bytes, limits: ServerLimits) -> dict[str, Any]:
    """A body that holds a JSON object; an empty one is an empty object.

    Raises:
        InvalidRequestError: it holds no JSON object, or one that is nested too deep.
    """
    if not data.strip():
        return {}
    try:
        body = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except msgspec.DecodeError as error:
        raise InvalidRequestError(f"the body is no JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"the body is not in UTF-8: byte {error.start} is none of it") from error
    except RecursionError as error:
        raise InvalidRequestError("the body has too many levels of objects and lists") from error
    if not isinstance(body, dict):
        raise InvalidRequestError("the body must be a JSON object")
    if limits.depth is not None and _is_deeper(body, limits.depth):
        raise InvalidRequestError(f"the body has more than {limits.depth} levels of objects and lists")
    return cast("dict[str, Any]", body)


def _is_deeper(value: Any, most: int) -> bool:
    """Whether objects and lists are nested deeper than that."""
    level: list[Any] = [value]
    for _ in range(most):
        inner: list[Any] = [each for one in level for each in _values(one)]
        level = [each for each in inner if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def _values(value: Any) -> Iterable[Any]:
    return cast("dict[str, Any]", value).values() if type(value) is dict else value


def _too_large(most: int) -> RequestTooLargeError:
    return RequestTooLargeError(f"the body has more than {most} bytes, which is the most that this server takes")
