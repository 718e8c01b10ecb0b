"""The body of `/chat` ⇄ `ModelRequest`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.ids import renamed
from dragoman.codec.json_dialect import Dialect, fit
from dragoman.codec.json_values import bounded, if_list, if_object, if_text, merged, rest
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest, ServerTool, ToolSpec
from dragoman.wires.cohere.messages import dump_messages, read_messages, sent_names
from dragoman.wires.cohere.quirks import OWN, Quirks
from dragoman.wires.cohere.settings import FIELDS, dump_settings, load_settings
from dragoman.wires.cohere.tools import dump_tool, is_tool, load_tool

__all__ = ["dump_http", "dump_request", "load_request"]

_OWN = (*FIELDS, "model", "tools", "response_format", "stream")
"""Fields that have a neutral name. One whose value has no neutral meaning is kept in `native`, never in `options`."""
_ANY_OBJECT: dict[str, Any] = {"type": "object"}
_DIALECT = Dialect(
    kept=frozenset({"title", "description", "enum", "const", "pattern", "format"}),
    only={"format": frozenset({"date-time", "date", "time", "uuid"})},
    free=False,
    lists=False,
    some_required=True,
)
_SCHEMA = ("json_schema", "schema")
"""Where the schema stands in `response_format`: today's name, and the older one."""


def load_request(
    body: Mapping[str, Any], *, path: str = "", headers: Mapping[str, str] = {}, origin: Origin | None = None
) -> ModelRequest:
    """A body of `/v2/chat` → the neutral request. `path` and `headers` tell nothing on this wire.

    Raises:
        HistoryError: it holds no conversation, as bodies of the API's version 1 do not.
    """
    del path, headers
    if not isinstance(if_object(bounded(body)).get("messages"), list):
        raise HistoryError("a Cohere chat request (version 2) needs the field messages, a list")
    left = dict(body)
    spelled: dict[str, Any] = {}
    messages = read_messages(left.pop("messages"), origin)
    settings = load_settings(left)
    tools: tuple[ToolSpec, ...] = ()
    if if_list(left.get("tools")) and all(map(is_tool, left["tools"])):
        tools = tuple(load_tool(tool) for tool in left.pop("tools"))
    schema, stated = _load_format(left, spelled)
    stream = left.get("stream", False)
    if "stream" not in left:
        spelled["stream"] = "absent"
    elif isinstance(stream, bool):
        del left["stream"]
    model = left.pop("model") if if_text(left.get("model")) else ""
    own = {**{field: left.pop(field) for field in _OWN if field in left}, **stated}
    return ModelRequest(
        model, tuple(messages), tools, settings, schema, stream is True, left, OWN.note(own, form=spelled)
    )


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> dict[str, Any]:
    """The neutral request → a body of `/v2/chat`. `options` are written last and have the last word."""
    body, _ = _written(request, target, quirks, losses)
    return body


def _written(
    request: ModelRequest, target: Origin | None, quirks: Quirks | None, losses: list[Loss] | None
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The body, and the name under which each tool is sent."""
    quirks, losses = quirks or Quirks(), [] if losses is None else losses
    spelled, own = OWN.form(request.native), OWN.fields(request.native)
    functions = [tool for tool in request.tools if isinstance(tool, ToolSpec)]
    names = sent_names(request.messages, quirks, [tool.name for tool in functions], target=target)
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    body["messages"] = dump_messages(request.messages, target=target, quirks=quirks, losses=losses, names=names)
    if functions:
        body["tools"] = [dump_tool(tool, names[tool.name]) for tool in functions]
    for tool in request.tools:
        if isinstance(tool, ServerTool):
            losses.append(Loss(None, None, tool.name, "the API runs no tools of its own"))
    if request.stream or not {"stream"} & {*spelled, *own}:
        body["stream"] = request.stream
    body |= dump_settings(request.settings, quirks, losses)
    if (schema := request.output_schema) is not None:
        body["response_format"] = _dump_format(schema, spelled, losses)
    return merged(body, own) | dict(request.options), names


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> HttpRequest:
    """The neutral request → path, headers and body."""
    body, names = _written(request, target, quirks, losses)
    return HttpRequest("/chat", body=body, names=renamed(names))


def _load_format(left: dict[str, Any], spelled: dict[str, Any]) -> tuple[Mapping[str, Any] | None, dict[str, Any]]:
    """Takes the output schema out of `left` → it, and what `response_format` says beside it."""
    stated = if_object(left.get("response_format"))
    if stated.get("type") != "json_object":
        return None, {}
    if stated == {"type": "json_object"}:
        del left["response_format"]
        return dict(_ANY_OBJECT), {}
    for field in _SCHEMA:
        schema = stated.get(field)
        if isinstance(schema, dict):
            del left["response_format"]
            spelled["schema"] = field
            beside = rest(stated, "type", field)
            return if_object(schema), {"response_format": beside} if beside else {}
    return None, {}


def _dump_format(schema: Mapping[str, Any], spelled: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
    """The output schema → `response_format`. A loaded one is sent as it was, any other in the API's dialect."""
    if field := spelled.get("schema"):
        return {"type": "json_object", field: schema}
    sent = None if schema == _ANY_OBJECT else fit(schema, _DIALECT)
    if sent is None and schema != _ANY_OBJECT:
        losses.append(Loss(None, None, "output_schema", "it refers to what is not in it"))
    return {"type": "json_object"} if sent is None else {"type": "json_object", "json_schema": sent}
