"""A request whose answer is read to its end."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dragoman import wires
from dragoman.errors import DragomanError
from dragoman.providers.provider import Provider
from dragoman.request import HttpRequest
from dragoman.transport.base import Response, Transport

__all__ = ["Whole", "read_all", "request_id", "fetch"]


class Whole(msgspec.Struct, frozen=True):
    """A successful answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def fetch(provider: Provider, transport: Transport, request: HttpRequest) -> Whole:
    """Sends a request to a provider → its answer.

    Raises:
        ProviderError: the provider refused, or cannot be reached; which subclass tells why.
    """
    try:
        response = await transport.send(request)
        try:
            refused = response.status >= 400
            body = await (read_all(response) if refused else _read(response))
        finally:
            await response.close()
    except DragomanError as error:
        error.at(provider=provider.name)
        raise
    if refused:
        error = wires.get(provider.wire).load_error(response.status, response.headers, body)
        raise error.at(provider=provider.name, status=response.status, body=body)
    return Whole(response.status, response.headers, body)


async def read_all(response: Response) -> bytes:
    """The body of an error's answer: what there is of it, where it is cut."""
    chunks: list[bytes] = []
    try:
        while data := await response.read():
            chunks.append(data)
    except DragomanError:
        pass
    return b"".join(chunks)


def request_id(headers: Mapping[str, str]) -> str | None:
    """The provider's id of a request, by the headers of its answer."""
    return headers.get("x-request-id") or headers.get("request-id")


async def _read(response: Response) -> bytes:
    chunks: list[bytes] = []
    while data := await response.read():
        chunks.append(data)
    return b"".join(chunks)
