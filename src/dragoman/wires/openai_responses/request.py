"""Reads and writes the body of a request.

`_load` takes fields out of a copy of the body: the conversation, settings, tools and schema. Known
fields whose value has no neutral meaning go to `native`, unknown ones to `options`.

`_dump` writes the conversation first. If the provider stores responses, it may write only what
follows a stored response, and names that one in `previous_response_id`. Then come tools,
settings and schema, then the native fields, and the caller's options last.
"""

from __future__ import annotations

from functools import partial

from dragoman.codec.background import BackgroundForm
from dragoman.codec.dump_with_history import Link
from dragoman.codec.fit_ids import invert_names
from dragoman.codec.json_values import if_list, if_object, merge_wire_fields, read_extra_fields
from dragoman.codec.serving import Route
from dragoman.codec.tool_fields import ToolFields
from dragoman.codec.wire_operations import RequestDump, RequestEnvelope, RequestFormat
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Message
from dragoman.request import HttpRequest, ModelRequest
from dragoman.wires.chat.serving import MEDIA_ROUTES
from dragoman.wires.openai_responses.items import OutgoingItems
from dragoman.wires.openai_responses.linking import (
    LINKED_BY_CALLER,
    find_anchor,
    is_stored,
    may_be_anchor,
    may_link,
)
from dragoman.wires.openai_responses.messages import (
    dump_conversation,
    load_conversation,
    prepare_conversation,
)
from dragoman.wires.openai_responses.quirks import NAME, OWN, Quirks
from dragoman.wires.openai_responses.settings import (
    FIELDS,
    dump_schema,
    dump_settings,
    load_schema,
    load_settings,
)
from dragoman.wires.openai_responses.tools import SERVER_TOOLS, dump_tools, load_tools

__all__ = [
    "background",
    "count_field",
    "dump_count",
    "dump_http",
    "dump_request",
    "load_request",
    "routes",
]

routes = (
    Route("POST", "/v1/responses", "chat"),
    Route("POST", "/v1/responses/input_tokens", "count_tokens"),
    Route("POST", "/v1/embeddings", "embeddings"),
    *MEDIA_ROUTES,
    Route("GET", "/v1/responses/{id}", "response"),
    Route("DELETE", "/v1/responses/{id}", "delete_response"),
    Route("POST", "/v1/responses/{id}/cancel", "cancel_response"),
    Route("GET", "/v1/responses/{id}/input_items", "input_items"),
    Route("GET", "/v1/models", "models"),
    Route("GET", "/v1/models/{model}", "model"),
)
"""Paths of the official API."""

_OWN = (*FIELDS, "model", "tools", "text", "stream", "instructions", "input")
"""Fields that have a neutral name. One whose value has no neutral meaning is kept in `native`,
never in `options`."""
_COUNTED = frozenset(
    [
        "conversation",
        "input",
        "instructions",
        "model",
        "parallel_tool_calls",
        "personality",
        "previous_response_id",
        "reasoning",
        "text",
        "tool_choice",
        "tools",
        "truncation",
    ]
)
"""Fields of a request for an answer that one for its count has, too."""
_ENCRYPTED = ["reasoning.encrypted_content"]


def _load(body: JsonMap, value: RequestEnvelope) -> ModelRequest:
    """Reads a body of `/responses`. A body for counting tokens or compacting is read too."""
    if not any(name in if_object(body) for name in ("input", *LINKED_BY_CALLER)):
        raise HistoryError('a Responses request needs "input", a string or a list of items').at(
            field="input"
        )
    fields_left = dict(body)
    form: Json = {}
    messages = _take_messages(fields_left, form, value)
    settings = load_settings(fields_left, form)
    tools = if_list(fields_left.get("tools"))
    if tools:
        del fields_left["tools"]
    schema = load_schema(fields_left)
    stream = _take_stream(fields_left, form)
    if fields_left.get("store") is False and "include" not in fields_left:
        form["include"] = "absent"
    model = fields_left.pop("model") if isinstance(fields_left.get("model"), str) else ""
    fields = {field: fields_left.pop(field) for field in _OWN if field in fields_left}
    tools, native, wire = (
        load_tools(tools),
        OWN.note(fields, form=form),
        NAME if fields_left else None,
    )
    return ModelRequest(
        model,
        tuple(messages),
        tools,
        settings,
        schema,
        stream,
        fields_left,
        native,
        wire=wire,
    )


def _take_messages(fields_left: Json, form: Json, value: RequestEnvelope) -> list[Message]:
    """Takes instructions and input out of a Responses body, and returns the conversation that they
    are."""
    if "input" not in fields_left:
        form["input"] = "absent"
    payload = {
        key: fields_left.pop(key) for key in ("instructions", "input") if fields_left.get(key)
    }
    return load_conversation(payload, value.origin, value.problems)


