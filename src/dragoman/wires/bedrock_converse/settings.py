"""Settings and the output schema ↔ `inferenceConfig`, `outputConfig` and, for what only Claude takes,
`additionalModelRequestFields`, which has Anthropic's own fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict, replace

from dragoman import json_bytes
from dragoman.codec.efforts import find_allowed, to_effort
from dragoman.codec.json_values import if_object, if_text, pick, read_extra_fields
from dragoman.codec.settings import Fields, take_fields, take_stops
from dragoman.json_bytes import Json
from dragoman.loss import Loss, Lost
from dragoman.request import Effort, ModelRequest
from dragoman.wires.anthropic import Quirks as ClaudeQuirks
from dragoman.wires.anthropic.settings import dump_settings as dump_claude_settings
from dragoman.wires.anthropic.settings import fit_output_schema, fit_together
from dragoman.wires.bedrock_converse.quirks import OWN, Quirks
from dragoman.wires.bedrock_converse.tools import MARK

__all__ = [
    "CONFIGS",
    "dump_schema",
    "dump_settings",
    "find_cache",
    "find_cache_mark",
    "is_claude",
    "load_schema",
    "load_settings",
]

_INFERENCE, _OUTPUT, _MODEL = "inferenceConfig", "outputConfig", "additionalModelRequestFields"
CONFIGS = (_INFERENCE, _OUTPUT, _MODEL)
"""Fields that hold settings, and others beside them."""
_SIMPLE: Fields = {
    "maxTokens": ("max_tokens", (int,)),
    "temperature": ("temperature", (int, float)),
    "topP": ("top_p", (int, float)),
}
_TOLD = {"stop", "reasoning", "tool_choice", "cache", "top_k", *(n for n, _ in _SIMPLE.values())}
"""Settings of which no loss is told by their name alone."""
_UNFORCED = (None, "auto", "none")
_STOPS, _TOP_K, _THINKING = "stopSequences", "top_k", "thinking"
_REASONING, _BUDGET, _EFFORT, _ADAPTIVE = "reasoning", "budget", "effort", "adaptive"
"""The setting, and how it was asked for: by `thinking`, by an effort, or by both."""
_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
_FORMAT, _SCHEMA = "textFormat", "jsonSchema"
_CACHES: Mapping[str, Json] = {
    "short": {"type": "default"},
    "long": {"type": "default", "ttl": "1h"},
}


def load_settings(body: Json, form: Json) -> Json:
    """Takes settings out of a Converse body. Returns them by their neutral names; the wire form
    goes to `form`."""
    configs = {name: dict(body.pop(name)) for name in CONFIGS if isinstance(body.get(name), dict)}
    if empty := [name for name, config in configs.items() if not config]:
        form["empty"] = empty
    inference, model = configs.get(_INFERENCE, {}), configs.get(_MODEL, {})
    settings = take_fields(inference, _SIMPLE) | take_stops(inference, _STOPS)
    settings |= take_fields(model, {_TOP_K: (_TOP_K, (int,))})
    if _TOP_K in settings:
        form[_TOP_K] = True
    settings |= _load_reasoning(model, configs.get(_OUTPUT, {}), form)
    body |= {name: config for name, config in configs.items() if config}
    return settings


def dump_settings(
    request: ModelRequest, quirks: Quirks, losses: list[Loss], *, fits: bool = False
) -> Json:
    """Returns settings as fields of a Converse body. What the API or the model lacks is added to
    the losses. `fits`: what the model refuses beside other settings is left out."""
    settings, form = request.settings, OWN.form(request.native)
    way = _find_way(request)
    output: Json = {}
    if way == _EFFORT:
        fields = _dump_plain_settings(request, losses)
        if settings.reasoning is not None:
            output = _dump_effort(settings.reasoning, losses)
    elif way == _ADAPTIVE and settings.reasoning in _EFFORTS:
        plain = request.replace(settings=replace(settings, reasoning=None))
        fields = _dump_claude_settings(plain, quirks, losses, fits=fits)
        fields[_THINKING], output = {"type": _ADAPTIVE}, {_EFFORT: settings.reasoning}
    else:
        fields = _dump_claude_settings(request, quirks, losses, fits=fits)
        output = pick(if_object(fields.get("output_config")), (_EFFORT,))
    inference = {field: fields[name] for field, (name, _) in _SIMPLE.items() if name in fields}
    if settings.stop is not None:
        inference[_STOPS] = list(settings.stop)
    configs = {_INFERENCE: inference, _OUTPUT: output, _MODEL: pick(fields, (_THINKING, _TOP_K))}
    empty = form.get("empty", ())
    return {name: config for name, config in configs.items() if config or name in empty}


def load_schema(body: Json, form: Json) -> Json | None:
    """Takes the output schema, a text with JSON, out of a Converse body. Returns it, or None if
    there is none; the wire form goes to `form`."""
    output = if_object(body.get(_OUTPUT))
    text_format = if_object(output.get(_FORMAT))
    fields = if_object(if_object(text_format.get("structure")).get(_SCHEMA))
    try:
        schema = json_bytes.decode(if_text(fields.get("schema")).encode())
    except ValueError:
        return None
    if text_format.get("type") != "json_schema" or not isinstance(schema, dict):
        return None
    form["schema"] = text_format
    body[_OUTPUT] = read_extra_fields(output, _FORMAT)
    if not body[_OUTPUT]:
        del body[_OUTPUT]
    return if_object(schema)


def dump_schema(request: ModelRequest, losses: list[Loss]) -> Json:
    """Returns the output schema as a field of Converse's `outputConfig`: a loaded one as it was,
    any other in Anthropic's dialect, the narrowest of those that Bedrock's models take."""
    schema, text_format = request.output_schema, OWN.form(request.native).get("schema")
    if schema is None:
        return {}
    if text_format is None:
        fitted = fit_output_schema(schema, losses)
        if fitted is None:
            return {}
        text = json_bytes.encode(fitted).decode()
        structure = {_SCHEMA: {"schema": text, "name": "answer"}}
        text_format = {"type": "json_schema", "structure": structure}
    return {_OUTPUT: {_FORMAT: text_format}}


def find_cache_mark(request: ModelRequest) -> Json | None:
    """Returns the block that ends what the Converse API is to keep in its cache, or None if nothing
    asks for that, or the model takes no such block."""
    setting, form = request.settings.cache, OWN.form(request.native)
    is_taken = is_claude(request.model) or "nova" in request.model or "cache" in form
    if setting is None or not is_taken:
        return None
    return {MARK: _CACHES[setting]}


def find_cache(block: Any) -> str | None:
    """Returns the setting that a Converse block asks for as a mark for the cache, or None."""
    return next((name for name, mark in _CACHES.items() if block == {MARK: mark}), None)


def is_claude(model: str) -> bool:
    """True if a Bedrock model's name, or the ARN of its profile, says that it is Claude."""
    return "claude" in model.lower()


