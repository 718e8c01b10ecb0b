"""A request's body and path ↔ `ModelRequest`. Model and stream stand in the path, `/models/MODEL:generateContent`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.ids import renamed
from dragoman.codec.json_values import bounded, if_object
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import HttpRequest, ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires.google.config import dump_config, load_config
from dragoman.wires.google.keys import camelled, merged, snaked, snakes
from dragoman.wires.google.messages import load_conversation, sent_names, write_conversation
from dragoman.wires.google.quirks import OWN, Quirks
from dragoman.wires.google.tools import dump_choice, dump_tools, load_choice, load_tools

__all__ = ["dump_http", "dump_request", "load_request", "model_of_path"]

_PATH = re.compile(r"(?:^|/)((?:publishers|projects|tunedModels|endpoints|models)/[^?]+):(\w+)")
_OBJECTS = ("generationConfig", "toolConfig", "systemInstruction", "tools")
_INCLUDE = "includeServerSideToolInvocations"
_CHOICE = "functionCallingConfig"
_JOINED = ("generationConfig", "toolConfig")
"""Options that are joined, where they are objects, with what the settings say there."""


def load_request(
    body: Mapping[str, Any],
    *,
    path: str = "",
    headers: Mapping[str, str] = {},  # noqa: ARG001 - the protocol's: none of them says what the request is
    origin: Origin | None = None,
) -> ModelRequest:
    """A body → the neutral request. A body for counting tokens, which may hold a whole request, is read too.

    Raises:
        HistoryError: the body is no request of this format.
    """
    snake: set[str] = set()
    given = camelled(if_object(bounded(body)), snake)
    told: dict[str, Any] = {}
    if len(given) == 1 and (inner := if_object(given.get("generateContentRequest"))):
        told["within"] = True
        given = camelled(inner, snake)
    if not isinstance(given.get("contents"), list | dict):
        raise HistoryError('the body must be an object with a list "contents"')
    rest = dict(given)
    if nulls := [key for key in _OBJECTS if key in rest and rest[key] is None]:
        told["null"] = nulls
        rest = {key: value for key, value in rest.items() if key not in nulls}
    if isinstance(rest["contents"], dict):
        told["contents"] = "object"
    messages = load_conversation(
        {key: rest.pop(key) for key in ("systemInstruction", "contents") if key in rest}, origin
    )
    tools, told_tools = _take_tools(rest)
    settings, told_choice = _take_choice(rest)
    schema = None
    if isinstance(config := rest.get("generationConfig"), dict):
        del rest["generationConfig"]
        more, schema, left, told_config = load_config(cast("dict[str, Any]", config))
        settings |= more
        told["config"] = told_config or (None if config else "empty")
        if left:
            rest["generationConfig"] = left
    told |= {**told_tools, **told_choice}
    model, stream = model_of_path(path)
    if isinstance(named := rest.get("model"), str) and named.endswith(model or named):
        model = model or named.removeprefix("models/")
        told["model"] = rest.pop("model").removesuffix(model)
    if tools and schema is not None:
        told["tools_with_schema"] = True
    if _mixed(tools) and _INCLUDE not in if_object(rest.get("toolConfig")):
        told["include"] = "absent"
    if snake:
        told["snake"] = sorted(snake)
    told = {key: value for key, value in told.items() if value is not None}
    return ModelRequest(model, tuple(messages), tools, Settings(**settings), schema, stream, rest, OWN.note(form=told))


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
    told = OWN.form(request.native)
    if request.settings.parallel_tool_calls is not None:
        losses.append(Loss(None, None, "parallel_tool_calls", "the API has no such setting"))
    tools = _sent_tools(request, quirks, told, losses)
    names = sent_names(request.messages, quirks, target, [tool for tool in request.tools if isinstance(tool, ToolSpec)])
    body: dict[str, Any] = {
        **dict.fromkeys(told.get("null", ())),
        **{key: value for key, value in request.options.items() if key not in _JOINED or not isinstance(value, dict)},
        **write_conversation(request.messages, names, request.model, target, quirks, losses),
    }
    if told.get("contents") == "object" and len(body["contents"]) == 1:
        body["contents"] = body["contents"][0]
    if entries := dump_tools(tools, names, quirks):
        body["tools"] = entries[0] if told.get("tools") == "object" and len(entries) == 1 else entries
    elif "tools" in told:
        body["tools"] = [] if told["tools"] == "empty" else {}
    if config := _tool_config(request, tools, names, quirks, told):
        body["toolConfig"] = config
    elif told.get("toolConfig") == "empty":
        body["toolConfig"] = {}
    how = told.get("config", {})
    config = dump_config(request, if_object(how), quirks, losses)
    if config or how == "empty":
        body["generationConfig"] = config
    if "model" in told:
        body["model"] = told["model"] + request.model
    if "within" in told:
        body = {"generateContentRequest": body}
    snake = snakes(told)
    body = {key: snaked(value, snake) if "within" in told else value for key, value in body.items()}
    return snaked(body, snake), names


def dump_http(
    request: ModelRequest,
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> HttpRequest:
    """The neutral request → path, headers and body (a model's name that has a `/` stays as it is).

    Raises:
        HistoryError: there is nothing to send.
    """
    quirks = quirks or Quirks()
    body, names = _written(request, target, quirks, losses)
    if not body.get("contents") and "generateContentRequest" not in body:
        raise HistoryError("there is nothing to send: the API needs a message that is not a system message")
    model = request.model if "/" in request.model else f"{quirks.models}/{request.model}"
    method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
    return HttpRequest(f"/{model}:{method}", {}, body, names=renamed(names))


def model_of_path(path: str) -> tuple[str, bool]:
    """A path → the model, and whether the answer is streamed."""
    found = _PATH.search(path)
    if found is None:
        return "", False
    model = re.sub(
        r"^(projects/[^/]+/locations/[^/]+/)?(publishers/google/)?models/|^projects/[^/]+/locations/[^/]+/",
        "",
        found[1],
    )
    return model, found[2].startswith("stream")


def _take_tools(rest: dict[str, Any]) -> tuple[tuple[ToolSpec | ServerTool, ...], dict[str, Any]]:
    """Takes the tools out of a body. The API takes a single object in place of the list."""
    entries = rest.pop("tools", None)
    if entries is None:
        return (), {}
    told = {"tools": "object" if isinstance(entries, dict) and entries else "empty" if entries == [] else "{}"}
    if isinstance(entries, list) and entries:
        return tuple(load_tools(cast("list[Any]", entries))), {}
    return tuple(load_tools([entries] if entries else [])), told


def _take_choice(rest: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Takes out of a body what `Settings.tool_choice` says; the rest of `toolConfig` stays an option."""
    if not isinstance(rest.get("toolConfig"), dict):
        return {}, {}
    snake: set[str] = set()
    config = camelled(rest.pop("toolConfig"), snake)
    chosen = load_choice(config.get(_CHOICE))
    told: dict[str, Any] = {} if config else {"toolConfig": "empty"}
    if snake:
        told["toolConfig_snake"] = sorted(snake)
    if chosen is not None:
        del config[_CHOICE]
    if config:
        rest["toolConfig"] = config
    if chosen is None:
        return {}, told
    return {"tool_choice": chosen[0]}, {**told, **({"choice": chosen[1]} if chosen[1] else {})}


def _tool_config(
    request: ModelRequest,
    tools: tuple[ToolSpec | ServerTool, ...],
    names: Mapping[str, str],
    quirks: Quirks,
    told: Mapping[str, Any],
) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if (choice := request.settings.tool_choice) is not None:
        config[_CHOICE] = dump_choice(choice, names, if_object(told.get("choice")))
    if _mixed(tools) and "include" not in told and not quirks.is_older(request.model):
        config[_INCLUDE] = True
    return snaked(merged(config, if_object(request.options.get("toolConfig"))), snakes(told, "toolConfig_snake"))


def _sent_tools(
    request: ModelRequest, quirks: Quirks, told: Mapping[str, Any], losses: list[Loss]
) -> tuple[ToolSpec | ServerTool, ...]:
    """The tools, without functions where the model does not take them beside an output schema."""
    if request.output_schema is None or "tools_with_schema" in told:
        return request.tools
    if not quirks.is_older(request.model):
        return request.tools
    kept = tuple(tool for tool in request.tools if isinstance(tool, ServerTool))
    if len(kept) < len(request.tools):
        losses.append(Loss(None, None, "tools", "the model takes no functions together with an output schema"))
    return kept


def _mixed(tools: tuple[ToolSpec | ServerTool, ...]) -> bool:
    return len({type(tool) for tool in tools}) > 1
