"""A request's body and path ↔ `ModelRequest`. Model and stream stand in the path,
`/model/MODEL/converse`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

import msgspec

from dragoman import json_bytes
from dragoman.codec.fit_ids import invert_names
from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_objects,
    merge_wire_fields,
    pick,
    read_extra_fields,
)
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.serving import Route
from dragoman.codec.tool_fields import ToolFields
from dragoman.codec.wire_operations import RequestDump, RequestEnvelope, RequestFormat
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Message
from dragoman.request import HttpRequest, ModelRequest, Settings
from dragoman.wires.bedrock_converse.messages import (
    dump_conversation,
    load_conversation,
    prepare_conversation,
)
from dragoman.wires.bedrock_converse.quirks import NAME, OWN, Quirks
from dragoman.wires.bedrock_converse.settings import (
    CONFIGS,
    dump_schema,
    dump_settings,
    find_cache,
    find_cache_mark,
    load_schema,
    load_settings,
)
from dragoman.wires.bedrock_converse.tools import (
    SERVER_TOOLS,
    declare_tool,
    dump_tool_choice,
    dump_tools,
    load_tool_choice,
    load_tools,
)

__all__ = [
    "count_field",
    "dump_count",
    "dump_http",
    "dump_request",
    "forward",
    "load_request",
    "routes",
]

routes: tuple[Route, ...] = (
    Route("POST", "/model/{model}/converse", "chat"),
    Route("POST", "/model/{model}/converse-stream", "chat"),
    Route("POST", "/model/{model}/count-tokens", "count_tokens"),
    Route("GET", "/foundation-models", "models"),
    Route("GET", "/foundation-models/{model}", "model"),
)
"""Paths of Amazon Bedrock. An answer is streamed if its path says so."""

_PATH = re.compile(r"/model/(.+)/(converse|converse-stream|count-tokens)/?(?:\?|$)")
_CONVERSATION = ("system", "messages")
_TOOLS = "toolConfig"
_COUNTED = ("messages", "system", _TOOLS, "additionalModelRequestFields")
"""Fields of a request for an answer that one for its count has, too."""
_TOOL_FIELDS: ToolFields = {"strict": ""}
count_field = "inputTokens"
"""Field of the answer to `dump_count` that holds the number."""


def _load_body(body: JsonMap, received: RequestEnvelope) -> ModelRequest:
    """Reads the body of a Converse request, or of one that counts the tokens of such."""
    fields = dict(
        if_object(if_object(if_object(body).get("input")).get("converse")) or if_object(body)
    )
    if not isinstance(fields.get("messages"), list):
        raise HistoryError('the body must have a list "messages"').at(field="messages")
    payload = {name: fields.pop(name) for name in _CONVERSATION if name in fields}
    form: Json = {"system": payload["system"]} if payload.get("system") == [] else {}
    cache = _take_cache_marks(fields, payload, form)
    messages = load_conversation(payload, received.origin, received.problems)
    settings = load_settings(fields, form) | cache
    tools = ()
    config = dict(if_object(fields.get(_TOOLS)))
    if if_list(config.get("tools")):
        tools = load_tools(config.pop("tools"))
        settings |= load_tool_choice(config)
        fields = read_extra_fields(fields, _TOOLS) | ({_TOOLS: config} if config else {})
    schema = load_schema(fields, form)
    match = _PATH.search(received.path)
    return ModelRequest(
        unquote(match[1]) if match else "",
        tuple(messages),
        tools,
        Settings(**settings),
        schema,
        match is not None and match[2] == "converse-stream",
        fields,
        OWN.note(form=form),
        wire=NAME if fields else None,
    )


def _dump_request(sending: RequestDump[Quirks]) -> HttpRequest:
    """Writes a Converse request. Options are merged with the objects that settings stand in, and
    replace other fields."""
    request, has_target = sending.request, sending.target is not None
    out, payload, _, _ = sending.conversation(prepare_conversation, dump_conversation, "messages")
    tools = {**sending.tools(out, lambda: dump_tools(request.tools, out))}
    if not tools and has_target and (called := _list_called(request.messages, out)):
        # The API refuses calls in a conversation whose request declares no tools.
        tools["tools"] = [declare_tool(name) for name in called]
    if tools:
        tools |= dump_tool_choice(request.settings.tool_choice, out)
    settings = dump_settings(request, sending.quirks, out.losses, fits=has_target)
    schema = dump_schema(request, out.losses)
    body: Json = {"system": []} if "system" in OWN.form(request.native) else {}
    body |= payload
    if tools:
        body[_TOOLS] = tools
    if (mark := find_cache_mark(request)) is not None:
        body = _mark_cached(body, mark)
    body |= merge_wire_fields(settings, schema)
    merged = pick(request.options, (*CONFIGS, _TOOLS))
    body |= read_extra_fields(request.options, *merged)
    body = merge_wire_fields(body, merged)
    return HttpRequest(_dump_path(request), body=body, names=invert_names(out.names))


def _find_fault(body: JsonMap) -> InvalidRequestError | None:
    """Returns the error for a Converse body without any message, or None."""
    # A prompt that the provider holds has messages of its own.
    if body.get("messages") or "promptVariables" in body:
        return None
    return InvalidRequestError("there is no message: add one of the user's")


_REQUESTS = RequestFormat(
    NAME,
    Quirks,
    _load_body,
    _dump_request,
    (*_CONVERSATION, "input"),
    _find_fault,
    _TOOL_FIELDS,
    SERVER_TOOLS,
)
load_request, dump_request, dump_http = (
    _REQUESTS.load_request,
    _REQUESTS.dump_request,
    _REQUESTS.dump_http,
)


def dump_count(http: HttpRequest, quirks: Quirks | None) -> HttpRequest:  # noqa: ARG001 as of `count_tokens`
    """Returns the request that counts the tokens of a request for an answer."""
    path = f"{http.path.rpartition('/')[0]}/count-tokens"
    counted = pick(if_object(http.body), _COUNTED)
    return HttpRequest(path, http.headers, {"input": {"converse": counted}})


def forward(request: ModelRequest, body: JsonMap, quirks: Quirks | None) -> HttpRequest:  # noqa: ARG001 as of `Forward`
    """Passes a client's body to a provider of the same API."""
    return HttpRequest(_dump_path(request), body=body)


