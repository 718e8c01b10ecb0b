"""Serves what operators need: health checks, metrics, and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman import json_bytes
from dragoman.json_bytes import JsonMap
from dragoman.serve.core.service import Service
from dragoman.serve.http.call_metrics import CONTENT_TYPE
from dragoman.serve.http.callers import find_keys
from dragoman.serve.http.method_paths import MethodPath
from dragoman.serve.http.openapi import describe_server

__all__ = ["Probes", "operation_routes"]

_METHODS = ("GET", "HEAD")


class Probes:
    """Answers `/healthz` and `/readyz` under any host name, because health checks use the address."""

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or passes the request on."""
        if scope["type"] == "http":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
        else:
            path = ""
        if path not in ("/healthz", "/readyz") or scope["method"] not in _METHODS:
            await self._app(scope, receive, send)
            return
        is_closing = path == "/readyz" and self._service.gate.closed
        answer = PlainTextResponse(
            "the server is about to end" if is_closing else "ok", 503 if is_closing else 200
        )
        await answer(scope, receive, send)


def operation_routes(service: Service, method_paths: Sequence[MethodPath]) -> list[Route]:
    """Returns the routes of `/metrics` and `/openapi.json`. `method_paths`: what the document
    describes."""
    describe = cache(lambda: describe_server(method_paths, has_keys=service.has_keys))
    return [
        Route("/metrics", _handle_metrics(service), methods=["GET"]),
        Route("/openapi.json", _handle_openapi(describe), methods=["GET"]),
    ]


def _handle_metrics(service: Service) -> Callable[[Request], Awaitable[Response]]:
    """Returns the handler that answers with the metrics."""

    async def metrics(request: Request) -> Response:
        """Answers with the metrics, if the key may use every model: they cover all clients."""
        presented = find_keys(request.scope["headers"], b"")
        caller = await service.authenticate(presented)
        if caller is None:
            words, headers = (
                "metrics need a key: Authorization: Bearer …",
                {"www-authenticate": "Bearer"},
            )
            return JSONResponse({"error": {"message": words}}, 401, headers)
        if caller.models is not None:
            words = "metrics need a key that may use every model"
            return JSONResponse({"error": {"message": words}}, 403)
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    return metrics


def _handle_openapi(
    describe: Callable[[], JsonMap],
) -> Callable[[Request], Awaitable[Response]]:
    """Returns the handler that answers with the OpenAPI document."""

    async def openapi(request: Request) -> Response:
        root = request.scope.get("root_path", "")
        return Response(
            json_bytes.encode({**describe(), "servers": [{"url": root or "/"}]}),
            media_type="application/json",
        )

    return openapi