def _take_stream(fields_left: Json, form: Json) -> bool:
    """Takes `stream` out of a Responses body. True if the response is to be streamed."""
    stream = fields_left.get("stream")
    # Anything but a boolean stays in the body and goes to the provider as it is.
    if not isinstance(stream, bool):
        return False
    del fields_left["stream"]
    if not stream:
        form["stream"] = "explicit"
    return stream


def _dump(sending: RequestDump[Quirks]) -> HttpRequest:
    """Writes a request of the Responses API.

    Towards a provider that stores responses, the request continues from the newest one that is
    still as the provider answered, with only the messages after it. `options` are written last and
    replace other fields. Objects among them are merged.
    """
    request, target, quirks = sending.request, sending.target, sending.quirks
    options, form = request.options, OWN.form(request.native)
    holds = is_stored(options)
    link = Link[OutgoingItems](
        lambda message: may_be_anchor(message, target),
        find_anchor,
        lambda out, position: dump_conversation(out, after=position),
    )
    out, payload, _, linked = sending.conversation(
        partial(prepare_conversation, holds=holds),
        dump_conversation,
        "input",
        link=link if may_link(target, quirks, options) else None,
        key=holds,
        ids=_taken,
    )
    body: Json = {"model": request.model} if request.model else {}
    body |= payload
    # A request that continues a stored response may have no input of its own.
    if not body["input"] and ("input" in form or "input" in OWN.fields(request.native)):
        del body["input"]
    if linked is not None:
        body["previous_response_id"] = linked
    body |= sending.tools(out, lambda: dump_tools(request.tools, out))
    body |= dump_settings(request.settings, form, out)
    fields = OWN.fields(request.native)
    _write_text_format(request, body, fields)
    if request.stream or "stream" in form:
        body["stream"] = request.stream
    if _needs_encrypted(options, form, quirks):
        body["include"] = _ENCRYPTED
    body = merge_wire_fields(body, fields)
    return HttpRequest(
        "/responses",
        body={**body, **merge_wire_fields(dict(options), body)},
        names=invert_names(out.names),
    )


background = BackgroundForm(
    path="/responses",
    after="starting_after",
    begin=lambda answer: {"type": f"response.{answer['status']}", "response": answer},
)
"""How answers are made in the background."""
count_field = "input_tokens"
"""Field of the answer to `dump_count` that holds the number."""


def dump_count(http: HttpRequest, quirks: Quirks | None) -> HttpRequest:  # noqa: ARG001 as of `count_tokens`
    """Returns the request that counts the tokens of a request for an answer."""
    body = {field: value for field, value in if_object(http.body).items() if field in _COUNTED}
    return HttpRequest(f"{http.path}/input_tokens", http.headers, body)


def _needs_encrypted(options: JsonMap, form: JsonMap, quirks: Quirks) -> bool:
    """True if a request must ask for encrypted reasoning: reasoning that the provider does not
    store can be sent back in no other form."""
    return options.get("store") is False and quirks.encrypted and "include" not in form


def _write_text_format(request: ModelRequest, body: Json, fields: Json) -> None:
    """Adds the output schema to a Responses body, or takes what belonged to one out of the native
    fields."""
    text_format = if_object(fields.get("text")).get("format")
    if request.output_schema is not None:
        noted_format = if_object(text_format) or None
        body["text"] = {"format": dump_schema(request.output_schema, noted_format)}
    # A format without a type stood beside a schema, which the request has no more.
    elif isinstance(text_format, dict) and "type" not in text_format:
        fields["text"] = read_extra_fields(fields["text"], "format")


def _taken(out: OutgoingItems) -> set[str]:
    """Returns the ids of the items that are in the request already."""
    return out.taken


def _fault(body: JsonMap) -> InvalidRequestError | None:
    """Returns the error for a Responses body without any input, or None."""
    if body.get("input") or any(body.get(name) for name in LINKED_BY_CALLER):
        return None
    return InvalidRequestError(
        "No new input provided: add a message, or go on from a response by its id."
    )


_TOOL_FIELDS: ToolFields = dict.fromkeys(("strict", "defer_loading", "allowed_callers"), "")
_REQUESTS = RequestFormat(
    NAME, Quirks, _load, _dump, ("input",), _fault, _TOOL_FIELDS, SERVER_TOOLS
)
load_request, dump_request, dump_http = (
    _REQUESTS.load_request,
    _REQUESTS.dump_request,
    _REQUESTS.dump_http,
)
