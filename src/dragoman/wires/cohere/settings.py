"""Settings, reasoning and the output schema ⇄ fields of the body. A field whose value has no
neutral meaning stays this wire's own."""

from __future__ import annotations

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.schema_dialect import JsonDialect, fit_schema
from dragoman.codec.settings import Fields, dump_fields, take_fields, take_stops
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.request import Effort, Settings
from dragoman.wires.cohere.quirks import Quirks

__all__ = ["FIELDS", "dump_schema", "dump_settings", "load_schema", "load_settings"]

_NUMBERS: Fields = {
    "temperature": ("temperature", (int, float)),
    "max_tokens": ("max_tokens", (int,)),
    "p": ("top_p", (int, float)),
    "k": ("top_k", (int,)),
    "presence_penalty": ("presence_penalty", (int, float)),
    "frequency_penalty": ("frequency_penalty", (int, float)),
    "seed": ("seed", (int,)),
}
"""Field of the body → the setting that it is, and its types."""
FIELDS = (*_NUMBERS, "stop_sequences", "thinking", "response_format")
"""The body's fields that settings and the output schema stand in."""
_ANY_OBJECT: Json = {"type": "object"}
_DIALECT = JsonDialect(
    keywords=frozenset({"title", "description", "enum", "const", "pattern", "format"}),
    only={"format": frozenset({"date-time", "date", "time", "uuid"})},
    free=False,
    lists=False,
    some_required=True,
)
_SCHEMA = ("json_schema", "schema")
"""Where the schema stands in `response_format`: today's name, and the older one."""


def load_settings(body: Json) -> Json:
    """Removes settings from Cohere's body. Returns them by their neutral names."""
    settings = {**take_fields(body, _NUMBERS), **take_stops(body, "stop_sequences")}
    thinking = if_object(body.get("thinking"))
    budget = thinking.get("token_budget", "high")
    reasoning = budget if thinking.get("type") == "enabled" else "off"
    is_setting = type(budget) is int or budget == "high"
    if body.get("thinking") and is_setting and _thinking(reasoning, Quirks()) == thinking:
        settings["reasoning"] = reasoning
        del body["thinking"]
    return settings


def dump_settings(settings: Settings, quirks: Quirks) -> Json:
    """Returns settings as fields of Cohere's body."""
    body = dump_fields(settings, _NUMBERS)
    if settings.stop is not None:
        body["stop_sequences"] = list(settings.stop)
    if settings.reasoning is not None:
        body["thinking"] = _thinking(settings.reasoning, quirks)
    return body


def load_schema(body: Json, form: Json) -> tuple[JsonMap | None, Json]:
    """Removes the output schema from Cohere's body. Returns it, and the further fields of
    `response_format`; its wire form goes to `form`."""
    format_ = if_object(body.get("response_format"))
    if format_.get("type") != "json_object":
        return None, {}
    if format_ == {"type": "json_object"}:
        del body["response_format"]
        return dict(_ANY_OBJECT), {}
    for field in _SCHEMA:
        schema = format_.get(field)
        if isinstance(schema, dict):
            del body["response_format"]
            form["schema"] = field
            beside = read_extra_fields(format_, "type", field)
            return if_object(schema), {"response_format": beside} if beside else {}
    return None, {}


def dump_schema(schema: JsonMap | None, form: JsonMap, losses: list[Loss]) -> Json:
    """Returns the output schema as Cohere's `response_format`. A loaded one is sent as it was, any
    other in the API's dialect."""
    if schema is None:
        return {}
    if field := form.get("schema"):
        return {"response_format": {"type": "json_object", field: schema}}
    schema_sent = None if schema == _ANY_OBJECT else fit_schema(schema, _DIALECT)
    if schema_sent is None and schema != _ANY_OBJECT:
        losses.append(Loss(None, None, Lost.output_schema, "it refers to what is not in it"))
    return {
        "response_format": {"type": "json_object"}
        if schema_sent is None
        else {"type": "json_object", "json_schema": schema_sent}
    }


def _thinking(setting: Effort | int, quirks: Quirks) -> Json:
    """Returns the setting `reasoning` as Cohere's field `thinking`."""
    if setting == "off":
        return {"type": "disabled"}
    budget = setting if isinstance(setting, int) else quirks.budgets.get(setting)
    return {"type": "enabled"} if budget is None else {"type": "enabled", "token_budget": budget}
