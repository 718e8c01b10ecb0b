"""Documents of APIs, and a server on loopback that says what it was asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

PNG = b"\x89PNG\r\n\x1a\n"


def document(paths: dict[str, Any], *, version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    """A small document."""
    return {"openapi": version, "info": {"title": "Shop", "version": "1"}, "paths": paths, **more}


def operation(*parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An operation that answers somehow."""
    return {"parameters": list(parameters), "responses": {"200": {"description": "ok"}}, **more}


def parameter(
    name: str, location: str = "query", schema: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A parameter; one of the path is required."""
    required = {"required": True} if location == "path" else {}
    return {
        "name": name,
        "in": location,
        "schema": schema or {"type": "string"},
        **required,
        **more,
    }


def json_body(
    schema: dict[str, Any], media_type: str = "application/json", **more: Any
) -> dict[str, Any]:
    """A body of one kind."""
    return {"content": {media_type: {"schema": schema}}, **more}


async def _echo(request: Request) -> Response:
    body = await request.body()
    request.app.state.asked.append(request.method)
    return JSONResponse(
        {
            "method": request.method,
            "path": request.scope["raw_path"].decode(),
            "query": request.scope["query_string"].decode(),
            "headers": dict(request.headers),
            "body": body.decode(),
        }
    )


async def _other(request: Request) -> Response:
    request.app.state.asked.append(request.method)
    match request.path_params["what"]:
        case "text":
            return PlainTextResponse("plain")
        case "image":
            return Response(PNG, media_type="image/png")
        case "latin":
            return Response("é".encode("latin-1"), media_type="text/plain; charset=ISO-8859-1")
        case "odd":
            return Response(b"odd", media_type="text/plain; charset=none-such")
        case "nothing":
            return Response(status_code=204)
        case "broken":
            return Response(b"{", media_type="application/json")
        case "missing":
            return JSONResponse(
                {"detail": f"no such thing for {request.headers.get('authorization')}"}, 404
            )
        case "long":
            return PlainTextResponse("x" * 100_000, 500)
        case "away":
            return RedirectResponse("http://example.invalid/steal")
        case "moved":
            return RedirectResponse("/echo/moved?a=1", 307)
        case "seen":
            return RedirectResponse("/echo/seen", 303)
        case "loop":
            return RedirectResponse("/other/loop")
        case "busy":
            return PlainTextResponse("later", 503, {"retry-after-ms": "1"})
    return Response(status_code=418)


@contextmanager
def serving() -> Iterator[tuple[str, list[str]]]:
    """The base URL of a server, and the methods of the requests that it got."""
    every = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
    app = Starlette(
        routes=[
            Route("/echo/{rest:path}", _echo, methods=every),
            Route("/other/{what}", _other, methods=every),
        ]
    )
    app.state.asked = asked = list[str]()
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", asked
    finally:
        server.should_exit = True
        thread.join()
