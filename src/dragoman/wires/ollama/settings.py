"""Settings ⇄ the object `options` of the body, and `think`; the output schema ⇄ `format`."""

from __future__ import annotations

from typing import Any, cast

from dragoman.codec.efforts import find_allowed, to_effort
from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.settings import Fields, dump_fields, take_fields, take_stops
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.request import Effort, ModelRequest, Settings
from dragoman.wires.ollama.quirks import Quirks

__all__ = ["dump_schema", "dump_settings", "load_schema", "load_settings"]

_Reasoning = Effort | int
_SIMPLE: Fields = {
    "temperature": ("temperature", (int, float)),
    "num_predict": ("max_tokens", (int,)),
    "top_p": ("top_p", (int, float)),
    "top_k": ("top_k", (int,)),
    "presence_penalty": ("presence_penalty", (int, float)),
    "frequency_penalty": ("frequency_penalty", (int, float)),
    "seed": ("seed", (int,)),
}
"""Option → the setting that it is, and its types."""
_UNKNOWN = ("tool_choice", "parallel_tool_calls")
"""Settings that the API does not know."""
_LEVELS: tuple[Effort, ...] = ("low", "medium", "high")
_ANY_OBJECT: Json = {"type": "object"}


def load_settings(body: Json, model: str, form: Json, own_fields: Json) -> Settings:
    """Takes the settings out of an Ollama body; an option that has a setting's name and no value of
    its goes to `own_fields`."""
    settings: Json = {}
    if isinstance(body.get("options"), dict):
        options = dict(if_object(body.pop("options")))
        if not options:
            form["options"] = "empty"
        settings = _load_options(options, form)
        if odd := {
            name: value for name, value in options.items() if name in (*_SIMPLE, "stop")
        }:  # such as null
            own_fields["options"] = odd
        if further := read_extra_fields(options, *odd):
            body["options"] = further
    if (reasoning := _load_think(body.get("think"))) is not None:
        settings["reasoning"], think = reasoning, body.pop("think")
        if _dump_think(reasoning, model, Quirks()) != think:
            form["think"] = think
    return Settings(**settings)


def dump_settings(request: ModelRequest, form: JsonMap, out: Outgoing[Quirks]) -> Json:
    """Returns settings as the fields `think` and `options` of an Ollama body."""
    settings = request.settings
    fields: Json = {}
    if (reasoning := settings.reasoning) is not None:
        if "think" in form and _load_think(form["think"]) == reasoning:
            fields["think"] = form["think"]
        else:
            fields["think"] = _dump_think(reasoning, request.model, out.quirks)
            if isinstance(reasoning, int) or fields["think"] not in (True, False, reasoning):
                why = f"the API cannot be told {reasoning!r}; {fields['think']} is sent"
                out.lose(None, None, Lost.setting, why, "reasoning")
    if (options := _dump_options(settings, form)) or form.get("options") == "empty":
        fields["options"] = options
    for name in _UNKNOWN:
        if getattr(settings, name) not in (None, "auto"):
            out.lose(None, None, Lost.setting, "the API has no such setting", name)
    return fields


def load_schema(body: Json, form: Json) -> JsonMap | None:
    """Takes the output schema out of an Ollama body; `json` is the schema of any object."""
    schema = body.get("format")
    if schema == "json":
        del body["format"]
        return dict(_ANY_OBJECT)
    if not isinstance(schema, dict):
        return None
    if schema == _ANY_OBJECT:
        form["format"] = "schema"
    return if_object(body.pop("format"))


def dump_schema(schema: JsonMap, form: JsonMap) -> JsonMap | str:
    """Returns the output schema as the field `format` of a body."""
    return "json" if schema == _ANY_OBJECT and form.get("format") != "schema" else schema


def _load_options(options: Json, form: Json) -> Json:
    """Takes out of Ollama's `options` what settings say."""
    settings = {**take_fields(options, _SIMPLE), **take_stops(options, "stop")}
    if settings.get("max_tokens", 1) < 1:  # no limit
        options["num_predict"] = settings.pop("max_tokens")
    if isinstance(options.get("stop"), str):
        settings["stop"], form["stop"] = (options.pop("stop"),), "string"
    return settings


def _dump_options(settings: Settings, form: JsonMap) -> Json:
    """Returns settings as the Ollama object `options`."""
    options = dump_fields(settings, _SIMPLE)
    if settings.stop is not None:
        single = form.get("stop") == "string" and len(settings.stop) == 1
        options["stop"] = settings.stop[0] if single else list(settings.stop)
    return options


def _load_think(think: Any) -> _Reasoning | None:
    """Returns the setting that Ollama's `think` stands for, or None if it says nothing. Plain
    `true` is a medium effort."""
    if isinstance(think, bool):
        return "medium" if think else "off"
    return cast("_Reasoning", think) if think in _LEVELS else None


def _dump_think(setting: _Reasoning, model: str, quirks: Quirks) -> bool | str:
    """Returns the setting `reasoning` as Ollama's `think`: a level for the models that have them,
    else true or false. A budget is the nearest level."""
    if setting == "off":
        return False
    return (find_allowed(to_effort(setting), _LEVELS) or True) if quirks.has_levels(model) else True
