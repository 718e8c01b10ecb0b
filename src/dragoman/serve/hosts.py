"""Which hosts a request may be for, and which web pages may send one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HostGuard"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine."""
_MAX_AGE = "600"
"""Seconds for which a browser may keep the answer to a preflight."""


class HostGuard:
    """Lets requests in that are for one of these hosts, and from pages of these origins.

    A page in a browser on this machine could reach a server that is for this machine alone, under a name of its own (DNS rebinding)
    or as another origin; both are refused.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        """`hosts`: names without a port, beside those of this machine; `*`: any. `origins`: such as `https://chat.example.com`, whose pages
        may use the server; `*`: any."""
        self._app = app
        self._hosts = frozenset([*LOOPBACK, *(host.lower() for host in hosts)])
        self._origins = frozenset([origin.lower().rstrip("/") for origin in origins])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if (refusal := self._refusal(scope, headers)) is not None:
            await refusal(scope, receive, send)
            return
        origin = headers.get("origin")
        if origin is None:
            await self._app(scope, receive, send)
            return
        allowed = _cors(origin)

        async def send_with_origin(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *allowed]
            await send(message)

        await self._app(scope, receive, send_with_origin)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._is_ours(headers.get("host", "")):
            return PlainTextResponse(
                "this server is not known by that name; whoever runs it can allow it (hosts=)", 421
            )
        origin = headers.get("origin")
        if origin is None:
            return None
        if not self._may_use(origin, scope, headers):
            return PlainTextResponse(
                "pages of that origin may not use this server; whoever runs it can allow it (origins=)", 403
            )
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            preflight = {
                "access-control-allow-methods": "GET, POST, DELETE",
                "access-control-allow-headers": headers.get("access-control-request-headers", "*"),
                "access-control-max-age": _MAX_AGE,
            }
            return Response(None, 204, {**preflight, **_as_text(_cors(origin))})
        return None

    def _is_ours(self, host: str) -> bool:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        return "*" in self._hosts or name.lower() in self._hosts

    def _may_use(self, origin: str, scope: Scope, headers: Headers) -> bool:
        own = f"{scope.get('scheme', 'http')}://{headers.get('host', '')}"
        return "*" in self._origins or origin.lower() in self._origins or origin.lower() == own.lower()


def _cors(origin: str) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", origin.encode("latin-1", "ignore")), (b"vary", b"Origin")]


def _as_text(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    return {name.decode(): value.decode("latin-1") for name, value in headers}
