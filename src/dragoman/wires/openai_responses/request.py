"""The request's body ↔ `ModelRequest`."""

from __future__ import annotations

from functools import partial

from dragoman.codec.formats import RequestDump, RequestEnvelope, RequestFormat
from dragoman.codec.history_dump import Link
from dragoman.codec.ids import invert_names
from dragoman.codec.json_values import if_list, if_object, merge_wire_fields, read_extra_fields
from dragoman.codec.serving import Route
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import HttpRequest, ModelRequest
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
from dragoman.wires.openai_responses.tools import dump_tools, load_tools

__all__ = ["dump_http", "dump_request", "load_request", "routes"]

routes = (
    Route("POST", "/v1/responses", "chat"),
    Route("POST", "/v1/responses/input_tokens", "count_tokens"),
    Route("POST", "/v1/embeddings", "embeddings"),
    Route("GET", "/v1/responses/{id}", "response"),
    Route("DELETE", "/v1/responses/{id}", "delete_response"),
    Route("POST", "/v1/responses/{id}/cancel", "cancel_response"),
    Route("GET", "/v1/responses/{id}/input_items", "input_items"),
    Route("GET", "/v1/models", "models"),
    Route("GET", "/v1/models/{model}", "model"),
)
"""Where OpenAI's API has what."""

_OWN = (*FIELDS, "model", "tools", "text", "stream", "instructions", "input")
"""Fields that have a neutral name. One whose value has no neutral meaning is kept in `native`,
never in `options`."""
_ENCRYPTED = ["reasoning.encrypted_content"]


def _load(body: JsonMap, value: RequestEnvelope) -> ModelRequest:
    """A body of `/responses` → the neutral request. A body for counting tokens or compacting is
    read too."""
    if not any(name in if_object(body) for name in ("input", *LINKED_BY_CALLER)):
        raise HistoryError('a Responses request needs "input", a string or a list of items').at(
            field="input"
        )
    unread = dict(body)
    form: Json = {}
    payload = {key: unread.pop(key) for key in ("instructions", "input") if body.get(key)}
    messages = load_conversation(payload, value.origin, value.problems)
    if "input" not in body:
        form["input"] = "absent"
    settings = load_settings(unread, form)
    tools = if_list(unread.get("tools"))
    if tools:
        del unread["tools"]
    schema = load_schema(unread)
    if isinstance(stream := unread.get("stream"), bool):
        del unread["stream"]
        if not stream:
            form["stream"] = "explicit"
    if unread.get("store") is False and "include" not in unread:
        form["include"] = "absent"
    model = unread.pop("model") if isinstance(unread.get("model"), str) else ""
    fields = {field: unread.pop(field) for field in _OWN if field in unread}
    tools, native, wire = load_tools(tools), OWN.note(fields, form=form), NAME if unread else None
    return ModelRequest(
        model, tuple(messages), tools, settings, schema, stream is True, unread, native, wire=wire
    )


def _dump(sending: RequestDump[Quirks]) -> HttpRequest:
    """The neutral request → a request of `/responses`.

    Towards a provider that stores responses, it goes on from the newest one of its own that is as
    it was, with only what follows it. `options` are written last and have the last word; those that
    are objects are added to.
    """
    request, target, quirks = sending.request, sending.target, sending.quirks
    options, form = request.options, OWN.form(request.native)
    holds = is_stored(options)
    link = Link[OutgoingItems](
        lambda message: may_be_anchor(message, target),
        find_anchor,
        lambda out, at: dump_conversation(out, after=at),
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
    if not body["input"] and ("input" in form or "input" in OWN.fields(request.native)):
        del body["input"]
    if linked is not None:
        body["previous_response_id"] = linked
    body |= sending.tools(out, lambda: dump_tools(request.tools, out))
    body |= dump_settings(request.settings, form, out)
    fields = OWN.fields(request.native)
    format_ = if_object(fields.get("text")).get("format")
    if request.output_schema is not None:
        body["text"] = {"format": dump_schema(request.output_schema, if_object(format_) or None)}
    elif (
        isinstance(format_, dict) and "type" not in format_
    ):  # it stood beside a schema that is there no more
        fields["text"] = read_extra_fields(fields["text"], "format")
    if request.stream or "stream" in form:
        body["stream"] = request.stream
    if options.get("store") is False and quirks.encrypted and "include" not in form:
        body["include"] = _ENCRYPTED
    body = merge_wire_fields(body, fields)
    return HttpRequest(
        "/responses",
        body={**body, **merge_wire_fields(dict(options), body)},
        names=invert_names(out.names),
    )


def _taken(out: OutgoingItems) -> set[str]:
    """Ids of items that it holds."""
    return out.taken


def _fault(body: JsonMap) -> InvalidRequestError | None:
    if body.get("input") or any(body.get(name) for name in LINKED_BY_CALLER):
        return None
    return InvalidRequestError(
        "No new input provided: add a message, or go on from a response by its id."
    )


_REQUESTS = RequestFormat(NAME, Quirks, _load, _dump, ("input",), _fault)
load_request, dump_request, dump_http = (
    _REQUESTS.load_request,
    _REQUESTS.dump_request,
    _REQUESTS.dump_http,
)