def _find_way(request: ModelRequest) -> str:
    """Returns how a Bedrock model is asked to think: as a client asked, else as the model takes
    it."""
    noted = if_text(OWN.form(request.native).get(_REASONING))
    if is_claude(request.model) and (not noted or isinstance(request.settings.reasoning, int)):
        return _BUDGET
    return noted or _EFFORT


def _load_reasoning(model: Json, output: Json, form: Json) -> Json:
    """Takes Anthropic's `thinking` and the effort out of Converse objects. Returns the setting
    `reasoning`."""
    effort, thinking = output.get(_EFFORT), model.get(_THINKING)
    match thinking:
        case {"type": "enabled", "budget_tokens": int(budget), **others} if not others:
            form[_REASONING], reasoning = _BUDGET, budget
        case {"type": "disabled", **others} if not others:
            form[_REASONING], reasoning = _BUDGET, "off"
        case {"type": "adaptive", **others} if effort in _EFFORTS and not others:
            form[_REASONING], reasoning = _ADAPTIVE, output.pop(_EFFORT)
        case None if effort in _EFFORTS:
            form[_REASONING], reasoning = _EFFORT, output.pop(_EFFORT)
        case _:
            return {}
    model.pop(_THINKING, None)
    return {"reasoning": reasoning}


def _dump_plain_settings(request: ModelRequest, losses: list[Loss]) -> Json:
    """Returns the settings that all of Bedrock's models take, by their neutral names."""
    settings = {
        name: value for name, value in asdict(request.settings).items() if value is not None
    }
    for name in settings:
        if name not in _TOLD:
            _lose(losses, name, "the API has no such setting")
    if _TOP_K in settings and _TOP_K not in OWN.form(request.native):
        _lose(losses, _TOP_K, "the API has it for Claude alone")
        del settings[_TOP_K]
    return pick(settings, (*[name for name, _ in _SIMPLE.values()], _TOP_K))


def _dump_claude_settings(
    request: ModelRequest, quirks: Quirks, losses: list[Loss], *, fits: bool
) -> Json:
    """Returns settings as Anthropic's API has them, which Claude takes on Bedrock too."""
    settings = replace(request.settings, cache=None)
    plain = ModelRequest(request.model, settings=settings)
    claude = ClaudeQuirks(profile=quirks.profile)
    fields = dump_claude_settings(plain, claude, losses)
    if settings.parallel_tool_calls is not None:
        _lose(losses, "parallel_tool_calls", "the API has no such setting")
    if fits:
        forced = {"type": "any"} if settings.tool_choice not in _UNFORCED else None
        fields = dict(fit_together({**fields, "tool_choice": forced}, claude, losses))
    # Bedrock demands no limit.
    if settings.max_tokens is None and if_object(fields.get(_THINKING)).get("type") != "enabled":
        fields.pop("max_tokens", None)
    return fields


def _dump_effort(reasoning: Effort | int, losses: list[Loss]) -> Json:
    """Returns the setting `reasoning` as the effort in Converse's `outputConfig`."""
    if reasoning == "off":
        _lose(losses, _REASONING, "the API has no effort off")
        return {}
    effort = to_effort(reasoning)
    allowed = find_allowed(effort, _EFFORTS) or effort
    if allowed != reasoning:
        _lose(losses, _REASONING, f"the API has efforts from low to max; {allowed} is sent")
    return {_EFFORT: allowed}


def _lose(losses: list[Loss], name: str, why: str) -> None:
    losses.append(Loss(None, None, Lost.setting, why, name))
