"""Settings, reasoning and the output schema ↔ fields of the body.

A budget of reasoning is `thinking: enabled`; an effort is a budget too (from `Quirks.budgets`), or
on newer models `thinking: adaptive` with `output_config.effort`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dragoman.codec.efforts import find_allowed
from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.schema_dialect import JsonDialect, fit_schema
from dragoman.codec.settings import Fields, take_fields, take_stops
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.request import Effort, ModelRequest
from dragoman.wires.anthropic.quirks import OWN, Quirks

__all__ = [
    "FIELDS",
    "default_max_tokens",
    "dump_schema",
    "fit_output_schema",
    "dump_settings",
    "fit_together",
    "load_schema",
    "load_settings",
    "takes_schema",
]

_NUMBERS: Fields = {
    "max_tokens": ("max_tokens", (int,)),
    "temperature": ("temperature", (int, float)),
    "top_p": ("top_p", (int, float)),
    "top_k": ("top_k", (int,)),
}
FIELDS = (*_NUMBERS, "stop_sequences", "thinking", "output_config", "output_format")
"""The body's fields that settings and the output schema stand in."""
_UNKNOWN = ("presence_penalty", "frequency_penalty", "seed")
"""Settings that the API does not know."""
_CACHES: Mapping[str, Json] = {
    "short": {"type": "ephemeral"},
    "long": {"type": "ephemeral", "ttl": "1h"},
}
_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
_USUAL_EFFORT = "high"  # what the API assumes where there is none
_LEAST_BUDGET = 1024  # tokens; the API takes no smaller budget
_FORMATS = (
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
)
_DIALECT = JsonDialect(
    keywords=frozenset({"title", "description", "enum", "const", "default", "format", "minItems"}),
    only={"format": frozenset(_FORMATS), "minItems": frozenset({0, 1})},
    closed=True,
    recursive=False,
    lists=False,
)

_ANSWER = 4096
"""Tokens that thinking leaves for the answer at least, where the limit allows so many twice."""
_USUAL = 32_768
_LEAST_TOP_P = 0.95  # beside thinking
_FIRST_FOUR = re.compile(
    r"claude-(2|v2|instant|3-|4(-20\d{6}|$|[@:])|(sonnet|opus)-4(-0)?(-20\d{6}|$|[@:]))"
)
"""The models up to the first Claude 4. Opus 4.1 is the first with structured outputs and the first
that takes one of `temperature` and `top_p` only."""


def load_settings(body: Json, form: Json) -> Json:
    """Removes settings from Anthropic's body. Returns them by their neutral names; unusual forms go
    to `form`."""
    if "max_tokens" not in body:
        form["max_tokens"] = "absent"
    settings = {**take_fields(body, _NUMBERS), **take_stops(body, "stop_sequences")}
    for cache, control in _CACHES.items():
        if body.get("cache_control") == control:
            settings["cache"] = cache
            del body["cache_control"]
    return {**settings, "reasoning": _load_reasoning(body, form)}


def dump_settings(request: ModelRequest, quirks: Quirks, losses: list[Loss]) -> Json:
    """Returns settings and output schema as fields of Anthropic's body."""
    settings, form = request.settings, OWN.form(request.native)
    losses += [
        Loss(None, None, Lost.setting, "the API has no such setting", name)
        for name in _UNKNOWN
        if getattr(settings, name) is not None
    ]
    thinking, effort = _dump_reasoning(request, quirks, form)
    if not request.as_sent:
        thinking = _ask_for_summary(thinking, quirks)
    if effort is not None:
        effort = _dump_effort(effort, losses)
    schema = dump_schema(request, form, losses)
    config = {
        **if_object(request.options.get("output_config")),
        **({} if effort is None else {"effort": effort}),
        **schema.pop("output_config", {}),
    }
    fields: Json = {
        "thinking": thinking,
        **{key: getattr(settings, key) for key in _NUMBERS},
        "stop_sequences": None if settings.stop is None else list(settings.stop),
        "cache_control": None if settings.cache is None else _CACHES[settings.cache],
        **schema,
        "output_config": config or None,
    }
    if (
        fields["max_tokens"] is None
        and form.get("max_tokens") != "absent"
        and "max_tokens" not in request.options
    ):
        budget = if_object(thinking).get("budget_tokens", 0)
        fields["max_tokens"] = default_max_tokens(quirks, budget)
    return {key: value for key, value in fields.items() if value is not None}


def load_schema(body: Json, form: Json) -> Json | None:
    """Removes the output schema from Anthropic's body and returns it; its wire form goes to
    `form`."""
    for key, format_ in (
        ("output_config", if_object(body.get("output_config")).get("format")),
        ("output_format", body.get("output_format")),
    ):
        fields = if_object(format_)
        if fields.get("type") != "json_schema" or not isinstance(fields.get("schema"), dict):
            continue
        if key == "output_config":
            _take_nested_field(body, "output_config", "format")
        else:
            del body["output_format"]
        others = read_extra_fields(fields, "type", "schema")
        named = {"key": key} if key == "output_format" else {}
        form["output_schema"] = {"as is": True, **named, **({"fields": others} if others else {})}
        return fields["schema"]
    return None


