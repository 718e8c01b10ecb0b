"""How the model is to answer: `generationConfig` ↔ Settings and the output schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.json_dialect import Dialect, fit
from dragoman.codec.json_values import if_object
from dragoman.loss import Loss
from dragoman.request import ModelRequest
from dragoman.wires.google.keys import camelled, given, merged, not_usual, snaked, snakes
from dragoman.wires.google.quirks import Quirks
from dragoman.wires.google.tools import dump_schema, load_schema

__all__ = ["dump_config", "load_config"]

_NUMBER = (int, float)
_SIMPLE: Mapping[str, tuple[str, Any]] = {
    "temperature": ("temperature", _NUMBER),
    "topP": ("top_p", _NUMBER),
    "topK": ("top_k", int),
    "maxOutputTokens": ("max_tokens", int),
    "presencePenalty": ("presence_penalty", _NUMBER),
    "frequencyPenalty": ("frequency_penalty", _NUMBER),
    "seed": ("seed", int),
}
"""Field → the setting of the same meaning, and the type it must have for that."""
_JSON = "application/json"
_AS_IS = "as is"
_DIALECT = Dialect(
    kept=frozenset(
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
_LEVELS = ("low", "medium", "high")
_NEUTRAL = (*_SIMPLE, "stopSequences", "responseSchema", "responseJsonSchema", "thinkingConfig")


def load_config(
    given: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any], dict[str, Any]]:
    """`generationConfig` → the settings, the output schema, the fields that no setting says, and the spelling."""
    snake: set[str] = set()
    config = camelled(given, snake)
    told: dict[str, Any] = {}
    if nulls := [key for key in _NEUTRAL if key in config and config[key] is None]:
        told["null"] = nulls
        config = {key: value for key, value in config.items() if key not in nulls}
    settings: dict[str, Any] = {}
    for key, (name, kind) in _SIMPLE.items():
        if isinstance(config.get(key), kind) and not isinstance(config[key], bool):
            settings[name] = config.pop(key)
    stops: Any = config.get("stopSequences")
    if isinstance(stops, list) and all(isinstance(stop, str) for stop in cast("list[Any]", stops)):
        settings["stop"] = tuple(config.pop("stopSequences"))
    if isinstance(thinking := config.get("thinkingConfig"), dict):
        reasoning, rest, spelled = _load_thinking(cast("dict[str, Any]", thinking), snake)
        if reasoning is not None:
            settings["reasoning"], told["thinking"] = reasoning, spelled
            del config["thinkingConfig"]
            if rest:
                config["thinkingConfig"] = rest
    schema, told_schema = _load_schema(config)
    if snake:
        told["snake"] = sorted(snake)
    return settings, schema, config, {**told, **told_schema}


def dump_config(request: ModelRequest, told: Mapping[str, Any], quirks: Quirks, losses: list[Loss]) -> dict[str, Any]:
    """The settings and the output schema → `generationConfig`."""
    settings = request.settings
    config: dict[str, Any] = {
        key: value for key, (name, _) in _SIMPLE.items() if (value := getattr(settings, name)) is not None
    }
    if settings.stop is not None:
        config["stopSequences"] = list(settings.stop)
    if settings.reasoning is not None:
        config["thinkingConfig"] = _dump_thinking(request, if_object(told.get("thinking")), quirks, losses)
    if request.output_schema is not None:
        config |= _dump_schema(request.output_schema, told, quirks)
    nulls = {key: None for key in told.get("null", ()) if key not in config}
    snake = snakes(told)
    if "thinkingConfig" in config:
        config["thinkingConfig"] = snaked(config["thinkingConfig"], snake)
    return snaked(merged(if_object(request.options.get("generationConfig")), {**nulls, **config}), snake)


def _load_thinking(given: Mapping[str, Any], snake: set[str]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """`thinkingConfig` → the setting (`None`: no setting says it), the fields beside it, and the spelling."""
    inner: set[str] = set()
    config = camelled(given, inner)
    budget, level = config.pop("thinkingBudget", None), config.pop("thinkingLevel", None)
    told: dict[str, Any] = {}
    if config.get("includeThoughts") is not True:
        told["includeThoughts"] = not_usual(config, "includeThoughts")
    config.pop("includeThoughts", None)
    if level is None and type(budget) is int and budget >= 0 and "thinkingLevel" not in given:
        snake |= inner
        return budget or "off", config, {**told, **({} if budget else {"form": "budget"})}
    if budget is None and isinstance(level, str) and level.lower() in _LEVELS and "thinkingBudget" not in given:
        snake |= inner
        form = {"form": "level"} if level == level.lower() else {"form": "level", "level": level}
        return level.lower(), config, {**told, **form}
    return None, {}, {}


def _dump_thinking(
    request: ModelRequest, told: Mapping[str, Any], quirks: Quirks, losses: list[Loss]
) -> dict[str, Any]:
    reasoning = request.settings.reasoning
    by_level = told["form"] == "level" if "form" in told else not quirks.is_older(request.model)
    config: dict[str, Any]
    if reasoning == "off" and by_level:
        least = "low" if quirks.always_thinking in request.model else "minimal"
        config = {"thinkingLevel": least}
        losses.append(Loss(None, None, "reasoning", f"the model cannot stop thinking; asked for {least}"))
    elif reasoning == "off":
        config = {"thinkingBudget": 0}
    elif isinstance(reasoning, int):
        config = {"thinkingBudget": reasoning}
    elif by_level:
        config = {"thinkingLevel": told["level"] if str(told.get("level", "")).lower() == reasoning else reasoning}
    else:
        config = {"thinkingBudget": quirks.budgets[cast("str", reasoning)]}
    include = told.get("includeThoughts", True if told or reasoning != "off" else "absent")
    return {**config, **given(include, "includeThoughts")}


def _load_schema(config: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Takes the output schema out of a config → the schema, and its spelling."""
    key = next((key for key in ("responseJsonSchema", "responseSchema") if isinstance(config.get(key), dict)), None)
    if key is None:
        return None, {}
    told: dict[str, Any] = {}
    schema = cast("dict[str, Any]", config.pop(key))
    told["schema"] = _AS_IS
    if key == "responseSchema":
        schema, told["schema"] = load_schema(schema)
    if config.get("responseMimeType") == _JSON:
        del config["responseMimeType"]
    else:
        told["mime"] = "as is"
    return schema, told


def _dump_schema(schema: Mapping[str, Any], told: Mapping[str, Any], quirks: Quirks) -> dict[str, Any]:
    """A loaded schema is sent as it was, any other in the API's dialect."""
    how = told.get("schema", "" if quirks.json_schema else "upper")
    if how in ("", _AS_IS):
        said: dict[str, Any] = {"responseJsonSchema": schema if how else fit(schema, _DIALECT) or schema}
    else:
        said = {"responseSchema": dump_schema(schema, how)}
    return said if told.get("mime") == "as is" else {**said, "responseMimeType": _JSON}
