"""Settings, reasoning and the output schema ↔ fields of the body.

A budget of reasoning is `thinking: enabled`; an effort is a budget too (from `Quirks.budgets`), or on newer models
`thinking: adaptive` with `output_config.effort`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_dialect import Dialect, fit
from dragoman.codec.json_values import if_object, rest
from dragoman.codec.settings import Fields, take_fields, take_stops
from dragoman.loss import Loss, Lost
from dragoman.request import ModelRequest
from dragoman.wires.anthropic.limits import default_max_tokens
from dragoman.wires.anthropic.quirks import OWN, Quirks

__all__ = ["FIELDS", "dump_schema", "dump_settings", "load_schema", "load_settings"]

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
_CACHES: Mapping[str, dict[str, Any]] = {"short": {"type": "ephemeral"}, "long": {"type": "ephemeral", "ttl": "1h"}}
_EFFORTS = ("low", "medium", "high")
_USUAL_EFFORT = "high"  # what the API assumes where there is none
_LEAST_BUDGET = 1024  # tokens; the API takes no smaller budget
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
_DIALECT = Dialect(
    kept=frozenset({"title", "description", "enum", "const", "default", "format", "minItems"}),
    only={"format": frozenset(_FORMATS), "minItems": frozenset({0, 1})},
    closed=True,
    recursive=False,
    lists=False,
)


def load_settings(body: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
    """Takes out of `body` what settings hold → them by their names; what is not of the usual form goes to `form`."""
    if "max_tokens" not in body:
        form["max_tokens"] = "absent"
    settings = {**take_fields(body, _NUMBERS), **take_stops(body, "stop_sequences")}
    for cache, control in _CACHES.items():
        if body.get("cache_control") == control:
            settings["cache"] = cache
            del body["cache_control"]
    return {**settings, "reasoning": _load_reasoning(body, form)}


def dump_settings(request: ModelRequest, quirks: Quirks, losses: list[Loss]) -> dict[str, Any]:
    """Settings and output schema → fields of the body."""
    settings, form = request.settings, OWN.form(request.native)
    losses += [
        Loss(None, None, Lost.setting, "the API has no such setting", name)
        for name in _UNKNOWN
        if getattr(settings, name) is not None
    ]
    thinking, effort = _dump_reasoning(request, quirks, form)
    schema = dump_schema(request.output_schema, form, losses)
    config = {
        **if_object(request.options.get("output_config")),
        **({} if effort is None else {"effort": effort}),
        **schema.pop("output_config", {}),
    }
    fields: dict[str, Any] = {
        "thinking": thinking,
        **{key: getattr(settings, key) for key in _NUMBERS},
        "stop_sequences": None if settings.stop is None else list(settings.stop),
        "cache_control": None if settings.cache is None else _CACHES[settings.cache],
        **schema,
        "output_config": config or None,
    }
    if fields["max_tokens"] is None and form.get("max_tokens") != "absent" and "max_tokens" not in request.options:
        budget = if_object(thinking).get("budget_tokens", 0)
        fields["max_tokens"] = default_max_tokens(request.model, budget, quirks.max_tokens)
    return {key: value for key, value in fields.items() if value is not None}


def load_schema(body: dict[str, Any], form: dict[str, Any]) -> dict[str, Any] | None:
    """Takes the output schema out of `body` → it; its wire form goes to `form`."""
    for key, format_ in (
        ("output_config", if_object(body.get("output_config")).get("format")),
        ("output_format", body.get("output_format")),
    ):
        fields = if_object(format_)
        if fields.get("type") != "json_schema" or not isinstance(fields.get("schema"), dict):
            continue
        if key == "output_config":
            _take(body, "output_config", "format")
        else:
            del body["output_format"]
        others = rest(fields, "type", "schema")
        named = {"key": key} if key == "output_format" else {}
        form["output_schema"] = {"as is": True, **named, **({"fields": others} if others else {})}
        return fields["schema"]
    return None


def dump_schema(schema: Mapping[str, Any] | None, form: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
    """The output schema → `output_config`, or `output_format` where it came so. A loaded schema is sent as it was, any other in
    the API's dialect."""
    own: Mapping[str, Any] = form.get("output_schema", {})
    if schema is not None and "as is" not in own and (schema := fit(schema, _DIALECT)) is None:
        losses.append(Loss(None, None, Lost.output_schema, "the API knows neither recursive schemas nor free keys"))
    if schema is None:
        return {}
    format_ = {**own.get("fields", {}), "type": "json_schema", "schema": schema}
    return {"output_format": format_} if own.get("key") == "output_format" else {"output_config": {"format": format_}}


def _load_reasoning(body: dict[str, Any], form: dict[str, Any]) -> Any:
    """Takes reasoning out of `body` → the setting."""
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
            _take(body, "output_config", "effort")
            form["reasoning"] = {"thinking": None, "effort": True}
            return effort
        case _:
            return None
    fields = rest(body.pop("thinking"), *known)
    if not known:
        if effort is not None:
            _take(body, "output_config", "effort")
        form["reasoning"] = {"thinking": fields, "effort": effort is not None}
    elif fields:
        form["reasoning"] = {"thinking": fields}
    return reasoning


def _dump_reasoning(
    request: ModelRequest, quirks: Quirks, form: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, str | None]:
    """The setting → `thinking`, and the effort for `output_config`."""
    reasoning = request.settings.reasoning
    if reasoning is None:
        return None, None
    own = if_object(form.get("reasoning"))
    fields = own.get("thinking", {})
    details = rest(fields or {}, "type")
    if reasoning == "off":
        return {**details, "type": "disabled"}, None
    if isinstance(reasoning, int):
        return {**details, "type": "enabled", "budget_tokens": reasoning}, None
    if fields is None:
        return None, reasoning
    if "type" in fields or request.model.startswith(quirks.adaptive_models):
        effort = reasoning if own.get("effort", True) or reasoning != _USUAL_EFFORT else None
        return {**details, "type": "adaptive"}, effort
    budget = quirks.budgets[reasoning]
    if request.settings.max_tokens is not None:  # which must exceed the budget
        budget = max(_LEAST_BUDGET, min(budget, request.settings.max_tokens - 1))
    return {**details, "type": "enabled", "budget_tokens": budget}, None


def _take(body: dict[str, Any], outer: str, inner: str) -> None:
    """Takes a field out of an object of the body, and the object with its last field."""
    body[outer] = rest(body[outer], inner)
    if not body[outer]:
        del body[outer]
