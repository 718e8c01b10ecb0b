"""How the model is to answer: `generationConfig` ↔ Settings and the output schema.

`load_settings` first makes all names camelCase, because the API also takes snake_case, and notes
which names were spelled so. Numbers that came as texts are made numbers and noted too. Then it
takes the fields of settings, thinking and schema out; the rest has no neutral name. The last
value that it returns is the form: what `dump_settings` needs to write the same config again.

Thinking is said by a level or by a budget, depending on the model. Without a note of the form a
number is sent as a budget and an effort as a level.
"""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.schema_dialect import JsonDialect, fit_schema
from dragoman.codec.settings import Fields, dump_fields, take_fields, take_stops
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.request import Effort, ModelRequest
from dragoman.wires.google.keys import (
    given,
    merged,
    not_usual,
    snake_form,
    snakes,
    to_camel_case,
    to_snake_case,
)
from dragoman.wires.google.quirks import Quirks
from dragoman.wires.google.schema import dump_older, load_older
from dragoman.wires.google.tools import OutgoingContents

__all__ = ["dump_schema", "dump_settings", "load_schema", "load_settings"]

_SIMPLE: Fields = {
    "temperature": ("temperature", (int, float)),
    "topP": ("top_p", (int, float)),
    "topK": ("top_k", (int,)),
    "maxOutputTokens": ("max_tokens", (int,)),
    "presencePenalty": ("presence_penalty", (int, float)),
    "frequencyPenalty": ("frequency_penalty", (int, float)),
    "seed": ("seed", (int,)),
}
"""Field → the setting of the same meaning, and the type it must have for that."""
_JSON = "application/json"
_AS_IS = "as is"
_DIALECT = JsonDialect(
    keywords=frozenset(
        [
            "$id",
            "$anchor",
            "title",
            "description",
            "format",
            "enum",
            "prefixItems",
            "minItems",
            "maxItems",
            "minimum",
            "maximum",
            "propertyOrdering",
        ]
    ),
    cut_recursion=True,
    const=False,
)
_MOST = 2**63
_LEVELS = ("minimal", "low", "medium", "high", "xhigh")
_NEUTRAL = (*_SIMPLE, "stopSequences", "responseSchema", "responseJsonSchema", "thinkingConfig")


def load_settings(
    fields: JsonMap,
) -> tuple[Json, Json | None, Json, Json]:
    """Returns what `generationConfig` holds: the settings, the output schema, the further fields
    and the Gemini wire form."""
    snake: set[str] = set()
    config = to_camel_case(fields, snake)
    form: Json = {}
    if nulls := [key for key in _NEUTRAL if key in config and config[key] is None]:
        form["null"] = nulls
        config = read_extra_fields(config, *nulls)
    if unusual := _take_numbers(config):
        form["numbers"] = unusual
    settings = {**take_fields(config, _SIMPLE), **take_stops(config, "stopSequences")}
    if isinstance(thinking := config.get("thinkingConfig"), dict):
        reasoning, further, thinking_form = _load_thinking(if_object(thinking), snake)
        if reasoning is not None:
            settings["reasoning"], form["thinking"] = reasoning, thinking_form
            del config["thinkingConfig"]
            if further:
                config["thinkingConfig"] = further
    schema, schema_form = load_schema(config)
    return settings, schema, config, {**form, **snake_form(snake), **schema_form}


def dump_settings(request: ModelRequest, form: JsonMap, out: OutgoingContents) -> Json:
    """Returns settings and output schema as Gemini's `generationConfig`. `form` is the note on how
    a loaded request was written: which numbers were texts, which fields were null, and which keys
    were in snake_case. They are written so again."""
    settings = request.settings
    config = dump_fields(settings, _SIMPLE)
    for key, sent in if_object(form.get("numbers")).items():
        if key in config and config[key] == _parse_number(sent, _SIMPLE[key][1]):
            config[key] = sent
    if settings.stop is not None:
        config["stopSequences"] = list(settings.stop)
    if settings.reasoning is not None:
        config["thinkingConfig"] = _dump_thinking(
            settings.reasoning, if_object(form.get("thinking")), out
        )
    if request.output_schema is not None:
        config |= dump_schema(request.output_schema, form, out.quirks)
    nulls = {key: None for key in form.get("null", ()) if key not in config}
    snake = snakes(form)
    if "thinkingConfig" in config:
        config["thinkingConfig"] = to_snake_case(config["thinkingConfig"], snake)
    return to_snake_case(
        merged(if_object(request.options.get("generationConfig")), {**nulls, **config}), snake
    )


