"""One request of an API and what came of it: keys added, redirects kept within the host, the answer as a tool's result."""

from __future__ import annotations

import codecs
from collections.abc import Awaitable, Callable, Mapping, Sequence
from email.message import Message
from http import HTTPStatus
from inspect import isawaitable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin

from dragoman import json_bytes
from dragoman.errors import ToolError
from dragoman.message import DataPart
from dragoman.openapi.security import Scheme
from dragoman.openapi.servers import origin
from dragoman.openapi.writing import Written
from dragoman.request import HttpRequest
from dragoman.tools import ToolContext

if TYPE_CHECKING:
    from dragoman.transport import Response, Transport

__all__ = ["Headers", "Requests"]

Headers = (
    Mapping[str, str]
    | Callable[[ToolContext[Any]], Mapping[str, str] | Awaitable[Mapping[str, str]]]
)
"""Headers, or a function, plain or async, that gives them for a call."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_ATTEMPTS = 3
_SECONDS = 60.0
"""Without anything coming, until a request is given up."""
_MOST_BYTES = 2**24
_ERROR_CHARACTERS = 2000
"""Of an error's body, for the model."""
_REDIRECTS = 5


class Requests:
    """Sends the requests of a document's tools."""

    def __init__(self, transport: Transport | None, headers: Headers | None) -> None:
        """`transport`: `None`: one of its own."""
        from dragoman.transport import AiohttpTransport, Bounds, Retry, Timeouts

        self._owns = transport is None
        self._transport = transport or AiohttpTransport(
            Timeouts(read=_SECONDS), Bounds(body=_MOST_BYTES)
        )
        self._reading = (
            Retry(self._transport, attempts=_ATTEMPTS, cap=10.0) if self._owns else self._transport
        )
        self._headers = headers

    async def send(
        self,
        method: Any,
        url: str,
        written: Written,
        keys: Sequence[Scheme],
        context: ToolContext[Any],
    ) -> Any:
        """Sends a request → the tool's result.

        Raises:
            ToolError: the answer is an error, or leads to another host.
            ProviderError: there was no answer.
        """
        headers, query, cookies = (
            {"accept": "application/json, */*;q=0.5"},
            list(written.query),
            list(written.cookies),
        )
        for given in (
            written.headers,
            await self._given(context),
        ):  # what the caller says goes before what a model says
            headers |= {name.lower(): value for name, value in given.items()}
        secrets: list[str] = []
        for key in keys:
            value = await key.value(context)
            secrets += [value, value.removeprefix(key.prefix)]
            if key.location == "header":
                headers[key.name.lower()] = value
            else:
                (query if key.location == "query" else cookies).append(
                    f"{quote(key.name)}={quote(value, safe='')}"
                )
        if cookies:
            headers["cookie"] = "; ".join(cookies)
        whole = url + written.path
        whole += ("&" if "?" in whole else "?") + "&".join(query) if query else ""
        response = await self._followed(
            HttpRequest(whole, headers, written.body, method), origin(url)
        )
        try:
            return await _result(response)
        except ToolError as error:
            raise ToolError(_without(error.message, secrets)) from None
        finally:
            await response.close()

    async def close(self) -> None:
        """Closes the connections of the running event loop, where they are its own."""
        if self._owns:
            await self._transport.close()

    async def _given(self, context: ToolContext[Any]) -> Mapping[str, str]:
        if not callable(self._headers):
            return self._headers or {}
        given = self._headers(context)
        return await given if isawaitable(given) else given

    async def _followed(self, request: HttpRequest, within: tuple[str, str]) -> Response:
        """The answer to a request, or to what it is redirected to on the same host."""
        for _ in range(_REDIRECTS + 1):
            if origin(request.path) != within:
                raise ToolError("the request would go to another host than that of the base URL")
            response = await (self._reading if request.method in _READS else self._transport).send(
                request
            )
            target = response.headers.get("location")
            if response.status not in (301, 302, 303, 307, 308) or target is None:
                return response
            await response.close()
            target = urljoin(request.path, target).partition("#")[0]
            if origin(target) != within:
                raise ToolError(
                    f"HTTP {response.status}: it redirects to another host, which is not followed"
                )
            if response.status in (307, 308) or request.method in _READS:
                request = HttpRequest(target, request.headers, request.body, request.method)
            else:
                headers = {
                    name: value for name, value in request.headers.items() if name != "content-type"
                }
                request = HttpRequest(target, headers, None, "GET")
        raise ToolError(f"it was redirected more than {_REDIRECTS} times")


async def _result(response: Response) -> Any:
    """JSON as its value, text as text, anything else as a file."""
    pieces: list[bytes] = []
    while data := await response.read():
        pieces.append(data)
    body, (media_type, charset) = (
        b"".join(pieces),
        _content_type(response.headers.get("content-type", "")),
    )
    if not 200 <= response.status < 300:
        raise ToolError(_error(response.status, body))
    if not body:
        return {"status": response.status}
    if media_type == "application/json" or media_type.endswith("+json"):
        try:
            return json_bytes.decode(body)
        except (ValueError, RecursionError):
            return body.decode(errors="replace")
    if (
        not media_type
        or media_type.startswith("text/")
        or media_type.endswith(("+xml", "/xml", "javascript", "yaml"))
    ):
        return body.decode(charset, errors="replace")
    return DataPart(body, media_type)


def _content_type(value: str) -> tuple[str, str]:
    """The media type, and the encoding of its text."""
    message = Message()
    message["content-type"] = value
    charset = message.get_content_charset("utf-8")
    try:
        codecs.lookup(charset)
    except LookupError:
        charset = "utf-8"
    return message.get_content_type() if value else "", charset


def _error(status: int, body: bytes) -> str:
    try:
        words = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        words = str(status)
    text = body[: 4 * _ERROR_CHARACTERS].decode(errors="replace").strip()
    cut = "…" if len(text) > _ERROR_CHARACTERS or len(body) > 4 * _ERROR_CHARACTERS else ""
    return f"HTTP {words}: {text[:_ERROR_CHARACTERS]}{cut}" if text else f"HTTP {words}"


def _without(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***") if secret else text
    return text