def _dump_path(request: ModelRequest) -> str:
    """Returns the path of a Converse request. A model may be an ARN, which has a slash."""
    # HTTP clients send a colon as it is, and a signature is over what is sent.
    action = "converse-stream" if request.stream else "converse"
    return f"/model/{quote(request.model, safe=':')}/{action}"


def _list_called(messages: Sequence[Message], out: Outgoing[Quirks]) -> list[str]:
    """Returns the names of the tools that a whole Converse conversation calls, as they are sent."""
    calls = [call for message in messages for call in message.tool_calls]
    return list(dict.fromkeys([out.name(call.name) for call in calls]))


def _take_cache_marks(fields: Json, payload: Json, form: Json) -> Json:
    """Takes the marks for the cache out of a Converse body, if they stand where `_mark_cached` puts
    them. Returns the setting `cache`, or nothing."""
    messages = if_objects(payload["messages"])
    config = if_object(fields.get(_TOOLS))
    content = if_list(messages[-1].get("content")) if messages else []
    marked = [content, if_list(payload.get("system")), if_list(config.get("tools"))]
    ends = [blocks[-1] for blocks in marked if blocks]
    cache = find_cache(ends[0]) if content else None
    if cache is None or any(end != ends[0] for end in ends) or any(len(b) == 1 for b in marked):
        return {}
    content, system, tools = [blocks[:-1] for blocks in marked]
    payload["messages"] = [*messages[:-1], {**messages[-1], "content": content}]
    if system:
        payload["system"] = system
    if tools:
        fields[_TOOLS] = {**config, "tools": tools}
    form["cache"] = True
    return {"cache": cache}


def _append_mark(entries: list[Json] | msgspec.Raw, mark: Json) -> list[Json] | msgspec.Raw:
    """Returns tools with a mark for the cache behind them. Those that are JSON already stay so."""
    if isinstance(entries, msgspec.Raw):
        return msgspec.Raw(bytes(entries)[:-1] + b"," + json_bytes.encode(mark) + b"]")
    return [*entries, mark]


def _mark_cached(body: JsonMap, mark: Json) -> Json:
    """Returns a Converse body with a mark for the cache behind the tools, the system text and the
    last message."""
    marked = dict(body)
    tools, messages = if_object(body.get(_TOOLS)), if_list(body.get("messages"))
    if entries := tools.get("tools"):
        marked[_TOOLS] = {**tools, "tools": _append_mark(entries, mark)}
    if system := if_list(body.get("system")):
        marked["system"] = [*system, mark]
    # A beginning that is JSON already was marked by nobody, and is never the last message.
    if messages and isinstance(messages[-1], dict):
        last = if_object(messages[-1])
        marked["messages"] = [*messages[:-1], {**last, "content": [*last["content"], mark]}]
    return marked
