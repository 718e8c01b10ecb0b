"""One request of an API and what came of it.

The arguments of a call become path, query, headers and body as the document's styles have them
(`write`). Then keys are added, redirects are kept within the host, and the answer becomes a tool's
result (`ApiRequests`).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from email.message import Message
from http import HTTPStatus
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urljoin

import msgspec

from dragoman import json_bytes
from dragoman.errors import ToolError
from dragoman.json_bytes import JsonMap
from dragoman.message import DataPart
from dragoman.openapi.operations import Body, Operation, Parameter
from dragoman.openapi.security import Scheme
from dragoman.openapi.servers import origin
from dragoman.request import HttpRequest
from dragoman.tools import ToolContext

if TYPE_CHECKING:
    from dragoman.transport import Response, Transport

__all__ = [
    "Headers",
    "ApiRequests",
    "WrittenRequest",
    "write_request",
]

_DELIMITERS = {"form": ",", "simple": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class WrittenRequest(msgspec.Struct, frozen=True):
    """A request without its address and its keys."""

    path: str
    """Below the base URL."""
    query: tuple[str, ...]
    """`name=value`, encoded."""
    headers: Mapping[str, str]
    """Those that arguments set, and the body's type."""
    cookies: tuple[str, ...]
    """`name=value`, encoded."""
    body: bytes | None
    """As it is sent."""


def write_request(
    operation: Operation,
    parameters: Sequence[Parameter],
    body: Body | None,
    arguments: JsonMap,
) -> WrittenRequest:
    """Writes the HTTP request of an OpenAPI operation from the arguments of a tool call. Absent and
    `None` arguments are left out. What is not given, or `None`, is left out.

    Raises:
        ToolError: an argument cannot stand where it belongs.
    """
    path, query, cookies = operation.path, list[str](), list[str]()
    headers: dict[str, str] = {}
    for parameter in parameters:
        value = arguments.get(parameter.argument)
        if value is None:
            continue
        if parameter.is_json:
            value = _as_json(value).decode()
        if parameter.location == "path":
            path = path.replace(f"{{{parameter.name}}}", _write_path_segment(parameter, value))
        elif parameter.location == "header":
            headers[parameter.name] = _write_header(parameter, value)
        else:
            (query if parameter.location == "query" else cookies).extend(
                _write_pairs(parameter, value)
            )
    if "{" in path:
        raise ToolError(f"an argument of the path is missing: {path}")
    # An argument of `..` would climb out of the path that the document allows.
    if not {".", ".."}.isdisjoint(path.split("/")):
        raise ToolError(f"the arguments lead to another path: {path}")
    content = None
    if body is not None and (value := arguments.get(body.argument)) is not None:
        headers["content-type"] = body.media_type
        content = _write_body(body, value)
    return WrittenRequest(path, tuple(query), headers, tuple(cookies), content)


def _write_path_segment(parameter: Parameter, value: Any) -> str:
    if not (text := _write_simple(parameter, value, encoded=True)):
        raise ToolError(f"{parameter.argument}: it stands in the path and cannot be empty")
    return text


def _write_header(parameter: Parameter, value: Any) -> str:
    """Writes a header parameter of an OpenAPI request. Raises `ToolError` if it has control
    characters."""
    text = _write_simple(parameter, value, encoded=False)
    if _CONTROL.search(text):
        raise ToolError(
            f"{parameter.argument}: a header holds no line breaks and no control characters"
        )
    return text


def _write_simple(parameter: Parameter, value: Any, *, encoded: bool) -> str:
    """Writes a parameter of a request in OpenAPI's style `simple`, percent-encoded or not."""
    write = _percent_encode if encoded else _as_text
    if isinstance(value, Mapping):
        pairs = cast("JsonMap", value).items()
        joint = "=" if parameter.explode else ","
        return ",".join(f"{write(name)}{joint}{write(item)}" for name, item in pairs)
    if isinstance(value, list):
        return ",".join(map(write, cast("list[Any]", value)))
    return write(value)


def _write_pairs(parameter: Parameter, value: Any) -> Iterator[str]:
    """Yields the `name=value` pairs of a query parameter or a cookie of an OpenAPI request."""
    name = _percent_encode(parameter.name)
    if parameter.style == "deepObject" and isinstance(value, (Mapping, list)):
        yield from _write_deep_object(name, value)
    elif isinstance(value, Mapping):
        fields = cast("JsonMap", value)
        if parameter.explode:
            yield from (
                f"{_percent_encode(key)}={_percent_encode(item)}" for key, item in fields.items()
            )
        else:
            flat = [piece for pair in fields.items() for piece in pair]
            yield f"{name}={_DELIMITERS[parameter.style].join(map(_percent_encode, flat))}"
    elif isinstance(value, list):
        items = [_percent_encode(item) for item in cast("list[Any]", value)]
        if parameter.explode:
            yield from (f"{name}={item}" for item in items)
        else:
            yield f"{name}={_DELIMITERS[parameter.style].join(items)}"
    else:
        yield f"{name}={_percent_encode(value)}"


def _write_deep_object(name: str, value: Any) -> Iterator[str]:
    """Yields the pairs of an OpenAPI request's query parameter in the style `deepObject`:
    `name[key]=value`."""
    if isinstance(value, Mapping):
        for key, item in cast("JsonMap", value).items():
            yield from _write_deep_object(f"{name}%5B{_percent_encode(key)}%5D", item)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _write_deep_object(f"{name}%5B{index}%5D", item)
    else:
        yield f"{name}={_percent_encode(value)}"


