"""Refuses requests for unknown hosts and requests of web pages from other origins."""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.arguments import expect_each
from dragoman.errors import SettingsError
from dragoman.runtime import LOOPBACK

__all__ = ["HostGuard", "host_names", "page_origins"]

_MAX_AGE = "600"
"""Seconds for which a browser may keep the answer to a preflight."""
_METHODS = "GET, POST, DELETE"
_EXPOSED_HEADERS = b"retry-after, dragoman-loss, x-request-id, request-id"
"""Response headers that pages may read, beside those that browsers always show them."""
_HOST = re.compile(rb"(\[[0-9a-fA-F:.]+\]|[^\[\]:@/?#\s]+)(?::[0-9]{1,5})?")
_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#\s]+")
_HEADER_LIST = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}")


def host_names(hosts: Iterable[str]) -> list[str]:
    """Returns host names in the form in which the guard compares them.

    Raises:
        SettingsError: an entry is a URL, or not a host name.
        TypeError: the argument is not a sequence of texts.
    """
    names = [host.lower() for host in expect_each("hosts", hosts, str)]
    for name in names:
        if not _HOST.fullmatch(name.encode()):
            raise SettingsError(
                f"hosts={name!r:.100} is no name of a host; write it without https:// and a path"
            )
    return names


def page_origins(origins: Iterable[str]) -> list[str]:
    """Returns origins in the form in which the guard compares them.

    Raises:
        SettingsError: an entry lacks its scheme, or has a path.
        TypeError: the argument is not a sequence of texts.
    """
    pages = [origin.lower().rstrip("/") for origin in expect_each("origins", origins, str)]
    for page in pages:
        if not _ORIGIN.fullmatch(page):
            raise SettingsError(
                f"origins={page!r:.100} is no origin; write it as https://chat.example.com, without a path"
            )
    return pages


class HostGuard:
    """Admits requests that are for one of the allowed hosts, and pages of the allowed origins.

    A web page in a browser on this machine can reach a server that only listens here, either under a
    host name of its own (DNS rebinding) or from its own origin. Both are refused.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Iterable[str] = (), origins: Iterable[str] = ()
    ) -> None:
        """Guards an application by host names and origins. Args: app: the application. hosts:
        allowed host names beside those of this machine, with a port to allow only that one; `*`
        allows any. origins: origins whose pages may use the server beside its own, such as
        `https://chat.example.com`; `*` as the port allows any port, `*` alone any origin."""
        self._app = app
        self._hosts = frozenset([*LOOPBACK, *host_names(hosts)])
        self._origins = frozenset(page_origins(origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it, as the guard decides."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        origins = [value for name, value in headers if name == b"origin"]
        if (refusal := self._find_refusal(scope, hosts, origins)) is not None:
            await refusal(scope, receive, send)
        elif origins:
            await self._answer_page(origins[0], scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _find_refusal(
        self, scope: Scope, hosts: list[bytes], origins: list[bytes]
    ) -> Response | None:
        """Returns the guard's refusal of a request with an unknown host or a foreign origin, or
        None."""
        # Two Host headers may be read differently by a proxy before the server.
        if len(hosts) != 1 or not self._is_allowed_host(hosts[0]):
            message = "this server is not known by that name; whoever runs it can allow it (hosts=)"
            return PlainTextResponse(message, 421)
        if len(origins) > 1 or not all(
            self._is_allowed_origin(origin, scope, hosts[0]) for origin in origins
        ):
            message = "pages of that origin may not use this server; whoever runs it can allow it (origins=)"
            return PlainTextResponse(message, 403)
        return None

    async def _answer_page(self, origin: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request of a page that the guard allows, with the headers that CORS needs."""
        cors_headers = [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED_HEADERS),
            (b"vary", b"Origin"),
        ]

        async def send_to_page(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *cors_headers]}
            await send(message)

        headers = dict(scope["headers"])
        if scope["method"] != "OPTIONS" or b"access-control-request-method" not in headers:
            await self._app(scope, receive, send_to_page)
            return
        requested_headers = headers.get(b"access-control-request-headers", b"")
        preflight = {"access-control-allow-methods": _METHODS, "access-control-max-age": _MAX_AGE}
        if _HEADER_LIST.fullmatch(requested_headers):
            preflight["access-control-allow-headers"] = requested_headers.decode()
        await Response(None, 204, preflight)(scope, receive, send_to_page)

    def _is_allowed_host(self, host: bytes) -> bool:
        """True if the guard allows the host name, with or without its port."""
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        return "*" in self._hosts or not self._hosts.isdisjoint(
            name.decode("latin-1").lower() for name in match.group(0, 1)
        )

    def _is_allowed_origin(self, origin: bytes, scope: Scope, host: bytes) -> bool:
        """Returns whether the guard lets a web page's origin may use the server."""
        page = origin.decode("latin-1").lower()
        own_origin = f"{scope.get('scheme', 'http')}://{host.decode('latin-1')}".lower()
        # An origin is allowed with any port if `*` stands in the place of the port.
        without_port = re.sub(r"(?<=[^/:]):[0-9]+$", "", page)
        return (
            "*" in self._origins
            or page == own_origin
            or not self._origins.isdisjoint((page, f"{without_port}:*"))
        )
