"""Reads and writes the body of `/interactions`."""

from __future__ import annotations

from msgspec.structs import replace

from dragoman.codec.background import BackgroundForm
from dragoman.codec.fit_ids import invert_names
from dragoman.codec.json_values import if_list, if_object, if_text, merge_wire_fields
from dragoman.codec.serving import Route
from dragoman.codec.tool_fields import ToolFields
from dragoman.codec.wire_operations import RequestDump, RequestEnvelope, RequestFormat
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason
from dragoman.repair import repair
from dragoman.request import HttpRequest, ModelRequest, Settings
from dragoman.wires.google_interactions.messages import (
    dump_conversation,
    load_conversation,
    prepare_conversation,
)
from dragoman.wires.google_interactions.quirks import NAME, OWN, Quirks
from dragoman.wires.google_interactions.settings import (
    CONFIG,
    dump_schema,
    dump_settings,
    load_schema,
    load_settings,
)
from dragoman.wires.google_interactions.tools import SERVER_TOOLS, dump_tools, load_tools
from dragoman.wires.google_interactions.usage import TOKEN

__all__ = ["background", "dump_http", "dump_request", "load_request", "routes"]

routes: tuple[Route, ...] = (
    Route("POST", "/v1beta/interactions", "chat"),
    Route("POST", "/v1/interactions", "chat"),
    Route("GET", "/v1beta/models", "models"),
    Route("GET", "/v1beta/models/{model}", "model"),
)
"""Paths of the official API."""
background = BackgroundForm(
    path="/interactions",
    after="last_event_id",
    begin=lambda answer: {"event_type": "interaction.created", "interaction": answer},
)
"""How answers are made in the background."""
_CONVERSATION = ("system_instruction", "input")
_OWN = ("model", "tools", "stream", CONFIG, "response_format", *_CONVERSATION)
"""Fields that have a neutral name. One whose value has no neutral meaning is kept in `native`,
never in `options`."""
_CONTINUES = ("previous_interaction_id", "continuation_token")
"""Options with which a request may have no input of its own."""
_TOOL_FIELDS: ToolFields = {"defer_loading": ""}


def _load_body(body: JsonMap, received: RequestEnvelope) -> ModelRequest:
    """Reads the body of a request to `/interactions`."""
    if not any(name in if_object(body) for name in ("input", *_CONTINUES)):
        raise HistoryError('an Interactions request needs "input", a text or a list of steps').at(
            field="input"
        )
    unread, form = dict(body), Json()
    payload = {name: unread.pop(name) for name in _CONVERSATION if unread.get(name)}
    # An empty input is allowed beside the id of an interaction to go on from.
    if not payload.get("input"):
        form["input"] = unread.pop("input", "absent")
    messages = load_conversation(payload, received.origin, received.problems)
    settings = load_settings(unread, form)
    schema = load_schema(unread, form)
    tools = load_tools(unread.pop("tools")) if if_list(unread.get("tools")) else ()
    stream = unread.get("stream")
    if isinstance(stream, bool):
        del unread["stream"]
    else:
        form["stream"] = "absent"
    model = unread.pop("model") if if_text(unread.get("model")) else ""
    own_fields = {field: unread.pop(field) for field in _OWN if field in unread}
    return ModelRequest(
        model,
        tuple(messages),
        tools,
        Settings(**settings),
        schema,
        stream is True,
        unread,
        OWN.note(own_fields, form=form),
        wire=NAME if unread else None,
    )


def _dump_body(sending: RequestDump[Quirks]) -> HttpRequest:
    """Writes a request of `/interactions`. `options` are written last and replace other fields."""
    sending, continuation = _take_continuation(sending)
    request = sending.request
    form, own_fields = OWN.form(request.native), OWN.fields(request.native)
    own_config = if_object(own_fields.get(CONFIG))
    out, payload, _, _ = sending.conversation(prepare_conversation, dump_conversation, "input")
    body: Json = {"model": request.model} if request.model else {}
    body |= payload | continuation
    if not body["input"] and "input" in form:
        del body["input"]
        if form["input"] != "absent":
            body["input"] = form["input"]
    body |= sending.tools(out, lambda: dump_tools(request.tools, out))
    body |= dump_settings(request.settings, form, own_config, out)
    body |= dump_schema(request.output_schema, form)
    # Written also where it is false, unless the loaded request unread it out.
    if request.stream or not ("stream" in form or "stream" in own_fields):
        body["stream"] = request.stream
    if "previous_interaction_id" in continuation:
        # The provider holds the conversation, and takes no input beside the token.
        del body["input"]
    return HttpRequest(
        "/interactions",
        body=merge_wire_fields(body, own_fields) | dict(request.options),
        names=invert_names(out.names),
    )


def _take_continuation(sending: RequestDump[Quirks]) -> tuple[RequestDump[Quirks], Json]:
    """Returns what to send for an interaction that Google suspended, and the fields that let it go
    on: it is not sent again, and neither is the conversation if the provider stored it."""
    messages, target = sending.request.messages, sending.target
    if not messages or messages[-1].finish_reason is not FinishReason.pause:
        return sending, {}
    token = OWN.response(messages[-1].native).get(TOKEN)
    origin = messages[-1].origin
    if not isinstance(token, str) or origin is None or target is None:
        return sending, {}
    if origin.provider != target.provider:
        return sending, {}
    earlier = tuple(repair(messages[:-1]))
    if sending.turn is not None:
        # Nothing is remembered of it: the next request has another end.
        sending.turn.history, sending.turn.messages = None, earlier
    fields: Json = {TOKEN: token}
    if sending.request.options.get("store") is not False and origin.response_id:
        fields["previous_interaction_id"] = origin.response_id
    return replace(sending, request=sending.request.replace(messages=earlier)), fields


def _find_fault(body: JsonMap) -> InvalidRequestError | None:
    """Returns the error for an Interactions body without any input, or None."""
    if body.get("input") or any(body.get(name) for name in _CONTINUES):
        return None
    return InvalidRequestError(
        "there is no input: add a message, or go on from an interaction by its id"
    )


_REQUESTS = RequestFormat(
    NAME, Quirks, _load_body, _dump_body, ("input",), _find_fault, _TOOL_FIELDS, SERVER_TOOLS
)
load_request, dump_request, dump_http = (
    _REQUESTS.load_request,
    _REQUESTS.dump_request,
    _REQUESTS.dump_http,
)
