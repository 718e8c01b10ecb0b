"""`http_app` and `serve_http`: an MCP server over streamable HTTP."""

from __future__ import annotations

from collections.abc import Callable
from hmac import compare_digest
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.errors import SettingsError
from dragoman.http_server.guard import HostGuard
from dragoman.http_server.listener import (
    make_config,
    open_listener,
    serve_until_stopped,
    server_url,
)
from dragoman.runtime import LOOPBACK, is_loopback

__all__ = ["http_app", "serve_http"]

_PATH = "/mcp"
_CLOSING_SECONDS = 2
"""Seconds that open streams have to end."""


def http_app(
    server: Server[Any], *, host: str = "127.0.0.1", token: str | None = None
) -> Starlette:
    """Returns an MCP server as an ASGI application, at the path `/mcp`.

    `host`: the name or address by which clients reach it. Requests to another host, or from a web
    page of another host, are refused, so that no page in a browser on this machine can use the
    server. `0.0.0.0` and `::` stand for any host. `token`: what clients must send as
    `Authorization: Bearer …`.

    Raises:
        SettingsError: the token is empty.
    """
    # `HostGuard` below protects against DNS rebinding.
    anybody = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(
        streamable_http_path=_PATH, host=host, transport_security=anybody
    )
    if token is not None:
        if not token.strip():
            raise SettingsError("the token is empty; give a long random one")
        app.add_middleware(_TokenRequired, token=token)
    names = _list_host_names(host)
    pages = [f"{scheme}://{name}:*" for scheme in ("http", "https") for name in names]
    # Added last, so it runs first: before the token is looked at.
    app.add_middleware(HostGuard, hosts=names, origins=["*"] if "*" in names else pages)
    return app


async def serve_http(
    server: Server[Any],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    ready: Callable[[str], object] | None = None,
) -> None:
    """Serves MCP clients over HTTP until Ctrl-C, SIGTERM or cancellation.

    `port`: 0 picks a free port. `ready` is called with the URL when clients can connect.

    Raises:
        SettingsError: the address is reachable from other machines and there is no token, the
            host does not exist, or the port is taken.
    """
    if token is None and not is_loopback(host):
        raise SettingsError(
            f"{host} can be reached from other machines; give a token that clients must send, or serve on 127.0.0.1"
        )
    import uvicorn

    app = http_app(server, host=host, token=token)
    with open_listener(host, port) as listener:
        if ready is not None:
            ready(f"{server_url(host, listener)}{_PATH}")
        config = make_config(app, closing_seconds=_CLOSING_SECONDS)
        await serve_until_stopped(uvicorn.Server(config), listener)


class _TokenRequired:
    """Refuses requests without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers MCP requests without the token with 401, and passes on the others."""
        if scope["type"] == "http":
            authorization = Headers(scope=scope).get("authorization", "")
            # Takes the same time for every wrong token, so that none can be guessed bytewise.
            if not compare_digest(authorization.encode("latin-1"), self._expected):
                refusal = JSONResponse(
                    {"error": "the token is missing or wrong"}, 401, {"WWW-Authenticate": "Bearer"}
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _list_host_names(host: str) -> tuple[str, ...]:
    """Returns the host names by which clients reach the MCP server."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - clients may use any name
        return ("*",)
    if is_loopback(host):
        return LOOPBACK
    return (f"[{host}]" if ":" in host else host,)
