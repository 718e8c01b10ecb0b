"""Reads and writes the body of `/api/chat`, or of the older `/api/generate`.

`_load_chat_body` takes field after field out of a copy of the body. A field that it knows but whose value
has no neutral meaning goes to `native`, a field that it does not know to `options`. `_dump_chat_request`
writes the neutral fields, then the native ones, then the options. A request that was read from
`/api/generate` is written for that endpoint again if its conversation still fits into one
prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from dragoman.codec.json_values import if_list, if_object, if_text, merge_wire_fields
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.serving import Route
from dragoman.codec.wire_operations import RequestDump, RequestEnvelope, RequestFormat
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import HttpRequest, ModelRequest, ServerTool, ToolSpec
from dragoman.wires.ollama.generate import (
    ENDPOINT,
    GENERATE,
    PROMPT,
    dump_prompt,
    is_generate,
    is_prompt,
    load_prompt,
)
from dragoman.wires.ollama.messages import (
    dump_conversation,
    load_conversation,
    prepare_conversation,
)
from dragoman.wires.ollama.quirks import NAME, OWN, Quirks
from dragoman.wires.ollama.settings import dump_schema, dump_settings, load_schema, load_settings
from dragoman.wires.ollama.tools import dump_tools, is_tool, load_tools

__all__ = ["dump_http", "dump_request", "forward", "load_request", "routes"]

_CHAT = "/api/chat"
routes: tuple[Route, ...] = (
    Route("POST", _CHAT, "chat"),
    Route("POST", GENERATE, "chat"),
    Route("POST", "/api/embed", "embeddings"),
    Route("POST", "/api/embeddings", "embeddings"),
    Route("GET", "/api/tags", "models"),
    Route("GET", "/api/ps", "running"),
    Route("POST", "/api/show", "model"),
    Route("GET", "/api/version", "version"),
    Route("GET", "/", "alive"),
    Route("HEAD", "/", "alive"),
)
"""Paths of the server. Two of them are older forms of the ones before them."""


def _load_chat_body(body: JsonMap, received: RequestEnvelope) -> ModelRequest:
    """Reads a request body of Ollama's `/api/chat`.

    A body of `/api/generate`, known by its path or by a prompt instead of messages, becomes the
    same request, and is written as what it was.
    """
    has_prompt = isinstance(body, dict) and is_prompt(body, received.path)
    if not has_prompt and not isinstance(if_object(body).get("messages"), list):
        raise HistoryError("an Ollama chat request needs the field messages, a list").at(
            field="messages"
        )
    fields_left = dict(body)
    form: Json = {}
    own_fields: Json = {}
    if has_prompt:
        messages = load_prompt(fields_left)
        form |= ENDPOINT
        own_fields |= _take_fields(fields_left, PROMPT)
    else:
        payload = fields_left.pop("messages")
        messages = load_conversation(payload, received.origin, received.problems)
    model = fields_left.pop("model") if if_text(fields_left.get("model")) else ""
    settings = load_settings(fields_left, model, form, own_fields)
    tools = _take_tools(fields_left)
    schema = load_schema(fields_left, form)
    # The API streams unless it is told not to.
    stream = fields_left.get("stream", True)
    if isinstance(stream, bool) and fields_left.pop("stream", None) is None:
        form["stream"] = "absent"
    # Their values have no neutral meaning, or they would have been taken before.
    own_fields |= _take_fields(fields_left, ("model", "tools", "format", "stream", "think"))
    native, wire = OWN.note(own_fields, form=form), NAME if fields_left else None
    return ModelRequest(
        model,
        tuple(messages),
        tools,
        settings,
        schema,
        stream is not False,
        fields_left,
        native,
        wire=wire,
    )


def _take_tools(fields_left: Json) -> tuple[ToolSpec | ServerTool, ...]:
    """Takes the tools out of an Ollama body and returns them. None are taken if one is of unknown
    form."""
    if if_list(fields_left.get("tools")) and all(map(is_tool, fields_left["tools"])):
        return load_tools(fields_left.pop("tools"))
    return ()


def _take_fields(fields_left: Json, names: Iterable[str]) -> Json:
    """Takes the fields of these names out of a body and returns those that it has."""
    return {name: fields_left.pop(name) for name in names if name in fields_left}


def _dump_chat_request(sending: RequestDump[Quirks]) -> HttpRequest:
    """Writes an Ollama request of `/api/chat`, or of `/api/generate` if it was read from one.
    `options` are written last; an object among them is merged.

    An output schema is sent together with tools, although models then seldom call one.
    """
    request = sending.request
    form, own_fields = OWN.form(request.native), OWN.fields(request.native)
    body: Json = {"model": request.model} if request.model else {}
    out, payload = _dump_payload(sending)
    body |= payload
    body |= sending.tools(out, lambda: dump_tools(request.tools, out))
    if request.stream is False or (form.get("stream") != "absent" and "stream" not in own_fields):
        body["stream"] = request.stream
    if request.output_schema is not None:
        body["format"] = dump_schema(request.output_schema, form)
    body |= dump_settings(request, form, out)
    body = merge_wire_fields(body, own_fields)
    for field, value in request.options.items():
        # `options` of the API holds its settings, so the caller's are added to those.
        if field == "options" and isinstance(value, Mapping):
            value = {**if_object(body.get(field)), **cast("JsonMap", value)}
        body[field] = value
    return HttpRequest(GENERATE if "messages" not in body else _CHAT, body=body)


def forward(request: ModelRequest, body: JsonMap, quirks: Quirks | None) -> HttpRequest:  # noqa: ARG001 as of `Forward`
    """Passes a client's body on as it is."""
    path = GENERATE if is_generate(request) else _CHAT
    return HttpRequest(path, body={**body, "model": request.model})


def _dump_payload(sending: RequestDump[Quirks]) -> tuple[Outgoing[Quirks], Json]:
    """Returns the conversation, ready to be written, and the fields of the Ollama body that hold
    it."""
    request = sending.request
    if is_generate(request):
        out = prepare_conversation(request.messages, sending.target, sending.quirks, sending.losses)
        if (prompt := dump_prompt(out.messages)) is not None:
            return out, prompt
    out, messages, _, _ = sending.conversation(prepare_conversation, dump_conversation)
    return out, {"messages": messages}


_REQUESTS = RequestFormat(NAME, Quirks, _load_chat_body, _dump_chat_request, ("messages",))
load_request, dump_request, dump_http = (
    _REQUESTS.load_request,
    _REQUESTS.dump_request,
    _REQUESTS.dump_http,
)
