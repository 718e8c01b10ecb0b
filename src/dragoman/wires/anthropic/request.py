"""A request's body, path and headers ↔ `ModelRequest`.

`_load_anthropic_body` takes fields out of a copy of the body step by step: conversation, tools, settings and
schema. What remains has no neutral name and becomes `options`. How a field was spelled is noted
in `native`, so that a dump without a target gives the same body again.

`_dump_anthropic_request` builds the body from the neutral request and then the header `anthropic-beta`: `_list_beta_words`
lists the fields and types that the body uses, and the quirks and the model's profile know which
of them need a beta.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast
from urllib.parse import quote, unquote

from dragoman import json_bytes
from dragoman.codec.dump_with_history import dump_tools_with_history
from dragoman.codec.fit_ids import invert_names
from dragoman.codec.json_values import if_list, if_object
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.serving import Route
from dragoman.codec.tool_fields import CACHE_MARK, ToolFields
from dragoman.codec.wire_operations import RequestDump, RequestEnvelope, RequestFormat
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.request import HttpRequest, ModelRequest, Settings
from dragoman.wires.anthropic.messages import (
    dump_conversation,
    load_conversation,
    prepare_conversation,
)
from dragoman.wires.anthropic.quirks import NAME, OWN, Quirks
from dragoman.wires.anthropic.settings import (
    FIELDS,
    dump_settings,
    fit_together,
    load_schema,
    load_settings,
)
from dragoman.wires.anthropic.tools import (
    SERVER_TOOLS,
    dump_tool_choice,
    dump_tools,
    load_tool_choice,
    load_tools,
)
from dragoman.wires.anthropic.tools_mcp import SERVERS, TOOLSET, join_servers, split_servers

__all__ = [
    "adapt",
    "count_field",
    "dump_count",
    "dump_http",
    "dump_request",
    "forward",
    "load_request",
    "routes",
]

routes: tuple[Route, ...] = (
    Route("POST", "/v1/messages", "chat"),
    Route("POST", "/v1/messages/count_tokens", "count_tokens"),
    Route("GET", "/v1/models", "models", "anthropic-version"),
    Route("GET", "/v1/models/{model}", "model", "anthropic-version"),
)
"""Where the official API stands."""

_VERSION = "2023-06-01"
_VERTEX_VERSION, _VERTEX_MODELS = "vertex-2023-10-16", "/publishers/anthropic/models"
_CONVERSATION = ("system", "messages")
_COUNTED = frozenset(
    [
        "cache_control",
        "context_management",
        "mcp_servers",
        "messages",
        "model",
        "output_config",
        "output_format",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    ]
)
"""Fields of a request for an answer that one for its count has, too."""
_NEUTRAL = (*FIELDS, "model", "system", "stream", "tools", "tool_choice")


def _load_anthropic_body(body: JsonMap, received: RequestEnvelope) -> ModelRequest:
    """Converts an Anthropic body to the neutral request. A body for counting tokens, which has no
    `max_tokens`, is read too."""
    if not isinstance(if_object(body).get("messages"), list):
        raise HistoryError('the body must have a list "messages"').at(field="messages")
    nulls = [key for key in _NEUTRAL if key in body and body[key] is None]
    fields = {key: value for key, value in body.items() if key not in nulls}
    form: Json = {"null": nulls} if nulls else {}
    payload = {key: fields.pop(key) for key in _CONVERSATION if key in fields}
    messages = load_conversation(payload, received.origin, received.problems)
    if body.get("system") in ("", []):
        form["system"] = body["system"]
    if isinstance(fields.get("stream"), bool):
        stream = fields.pop("stream")
    else:
        stream = None
    if stream is False:
        form["stream"] = "explicit"
    tools = load_tools(fields, form)
    if SERVERS in fields:
        tools = join_servers(tools, fields)
    settings = Settings(**load_settings(fields, form), **load_tool_choice(fields, form))
    schema = load_schema(fields, form)
    if betas := _header(received.headers):
        form["betas"] = betas
    if isinstance(fields.get("model"), str):
        model = fields.pop("model")
    else:
        model = _read_path(received.path)
    native, wire = OWN.note(form=form), NAME if fields else None
    return ModelRequest(
        model, tuple(messages), tools, settings, schema, stream is True, fields, native, wire=wire
    )


def _dump_tool_fields(request: ModelRequest, out: Outgoing[Quirks]) -> Json:
    """Returns the fields of an Anthropic body that hold the tools."""
    entries = dump_tools(request.tools, out)
    if any(entry["type"] == TOOLSET for entry in entries if "type" in entry):
        return split_servers(entries)
    return {"tools": entries}


def _dump_servers(options: JsonMap, addressed: Any) -> Any:
    """Returns Anthropic's field `mcp_servers` with those of the options, or None. `addressed`: those
    that the tools name by address, perhaps as JSON."""
    given = if_list(options.get(SERVERS))
    if not given or not addressed:
        return addressed or given or None
    return [*given, *json_bytes.decode(json_bytes.encode(addressed))]


def _dump_anthropic_request(sending: RequestDump[Quirks]) -> HttpRequest:
    """Converts the neutral request to path, headers and body, with the beta headers that its
    content needs."""
    request, quirks = sending.request, sending.quirks
    form, options = OWN.form(request.native), request.options
    prepare = partial(prepare_conversation, model=request.model)
    out, payload, block_types, _ = sending.conversation(
        prepare, dump_conversation, "messages", notes=_entry_words
    )
    tools, tool_words = dump_tools_with_history(
        sending.turn,
        out,
        request.tools,
        lambda: _dump_tool_fields(request, out),
        lambda fields: _list_block_types(fields["tools"]),
    )
    settings = dump_settings(request, out.quirks, out.losses)
    if request.prefix == "drop":
        settings["thinking"] = _drop_mismatches(if_object(settings.get("thinking")))
    has_tools = bool(request.tools) and "tool_choice" not in options
    fields: Json = {
        "model": request.model or None,
        "system": form.get("system"),
        **payload,
        "tools": tools["tools"] if request.tools else [] if "tools" in form else None,
        SERVERS: _dump_servers(options, tools.get(SERVERS)),
        "tool_choice": dump_tool_choice(request.settings, form, out, tools=has_tools),
        "stream": True if request.stream else False if "stream" in form else None,
        **settings,
    }
    nulls: Json = dict.fromkeys(form.get("null", ()))
    set_fields = {key: value for key, value in fields.items() if value is not None}
    # Else it is written as it was read.
    if sending.target is not None:
        set_fields = fit_together(set_fields, quirks, out.losses)
    body = {**nulls, **options, **set_fields}
    used: Iterable[str] = ()
    # A client of this API sends the betas that it wants.
    if not request.as_sent:
        used = _list_beta_words(
            body, tool_words if request.tools else _list_block_types(body.get("tools")), block_types
        )
    betas = dict(quirks.betas)
    if quirks.profile is not None:
        betas |= quirks.profile.betas or {}
    needed = dict.fromkeys(
        [*form.get("betas", ()), *[betas[beta_use] for beta_use in used if beta_use in betas]]
    )
    return _address(needed, body, quirks, invert_names(out.names))


_TOOL_FIELDS: ToolFields = dict.fromkeys(
    ("strict", "defer_loading", "allowed_callers", "input_examples", CACHE_MARK), ""
)
_REQUESTS = RequestFormat(
    NAME,
    Quirks,
    _load_anthropic_body,
    _dump_anthropic_request,
    _CONVERSATION,
    tool_fields=_TOOL_FIELDS,
    server_tools=SERVER_TOOLS,
)
load_request, dump_request, dump_http = (
    _REQUESTS.load_request,
    _REQUESTS.dump_request,
    _REQUESTS.dump_http,
)


def adapt(request: ModelRequest, body: JsonMap, losses: list[Loss]) -> JsonMap:  # noqa: ARG001 as of `RequestFields.adapt`
    """Returns a client's body for a model that it did not name: without what the API refuses
    together."""
    return fit_together(body, Quirks(), losses)


count_field = "input_tokens"
"""Field of the answer to `dump_count` that holds the number."""


def dump_count(http: HttpRequest, quirks: Quirks | None) -> HttpRequest:
    """Returns the request that counts the tokens of a request for an answer."""
    body = {field: value for field, value in if_object(http.body).items() if field in _COUNTED}
    if quirks is None or not quirks.in_path:
        return HttpRequest(f"{http.path}/count_tokens", http.headers, body)
    counted = {"anthropic_version": _VERTEX_VERSION, **body, "model": _read_path(http.path)}
    return HttpRequest(f"{_VERTEX_MODELS}/count-tokens:rawPredict", http.headers, counted)


def forward(request: ModelRequest, body: JsonMap, quirks: Quirks | None) -> HttpRequest:
    """Returns a client's Anthropic request body as it is, with its own beta headers and no
    others."""
    betas = OWN.form(request.native).get("betas") or ()
    return _address(betas, {**body, "model": request.model}, quirks)


def _address(
    betas: Collection[str], body: Json, quirks: Quirks | None, names: Mapping[str, str] = {}
) -> HttpRequest:
    """Returns the Anthropic request of a body, with its headers, where the endpoint takes it."""
    headers = {"anthropic-beta": ",".join(betas)} if betas else {}
    if quirks is None or not quirks.in_path:
        return HttpRequest(
            "/messages", {"anthropic-version": _VERSION, **headers}, body, names=names
        )
    # The caller's own version stays.
    body = {"anthropic_version": _VERTEX_VERSION, **body}
    method = "streamRawPredict" if body.get("stream") else "rawPredict"
    path = f"{_VERTEX_MODELS}/{quote(body.pop('model', ''), safe='@')}:{method}"
    return HttpRequest(path, headers, body, names=names)


def _read_path(path: str) -> str:
    """Returns the model in the path of an Anthropic request to Vertex AI, or an empty text."""
    match = re.search("/models/([^/]+):(?:rawP|streamRawP)redict", path)
    return unquote(match[1]) if match else ""


def _drop_mismatches(thinking: JsonMap) -> JsonMap:
    """Returns the field `thinking` that lets the Anthropic API drop thinking of another
    conversation instead of refusing the request."""
    if thinking.get("type") == "disabled":  # the API takes the field only beside thinking
        return thinking
    binding = {"prefix_mismatch_behavior": "drop_block"}
    return {"type": "adaptive", **thinking, "block_binding": binding}


def _header(headers: Mapping[str, str]) -> list[str]:
    """Returns the values of `anthropic-beta`."""
    text = next((value for name, value in headers.items() if name.lower() == "anthropic-beta"), "")
    return [value for part in text.split(",") if (value := part.strip())]


def _list_beta_words(
    body: JsonMap, of_tools: Iterable[str], of_entries: Iterable[str]
) -> Iterator[str]:
    """Yields what in a request may need an `anthropic-beta` header: names of fields, and types of
    tools, blocks, sources and edits."""
    yield from body
    yield from if_object(body.get("output_config"))
    yield from if_object(body.get("thinking"))
    yield from of_tools
    yield from _list_block_types(if_object(body.get("context_management")).get("edits"))
    yield from of_entries


def _entry_words(entries: Iterable[JsonMap]) -> Iterator[str]:
    for entry in entries:
        yield from _list_block_types(entry.get("content"))


def _list_block_types(blocks: Any) -> Iterator[str]:
    """Yields the types in a list of Anthropic blocks, with those of their sources, of the tools
    that they add and of the blocks inside them."""
    if isinstance(blocks, dict):
        blocks = [blocks]
    for block in cast("list[Any]", blocks) if isinstance(blocks, list) else ():
        if isinstance(block, dict):
            block = cast("Json", block)
            yield str(block.get("type"))
            yield from _list_block_types(block.get("source"))
            yield from _list_block_types(block.get("content"))
            yield from _list_block_types(block.get("tool"))
            yield from _list_block_types(block.get("definition"))
