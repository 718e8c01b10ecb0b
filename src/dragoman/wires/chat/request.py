"""Reads and writes the body of a request.

Reading takes each field that has a neutral meaning out of a copy of the body. A field with a
neutral name whose value has no neutral meaning goes to `native`; all that is left are `options`.
Writing puts the neutral fields first, then the native ones, then `options`, which replace what they
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dragoman.codec.dump_cache import DumpedRequest
from dragoman.codec.dump_with_history import dump_tools_with_history
from dragoman.codec.fit_ids import invert_names
from dragoman.codec.json_values import (
    check_depth,
    if_object,
    if_text,
    merge_wire_fields,
    read_extra_fields,
)
from dragoman.codec.outgoing_conversation import drop_foreign_options
from dragoman.codec.server_tools import ServerTools, fit_server_tools, read_server_tools
from dragoman.codec.serving import Problem, Route
from dragoman.codec.tool_fields import CACHE_MARK, ToolFields, fit_tools
from dragoman.codec.wire_operations import RequestDump
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest
from dragoman.wires.chat.messages import load_conversation, prepare_conversation
from dragoman.wires.chat.messages_alternating import dump_alternating
from dragoman.wires.chat.record import DialectRecord, OutgoingChat
from dragoman.wires.chat.settings import dump_schema, dump_settings, load_schema, load_settings

__all__ = ["ROUTES", "dump_http", "load_request"]

ROUTES = (
    Route("POST", "/v1/chat/completions", "chat"),
    Route("POST", "/v1/embeddings", "embeddings"),
    Route("GET", "/v1/models", "models"),
    Route("GET", "/v1/models/{model}", "model"),
)
"""Paths of the official API, which most vendors share."""


def load_request(
    chat: DialectRecord,
    body: JsonMap,
    *,
    path: str = "",
    headers: Mapping[str, str] = {},
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> ModelRequest:
    """Reads the body of a request. `path` and `headers` say nothing in this family. `problems`: as
    for `load_messages`.

    Raises:
        HistoryError: it holds no conversation.
    """
    del path, headers
    if not isinstance(if_object(body).get("messages"), list):
        raise HistoryError(f"a {chat.title} request needs the field messages, a list").at(
            field="messages"
        )
    check_depth(body if problems is None else read_extra_fields(body, "messages"))
    fields_left = dict(body)
    form: Json = {}
    messages = load_conversation(chat, fields_left.pop("messages"), origin, problems)
    settings = load_settings(chat, fields_left, form)
    tools = chat.load_tools(fields_left, form)
    schema, beside = load_schema(fields_left)
    stream = fields_left.get("stream") is True
    if stream:
        del fields_left["stream"]
        _take_streaming(chat, fields_left, form)
    model = fields_left.pop("model") if if_text(fields_left.get("model")) else ""
    # A field that has a neutral name, but a value without neutral meaning, is no option.
    setting_fields = [way.field for ways in chat.settings.values() for way in ways]
    neutral_names = [chat.tools, *chat.further, "response_format", "stream", *chat.streaming]
    own_fields = {
        field: fields_left.pop(field)
        for field in (*setting_fields, *neutral_names)
        if field in fields_left
    }
    request = ModelRequest(
        model,
        tuple(messages),
        tools,
        settings,
        schema,
        stream,
        fields_left,
        chat.own.note({**own_fields, **beside}, form),
        wire=chat.name if fields_left else None,
    )
    return read_server_tools(request, chat.name, ServerTools())


def _take_streaming(chat: DialectRecord, body: Json, form: Json) -> None:
    """Takes the usual fields of a streamed request out of `body`. Notes in `form` which are
    missing."""
    for field, value in chat.streaming.items():
        if body.get(field) == value:
            del body[field]
        elif field not in body:
            form[field] = "absent"


def dump_http(
    chat: DialectRecord,
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Any = None,
    losses: list[Loss] | None = None,
    history: DumpedRequest | None = None,
) -> HttpRequest:
    """Writes path, headers and body of a request. `options` are written last and replace other
    fields. `history`: what was written for earlier requests."""
    losses = [] if losses is None else losses
    request = drop_foreign_options(request, chat.name, losses)
    marks: ToolFields = {CACHE_MARK: ""} if getattr(quirks, "cache", None) == CACHE_MARK else {}
    request = fit_server_tools(request, chat.name, ServerTools(), losses)
    request = fit_tools(request, chat.name, {**chat.tool_fields, **marks}, quirks, losses)
    sending = RequestDump(request, target, quirks, losses, history)
    out, messages, _, _ = sending.conversation(
        partial(prepare_conversation, chat), dump_alternating
    )
    own_fields = chat.own.fields(request.native)
    # A body for a vendor is written as that vendor takes it, however a loaded one was spelled.
    form: JsonMap = {}
    if quirks is None or chat.keeps_form:
        form = chat.own.form(request.native)
    body: Json = {"model": request.model} if request.model else {}
    body["messages"] = messages
    if request.tools:
        tool_fields, _ = dump_tools_with_history(
            history, out, request.tools, lambda: chat.dump_tools(out, request.tools, form)
        )
        body |= tool_fields
    body |= dump_settings(out, request.settings, form)
    if request.output_schema is not None:
        beside = own_fields.get("response_format")
        body["response_format"] = dump_schema(out, request.output_schema, beside)
    if request.stream:
        body["stream"] = True
        for field, value in chat.streaming.items():
            if field not in form:
                body[field] = own_fields.get(field, value)
    # After all neutral fields, whichever of them a refused field came from.
    _remove_refused_fields(out, body)
    body = merge_wire_fields(body, own_fields) | dict(request.options)
    return HttpRequest(chat.path, body=body, names=invert_names(out.names))


def _remove_refused_fields(out: OutgoingChat, body: Json) -> None:
    """Takes the fields that the vendor refuses out of a body, and notes each as a loss."""
    for field in body.keys() & set(out.refuses):
        out.lose(None, None, Lost.setting, "the vendor refuses it", field)
        del body[field]