def _write_body(body: Body, value: Any) -> bytes:
    """Writes the body of an OpenAPI request as JSON, text or form."""
    if body.body_type == "json":
        return _as_json(value)
    if body.body_type == "text":
        return _as_text(value).encode()
    if not isinstance(value, Mapping):
        raise ToolError(f"{body.argument}: a form is an object, not {value!r:.80}")
    pairs: list[str] = []
    for name, field in cast("JsonMap", value).items():
        if isinstance(field, list):
            values = cast("list[Any]", field)
        else:
            values = [] if field is None else [field]
        pairs += [f"{_percent_encode(name)}={_percent_encode(item)}" for item in values]
    return "&".join(pairs).encode()


def _percent_encode(value: Any) -> str:
    """Percent-encodes a value for the URL of an OpenAPI request. Raises `ToolError` for unpaired
    surrogates."""
    try:
        return quote(_as_text(value), safe="")
    except UnicodeEncodeError as error:
        raise ToolError(f"{value!r:.80} is no text that can be sent") from error


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return _as_json(value).decode()


def _as_json(value: Any) -> bytes:
    return msgspec.json.encode(value)


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


class ApiRequests:
    """Sends the requests of a document's tools."""

    def __init__(self, transport: Transport | None, headers: Headers | None) -> None:
        """Creates the OpenAPI requests of an API. `transport`: None for a transport of its own."""
        from dragoman.transport import AiohttpTransport, Bounds, Retry, Timeouts

        self._owns = transport is None
        self._transport = transport or AiohttpTransport(
            Timeouts(read=_SECONDS), Bounds(body=_MOST_BYTES)
        )
        if self._owns:
            self._reading = Retry(self._transport, attempts=_ATTEMPTS, cap=10.0)
        else:
            self._reading = self._transport
        self._headers = headers

    async def send(
        self,
        method: Any,
        url: str,
        written: WrittenRequest,
        keys: Sequence[Scheme],
        context: ToolContext[Any],
    ) -> Any:
        """Sends an OpenAPI request of an operation. Returns the tool's result.

        Raises:
            ToolError: the answer is an error, or leads to another host.
            ProviderError: there was no answer.
        """
        headers, query, cookies = (
            {"accept": "application/json, */*;q=0.5"},
            list(written.query),
            list(written.cookies),
        )
        # What the caller says goes before what a model says.
        for source in (
            written.headers,
            await self._caller_headers(context),
        ):
            headers |= {name.lower(): value for name, value in source.items()}
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
        full_url = url + written.path
        full_url += ("&" if "?" in full_url else "?") + "&".join(query) if query else ""
        response = await self._send_following(
            HttpRequest(full_url, headers, written.body, method), origin(url)
        )
        try:
            return await _read_result(response)
        except ToolError as error:
            # The API may echo a key in its error, and the model must not see it.
            raise ToolError(_redact(error.message, secrets)) from None
        finally:
            await response.close()

    async def close(self) -> None:
        """Closes the connections of the running event loop, where they are its own."""
        if self._owns:
            await self._transport.close()

    async def _caller_headers(self, context: ToolContext[Any]) -> Mapping[str, str]:
        """Returns the caller's headers for OpenAPI requests, from a mapping or from a function of
        the tool's context."""
        if not callable(self._headers):
            return self._headers or {}
        headers = self._headers(context)
        return await headers if isawaitable(headers) else headers

    async def _send_following(self, request: HttpRequest, within: tuple[str, str]) -> Response:
        """Sends an OpenAPI request, and follows redirects on the same host. Returns the
        response."""
        for _ in range(_REDIRECTS + 1):
            # Keys are sent along: never to a host that an argument or a redirect chose.
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


async def _read_result(response: Response) -> Any:
    """Reads the response to an OpenAPI request as the tool's result: JSON as its value, text as
    text, anything else as a file."""
    pieces: list[bytes] = []
    while data := await response.read():
        pieces.append(data)
    body, (media_type, charset) = (
        b"".join(pieces),
        _content_type(response.headers.get("content-type", "")),
    )
    if not 200 <= response.status < 300:
        raise ToolError(_describe_error(response.status, body))
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
    """Returns the media type in a content type header of the response to an OpenAPI request, and
    the encoding of its text."""
    message = Message()
    message["content-type"] = value
    charset = message.get_content_charset("utf-8")
    try:
        codecs.lookup(charset)
    except LookupError:
        charset = "utf-8"
    return message.get_content_type() if value else "", charset


def _describe_error(status: int, body: bytes) -> str:
    """Describes for the model the failed response to an OpenAPI request: status and the beginning
    of its body."""
    try:
        reason = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        reason = str(status)
    text = body[: 4 * _ERROR_CHARACTERS].decode(errors="replace").strip()
    if len(text) > _ERROR_CHARACTERS or len(body) > 4 * _ERROR_CHARACTERS:
        cut = "…"
    else:
        cut = ""
    if text:
        return f"HTTP {reason}: {text[:_ERROR_CHARACTERS]}{cut}"
    return f"HTTP {reason}"


def _redact(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***") if secret else text
    return text
