"""What a server does at each place of a wire's API, by the place's purpose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from dragoman import json_bytes, wires
from dragoman.errors import InvalidRequestError, SettingsError
from dragoman.logs import logger
from dragoman.model.tokens import request_tokens
from dragoman.request import ModelRequest
from dragoman.result import ModelInfo
from dragoman.serve.apis import a2a
from dragoman.serve.calls.call import Backend, Call
from dragoman.serve.calls.fields import check_types
from dragoman.serve.calls.losses import loss_headers
from dragoman.serve.conversations import answer_endpoints
from dragoman.serve.conversations.answering import answer
from dragoman.serve.conversations.references import with_references
from dragoman.serve.http.limits import check_request
from dragoman.serve.http.observed import offered_name
from dragoman.serve.protocols import endpoints as protocol_endpoints
from dragoman.wires.serving import serving

__all__ = ["HANDLERS", "Handler", "respond"]

_LOG = logger("serve")

Handler = Callable[[Call], Awaitable[None]]


async def chat(call: Call) -> None:
    """Messages → the model's answer, whole or streamed."""
    check_types(call.body, call.wire.name)
    idle = serving(call.wire).dump_idle
    if idle is not None and (body := idle(call.body, call.path, now=call.now)) is not None:
        _backend(call, body["model"])
        await respond(call, body)
        return
    call, request, backend = await _asked(call)
    await answer(call, request, backend)


async def embeddings(call: Call) -> None:
    """Texts → vectors."""
    wire = wires.embeddings(call.wire.name)
    if wire is None:
        raise InvalidRequestError(f"the API {call.wire.name} has no embeddings")
    request = wire.load_request(call.body, path=call.path)
    backend = _backend(call, request.model)
    admitted = backend.admit(call)
    if admitted is not call:
        call, request = admitted, wire.load_request(admitted.body, path=call.path)
    try:
        result = await backend.embed(call, request)
    except SettingsError as error:
        _LOG.warning("embeddings of %.100r: %s", request.model, error)
        raise InvalidRequestError(
            f"the model {request.model!r:.100} makes no embeddings here"
        ) from error
    await respond(
        call, wire.dump_response(result, request=request), loss_headers(call.observed.losses)
    )


async def count_tokens(call: Call) -> None:
    """Messages → how many tokens they are, about."""
    call, request, _ = await _asked(call)
    await respond(call, call.served.dump_token_count(request_tokens(request)))


async def models(call: Call) -> None:
    """All models that the client may name."""
    await respond(
        call, call.served.dump_models(await call.service.models(call.caller), now=call.now)
    )


async def model(call: Call) -> None:
    """One of them."""
    name = call.parameters.get("model") or str(
        call.body.get("model") or call.body.get("name") or ""
    )
    _backend(call, name)
    known = {each.name: each for each in await call.service.models(call.caller)}
    await respond(
        call, call.served.dump_model(known.get(name) or ModelInfo(name, "dragoman"), now=call.now)
    )


async def version(call: Call) -> None:
    """The server's version."""
    await respond(call, call.served.dump_version())


async def alive(call: Call) -> None:
    """That the server is there."""
    await call.connection.respond(200, {"content-type": "text/plain"}, b"dragoman is running")


async def _asked(call: Call) -> tuple[Call, ModelRequest, Backend]:
    """The call with all that its body names, what it asks, and who answers.

    Raises:
        ModelNotFoundError: nobody does.
        InvalidRequestError: it asks for what there is not, or for more than may be.
    """
    request = call.wire.load_request(call.body, path=call.path, headers=call.headers)
    check_request(request, call.service.limits)
    backend = _backend(call, request.model)
    whole = backend.admit(await with_references(call, passed_on=backend.references))
    if whole is not call:
        request = whole.wire.load_request(whole.body, path=whole.path, headers=whole.headers)
    return whole, request, backend


async def respond(call: Call, value: Mapping[str, Any], headers: Mapping[str, str] = {}) -> None:
    """Answers with JSON."""
    await call.connection.respond(
        200, {"content-type": "application/json", **headers}, json_bytes.encode(value)
    )


def _backend(call: Call, model: str) -> Backend:
    """Who answers to that name.

    Raises:
        ModelNotFoundError: nobody does.
    """
    backend = call.service.backend(model, call.caller)
    call.observed.model = offered_name(model, getattr(backend, "names", ()))
    return backend


HANDLERS: Mapping[str, Handler] = {
    "chat": chat,
    "embeddings": embeddings,
    "count_tokens": count_tokens,
    "models": models,
    "model": model,
    "response": answer_endpoints.response,
    "input_items": answer_endpoints.input_items,
    "delete_response": answer_endpoints.delete_response,
    "cancel_response": answer_endpoints.cancel_response,
    "run": protocol_endpoints.run,
    "attach": protocol_endpoints.attach,
    "cancel_run": protocol_endpoints.cancel_run,
    "capabilities": protocol_endpoints.capabilities,
    **a2a.HANDLERS,
    "version": version,
    "alive": alive,
}
"""Purpose of a route → what is done there. A route whose purpose has no handler is not offered."""
