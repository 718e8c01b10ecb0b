"""Answers requests at one path of the server.

`Endpoint` is an ASGI application. It finds the API and the caller of a request, reads the body, makes
a `Call` of it, and passes it to the API's handler. Errors are answered in the format of the API. Each
call is measured and logged, however it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from dragoman import json_bytes
from dragoman.codec.serving import Route
from dragoman.errors import AuthenticationError, InvalidRequestError, public
from dragoman.json_bytes import Json
from dragoman.logs import logger
from dragoman.serve.apis import media, models, runs
from dragoman.serve.apis.a2a import A2aApi
from dragoman.serve.apis.object_stream import stream_object
from dragoman.serve.apis.responses import ResponsesApi
from dragoman.serve.core.call import Api, Call
from dragoman.serve.core.service import Service
from dragoman.serve.http.body import BodyTimeoutError, load_fields, read_body
from dragoman.serve.http.call_metrics import Observed, log_failure
from dragoman.serve.http.callers import STRANGER, Caller, find_keys
from dragoman.serve.http.connection import Connection
from dragoman.serve.http.method_paths import MethodPath
from dragoman.wires.serving import get_serving
from dragoman.wires.wire import Wire

__all__ = ["Endpoint", "api_of", "is_offered"]

_LOG = logger("serve")
_MOST_FIELDS = 100
_ID_HEADER = "x-request-id"
"""Header of every answer with the call's id, beside that in which the API's clients look for it."""
_APIS: Mapping[str, Api] = {
    "a2a": A2aApi(),
    "ai_sdk": runs.AiSdkApi({"object": stream_object}),
    "anthropic": models.AnthropicApi(),
    "ollama": models.OllamaApi(),
    "openai_responses": ResponsesApi(),
}
"""Name of a wire → its API, if it has anything that others do not."""
_DEFAULT_API = Api({**models.HANDLERS, **media.HANDLERS, **runs.HANDLERS})


def api_of(wire: Wire) -> Api:
    """Returns what the server does for clients of a wire."""
    return _APIS.get(wire.name, _DEFAULT_API)


def is_offered(wire: Wire, purpose: str) -> bool:
    """True if the server does anything at places of this purpose."""
    return purpose in api_of(wire).handlers


class Endpoint:
    """One path of the server, for one method."""

    def __init__(self, method_path: MethodPath, service: Service) -> None:
        self.method_path = method_path
        """Method, path, and the routes of wires that are there."""
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request to this endpoint."""
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        wire, route = self._choose_route(headers)
        method_path, clock = self.method_path, asyncio.get_running_loop().time
        observed = Observed(
            call_id=self._service.new_id(),
            wire=wire.name,
            purpose=route.purpose,
            method=method_path.method,
            path=method_path.path,
            started=clock(),
        )
        try:
            await self._answer(scope, receive, send, headers, wire, route, observed)
        finally:
            observed.seconds = clock() - observed.started
            self._service.observe(observed)

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: dict[str, str],
        wire: Wire,
        route: Route,
        observed: Observed,
    ) -> None:
        """Answers one request to the endpoint: finds its caller and route, reads its body and runs
        the call."""
        service = self._service
        id_headers = dict.fromkeys([_ID_HEADER, api_of(wire).id_header], observed.id)
        try:
            caller = await self._find_caller(wire, route, scope)
            observed.caller, observed.owner = caller.name, caller.id
            with service.gate.count_call(caller), service.gate.hold_bytes() as take:
                if scope["method"] == "POST":
                    data = await read_body(receive, headers, service.limits, take)
                else:
                    data = b""
                connection = Connection(receive, send, service.limits, id_headers)

                async def work() -> None:
                    """Answers the endpoint's request, while the connection watches for the client's
                    leaving."""
                    call = self._make_call(
                        scope, headers, wire, route, caller, data, connection, observed
                    )
                    await call.api.handlers[route.purpose](call)

                async with connection:
                    with (
                        service.gate.track_connection(connection),
                        service.accounts.charge(caller),
                    ):
                        error = await connection.run(work)
                    if error is not None:
                        await self._end_with(
                            connection, wire, route, error, headers.get("content-type", "")
                        )
                if connection.ended:
                    failure = observed.error = observed.error if error is None else error
                    if failure is None:
                        observed.status = 200
                    else:
                        observed.status = wire.dump_error(public(failure)).status
                        log_failure(observed, failure, observed.status)
                # Only a stream has a first piece; for whole answers this is
                # None.
                observed.note_first(connection.first)
        # The client is gone, so there is nobody to answer.
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer of its API
            observed.status = await self._refuse(
                Connection(receive, send, service.limits, id_headers),
                wire,
                route,
                error,
                headers.get("content-type", ""),
            )
            observed.error = error
            log_failure(observed, error, observed.status)

    async def _end_with(
        self, connection: Connection, wire: Wire, route: Route, error: Exception, media_type: str
    ) -> None:
        """Answers for the endpoint with an error, or ends a stream with it."""
        if not connection.started:
            await self._refuse(connection, wire, route, error, media_type)
            return
        try:
            await connection.end_with(public(error))
        except Exception:  # noqa: BLE001 - nothing can be said any more
            _LOG.exception("an answer broke off, and its client could not read why")

    async def _refuse(
        self, connection: Connection, wire: Wire, route: Route, error: Exception, media_type: str
    ) -> int:
        """Answers for the endpoint with an error in the shape of the wire's API. Returns the HTTP
        status. `media_type`: that of the answer so far."""
        response = api_of(wire).refuse(wire, public(error), route.purpose, media_type)
        headers = {"content-type": "application/json", **response.headers}
        if isinstance(error, BodyTimeoutError):
            # Where its next request begins, nobody knows.
            headers["connection"] = "close"
        await connection.respond(response.status, headers, json_bytes.encode(response.body))
        return response.status

    async def _find_caller(self, wire: Wire, route: Route, scope: Scope) -> Caller:
        """Returns the caller with the keys of a request to the endpoint. Raises
        `AuthenticationError` without a known key."""
        presented = find_keys(scope["headers"], scope["query_string"], get_serving(wire).keys)
        caller = await self._service.authenticate(presented)
        if caller is None and route.public and not presented:
            return STRANGER
        if caller is None:
            raise AuthenticationError(
                "the key is not known here; give one that is"
                if presented
                else "a key is needed, and none came with the request"
            )
        return caller

    def _choose_route(self, headers: dict[str, str]) -> tuple[Wire, Route]:
        """Returns the wire and route of the endpoint for a request, by the headers that only one
        wire's clients send."""
        candidates = self.method_path.candidates
        matches = [each for each in candidates if each[1].header and each[1].header in headers]
        defaults = [each for each in candidates if not each[1].header]
        return (matches or defaults or list(candidates))[0]

    def _make_call(
        self,
        scope: Scope,
        headers: dict[str, str],
        wire: Wire,
        route: Route,
        caller: Caller,
        data: bytes,
        connection: Connection,
        observed: Observed,
    ) -> Call:
        """Returns the `Call` for a request to this endpoint."""
        service = self._service
        path, query = (
            scope["path"].removeprefix(scope.get("root_path", "")),
            scope["query_string"].decode("latin-1"),
        )
        # Every API is also served whole under the name of its wire.
        path = path.removeprefix(f"/{wire.name}")
        parameters: Json = scope["path_params"]
        content_type = headers.get("content-type", "")
        body = load_fields(data, content_type, route.purpose, service.limits)
        return Call(
            service=service,
            api=api_of(wire),
            wire=wire,
            route=route,
            caller=caller,
            path=f"{path}?{query}" if query else path,
            query=_parse_query(query),
            headers=headers,
            parameters=parameters,
            body=body,
            connection=connection,
            id=observed.id,
            now=service.clock(),
            observed=observed,
        )


def _parse_query(query: str) -> dict[str, str]:
    """Returns the fields of the query in an endpoint's URL. Raises `InvalidRequestError` if there
    are too many."""
    if not query:
        return {}
    try:
        return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise InvalidRequestError(f"the query has more than {_MOST_FIELDS} fields") from error
