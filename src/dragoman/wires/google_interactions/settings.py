"""Settings, reasoning, the choice of a tool and the output schema ⇄ `generation_config` and
`response_format`. A field whose value has no neutral meaning stays this wire's own."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import asdict

from dragoman.codec.efforts import effort_for
from dragoman.codec.json_values import if_list, if_object, read_extra_fields
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.settings import Fields, dump_fields, take_fields, take_stops
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.request import Effort, Settings
from dragoman.wires.google import Quirks as GeminiQuirks
from dragoman.wires.google.settings import dump_schema as dump_gemini_schema
from dragoman.wires.google_interactions.quirks import Quirks
from dragoman.wires.google_interactions.tools import dump_tool_choice, load_tool_choice

__all__ = ["CONFIG", "dump_schema", "dump_settings", "load_schema", "load_settings"]

CONFIG = "generation_config"
_FORMAT, _JSON = "response_format", "application/json"
_SIMPLE: Fields = {
    "temperature": ("temperature", (int, float)),
    "top_p": ("top_p", (int, float)),
    "max_output_tokens": ("max_tokens", (int,)),
    "seed": ("seed", (int,)),
}
"""Field of the config → the setting of the same meaning, and the types it must have for that."""
_TOLD = {"stop", "reasoning", "tool_choice", "cache", *(name for name, _ in _SIMPLE.values())}
"""Settings of which no loss is told by their name alone. Google caches unasked."""
_LEVELS = ("minimal", "low", "medium", "high", "xhigh")
_LEVEL, _SUMMARIES, _STOPS = "thinking_level", "thinking_summaries", "stop_sequences"


def load_settings(body: Json, form: Json) -> Json:
    """Takes settings out of the `generation_config` of an Interactions body. Returns them by their
    neutral names; the wire form goes to `form`."""
    if not isinstance(body.get(CONFIG), dict):
        return {}
    config = dict(if_object(body.pop(CONFIG)))
    settings = take_fields(config, _SIMPLE) | take_stops(config, _STOPS) | load_tool_choice(config)
    if config.get(_LEVEL) in _LEVELS:
        settings["reasoning"] = config.pop(_LEVEL)
        # Summaries are asked for whenever thinking is, so only another wish is noted.
        if config.get(_SUMMARIES) == "auto":
            del config[_SUMMARIES]
        elif _SUMMARIES not in config:
            form["summaries"] = "absent"
    if config:
        body[CONFIG] = config
    elif not settings:
        form["config"] = "empty"
    return settings


def dump_settings(settings: Settings, form: JsonMap, own: JsonMap, out: Outgoing[Quirks]) -> Json:
    """Returns settings as the field `generation_config` of an Interactions body. `own`: its further
    fields."""
    config = dump_fields(settings, _SIMPLE)
    if settings.stop is not None:
        config[_STOPS] = list(settings.stop)
    if settings.tool_choice is not None:
        config["tool_choice"] = dump_tool_choice(settings.tool_choice, out)
    if settings.reasoning is not None:
        config[_LEVEL] = _dump_level(settings.reasoning, out)
        if form.get("summaries") != "absent" and _SUMMARIES not in own:
            config[_SUMMARIES] = "auto"
    for name, setting in asdict(settings).items():
        if setting is not None and name not in _TOLD:
            out.lose(None, None, Lost.setting, "the API has no such setting", name)
    config = {**own, **config}
    return {CONFIG: config} if config or form.get("config") == "empty" else {}


def load_schema(body: Json, form: Json) -> Json | None:
    """Takes the output schema out of an Interactions body. Returns it, or None if there is none;
    the wire form goes to `form`."""
    response_format = body.get(_FORMAT)
    listed = if_list(response_format)
    text_format = if_object(listed[0] if len(listed) == 1 else response_format)
    schema = text_format.get("schema")
    if text_format.get("type") != "text" or not isinstance(schema, dict):
        return None
    form["format"] = read_extra_fields(text_format, "schema")
    if listed:
        form["listed"] = True
    del body[_FORMAT]
    return cast("Json", schema)


def dump_schema(schema: JsonMap | None, form: JsonMap) -> Json:
    """Returns the output schema as the field `response_format` of an Interactions body: a loaded
    one as it was, any other in the dialect that Google's models take."""
    if schema is None:
        return {}
    # A loaded schema goes back as it was, also what the models do not take of it.
    text_format: Json
    if "format" in form:
        text_format = {**form["format"], "schema": schema}
    else:
        fitted = dump_gemini_schema(schema, {}, GeminiQuirks())["responseJsonSchema"]
        text_format = {"type": "text", "mime_type": _JSON, "schema": fitted}
    return {_FORMAT: [text_format] if form.get("listed") else text_format}


def _dump_level(reasoning: Effort | int, out: Outgoing[Quirks]) -> Any:
    """Returns the setting `reasoning` as the Interactions API's `thinking_level`."""
    effort, why = reasoning, ""
    if isinstance(effort, int):
        effort = effort_for(effort)
        why = f"the API counts no tokens of thinking; {effort} is sent"
    if effort == "off":
        effort, why = "minimal", "the API has no level off; minimal is sent"
    elif effort == "max":
        effort, why = "high", "the API has no level max; high is sent"
    if why:
        out.lose(None, None, Lost.setting, why, "reasoning")
    return effort
