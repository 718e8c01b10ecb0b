"""A place of the server as an ASGI application: a request becomes a `Call`, and whatever goes wrong is answered as its wire does."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.codec.serving import Route
from dragoman.errors import DragomanError, InvalidRequestError, ProviderError
from dragoman.logs import logger
from dragoman.serve.call import Call
from dragoman.serve.endpoints import HANDLERS, json_response
from dragoman.serve.places import Place
from dragoman.serve.service import Service
from dragoman.wires.wire import Wire

__all__ = ["Endpoint"]

_LOG = logger("serve")


class Endpoint:
    """One place of the server."""

    def __init__(self, place: Place, service: Service) -> None:
        self._place = place
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        request = Request(scope, receive)
        wire, route = self._chosen(request)
        try:
            response = await HANDLERS[route.purpose](await self._call(request, wire, route))
        except DragomanError as error:
            response = refused(wire, error)
        except Exception:  # noqa: BLE001 - whatever it is, the client gets an answer of its API
            _LOG.exception("a request to %s failed", scope["path"])
            response = refused(wire, ProviderError("the server failed; try again, or ask who runs it"))
        await response(scope, receive, send)

    def _chosen(self, request: Request) -> tuple[Wire, Route]:
        candidates = self._place.candidates
        named = [
            each for each in candidates if (header := getattr(each[1], "header", "")) and header in request.headers
        ]
        plain = [each for each in candidates if not getattr(each[1], "header", "")]
        return (named or plain or list(candidates))[0]

    async def _call(self, request: Request, wire: Wire, route: Route) -> Call:
        service, path = self._service, request.url.path.removeprefix(f"/{wire.name}")
        query = request.url.query
        return Call(
            service,
            wire,
            route,
            f"{path}?{query}" if query else path,
            {name.lower(): value for name, value in request.headers.items()},
            request.path_params,
            await _body(request) if request.method == "POST" else {},
            service.new_id(),
            service.clock(),
        )


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(await request.body() or b"{}")
    except msgspec.DecodeError as error:
        raise InvalidRequestError(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise InvalidRequestError("the body must be a JSON object")
    return cast("dict[str, Any]", body)


def refused(wire: Wire, error: DragomanError) -> Response:
    """An error as the wire's API answers with it."""
    written = wire.dump_error(error)
    return json_response(written.body, written.status, written.headers)