def dump_schema(request: ModelRequest, form: JsonMap, losses: list[Loss]) -> Json:
    """Returns the output schema as `output_config`, or as `output_format` if it was read from
    there. A loaded schema is sent as it was, any other in the Anthropic API's dialect, to a model
    that takes one."""
    own: JsonMap = form.get("output_schema", {})
    schema = request.output_schema
    if schema is not None and "as is" not in own:
        schema = fit_output_schema(schema, losses)
    if schema is None:
        return {}
    format_ = {**own.get("fields", {}), "type": "json_schema", "schema": schema}
    return (
        {"output_format": format_}
        if own.get("key") == "output_format"
        else {"output_config": {"format": format_}}
    )


def fit_output_schema(schema: JsonMap, losses: list[Loss]) -> JsonMap | None:
    """Returns a schema in the Anthropic API's dialect, or None, with a loss, if the dialect cannot
    express it."""
    fitting = fit_schema(schema, _DIALECT)
    if fitting is None:
        losses.append(
            Loss(
                None,
                None,
                Lost.output_schema,
                "the API knows neither recursive schemas nor free keys",
            )
        )
    return fitting


def _load_reasoning(body: Json, form: Json) -> Any:
    """Removes `thinking` and effort from Anthropic's body. Returns the setting `reasoning`."""
    effort = if_object(body.get("output_config")).get("effort")
    effort = effort if effort in _EFFORTS else None
    match body.get("thinking"):
        case {"type": "enabled", "budget_tokens": int(budget)} if not isinstance(budget, bool):
            reasoning, known = budget, ("type", "budget_tokens")
        case {"type": "disabled"}:
            reasoning, known = "off", ("type",)
        case {"type": "adaptive"}:
            reasoning, known = effort or _USUAL_EFFORT, ()
        case None if effort is not None:
            _take_nested_field(body, "output_config", "effort")
            form["reasoning"] = {"thinking": None, "effort": True}
            return effort
        case _:
            return None
    fields = read_extra_fields(body.pop("thinking"), *known)
    if not known:
        if effort is not None:
            _take_nested_field(body, "output_config", "effort")
        form["reasoning"] = {"thinking": fields, "effort": effort is not None}
    elif fields:
        form["reasoning"] = {"thinking": fields}
    return reasoning


def _dump_reasoning(
    request: ModelRequest, quirks: Quirks, form: JsonMap
) -> tuple[Json | None, Effort | None]:
    """Returns the setting `reasoning` as Anthropic's field `thinking`, and the effort for
    `output_config`."""
    reasoning = request.settings.reasoning
    if reasoning is None:
        return None, None
    own = if_object(form.get("reasoning"))
    fields = own.get("thinking", {})
    details = read_extra_fields(fields or {}, "type")
    if reasoning == "off":
        return {**details, "type": _find_off_word(quirks)}, None
    if isinstance(reasoning, int):
        return {**details, "type": "enabled", "budget_tokens": reasoning}, None
    if fields is None:
        return None, reasoning
    if "type" in fields or _takes_effort(quirks):
        effort = reasoning if own.get("effort", True) or reasoning != _USUAL_EFFORT else None
        return {**details, "type": "adaptive"}, effort
    budget = quirks.budgets[reasoning]
    if (limit := request.settings.max_tokens) is not None:
        budget = min(budget, _room(limit))
    return {**details, "type": "enabled", "budget_tokens": budget}, None


def _ask_for_summary(thinking: Json | None, quirks: Quirks) -> Json | None:
    """Returns Anthropic's field `thinking` with a summary, of a model that tells nothing of its
    thinking otherwise."""
    profile = quirks.profile
    if profile is None or not profile.omits_thinking:
        return thinking
    if not thinking or thinking["type"] not in ("adaptive", "enabled"):
        return thinking
    return {**thinking, "display": thinking.get("display", "summarized")}


def _takes_effort(quirks: Quirks) -> bool:
    """True if the Anthropic model is asked to think by an effort. One of which nothing is known is
    given a budget, which all endpoints of this API take."""
    profile = quirks.profile
    if profile is None or not profile.known():
        return False
    return profile.ways is None or "adaptive" in profile.ways


def _dump_effort(effort: Effort, losses: list[Loss]) -> Effort:
    """Returns the Anthropic API's word for an effort, or for the nearest one that it has."""
    word = find_allowed(effort, _EFFORTS) or effort
    if word != effort:
        why = f"the API has no effort {effort}; {word} is sent"
        losses.append(Loss(None, None, Lost.setting, why, "reasoning"))
    return word


