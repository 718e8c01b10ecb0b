"""The request's body ↔ `ModelRequest`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.history import Turn
from dragoman.codec.history_dump import Link, Way, dumped, dumped_tools
from dragoman.codec.ids import renamed
from dragoman.codec.json_values import bounded, if_list, if_object, rest
from dragoman.codec.outgoing import own_options
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest, ToolSpec
from dragoman.wires.openai_responses.items import Conversation
from dragoman.wires.openai_responses.linking import LINKED_BY_CALLER, anchor, is_stored, may_be_anchor, may_link
from dragoman.wires.openai_responses.messages import dump_conversation, load_conversation, outgoing
from dragoman.wires.openai_responses.quirks import NAME, OWN, Quirks
from dragoman.wires.openai_responses.settings import FIELDS, dump_schema, dump_settings, load_schema, load_settings
from dragoman.wires.openai_responses.tools import dump_tools, load_tools

__all__ = ["dump_http", "dump_request", "load_request", "routes"]

routes = (
    Route("POST", "/v1/responses", "chat"),
    Route("POST", "/v1/responses/input_tokens", "count_tokens"),
    Route("POST", "/v1/embeddings", "embeddings"),
    Route("GET", "/v1/models", "models"),
)
"""Where OpenAI's API has what."""

_OWN = (*FIELDS, "model", "tools", "text", "stream", "instructions", "input")
"""Fields that have a neutral name. One whose value has no neutral meaning is kept in `native`, never in `options`."""
_ENCRYPTED = ["reasoning.encrypted_content"]


def load_request(
    body: Mapping[str, Any],
    *,
    path: str = "",  # noqa: ARG001 - the protocol's: here the body holds all
    headers: Mapping[str, str] = {},  # noqa: ARG001
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> ModelRequest:
    """A body of `/responses` → the neutral request. A body for counting tokens or compacting is read too. `problems`: as for
    `load_messages`.

    Raises:
        HistoryError: the body is no request of this format.
    """
    bounded(body if problems is None else {**if_object(body), "input": None})
    if not any(name in if_object(body) for name in ("input", *LINKED_BY_CALLER)):
        raise HistoryError('a Responses request needs "input", a string or a list of items')
    left = dict(body)
    form: dict[str, Any] = {}
    payload = {key: left.pop(key) for key in ("instructions", "input") if body.get(key)}
    messages = load_conversation(payload, origin, problems)
    if "input" not in body:
        form["input"] = "absent"
    settings = load_settings(left, form)
    tools = if_list(left.get("tools"))
    if tools:
        del left["tools"]
    schema = load_schema(left)
    if isinstance(stream := left.get("stream"), bool):
        del left["stream"]
        if not stream:
            form["stream"] = "explicit"
    if left.get("store") is False and "include" not in left:
        form["include"] = "absent"
    model = left.pop("model") if isinstance(left.get("model"), str) else ""
    own = {field: left.pop(field) for field in _OWN if field in left}
    return ModelRequest(
        model,
        tuple(messages),
        load_tools(tools),
        settings,
        schema,
        stream is True,
        options=left,
        native=OWN.note(own, form=form),
        wire=NAME if left else None,
    )


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> dict[str, Any]:
    """The neutral request → a body of `/responses`.

    Towards a provider that stores responses, it goes on from the newest one of its own that is as it was, with only what
    follows it. `options` are written last and have the last word; those that are objects are added to.
    """
    return _dump(request, target, quirks, losses)[0]


def _dump(
    request: ModelRequest,
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    turn: Turn | None = None,
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The body, and the name under which each tool is sent."""
    quirks = quirks or Quirks()
    losses = [] if losses is None else losses
    request = own_options(request, NAME, losses)
    options, form = request.options, OWN.form(request.native)
    tools = [tool for tool in request.tools if isinstance(tool, ToolSpec)]
    holds = is_stored(options)
    link = Link[Conversation](
        lambda message: may_be_anchor(message, target),
        anchor,
        lambda out, at: dump_conversation(out, after=at),
    )
    way = Way[Conversation](
        lambda messages, losses, tools: outgoing(messages, target, quirks, losses, tools, holds=holds),
        dump_conversation,
        "input",
        link=link if may_link(target, quirks, options) else None,
        key=holds,
        ids=lambda out: out.taken,
    )
    out, payload, _, linked = dumped(turn, way, request.messages, losses, tools)
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    body |= payload
    if not body["input"] and ("input" in form or "input" in OWN.fields(request.native)):
        del body["input"]
    if linked is not None:
        body["previous_response_id"] = linked
    body |= dumped_tools(
        turn, out, request.tools, lambda: {"tools": sent} if (sent := dump_tools(request.tools, out)) else {}
    )[0]
    body |= dump_settings(request.settings, form, out)
    own = OWN.fields(request.native)
    format_ = if_object(own.get("text")).get("format")
    if request.output_schema is not None:
        body["text"] = {"format": dump_schema(request.output_schema, if_object(format_) or None)}
    elif isinstance(format_, dict) and "type" not in format_:  # it stood beside a schema that is there no more
        own["text"] = rest(own["text"], "format")
    if request.stream or "stream" in form:
        body["stream"] = request.stream
    if options.get("store") is False and quirks.encrypted and "include" not in form:
        body["include"] = _ENCRYPTED
    return _merged(_merged(body, own), options, over=True), out.names


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
    history: Turn | None = None,
) -> HttpRequest:
    """The neutral request → path, headers and body. `history`: what the model knows of earlier requests.

    Raises:
        InvalidRequestError: there is nothing to send.
    """
    body, names = _dump(request, target, quirks, losses, history)
    if not body.get("input") and not any(body.get(name) for name in LINKED_BY_CALLER):
        raise InvalidRequestError("No new input provided: add a message, or go on from a response by its id.")
    return HttpRequest("/responses", body=body, names=renamed(names))


def _merged(body: dict[str, Any], more: Mapping[str, Any], *, over: bool = False) -> dict[str, Any]:
    """A body with more fields, level by level. `over`: they win where both say something."""
    out = dict(body)
    for key, value in more.items():
        mine = out.get(key)
        if isinstance(mine, dict) and isinstance(value, Mapping):
            out[key] = _merged(cast("dict[str, Any]", mine), cast("Mapping[str, Any]", value), over=over)
        elif over or key not in out:
            out[key] = value
    return out
