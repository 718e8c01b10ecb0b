"""The request's body ⇄ `ModelRequest`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.ids import renamed
from dragoman.codec.json_values import bounded, if_object, if_objects, if_text, merged
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest, ServerTool, ToolSpec
from dragoman.wires.openai_chat.messages import dump_conversation, load_conversation
from dragoman.wires.openai_chat.outgoing import outgoing
from dragoman.wires.openai_chat.output import dump_output, load_output
from dragoman.wires.openai_chat.quirks import OWN, Quirks
from dragoman.wires.openai_chat.settings import FIELDS, dump_settings, load_settings
from dragoman.wires.openai_chat.tools import dump_function, dump_tool, is_function, is_tool, load_function, load_tool

__all__ = ["dump_http", "dump_request", "load_request"]

_OWN = (*FIELDS, "tools", "functions", "response_format", "stream", "stream_options")
"""Fields that have a neutral name. One whose value has no neutral meaning is kept in `native`, never in `options`."""
_USAGE = {"include_usage": True}


def load_request(
    body: Mapping[str, Any], *, path: str = "", headers: Mapping[str, str] = {}, origin: Origin | None = None
) -> ModelRequest:
    """A body of `/chat/completions` → the neutral request. `path` and `headers` tell nothing on this wire.

    Raises:
        HistoryError: it holds no conversation.
    """
    del path, headers
    if not isinstance(if_object(body).get("messages"), list):
        raise HistoryError("a Chat Completions request needs the field messages, a list")
    bounded(body)
    left = dict(body)
    spelled: dict[str, Any] = {}
    messages = load_conversation(left.pop("messages"), origin)
    settings = load_settings(left, spelled)
    tools = _load_tools(left, spelled)
    schema, stated = load_output(left)
    stream = left.get("stream") is True
    if stream:
        del left["stream"]
        if left.get("stream_options") == _USAGE:
            del left["stream_options"]
        elif "stream_options" not in left:
            spelled["stream_options"] = "absent"
    model = left.pop("model") if if_text(left.get("model")) else ""
    own = {field: left.pop(field) for field in _OWN if field in left}
    return ModelRequest(
        model,
        tuple(messages),
        tools,
        settings,
        schema,
        stream,
        options=left,
        native=OWN.note({**own, **stated}, spelled),
    )


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> dict[str, Any]:
    """The neutral request → a body of `/chat/completions`.

    A stream is asked for its usage; parallel calls and the service tier are sent in streams too.
    `options` are written last and have the last word.
    """
    body, _ = _written(request, target, quirks, losses)
    return body


def _written(
    request: ModelRequest, target: Origin | None, quirks: Quirks | None, losses: list[Loss] | None
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The body, and the name under which each tool is sent."""
    out = outgoing(
        request.messages, target, quirks, losses, [tool.name for tool in request.tools if isinstance(tool, ToolSpec)]
    )
    spelled = OWN.form(request.native) if quirks is None else {}
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    body["messages"] = dump_conversation(out)
    if request.tools and spelled.get("tools") == "functions":
        body["functions"] = [dump_function(tool, out.name) for tool in request.tools if isinstance(tool, ToolSpec)]
    elif request.tools:
        body["tools"] = [dump_tool(tool, out.name) for tool in request.tools]
    body |= dump_settings(request.settings, spelled, out.quirks, out.name, out.losses)
    own = OWN.fields(request.native)
    if request.output_schema is not None:
        body["response_format"] = dump_output(request.output_schema, own.get("response_format"), out)
    if request.stream:
        body["stream"] = True
        if "stream_options" not in spelled:
            body["stream_options"] = own.get("stream_options", _USAGE)
    for field in body.keys() & set(out.quirks.refuses):
        out.lose(None, None, field, "the vendor refuses it")
        del body[field]
    return merged(body, own) | dict(request.options), out.names


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> HttpRequest:
    """The neutral request → path, headers and body."""
    body, names = _written(request, target, quirks, losses)
    return HttpRequest("/chat/completions", body=body, names=renamed(names))


def _load_tools(body: dict[str, Any], spelled: dict[str, Any]) -> tuple[ToolSpec | ServerTool, ...]:
    """Takes the tools out of `body`, or the older `functions`."""
    for field, load, readable in (("tools", load_tool, is_tool), ("functions", load_function, is_function)):
        tools: Any = body.get(field)
        if if_objects(tools) and all(map(readable, if_objects(tools))):
            if field == "functions":
                spelled["tools"] = field
            return tuple(load(tool) for tool in body.pop(field))
    return ()
