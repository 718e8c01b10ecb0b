"""The body of `/api/chat`, or of the older `/api/generate` ⇄ `ModelRequest`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.history import Turn
from dragoman.codec.history_dump import Way, dumped, dumped_tools
from dragoman.codec.json_values import bounded, if_list, if_object, if_text, merged, rest
from dragoman.codec.outgoing import Outgoing, own_options
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest, ServerTool, ToolSpec
from dragoman.wires.ollama.generate import ENDPOINT, GENERATE, PROMPT, dump_prompt, is_generate, is_prompt, load_prompt
from dragoman.wires.ollama.messages import dump_conversation, load_conversation, outgoing
from dragoman.wires.ollama.quirks import NAME, OWN, Quirks
from dragoman.wires.ollama.settings import dump_schema, dump_settings, load_schema, load_settings
from dragoman.wires.ollama.tools import dump_tools, is_tool, load_tools

__all__ = ["dump_http", "dump_request", "load_request", "routes"]

_CHAT = "/api/chat"
routes: tuple[Route, ...] = (
    Route("POST", _CHAT, "chat"),
    Route("POST", GENERATE, "chat"),
    Route("POST", "/api/embed", "embeddings"),
    Route("POST", "/api/embeddings", "embeddings"),
    Route("GET", "/api/tags", "models"),
)
"""The server's; two are the older forms of the ones before them."""


def load_request(
    body: Mapping[str, Any],
    *,
    path: str = "",
    headers: Mapping[str, str] = {},
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> ModelRequest:
    """A body of `/api/chat` → the neutral request. `headers` tell nothing on this wire; `problems` as for `load_messages`. A body of `/api/generate`, known by its
    `path` or by having a prompt in the place of messages, is read into the same, and written again as what it was.

    Raises:
        HistoryError: it holds neither messages nor a prompt.
    """
    del headers
    bounded(body if problems is None else rest(if_object(body), "messages"))
    prompt = isinstance(body, dict) and is_prompt(body, path)
    if not prompt and not isinstance(if_object(body).get("messages"), list):
        raise HistoryError("an Ollama chat request needs the field messages, a list")
    left = dict(body)
    form: dict[str, Any] = {}
    own: dict[str, Any] = {}
    messages = load_prompt(left) if prompt else load_conversation(left.pop("messages"), origin, problems)
    if prompt:
        form |= ENDPOINT
        own |= {field: left.pop(field) for field in PROMPT if field in left}
    model = left.pop("model") if if_text(left.get("model")) else ""
    settings = load_settings(left, model, form, own)
    tools: tuple[ToolSpec | ServerTool, ...] = ()
    if if_list(left.get("tools")) and all(map(is_tool, left["tools"])):
        tools = load_tools(left.pop("tools"))
    schema = load_schema(left, form)
    stream = left.get("stream", True)
    if isinstance(stream, bool) and left.pop("stream", None) is None:
        form["stream"] = "absent"
    own |= {field: left.pop(field) for field in ("model", "tools", "format", "stream", "think") if field in left}
    native, wire = OWN.note(own, form=form), NAME if left else None
    return ModelRequest(model, tuple(messages), tools, settings, schema, stream is not False, left, native, wire=wire)


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> dict[str, Any]:
    """The neutral request → a body of `/api/chat`, or of `/api/generate` where it was one. `options` have the last word, level by level.

    An output schema goes along with tools too, though models then seldom call one.
    """
    return _dump(request, target, quirks, losses)


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
    history: Turn | None = None,
) -> HttpRequest:
    """The neutral request → path, headers and body. `history`: what the model knows of earlier requests."""
    body = _dump(request, target, quirks, losses, history)
    return HttpRequest(_CHAT if "messages" in body else GENERATE, body=body)


def _dump(
    request: ModelRequest,
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    turn: Turn | None = None,
) -> dict[str, Any]:
    losses = [] if losses is None else losses
    request = own_options(request, NAME, losses)
    form, own = OWN.form(request.native), OWN.fields(request.native)
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    out = outgoing(request.messages, target, quirks, losses) if is_generate(request) else None
    prompt = None if out is None else dump_prompt(out.messages)
    if out is None or prompt is None:
        way = Way[Outgoing[Quirks]](
            lambda messages, losses, _: outgoing(messages, target, quirks, losses), dump_conversation
        )
        out, body["messages"], _, _ = dumped(turn, way, request.messages, losses, ())
    else:
        body |= prompt
    sent = out

    def dump() -> dict[str, Any]:
        return {"tools": tools} if (tools := dump_tools(request.tools, sent)) else {}

    body |= dumped_tools(turn, out, request.tools, dump)[0]
    if request.stream is False or (form.get("stream") != "absent" and "stream" not in own):
        body["stream"] = request.stream
    if request.output_schema is not None:
        body["format"] = dump_schema(request.output_schema, form)
    body |= dump_settings(request, form, out)
    body = merged(body, own)
    for field, value in request.options.items():
        nested = field == "options" and isinstance(value, Mapping)
        body[field] = {**if_object(body.get(field)), **cast("Mapping[str, Any]", value)} if nested else value
    return body