def load_schema(config: Json) -> tuple[Json | None, Json]:
    """Removes the output schema from a Gemini config. Returns it, and its wire form."""
    key = next(
        (
            key
            for key in ("responseJsonSchema", "responseSchema")
            if isinstance(config.get(key), dict)
        ),
        None,
    )
    if key is None:
        return None, {}
    schema, types = config.pop(key), _AS_IS
    if key == "responseSchema":
        schema, types = load_older(schema)
    if config.get("responseMimeType") != _JSON:
        return schema, {"schema": types, "mime": _AS_IS}
    del config["responseMimeType"]
    return schema, {"schema": types}


def dump_schema(schema: JsonMap, form: JsonMap, quirks: Quirks) -> Json:
    """Returns an output schema as fields of `generationConfig`: a loaded one as it was, any other
    in the Gemini API's dialect."""
    types = form.get("schema", "" if quirks.json_schema else "upper")
    if types in ("", _AS_IS):
        fields: Json = {
            "responseJsonSchema": schema if types else fit_schema(schema, _DIALECT) or schema
        }
    else:
        fields = {"responseSchema": dump_older(schema, types)}
    return fields if form.get("mime") == _AS_IS else {**fields, "responseMimeType": _JSON}


def _take_numbers(config: Json) -> Json:
    """Makes numbers of the settings in a `generationConfig` that stand for one, and returns what
    stood there. The Gemini API takes texts, and `40.0` where it has whole numbers, as its own
    libraries send `topK`."""
    unusual: Json = {}
    for key, (_, types) in _SIMPLE.items():
        number = _parse_number(config.get(key), types)
        if number is not None:
            unusual[key], config[key] = config[key], number
    return unusual


def _parse_number(value: Any, types: tuple[type, ...]) -> int | float | None:
    """Returns the number that a text or other value stands for in Gemini's `generationConfig`, or
    None if it is a number already or none."""
    number = value
    if isinstance(value, str):
        try:
            number = float(value) if "." in value or "e" in value.lower() else int(value)
        except ValueError:
            return None
    if isinstance(number, float) and float not in types:
        number = int(number) if number.is_integer() else None
    return (
        None
        if number is value or not isinstance(number, int | float) or not abs(number) < _MOST
        else number
    )


def _load_thinking(fields: JsonMap, snake: set[str]) -> tuple[Any, Json, Json]:
    """Returns the setting that Gemini's `thinkingConfig` stands for or None, its further fields,
    and its wire form."""
    inner: set[str] = set()
    config = to_camel_case(fields, inner)
    both = config.keys() >= {"thinkingBudget", "thinkingLevel"}
    budget, level = config.pop("thinkingBudget", None), config.pop("thinkingLevel", None)
    form: Json = {}
    if config.get("includeThoughts") is not True:
        form["includeThoughts"] = not_usual(config, "includeThoughts")
    config.pop("includeThoughts", None)
    if (tokens := _parse_number(budget, (int,))) is not None:
        form["tokens"], budget = budget, int(tokens)
    if both:
        return None, {}, {}
    if level is None and type(budget) is int and budget >= 0:
        snake |= inner
        return budget or "off", config, {**form, **({} if budget else {"form": "budget"})}
    if budget is None and isinstance(level, str) and level.lower() in _LEVELS:
        snake |= inner
        return (
            level.lower(),
            config,
            {**form, "form": "level", **({} if level == level.lower() else {"level": level})},
        )
    return None, {}, {}


def _dump_level(effort: Effort, form: JsonMap, out: OutgoingContents) -> str:
    """Returns an effort as Gemini's `thinkingLevel`, spelled as a loaded request wrote it."""
    if effort == "max":
        why = "the API has no level max; high is sent"
        out.lose(None, None, Lost.setting, why, "reasoning")
        return "high"
    level = form.get("level")
    return level if isinstance(level, str) and level.lower() == effort else effort


def _dump_thinking(reasoning: Effort | int, form: JsonMap, out: OutgoingContents) -> Json:
    """Returns the setting `reasoning` as Gemini's `thinkingConfig`. A model of which nothing is
    known is asked by a level."""
    profile = out.quirks.profile
    by_level = form.get("form", "level") == "level"
    off = profile.off if profile is not None else None
    config: Json
    if reasoning == "off" and by_level and not off:
        config = {"thinkingLevel": "minimal"}
        why = "the model cannot stop thinking; minimal is sent"
        out.lose(None, None, Lost.setting, why, "reasoning")
    elif reasoning == "off":
        config = {"thinkingBudget": 0}
    elif isinstance(reasoning, int):
        tokens = form.get("tokens")
        config = {
            "thinkingBudget": tokens if _parse_number(tokens, (int,)) == reasoning else reasoning
        }
    elif by_level:
        config = {"thinkingLevel": _dump_level(reasoning, form, out)}
    else:
        config = {"thinkingBudget": out.quirks.budgets[reasoning]}
    include = form.get("includeThoughts", True if form or reasoning != "off" else "absent")
    return {**config, **given(include, "includeThoughts")}
