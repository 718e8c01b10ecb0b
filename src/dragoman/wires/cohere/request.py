"""Reads and writes the body of `/chat`."""

from __future__ import annotations

from dragoman.codec.fit_ids import invert_names
from dragoman.codec.json_values import if_object, if_text, merge_wire_fields
from dragoman.codec.serving import Route
from dragoman.codec.wire_operations import RequestDump, RequestEnvelope, RequestFormat
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import HttpRequest, ModelRequest, Settings
from dragoman.wires.cohere.messages import (
    dump_conversation,
    load_conversation,
    prepare_conversation,
)
from dragoman.wires.cohere.quirks import NAME, OWN, Quirks
from dragoman.wires.cohere.settings import (
    FIELDS,
    dump_schema,
    dump_settings,
    load_schema,
    load_settings,
)
from dragoman.wires.cohere.tools import dump_tool_choice, dump_tools, load_tool_choice, load_tools

__all__ = ["dump_http", "dump_request", "load_request", "routes"]

routes: tuple[Route, ...] = (
    Route("POST", "/v2/chat", "chat"),
    Route("POST", "/v2/embed", "embeddings"),
    Route("GET", "/v1/models", "models"),
    Route("GET", "/v1/models/{model}", "model"),
)
"""Paths of the official API."""

_OWN = (*FIELDS, "tool_choice", "model", "tools", "stream")
"""Fields that have a neutral name. One whose value has no neutral meaning is kept in `native`,
never in `options`."""


def _load_chat_body(body: JsonMap, received: RequestEnvelope) -> ModelRequest:
    """Reads the body of a request to Cohere's `/v2/chat`. Bodies of the API's version 1 are
    refused."""
    if not isinstance(if_object(body).get("messages"), list):
        raise HistoryError("a Cohere chat request (version 2) needs the field messages, a list").at(
            field="messages"
        )
    fields_left = dict(body)
    form: Json = {}
    messages = load_conversation(fields_left.pop("messages"), received.origin, received.problems)
    settings = Settings(**load_settings(fields_left), **load_tool_choice(fields_left))
    tools = load_tools(fields_left)
    schema, beside = load_schema(fields_left, form)
    stream = fields_left.get("stream", False)
    if "stream" not in fields_left:
        form["stream"] = "absent"
    elif isinstance(stream, bool):
        del fields_left["stream"]
    model = fields_left.pop("model") if if_text(fields_left.get("model")) else ""
    own_fields = {field: fields_left.pop(field) for field in _OWN if field in fields_left}
    own_fields |= beside
    native, wire = OWN.note(own_fields, form=form), NAME if fields_left else None
    return ModelRequest(
        model,
        tuple(messages),
        tools,
        settings,
        schema,
        stream is True,
        fields_left,
        native,
        wire=wire,
    )


def _dump_chat_request(sending: RequestDump[Quirks]) -> HttpRequest:
    """Writes a Cohere request of `/v2/chat`. `options` are written last and replace other
    fields."""
    request = sending.request
    form, own_fields = OWN.form(request.native), OWN.fields(request.native)
    out, messages, _, _ = sending.conversation(prepare_conversation, dump_conversation)
    body: Json = {"model": request.model} if request.model else {}
    body["messages"] = messages
    body |= sending.tools(out, lambda: dump_tools(request.tools, out))
    # Written also where it is false, unless the loaded request left it out.
    if request.stream or not {"stream"} & {*form, *own_fields}:
        body["stream"] = request.stream
    body |= dump_settings(request.settings, out.quirks)
    body |= dump_tool_choice(request.settings, out.losses)
    body |= dump_schema(request.output_schema, form, out.losses)
    return HttpRequest(
        "/chat",
        body=merge_wire_fields(body, own_fields) | dict(request.options),
        names=invert_names(out.names),
    )


_REQUESTS = RequestFormat(NAME, Quirks, _load_chat_body, _dump_chat_request, ("messages",))
load_request, dump_request, dump_http = (
    _REQUESTS.load_request,
    _REQUESTS.dump_request,
    _REQUESTS.dump_http,
)
