"""`POST /v1/plan`: what a conversation would lose, cost and void at a model, before it is sent.

The body names a model, a format and a body of that format:
`{"model": "anthropic:claude-opus-5-5", "format": "openai_chat", "body": {"messages": […]}}`. A wire's
body is a whole request, so its settings and tools are planned too; another format's is a
conversation.
"""

from __future__ import annotations

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dragoman import formats, wires
from dragoman.codec.json_values import if_object
from dragoman.errors import (
    AuthenticationError,
    DragomanError,
    InvalidRequestError,
    ModelNotFoundError,
    SettingsError,
)
from dragoman.history import plan
from dragoman.json_bytes import Json
from dragoman.request import ModelRequest
from dragoman.serve.core.service import Service
from dragoman.serve.gateway.gateway import Gateway
from dragoman.serve.http.body import json_object, read_body
from dragoman.serve.http.callers import Caller, find_keys
from dragoman.serve.http.limits import check_request

__all__ = ["plan_route"]

_DEFAULT_WIRE = "openai_chat"


def plan_route(service: Service) -> Route:
    """Returns the server's route for `POST /v1/plan`."""

    async def handle(request: Request) -> Response:
        """Answers with the plan as JSON, or with an error in the shape of the format's API."""
        wire = _DEFAULT_WIRE
        try:
            caller = await service.authenticate(find_keys(request.scope["headers"], b""))
            if caller is None:
                raise AuthenticationError("the key is missing or wrong")
            data = await read_body(request.receive, dict(request.headers), service.limits)
            body = json_object(data, service.limits)
            if body.get("format") in wires.names("model"):
                wire = str(body["format"])
            return JSONResponse(_plan(body, service, caller))
        except ClientDisconnect:
            return Response(status_code=499)
        except DragomanError as error:
            answer = wires.get(wire).dump_error(error)
            return JSONResponse(answer.body, answer.status, dict(answer.headers))

    return Route("/v1/plan", handle, methods=["POST"])


def _plan(body: Json, service: Service, caller: Caller) -> Json:
    """Returns the plan, as JSON, for the body of `POST /v1/plan`.

    Raises:
        InvalidRequestError: a field is missing, or of another type than it must be.
        ModelNotFoundError: the caller may not use the model, or there is none of that name.
        HistoryError: the format cannot read its body.
    """
    model, name, payload = body.get("model"), body.get("format"), body.get("body")
    if not isinstance(model, str) or not model:
        raise InvalidRequestError('"model" must be a model string').at(field="model")
    if not isinstance(name, str) or name not in formats.names():
        known = ", ".join(formats.names())
        raise InvalidRequestError(f'"format" must be one of {known}').at(field="format")
    target = _find_target(model, service, caller)
    around: ModelRequest | None = None
    if name in wires.names("model"):
        request = around = wires.get(name).load_request(if_object(payload))
    else:
        request = ModelRequest("", tuple(formats.get(name).load_messages(payload)))
    check_request(request, service.limits)
    try:
        return plan(request.messages, target, request=around).to_json()
    except SettingsError as error:
        raise _not_found(model) from error


def _find_target(model: str, service: Service, caller: Caller) -> str:
    """Returns the model string for a model name that the caller of `/v1/plan` may use.

    Raises:
        ModelNotFoundError: there is none.
    """
    if not caller.may_use(model):
        raise _not_found(model)
    for backend in service.backends:
        if isinstance(backend, Gateway) and backend.serves(model):
            return backend.model_string(model)
    return model


def _not_found(model: str) -> ModelNotFoundError:
    return ModelNotFoundError(f"there is no model {model!r:.200} here").at(field="model")
