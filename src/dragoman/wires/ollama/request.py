"""The body of `/api/chat`, or of the older `/api/generate` ⇄ `ModelRequest`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.json_values import bounded, if_list, if_object, if_text, merged, rest
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires.ollama.generate import GENERATE, PROMPT, dump_prompt, is_prompt, load_prompt
from dragoman.wires.ollama.messages import dump_messages, read_messages
from dragoman.wires.ollama.quirks import OWN, Quirks
from dragoman.wires.ollama.settings import UNKNOWN, dump_options, dump_think, load_options, load_think, neutral
from dragoman.wires.ollama.tools import dump_tool, is_tool, load_tool

__all__ = ["dump_http", "dump_request", "load_request"]

_ANY_OBJECT: dict[str, Any] = {"type": "object"}


def load_request(
    body: Mapping[str, Any], *, path: str = "", headers: Mapping[str, str] = {}, origin: Origin | None = None
) -> ModelRequest:
    """A body of `/api/chat` → the neutral request. `headers` tell nothing on this wire. A body of `/api/generate`, known by its
    `path` or by having a prompt in the place of messages, is read into the same, and written again as what it was.

    Raises:
        HistoryError: it holds neither messages nor a prompt.
    """
    del headers
    prompt = isinstance(bounded(body), dict) and is_prompt(body, path)
    if not prompt and not isinstance(if_object(body).get("messages"), list):
        raise HistoryError("an Ollama chat request needs the field messages, a list")
    left = dict(body)
    spelled: dict[str, Any] = {}
    own: dict[str, Any] = {}
    messages = load_prompt(left) if prompt else read_messages(left.pop("messages"), origin)
    if prompt:
        spelled["endpoint"] = "generate"
        own |= {field: left.pop(field) for field in PROMPT if field in left}
    model = left.pop("model") if if_text(left.get("model")) else ""
    settings = _load_settings(left, model, spelled, own)
    tools: tuple[ToolSpec | ServerTool, ...] = ()
    if if_list(left.get("tools")) and all(map(is_tool, left["tools"])):
        tools = tuple(load_tool(tool) for tool in left.pop("tools"))
    schema = _load_format(left, spelled)
    stream = left.get("stream", True)
    if isinstance(stream, bool) and left.pop("stream", None) is None:
        spelled["stream"] = "absent"
    own |= {field: left.pop(field) for field in ("model", "tools", "format", "stream", "think") if field in left}
    return ModelRequest(
        model, tuple(messages), tools, settings, schema, stream is not False, left, OWN.note(own, form=spelled)
    )


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
    quirks = quirks or Quirks()
    losses = [] if losses is None else losses
    spelled, own = OWN.form(request.native), OWN.fields(request.native)
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    prompt = dump_prompt(request.messages) if spelled.get("endpoint") == "generate" else None
    if prompt is None:
        body["messages"] = dump_messages(request.messages, target=target, quirks=quirks, losses=losses)
    else:
        body |= prompt
    tools = [dumped for tool in request.tools if (dumped := dump_tool(tool, losses)) is not None]
    if tools:
        body["tools"] = tools
    if request.stream is False or (spelled.get("stream") != "absent" and "stream" not in own):
        body["stream"] = request.stream
    if request.output_schema is not None:
        plain = request.output_schema == _ANY_OBJECT and spelled.get("format") != "schema"
        body["format"] = "json" if plain else request.output_schema
    body |= _dump_settings(request, quirks, spelled, losses)
    body = merged(body, own)
    for field, value in request.options.items():
        nested = field == "options" and isinstance(value, Mapping)
        body[field] = {**if_object(body.get(field)), **cast("Mapping[str, Any]", value)} if nested else value
    return body


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> HttpRequest:
    """The neutral request → path, headers and body."""
    body = dump_request(request, target=target, quirks=quirks, losses=losses)
    return HttpRequest("/api/chat" if "messages" in body else GENERATE, body=body)


def _load_settings(left: dict[str, Any], model: str, spelled: dict[str, Any], own: dict[str, Any]) -> Settings:
    """Takes the settings out of `left`; an option that has a setting's name and no value of its goes to `own`."""
    known: dict[str, Any] = {}
    if isinstance(left.get("options"), dict):
        options = dict(if_object(left.pop("options")))
        if not options:
            spelled["options"] = "empty"
        known = load_options(options, spelled)
        if odd := neutral(options):
            own["options"] = odd
        if options := rest(options, *odd):
            left["options"] = options
    if (reasoning := load_think(left.get("think"))) is not None:
        known["reasoning"], think = reasoning, left.pop("think")
        if dump_think(reasoning, model, Quirks()) != think:
            spelled["think"] = think
    return Settings(**known)


def _dump_settings(
    request: ModelRequest, quirks: Quirks, spelled: Mapping[str, Any], losses: list[Loss]
) -> dict[str, Any]:
    settings = request.settings
    fields: dict[str, Any] = {}
    if (reasoning := settings.reasoning) is not None:
        as_it_was = "think" in spelled and load_think(spelled["think"]) == reasoning
        fields["think"] = spelled["think"] if as_it_was else dump_think(reasoning, request.model, quirks)
    if (options := dump_options(settings, spelled)) or spelled.get("options") == "empty":
        fields["options"] = options
    unsaid = [name for name in UNKNOWN if getattr(settings, name) not in (None, "auto")]
    losses += [Loss(None, None, name, "the API has no such setting") for name in unsaid]
    return fields


def _load_format(left: dict[str, Any], spelled: dict[str, Any]) -> Mapping[str, Any] | None:
    """Takes the output schema out of `left`; `json` is the schema of any object."""
    stated = left.get("format")
    if stated == "json":
        del left["format"]
        return dict(_ANY_OBJECT)
    if not isinstance(stated, dict):
        return None
    if stated == _ANY_OBJECT:
        spelled["format"] = "schema"
    return if_object(left.pop("format"))
