"""The HTTP transport to an MCP server: the library's client, changed so that one failed request
does not end the connection."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR

from dragoman.mcp.options import Options
from dragoman.mcp.streams import Failure

__all__ = ["Failures", "http_streams"]

_CONNECT_SECONDS = 30.0
_READ_SECONDS = 300.0
"""Seconds without a byte after which a response is given up, unless a call may take longer."""
_MOST_FAILURES = 100
"""Failures of a connection that are remembered."""
_SESSION = "mcp-session-id"
_UNREACHED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)


def _is_useful(record: logging.LogRecord) -> bool:
    """Returns False for the library's log of a response that arrives after the session was left."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, anyio.BrokenResourceError | anyio.ClosedResourceError)


# The library logs such an answer as an exception, though nothing is wrong.
logging.getLogger("mcp.client.streamable_http").addFilter(_is_useful)


class Failures:
    """Failures of a connection's requests, each with a random key that no server knows, so that no
    server can claim one."""

    def __init__(self) -> None:
        self._failures: dict[str, Failure] = {}

    def add(self, failure: Failure) -> str:
        """Stores a failure of an MCP server's HTTP answer and returns its key."""
        key = secrets.token_hex(16)
        if len(self._failures) >= _MOST_FAILURES:
            # The oldest one.
            del self._failures[next(iter(self._failures))]
        self._failures[key] = failure
        return key

    def find(self, error: MCPError) -> Failure | None:
        """Returns the failure behind an error, or None if the error is the server's."""
        return self._failures.get(error.data) if isinstance(error.data, str) else None


@asynccontextmanager
async def http_streams(options: Options, failures: Failures) -> AsyncGenerator[Any, None]:
    """Opens the streams of a connection to an MCP server over HTTP. Redirects are followed only
    within the server's origin."""
    server, auth = str(options.server), None
    if options.oauth is not None:
        from dragoman.mcp.sign_in import SignInAuth

        auth = SignInAuth(server, options.oauth)
    read = max(_READ_SECONDS, options.timeout or 0.0)
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=read)
    client = _Client(
        failures, options.max_result, headers=dict(options.headers), timeout=timeout, auth=auth
    )
    async with (
        client,
        streamable_http_client(
            server, http_client=client, max_sse_event_size=_limit_bytes(options.max_result)
        ) as streams,
    ):
        yield streams


class _Client(httpx2.AsyncClient):
    """Answers failed requests with a JSON-RPC error. An exception would end the whole connection
    without the reason."""

    def __init__(self, failures: Failures, max_result: int, **options: Any) -> None:
        super().__init__(**options)
        self._failures = failures
        self._most = _limit_bytes(max_result)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Sends an MCP request over HTTP. A POST that fails gets a JSON-RPC error as its
        response."""
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
        except _UNREACHED as error:
            return self._make_failure_response(
                request, Failure("unreached", f"it cannot be reached: {_describe_error(error)}")
            )
        except httpx2.TransportError as error:
            return self._make_failure_response(
                request, Failure("lost", f"the connection broke: {_describe_error(error)}")
            )
        except OAuthFlowError as error:
            return self._make_failure_response(
                request, Failure("status", f"signing in failed: {_describe_error(error)}")
            )
        except BaseException as error:
            # `SignInNeeded` is not an Exception, since the library would log one with a traceback.
            failure = getattr(error, "failure", None)
            if isinstance(failure, Failure):
                return self._make_failure_response(request, failure)
            raise
        failure = _find_failure(request, response)
        if failure is not None:
            await response.aclose()
            return self._make_failure_response(request, failure)
        # Streams of events are bounded by the library, each event by itself.
        if _is_json(response):
            response.stream = _Bounded(response.stream, self._most)
        return response

    def _make_failure_response(self, request: httpx2.Request, failure: Failure) -> httpx2.Response:
        """Returns an HTTP response with a JSON-RPC error that stands for the failure."""
        error = {
            "code": INTERNAL_ERROR,
            "message": failure.text,
            "data": self._failures.add(failure),
        }
        return httpx2.Response(
            # The library turns the body into an `MCPError`, with the key in `data`.
            500,
            json={"jsonrpc": "2.0", "id": None, "error": error},
            request=request,
        )


class _Bounded(httpx2.AsyncByteStream):
    """A response body with a limit of bytes."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream = stream
        self._left = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the body of an MCP server's HTTP response, up to its bound."""
        try:
            async for data in self._stream:
                self._left -= len(data)
                if self._left < 0:
                    raise httpx2.StreamError("the answer is larger than max_result= allows")
                yield data
        except httpx2.TransportError as error:
            # As it is, the library would let this error end the session.
            raise httpx2.StreamError(
                f"the connection broke ({_describe_error(error)}); it may have run or not"
            ) from error

    async def aclose(self) -> None:
        await self._stream.aclose()


def _limit_bytes(max_result: int) -> int:
    """Returns the limit of a response's bytes: base64 and JSON make a result longer, and lists of
    tools are responses too."""
    return 2 * max_result + 1_000_000


def _find_failure(request: httpx2.Request, response: httpx2.Response) -> Failure | None:
    """Returns the failure that an MCP server's HTTP response means, or None if the library can read
    it."""
    # The protocol's answer for a session that the server has ended.
    if response.status_code == 404 and _SESSION in request.headers:
        return Failure("forgotten", "it does not know the session any more")
    # A JSON body may be an error of JSON-RPC, which the library reads.
    if response.status_code >= 400 and not _is_json(response):
        return Failure("status", _explain_status(response.status_code))
    return None


def _is_json(response: httpx2.Response) -> bool:
    return str(response.headers.get("content-type", "")).lower().startswith("application/json")


def _explain_status(status: int) -> str:
    """Returns a refusal of an MCP server's HTTP status in words, with advice."""
    advice = {
        401: "; give it a key with headers=, or have somebody sign in with oauth=",
        403: "; the key or the sign-in does not allow it",
    }
    return f"it answered with HTTP {status}{advice.get(status, '')}"


def _describe_error(error: Exception) -> str:
    return str(error) or type(error).__name__
