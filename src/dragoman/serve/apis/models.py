"""The APIs of models: chats, embeddings, counts of tokens, lists of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from dragoman import wires
from dragoman.errors import InvalidRequestError, SettingsError
from dragoman.logs import logger
from dragoman.request import ModelRequest
from dragoman.result import ModelInfo
from dragoman.serve.core.call import Api, Call, Handler
from dragoman.serve.core.request_fields import check_types, loss_headers
from dragoman.serve.core.stream import Backend, answer
from dragoman.serve.http.call_metrics import find_offered_name
from dragoman.serve.http.limits import check_request
from dragoman.wires import ollama

__all__ = ["HANDLERS", "AnthropicApi", "OllamaApi", "find_backend"]

_LOG = logger("serve")
_MOST_LISTED = 1000
"""Models of a page at most, as of Anthropic's API."""


async def chat(call: Call) -> None:
    """Answers messages with the model's answer, whole or streamed."""
    check_types(call.body, call.wire.name)
    call, request, backend = await _load_request(call)
    await answer(call, request, backend)


async def embed(call: Call) -> None:
    """Answers a request to an embeddings model's API."""
    wire = wires.embeddings(call.wire.name)
    if wire is None:
        raise InvalidRequestError(f"the API {call.wire.name} has no embeddings")
    request = wire.load_request(call.body, path=call.path)
    backend = find_backend(call, request.model)
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
    body = wire.dump_response(result, request=request)
    await call.respond(body, loss_headers(call.observed.losses))


async def count_tokens(call: Call) -> None:
    """Answers how many tokens messages are: as the provider counts them, or an estimate, which a
    header names."""
    call, request, backend = await _load_request(call)
    counted = await backend.count_tokens(call, request)
    headers = {"dragoman-estimate": "tokens"} if counted.is_estimate else {}
    await call.respond(call.served.dump_token_count(counted.tokens), headers)


async def list_models(call: Call) -> None:
    """Lists all models that the client may name."""
    models = await call.service.models(call.caller)
    await call.respond(call.served.dump_models(models, now=call.now))


async def show_model(call: Call) -> None:
    """Answers with one model of the server's list."""
    name = call.parameters.get("model") or str(
        call.body.get("model") or call.body.get("name") or ""
    )
    find_backend(call, name)
    models = {model.name: model for model in await call.service.models(call.caller)}
    model = models.get(name) or ModelInfo(name, "dragoman")
    await call.respond(call.served.dump_model(model, now=call.now))


async def _load_request(call: Call) -> tuple[Call, ModelRequest, Backend]:
    """Returns for a model API the call with all that its body names, what it asks, and what
    answers.

    Raises:
        ModelNotFoundError: nothing does.
        InvalidRequestError: it asks for what there is not, or for more than may be.
    """
    request = call.wire.load_request(call.body, path=call.path, headers=call.headers)
    check_request(request, call.service.limits)
    backend = find_backend(call, request.model)
    whole = backend.admit(await call.api.complete(call, passes_on=backend.references))
    if whole is not call:
        request = whole.wire.load_request(whole.body, path=whole.path, headers=whole.headers)
    return whole, request, backend


def find_backend(call: Call, model: str) -> Backend:
    """Returns what answers to a name of a model in a model API.

    Raises:
        ModelNotFoundError: nothing does.
    """
    backend = call.service.backend(model, call.caller)
    call.observed.model = find_offered_name(model, getattr(backend, "names", ()))
    return cast("Backend", backend)


HANDLERS: Mapping[str, Handler] = {
    "chat": chat,
    "embeddings": embed,
    "count_tokens": count_tokens,
    "models": list_models,
    "model": show_model,
}
"""Purpose of a route → what is done there."""


class AnthropicApi(Api):
    """The Messages API."""

    id_header = "request-id"

    def __init__(self) -> None:
        super().__init__({**HANDLERS, "models": self._list_page})

    async def _list_page(self, call: Call) -> None:
        """Lists the models between two ids; all, where a client sets no limit."""
        models = await call.service.models(call.caller)
        start, stop, has_more = _find_page([model.name for model in models], call.query)
        page = call.served.dump_models(models[start:stop], now=call.now)
        await call.respond({**page, "has_more": has_more})


def _find_page(names: Sequence[str], query: Mapping[str, str]) -> tuple[int, int, bool]:
    """Returns where a page of the list begins and ends, and whether more follows in its direction.

    Raises:
        InvalidRequestError: the limit is no number from 1 to 1,000, or no model has such an id.
    """
    limit = query.get("limit", str(_MOST_LISTED))
    if not limit.isascii() or not limit.isdecimal() or not 1 <= int(limit[:5]) <= _MOST_LISTED:
        raise InvalidRequestError(f"limit must be a number from 1 to {_MOST_LISTED}").at(
            field="limit"
        )
    after, before = query.get("after_id"), query.get("before_id")
    try:
        first = names.index(after) + 1 if after else 0
        last = names.index(before) if before else len(names)
    except ValueError:
        raise InvalidRequestError("no model has the id that after_id or before_id names") from None
    if before and not after:
        start = max(first, last - int(limit))
        return start, last, start > first
    stop = min(last, first + int(limit))
    return first, stop, stop < last


class OllamaApi(Api):
    """Ollama's API: a request without messages loads a model, or unloads it."""

    def __init__(self) -> None:
        """Creates the handlers of Ollama's model API."""
        super().__init__(
            {
                **HANDLERS,
                "chat": self._answer_ollama_chat,
                "running": self._list_running,
                "version": self._show_version,
                "alive": self._live,
            }
        )

    async def _answer_ollama_chat(self, call: Call) -> None:
        """Answers a request to the model API of Ollama: a request that only loads or unloads a
        model without asking the model."""
        check_types(call.body, call.wire.name)
        idle = ollama.dump_idle(call.body, call.path, now=call.now)
        if idle is None:
            await chat(call)
            return
        find_backend(call, idle["model"])
        await call.respond(idle)

    async def _list_running(self, call: Call) -> None:
        models = await call.service.models(call.caller)
        await call.respond(ollama.dump_running(models, now=call.now))

    async def _show_version(self, call: Call) -> None:
        await call.respond(ollama.dump_version())

    async def _live(self, call: Call) -> None:
        await call.connection.respond(200, {"content-type": "text/plain"}, b"dragoman is running")
