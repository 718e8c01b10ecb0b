"""`http_app` and `serve_http`: a server over streamable HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from anyio import CancelScope
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.errors import SettingsError

if TYPE_CHECKING:
    import uvicorn

__all__ = ["http_app", "serve_http"]

_PATH = "/mcp"
_CLOSING_SECONDS = 2
"""So long open streams may take to end."""


def http_app(server: Server[Any], *, host: str = "127.0.0.1", token: str | None = None) -> Starlette:
    """A server as an ASGI application, at the path `/mcp`.

    `host`: the name or address by which clients reach it. Requests to another host, or from a web page of another, are refused, so
    that no page in a browser on this machine can use it; `0.0.0.0` and `::` stand for any host. `token`: what clients
    must send as `Authorization: Bearer …`.

    Raises:
        SettingsError: the token is empty.
    """
    app = server.streamable_http_app(streamable_http_path=_PATH, host=host, transport_security=_security(host))
    if token is not None:
        if not token.strip():
            raise SettingsError("the token is empty; give one that nobody can guess")
        app.add_middleware(_TokenRequired, token=token)
    return app


async def serve_http(
    server: Server[Any],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    ready: Callable[[str], object] | None = None,
) -> None:
    """Serves clients over HTTP until the process is asked to end (Ctrl-C, SIGTERM), or this is cancelled.

    `port`: 0 takes a free one. `ready` is given the URL once clients can connect.

    Raises:
        SettingsError: others than this machine could reach it, and there is no token; or there is no such host.
        OSError: the port is taken.
    """
    if token is None and not _is_loopback(host):
        raise SettingsError(
            f"{host} can be reached from other machines; give a token that clients must send, or serve on 127.0.0.1"
        )
    import uvicorn

    app = http_app(server, host=host, token=token)
    with _listening(host, port) as listener:
        if ready is not None:
            place = f"[{host}]" if ":" in host else host
            ready(f"http://{place}:{listener.getsockname()[1]}{_PATH}")
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=_CLOSING_SECONDS
        )
        await _served(uvicorn.Server(config), listener)


async def _served(serving: uvicorn.Server, listener: socket.socket) -> None:
    """Serves to the end; when this is cancelled, calls are ended first."""
    task = asyncio.create_task(serving.serve(sockets=[listener]))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        serving.should_exit = True
        with CancelScope(shield=True):
            await asyncio.wait((task,))
        raise


class _TokenRequired:
    """Lets those in who send the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = Headers(scope=scope).get("authorization", "")
            if not compare_digest(given.encode("latin-1"), self._expected):
                refusal = JSONResponse({"error": "the token is missing or wrong"}, 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _security(host: str) -> TransportSecuritySettings:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - clients know it by names that nobody here knows
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    names = ["127.0.0.1", "localhost", "[::1]"] if _is_loopback(host) else [f"[{host}]" if ":" in host else host]
    hosts = [each for name in names for each in (name, f"{name}:*")]
    origins = [f"{scheme}://{each}" for scheme in ("http", "https") for each in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise SettingsError(f"there is no host {host!r} to serve on: {error.strerror}") from error
    return socket.create_server(address[:2], family=family)