def _take_nested_field(body: Json, outer: str, inner: str) -> None:
    """Takes a setting out of an object of the Anthropic body, and the object with its last
    field."""
    body[outer] = read_extra_fields(body[outer], inner)
    if not body[outer]:
        del body[outer]


def default_max_tokens(quirks: Quirks, budget: int = 0) -> int:
    """Returns the `max_tokens` of an Anthropic request that sets none, as the API requires it.
    `budget`: tokens of thinking, which count too."""
    most = quirks.profile.output if quirks.profile is not None else None
    wanted = quirks.max_tokens or _USUAL
    if budget:
        wanted = max(wanted, budget + _ANSWER)
    return min(wanted, most or wanted)


def fit_together(body: JsonMap, quirks: Quirks, losses: list[Loss]) -> JsonMap:
    """Returns an Anthropic body without the fields that the API refuses beside others. What is left
    out or lowered is added to `losses`."""
    thinking = _fit_thinking(body, losses)
    changes: Json = {} if thinking == body.get("thinking") else {"thinking": thinking}
    thinks = if_object(thinking).get("type") in ("enabled", "adaptive")
    left_out = _unfit_sampling(body, thinks=thinks, both=_takes_both(quirks))
    losses += [Loss(None, None, Lost.setting, why, name) for name, why in left_out.items() if why]
    if not changes and not left_out:
        return body
    fitted = {**body, **changes}
    return {
        name: value
        for name, value in fitted.items()
        if name not in left_out and (name not in changes or value)
    }


def _fit_thinking(body: JsonMap, losses: list[Loss]) -> Any:
    """Returns Anthropic's setting `thinking` as the token limit and the tool choice allow it, or
    None if they forbid it."""
    thinking = if_object(body.get("thinking"))
    if thinking.get("type") != "enabled":
        return body.get("thinking")
    if if_object(body.get("tool_choice")).get("type") in ("any", "tool"):
        why = "the API takes no forced choice of a tool beside thinking"
        losses.append(Loss(None, None, Lost.setting, why, "reasoning"))
        return None
    budget, limit = thinking.get("budget_tokens"), body.get("max_tokens")
    if not isinstance(budget, int) or not isinstance(limit, int) or budget < limit:
        return thinking
    if limit <= _LEAST_BUDGET:
        why = (
            f"the API wants {_LEAST_BUDGET} tokens of thinking at least, and max_tokens is {limit}"
        )
        losses.append(Loss(None, None, Lost.setting, why, "reasoning"))
        return None
    lowered = _room(limit)
    why = f"the budget of {budget} tokens must be below max_tokens, which is {limit}; {lowered} are sent"
    losses.append(Loss(None, None, Lost.setting, why, "reasoning"))
    return {**thinking, "budget_tokens": lowered}


def _room(limit: int) -> int:
    """Returns the largest budget of thinking that leaves tokens for the answer."""
    return max(_LEAST_BUDGET, limit - min(limit // 2, _ANSWER))


def _unfit_sampling(body: JsonMap, *, thinks: bool, both: bool) -> dict[str, str]:
    """Returns the sampling settings that the Anthropic body may not have, and why; empty if they
    ask for the default."""
    temperature, top_p = body.get("temperature"), body.get("top_p")
    found: dict[str, str] = {}
    if thinks:
        why = "the API does not take it beside thinking"
        if "top_k" in body:
            found["top_k"] = why
        if temperature not in (None, 1):
            found["temperature"] = why
        if isinstance(top_p, int | float) and top_p < _LEAST_TOP_P:
            found["top_p"] = f"beside thinking the API takes {_LEAST_TOP_P} to 1"
    if both or temperature is None or top_p is None or "temperature" in found or "top_p" in found:
        return found
    if temperature == 1:  # the default
        return {**found, "temperature": ""}
    return {**found, "top_p": "the model does not take it beside a temperature"}


def _takes_both(quirks: Quirks) -> bool:
    """True if nothing is known against a temperature and `top_p` in one request."""
    pairs = quirks.profile.together if quirks.profile is not None else None
    return ("temperature", "top_p") not in (pairs or ())


def _find_off_word(quirks: Quirks) -> str:
    """Returns the type of `thinking` that switches it off, as far as the model can."""
    words = quirks.profile.off if quirks.profile is not None else None
    return words[0] if words else "disabled"


def takes_schema(model: str) -> bool:
    """Returns whether a model answers by a JSON Schema (`output_config.format`)."""
    return _FIRST_FOUR.match(_plain(model)) is None


def _plain(model: str) -> str:
    """Returns a model's name without vendor and region, with the dots of its version as dashes."""
    name = model.rpartition("/")[2]
    return name[max(name.find("claude"), 0) :].replace(".", "-")
