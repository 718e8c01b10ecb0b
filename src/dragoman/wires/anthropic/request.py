"""A request's body, path and headers ↔ `ModelRequest`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from dragoman.codec.history import Turn
from dragoman.codec.history_dump import Way, dumped, dumped_tools
from dragoman.codec.ids import renamed
from dragoman.codec.json_values import bounded, if_object, rest
from dragoman.codec.outgoing import own_options
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest, Settings, ToolSpec
from dragoman.wires.anthropic.content import Outgoing
from dragoman.wires.anthropic.messages import dump_conversation, load_conversation, outgoing
from dragoman.wires.anthropic.quirks import NAME, OWN, Quirks
from dragoman.wires.anthropic.settings import FIELDS, dump_settings, load_schema, load_settings
from dragoman.wires.anthropic.tools import dump_tool_choice, dump_tools, load_tool_choice, load_tools

__all__ = ["dump_http", "dump_request", "load_request", "routes"]

routes: tuple[Route, ...] = (
    Route("POST", "/v1/messages", "chat"),
    Route("POST", "/v1/messages/count_tokens", "count_tokens"),
    Route("GET", "/v1/models", "models"),
)
"""Where the official API stands."""

_VERSION = "2023-06-01"
_NEUTRAL = (*FIELDS, "model", "system", "stream", "tools", "tool_choice")


def load_request(
    body: Mapping[str, Any],
    *,
    path: str = "",  # noqa: ARG001 - the protocol's: here the body says it all
    headers: Mapping[str, str] = {},
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> ModelRequest:
    """A body → the neutral request. A body for counting tokens, which has no `max_tokens`, is read too. `problems` as for
    `load_messages`.

    Raises:
        HistoryError: the body is no request of this format.
    """
    bounded(body if problems is None else rest(if_object(body), "system", "messages"))
    if not isinstance(if_object(body).get("messages"), list):
        raise HistoryError('the body must have a list "messages"')
    nulls = [key for key in _NEUTRAL if key in body and body[key] is None]
    left = {key: value for key, value in body.items() if key not in nulls}
    form: dict[str, Any] = {"null": nulls} if nulls else {}
    messages = load_conversation(
        {key: left.pop(key) for key in ("system", "messages") if key in left}, origin, problems
    )
    if body.get("system") in ("", []):
        form["system"] = body["system"]
    stream = left.pop("stream") if isinstance(left.get("stream"), bool) else None
    if stream is False:
        form["stream"] = "explicit"
    tools = load_tools(left, form)
    settings = Settings(**load_settings(left, form), **load_tool_choice(left, form))
    schema = load_schema(left, form)
    if betas := _header(headers):
        form["betas"] = betas
    model = left.pop("model") if isinstance(left.get("model"), str) else ""
    return ModelRequest(
        model,
        tuple(messages),
        tools,
        settings,
        schema,
        stream is True,
        left,
        OWN.note(form=form),
        wire=NAME if left else None,
    )


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> dict[str, Any]:
    """The neutral request → a body."""
    return _dump(request, target, quirks, losses)[0]


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
    history: Turn | None = None,
) -> HttpRequest:
    """The neutral request → path, headers and body, with the beta headers that its content needs. `history`: what the model knows of
    earlier requests."""
    quirks = quirks or Quirks()
    body, names, words = _dump(request, target, quirks, losses, history)
    needed = [quirks.betas[word] for word in words if word in quirks.betas]
    betas = list(dict.fromkeys([*OWN.form(request.native).get("betas", ()), *needed]))
    headers = {"anthropic-version": _VERSION, **({"anthropic-beta": ",".join(betas)} if betas else {})}
    return HttpRequest("/messages", headers, body, names=renamed(names))


def _dump(
    request: ModelRequest,
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    turn: Turn | None = None,
) -> tuple[dict[str, Any], Mapping[str, str], Iterator[str]]:
    """The body, the name under which each tool is sent, and what may need a beta."""
    losses = [] if losses is None else losses
    request = own_options(request, NAME, losses)
    form, options = OWN.form(request.native), request.options
    functions = [tool for tool in request.tools if isinstance(tool, ToolSpec)]
    way = Way[Outgoing](
        lambda messages, losses, tools: outgoing(messages, target, quirks, losses, model=request.model, tools=tools),
        dump_conversation,
        "messages",
        notes=_entry_words,
    )
    out, payload, words, _ = dumped(turn, way, request.messages, losses, functions)
    tools, tool_words = dumped_tools(
        turn,
        out,
        request.tools,
        lambda: {"tools": dump_tools(request.tools, out)},
        lambda fields: _types(fields["tools"]),
    )
    settings = dump_settings(request, out.quirks, out.losses)
    has_tools = bool(request.tools) and "tool_choice" not in options
    fields: dict[str, Any] = {
        "model": request.model or None,
        "system": form.get("system"),
        **payload,
        "tools": tools["tools"] if request.tools else [] if "tools" in form else None,
        "tool_choice": dump_tool_choice(request.settings, form, out, tools=has_tools),
        "stream": True if request.stream else False if "stream" in form else None,
        **settings,
    }
    nulls: dict[str, Any] = dict.fromkeys(form.get("null", ()))
    body = {**nulls, **options, **{key: value for key, value in fields.items() if value is not None}}
    return body, out.names, _words(body, tool_words if request.tools else _types(body.get("tools")), words)


def _header(headers: Mapping[str, str]) -> list[str]:
    """The values of `anthropic-beta`."""
    text = next((value for name, value in headers.items() if name.lower() == "anthropic-beta"), "")
    return [value for part in text.split(",") if (value := part.strip())]


def _words(body: Mapping[str, Any], of_tools: Iterable[str], of_entries: Iterable[str]) -> Iterator[str]:
    """What may need a beta: names of fields, and types of tools, blocks, sources and edits."""
    yield from body
    yield from if_object(body.get("output_config"))
    yield from of_tools
    yield from _types(if_object(body.get("context_management")).get("edits"))
    yield from of_entries


def _entry_words(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        yield from _types(entry.get("content"))


def _types(blocks: Any) -> Iterator[str]:
    """The types in a list of blocks, with those of their sources and of the blocks inside them."""
    if isinstance(blocks, dict):
        blocks = [blocks]
    for block in cast("list[Any]", blocks) if isinstance(blocks, list) else ():
        if isinstance(block, dict):
            block = cast("dict[str, Any]", block)
            yield str(block.get("type"))
            yield from _types(block.get("source"))
            yield from _types(block.get("content"))
