"""The body of `/chat` ⇄ `ModelRequest`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.history import Turn
from dragoman.codec.history_dump import Way, dumped, dumped_tools
from dragoman.codec.ids import renamed
from dragoman.codec.json_values import bounded, if_object, if_text, merged, rest
from dragoman.codec.outgoing import Outgoing, own_options
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest, Settings, ToolSpec
from dragoman.wires.cohere.messages import dump_conversation, load_conversation, outgoing
from dragoman.wires.cohere.quirks import NAME, OWN, Quirks
from dragoman.wires.cohere.settings import FIELDS, dump_schema, dump_settings, load_schema, load_settings
from dragoman.wires.cohere.tools import dump_tool_choice, dump_tools, load_tool_choice, load_tools

__all__ = ["dump_http", "dump_request", "load_request", "routes"]

routes: tuple[Route, ...] = (
    Route("POST", "/v2/chat", "chat"),
    Route("POST", "/v2/embed", "embeddings"),
    Route("GET", "/v1/models", "models"),
)
"""Where the official API stands."""

_OWN = (*FIELDS, "tool_choice", "model", "tools", "stream")
"""Fields that have a neutral name. One whose value has no neutral meaning is kept in `native`, never in `options`."""


def load_request(
    body: Mapping[str, Any],
    *,
    path: str = "",
    headers: Mapping[str, str] = {},
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> ModelRequest:
    """A body of `/v2/chat` → the neutral request. `path` and `headers` hold nothing on this wire. `problems` as for
    `load_messages`.

    Raises:
        HistoryError: it holds no conversation, as bodies of the API's version 1 do not.
    """
    del path, headers
    bounded(body if problems is None else rest(if_object(body), "messages"))
    if not isinstance(if_object(body).get("messages"), list):
        raise HistoryError("a Cohere chat request (version 2) needs the field messages, a list")
    left = dict(body)
    form: dict[str, Any] = {}
    messages = load_conversation(left.pop("messages"), origin, problems)
    settings = Settings(**load_settings(left), **load_tool_choice(left))
    tools = load_tools(left)
    schema, beside = load_schema(left, form)
    stream = left.get("stream", False)
    if "stream" not in left:
        form["stream"] = "absent"
    elif isinstance(stream, bool):
        del left["stream"]
    model = left.pop("model") if if_text(left.get("model")) else ""
    own = {**{field: left.pop(field) for field in _OWN if field in left}, **beside}
    return ModelRequest(
        model,
        tuple(messages),
        tools,
        settings,
        schema,
        stream is True,
        left,
        OWN.note(own, form=form),
        wire=NAME if left else None,
    )


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> dict[str, Any]:
    """The neutral request → a body of `/v2/chat`. `options` are written last and have the last word."""
    body, _ = _dump(request, target, quirks, losses)
    return body


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
    history: Turn | None = None,
) -> HttpRequest:
    """The neutral request → path, headers and body. `history`: what the model knows of earlier requests."""
    body, names = _dump(request, target, quirks, losses, history)
    return HttpRequest("/chat", body=body, names=renamed(names))


def _dump(
    request: ModelRequest,
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    turn: Turn | None = None,
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The body, and the name under which each tool is sent."""
    losses = [] if losses is None else losses
    request = own_options(request, NAME, losses)
    form, own = OWN.form(request.native), OWN.fields(request.native)
    functions = [tool for tool in request.tools if isinstance(tool, ToolSpec)]
    way = Way[Outgoing[Quirks]](
        lambda messages, losses, tools: outgoing(messages, target, quirks, losses, [tool.name for tool in tools]),
        dump_conversation,
    )
    out, messages, _, _ = dumped(turn, way, request.messages, losses, functions)
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    body["messages"] = messages
    body |= dumped_tools(
        turn, out, request.tools, lambda: {"tools": tools} if (tools := dump_tools(request.tools, out)) else {}
    )[0]
    if request.stream or not {"stream"} & {*form, *own}:
        body["stream"] = request.stream
    body |= dump_settings(request.settings, out.quirks)
    body |= dump_tool_choice(request.settings, out.losses)
    body |= dump_schema(request.output_schema, form, out.losses)
    return merged(body, own) | dict(request.options), out.names
