"""A request's body, path and headers ↔ `ModelRequest`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from dragoman.codec.ids import renamed
from dragoman.codec.json_values import bounded, if_list, if_object
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest, Settings, ToolSpec
from dragoman.wires.anthropic.messages import read_messages, sent_names, write_conversation
from dragoman.wires.anthropic.output import dump_format, load_format
from dragoman.wires.anthropic.quirks import OWN, Quirks
from dragoman.wires.anthropic.reasoning import dump_effort, load_effort
from dragoman.wires.anthropic.tools import dump_choice, dump_tool, load_choice, load_tool

__all__ = ["dump_http", "dump_request", "load_request"]

_VERSION = "2023-06-01"
_SIMPLE = {
    "max_tokens": ("max_tokens", int),
    "temperature": ("temperature", (int, float)),
    "top_p": ("top_p", (int, float)),
    "top_k": ("top_k", int),
}
"""Field of the body → the setting of the same meaning, and the types of number it must have for that."""
_CACHES: Mapping[str, dict[str, Any]] = {"short": {"type": "ephemeral"}, "long": {"type": "ephemeral", "ttl": "1h"}}
_NEUTRAL = (
    *_SIMPLE, "stop_sequences", "model", "system", "stream", "tools", "tool_choice", "thinking", "output_config", "output_format",
)  # fmt: skip
_UNKNOWN = ("presence_penalty", "frequency_penalty", "seed")


def load_request(
    body: Mapping[str, Any],
    *,
    path: str = "",  # noqa: ARG001 - the protocol's: here the body says it all
    headers: Mapping[str, str] = {},
    origin: Origin | None = None,
) -> ModelRequest:
    """A body → the neutral request. A body for counting tokens, which has no `max_tokens`, is read too.

    Raises:
        HistoryError: the body is no request of this format.
    """
    if not isinstance(if_object(bounded(body)).get("messages"), list):
        raise HistoryError('the body must have a list "messages"')
    nulls = [key for key in _NEUTRAL if key in body and body[key] is None]
    rest = {key: value for key, value in body.items() if key not in nulls}
    spelled: dict[str, Any] = {"null": nulls} if nulls else {}
    messages = read_messages({key: rest.pop(key) for key in ("system", "messages") if key in rest}, origin)
    if body.get("system") in ("", []):
        spelled["system"] = body["system"]
    settings: dict[str, Any] = {}
    for key, (name, kind) in _SIMPLE.items():
        if isinstance(rest.get(key), kind) and not isinstance(rest[key], bool):
            settings[name] = rest.pop(key)
    stop = rest.get("stop_sequences")
    if isinstance(stop, list) and all(isinstance(text, str) for text in if_list(stop)):
        settings["stop"] = tuple(if_list(rest.pop("stop_sequences")))
    if body.get("max_tokens") is None:
        spelled["max_tokens"] = "absent"
    stream = rest.pop("stream") if isinstance(rest.get("stream"), bool) else None
    if stream is False:
        spelled["stream"] = "explicit"
    tools = cast("list[Any]", rest.pop("tools")) if isinstance(rest.get("tools"), list) else None
    if tools == []:
        spelled["tools"] = "explicit"
    if tools and body.get("tool_choice") is None:
        spelled["tool_choice"] = "absent"
    if (choice := load_choice(rest.get("tool_choice"))) is not None:
        del rest["tool_choice"]
        settings |= choice[0]
        spelled |= choice[1]
    for cache, control in _CACHES.items():
        if rest.get("cache_control") == control:
            settings["cache"] = cache
            del rest["cache_control"]
    settings["reasoning"], effort_spelled = load_effort(rest)
    schema, schema_spelled = load_format(rest)
    betas = {"betas": values} if (values := _header(headers)) else {}
    return ModelRequest(
        rest.pop("model") if isinstance(rest.get("model"), str) else "",
        tuple(messages),
        tuple(load_tool(tool) for tool in tools or ()),
        Settings(**settings),
        schema,
        stream is True,
        rest,
        OWN.note(form={**spelled, **effort_spelled, **schema_spelled, **betas}),
    )


def dump_request(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> dict[str, Any]:
    """The neutral request → a body."""
    body, _ = _written(request, target, quirks, losses)
    return body


def _written(
    request: ModelRequest, target: Origin | None, quirks: Quirks | None, losses: list[Loss] | None
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The body, and the name under which each tool is sent."""
    quirks = quirks or Quirks()
    losses = [] if losses is None else losses
    spelled = OWN.form(request.native)
    settings = request.settings
    names = sent_names(request.messages, quirks, target, [tool for tool in request.tools if isinstance(tool, ToolSpec)])
    losses += [
        Loss(None, None, name, "the API has no such setting")
        for name in _UNKNOWN
        if getattr(settings, name) is not None
    ]
    thinking, effort = dump_effort(request, quirks, spelled)
    formats = dump_format(request, effort, spelled, losses)
    told: dict[str, Any] = {
        "model": request.model or None,
        "system": spelled.get("system"),
        **write_conversation(request.messages, names, request.model, target, quirks, losses),
        "tools": [dump_tool(t, names, quirks) for t in request.tools] or ([] if "tools" in spelled else None),
        "tool_choice": dump_choice(
            settings, names, spelled, tools=bool(request.tools) and "tool_choice" not in request.options
        ),
        "thinking": thinking,
        **{key: getattr(settings, name) for key, (name, _) in _SIMPLE.items()},
        "stop_sequences": None if settings.stop is None else list(settings.stop),
        "cache_control": None if settings.cache is None else _CACHES[settings.cache],
        "stream": True if request.stream else False if "stream" in spelled else None,
        **formats,
    }
    usual: dict[str, Any] = dict.fromkeys(spelled.get("null", ()))
    if spelled.get("max_tokens") != "absent":
        usual["max_tokens"] = _max_tokens(thinking, quirks)
    return {**usual, **request.options, **{key: value for key, value in told.items() if value is not None}}, names


def _max_tokens(thinking: Mapping[str, Any] | None, quirks: Quirks) -> int:
    """How many tokens to allow where nobody said."""
    if thinking is None or thinking["type"] == "disabled":
        return quirks.max_tokens
    return max(quirks.max_tokens_thinking, quirks.max_tokens + thinking.get("budget_tokens", 0))


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> HttpRequest:
    """The neutral request → path, headers and body, with the beta headers that its content needs."""
    quirks = quirks or Quirks()
    body, names = _written(request, target, quirks, losses)
    needed = [quirks.betas[word] for word in _words(body) if word in quirks.betas]
    betas = list(dict.fromkeys([*OWN.form(request.native).get("betas", ()), *needed]))
    headers = {"anthropic-version": _VERSION, **({"anthropic-beta": ",".join(betas)} if betas else {})}
    return HttpRequest("/messages", headers, body, names=renamed(names))


def _header(headers: Mapping[str, str]) -> list[str]:
    """The values of `anthropic-beta`."""
    text = next((value for name, value in headers.items() if name.lower() == "anthropic-beta"), "")
    return [value for part in text.split(",") if (value := part.strip())]


def _words(body: Mapping[str, Any]) -> Iterator[str]:
    """What may need a beta: names of fields, and types of tools, blocks, sources and edits."""
    yield from body
    yield from if_object(body.get("output_config"))
    yield from _types(body.get("tools"))
    yield from _types(if_object(body.get("context_management")).get("edits"))
    for entry in body["messages"]:
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
