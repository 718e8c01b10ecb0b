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
from dragoman.wires.mistral.messages import dump_conversation, load_conversation
from dragoman.wires.mistral.outgoing import outgoing
from dragoman.wires.mistral.output import dump_output, load_output
from dragoman.wires.mistral.quirks import OWN, Quirks
from dragoman.wires.mistral.settings import FIELDS, dump_settings, load_settings
from dragoman.wires.mistral.tools import dump_tool, is_tool, load_tool

__all__ = ["dump_http", "dump_request", "load_request"]

_OWN = (*FIELDS, "tools", "response_format", "stream", "model")
"""Fields that have a neutral name. One whose value has no neutral meaning is kept in `native`, never in `options`."""


def load_request(
    body: Mapping[str, Any], *, path: str = "", headers: Mapping[str, str] = {}, origin: Origin | None = None
) -> ModelRequest:
    """A body of `/chat/completions` → the neutral request. `path` and `headers` tell nothing on this wire.

    Raises:
        HistoryError: it holds no conversation.
    """
    del path, headers
    if not isinstance(if_object(body).get("messages"), list):
        raise HistoryError("a Mistral chat request needs the field messages, a list")
    bounded(body)
    left = dict(body)
    spelled: dict[str, Any] = {}
    messages = load_conversation(left.pop("messages"), origin)
    settings = load_settings(left, spelled)
    tools = _load_tools(left)
    schema, stated = load_output(left)
    stream = left.get("stream") is True
    if stream:
        del left["stream"]
    model = left.pop("model") if if_text(left.get("model")) else ""
    own = {field: left.pop(field) for field in _OWN if field in left}
    native = OWN.note({**own, **stated}, spelled)
    return ModelRequest(model, tuple(messages), tools, settings, schema, stream, options=left, native=native)


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> dict[str, Any]:
    """The neutral request → a body of `/chat/completions`. `options` are written last and have the last word."""
    body, _ = _written(request, target, quirks, losses)
    return body


def _written(
    request: ModelRequest, target: Origin | None, quirks: Quirks | None, losses: list[Loss] | None
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The body, and the name under which each tool is sent."""
    functions = [tool for tool in request.tools if isinstance(tool, ToolSpec)]
    out = outgoing(request.messages, target, quirks, losses, functions)
    own = OWN.fields(request.native)
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    body["messages"] = dump_conversation(out)
    if request.tools:
        body["tools"] = [dump_tool(tool, out.name) for tool in request.tools]
    body |= dump_settings(request.settings, OWN.form(request.native), out.name)
    if request.output_schema is not None:
        body["response_format"] = dump_output(request.output_schema, own.get("response_format"))
    if request.stream:
        body["stream"] = True
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


def _load_tools(body: dict[str, Any]) -> tuple[ToolSpec | ServerTool, ...]:
    """Takes the tools out of `body`."""
    tools = if_objects(body.get("tools"))
    if not tools or not all(map(is_tool, tools)):
        return ()
    del body["tools"]
    return tuple([load_tool(tool) for tool in tools])
